/** What the clerks do. */
import { Ledger } from "@fermata/ledger"
import { Effect } from "effect"

const definition = "clerk@1"

/** How many runs are completed. */
export const completionsOf = Effect.gen(function* () {
  const { sql } = yield* Ledger
  const [row] = yield* sql`SELECT COUNT(*) AS n FROM fermata_branches WHERE status = 'completed'`
  return Number(row.n)
})

export const work = ({ name, runs, done }) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const { worker } = yield* ledger.register({ lease: 600_000, place: undefined, look: () => "cannot tell" })
    let heard = false
    let wake = () => {}
    ledger.subscribe(() => {
      heard = true
      wake()
    })
    for (let n = 0; n < runs; n++) {
      yield* ledger.start({ run: `${name}-${n}`, workflow: "clerk", version: "1", input: "0", inputDigest: "0" })
    }
    for (;;) {
      heard = false
      const claims = yield* ledger.claim({ worker, definitions: [definition], limit: 5 })
      yield* Effect.forEach(
        claims,
        (claim) => {
          const journal = ledger.open(claim)
          for (const step of [1, 2, 3]) {
            journal.append({ kind: "step.succeeded", key: `s#${step}`, payload: JSON.stringify({ by: name }) })
          }
          return journal.appendIf([{ kind: "run.completed", key: "", payload: "{}" }], { inboxSeen: 0 })
        },
        { concurrency: "unbounded", discard: true }
      )
      if (claims.length > 0) continue
      if (yield* done) return
      // Whatever another process does is heard; nothing else wakes this one.
      yield* Effect.async((resume) => {
        if (heard) return resume(Effect.void)
        wake = () => resume(Effect.void)
      })
    }
  })
