/** Mutants of what a loop's snapshot replaces. */
import { mutantsOf } from "./Mutant.js"

export const loopMutants = mutantsOf("loopScope", [
  [
    `?? entry.seq) > entry.seq)`,
    `?? entry.seq) < entry.seq)`,
    "RD: what follows a snapshot is replaced, what it replaces is not"
  ],
  [`const keep = !superseded && `, `const keep = `, "what is replayed grows with a loop's iterations"],
  [`{ alone: !eventKept,`, `{ alone: false,`, "RD: a snapshot whose event was replaced is no activation"],
  [`claimed.add(position)`, `claims.size`, "an iteration that is skipped leaves its messages to the next"],
  [`key.startsWith(scope)`, `key.startsWith(loop)`, "RD: a timer of another iteration stops a snapshot"],
  [`facts.fibers === 0`, `facts.fibers >= 0`, "RD: a fiber outlives its iteration"]
])
