/** The script that the kit's own test runs as a child: does what it is told. */
import { Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import { hold, input, pass, race, receive, tell } from "./Inside.js"

const order = input(
  Schema.Union(
    Schema.TaggedStruct("Course", { points: Schema.Array(Schema.String) }),
    Schema.TaggedStruct("Hold", {}),
    Schema.TaggedStruct("Echo", {}),
    Schema.TaggedStruct("Count", {}),
    Schema.TaggedStruct("Race", {}),
    Schema.TaggedStruct("Pid", {}),
    Schema.TaggedStruct("Fail", { message: Schema.String }),
    Schema.TaggedStruct("Write", { log: Schema.String, rows: Schema.Number, key: Schema.String })
  )
)

switch (order._tag) {
  case "Course":
    for (const point of order.points) {
      pass(point)
      tell(`after ${point}`)
    }
    break
  case "Hold":
    await Promise.all([hold("gate").then(() => tell("gate open")), receive(Schema.String).then(tell)])
    break
  case "Echo":
    for (;;) tell(await receive(Schema.Unknown))
  case "Count":
    for (let n = 0; ; n++) {
      tell(n)
      await receive(Schema.Unknown)
    }
  case "Race":
    for (let lap = 0; lap < 2; lap++) {
      race()
      // On one host all processes read the same clock.
      tell(String(process.hrtime.bigint()))
    }
    break
  case "Pid":
    tell(process.pid)
    await receive(Schema.Unknown)
    break
  case "Fail":
    throw new Error(order.message)
  case "Write": {
    race()
    const log = EffectLog.open(order.log)
    for (let n = 0; n < order.rows; n++)
      log.write({ at: `row#${n}`, effect: "test/write", idempotencyKey: order.key, inputDigest: "d" })
    log.close()
  }
}
