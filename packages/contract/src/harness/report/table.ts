/** The report as a table for a terminal. */
import { isUndecided, isViolation, type Report, type Verdict } from "../Verdict.js"
import { cells, conclusion } from "./summary.js"

const colour = (verdict: Verdict): string =>
  isViolation(verdict) ? "31" : verdict === "conforms" ? "32" : isUndecided(verdict) ? "35" : "33"

const paint = (text: string, code: string, colours: boolean): string =>
  colours ? `\u001b[${code}m${text}\u001b[0m` : text

/** `colours`: with escape sequences. */
export const table = (report: Report, options: { readonly colours: boolean }): string => {
  const rows = cells(report).map(({ counts, name, property, verdict }) => ({
    verdict,
    left: `${property}  ${name}`,
    right: counts.map(([one, count]) => `${count} ${one}`).join(", ")
  }))
  const left = Math.max(0, ...rows.map((row) => row.left.length))
  const middle = Math.max(0, ...rows.map((row) => row.verdict.length))
  const lines = rows.map(
    (row) =>
      `${row.left.padEnd(left)}  ${paint(row.verdict.padEnd(middle), colour(row.verdict), options.colours)}  ${row.right}`
  )
  const details = report.findings
    .filter(({ verdict }) => verdict !== "conforms")
    .flatMap(({ probe, reasons, rerun, title, verdict }) => [
      "",
      `${paint(verdict, colour(verdict), options.colours)}  ${probe}: ${title}`,
      ...reasons.map((reason) => `  - ${reason}`),
      ...(isViolation(verdict) || isUndecided(verdict) ? [`  ${rerun}`] : [])
    ])
  return [`${report.plane} ${report.version}`, "", ...lines, ...details, "", conclusion(report)].join("\n")
}
