import { soak } from "@fermata/test/soak/Soak"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"

/** A minute here; `npm run soak` takes as long as it is told to. */
const seconds = Number(process.env.FERMATA_SOAK_SECONDS ?? 60)

it.scopedLive(
  "four workers that are killed, stopped and paused, and a server that is restarted twice, lose and double nothing",
  () =>
    Effect.gen(function* () {
      const report = yield* soak({ seconds, seed: 20_261, workers: 4, load: 20 })
      expect(report.violations).toEqual([])
      expect(report.crashes).toBe(2)
      expect(report.completed).toBeGreaterThan(5)
      expect(report.killed + report.stopped + report.paused).toBeGreaterThan(0)
    }),
  (seconds + 180) * 1000
)
