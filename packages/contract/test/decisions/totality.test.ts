/** Every decision is total: over every combination of its facts' tags it gives a verdict that its type names. */
import { assert, describe, it } from "@effect/vitest"
import {
  admitAppend,
  admitCancel,
  admitEntry,
  admitFiring,
  admitFork,
  admitPark,
  admitSettlement,
  admitStart,
  EntryKind,
  judgeDelivery,
  judgeOwner,
  recoverEffect
} from "../../src/index.js"
import { combinations } from "../domains.js"

const run = ["known", "unknown", "purged"] as const
const policy = ["transactional", "keyed", "once", "repeatable"] as const
const state = ["intended", "succeeded", "failed", "voided", "refused"] as const
const flag = [false, true] as const

/** The verdicts that the combinations give, each once. */
const verdicts = <F>(facts: Iterable<F>, decide: (facts: F) => string): ReadonlyArray<string> => {
  const given = new Set<string>()
  for (const one of facts) given.add(decide(one))
  return [...given].sort()
}

/** All lists of one or two recorded tries, and the empty one. */
const tried = (() => {
  const one = [
    ...combinations({
      attempt: [1, 2],
      effect: ["e", "f"],
      delivery: policy,
      input: ["x", "y"],
      state,
      key: ["k"],
      try: [0]
    } as const)
  ]
  const pairs = one.flatMap((first) => one.slice(0, 40).map((second) => [first, { ...second, key: "k~1", try: 1 }]))
  return [[], ...one.map((recorded) => [recorded]), ...pairs]
})()

