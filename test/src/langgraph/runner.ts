/** Runs the line, and can be stopped after each effect, each stored outcome and each stored checkpoint. */
import { Command } from "@langchain/langgraph"
import { Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import { PlaneAddress } from "../PlaneAddress.js"
import { input, pass } from "../processes/Inside.js"
import { line, open, thread, Way } from "./Line.js"

const given = input(
  Schema.Struct({
    plane: PlaneAddress,
    log: Schema.String,
    way: Way,
    asks: Schema.Boolean,
    /** Answers the line's question by this delivery. */
    answer: Schema.NullOr(Schema.String)
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
  await front.invoke(command, { configurable: { ...thread.configurable, delivery_id: given.answer } })
}
await saver.close()
log.close()
