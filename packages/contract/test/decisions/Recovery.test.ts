import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  BranchId,
  effectKey,
  type EffectIdentity,
  type Entry,
  EntryKind,
  type EntryPayloads,
  isTerminal,
  Recovery,
  StepKey,
  writesIntent
} from "../../src/index.js"
import { frozen } from "../domains.js"

const own = BranchId.make("run/fork")
const parent = BranchId.make("run/main")

// ── Any history ─────────────────────────────────────────────────────────────────────────────────────────────

const deliveryOf = { "0": "once", "1": "keyed", "k:a": "repeatable", "k:b": "transactional" } as const
const positions = ["0", "1", "k:a", "k:b"] as const
const step = fc.constantFrom("pay#0", "pay#1", "mail#0")
const inbox = fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined })

/** An entry of any kind, its payload as the writers write it; the order of entries is any order. */
const draft = fc
  .record({
    kind: fc.constantFrom(...EntryKind.literals),
    step,
    position: fc.constantFrom(...positions),
    try: fc.integer({ min: 0, max: 1 }),
    attempt: fc.integer({ min: 1, max: 3 }),
    value: fc.constantFrom<unknown>(false, 0, "", null, { v: 1 }),
    inbox,
    nth: fc.integer({ min: 0, max: 2 }),
    at: fc.integer({ min: 0, max: 1000 }),
    epoch: fc.integer({ min: 0, max: 5 }),
    digest: fc.string({ maxLength: 3 })
  })
  .map((d) => {
    const identity: EffectIdentity = {
      step: d.step,
      position: d.position,
      try: d.try,
      attempt: d.attempt,
      effect: "e",
      delivery: deliveryOf[d.position],
      input: "i"
    }
    const inboxField = d.inbox === undefined ? {} : { inbox: d.inbox }
    const payloads: EntryPayloads = {
      "run.started": { workflow: "w", version: "1", run: "d" },
      "step.succeeded": { node: "n", input: "i", value: d.value },
      "step.failed": { node: "n", input: "i", error: d.value },
      "step.died": { node: "n", input: "i", defect: d.value },
      "step.interrupted": { node: "n", input: "i" },
      "interrupt.answered": { value: d.value, delivery: "d", valueDigest: "v", ...inboxField },
      "timer.fired": {},
      "cancel.requested": { reason: null, inbox: d.inbox ?? 0 },
      "step.retried": { node: "n", attempt: d.attempt, error: d.value, due: d.at },
      "effect.intended": {
        ...identity,
        value: d.value,
        worker: "w",
        ...(d.nth === 0 ? {} : { fireBefore: d.at, timeLimit: d.nth })
      },
      "effect.succeeded": { ...identity, value: d.value, by: "handler", ...inboxField },
      "effect.failed": { ...identity, error: d.value, by: "handler", ...inboxField },
      "effect.voided": { ...identity, by: "operator", ...inboxField },
      "effect.refused": { ...identity, issue: "no" },
      "interrupt.opened": { name: "approve", payload: d.value },
      "interrupt.closed": { reason: "withdrawn" },
      "interrupt.expired": { deadline: d.at },
      "signal.received": { name: "s", message: `${d.nth}`, value: d.value, inbox: d.inbox ?? 0 },
      "update.received": { name: "u", message: `${d.nth}`, value: d.value, inbox: d.inbox ?? 0 },
      "update.replied": { name: "u", value: d.value },
      "update.rejected": { name: "u", reason: "no" },
      "view.published": { value: d.value },
      "tags.set": { tags: { a: "b" } },
      "timer.started": { due: d.at },
      "loop.snapshot": { iteration: 1, at: 5, state: 0 },
      "inbox.unserved": { inbox: d.inbox ?? 0, reason: "closed" },
      "patch.taken": {},
      "run.completed": { value: d.value },
      "run.failed": { error: d.value },
      "run.died": { defect: d.value },
      "run.cancelled": { reason: null }
    }
    const key = d.kind.startsWith("step.")
      ? d.step
      : d.kind.startsWith("effect.")
        ? effectKey(parent, StepKey.make(d.step), d.position, d.try)
        : d.kind.startsWith("interrupt.")
          ? `approve#${d.nth}`
          : d.kind.startsWith("timer.")
            ? `timer#${d.nth}`
            : ""
    return { kind: d.kind, key, payload: JSON.stringify(payloads[d.kind]), at: d.at, epoch: d.epoch, digest: d.digest }
  })

