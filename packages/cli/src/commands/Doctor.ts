/** `fermata doctor`: is the database well, and do its runs go on? Says what to do. */
import { Command } from "@effect/cli"
import { Health } from "@fermata/runtime"
import { Effect } from "effect"
import { Unwell } from "../CliError.js"
import { common, onPlane } from "../Flags.js"
import { oneLine, print } from "../Output.js"

export const doctor = Command.make("doctor", common, (options) =>
  onPlane(
    options,
    Effect.gen(function* () {
      const facts = yield* Health.facts
      const findings = Health.findings(facts)
      const alive = facts.workers.filter(({ leaseUntil, state }) => state === "alive" && leaseUntil >= facts.now)
      yield* print(options.json, { findings, facts }, () => [
        `Database  ${facts.database} (${facts.dialect === "pg" ? "PostgreSQL" : "SQLite"}), tables of version ${facts.schema.stored}`,
        `Clock     ${facts.dialect === "sqlite" ? "this host's" : `${facts.skew} ms from the database's`}`,
        `Workers   ${alive.length} alive${alive.map(({ branches, definitions, pid }) => `\n          pid ${pid}: ${branches} branches, serves ${definitions?.join(", ") ?? "unknown"}`).join("")}`,
        `Branches  ${Object.entries(facts.branches)
          .filter(([, n]) => n > 0)
          .map(([status, n]) => `${n} ${status}`)
          .join(", ")}`,
        "",
        ...(findings.length === 0 ? ["All is well."] : []),
        ...findings.flatMap(({ advice, message, severity }) => [
          `${severity === "error" ? "ERROR  " : "WARNING"}  ${oneLine(message, 400)}`,
          `         ${advice}`
        ])
      ])
      const errors = findings.filter(({ severity }) => severity === "error").length
      if (errors > 0) yield* new Unwell({ detail: `${errors} ${errors === 1 ? "thing needs" : "things need"} you.` })
    })
  )
).pipe(Command.withDescription("Check the database, its workers and runs, and say what to do"))
