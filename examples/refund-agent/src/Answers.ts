/** The people's answers: most come once, one comes again, one comes from two processes at once. */
import type { Client } from "@fermata/runtime"
import { Effect } from "effect"
import * as ChildProcess from "./ChildProcess.js"
import * as Desk from "./Desk.js"
import type { Stage } from "./Stage.js"

/** What was tried, and what became of it. */
export interface Attempt extends Desk.Verdict {
  readonly request: string
  readonly who: string
  /** How this attempt is unusual, if it is. */
  readonly how?: string
}

/** Answers one pending approval as the script says. */
export const answer = (stage: Stage, script: Desk.Script, pending: Client.Pending) =>
  Effect.gen(function* () {
    const decision = script.decisions[pending.run]
    if (decision === undefined) return yield* Effect.dieMessage(`nobody at the desk knows of ${pending.run}`)
    const click = (deliveryId: string, by = decision): Desk.Answer => ({
      branch: pending.branch,
      interrupt: pending.interrupt,
      deliveryId: `${pending.run}-${deliveryId}`,
      decision: by
    })
    const attempt = (verdict: Desk.Verdict, who: string, how?: string): Attempt => ({
      request: pending.run,
      who,
      ...verdict,
      ...(how === undefined ? {} : { how })
    })

    if (pending.run === script.answeredByTwo.request) {
      const { second } = script.answeredByTwo
      const verdicts = yield* atOnce(stage, [click("click-1"), click("click-2", second)])
      return verdicts.map((verdict, i) =>
        attempt(verdict, i === 0 ? decision.by : second.by, "at once with another process")
      )
    }
    const attempts = [attempt(yield* Desk.give(click("click-1")), decision.by)]
    if (pending.run === script.answeredTwice) {
      attempts.push(attempt(yield* Desk.give(click("click-1")), decision.by, "the same delivery again"))
      attempts.push(attempt(yield* Desk.give(click("click-2")), decision.by, "a second click"))
    }
    return attempts
  })

/** Gives each answer from a process of its own; none is released before all are ready. */
const atOnce = ({ plane }: Stage, answers: ReadonlyArray<Desk.Answer>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const children = yield* Effect.forEach(
        answers,
        (answer) => Effect.tap(ChildProcess.start("./answer.js", { plane, answer }), (child) => child.receive),
        { concurrency: "unbounded" }
      )
      yield* Effect.forEach(children, (child) => child.release)
      return yield* Effect.forEach(children, (child) =>
        Effect.flatMap(child.receive, (message) =>
          message._tag === "Verdict" ? Effect.succeed(message) : Effect.dieMessage(`${message._tag} is no verdict`)
        )
      )
    })
  )
