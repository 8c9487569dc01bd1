/** Waits for runs, and shows how far they are. */
import { Client } from "@fermata/runtime"
import { Data, Effect } from "effect"
import type { Child } from "./ChildProcess.js"
import type { Terminal } from "./Terminal.js"

/** A run needs an operator. The demonstration has none: it ends, and says what is wrong. */
export class Stuck extends Data.TaggedError("Stuck")<{
  readonly branch: string
  readonly problems: ReadonlyArray<string>
}> {
  override get message() {
    return `${this.branch} is stuck: ${this.problems.join("; ")}`
  }
}

/** Waits until every run is over or, unless `over` is asked for, waits for a person. Fails if the worker ends before. */
export const settled = (
  runs: ReadonlyArray<string>,
  until: "over" | "over or waiting",
  worker: Child,
  terminal: Terminal
) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    let done = 0
    const one = (run: string) =>
      Effect.gen(function* () {
        const { branch, problems, status } = yield* client.awaitStatus(
          run,
          ({ status }) => status !== "ready" && status !== "running" && (status !== "waiting" || until !== "over")
        )
        if (status === "stuck") return yield* new Stuck({ branch, problems: problems.map(({ message }) => message) })
        yield* terminal.progress(`   ${terminal.paint.dim(`${++done} of ${runs.length}`)}`)
      })
    yield* Effect.raceFirst(
      Effect.forEach(runs, one, { concurrency: "unbounded", discard: true }),
      Effect.zipRight(worker.receive, Effect.never)
    )
  })
