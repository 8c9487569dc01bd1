import { describe } from "vitest"
import { deliverySuite } from "./deliveries.js"
import { postgres } from "./Place.js"

describe("pg", () => deliverySuite(postgres))
