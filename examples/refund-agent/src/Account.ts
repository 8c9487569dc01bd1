/** The account: what was done, what was refused and by whom, the two branches, and what the shop's log says. */
import { type Entry, payloadOf } from "@fermata/contract"
import { Option, Schema } from "effect"
import type * as EffectLog from "./EffectLog.js"
import type { Doubts } from "./Doubts.js"
import type { Intake } from "./Intake.js"
import * as Money from "./Money.js"
import { Decision, type Outcome } from "./Refund.js"
import type { RefundRequest } from "./RefundRequest.js"
import { columns, shorten, type Terminal } from "./Terminal.js"
import type { Branch, WhatIf } from "./WhatIf.js"

/** What the demonstration saw. */
export interface Facts {
  readonly intake: Intake
  readonly outcomes: ReadonlyArray<{ readonly request: RefundRequest; readonly outcome: Outcome }>
  readonly whatIf: WhatIf
  readonly crashes: Crashes
}

/** What the workers went through. */
export interface Crashes {
  readonly kills: number
  readonly doubts: Doubts
}

type Paint = Terminal["paint"]

/** The account as lines. */
export const lines = (facts: Facts, log: ReadonlyArray<EffectLog.Entry>, paint: Paint): ReadonlyArray<string> => [
  ...section("What became of each request", requests(facts, paint), paint),
  ...section("Lines that started no run", turnedAway(facts.intake), paint),
  ...section(`Two branches of ${facts.whatIf.main.branch.split("/")[0] ?? ""}`, branches(facts.whatIf, paint), paint),
  ...section("The shop's effect log", effectLog(log, paint), paint)
]

const section = (title: string, body: ReadonlyArray<string>, paint: Paint): ReadonlyArray<string> => [
  "",
  paint.bold(title),
  ...body.map((line) => `   ${line}`)
]

const requests = ({ outcomes }: Facts, paint: Paint): ReadonlyArray<string> =>
  columns(
    outcomes.map(({ outcome, request }) => [
      request.id,
      shorten(request.customer, 26),
      Money.format(request.amount),
      sentence(outcome, paint)
    ]),
    ["left", "left", "right"]
  )

const sentence = (outcome: Outcome, paint: Paint): string =>
  outcome._tag === "Paid"
    ? `${paint.good("paid")}     ${outcome.receipt.payment}, granted by ${outcome.by}`
    : `${paint.bad("refused")}  by ${outcome.by}: ${outcome.why}`

const turnedAway = ({ turnedAway }: Intake): ReadonlyArray<string> =>
  columns(turnedAway.map(({ line, why }) => [`line ${line}`, why]))

const branches = ({ fork, main, shared }: WhatIf, paint: Paint): ReadonlyArray<string> => {
  const own = (branch: Branch) => branch.history.slice(shared).map(event)
  const [left, right] = [own(main), own(fork)]
  const rows = Array.from({ length: Math.max(left.length, right.length) }, (_, i) => [
    String(shared + i + 1),
    left[i] ?? "",
    right[i] ?? ""
  ])
  const common = main.history.slice(0, shared).map((entry, i) => [String(i + 1), event(entry), paint.dim("the same")])
  return columns(
    [["", paint.bold(main.branch), paint.bold(fork.branch)], ...common, ...rows, ["", ending(main), ending(fork)]],
    ["right"]
  )
}

const ending = ({ outcome }: Branch): string =>
  outcome._tag === "Paid" ? `paid ${Money.format(outcome.receipt.amount)}` : `refused by ${outcome.by}`

/** An entry of a journal in a few words: effects go by their step, not by their whole key. */
const event = (entry: Entry): string => {
  const key = entry.key.split("|")[1] ?? entry.key
  if (entry.kind !== "interrupt.answered") return `${entry.kind} ${key}`.trim()
  const { value } = payloadOf({ kind: entry.kind, payload: entry.payload })
  const decision = Schema.decodeUnknownOption(Decision)(value)
  const answer = Option.match(decision, {
    onNone: () => "?",
    onSome: ({ approved, by }) => `${approved ? "yes" : "no"}, ${by}`
  })
  return `${entry.kind} ${key}: ${answer}`
}

const effectLog = (log: ReadonlyArray<EffectLog.Entry>, paint: Paint): ReadonlyArray<string> => [
  ...columns(
    log
      .filter(({ what }) => what !== "letter")
      .map(({ amount, key, n, request, what }) => [
        paint.dim(String(n)),
        request,
        amount === undefined ? "" : Money.format(amount),
        what === "payment" ? paint.good(what) : paint.warn(what),
        paint.dim(`key ${key.slice(0, 8)}…`)
      ]),
    ["right", "left", "right"]
  ),
  `and ${count(log, "letter")} letters; ${count(log, "letter asked for again")} times one was asked for again, and not sent again`
]

/** The last lines: what all of it comes to. `crashes` is absent when only a log is judged. */
export const verdict = (
  crashes: Crashes | undefined,
  log: ReadonlyArray<EffectLog.Entry>,
  findings: ReadonlyArray<string>,
  paint: Paint
): ReadonlyArray<string> => {
  const payments = log.flatMap(({ amount, what }) => (what === "payment" && amount !== undefined ? [amount] : []))
  return [
    "",
    ...(crashes === undefined ? [] : [survived(crashes)]),
    `${payments.length} payments: ${Money.total(payments).map(Money.format).join(", ")}`,
    ...(findings.length === 0
      ? [paint.good("Every payment is in the shop's log exactly once, and none that should not be.")]
      : [paint.bad("The shop's log is not what it must be:"), ...findings.map((finding) => `   ${finding}`)])
  ]
}

const survived = ({ doubts, kills }: Crashes): string =>
  `${kills} workers killed with SIGKILL left ${doubts.happened + doubts.never} payments in doubt: ` +
  `${doubts.happened} had happened and stayed so, ${doubts.never} had not and were made`

const count = (log: ReadonlyArray<EffectLog.Entry>, what: EffectLog.What): number =>
  log.filter((entry) => entry.what === what).length
