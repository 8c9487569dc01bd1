/** Runs the line, and can be stopped after each effect, each stored outcome and each stored checkpoint. */
import { AnswerRefused } from "@fermata/adapters/langgraph-checkpoint"
import { Command } from "@langchain/langgraph"
import { Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import { PlaneAddress } from "../PlaneAddress.js"
import { input, pass, race, tell } from "../processes/Inside.js"
import { line, open, thread, Way } from "./Line.js"

const given = input(
  Schema.Struct({
    plane: PlaneAddress,
    log: Schema.String,
    way: Way,
    asks: Schema.Boolean,
    /** Answers the line's question by this delivery. */
    answer: Schema.NullOr(Schema.String),
    /** Answers at the same moment as others do, and tells what became of it. */
    races: Schema.Boolean
  })
)

const saver = open(given.plane)
const putWrites = saver.putWrites.bind(saver)
saver.putWrites = async (...call) => {
  await putWrites(...call)
  pass("outcome")
}
const put = saver.put.bind(saver)
saver.put = async (...call) => {
  const stored = await put(...call)
  pass("checkpoint")
  return stored
}
const log = EffectLog.open(given.log)
const { front, run } = line({ saver, way: given.way, asks: given.asks, log, fired: () => pass("effect") })
if (given.answer === null) await run("go")
else {
  const [question] = await front.pending(thread)
  if (question === undefined) throw new Error("nothing is asked")
  const command = new Command<unknown, Record<never, never>, never>({ resume: { [question.id]: "yes" } })
  if (given.races) race()
  const answered = front.invoke(command, { configurable: { ...thread.configurable, delivery_id: given.answer } })
  if (given.races) {
    tell(
      await answered.then(
        () => "accepted",
        (error: unknown) => (error instanceof AnswerRefused ? error.reason : String(error))
      )
    )
  } else await answered
}
await saver.close()
log.close()
