/**
 * One owner's pass over a branch of the reference plane: the workflow is interpreted from the start, recorded outcomes
 * are served, and what has none runs. It decides nothing itself but by the contract's decision functions.
 */
import { Data, Effect } from "effect"
import { admitFiring } from "../../decisions/admitFiring.js"
import { recoverEffect } from "../../decisions/recoverEffect.js"
import { serveInboxRow } from "../../decisions/serveInboxRow.js"
import { type Entry, type EntryDraft, type EffectIdentity } from "../../Entry.js"
import { writesIntent } from "../../Delivery.js"
import { effectKey, StepKey } from "../../Ids.js"
import type { EffectSpec, GateStep, NodeStep, Step } from "../CanonicalWorkflow.js"
import { stepName } from "../CanonicalWorkflow.js"
import type { Outside } from "../Outside.js"
import type { Fault } from "./Fault.js"
import { answeredBy } from "./Entries.js"
import * as Store from "./Store.js"

/** Another owner has the branch, or this one is dead: it stops where it is. */
export class Fenced extends Data.TaggedError("Fenced")<{}> {}

/** The branch cannot go on without help. */
export class Stuck extends Data.TaggedError("Stuck")<{
  readonly problem: string
  readonly doubt: string | undefined
}> {}

/** A value breaks its declared Schema (CV): the run fails, and nothing of it is stored. */
export class Invalid extends Data.TaggedError("Invalid")<{ readonly problem: string }> {}

/** The result of steps; `undefined` while something of them waits. */
type Result = { readonly value: unknown } | undefined

export interface Owner {
  readonly store: Store.Store
  readonly who: string
  readonly outside: Outside
  readonly faults: ReadonlySet<Fault>
}

export class Pass {
  readonly epoch: number
  /** What this owner knows of the history: what it found and what it wrote. */
  private history: ReadonlyArray<Entry>
  private pending: ReadonlyArray<EntryDraft> = []
  private readonly rerun: ReadonlySet<string>
  private readonly ran = new Set<string>()

  constructor(
    private readonly owner: Owner,
    private readonly branch: Store.Branch,
    private readonly found: boolean
  ) {
    this.epoch = branch.epoch
    this.history = Store.historyOf(owner.store, branch)
    this.rerun = this.toRerun()
  }

  private has(fault: Fault): boolean {
    return this.owner.faults.has(fault)
  }

  private view(): Store.View {
    const drafted = Store.chain(this.branch.id, this.epoch, this.history.at(-1), this.pending)
    return Store.viewOf(this.branch, [...this.history, ...drafted])
  }

  /** Faults only: steps that run although they have an outcome. */
  private toRerun(): ReadonlySet<string> {
    const recorded = new Set(Store.viewOf(this.branch, this.history).outcomes.keys())
    if (this.has("rerunOnResume") && this.branch.resumed) return recorded
    const inherited = this.branch.parent !== undefined && this.branch.entries.length === 1
    return this.has("forkRerunsPrefix") && inherited ? recorded : new Set()
  }

  /** Stores an entry after all that was written before it; with `later`, it may be lost until something else is stored. */
  write(draft: EntryDraft, later = false): Effect.Effect<void, Fenced> {
    return Effect.suspend(() => {
      this.pending = [...this.pending, draft]
      return later ? Effect.void : this.flush
    })
  }

  readonly flush: Effect.Effect<void, Fenced> = Effect.suspend(() => {
    if (this.pending.length === 0) return Effect.void
    // A process that was killed writes nothing.
    if (!this.owner.store.alive.has(this.owner.who)) return Effect.never
    const entries = Store.chain(this.branch.id, this.epoch, this.history.at(-1), this.pending)
    const owner = { epoch: this.epoch, history: this.history, unfenced: this.has("unfencedZombie") }
    if (!Store.append(this.owner.store, this.branch, owner, entries)) return new Fenced()
    this.history = [...this.history, ...entries]
    this.pending = []
    return Effect.void
  })

  cancelled(): boolean {
    const row = this.branch.inbox.find(({ kind }) => kind === "cancel")
    return row !== undefined && serveInboxRow({ kind: "cancel", over: false })._tag === "Serve"
  }

  steps(
    steps: ReadonlyArray<Step>,
    context: ReadonlyArray<unknown>,
    at: string
  ): Effect.Effect<Result, Fenced | Stuck | Invalid> {
    return Effect.gen(this, function* () {
      const results: Array<unknown> = []
      for (const step of steps) {
        const result = yield* this.step(step, [...context, ...results], at)
        if (result === undefined) return undefined
        results.push(result.value)
      }
      return { value: results }
    })
  }

