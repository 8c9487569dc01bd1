import { describe } from "vitest"
import { deliverySuite } from "./deliveries.js"
import { sqliteFile, sqliteMemory } from "./Place.js"

describe("sqlite file", () => deliverySuite(sqliteFile))
describe("memory", () => deliverySuite(sqliteMemory))
