/** What the ledger owes the owners of branches, as one suite that every database passes. */
import { describe } from "@effect/vitest"
import type { Place } from "../outside/Place.js"
import { journalSuite } from "./journal.js"
import { leaseSuite } from "./leases.js"

export const coreSuite = (place: Place): void => {
  describe(`on ${place.name}`, () => {
    describe("journal", () => journalSuite(place))
    describe("claims and leases", () => leaseSuite(place))
  })
}
