import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  type DeliveryFacts,
  type DeliveryRequest,
  type DeliveryUse,
  type DeliveryVerdict,
  type InterruptState,
  judgeDelivery
} from "../../src/index.js"
import { combinations } from "../domains.js"

/** The table of deliveries, row by row, as one would read it aloud; the first row that applies decides. */
const table: ReadonlyArray<{
  readonly row: string
  readonly applies: (facts: DeliveryFacts, request: DeliveryRequest) => boolean
  readonly verdict: DeliveryVerdict["_tag"]
}> = [
  { row: "1 purged", applies: (facts) => facts.run === "purged", verdict: "RunPurged" },
  { row: "1 unknown run", applies: (facts) => facts.run === "unknown", verdict: "UnknownInterrupt" },
  { row: "1 unknown interrupt", applies: (facts) => facts.interrupt._tag === "Unknown", verdict: "UnknownInterrupt" },
  {
    row: "2 consumed by this delivery, same value",
    applies: ({ interrupt }, request) =>
      interrupt._tag === "Consumed" &&
      interrupt.delivery === request.delivery &&
      interrupt.valueDigest === request.value.digest,
    verdict: "Duplicate"
  },
  {
    row: "3 consumed by this delivery, another value",
    applies: ({ interrupt }, request) => interrupt._tag === "Consumed" && interrupt.delivery === request.delivery,
    verdict: "DeliveryIdReused"
  },
  {
    row: "2 accepted before its interrupt closed (unserved), same value",
    applies: ({ deliveryUse }, request) =>
      deliveryUse?.interrupt === request.interrupt && deliveryUse.valueDigest === request.value.digest,
    verdict: "Duplicate"
  },
  { row: "3 used otherwise", applies: ({ deliveryUse }) => deliveryUse !== undefined, verdict: "DeliveryIdReused" },
  { row: "4", applies: ({ interrupt }) => interrupt._tag === "Consumed", verdict: "AlreadyConsumed" },
  { row: "5 closed", applies: ({ interrupt }) => interrupt._tag === "Closed", verdict: "InterruptClosed" },
  { row: "5 over", applies: ({ over }) => over, verdict: "InterruptClosed" },
  { row: "6", applies: (_, { value }) => value._tag === "Invalid", verdict: "ResumeValueInvalid" },
  { row: "7", applies: ({ interrupt }) => interrupt._tag === "Open", verdict: "Accepted" }
]

const domain = {
  run: ["known", "unknown", "purged"],
  over: [false, true],
  interrupt: [
    { _tag: "Unknown" },
    { _tag: "Open" },
    { _tag: "Consumed", delivery: "d1", valueDigest: "v1" },
    { _tag: "Consumed", delivery: "d1", valueDigest: "v2" },
    { _tag: "Consumed", delivery: "d2", valueDigest: "v1" },
    { _tag: "Closed", reason: "withdrawn" }
  ],
  deliveryUse: [
    undefined,
    { interrupt: "i#0", valueDigest: "v1" },
    { interrupt: "i#0", valueDigest: "v2" },
    { interrupt: "j#0", valueDigest: "v1" }
  ],
  value: [
    { _tag: "Valid", digest: "v1" },
    { _tag: "Valid", digest: "" },
    { _tag: "Invalid" },
    { _tag: "Invalid", digest: "v1" }
  ]
} as const

