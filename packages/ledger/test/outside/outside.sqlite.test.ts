import { outsideSuite } from "./outsideSuite.js"
import { sqliteFile, sqliteMemory } from "./Place.js"

outsideSuite(sqliteFile)
outsideSuite(sqliteMemory)
