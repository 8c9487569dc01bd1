import { outsideSuite } from "./outsideSuite.js"
import { postgres } from "./Place.js"

outsideSuite(postgres)
