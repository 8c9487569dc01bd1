/** How a declared effect of a node fires, is served and is recovered: the contract decides, the store remembers (EO). */
import { admitFiring, admitSettlement, type DeliveryPolicy, recoverEffect, writesIntent } from "@fermata/contract"
import { jsonDigest, type ThreadEffect, type ThreadHold } from "@fermata/ledger"
import type { FermataSaver } from "../FermataSaver.js"
import { EffectInDoubt, EffectRefused } from "../FrontError.js"
import { type FrontRun, isGone, isOwn } from "./Front.js"
import * as StrictSerde from "./StrictSerde.js"

/** What reconciling says of an effect in doubt. */
export type Reconciled =
  | { readonly _tag: "Happened"; readonly outcome: unknown }
  /** It did not happen and never will: the receiver refuses it from now on, or it can't arrive any more. */
  | { readonly _tag: "NeverWill" }
  | { readonly _tag: "Unknown" }

/** What is known of an effect in doubt after looking: as {@link Reconciled}, without `Unknown`. */
export type Settlement = Exclude<Reconciled, { readonly _tag: "Unknown" }>

/** Thrown by the body of an effect: it definitely did not happen. The error is recorded and thrown again on re-runs. */
export class DidNotHappen extends Error {
  override readonly name = "DidNotHappen"
}

/** One call of an effect. */
export interface EffectCall<A> {
  readonly name: string
  readonly delivery: Exclude<DeliveryPolicy, "transactional">
  readonly input: unknown
  readonly task: string
  readonly position: string
  /** Rises with each execution of the node's body. */
  readonly attempt: number
  readonly answered: number
  readonly timeLimit: number
  readonly reconcile: ((key: string) => Promise<Reconciled>) | undefined
  readonly fire: (idempotencyKey: string) => Promise<A>
}

/** Milliseconds within which a `once` effect must fire after its intent was written; past them it does not. */
const fireBefore = 10_000

/** Firings of this process that have not ended. */
const underWay = new Set<string>()

const firingOf = ({ key, runner }: ThreadEffect): string => `${runner}\n${key}`

/** True if the firing was this process's own and has ended: then nobody can bring its outcome any more. */
const isOver = (effect: ThreadEffect): boolean => isOwn(effect.runner) && !underWay.has(firingOf(effect))

