/** The command line: every command, under one name. */
import { Command } from "@effect/cli"
import { answer } from "./commands/Answer.js"
import { cancel } from "./commands/Cancel.js"
import { dev } from "./commands/Dev.js"
import { doctor } from "./commands/Doctor.js"
import { exporting } from "./commands/Export.js"
import { fork } from "./commands/Fork.js"
import { history } from "./commands/History.js"
import { importing } from "./commands/Import.js"
import { migrate } from "./commands/Migrate.js"
import { purge } from "./commands/Purge.js"
import { queues } from "./commands/Queues.js"
import { replay } from "./commands/Replay.js"
import { runs } from "./commands/Runs.js"
import { schedules } from "./commands/Schedules.js"
import { settle } from "./commands/Settle.js"
import { show } from "./commands/Show.js"
import { signal } from "./commands/Signal.js"
import { start } from "./commands/Start.js"
import { verify } from "./commands/Verify.js"
import { worker } from "./commands/Worker.js"

const root = Command.make("fermata").pipe(
  Command.withDescription("Durable workflows: run them, see them, answer them"),
  Command.withSubcommands([
    dev,
    worker,
    start,
    runs,
    show,
    answer,
    signal,
    fork,
    cancel,
    settle,
    history,
    replay,
    verify,
    purge,
    exporting,
    importing,
    schedules,
    queues,
    migrate,
    doctor
  ])
)

/** Runs the command line of a process: `argv` as Node gives it. */
export const run = Command.run(root, { name: "fermata", version: "0.1.0" })
