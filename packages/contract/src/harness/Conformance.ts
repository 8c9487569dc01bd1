/** Runs probes against a plane: each on a stand of its own, one after the other, with a verdict for each. */
import { Effect, Option } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { PropertyId } from "../Property.js"
import { defaultTimeLimit, type Driver, type DriverError, DriverFault } from "./Driver.js"
import { BadLog } from "./Outside.js"
import type { Hello } from "./Plane.js"
import type { Probe } from "./Probe.js"
import { allProbes } from "./probes/index.js"
import { Stand, type Stop } from "./Stand.js"
import { divergence, type Finding, type Report, statementOn, type Verdict } from "./Verdict.js"

export interface Selection {
  readonly properties?: ReadonlyArray<PropertyId>
  /** Ids of probes. */
  readonly probes?: ReadonlyArray<string>
}

export interface ConformanceOptions extends Selection {
  /** Milliseconds for any one answer of the driver. */
  readonly timeLimit?: number
  /** How many probes run at once; 1 by default. */
  readonly concurrency?: number
  /** What `--plane` would be, for the commands that rerun a probe. */
  readonly command?: string
  /** Called before and after each probe. */
  readonly onProgress?: (progress: Progress) => void
}

export type Progress =
  | { readonly _tag: "Started"; readonly probe: Probe; readonly index: number; readonly count: number }
  | { readonly _tag: "Found"; readonly finding: Finding; readonly index: number; readonly count: number }

/** The probes of a selection; all, if nothing is selected. */
export const select = ({ probes, properties }: Selection): ReadonlyArray<Probe> =>
  allProbes.filter(
    ({ id, property }) =>
      (properties === undefined || properties.includes(property)) && (probes === undefined || probes.includes(id))
  )

/** Runs the selected probes. Fails only if the driver does not introduce itself. */
export const run = (driver: Driver, options: ConformanceOptions = {}): Effect.Effect<Report, DriverError> =>
  Effect.gen(function* () {
    const hello = yield* driver.hello
    const probes = select(options)
    const count = probes.length
    const findings = yield* Effect.forEach(
      probes,
      (probe, index) =>
        Effect.gen(function* () {
          options.onProgress?.({ _tag: "Started", probe, index, count })
          const finding = yield* examine(driver, hello, probe, options)
          options.onProgress?.({ _tag: "Found", finding, index, count })
          return finding
        }),
      { concurrency: options.concurrency ?? 1 }
    )
    const driverName = options.command ?? driver.name
    return { plane: hello.plane, version: hello.version, driver: driverName, findings, harness: "fermata-contract 1" }
  })

/** Runs one probe. */
export const examine = (
  driver: Driver,
  hello: Hello,
  probe: Probe,
  options: Pick<ConformanceOptions, "timeLimit" | "command"> = {}
): Effect.Effect<Finding> =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-probe-"))),
    (folder) =>
      Effect.gen(function* () {
        const timeLimit = options.timeLimit ?? defaultTimeLimit
        const stand = new Stand({ driver, hello, folder, timeLimit })
        const began = performance.now()
        const stopped = yield* Effect.scoped(probe.run(stand)).pipe(
          Effect.as(undefined),
          // The log is the driver's to write: what is not a line is its nonsense, and no failure of the harness.
          Effect.catchSomeDefect((defect) =>
            defect instanceof BadLog
              ? Option.some(new DriverFault({ kind: "nonsense", message: defect.message }))
              : Option.none()
          ),
          Effect.catchAll((stop) => Effect.succeed(stop)),
          Effect.ensuring(stand.clear)
        )
        const statement = statementOn(hello, probe.id, probe.property)
        const { reasons, verdict } = judge(stand, stopped, divergence(statement))
        return {
          probe: probe.id,
          property: probe.property,
          title: probe.title,
          verdict,
          reasons,
          notes: stand.notes,
          log: readable(stand),
          documentation: statement ?? null,
          rerun: `npx fermata-contract run --plane ${quoted(options.command ?? driver.name)} --probe ${probe.id}`,
          milliseconds: Math.round(performance.now() - began)
        }
      }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

const readable = (stand: Stand): Finding["log"] => {
  try {
    return stand.lines()
  } catch {
    // Said already.
    return []
  }
}

const quoted = (text: string): string => (/^[\w./+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** What was seen to break counts, whatever stopped the probe afterwards. */
const judge = (
  stand: Stand,
  stop: Stop | undefined,
  diverges: Verdict
): { readonly verdict: Verdict; readonly reasons: ReadonlyArray<string> } => {
  const { broken } = stand
  if (stop === undefined) return { verdict: broken.length === 0 ? "conforms" : diverges, reasons: broken }
  switch (stop._tag) {
    case "Inapplicable":
      return broken.length > 0
        ? { verdict: diverges, reasons: [...broken, stop.reason] }
        : { verdict: stop.verdict, reasons: [stop.reason] }
    case "Declined":
      // The operation exists and the request was a good one: that the plane cannot answer it is its own doing.
      return { verdict: diverges, reasons: [...broken, `the plane declined (${stop.code}): ${stop.message}`] }
    case "DriverFault": {
      const said = `${stop.kind === "silent" ? "" : `the driver ${stop.kind === "nonsense" ? "talked nonsense" : stop.kind}: `}${stop.message}`
      if (broken.length > 0) return { verdict: diverges, reasons: [...broken, said] }
      return { verdict: stop.kind === "silent" ? "no answer in time" : "driver fault", reasons: [said] }
    }
  }
}
