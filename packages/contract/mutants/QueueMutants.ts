/** Mutants of what queues and schedules decide by. */
import { mutantsOf } from "./Mutant.js"

export const queueMutants = [
  ...mutantsOf("admitDuplicate", [
    [`if (holder._tag !== "Going")`, `if (holder._tag === "Absent")`, "a run that is over answers for a new one"],
    [`|| holder.begun) return`, `) return`, "a run that has begun is taken back"],
    [
      `_tag: "Supersede", since: holder.since, startAt`,
      `_tag: "Supersede", since: now, startAt`,
      "LV: a burst without end never runs"
    ],
    [
      `Math.max(
        startAt,`,
      `Math.min(
        startAt,`,
      "a debounce brings a start forward"
    ]
  ]),
  ...mutantsOf("admitFromQueue", [
    [`begun && limits.hold === "run"`, `begun`, "a branch that waits keeps a slot that it does not have"],
    [`free <= 0 ||`, `free < 0 ||`, "one more than the queue's limit runs"],
    [`if (!begun && left < 1) return`, `if (left < 1) return`, "LV: a branch that goes on waits for a token"],
    [`key !== "" && limits`, `limits`, "branches without a key are limited by one"],
    [`waiting.lastOfKey + 1)`, `waiting.lastOfKey)`, "LV: a noisy key starves the others"]
  ]),
  ...mutantsOf("scheduleFires", [
    [`/ every) + 1) * every + offset`, `/ every)) * every + offset`, "a schedule fires for ever at once"],
    [`if (at > after) return at`, `if (at >= after) return at`, "a time fires twice"],
    [`if (due > now) return`, `if (due >= now) return`, "LV: what is due now is not"],
    [`now - due > catchUp && !waited`, `now - due > catchUp`, "a fire that waited for the run before it is lost"],
    [`cancelPrevious: true }`, `cancelPrevious: false }`, "the previous run goes on beside the next"]
  ])
]