  private step(
    step: Step,
    context: ReadonlyArray<unknown>,
    at: string
  ): Effect.Effect<Result, Fenced | Stuck | Invalid> {
    switch (step.do) {
      case "node":
        return this.node(step, context, at)
      case "gate":
        return this.gate(step, at)
      case "parallel":
        return this.lanes(
          step.lanes.map((lane) => this.steps(lane, context, at)),
          step.lanes,
          at
        )
      case "nested":
        return this.steps(step.steps, context, at)
      case "fan-out":
        return this.lanes(
          Array.from({ length: step.width }, (_, i) => this.node(step.node, [...context, i], `${at}@${i}`)),
          [],
          at
        )
      case "loop":
        return Effect.gen(this, function* () {
          const turns: Array<unknown> = []
          for (let i = 0; i < step.times; i++) {
            const turn = yield* this.steps(step.steps, [...context, i], `${at}@${i}`)
            if (turn === undefined) return undefined
            turns.push(turn.value)
          }
          return { value: turns }
        })
      case "invalid":
        return this.invalid(stepName(step.name, at), context)
    }
  }

  private lanes(
    lanes: ReadonlyArray<Effect.Effect<Result, Fenced | Stuck | Invalid>>,
    steps: ReadonlyArray<ReadonlyArray<Step>>,
    at: string
  ): Effect.Effect<Result, Fenced | Stuck | Invalid> {
    return Effect.map(Effect.all(lanes, { concurrency: "unbounded" }), (results) => {
      const values: Array<unknown> = []
      for (const result of results) {
        if (result === undefined) return undefined
        values.push(result.value)
      }
      return {
        value: this.found && this.has("orderDependentRecovery") ? this.inOrderOfRecords(values, steps, at) : values
      }
    })
  }

  /** Fault only: the lanes' results in the order in which their first nodes were recorded. */
  private inOrderOfRecords(
    values: ReadonlyArray<unknown>,
    lanes: ReadonlyArray<ReadonlyArray<Step>>,
    at: string
  ): ReadonlyArray<unknown> {
    const order = [...this.view().outcomes.keys()]
    const position = (lane: ReadonlyArray<Step> | undefined) => {
      const node = lane?.find((step) => step.do === "node")
      return node === undefined ? -1 : order.indexOf(stepName(node.name, at))
    }
    return values
      .map((value, i) => ({ value, position: position(lanes[i]) }))
      .toSorted((a, b) => a.position - b.position)
      .map(({ value }) => value)
  }

  private node(
    { effects, name }: NodeStep,
    context: ReadonlyArray<unknown>,
    at: string
  ): Effect.Effect<Result, Fenced | Stuck> {
    return Effect.gen(this, function* () {
      const step = stepName(name, at)
      const recorded = this.view().outcomes
      // PC: what has an outcome is served.
      const again = this.rerun.has(step) && !this.ran.has(step)
      if (recorded.has(step) && !again) return { value: recorded.get(step) }
      this.ran.add(step)
      yield* this.owner.outside.body(this.branch.run, step)
      const values: Array<unknown> = []
      for (const [position, effect] of effects.entries())
        values.push(yield* this.effect(step, position + 1, effect, [...context, ...values]))
      const value = values.length === 0 ? null : values.at(-1)
      const reads = effects.every(({ delivery }) => delivery === "repeatable")
      yield* this.write(
        {
          kind: "step.succeeded",
          key: step,
          payload: JSON.stringify({ node: step, input: Store.digestOf(context), value })
        },
        reads && this.has("outcomeBeforeDurable")
      )
      return { value }
    })
  }

  private effect(
    step: string,
    position: number,
    { delivery, name }: EffectSpec,
    input: ReadonlyArray<unknown>
  ): Effect.Effect<unknown, Fenced | Stuck> {
    return Effect.gen(this, function* () {
      const digest = Store.digestOf(input)
      const identity = (n: number): EffectIdentity => ({
        step,
        position: String(position),
        try: n,
        attempt: 1,
        effect: name,
        delivery,
        input: digest
      })
      const { run } = this.branch
      for (;;) {
        const tries = this.view().recovery.steps.get(step)?.effects.get(String(position)) ?? []
        const verdict = admitFiring(tries, { effect: name, delivery, input: digest, attempt: 1 })
        switch (verdict._tag) {
          case "Fire":
          case "InDoubt": {
            const known = tries.find((one) => verdict._tag === "InDoubt" && one.key === verdict.key)
            const number = verdict._tag === "Fire" ? verdict.try : (known?.try ?? 0)
            const key =
              verdict._tag === "Fire"
                ? effectKey(this.branch.id, StepKey.make(step), String(position), number)
                : verdict.key
            if (verdict._tag === "InDoubt") {
              const settled = yield* this.recover(key, identity(number))
              if (settled) continue
            } else if (writesIntent(delivery)) {
              // EO: the intent is durable, and all before it, before the effect fires.
              yield* this.write(
                {
                  kind: "effect.intended",
                  key,
                  payload: JSON.stringify({
                    ...identity(number),
                    value: input,
                    worker: this.owner.who,
                    fireBefore: 0,
                    timeLimit: 0
                  })
                },
                this.has("effectBeforeIntent") || (this.has("outcomeBeforeDurable") && this.pending.length > 0)
              )
            }
            const outcome = (value: unknown): EntryDraft => ({
              kind: "effect.succeeded",
              key,
              payload: JSON.stringify({ ...identity(number), value, by: "handler" })
            })
            const firing = { run, step, effect: name, delivery, key, input }
            if (delivery === "transactional") {
              return yield* this.owner.outside.around(firing, (value) =>
                // One change: what it wrote, and its outcome.
                Effect.zipRight(
                  this.write(outcome(value)),
                  Effect.sync(() => {
                    const known = this.owner.store.runs.get(run)
                    if (known === undefined) return value
                    const committed = [...known.committed, { step, effect: name, input, value }]
                    this.owner.store.runs.set(run, { ...known, committed })
                    return value
                  })
                )
              )
            }
            const value = yield* this.owner.outside.fire(firing)
            yield* this.write(outcome(value), delivery === "repeatable" && this.has("outcomeBeforeDurable"))
            return value
          }
          case "Serve":
            return tries.find(({ key }) => key === verdict.key)?.outcome
          case "Refused":
            return yield* new Stuck({ problem: `${verdict.key}: its value was refused`, doubt: verdict.key })
          case "InputChanged":
            return yield* new Stuck({
              problem: `${verdict.key}: another ${verdict.differs} than recorded`,
              doubt: undefined
            })
        }
      }
    })
  }