/** Entries of the parent up to a fork point, then the branch's own. */
const history: fc.Arbitrary<ReadonlyArray<Entry>> = fc
  .tuple(fc.array(draft, { maxLength: 40 }), fc.nat(40))
  .map(([drafts, fork]) => frozen(drafts.map((d, i) => ({ ...d, branch: i < fork ? parent : own, seq: i + 1 }))))

/** All that a recovery knows, as comparable data. */
const known = (recovery: Recovery): unknown => ({
  head: recovery.head,
  at: recovery.at,
  inboxSeen: recovery.inboxSeen,
  steps: new Map([...recovery.steps].map(([key, one]) => [key, { ...one, effects: new Map(one.effects) }])),
  effects: new Map(recovery.effects),
  interrupts: new Map(recovery.interrupts),
  timers: new Map(recovery.timers),
  messages: new Map([...recovery.messages].map(([channel, queued]) => [channel, [...queued]])),
  cancelRequested: recovery.cancelRequested,
  ended: recovery.ended
})

// ── The same, naively: every question is asked of the whole list ────────────────────────────────────────────

const stepEnds = ["step.succeeded", "step.failed", "step.died", "step.interrupted"]

const naive = (entries: ReadonlyArray<Entry>): unknown => {
  const payload = (entry: Entry) => JSON.parse(entry.payload)
  const last = entries.at(-1)
  const keysOf = (prefix: string) => [
    ...new Set(entries.filter(({ kind }) => kind.startsWith(prefix)).map(({ key }) => key))
  ]
  const lastOf = (key: string, kinds: ReadonlyArray<string>) =>
    entries.findLast((entry) => entry.key === key && kinds.includes(entry.kind))

  const timers = new Map(
    keysOf("timer.").flatMap((key) => {
      const entry = lastOf(key, ["timer.started", "timer.fired"])
      return entry?.kind === "timer.started" ? [[key, payload(entry).due]] : []
    })
  )
  const interrupts = new Map(
    keysOf("interrupt.").flatMap((key) => {
      const entry = lastOf(key, ["interrupt.opened", "interrupt.answered", "interrupt.closed", "interrupt.expired"])
      return entry?.kind === "interrupt.opened"
        ? [[key, { name: "approve", openedSeq: entry.seq, deadline: payload(entry).task?.deadline, state: "open" }]]
        : []
    })
  )
  const messages = new Map(
    (["signal", "update"] as const).flatMap((kind) => {
      const queued = entries
        .filter((entry) => entry.kind === `${kind}.received`)
        .map((entry) => ({ seq: entry.seq, message: payload(entry).message, value: payload(entry).value }))
      return queued.length === 0 ? [] : [[`${kind}:${kind.charAt(0)}`, queued] as const]
    })
  )
  const steps = new Map<string, unknown>()
  const effects = new Map<string, unknown>()
  for (const key of ["pay#0", "pay#1", "mail#0"]) {
    const since = lastOf(key, stepEnds)?.seq ?? 0
    const living = entries.filter(
      (entry) =>
        entry.seq > since && (entry.kind.startsWith("effect.") ? payload(entry).step === key : entry.key === key)
    )
    const retried = living.findLast(({ kind }) => kind === "step.retried")
    // An outcome counts if its intent does, for the deliveries that write one.
    const counted = living.filter(
      (entry) =>
        entry.kind === "effect.intended" ||
        (entry.kind.startsWith("effect.") &&
          (!writesIntent(payload(entry).delivery) ||
            living.some(({ kind, key, seq }) => kind === "effect.intended" && key === entry.key && seq < entry.seq)))
    )
    if (retried === undefined && counted.length === 0) continue
    const tries = new Map<string, Array<unknown>>()
    for (const effect of new Set(counted.map((entry) => entry.key))) {
      const about = counted.filter((entry) => entry.key === effect)
      const entry = about.at(-1)
      assert(entry !== undefined)
      const { step, position, try: nth, attempt, effect: name, delivery, input } = payload(entry)
      const intent = about.findLast(({ kind }) => kind === "effect.intended")
      const outcomes = about.filter(({ kind }) => kind === "effect.succeeded" || kind === "effect.failed")
      const fireBefore = about
        .filter(({ kind }) => kind === "effect.intended")
        .findLast((one) => "fireBefore" in payload(one))
      const record = {
        key: effect,
        step,
        position,
        try: nth,
        attempt,
        effect: name,
        delivery,
        input,
        state: entry.kind.slice("effect.".length),
        intentSeq: intent?.seq,
        outcomeSeq: entry.kind === "effect.intended" ? undefined : entry.seq,
        ...(intent === undefined ? {} : { value: payload(intent).value, worker: "w" }),
        ...(fireBefore === undefined
          ? {}
          : { fireBefore: payload(fireBefore).fireBefore, timeLimit: payload(fireBefore).timeLimit }),
        ...outcomes
          .slice(-1)
          .reduce((_, one) => ({ outcome: one.kind === "effect.failed" ? payload(one).error : payload(one).value }), {})
      }
      tries.set(position, [...(tries.get(position) ?? []), record])
      effects.set(effect, record)
    }
    steps.set(key, {
      effects: tries,
      attempts: retried === undefined ? 0 : payload(retried).attempt,
      retryAt: retried === undefined ? undefined : payload(retried).due
    })
  }
  return {
    head: last?.seq ?? 0,
    at: last?.at ?? 0,
    inboxSeen: Math.max(0, ...entries.filter(({ branch }) => branch === own).map((entry) => payload(entry).inbox ?? 0)),
    steps,
    effects,
    interrupts,
    timers,
    messages,
    cancelRequested: entries.some(({ kind }) => kind === "cancel.requested"),
    ended: entries.findLast(({ kind }) => isTerminal(kind))
  }
}

