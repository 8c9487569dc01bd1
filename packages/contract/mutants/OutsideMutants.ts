/** Mutants of the decisions about what comes from outside: starts, answers, forks, settlements, cancellations. */
import { mutantsOf } from "./Mutant.js"

const starts = mutantsOf("admitStart", [
  [
    `if (stored.workflow !== request.workflow) return`,
    `if (stored.workflow !== request.workflow && stored.inputDigest !== request.inputDigest) return`,
    "another workflow under a known run id is taken for the same start"
  ],
  [
    `if (stored.inputDigest !== request.inputDigest) return`,
    `if (request.inputDigest && stored.inputDigest !== request.inputDigest) return`,
    "an empty digest counts as no input"
  ],
  [`return { _tag: "Purged" }`, `return { _tag: "Create" }`, "a late start revives a purged run"],
  [`return { _tag: "Create" }`, `return { _tag: "Existing" }`, "a start reports a run that does not exist"],
  [
    `return { _tag: "Existing" }`,
    `return stored.version === request.version ? { _tag: "Existing" } : { _tag: "Create" }`,
    "a start that is retried across a deployment starts again"
  ]
])

const cancellations = mutantsOf("admitCancel", [
  [`if (facts.requested) return`, `if (facts.requested && !facts.over) return`, "a repeated cancel is called too late"],
  [`return facts.over ? { _tag: "TooLate" } :`, `return`, "a branch that is over accepts a cancel"],
  [
    `if (facts.run === "purged") return`,
    `if (facts.run === "purged" && facts.over) return`,
    "a purged run is cancelled"
  ],
  [`if (facts.run === "unknown") return { _tag: "UnknownRun" }`, ``, "a run that does not exist is cancelled"]
])

const messages = mutantsOf("admitMessage", [
  [`if (facts.run === "purged") return { _tag: "RunPurged" }`, ``, "a purged run takes a message"],
  [`if (facts.run === "unknown") return { _tag: "UnknownRun" }`, ``, "a run that does not exist takes a message"],
  [
    `facts.earlier.name === request.name && facts.earlier.digest`,
    `facts.earlier.digest`,
    "a message id is used for two names"
  ],
  [` && facts.earlier.digest === request.digest`, ``, "a message id is used for two values"],
  [`if (!facts.declared) return { _tag: "UnknownMessage" }`, ``, "a message is accepted that nobody will take"],
  [
    `return facts.over ? { _tag: "RunOver" } : { _tag: "Accepted" }`,
    `return { _tag: "Accepted" }`,
    "a run that is over takes a message"
  ]
])

const expiries = mutantsOf("admitExpiry", [
  [`if (!facts.open) return { _tag: "Gone" }`, ``, "an interrupt that was answered expires"],
  [`facts.now < facts.deadline`, `facts.now <= facts.deadline`, "a deadline is late by one millisecond"],
  [`if (facts.now < facts.deadline) return { _tag: "NotYet" }`, ``, "an interrupt expires before its time"],
  [`facts.inboxHead > facts.inboxSeen`, `facts.inboxHead < facts.inboxSeen`, "an answer that was accepted is overtaken"]
])

const answers = mutantsOf("judgeDelivery", [
  [`if (facts.run === "purged") return { _tag: "RunPurged" }`, ``, "a purged run takes an answer"],
  [`if (facts.run === "unknown" || facts.interrupt._tag`, `if (facts.interrupt._tag`, "an unknown run takes an answer"],
  [
    `interrupt._tag === "Consumed" && interrupt.delivery === request.delivery`,
    `false`,
    "the winner's retry is told that somebody else won"
  ],
  [
    `consumedBySame = interrupt._tag === "Consumed" && interrupt.delivery === request.delivery`,
    `consumedBySame = interrupt._tag === "Consumed"`,
    "CO: an equal value of another delivery passes for the winner's"
  ],
  [
    ` && use.valueDigest === request.value.digest) return`,
    `) return`,
    "one delivery id with two values: the second is told that it was taken"
  ],
  [
    `if (use.interrupt === request.interrupt && use`,
    `if (use`,
    "an answer to one question is taken for the answer to another"
  ],
  [`if (use !== undefined) {`, `if (use?.valueDigest) {`, "an empty digest counts as no use of the delivery id"],
  [
    `if (use !== undefined) {`,
    `if (use !== undefined && !facts.over) {`,
    "the winner's retry is refused once the run is over"
  ],
  [
    `if (facts.interrupt._tag === "Consumed") return { _tag: "AlreadyConsumed" }`,
    ``,
    "CO: a second delivery is accepted"
  ],
  [
    `if (facts.interrupt._tag === "Consumed") return { _tag: "AlreadyConsumed" }`,
    `if (facts.interrupt._tag === "Consumed")
    return { _tag: facts.interrupt.valueDigest === request.value.digest ? "Duplicate" : "AlreadyConsumed" }`,
    "CO: an equal value from somebody else passes for a duplicate"
  ],
  [
    `if (facts.interrupt._tag === "Closed") return`,
    `if (facts.interrupt._tag === "Closed" && facts.over) return`,
    "a closed question takes an answer"
  ],
  [
    `if (facts.over) return { _tag: "InterruptClosed", reason: "the run is over" }`,
    ``,
    "a run that is over takes an answer"
  ],
  [
    `if (request.value._tag === "Invalid") return { _tag: "ResumeValueInvalid" }`,
    ``,
    "CV: a value that fails its Schema is accepted"
  ],
  [
    `if (request.value._tag === "Invalid") return`,
    `if (request.value._tag === "Invalid" && request.value.digest === undefined) return`,
    "CV: an invalid value with a digest is accepted"
  ]
])

