/**
 * A worker on which very many runs wait. Says how much memory it holds when a tenth of them wait and when all do, how long some
 * took from answer to result within the process, and stays for answers from other processes.
 */
import { Client } from "@fermata/runtime"
import { Effect } from "effect"
import { answer, awaitQuestion } from "../Answers.js"
import { millisecondsOf } from "../Rounds.js"
import { Asking, running } from "../Workflows.js"
import { location, parameter, say } from "./Parameters.js"

const count = Number(parameter("run"))
const samples = 20

/** Megabytes on the heap and beside it that are really in use. */
const memory = Effect.promise(async () => {
  if (globalThis.gc === undefined) throw new Error("start it with --expose-gc")
  for (let round = 0; round < 3; round++) {
    globalThis.gc()
    // Finalizers of what was collected run between turns.
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / 1e6
})

const park = (from: number, to: number) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    yield* Effect.forEach(
      Array.from({ length: to - from }, (_, index) => from + index),
      (index) =>
        Effect.flatMap(client.start(Asking, { looks: 0, touches: 1 }, { run: `waiting-${index}` }), (handle) =>
          awaitQuestion(handle.branch, 1)
        ),
      { concurrency: 500, discard: true }
    )
  })

const answered = (index: number) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    // One that has long been evicted.
    const { branch } = yield* client.describe(`waiting-${index}`)
    return yield* millisecondsOf(Effect.zipRight(answer(branch, 1, 0), client.result(Asking, branch)))
  })

const main = Effect.gen(function* () {
  const tenth = Math.floor(count / 10)
  yield* park(0, tenth)
  const early = yield* memory
  yield* park(tenth, count)
  const late = yield* memory
  const times = yield* Effect.forEach(Array.from({ length: samples }), (_, index) => answered(index))
  say(JSON.stringify({ early, late, times }))
  return yield* Effect.never
})

await Effect.runPromise(Effect.provide(main, running(location())))
