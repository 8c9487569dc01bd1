/** What the ledger owes those outside a worker, as one suite that every database passes. */
import { describe } from "@effect/vitest"
import { chunkSuite } from "./chunks.js"
import { deliverySuite } from "./deliveries.js"
import { forkSuite } from "./forks.js"
import { lifecycleSuite } from "./lifecycles.js"
import { messageSuite } from "./messages.js"
import type { Place } from "./Place.js"
import { purgeSuite } from "./purges.js"
import { queueSuite } from "./queues.js"
import { scheduleSuite } from "./schedules.js"
import { settlementSuite } from "./settlements.js"
import { verificationSuite } from "./verification.js"

export const outsideSuite = (place: Place): void => {
  describe(`on ${place.name}`, () => {
    describe("deliveries", () => deliverySuite(place))
    describe("forks", () => forkSuite(place))
    describe("settlements and cancellations", () => settlementSuite(place))
    describe("purges", () => purgeSuite(place))
    describe("lifecycles", () => lifecycleSuite(place))
    describe("chunks", () => chunkSuite(place))
    describe("queues", () => queueSuite(place))
    describe("messages", () => messageSuite(place))
    describe("schedules", () => scheduleSuite(place))
    describe("verification", () => verificationSuite(place))
  })
}
