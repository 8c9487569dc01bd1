/** A workflow that lives by messages: it notes signals, and adds what updates bring. */
import { Node, Query, Signal, Update, Workflow } from "@fermata/runtime"
import { Effect, Ref, Schema } from "effect"

export const Note = Signal.make("note", { payload: Schema.String })
export const Add = Update.make("add", { input: Schema.Number, success: Schema.Number })
export const Noted = Query.make("noted", { result: Schema.Array(Schema.String) })

const file = Node.make("file", { input: Schema.String, success: Schema.String }, (text) => Effect.succeed(`[${text}]`))

export const Desk = Workflow.make(
  "desk",
  { version: "1", success: Schema.Array(Schema.String), signals: [Note], updates: [Add] },
  () =>
    Effect.gen(function* () {
      const sum = yield* Ref.make(0)
      yield* Update.handle(Add, { handler: (n) => Ref.updateAndGet(sum, (before) => before + n) })
      const notes: Array<string> = []
      while (notes.length < 3) {
        notes.push(yield* file(yield* Signal.next(Note)))
        yield* Query.publish(Noted, notes)
      }
      return [...notes, `${yield* Ref.get(sum)}`]
    })
)
