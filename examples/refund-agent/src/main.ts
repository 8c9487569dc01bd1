/**
 * `npm start`: plays the demonstration, prints the account, and judges the shop's log. Exit code 0 if every payment is
 * there exactly once, 1 if not, 2 if the demonstration itself could not be played.
 *
 * `--keep` leaves the two databases and says where; `--audit <directory>` judges the log of a kept one again.
 */
import { Plane } from "@fermata/runtime"
import { Effect } from "effect"
import { parseArgs } from "node:util"
import * as Account from "./Account.js"
import * as Audit from "./Audit.js"
import * as Demonstration from "./Demonstration.js"
import * as Edge from "./Edge.js"
import * as EffectLog from "./EffectLog.js"
import * as Expectation from "./Expectation.js"
import * as Stage from "./Stage.js"
import * as Terminal from "./Terminal.js"

const terminal = Terminal.make(process.stdout, process.env)

const sayAll = (lines: ReadonlyArray<string>) => Effect.forEach(lines, terminal.say, { discard: true })

/** Compares the shop's log with what the data files ask for. */
const judge = (stage: Stage.Stage, crashes?: Account.Crashes) =>
  Effect.gen(function* () {
    const log = yield* EffectLog.read(stage.shop)
    const findings = Audit.findings(Expectation.fromFiles(stage.files), log)
    yield* sayAll(Account.verdict(crashes, log, findings, terminal.paint))
    return findings.length === 0 ? 0 : 1
  })

const demonstrate = (keep: boolean) =>
  Effect.scoped(
    Effect.gen(function* () {
      const stage = yield* Stage.temporary(keep)
      const facts = yield* Demonstration.play(stage, terminal).pipe(
        Effect.timeoutFail({ duration: "2 minutes", onTimeout: () => new Error("The demonstration hangs") }),
        Effect.provide(Plane.sqlite({ filename: stage.plane }))
      )
      yield* sayAll(Account.lines(facts, yield* EffectLog.read(stage.shop), terminal.paint))
      const code = yield* judge(stage, facts.crashes)
      if (keep) yield* terminal.say(`The databases are in ${stage.directory}`)
      return code
    })
  )

const { values } = parseArgs({ options: { keep: { type: "boolean", default: false }, audit: { type: "string" } } })

Edge.run(
  values.audit === undefined
    ? demonstrate(values.keep)
    : Effect.flatMap(Stage.kept(values.audit), (stage) => judge(stage))
)
