/** The table that a reader gets, and the JSON that a program gets. */
import { type Figure, type Goal, isMet, type Quantity } from "./Figure.js"

/** One line's figures, or why there are none. */
export interface Outcome {
  readonly target: string
  readonly line: string
  readonly figures: ReadonlyArray<Figure>
  readonly failure: string | undefined
}

const number = (value: number): string =>
  value.toLocaleString(
    "en",
    value >= 100 ? { maximumFractionDigits: 0 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 }
  )

const quantity = ({ unit, value }: Quantity): string => `${number(value)} ${unit}`

const goalText = (goal: Goal): string => ("atLeast" in goal ? `≥ ${number(goal.atLeast)}` : `≤ ${number(goal.atMost)}`)

const headings = ["", "measured", "beside", "", "ratio", "goal", ""]

const row = (figure: Figure): ReadonlyArray<string> => [
  figure.what,
  quantity(figure.measured),
  quantity(figure.limit),
  figure.limit.what === quantity({ value: figure.limit.value, unit: figure.limit.unit }) ? "" : figure.limit.what,
  number(figure.ratio),
  goalText(figure.goal),
  isMet(figure) ? "met" : "MISSED"
]

/** Figures are right-aligned, words left-aligned. */
const rightAligned = new Set([1, 2, 4, 5])

/** The table of one kind of database. */
export const table = (title: string, outcomes: ReadonlyArray<Outcome>): string => {
  const rows = [headings, ...outcomes.flatMap((outcome) => outcome.figures.map(row))]
  const widths = headings.map((_, column) => Math.max(...rows.map((cells) => (cells[column] ?? "").length)))
  const lines = rows.map((cells) =>
    cells
      .map((cell, column) =>
        rightAligned.has(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)
      )
      .join("  ")
      .trimEnd()
  )
  const failures = outcomes.flatMap((outcome) =>
    outcome.failure === undefined ? [] : [`${outcome.line}: not measured\n${outcome.failure}`]
  )
  return [title, ...lines, ...failures].join("\n")
}

/** Everything that was measured, as one JSON document. */
export const json = (outcomes: ReadonlyArray<Outcome>): string =>
  JSON.stringify(
    outcomes.map(({ failure, figures, line, target }) => ({
      database: target,
      line,
      figures: figures.map((figure) => ({ ...figure, met: isMet(figure) })),
      ...(failure === undefined ? {} : { failure })
    })),
    undefined,
    2
  )
