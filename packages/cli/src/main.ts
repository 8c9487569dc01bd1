/** The process of `fermata`: runs the command, says what went wrong, and sets the exit code. */
import { NodeContext, NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Exit, Layer, Logger } from "effect"
import * as Cli from "./Cli.js"
import { exitCodes } from "./CliError.js"
import { conclude, masked } from "./Conclusion.js"

const json = process.argv.includes("--json")

/** Standard output is for results: logs go to standard error. */
const logging = Logger.replace(
  Logger.defaultLogger,
  json ? Logger.withConsoleError(Logger.jsonLogger) : Logger.withConsoleError(Logger.logfmtLogger)
)

// Whoever reads only the first lines has what it wanted.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(exitCodes.success)
})

const main = Cli.run(process.argv).pipe(
  Effect.as(exitCodes.success as number),
  Effect.catchAllCause((cause) => conclude(cause, json)),
  Effect.withConsole(masked(Effect.runSync(Console.consoleWith(Effect.succeed)))),
  Effect.provide(Layer.merge(NodeContext.layer, logging))
)

NodeRuntime.runMain(main, {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) ? Number(exit.value) : exitCodes.interrupted)
})
