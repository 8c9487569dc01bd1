/** Mutants of the decisions about who may write, and what. */
import { mutantsOf } from "./Mutant.js"

const appends = mutantsOf("admitAppend", [
  [`row === undefined || row.epoch !== request.epoch`, `row === undefined`, "RD: a zombie writes into the journal"],
  [`row.epoch !== request.epoch`, `row.epoch > request.epoch`, "an epoch from another database passes"],
  [
    `row.epoch !== request.epoch`,
    `row.epoch > request.epoch + 1`,
    "RD: the owner before this one still writes (its branch was taken once)"
  ],
  [
    `row.head === request.head && row.headDigest === request.headDigest`,
    `row.head === request.head`,
    "RD: another write at the same position is taken for the own one"
  ],
  [
    `if (row.head === request.head && row.headDigest === request.headDigest) return`,
    `if (request.inboxSeen === undefined && row.head === request.head && row.headDigest === request.headDigest) return`,
    "a commit whose reply was lost is refused, if it was conditional"
  ],
  [`row.head !== request.base || `, ``, "a writer leaves a hole in the journal"],
  [` || row.headDigest !== request.baseDigest`, ``, "a chain goes on from an entry that is not there"],
  [
    `request.inboxSeen !== undefined && row.inboxHead`,
    `request.inboxSeen && row.inboxHead`,
    "LV: with nothing seen yet, what came in is overlooked"
  ],
  [
    `row.inboxHead !== request.inboxSeen`,
    `row.inboxHead < request.inboxSeen`,
    "LV: an end is written over an answer that was accepted"
  ],
  [`inboxHead: row.inboxHead }`, `inboxHead: request.inboxSeen }`, "the refusal says that nothing came in"]
])

const entries = mutantsOf("admitEntry", [
  [`if (branch.over) return { _tag: "Refuse", reason: "branch over" }`, ``, "an entry follows the end"],
  [
    `(entry.kind === "run.started") !== (branch.head === 0)`,
    `entry.kind === "run.started" && branch.head > 0`,
    "a history begins without a start"
  ],
  [
    `(entry.kind === "run.started") !== (branch.head === 0)`,
    `entry.kind !== "run.started" && branch.head === 0`,
    "a run is started twice in one history"
  ],
  [
    `entry.payloadLength > limits.maxPayload`,
    `entry.payloadLength >= limits.maxPayload`,
    "the limit itself is refused"
  ],
  [
    `if (entry.payloadLength > limits.maxPayload) return { _tag: "Refuse", reason: "payload too large" }`,
    ``,
    "CV: a payload of any size is stored"
  ],
  [`!entry.payloadWellFormed || `, ``, "CV: text is stored that does not come back as it was"],
  [`!entry.key.isWellFormed() || `, ``, "CV: a key is stored that does not come back as it was"],
  [` || entry.key.includes("\\0")`, ``, "CV: a key with NUL, which one of the databases cannot store"]
])

const owners = mutantsOf("ownership", [
  [`if (facts.sight === "gone") return`, `if (facts.sight !== "running") return`, "EO: who is not seen is called dead"],
  [`facts.now >= facts.leaseUntil`, `facts.now > facts.leaseUntil`, "a lease holds a moment longer than it says"],
  [`facts.now >= facts.leaseUntil`, `false`, "LV: a lapsed lease is never taken over"],
  [
    `facts.now >= facts.leaseUntil ? { _tag: "Expired" }`,
    `facts.now >= facts.leaseUntil ? { _tag: "Dead" }`,
    "EO: a lapsed lease is called proof of death"
  ],
  [`self.bootId !== "" &&`, ``, "two hosts that do not know their boot see each other"],
  [`self.pidNamespace !== "" &&`, ``, "two processes that do not know their namespace see each other"],
  [`self.bootId === other.bootId &&`, ``, "EO: a pid of another host is looked up on this one"],
  [
    ` &&
  self.pidNamespace === other.pidNamespace`,
    ``,
    "EO: a pid of another container is looked up in this one"
  ],
  [
    `row.inboxHead === owner.inboxSeen ?`,
    `row.inboxHead >= owner.inboxSeen ?`,
    "LV: a branch sleeps on an answer that was accepted"
  ],
  [
    `row.epoch !== owner.epoch) return { _tag: "Fenced" }
  return row.inboxHead`,
    `row.epoch < owner.epoch) return { _tag: "Fenced" }
  return row.inboxHead`,
    "RD: a zombie parks a branch that another one runs"
  ],
  [
    `if (row === undefined || row.epoch !== owner.epoch) return { _tag: "Fenced" }`,
    `if (row === undefined) return { _tag: "Fenced" }`,
    "RD: whoever once had a branch may park it"
  ]
])

const rows = mutantsOf("serveInboxRow", [
  [`return facts.over ? unserved("the run was over") : serve`, `return serve`, "a cancel is served after the end"],
  [
    `return facts.over ? unserved("the run was over") : serve`,
    `return unserved("the run was over")`,
    "LV: a cancel is accepted and never served"
  ],
  [`return facts.open ? serve :`, `return !facts.over ? serve :`, "an answer is served to a question that closed"],
  [`return facts.open ? serve :`, `return facts.open && facts.over ? serve :`, "LV: an accepted answer is dropped"],
  [
    `facts.over ? "the run was over" : "its interrupt had closed"`,
    `"its interrupt had closed"`,
    "the receipt gives the wrong reason"
  ],
  [`state === "intended" || state === "refused"`, `state === "intended"`, "LV: a refused outcome cannot be settled"],
  [
    `state === "intended" || state === "refused"`,
    `state !== "succeeded" && state !== "failed"`,
    "EO: an effect that was voided, or is not remembered, is settled again"
  ],
  [
    `return isUnsettled(facts.state) ? serve :`,
    `return isUnsettled(facts.state) || facts.state === "failed" ? serve :`,
    "EO: a recorded failure gets a second outcome"
  ]
])

/** Mutants of what is decided for owners of branches. */
export const ownerMutants = [...appends, ...entries, ...owners, ...rows]
