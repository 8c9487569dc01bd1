/** `fermata-contract`: puts a plane under the contract from the command line. */
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { Driver } from "../harness/Driver.js"
import * as Conformance from "../harness/Conformance.js"
import { allProbes } from "../harness/probes/index.js"
import { html, junit, markdown, table } from "../harness/report/index.js"
import { exitCode, isUndecided, isViolation, type Report } from "../harness/Verdict.js"
import { properties, type PropertyId } from "../Property.js"
import { knownPlanes, planeOf } from "./planes.js"

const usage = `fermata-contract run --plane NAME|COMMAND [options]   probe a plane
fermata-contract probes [--property ID]              list the probes
fermata-contract planes                              list the built-in planes

  --plane     a built-in plane (reference, reference+FAULT), or a command that speaks the driver protocol
  --property  probe this property alone; may be given several times
  --probe     run this probe alone; may be given several times
  --out       a folder for report.md, report.json, report.xml (JUnit) and report.html
  --limit     seconds that any one answer of the driver may take (60)
  --jobs      how many probes run at once (1)
  --quiet     no progress

Exit code: 0 nothing violates, 1 something does, 2 something was not decided, 64 the command was wrong.`

/** What was asked for cannot be done; says what can. */
class Misuse extends Error {}

const known = (what: string, given: ReadonlyArray<string>, all: ReadonlyArray<string>): void => {
  const stranger = given.find((one) => !all.includes(one))
  if (stranger !== undefined) throw new Misuse(`There is no ${what} ${stranger}. Known: ${all.join(", ")}`)
}

const parse = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        plane: { type: "string" },
        property: { type: "string", multiple: true },
        probe: { type: "string", multiple: true },
        out: { type: "string" },
        limit: { type: "string" },
        jobs: { type: "string" },
        quiet: { type: "boolean" },
        help: { type: "boolean", short: "h" }
      }
    })
  } catch (cause) {
    throw new Misuse(`${cause instanceof Error ? cause.message : String(cause)}\n\n${usage}`, { cause })
  }
}

/** Progress goes to standard error: on a terminal one line that is written over, else a line a probe. */
const progress = ({ count, index, ...step }: Conformance.Progress): void => {
  const terminal = process.stderr.isTTY
  const place = `[${String(index + 1).padStart(String(count).length)}/${count}]`
  if (step._tag === "Started") {
    if (terminal) process.stderr.write(`\r\u001b[K${place} ${step.probe.id}`)
    return
  }
  const { milliseconds, probe, verdict } = step.finding
  const line = `${place} ${probe}: ${verdict} (${milliseconds} ms)`
  if (!terminal) process.stderr.write(`${line}\n`)
  else process.stderr.write(`\r\u001b[K${isViolation(verdict) || isUndecided(verdict) ? `${line}\n` : ""}`)
}

const write = (folder: string, report: Report): void => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "report.md"), markdown(report))
  writeFileSync(join(folder, "report.json"), `${JSON.stringify(report, undefined, 2)}\n`)
  writeFileSync(join(folder, "report.xml"), junit(report))
  writeFileSync(join(folder, "report.html"), html(report))
}

const list = (chosen: ReadonlyArray<string> | undefined): void => {
  for (const { id, property, title } of allProbes)
    if (chosen === undefined || chosen.includes(property)) process.stdout.write(`${id.padEnd(34)} ${title}\n`)
}

const main = async (): Promise<number> => {
  const { positionals, values } = parse()
  const [command = "run"] = positionals
  if (values.help === true) {
    process.stdout.write(`${usage}\n`)
    return 0
  }
  const chosen = values.property?.map((id) => id.toUpperCase())
  if (chosen !== undefined)
    known(
      "property",
      chosen,
      properties.map(({ id }) => id)
    )
  switch (command) {
    case "probes":
      list(chosen)
      return 0
    case "planes":
      process.stdout.write(`${knownPlanes.join("\n")}\n`)
      return 0
    case "run":
      break
    default:
      throw new Misuse(`There is no command ${command}. Known: run, probes, planes\n\n${usage}`)
  }
  if (values.probe !== undefined)
    known(
      "probe",
      values.probe,
      allProbes.map(({ id }) => id)
    )
  if (values.plane === undefined)
    throw new Misuse(`--plane is missing. Known: ${knownPlanes.join(", ")}, or a command\n\n${usage}`)
  const seconds = values.limit === undefined ? 60 : Number(values.limit)
  if (!(seconds > 0)) throw new Misuse(`--limit ${values.limit} is no number of seconds`)
  const timeLimit = seconds * 1000
  const concurrency = values.jobs === undefined ? 1 : Number(values.jobs)
  if (!Number.isInteger(concurrency) || concurrency < 1)
    throw new Misuse(`--jobs ${values.jobs} is no number of probes`)
  const driver: Driver | undefined = planeOf(values.plane, { timeLimit })
  if (driver === undefined)
    throw new Misuse(
      `There is no plane ${values.plane}, and no such program. Known: ${knownPlanes.join(", ")}, or a command`
    )
  const outcome = await Effect.runPromise(
    Effect.either(
      Conformance.run(driver, {
        timeLimit,
        concurrency,
        command: values.plane,
        // What `known` has let through.
        ...(chosen === undefined ? {} : { properties: chosen as ReadonlyArray<PropertyId> }),
        ...(values.probe === undefined ? {} : { probes: values.probe }),
        ...(values.quiet === true ? {} : { onProgress: progress })
      })
    )
  )
  if (outcome._tag === "Left") {
    const { message } = outcome.left
    process.stderr.write(`driver fault: ${values.plane} does not introduce itself: ${message}\n`)
    return 2
  }
  const report = outcome.right
  process.stdout.write(`${table(report, { colours: process.stdout.isTTY })}\n`)
  if (values.out !== undefined) {
    write(values.out, report)
    process.stdout.write(`\n${join(values.out, "report.html")}, report.md, report.json and report.xml are written.\n`)
  }
  return exitCode(report)
}

try {
  process.exitCode = await main()
} catch (cause) {
  if (!(cause instanceof Misuse)) throw cause
  process.stderr.write(`${cause.message}\n`)
  process.exitCode = 64
}
