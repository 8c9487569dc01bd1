import { type Entry, type EntryKind, rootBranch, RunId } from "@fermata/contract"
import { type Ending, type Sight, violations } from "@fermata/test/crash/Oracle"
import { Book, deliveries, effectsOf, receiptOf } from "@fermata/test/crash/Sweep"
import type { Recorded } from "@fermata/test/EffectLog"
import { describe, expect, it } from "@effect/vitest"

const branch = rootBranch(RunId.make("r"))

const entry = (seq: number, kind: EntryKind, key: string, payload: object): Entry => ({
  branch,
  seq,
  kind,
  key,
  payload: JSON.stringify(payload),
  epoch: 1,
  at: seq,
  digest: `digest ${seq}`
})

const row = (n: number, effect: string, at: string, idempotencyKey: string, inputDigest = "input"): Recorded => ({
  n,
  effect,
  at,
  idempotencyKey,
  inputDigest,
  pid: 1
})

const receipt = receiptOf.pay("9", "good", "Ada")
const outcome = {
  price: "9",
  reservation: receiptOf.reserve("9"),
  grade: "good",
  receipt,
  entry: receiptOf.book(receipt),
  seal: receiptOf.seal(receipt)
}
const values: Readonly<Record<string, string>> = { quote: outcome.price, assess: outcome.grade }

/** A run that was killed after `steps` steps, and finished as it should. */
const right = (steps: number): readonly [Sight, Ending] => {
  const nodes = Object.keys(effectsOf)
  const history = nodes.map((node, n) =>
    entry(n + 1, "step.succeeded", `${node}#1`, { node, input: "", value: values[node] ?? "" })
  )
  const log = nodes.flatMap((node, n) => [
    row(n * 10, "body", "r", node),
    ...(effectsOf[node] ?? [])
      .filter((effect) => effect !== Book.name)
      .map((effect, index) => row(n * 10 + index + 1, effect, `${branch}|${node}#1|${index + 1}`, `key of ${effect}`))
  ])
  return [
    { history: history.slice(0, steps), log: log.filter(({ n }) => n < steps * 10) },
    { history, log, booked: 1, outcome }
  ]
}

const nameOf = (policy: string) => [...deliveries].find(([, delivery]) => delivery === policy)?.[0] ?? ""

describe("the oracle of the crash sweep", () => {
  it.each([0, 3, 6])("has no complaint about a run that was killed after %i steps and went on", (steps) => {
    expect(violations("r", ...right(steps))).toEqual([])
  })

  it.each([
    {
      what: "a replaced entry",
      change: (ended: Ending) => ({
        ...ended,
        history: ended.history.map((e) => (e.seq === 2 ? { ...e, digest: "other" } : e))
      }),
      complaint: "was replaced"
    },
    {
      what: "a lost entry",
      change: (ended: Ending) => ({ ...ended, history: ended.history.slice(0, 2) }),
      complaint: "was replaced"
    },
    {
      what: "a recorded step that ran again",
      change: (ended: Ending) => ({ ...ended, log: [...ended.log, row(99, "body", "r", "quote")] }),
      complaint: "ran again"
    },
    {
      what: "a recorded effect that fired again",
      change: (ended: Ending) => ({
        ...ended,
        log: [...ended.log, row(99, "shop/quote", `${branch}|quote#1|1`, "key of shop/quote")]
      }),
      complaint: "ran again"
    },
    {
      what: "a second payment, under whatever key",
      change: (ended: Ending) => ({
        ...ended,
        log: [...ended.log, row(99, nameOf("once"), `${branch}|pay#1|1~1`, "another key")]
      }),
      complaint: "fired 2 times"
    },
    {
      what: "a keyed effect under a second key",
      change: (ended: Ending) => ({
        ...ended,
        log: [...ended.log, row(99, "mail/send", `${branch}|notify#1|1~1`, "another key")]
      }),
      complaint: "under two keys"
    },
    {
      what: "a keyed effect with a second input",
      change: (ended: Ending) => ({
        ...ended,
        log: [...ended.log, row(99, "mail/send", `${branch}|notify#1|1`, "key of mail/send", "another input")]
      }),
      complaint: "with two inputs"
    },
    {
      what: "a transaction that was made twice",
      change: (ended: Ending) => ({ ...ended, booked: 2 }),
      complaint: "2 times"
    },
    {
      what: "an effect that never happened",
      change: (ended: Ending) => ({ ...ended, log: ended.log.filter(({ effect }) => effect !== nameOf("once")) }),
      complaint: "never fired"
    },
    {
      what: "a node that never ran",
      change: (ended: Ending) => ({
        ...ended,
        log: ended.log.filter(({ idempotencyKey }) => idempotencyKey !== "notify")
      }),
      complaint: "never ran"
    },
    {
      what: "a result that is not made of the recorded values",
      change: (ended: Ending) => ({ ...ended, outcome: { ...outcome, price: "10" } }),
      complaint: "price is not 9"
    },
    {
      what: "a step with two outcomes",
      change: (ended: Ending) => ({
        ...ended,
        history: [...ended.history, entry(7, "step.succeeded", "quote#1", { node: "quote", input: "", value: "9" })]
      }),
      complaint: "two outcomes"
    }
  ])("complains about $what", ({ change, complaint }) => {
    const [killed, ended] = right(3)
    expect(violations("r", killed, change(ended)).join("\n")).toContain(complaint)
  })
})
