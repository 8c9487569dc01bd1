/** Definitions, a parked run and comparisons that the suites of the client share. */
import { assert } from "@effect/vitest"
import { Client, Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Cause, Effect, Exit, Option, Schema } from "effect"
import { append, handWorker } from "./HandWorker.js"

export class TooPoor extends Schema.TaggedError<TooPoor>()("TooPoor", { cents: Schema.Number }) {}

export const Order = Schema.Struct({ id: Schema.String, cents: Schema.Number, due: Schema.optional(Schema.Date) })
export const Pay = Workflow.make("pay", { version: "1", input: Order, success: Schema.Date, error: TooPoor }, () =>
  Effect.fail(new TooPoor({ cents: 1 }))
)
export const Other = Workflow.make("other", { version: "1", input: Order }, () => Effect.void)
export const Approval = Interrupt.make("approval", { payload: Schema.Unknown, answer: Schema.Unknown })
export const Amount = Interrupt.make("amount", { answer: Schema.Struct({ cents: Schema.Positive }) })
export const Charge = SideEffect.make("charge", {
  delivery: Delivery.once(),
  input: Order,
  success: Schema.Date,
  error: TooPoor
})
export const assess = Node.make("assess", { input: Order, success: Schema.Number, error: TooPoor }, () =>
  Effect.succeed(1)
)

export const order = { id: "o-1", cents: 100 }
export const noon = new Date("2026-01-01T12:00:00.000Z")
export const definition = Pay.definition

export const same = (actual: unknown, expected: unknown): void => assert.deepStrictEqual(actual, expected)
export const includes = (actual: unknown, expected: object): void =>
  same(Object.fromEntries(Object.keys(expected).map((key) => [key, Reflect.get(Object(actual), key)])), expected)

export const refusal = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, never, R> =>
  Effect.flatMap(Effect.exit(effect), (exit) =>
    Exit.match(exit, {
      onFailure: (cause) =>
        Option.match(Cause.failureOption(cause), { onNone: () => Effect.die(cause), onSome: Effect.succeed }),
      onSuccess: (value) => Effect.dieMessage(`expected a refusal, got ${JSON.stringify(value)}`)
    })
  )

/** Whether a value is refused with that tag; gives the refusal. */
export const refusedAs = <Tag extends string, A, E extends { readonly _tag: string }, R>(
  tag: Tag,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<Extract<E, { readonly _tag: Tag }>, never, R> =>
  Effect.map(refusal(effect), (error) => {
    assert.strictEqual<string>(error._tag, tag, String(error))
    // The tag was just compared.
    return error as Extract<E, { readonly _tag: Tag }>
  })

/** A started run, its root branch claimed, and an open interrupt `approval#1` that it is parked on. */
export const parked = (run: string) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const worker = yield* handWorker
    const handle = yield* client.start(Pay, order, { run })
    const journal = yield* worker.take(definition)
    const seq = yield* append(journal, "interrupt.opened", "approval#1", { name: "approval", payload: { cents: 100 } })
    yield* worker.release(journal, { _tag: "Waiting", wakeAt: null })
    return { ...handle, client, worker, seq, interrupt: "approval#1" }
  })
