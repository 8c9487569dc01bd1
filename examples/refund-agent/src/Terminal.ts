/** What people see: colour and progress in a terminal, plain text in a pipe or under NO_COLOR. */
import { Effect } from "effect"

/** Where the demonstration speaks. */
export interface Terminal {
  /** A line that stays. */
  readonly say: (line?: string) => Effect.Effect<void>
  /** A line that the next one replaces; nothing at all outside a terminal. */
  readonly progress: (line: string) => Effect.Effect<void>
  readonly paint: Readonly<Record<"bold" | "dim" | "good" | "bad" | "warn", (text: string) => string>>
}

/** The terminal behind this stream. */
export const make = (stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Terminal => {
  const lively = stream.isTTY === true && env["TERM"] !== "dumb" && (env["NO_COLOR"] ?? "") === ""
  const colour = (code: string) => (text: string) => (lively ? `\u001b[${code}m${text}\u001b[0m` : text)
  const clear = lively ? "\r\u001b[2K" : ""
  // Whoever reads may leave early (`npm start | head`).
  stream.on("error", () => {})
  return {
    say: (line = "") => Effect.sync(() => void stream.write(`${clear}${line}\n`)),
    progress: (line) => Effect.sync(() => void (lively && stream.write(`${clear}${line}`))),
    paint: { bold: colour("1"), dim: colour("2"), good: colour("32"), bad: colour("31"), warn: colour("33") }
  }
}

/** Cells in columns. Widths are those of a terminal: East Asian characters take two places, marks take none. */
export const columns = (
  rows: ReadonlyArray<ReadonlyArray<string>>,
  align: ReadonlyArray<"left" | "right"> = []
): ReadonlyArray<string> => {
  const widths: Array<number> = []
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, width(cell))))
  return rows.map((row) =>
    row
      .map((cell, i) => {
        const gap = " ".repeat((widths[i] ?? 0) - width(cell))
        return align[i] === "right" ? gap + cell : cell + gap
      })
      .join("  ")
      .trimEnd()
  )
}

// oxlint-disable-next-line no-control-regex -- colours are control sequences
const invisible = /\u001b\[\d*m|\p{Mn}/gu
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u

const width = (text: string): number =>
  [...text.replace(invisible, "")].reduce((sum, character) => sum + (wide.test(character) ? 2 : 1), 0)

/** The text within this width. */
export const shorten = (text: string, length: number): string =>
  width(text) <= length ? text : `${[...text].slice(0, length - 1).join("")}…`
