import { postgres } from "../outside/Place.js"
import { coreSuite } from "./coreSuite.js"

coreSuite(postgres)
