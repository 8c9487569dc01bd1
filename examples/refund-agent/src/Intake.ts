/** Requests come in: each line that makes sense starts a run, named by the request's id. */
import { Client } from "@fermata/runtime"
import { Effect, Either } from "effect"
import { Refund } from "./Refund.js"
import * as RefundRequest from "./RefundRequest.js"

/** What became of the lines. */
export interface Intake {
  readonly lines: number
  /** One per run, in the order of the file. */
  readonly accepted: ReadonlyArray<RefundRequest.RefundRequest>
  /** Lines that started nothing, and why. */
  readonly turnedAway: ReadonlyArray<{ readonly line: number; readonly why: string }>
}

/** Starts what can be started. When it returns, every accepted request is in the database. */
export const submit = (text: string) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const lines = RefundRequest.readLines(text)
    const accepted: Array<RefundRequest.RefundRequest> = []
    const turnedAway: Array<{ readonly line: number; readonly why: string }> = []
    for (const { number, request } of lines) {
      const why = Either.isLeft(request)
        ? request.left
        : yield* client.start(Refund, request.right, { run: request.right.id }).pipe(
            Effect.map(({ created }) => (created ? undefined : `${request.right.id} again: it is the same run`)),
            // The same id with other contents is somebody's mistake, and never silently the old or the new run.
            Effect.catchTag("RunConflict", (conflict) =>
              Effect.succeed(`${conflict.run} again, with another ${conflict.differs}: refused`)
            ),
            Effect.catchTag("InvalidId", "InvalidValue", (refusal) => Effect.succeed(refusal.message))
          )
      if (why !== undefined) turnedAway.push({ line: number, why })
      else if (Either.isRight(request)) accepted.push(request.right)
    }
    return { lines: lines.length, accepted, turnedAway } satisfies Intake
  })
