/**
 * The demonstration: refunds are worked on by processes that are killed in the worst moments, and by people who click
 * twice. It plays the acts one by one and says what it sees. The account and the audit come after it.
 */
import { Client } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import type { Facts } from "./Account.js"
import * as Answers from "./Answers.js"
import { killedInFlight, startWorker } from "./Crash.js"
import * as Doubts from "./Doubts.js"
import * as Desk from "./Desk.js"
import * as Intake from "./Intake.js"
import { settled } from "./Progress.js"
import { Refund } from "./Refund.js"
import * as ShopDatabase from "./ShopDatabase.js"
import type { Stage } from "./Stage.js"
import type { Terminal } from "./Terminal.js"
import * as WhatIf from "./WhatIf.js"

/** Plays all acts, and returns what the account is made of. */
export const play = (stage: Stage, { paint, progress, say }: Terminal) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const script = yield* Effect.orDie(Schema.decodeUnknown(Schema.parseJson(Desk.Script))(stage.files.desk))
    const terminal = { paint, progress, say }
    const act = (title: string) => Effect.zipRight(say(), say(paint.bold(title)))
    const killed = (what: string) => say(`   ${paint.warn("SIGKILL")}  ${what}`)

    yield* act("1. Requests come in")
    yield* ShopDatabase.create(stage.shop, stage.files.orders)
    const intake = yield* Intake.submit(stage.files.requests)
    const runs = intake.accepted.map(({ id }) => id)
    yield* say(`   ${intake.lines} lines: ${runs.length} started a run, ${intake.turnedAway.length} were turned away`)

    yield* act("2. Two workers die while they pay")
    const before = yield* killedInFlight(stage, "calls")
    yield* killed(`${before} payments made; the calls for more were on their way and never arrived`)
    const after = yield* killedInFlight(stage, "replies")
    yield* killed(`${after} payments made; the replies to the last of them were on their way back`)

    yield* act("3. A third asks the shop what became of those, goes on, and dies while runs wait")
    const third = yield* startWorker(stage)
    yield* settled(runs, "over or waiting", third, terminal)
    yield* third.kill
    const pending = yield* client.pendingInterrupts()
    yield* killed(`${pending.length} runs wait for a person, and no worker is alive`)

    yield* act("4. People answer, some more than once")
    for (const one of pending) {
      for (const { accepted, how, request, text, who } of yield* Answers.answer(stage, script, one)) {
        yield* say(
          `   ${request}  ${who}: ${(accepted ? paint.good : paint.warn)(text)}${how === undefined ? "" : `  (${how})`}`
        )
      }
    }

    yield* act("5. A fourth worker finishes")
    const fourth = yield* startWorker(stage)
    yield* settled(runs, "over", fourth, terminal)
    yield* say(`   all ${runs.length} runs are over`)

    yield* act(`6. ${script.whatIf.request} was refused. What if we had approved?`)
    const whatIf = yield* WhatIf.explore(script.whatIf)
    yield* say(`   another answer, as a retry: ${paint.warn(whatIf.asRetry)}`)
    yield* say(`   another answer, as a fork:  ${paint.good(whatIf.fork.branch)}`)
    yield* fourth.stop

    const outcomes = yield* Effect.forEach(intake.accepted, (request) =>
      Effect.map(client.result(Refund, request.id), (outcome) => ({ request, outcome }))
    )
    return { intake, outcomes, whatIf, crashes: { kills: 3, doubts: yield* Doubts.count(runs) } } satisfies Facts
  })
