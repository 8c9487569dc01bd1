/**
 * The fault matrix: every fault in every world, every property looked at in every reachable state; and which faults
 * separate which properties (one is broken while the other holds, so the other does not imply it).
 */
import { properties, type PropertyId } from "../Property.js"
import { type Decisions, shippedDecisions } from "./Decisions.js"
import { type Counterexample, type Exploration, explore } from "./Explorer.js"
import { type FaultId, faultIds } from "./PlaneFault.js"
import { makePlane } from "./PlaneModel.js"
import { type World, worlds } from "./PlaneWorld.js"

/** One fault and one property, over all worlds. */
export type MatrixCell =
  | { readonly verdict: "holds" }
  /** `length` is the transitions of the shortest counterexample, found in `world`. */
  | { readonly verdict: "broken"; readonly length: number; readonly world: string }

/** One fault, or none. */
export interface MatrixRow {
  readonly fault: FaultId | "none"
  /** Distinct states by world: in all of them, what holds was found to hold. */
  readonly states: Readonly<Record<string, number>>
  readonly cells: Readonly<Record<PropertyId, MatrixCell>>
}

/** The whole matrix. It is a function of the worlds, the faults and the decisions: no time, no order of threads. */
export interface Matrix {
  readonly rows: ReadonlyArray<MatrixRow>
  /** `separations[P][Q]`: the faults that break P while Q holds. */
  readonly separations: Readonly<Record<PropertyId, Readonly<Record<PropertyId, ReadonlyArray<FaultId>>>>>
}

/** One exploration of the matrix, as it ends. */
export interface MatrixProgress {
  readonly fault: FaultId | "none"
  readonly world: World
  readonly exploration: Exploration
}

const ids = properties.map(({ id }) => id)

/** An object with a value for each property. */
const byProperty = <A>(of: (id: PropertyId) => A): Readonly<Record<PropertyId, A>> => ({
  PC: of("PC"),
  EO: of("EO"),
  FD: of("FD"),
  CV: of("CV"),
  CO: of("CO"),
  RD: of("RD"),
  FI: of("FI"),
  LV: of("LV")
})

/** Explores every cell. `onExplored` hears of each exploration; it may keep the counterexamples. */
export const makeMatrix = (
  options: {
    readonly faults?: ReadonlyArray<FaultId | "none">
    readonly worlds?: ReadonlyArray<World>
    readonly decisions?: Decisions
    readonly onExplored?: (progress: MatrixProgress) => void
  } = {}
): Matrix => {
  const { decisions = shippedDecisions } = options
  const rows = (options.faults ?? ["none", ...faultIds]).map((fault): MatrixRow => {
    const states: Record<string, number> = {}
    const shortest = new Map<string, { readonly length: number; readonly world: string }>()
    for (const world of options.worlds ?? worlds) {
      const exploration = explore(makePlane(world, fault === "none" ? { decisions } : { fault, decisions }))
      options.onExplored?.({ fault, world, exploration })
      if (!exploration.exhaustive)
        throw new Error(`${exploration.model} is too large: ${exploration.states} states were not all`)
      states[world.name] = exploration.states
      for (const { property, steps } of exploration.broken) {
        const known = shortest.get(property)
        if (known === undefined || steps.length < known.length) {
          shortest.set(property, { length: steps.length, world: world.name })
        }
      }
      if (fault === "none" && exploration.broken.some(({ property }) => property === "well-formed")) {
        throw new Error(`${world.name} reaches a state that is not well-formed`)
      }
    }
    const cells = byProperty((id): MatrixCell => {
      const found = shortest.get(id)
      return found === undefined ? { verdict: "holds" } : { verdict: "broken", ...found }
    })
    return { fault, states, cells }
  })
  const separations = byProperty((broken) =>
    byProperty((held) =>
      rows.flatMap(({ fault, cells }) =>
        fault !== "none" && cells[broken].verdict === "broken" && cells[held].verdict === "holds" ? [fault] : []
      )
    )
  )
  return { rows, separations }
}