const runs = { fastCheck: { numRuns: 2000 } }

describe("Recovery", () => {
  it.prop(
    "agrees with asking the whole history every question",
    [history],
    ([entries]) => {
      assert.deepEqual(known(Recovery.of(own, entries)), naive(entries))
    },
    runs
  )

  it.prop(
    "PC: folding a prefix and then the rest equals folding all, at every prefix",
    [history],
    ([entries]) => {
      const live = new Recovery(own)
      entries.forEach((entry, i) => {
        live.apply(entry)
        assert.deepEqual(known(live), known(Recovery.of(own, entries.slice(0, i + 1))))
      })
    },
    { fastCheck: { numRuns: 300 } }
  )

  it.prop(
    "RD: two foldings of one history share nothing and agree; who wrote it and its digests decide nothing",
    [history],
    ([entries]) => {
      const one = Recovery.of(own, entries)
      const other = new Recovery(own)
      for (const entry of entries) other.apply({ ...entry, epoch: entry.epoch + 7, digest: "else" })
      const { ended, ...known1 } = Object(known(one))
      const { ended: ended2, ...known2 } = Object(known(other))
      assert.deepEqual(known1, known2)
      assert.strictEqual(ended?.seq, ended2?.seq)
    },
    runs
  )

  it.prop(
    "inherited entries do not move the branch's inbox",
    [history],
    ([entries]) => {
      const inherited = entries.map((entry) => ({ ...entry, branch: parent }))
      assert.strictEqual(Recovery.of(own, inherited).inboxSeen, 0)
      const all = Recovery.of(parent, inherited)
      assert.isAtLeast(all.inboxSeen, Recovery.of(own, entries).inboxSeen)
    },
    runs
  )

  it.prop(
    "steps that ended keep no memory, also if an outcome of theirs comes late",
    [history, step],
    ([entries, key]) => {
      const recovery = Recovery.of(own, entries)
      const entry = (kind: EntryKind, of: string, payload: unknown): Entry => ({
        branch: own,
        seq: recovery.head + 1,
        kind,
        key: of,
        payload: JSON.stringify(payload),
        epoch: 1,
        at: 0,
        digest: ""
      })
      recovery.apply(entry("step.interrupted", key, { node: "n", input: "i" }))
      for (const position of ["0", "1"] as const) {
        const identity = {
          step: key,
          position,
          try: 0,
          attempt: 1,
          effect: "e",
          delivery: deliveryOf[position],
          input: "i"
        }
        for (const kind of ["effect.succeeded", "effect.failed", "effect.refused", "effect.voided"] as const) {
          recovery.apply(
            entry(kind, effectKey(parent, StepKey.make(key), position, 0), {
              ...identity,
              value: 1,
              error: 1,
              issue: "",
              by: "handler"
            })
          )
        }
      }
      assert.isFalse(recovery.steps.has(key))
      assert.isFalse([...recovery.effects.values()].some((recorded) => recorded.step === key))
    },
    runs
  )

  it("memory does not grow with finished work", () => {
    const recovery = new Recovery(own)
    let seq = 0
    const apply = (kind: EntryKind, key: string, payload: unknown) =>
      recovery.apply({
        branch: own,
        seq: ++seq,
        kind,
        key,
        payload: JSON.stringify(payload),
        epoch: 1,
        at: seq,
        digest: ""
      })
    for (let n = 0; n < 1000; n++) {
      const identity = {
        step: `pay#${n}`,
        position: "0",
        try: 0,
        attempt: 1,
        effect: "e",
        delivery: "keyed",
        input: "i"
      }
      const key = effectKey(own, StepKey.make(identity.step), "0", 0)
      apply("effect.intended", key, { ...identity, value: 1, worker: "w" })
      apply("effect.succeeded", key, { ...identity, value: 1, by: "handler" })
      apply("step.succeeded", identity.step, { node: "pay", input: "i", value: 1 })
      apply("interrupt.opened", `ask#${n}`, { name: "ask", payload: null })
      apply("interrupt.answered", `ask#${n}`, { value: false, delivery: "d", valueDigest: "v", inbox: n + 1 })
      apply("timer.started", `t#${n}`, { due: 1 })
      apply("timer.fired", `t#${n}`, {})
    }
    assert.deepStrictEqual(
      [recovery.steps.size, recovery.effects.size, recovery.interrupts.size, recovery.timers.size],
      [0, 0, 0, 0]
    )
    assert.strictEqual(recovery.inboxSeen, 1000)
  })

  it("names the firings that interruption must wait for: once, with an intent and no outcome", () => {
    const recovery = new Recovery(own)
    let seq = 0
    for (const [position, delivery] of Object.entries(deliveryOf)) {
      const identity = { step: "pay#0", position, try: 0, attempt: 1, effect: "e", delivery, input: "i" }
      const key = effectKey(own, StepKey.make("pay#0"), position, 0)
      if (!writesIntent(delivery)) continue
      recovery.apply({
        branch: own,
        seq: ++seq,
        kind: "effect.intended",
        key,
        payload: JSON.stringify({ ...identity, value: 0, worker: "w" }),
        epoch: 1,
        at: 0,
        digest: ""
      })
    }
    assert.deepStrictEqual(
      recovery.firing("pay#0").map(({ position }) => position),
      ["0"]
    )
    assert.deepStrictEqual(recovery.firing("pay#1"), [])
    // LV: once its outcome is there nothing is waited for.
    const key = effectKey(own, StepKey.make("pay#0"), "0", 0)
    const identity = { step: "pay#0", position: "0", try: 0, attempt: 1, effect: "e", delivery: "once", input: "i" }
    recovery.apply({
      branch: own,
      seq: ++seq,
      kind: "effect.succeeded",
      key,
      payload: JSON.stringify({ ...identity, value: 0, by: "handler" }),
      epoch: 1,
      at: 0,
      digest: ""
    })
    assert.deepStrictEqual(recovery.firing("pay#0"), [])
  })

  it.prop(
    "a step that is forgotten leaves nothing, and leaves all others alone",
    [history, step],
    ([entries, key]) => {
      const recovery = Recovery.of(own, entries)
      const others = [...recovery.effects].filter(([, recorded]) => recorded.step !== key)
      const steps = [...recovery.steps.keys()].filter((other) => other !== key)
      recovery.forgetStep(key)
      assert.deepStrictEqual([...recovery.effects], others)
      assert.deepStrictEqual([...recovery.steps.keys()], steps)
      assert.deepStrictEqual(recovery.firing(key), [])
    },
    runs
  )
})