describe("judgeDelivery", () => {
  it("decides every combination of facts by the first row of the table that applies, and every row decides some", () => {
    const deciding = new Set<string>()
    for (const { value, ...facts } of combinations(domain)) {
      const request: DeliveryRequest = { interrupt: "i#0", delivery: "d1", value }
      const row = table.find((candidate) => candidate.applies(facts, request))
      assert(row !== undefined, `no row applies to ${JSON.stringify({ facts, request })}`)
      deciding.add(row.row)
      assert.strictEqual(
        judgeDelivery(facts, request)._tag,
        row.verdict,
        JSON.stringify({ facts, request, row: row.row })
      )
    }
    assert.deepStrictEqual([...deciding].sort(), table.map(({ row }) => row).sort())
  })

  it("says why a closed interrupt is closed", () => {
    const facts: DeliveryFacts = {
      run: "known",
      over: true,
      interrupt: { _tag: "Closed", reason: "withdrawn" },
      deliveryUse: undefined
    }
    const request: DeliveryRequest = { interrupt: "i#0", delivery: "d", value: { _tag: "Valid", digest: "v" } }
    assert.deepStrictEqual(judgeDelivery(facts, request), { _tag: "InterruptClosed", reason: "withdrawn" })
    assert.deepStrictEqual(judgeDelivery({ ...facts, interrupt: { _tag: "Open" } }, request), {
      _tag: "InterruptClosed",
      reason: "the run is over"
    })
  })

  /** What a plane keeps: changed by an accepted delivery, a closed interrupt or the end of the run, by nothing else. */
  class Gate {
    over = false
    readonly interrupts = new Map<string, InterruptState>([
      ["i#0", { _tag: "Open" }],
      ["i#1", { _tag: "Open" }]
    ])
    readonly uses = new Map<string, DeliveryUse>()

    deliver(request: DeliveryRequest): DeliveryVerdict {
      const verdict = judgeDelivery(
        {
          run: "known",
          over: this.over,
          interrupt: this.interrupts.get(request.interrupt) ?? { _tag: "Unknown" },
          deliveryUse: this.uses.get(request.delivery)
        },
        request
      )
      if (verdict._tag === "Accepted") {
        assert(request.value._tag === "Valid")
        this.interrupts.set(request.interrupt, {
          _tag: "Consumed",
          delivery: request.delivery,
          valueDigest: request.value.digest
        })
        this.uses.set(request.delivery, { interrupt: request.interrupt, valueDigest: request.value.digest })
      }
      return verdict
    }
  }

  // Falsy answers are answers: false, 0, "" and null as text, and an empty digest.
  const value = fc.oneof(
    fc.constantFrom("false", "0", '""', "null", "").map((digest) => ({ _tag: "Valid", digest }) as const),
    fc.constantFrom({ _tag: "Invalid" } as const, { _tag: "Invalid", digest: "false" } as const)
  )
  const action = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        interrupt: fc.constantFrom("i#0", "i#1", "other"),
        delivery: fc.constantFrom("d1", "d2", "d3"),
        value
      })
    },
    { weight: 1, arbitrary: fc.constantFrom("end" as const, "close" as const) }
  )

  it.prop(
    "CO: of any sequence of deliveries an interrupt accepts at most one, and duplicates are only of that one",
    [fc.array(action, { maxLength: 30 })],
    ([actions]) => {
      const gate = new Gate()
      const accepted = new Map<string, DeliveryRequest>()
      for (const step of actions) {
        if (step === "end") {
          gate.over = true
          continue
        }
        if (step === "close") {
          if (gate.interrupts.get("i#1")?._tag === "Open")
            gate.interrupts.set("i#1", { _tag: "Closed", reason: "withdrawn" })
          continue
        }
        const before = gate.interrupts.get(step.interrupt)
        const verdict = gate.deliver(step)
        const winner = accepted.get(step.interrupt)
        switch (verdict._tag) {
          case "Accepted":
            assert.isUndefined(winner)
            assert.strictEqual(before?._tag, "Open")
            assert.strictEqual(step.value._tag, "Valid")
            assert.isFalse(gate.over)
            accepted.set(step.interrupt, step)
            break
          case "Duplicate":
            assert.deepStrictEqual([step.delivery, step.value.digest], [winner?.delivery, winner?.value.digest])
            break
          case "AlreadyConsumed":
            assert(winner !== undefined && winner.delivery !== step.delivery)
            break
          default:
        }
        // The winner's own delivery is a duplicate for ever, also when the run is over.
        for (const request of accepted.values()) assert.strictEqual(gate.deliver(request)._tag, "Duplicate")
      }
      // No delivery id was accepted twice.
      const ids = [...accepted.values()].map(({ delivery }) => delivery)
      assert.strictEqual(new Set(ids).size, ids.length)
    },
    { fastCheck: { numRuns: 2000 } }
  )
})
