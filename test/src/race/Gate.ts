/** A workflow whose last node may run for one answer only; beside the question, a sibling that must not run twice. */
import { Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import type { EffectLog } from "../EffectLog.js"
import { hold } from "../processes/Inside.js"

export const Mail = SideEffect.make("gate/mail", { delivery: Delivery.keyed, input: Schema.String })
export const Act = SideEffect.make("gate/act", { delivery: Delivery.once(), input: Schema.String })

export const Approval = Interrupt.make("approval", { payload: Schema.String, answer: Schema.String })

const mail = Node.make("mail", { input: Schema.String, effects: [Mail] }, (run) => Mail(run))
const act = Node.make("act", { input: Schema.String, effects: [Act] }, (choice) => Act(choice))

/** Input: the run's name. Success: the answer that passed the gate. */
export const Gate = Workflow.make("gate", { version: "1", input: Schema.String, success: Schema.String }, (run) =>
  Effect.gen(function* () {
    const [choice] = yield* Effect.all([Approval(run), mail(run)], { concurrency: 2 })
    yield* act(choice)
    return choice
  })
)

/** The gated effect stops at `gate` before it happens; the rest of the process goes on. */
export const handlers = (log: EffectLog) => {
  const write = (effect: string, firing: SideEffect.Firing, value: string) =>
    Effect.sync(
      () => void log.write({ at: firing.key, effect, idempotencyKey: firing.idempotencyKey, inputDigest: value })
    )
  return Layer.mergeAll(
    Mail.toLayer((run, firing) => write(Mail.name, firing, run)),
    Act.toLayer((choice, firing) =>
      Effect.zipRight(
        Effect.promise(() => hold("gate")),
        write(Act.name, firing, choice)
      )
    )
  )
}
