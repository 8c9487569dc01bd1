/** The report as one page that needs nothing else: no script, no font, no image from elsewhere. */
import { type Finding, isUndecided, isViolation, type Report, type Verdict } from "../Verdict.js"
import { xmlText as text } from "./junit.js"
import { cells, conclusion, countsOf, logText } from "./summary.js"

const tone = (verdict: Verdict): string =>
  isViolation(verdict) ? "bad" : verdict === "conforms" ? "good" : isUndecided(verdict) ? "open" : "other"

const badge = (verdict: Verdict): string => `<span class="badge ${tone(verdict)}">${verdict}</span>`

const style = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --paper: #fff; --box: #f6f8fa;
  --good: #116329; --bad: #a40e26; --open: #6639ba; --other: #7d4e00 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9da7b1; --line: #30363d; --paper: #0d1117;
  --box: #161b22; --good: #56d364; --bad: #ff7b72; --open: #d2a8ff; --other: #e3b341 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2rem 1rem 4rem; max-width: 62rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper) }
h1 { font-size: 1.6rem; margin: 0 0 .3rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem }
p { margin: .4rem 0 } .soft { color: var(--soft) } .conclusion { font-size: 1.1rem }
table { border-collapse: collapse; width: 100% } th { text-align: left; font-weight: 600 }
th, td { padding: .45rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
td.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.badge { font-weight: 600; white-space: nowrap } .badge::before { content: "\\25CF\\00a0" }
.good { color: var(--good) } .bad { color: var(--bad) } .open { color: var(--open) } .other { color: var(--other) }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; background: var(--box) }
summary { padding: .5rem .7rem; cursor: pointer } .in { padding: 0 .9rem .7rem }
code, pre { font: .85rem/1.45 ui-monospace, monospace } pre { overflow-x: auto; padding: .7rem; background: var(--paper);
  border: 1px solid var(--line); border-radius: 6px }
ul { margin: .4rem 0; padding-left: 1.2rem } a { color: inherit }
.wide { overflow-x: auto }`

const evidence = (finding: Finding): string => {
  const { documentation, log, milliseconds, notes, probe, reasons, rerun, title, verdict } = finding
  const says =
    documentation === null
      ? ""
      : `<p>Its documentation ${documentation.stance === "claims" ? "claims" : "says otherwise"}: <q>${text(documentation.says)}</q> <span class="soft">(${text(documentation.source)})</span></p>`
  const open = isViolation(verdict) || isUndecided(verdict) ? " open" : ""
  return `<details${open}><summary>${badge(verdict)} <b>${text(probe)}</b> ${text(title)}</summary><div class="in">
${reasons.length === 0 ? "" : `<ul>${reasons.map((reason) => `<li>${text(reason)}</li>`).join("")}</ul>`}${says}
<p class="soft">What was done and seen (${milliseconds} ms)</p><pre>${text(notes.join("\n"))}</pre>
${log.length === 0 ? "" : `<p class="soft">Effect log</p><pre>${text(log.map(logText).join("\n"))}</pre>`}
<p>Again: <code>${text(rerun)}</code></p></div></details>`
}

export const html = (report: Report): string => {
  const rows = cells(report).map(
    ({ counts, excludes, name, property, verdict }) =>
      `<tr><td><a href="#${property}"><b>${property}</b></a> ${text(name)}</td><td>${badge(verdict)}</td><td>${counts.map(([one, count]) => `${count} ${one}`).join("<br>")}</td><td class="soft">${text(excludes)}</td></tr>`
  )
  const sections = cells(report).map(
    ({ findings, name, property, statement }) =>
      `<h2 id="${property}">${property}: ${text(name)}</h2><p class="soft">${text(statement)}</p>${findings.map(evidence).join("\n")}`
  )
  const title = `${report.plane} ${report.version} under the resume contract`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(title)}</title><style>${style}</style></head><body>
<h1>${text(title)}</h1><p class="conclusion">${text(conclusion(report))}</p>
<p class="soft">${report.findings.length} probes: ${countsOf(report.findings)
    .map(([verdict, count]) => `${count} ${verdict}`)
    .join(", ")}. Driver: <code>${text(report.driver)}</code></p>
<div class="wide"><table><thead><tr><th>property</th><th>verdict</th><th>probes</th><th>what it excludes</th></tr></thead><tbody>${rows.join("\n")}</tbody></table></div>
${sections.join("\n")}
<h2>How to read this</h2><p>Each probe starts a small workflow, disturbs it (a SIGKILL at a barrier, racing deliveries, forks) and compares what the effects themselves wrote to a log outside the plane, and what the plane's inspection says, with the contract. No clock decides a verdict: a time limit only yields <i>no answer in time</i>. <i>Cannot be expressed</i> means that the plane has no means for what the probe needs; <i>not applicable</i>, that the driver or the machine cannot make the situation.</p>
</body></html>
`
}
