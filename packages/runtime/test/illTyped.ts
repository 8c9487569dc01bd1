/**
 * Programs that must not compile. Each `@ts-expect-error` is followed by a part of the message that a reader gets; the test
 * beside this file checks it.
 */
import { Context, Effect, Schema } from "effect"
import { Client, Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"

class Mailbox extends Context.Tag("Mailbox")<Mailbox, { readonly send: Effect.Effect<void> }>() {}
class Tariff extends Context.Tag("Tariff")<Tariff, { readonly rate: number }>() {}
class Declined extends Schema.TaggedError<Declined>()("Declined", {}) {}

const Mail = SideEffect.make("mail/send", { delivery: Delivery.keyed, input: Schema.String, error: Declined })
const Approval = Interrupt.make("approval", { payload: Schema.String, answer: Schema.Boolean })
const notify = Node.make("notify", { input: Schema.String, effects: [Mail], error: Declined }, (text) => Mail(text))
const declared = Workflow.make("declared", { version: "1", input: Schema.String, error: Declined }, (text) =>
  notify(text)
)

// ── Nodes ───────────────────────────────────────────────────────────────────────────────────────────────────

// @ts-expect-error this node performs "mail/send": add it to its "effects"
export const undeclaredEffect = Node.make("n", { input: Schema.String, error: Declined }, (text) => Mail(text))

// @ts-expect-error this node uses a service
export const serviceInNode = Node.make("n", {}, () => Effect.flatMap(Mailbox, ({ send }) => send))

// @ts-expect-error nodes, interrupts and timers belong in the workflow, not inside a node
export const nodeInNode = Node.make("n", { error: Declined, effects: [Mail] }, () => notify("a"))

// @ts-expect-error nodes, interrupts and timers belong in the workflow, not inside a node
export const interruptInNode = Node.make("n", { success: Schema.Boolean }, () => Approval("sure?"))

// @ts-expect-error Type 'Declined' is not assignable to type 'never'
export const undeclaredErrorOfNode = Node.make("n", { input: Schema.String, effects: [Mail] }, (text) => Mail(text))

// @ts-expect-error Type 'string' is not assignable to type 'number'
export const wrongSuccessOfNode = Node.make("n", { success: Schema.Number }, () => Effect.succeed("one"))

// ── Workflows ───────────────────────────────────────────────────────────────────────────────────────────────

// @ts-expect-error "mail/send" is performed outside a node: call it from a node's body
export const effectOutsideNode = Workflow.make("w", { version: "1", error: Declined }, () => Mail("a"))

// @ts-expect-error this workflow uses a service
export const serviceInWorkflow = Workflow.make("w", { version: "1" }, () => Effect.flatMap(Mailbox, ({ send }) => send))

// @ts-expect-error Type 'Declined' is not assignable to type 'never'
export const undeclaredErrorOfWorkflow = Workflow.make("w", { version: "1" }, () => notify("a"))

// @ts-expect-error Type 'boolean' is not assignable to type 'string'
export const wrongSuccess = Workflow.make("w", { version: "1", success: Schema.String }, () => Approval("sure?"))

// @ts-expect-error Property 'version' is missing
export const unversioned = Workflow.make("w", {}, () => Effect.void)

// ── Handlers ────────────────────────────────────────────────────────────────────────────────────────────────

// @ts-expect-error Type 'Error' is missing the following properties from type 'Declined'
export const undeclaredErrorOfHandler = Mail.toLayer(() => Effect.fail(new Error("smtp")))

const reconcile = () => Effect.succeed(SideEffect.NeverWill)
// @ts-expect-error is not assignable to type 'undefined'
export const reconcileOfKeyed = Mail.toLayer(() => Effect.void, { reconcile })

// ── The client ──────────────────────────────────────────────────────────────────────────────────────────────

export const client = Effect.gen(function* () {
  const client = yield* Client.Client
  const run = yield* client.start(declared, "a")
  const to = { branch: run.branch, interrupt: "approval#1", deliveryId: "d" }

  // @ts-expect-error Argument of type 'number' is not assignable to parameter of type 'string'
  yield* client.start(declared, 1)

  // @ts-expect-error Type 'string' is not assignable to type 'boolean'
  yield* client.resume(Approval, { ...to, intent: "retry", value: "yes" })

  // @ts-expect-error intent, forkId
  yield* client.resume(Approval, { ...to, value: true })

  // @ts-expect-error Property 'forkId' is missing
  yield* client.resume(Approval, { ...to, intent: "fork", value: true })

  // @ts-expect-error Type 'string' is not assignable to type 'void'
  yield* client.settle(Mail, { branch: run.branch, key: "k", settlement: { _tag: "Happened", value: "sent" } })
})

// ── What must compile ───────────────────────────────────────────────────────────────────────────────────────

export const pureServices = Workflow.make("w", { version: "1", success: Schema.Number, services: [Tariff] }, () =>
  Effect.map(Tariff, ({ rate }) => rate)
)

/** The worker must be given the handlers and the pure services, and nothing else. */
export const requirements: readonly [
  Equal<Workflow.Requirements<typeof declared>, SideEffect.HandlerOf<"mail/send">>,
  Equal<Workflow.Requirements<typeof pureServices>, Tariff>
] = [true, true]

type Equal<A, B> = [A, B] extends [B, A] ? true : false