/** All distinct states of a row. */
export const statesOf = ({ states }: MatrixRow): number => Object.values(states).reduce((sum, n) => sum + n, 0)

const cellText = (row: MatrixRow, id: PropertyId): string => {
  const cell = row.cells[id]
  return cell.verdict === "holds" ? `holds (${statesOf(row)})` : `broken (${cell.length})`
}

/** The matrix as columns of text, for a terminal. */
export const matrixText = (matrix: Matrix): string => {
  const lines = [["fault", ...ids], ...matrix.rows.map((row) => [row.fault, ...ids.map((id) => cellText(row, id))])]
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const table = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()
  )
  return [
    ...table,
    "",
    "holds (n): in all n distinct states of all worlds. broken (n): by a shortest counterexample of n transitions.",
    "",
    "Separations: the property on the left is broken while the one after the arrow holds, in the model named.",
    ...separationLines(matrix)
  ].join("\n")
}

const separationLines = ({ separations }: Matrix): ReadonlyArray<string> =>
  ids.flatMap((broken) =>
    ids.flatMap((held) => {
      const by = separations[broken][held]
      if (broken === held) return []
      return [`  ${broken} -> ${held}: ${by.length === 0 ? "none" : by.join(", ")}`]
    })
  )

/** The matrix as Markdown. */
export const matrixMarkdown = (matrix: Matrix): string => {
  const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`
  const [none] = matrix.rows
  return [
    "# The fault matrix",
    "",
    "`holds (n)`: in all n distinct states of all worlds. `broken (n)`: by a shortest counterexample of n transitions.",
    "`npm run contract:matrix -- --story FAULT` tells the counterexamples.",
    "",
    line(["fault", ...ids]),
    line(["---", ...ids.map(() => "---")]),
    ...matrix.rows.map((row) => line([row.fault, ...ids.map((id) => cellText(row, id))])),
    "",
    "## Separations",
    "",
    "The property of the row is broken while that of the column holds, under the fewest-sided fault that does so: so the column does",
    "not imply the row.",
    "",
    line(["broken \\ holds", ...ids]),
    line(["---", ...ids.map(() => "---")]),
    ...ids.map((broken) =>
      line([broken, ...ids.map((held) => (held === broken ? "" : (narrowest(matrix, broken, held) ?? "none")))])
    ),
    "",
    "## Worlds",
    "",
    line(["world", "distinct states without a fault"]),
    line(["---", "---"]),
    ...Object.entries(none?.states ?? {}).map(([name, states]) => line([name, String(states)])),
    ""
  ].join("\n")
}

/** The fault that separates two properties and breaks the fewest others. */
const narrowest = ({ rows, separations }: Matrix, broken: PropertyId, held: PropertyId): FaultId | undefined => {
  const breaks = (fault: FaultId): number => {
    const row = rows.find((one) => one.fault === fault)
    return row === undefined ? ids.length : ids.filter((id) => row.cells[id].verdict === "broken").length
  }
  return separations[broken][held].toSorted((a, b) => breaks(a) - breaks(b))[0]
}

/** The shortest counterexample of each property that the fault breaks, over all worlds, with the world that it was found in. */
export const counterexamplesOf = (fault: FaultId): ReadonlyArray<Counterexample & { readonly world: string }> => {
  const shortest = new Map<string, Counterexample & { readonly world: string }>()
  makeMatrix({
    faults: [fault],
    onExplored: ({ world, exploration }) => {
      for (const found of exploration.broken) {
        const known = shortest.get(found.property)
        if (known === undefined || found.steps.length < known.steps.length) {
          shortest.set(found.property, { ...found, world: world.name })
        }
      }
    }
  })
  return ids.flatMap((id) => shortest.get(id) ?? [])
}
