/** What the command line is made of, for tools that load modules of workflows or run it inside their own process. */
export * as Cli from "./Cli.js"
export * as CliError from "./CliError.js"
export * as DatabaseAddress from "./DatabaseAddress.js"
export * as Timeline from "./Timeline.js"
export * as WorkflowModule from "./WorkflowModule.js"
