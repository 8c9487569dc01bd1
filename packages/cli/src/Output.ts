/** What commands print: JSON for programs, tables and short sentences for people. */
import { Console, Effect } from "effect"

/** Prints a value as one JSON document, or the lines that say it to a person. */
export const print = (json: boolean, value: unknown, lines: () => ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const text = json ? JSON.stringify(value) : lines().join("\n")
    return text === "" ? Effect.void : Console.log(text)
  })

/** A table: columns as wide as their longest cell; the last one is not padded. */
export const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): ReadonlyArray<string> => {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join("  ")
      .trimEnd()
  )
}

/** Milliseconds as people say them. */
export const duration = (millis: number): string => {
  if (millis < 1_000) return `${Math.round(millis)} ms`
  if (millis < 60_000) return `${(millis / 1_000).toFixed(1)} s`
  if (millis < 3_600_000) return `${Math.floor(millis / 60_000)} min ${Math.floor((millis % 60_000) / 1_000)} s`
  if (millis < 86_400_000) return `${Math.floor(millis / 3_600_000)} h ${Math.floor((millis % 3_600_000) / 60_000)} min`
  return `${Math.floor(millis / 86_400_000)} d ${Math.floor((millis % 86_400_000) / 3_600_000)} h`
}

/** A time, to the second. */
export const time = (millis: number): string => new Date(millis).toISOString().replace("T", " ").slice(0, 19)

/** Text from a database, for a terminal: without its control characters, and no longer than a line. */
export const oneLine = (text: string, most = 100): string => {
  // oxlint-disable-next-line no-control-regex -- stored text must not drive the terminal
  const clean = text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ")
  return clean.length <= most ? clean : `${clean.slice(0, most - 1)}…`
}
