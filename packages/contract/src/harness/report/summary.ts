/** What every form of a report says: the cell of each property, and what to look at. */
import { type PropertyId, properties } from "../../Property.js"
import { allVerdicts, type Finding, isUndecided, isViolation, type Report, type Verdict } from "../Verdict.js"

/** One property's cell. */
export interface Cell {
  readonly property: PropertyId
  readonly name: string
  readonly statement: string
  readonly excludes: string
  readonly findings: ReadonlyArray<Finding>
  /** How many probes came to each verdict that any came to. */
  readonly counts: ReadonlyArray<readonly [Verdict, number]>
  /** The verdict on the property: the gravest of its probes'. */
  readonly verdict: Verdict
}

/** From the gravest to the lightest; what was not asked says least. */
const gravity: ReadonlyArray<Verdict> = [
  "violates its own documentation",
  "undocumented divergence",
  "driver fault",
  "no answer in time",
  "documented divergence",
  "conforms",
  "cannot be expressed",
  "not applicable"
]

/** The cells of the properties that were probed, in the contract's order. */
export const cells = ({ findings }: Report): ReadonlyArray<Cell> =>
  properties.flatMap(({ excludes, id, name, statement }) => {
    const own = findings.filter(({ property }) => property === id)
    const verdict = gravity.find((one) => own.some((finding) => finding.verdict === one))
    return verdict === undefined
      ? []
      : [{ property: id, name, statement, excludes, findings: own, counts: countsOf(own), verdict }]
  })

export const countsOf = (findings: ReadonlyArray<Finding>): ReadonlyArray<readonly [Verdict, number]> =>
  allVerdicts
    .map((verdict) => [verdict, findings.filter((finding) => finding.verdict === verdict).length] as const)
    .filter(([, count]) => count > 0)

/** In one sentence. */
export const conclusion = (report: Report): string => {
  const broken = cells(report).filter(({ verdict }) => isViolation(verdict))
  const undecided = report.findings.filter(({ verdict }) => isUndecided(verdict)).length
  const documented = report.findings.filter(({ verdict }) => verdict === "documented divergence").length
  const open = undecided === 0 ? "" : ` ${undecided} ${undecided === 1 ? "probe was" : "probes were"} not decided.`
  const said =
    documented === 0 ? "" : ` ${documented} ${documented === 1 ? "divergence is" : "divergences are"} documented.`
  return broken.length === 0
    ? `Nothing that was probed violates the contract.${said}${open}`
    : `${broken.map(({ name, property }) => `${property} (${name})`).join(", ")} ${broken.length === 1 ? "does" : "do"} not hold.${said}${open}`
}

/** One line of the log, for people. */
export const logText = (line: Finding["log"][number]): string => {
  switch (line.kind) {
    case "body":
      return `${line.who}  body   ${line.run} ${line.step}`
    case "ruled":
      return `${line.who}  ruled  ${line.key} never happened and never will`
    case "fire":
      return `${line.who}  fire   ${line.run} ${line.step} ${line.effect} (${line.delivery}) key ${line.key === "" ? "none" : line.key} input ${JSON.stringify(line.input)} -> ${line.value}`
  }
}