const forks = mutantsOf("admitFork", [
  [`if (facts.run === "purged") return { _tag: "RunPurged" }`, ``, "a purged run is forked"],
  [`if (facts.run === "unknown" || facts.head`, `if (facts.head`, "an unknown run is forked"],
  [`facts.existing.parent === request.parent &&`, ``, "FI: one fork id names forks of two branches"],
  [`facts.existing.seq === request.seq &&`, ``, "FI: one fork id names two checkpoints"],
  [
    ` &&
      facts.existing.firstDigest === request.firstDigest`,
    ``,
    "FD: one fork id serves the other fork's answer"
  ],
  [`: { _tag: "ForkIdReused" }`, `: { _tag: "Fork" }`, "FI: a reused fork id overwrites its branch"],
  [
    `if (facts.existing !== undefined) {`,
    `if (facts.existing !== undefined && request.valueValid) {`,
    "the same fork again is refused by a Schema that a deployment narrowed"
  ],
  [`request.seq < 1 ||`, `request.seq < 0 ||`, "a fork begins before the start was recorded"],
  [`request.seq > facts.head)`, `request.seq > facts.head + 1)`, "PC: a fork begins after what is durable"],
  [`request.seq > facts.head)`, `request.seq >= facts.head)`, "the newest checkpoint cannot be forked"],
  [`if (request.seq < facts.anchor) return`, `if (request.seq <= facts.anchor) return`, "the anchor cannot be forked"],
  [
    `if (request.seq < facts.anchor) return { _tag: "CheckpointPruned", anchor: facts.anchor }`,
    ``,
    "PC: a fork begins in a prefix that was pruned"
  ],
  [`if (facts.interruptOpen === false) return`, `if (!facts.interruptOpen) return`, "a plain fork needs a question"],
  [
    `if (facts.interruptOpen === false) return { _tag: "InterruptNotOpen" }`,
    ``,
    "CO: a fork answers what is answered in its own history"
  ],
  [`if (!request.valueValid) return { _tag: "ResumeValueInvalid" }`, ``, "CV: a fork serves an invalid value"],
  [
    `(effect) => effect.step !== request.settlesStep`,
    `(effect) => effect.step === request.settlesStep`,
    "EO: an effect is in doubt on two branches"
  ],
  [
    `(effect) => effect.step !== request.settlesStep`,
    `() => request.settlesStep === undefined`,
    "EO: an edited outcome of one step lets another step's effect fire twice"
  ],
  [`if (unsettled.length > 0) {`, `if (unsettled.length > 1) {`, "EO: one effect in flight does not stop a fork"],
  [`keys: unsettled.map(`, `keys: facts.inFlight.map(`, "the refusal names effects that do not stand in the way"]
])

const settlements = mutantsOf("admitSettlement", [
  [`if (facts.run === "purged") return { _tag: "RunPurged" }`, ``, "a purged run is settled"],
  [`if (facts.run === "unknown") return { _tag: "UnknownEffect" }`, ``, "an unknown run is settled"],
  [
    `facts.accepted.digest === request.digest ? { _tag: "Duplicate" } : { _tag: "AlreadySettled" }`,
    `{ _tag: "Duplicate" }`,
    "who contradicts a settlement is told that it was recorded"
  ],
  [
    `if (facts.accepted !== undefined) {`,
    `if (facts.accepted !== undefined && facts.effect !== undefined) {`,
    "the same settlement again is unknown once its step ended"
  ],
  [`if (facts.over || (`, `if ((`, "a branch that is over is settled"],
  [` && facts.effect.state !== "refused")`, `)`, "LV: a refused outcome cannot be settled"],
  [
    `(facts.effect.state !== "intended" && facts.effect.state !== "refused")`,
    `facts.effect.state === "succeeded"`,
    "EO: a recorded failure is settled again"
  ],
  [`if (facts.owned) return { _tag: "UnderWay" }`, ``, "EO: a firing that is under way is settled"],
  [
    `return request.valid ? { _tag: "Accepted" } : { _tag: "SettlementInvalid" }`,
    `return { _tag: "Accepted" }`,
    "CV: an outcome that is no JSON is recorded"
  ]
])

/** Mutants of what is decided for clients and operators. */
export const outsideMutants = [
  ...starts,
  ...cancellations,
  ...messages,
  ...expiries,
  ...answers,
  ...forks,
  ...settlements
]