  /** Settles an effect in doubt; false: it may be fired again. */
  private recover(key: string, identity: EffectIdentity): Effect.Effect<boolean, Fenced | Stuck> {
    return Effect.gen(this, function* () {
      const { outside, store } = this.owner
      const row = this.branch.inbox.find((row) => row.kind === "settlement" && row.key === key)
      if (row?.kind === "settlement" && serveInboxRow({ kind: "settlement", state: "intended" })._tag === "Serve") {
        const by = { ...identity, by: "operator", inbox: row.pos }
        yield* this.write(
          row.happened
            ? { kind: "effect.succeeded", key, payload: JSON.stringify({ ...by, value: row.value }) }
            : { kind: "effect.voided", key, payload: JSON.stringify(by) }
        )
        return true
      }
      if (this.has("blindRetry")) return false
      // Time stands still here: a firing by whoever is not the owner any more is over.
      const facts = { delivery: identity.delivery, firedBy: "dead", overAt: 0, now: 0 } as const
      if (recoverEffect({ ...facts, reconciled: "notAsked" })._tag === "FireAgain") return false
      const silent = store.runs.get(this.branch.run)?.workflow.receiver === "silent"
      const value = silent ? undefined : yield* outside.ask(this.branch.run, key)
      const reconciled = silent ? "Unknown" : value === undefined ? "NeverWill" : "Happened"
      switch (recoverEffect({ ...facts, reconciled })._tag) {
        case "Adopt":
          yield* this.write({
            kind: "effect.succeeded",
            key,
            payload: JSON.stringify({ ...identity, value, by: "reconcile" })
          })
          return true
        case "Void":
          yield* this.write({ kind: "effect.voided", key, payload: JSON.stringify({ ...identity, by: "reconcile" }) })
          return true
        default:
          return yield* new Stuck({ problem: `nobody can say whether ${key} happened`, doubt: key })
      }
    })
  }

  private gate({ name }: GateStep, at: string): Effect.Effect<Result, Fenced> {
    return Effect.gen(this, function* () {
      const gate = stepName(name, at)
      const { answers, recovery } = this.view()
      const answered = answers.get(gate)
      if (answered !== undefined) return this.present(answered.value)
      const open = recovery.interrupts.has(gate)
      if (!open) {
        yield* this.write({
          kind: "interrupt.opened",
          key: gate,
          payload: JSON.stringify({ name: gate, payload: null })
        })
      }
      const row = this.answerTo(gate)
      if (row === undefined || serveInboxRow({ kind: "answer", over: false, open: true })._tag !== "Serve")
        return undefined
      // CO: the claim is durable before anything behind the gate starts.
      yield* this.write(answeredBy(gate, row.value, row.delivery, row.pos))
      return this.present(row.value)
    })
  }

  private present(value: unknown): Result {
    return this.has("falsyIgnored") && !value ? undefined : { value }
  }

  private answerTo(gate: string): Extract<Store.InboxRow, { readonly kind: "answer" }> | undefined {
    const rows = this.branch.inbox.filter((row) => row.kind === "answer")
    return rows.find(({ interrupt }) => interrupt === gate) ?? (this.has("answerReused") ? rows.at(-1) : undefined)
  }

  private invalid(step: string, context: ReadonlyArray<unknown>): Effect.Effect<Result, Fenced | Invalid> {
    return Effect.gen(this, function* () {
      const recorded = this.view().outcomes
      if (recorded.has(step)) return { value: recorded.get(step) }
      yield* this.owner.outside.body(this.branch.run, step)
      const value = context.at(-1) === true ? "not an integer" : 0
      if (!Number.isInteger(value) && !this.has("invalidPersisted"))
        return yield* new Invalid({ problem: `${step}: its output is not an integer` })
      yield* this.write({
        kind: "step.succeeded",
        key: step,
        payload: JSON.stringify({ node: step, input: "", value })
      })
      return { value }
    })
  }
}