describe("every decision is total and gives each of its verdicts", () => {
  it("admitStart", () =>
    assert.deepStrictEqual(
      verdicts(
        combinations({
          stored: [
            { _tag: "Absent" },
            { _tag: "Purged" },
            { _tag: "Present", workflow: "w", version: "1", inputDigest: "i" }
          ],
          request: [...combinations({ workflow: ["w", "x"], version: ["1", "2"], inputDigest: ["i", "j"] } as const)]
        } as const),
        ({ stored, request }) => admitStart(stored, request)._tag
      ),
      ["Conflict", "Create", "Existing", "Purged"]
    ))

  it("admitCancel", () =>
    assert.deepStrictEqual(
      verdicts(combinations({ run, over: flag, requested: flag }), (facts) => admitCancel(facts)._tag),
      ["Accepted", "Duplicate", "RunPurged", "TooLate", "UnknownRun"]
    ))

  it("admitFiring", () =>
    assert.deepStrictEqual(
      verdicts(
        combinations({ tries: tried, attempt: [1, 2], delivery: policy }),
        ({ tries, ...request }) => admitFiring(tries, { effect: "e", input: "x", ...request })._tag
      ),
      ["Fire", "InDoubt", "InputChanged", "Refused", "Serve"]
    ))

  it("recoverEffect", () =>
    assert.deepStrictEqual(
      verdicts(
        combinations({
          delivery: policy,
          firedBy: ["dead", "unknown"],
          overAt: [0, 2, Infinity, NaN],
          now: [0, 1, 2, 3, NaN],
          reconciled: ["unavailable", "notAsked", "Happened", "NeverWill", "Unknown"]
        } as const),
        (facts) => recoverEffect(facts)._tag
      ),
      ["Adopt", "AskOutside", "AwaitSettlement", "FireAgain", "Void", "WaitUntil"]
    ))

  it("judgeDelivery", () =>
    assert.deepStrictEqual(
      verdicts(
        combinations({
          run,
          over: flag,
          interrupt: [
            { _tag: "Unknown" },
            { _tag: "Open" },
            { _tag: "Consumed", delivery: "d", valueDigest: "v" },
            { _tag: "Closed", reason: "r" }
          ],
          deliveryUse: [undefined, { interrupt: "i", valueDigest: "v" }, { interrupt: "j", valueDigest: "v" }],
          delivery: ["d", "e"],
          value: [{ _tag: "Valid", digest: "v" }, { _tag: "Valid", digest: "w" }, { _tag: "Invalid" }]
        } as const),
        ({ delivery, value, ...facts }) => judgeDelivery(facts, { interrupt: "i", delivery, value })._tag
      ),
      [
        "Accepted",
        "AlreadyConsumed",
        "DeliveryIdReused",
        "Duplicate",
        "InterruptClosed",
        "ResumeValueInvalid",
        "RunPurged",
        "UnknownInterrupt"
      ]
    ))

  it("admitFork", () =>
    assert.deepStrictEqual(
      verdicts(
        combinations({
          run,
          existing: [undefined, { parent: "p", seq: 1, firstDigest: "" }, { parent: "q", seq: 1, firstDigest: "" }],
          head: [undefined, 0, 1, 2],
          anchor: [0, 2],
          inFlight: [[], [{ key: "k", step: "s" }]],
          nearest: [{ below: undefined, above: undefined }],
          interruptOpen: [undefined, true, false],
          seq: [0, 1, 2],
          settlesStep: [undefined, "s"],
          valueValid: flag
        } as const),
        ({ seq, settlesStep, valueValid, ...facts }) =>
          admitFork(facts, { parent: "p", seq, firstDigest: "", settlesStep, valueValid })._tag
      ),
      [
        "CheckpointPruned",
        "EffectInFlight",
        "Existing",
        "Fork",
        "ForkIdReused",
        "InterruptNotOpen",
        "ResumeValueInvalid",
        "RunPurged",
        "UnknownCheckpoint"
      ]
    ))

  it("admitSettlement", () =>
    assert.deepStrictEqual(
      verdicts(
        combinations({
          run,
          over: flag,
          owned: flag,
          effect: [undefined, ...state.map((one) => ({ state: one }))],
          accepted: [undefined, { digest: "a" }, { digest: "b" }],
          valid: flag
        }),
        ({ valid, ...facts }) => admitSettlement(facts, { digest: "a", valid })._tag
      ),
      ["Accepted", "AlreadySettled", "Duplicate", "RunPurged", "SettlementInvalid", "UnderWay", "UnknownEffect"]
    ))

  it("admitAppend", () =>
    assert.deepStrictEqual(
      verdicts(
        combinations({
          row: [undefined, ...combinations({ epoch: [1, 2], head: [1, 2], headDigest: ["a", "b"], inboxHead: [0, 1] })],
          inboxSeen: [undefined, 0, 1]
        }),
        ({ row, inboxSeen }) =>
          admitAppend(row, { epoch: 1, base: 1, baseDigest: "a", head: 2, headDigest: "b", inboxSeen })._tag
      ),
      ["AlreadyAppended", "Append", "Fenced", "InboxAdvanced"]
    ))

  it("admitEntry", () =>
    assert.deepStrictEqual(
      verdicts(
        combinations({
          kind: EntryKind.literals,
          key: ["", "k", "\ud800"],
          payloadLength: [0, 10, 11],
          payloadWellFormed: flag,
          head: [0, 1],
          over: flag
        }),
        ({ head, over, ...entry }) => {
          const verdict = admitEntry({ head, over }, entry, { maxPayload: 10 })
          return verdict._tag === "Refuse" ? verdict.reason : verdict._tag
        }
      ),
      ["Persist", "branch over", "malformed text", "not the first entry", "payload too large"]
    ))

  it("judgeOwner and admitPark", () => {
    assert.deepStrictEqual(
      verdicts(
        combinations({ sight: ["running", "gone", "cannot tell"], leaseUntil: [0, 1, NaN], now: [0, 1] } as const),
        (facts) => judgeOwner(facts)._tag
      ),
      ["Alive", "Dead", "Expired"]
    )
    assert.deepStrictEqual(
      verdicts(
        combinations({
          row: [undefined, { epoch: 1, inboxHead: 0 }, { epoch: 1, inboxHead: 1 }, { epoch: 2, inboxHead: 0 }]
        }),
        ({ row }) => admitPark(row, { epoch: 1, inboxSeen: 0 })._tag
      ),
      ["Fenced", "InboxAdvanced", "Park"]
    )
  })
})
