/** What the ledger owes those outside a worker, as one suite that every database passes. */
import { describe } from "@effect/vitest"
import { deliverySuite } from "./deliveries.js"
import { forkSuite } from "./forks.js"
import type { Place } from "./Place.js"

export const outsideSuite = (place: Place): void => {
  describe(place.name, () => {
    describe("deliveries", () => deliverySuite(place))
    describe("forks", () => forkSuite(place))
  })
}
