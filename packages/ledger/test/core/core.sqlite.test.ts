import { sqliteFile, sqliteMemory } from "../outside/Place.js"
import { coreSuite } from "./coreSuite.js"

coreSuite(sqliteFile)
coreSuite(sqliteMemory)
