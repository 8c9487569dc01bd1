/** The report as Markdown. */
import type { Finding, Report } from "../Verdict.js"
import { cells, conclusion, logText } from "./summary.js"

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ")

const section = (finding: Finding): ReadonlyArray<string> => [
  `### ${finding.probe}: ${finding.verdict}`,
  "",
  `${finding.title}.`,
  "",
  ...finding.reasons.map((reason) => `- ${reason}`),
  "",
  ...(finding.documentation === null
    ? []
    : [
        `Its documentation ${finding.documentation.stance}: "${finding.documentation.says}" (${finding.documentation.source})`,
        ""
      ]),
  "```text",
  ...finding.notes,
  ...(finding.log.length === 0 ? [] : ["", "effect log:", ...finding.log.map(logText)]),
  "```",
  "",
  `Again: \`${finding.rerun}\``,
  ""
]

export const markdown = (report: Report): string =>
  [
    `# ${report.plane} ${report.version} under the resume contract`,
    "",
    conclusion(report),
    "",
    "| property | verdict | probes | excludes |",
    "| --- | --- | --- | --- |",
    ...cells(report).map(
      ({ counts, excludes, name, property, verdict }) =>
        `| **${property}** ${name} | ${verdict} | ${counts.map(([one, count]) => `${count} ${one}`).join(", ")} | ${cell(excludes)} |`
    ),
    "",
    "## What does not conform",
    "",
    ...report.findings.filter(({ verdict }) => verdict !== "conforms").flatMap(section),
    "## All probes",
    "",
    "| probe | behaviour | verdict | ms |",
    "| --- | --- | --- | --- |",
    ...report.findings.map(
      ({ milliseconds, probe, title, verdict }) => `| ${probe} | ${cell(title)} | ${verdict} | ${milliseconds} |`
    ),
    ""
  ].join("\n")