/** The effect's outcome: served, or fired. */
export const runEffect = async <A>(run: FrontRun, call: EffectCall<A>): Promise<A> => {
  const { delivery, name, position, task } = call
  const { hold, saver, thread } = run
  const put = (effect: ThreadEffect) => saver.run(({ checkpoints }) => checkpoints.putEffect(thread, effect, hold))
  const doubt = (key: string) => new EffectInDoubt({ thread, effect: name, task, position, key })
  const input = StrictSerde.encode(call.input, `the input of effect ${name}`)
  const inputDigest = jsonDigest(input)
  for (;;) {
    const tries = await saver.run(({ checkpoints }) => checkpoints.effects(thread, task, position))
    const verdict = admitFiring(
      tries.map((one) => ({ ...one, effect: one.name, input: one.inputDigest })),
      { effect: name, delivery, input: inputDigest, attempt: call.attempt }
    )
    const recorded = tries.find(({ key }) => "key" in verdict && key === verdict.key)
    switch (verdict._tag) {
      case "Serve": {
        const outcome = await StrictSerde.decode(recorded?.outcome ?? "null")
        if (recorded?.state === "failed") throw new DidNotHappen(String(outcome))
        // The body's own outcome of an earlier execution, exact as it was.
        return outcome as A
      }
      case "InputChanged": {
        const detail = `its ${verdict.differs} is not what it was when the node ran before. Make the node ask for the same again, or give the effect another key.`
        throw new EffectRefused({ effect: name, reason: "InputChanged", detail })
      }
      case "Refused":
        throw doubt(verdict.key)
      case "Fire": {
        const key = `${thread}/${task}/${position}${verdict.try === 0 ? "" : `/${verdict.try}`}`
        const now = await saver.run(({ now }) => now)
        const overAt = delivery === "once" ? now + fireBefore + call.timeLimit : null
        return fire({
          task,
          position,
          try: verdict.try,
          key,
          name,
          delivery,
          input,
          inputDigest,
          attempt: call.attempt,
          answered: call.answered,
          state: "intended",
          outcome: "null",
          runner: hold.runner,
          overAt
        })
      }
      case "InDoubt": {
        if (recorded === undefined) throw doubt(verdict.key)
        const facts = {
          delivery,
          firedBy: isGone(recorded.runner) || isOver(recorded) ? "dead" : "unknown",
          overAt: recorded.overAt ?? Number.POSITIVE_INFINITY,
          now: await saver.run(({ now }) => now)
        } as const
        const first = recoverEffect({ ...facts, reconciled: "notAsked" })
        if (first._tag === "FireAgain") return fire({ ...recorded, attempt: call.attempt, runner: hold.runner })
        if (first._tag === "WaitUntil") {
          await new Promise((resolve) => setTimeout(resolve, Math.max(1, first.at - facts.now)))
          continue
        }
        const said = call.reconcile === undefined ? undefined : await call.reconcile(recorded.key)
        const next = recoverEffect({ ...facts, reconciled: said?._tag ?? "unavailable" })
        if (next._tag === "Adopt" && said?._tag === "Happened") {
          const outcome = StrictSerde.encode(said.outcome, `the outcome of effect ${name}`)
          await put({ ...recorded, state: "succeeded", outcome })
        } else if (next._tag === "Void") await put({ ...recorded, state: "voided" })
        else throw doubt(recorded.key)
      }
    }
  }

  async function fire(effect: ThreadEffect): Promise<A> {
    // The output commit rule: what the effect depends on is durable before it leaves the process.
    if (delivery !== "repeatable") await saver.settled(thread)
    const since = performance.now()
    if (writesIntent(delivery)) await put(effect)
    if (delivery === "once" && performance.now() - since > fireBefore) {
      await put({ ...effect, state: "voided" })
      throw new EffectRefused({
        effect: name,
        reason: "TooLate",
        detail: "its intent took too long to store; it did not fire."
      })
    }
    let outcome: A
    const firing = firingOf(effect)
    underWay.add(firing)
    try {
      outcome = await call.fire(effect.key)
    } catch (error) {
      if (error instanceof DidNotHappen) {
        await put({ ...effect, state: "failed", outcome: StrictSerde.encode(error.message, "an error") })
      }
      throw error
    } finally {
      underWay.delete(firing)
    }
    // What cannot be stored happened all the same: it stays in doubt, which says so.
    await put({ ...effect, state: "succeeded", outcome: StrictSerde.encode(outcome, `the outcome of effect ${name}`) })
    return outcome
  }
}

/** Records what became of an effect in doubt. */
export const settle = async (
  saver: FermataSaver,
  thread: string,
  hold: ThreadHold,
  { position, task }: { readonly task: string; readonly position: string },
  settlement: Settlement
): Promise<void> => {
  const tries = await saver.run(({ checkpoints }) => checkpoints.effects(thread, task, position))
  const last = tries.at(-1)
  const outcome =
    settlement._tag === "Happened"
      ? StrictSerde.encode(settlement.outcome, `the outcome of ${last?.name ?? position}`)
      : "null"
  const verdict = admitSettlement(
    {
      run: "known",
      over: false,
      effect: last === undefined ? undefined : { state: last.state },
      // The thread is held by this call, so nobody fires.
      owned: false,
      accepted: undefined
    },
    { digest: jsonDigest(outcome), valid: true }
  )
  if (last === undefined || verdict._tag !== "Accepted") {
    const detail = `it is not in doubt (${verdict._tag}); there is nothing to settle.`
    throw new EffectRefused({ effect: last?.name ?? position, reason: "NotInDoubt", detail })
  }
  const settled: ThreadEffect =
    settlement._tag === "NeverWill" ? { ...last, state: "voided" } : { ...last, state: "succeeded", outcome }
  await saver.run(({ checkpoints }) => checkpoints.putEffect(thread, settled, hold))
}
