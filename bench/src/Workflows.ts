/** What is run: steps that do nothing, so that all of the time is the framework's and the database's. */
import { type Client, Delivery, Interrupt, Node, SideEffect, Worker, Workflow } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import { type Location, planeOf } from "./Target.js"

// ── Effects, nodes, interrupts ──────────────────────────────────────────────────────────────────────────────

const Touch = SideEffect.make("bench/touch", { delivery: Delivery.keyed, input: Schema.Number, success: Schema.Number })
const Look = SideEffect.make("bench/look", {
  delivery: Delivery.repeatable,
  input: Schema.Number,
  success: Schema.Number
})
const Gate = SideEffect.make("bench/gate", { delivery: Delivery.repeatable })
const Hold = SideEffect.make("bench/hold", { delivery: Delivery.keyed })

const numbers = { input: Schema.Number, success: Schema.Number }
const touch = Node.make("touch", { ...numbers, effects: [Touch] }, (n) => Touch(n))
const look = Node.make("look", { ...numbers, effects: [Look] }, (n) => Look(n))
const gate = Node.make("gate", { effects: [Gate] }, () => Gate())
const hold = Node.make("hold", { effects: [Hold] }, () => Hold())

/** Asks how many keyed steps to do next; 0 ends the run. */
export const More = Interrupt.make("more", { answer: Schema.Number })

// ── Workflows ───────────────────────────────────────────────────────────────────────────────────────────────

const touches = (count: number) =>
  Effect.gen(function* () {
    for (let n = 0; n < count; n++) yield* touch(n)
  })

const looks = (count: number) =>
  Effect.gen(function* () {
    for (let n = 0; n < count; n++) yield* look(n)
  })

/** So many keyed steps, one after the other. */
export const Keyed = Workflow.make("keyed", { version: "1", input: Schema.Number }, touches)

/** So many repeatable steps, one after the other. */
export const Repeatable = Workflow.make("repeatable", { version: "1", input: Schema.Number }, looks)

/** Waits at the gate, then does so many keyed steps. */
export const Gated = Workflow.make("gated", { version: "1", input: Schema.Number }, (count) =>
  Effect.zipRight(gate(), touches(count))
)

/** So many keyed steps, then one that is held. */
export const Held = Workflow.make("held", { version: "1", input: Schema.Number }, (count) =>
  Effect.zipRight(touches(count), hold())
)

/** Repeatable steps, keyed steps, then as many keyed ones as each answer says. */
export const Asking = Workflow.make(
  "asking",
  { version: "1", input: Schema.Struct({ looks: Schema.Number, touches: Schema.Number }) },
  (prefix) =>
    Effect.gen(function* () {
      yield* looks(prefix.looks)
      yield* touches(prefix.touches)
      for (let more = yield* More(); more > 0; more = yield* More()) yield* touches(more)
    })
)

// ── Running them ────────────────────────────────────────────────────────────────────────────────────────────

/** What some handlers do besides nothing. */
export interface Watch {
  /** Called when a keyed step's effect fires. */
  readonly onTouch?: () => void
  /** Keeps a gated run waiting. */
  readonly atGate?: Effect.Effect<void>
  /** Keeps a held run waiting. */
  readonly onHold?: Effect.Effect<void>
}

const handlers = ({ atGate = Effect.void, onHold = Effect.void, onTouch }: Watch) =>
  Layer.mergeAll(
    Touch.toLayer(onTouch === undefined ? Effect.succeed : (n) => Effect.sync(() => (onTouch(), n))),
    Look.toLayer(Effect.succeed),
    Gate.toLayer(() => atGate),
    Hold.toLayer(() => onHold)
  )

/** A worker and a client in this process, on that database. */
export const running = (location: Location, watch: Watch = {}): Layer.Layer<Client.Client> =>
  Worker.layer({ workflows: [Keyed, Repeatable, Gated, Held, Asking] }).pipe(
    Layer.orDie,
    Layer.provide(handlers(watch)),
    Layer.provideMerge(planeOf(location))
  )
