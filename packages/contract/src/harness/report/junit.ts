/** The report as JUnit XML: a suite a property, a case a probe. */
import { isUndecided, isViolation, type Report } from "../Verdict.js"
import { cells, logText } from "./summary.js"

// Characters that XML 1.0 cannot hold, escaped or not, would make the whole file unreadable.
// oxlint-disable-next-line no-control-regex -- control characters are what is removed
const unspeakable = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g

/** Text as XML holds it. */
export const xmlText = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(unspeakable, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")

const seconds = (milliseconds: number): string => (milliseconds / 1000).toFixed(3)

export const junit = (report: Report): string => {
  const suites = cells(report).map(({ findings, name, property }) => {
    const cases = findings.map((finding) => {
      const { log, milliseconds, notes, probe, reasons, rerun, title, verdict } = finding
      const evidence = xmlText([...reasons, "", ...notes, "", ...log.map(logText), "", rerun].join("\n"))
      const message = `message="${xmlText(`${verdict}: ${reasons[0] ?? ""}`)}"`
      const body = isViolation(verdict)
        ? `<failure type="${verdict}" ${message}>${evidence}</failure>`
        : isUndecided(verdict)
          ? `<error type="${verdict}" ${message}>${evidence}</error>`
          : verdict === "conforms"
            ? ""
            : `<skipped ${message}/>`
      return `    <testcase classname="${property}" name="${xmlText(`${probe}: ${title}`)}" time="${seconds(milliseconds)}">${body}</testcase>`
    })
    const failures = findings.filter(({ verdict }) => isViolation(verdict)).length
    const errors = findings.filter(({ verdict }) => isUndecided(verdict)).length
    const skipped = findings.filter(({ verdict }) =>
      ["documented divergence", "cannot be expressed", "not applicable"].includes(verdict)
    ).length
    const time = seconds(findings.reduce((sum, { milliseconds }) => sum + milliseconds, 0))
    return [
      `  <testsuite name="${property} ${name}" tests="${findings.length}" failures="${failures}" errors="${errors}" skipped="${skipped}" time="${time}">`,
      ...cases,
      "  </testsuite>"
    ].join("\n")
  })
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${xmlText(report.plane)}">`,
    ...suites,
    "</testsuites>",
    ""
  ].join("\n")
}
