/** Models whose state counts are known: from arithmetic, or from the literature. */
import type { Emit, PackedModel } from "@fermata/contract/model"

const room = (cells: number): Uint8Array => new Uint8Array(((cells + 7) >> 3) * 8)

/** A model of moves: `moves` gives each successor with a name. No property unless `bad` says what a bad state is. */
export const toy = (options: {
  readonly name: string
  readonly cells: number
  readonly initial: ReadonlyArray<number>
  readonly moves: (state: Uint8Array) => ReadonlyArray<{ readonly to: ReadonlyArray<number>; readonly what: string }>
  readonly bad?: (state: Uint8Array) => boolean
  /** Asks for liveness: states in which the system may rest. */
  readonly mayRest?: (state: Uint8Array) => boolean
  /** Moves of these names are the environment's. */
  readonly environment?: ReadonlyArray<string>
}): PackedModel => {
  const { cells, bad, mayRest, moves, environment = [] } = options
  const filled = (values: ReadonlyArray<number>): Uint8Array => {
    const state = room(cells)
    state.set(values)
    return state
  }
  const next = (state: Uint8Array, emit: Emit): void =>
    moves(state).forEach(({ to, what }, n) => emit(filled(to), n, environment.includes(what)))
  return {
    name: options.name,
    cells,
    initial: [filled(options.initial)],
    next,
    nextOfSystem: (state, emit) =>
      next(state, (to, label, outside) => (outside ? undefined : emit(to, label, outside))),
    properties: ["safe", "live"],
    broken: (state) => (bad?.(state) === true ? 1 : 0),
    liveness: mayRest === undefined ? undefined : { bit: 2, mayRest },
    describe: (label, before) => moves(before)[label]?.what ?? "",
    explain: (property) => (property === 0 ? "a bad state" : "it cannot rest here")
  }
}

/** The cells of a state as numbers. */
export const cellsOf = (state: Uint8Array, count: number): Array<number> => Array.from(state.slice(0, count))

/** A counter of so many bits that counts up and stops: 2^bits states in a row. `without` leaves one increment out. */
export const counter = (bits: number, without = -1): PackedModel =>
  toy({
    name: `counter of ${bits} bits`,
    cells: bits,
    initial: Array.from({ length: bits }, () => 0),
    moves: (state) => {
      const value = cellsOf(state, bits).reduce((sum, bit, n) => sum + bit * 2 ** n, 0)
      if (value === 2 ** bits - 1 || value === without) return []
      return [{ to: Array.from({ length: bits }, (_, n) => ((value + 1) >> n) & 1), what: "count" }]
    }
  })

/** A sliding puzzle: `(width * height)! / 2` positions. */
export const slidingPuzzle = (width: number, height: number, forbidden?: "up"): PackedModel => {
  const size = width * height
  return toy({
    name: `${width} by ${height} puzzle`,
    cells: size,
    initial: Array.from({ length: size }, (_, n) => n),
    moves: (state) => {
      const board = cellsOf(state, size)
      const hole = board.indexOf(0)
      const [x, y] = [hole % width, Math.floor(hole / width)]
      return [
        { dx: 1, dy: 0, what: "left" },
        { dx: -1, dy: 0, what: "right" },
        { dx: 0, dy: 1, what: "up" },
        { dx: 0, dy: -1, what: "down" }
      ].flatMap(({ dx, dy, what }) => {
        const [fromX, fromY] = [x + dx, y + dy]
        if (what === forbidden || fromX < 0 || fromX >= width || fromY < 0 || fromY >= height) return []
        const to = [...board]
        const from = fromY * width + fromX
        to[hole] = to[from] ?? 0
        to[from] = 0
        return [{ to, what }]
      })
    }
  })
}

/** Philosophers who take the left fork, then the right one, and put both back. They can starve together. */
export const philosophers = (count: number): PackedModel =>
  toy({
    name: `${count} philosophers`,
    cells: count,
    initial: Array.from({ length: count }, () => 0),
    // 0 thinks, 1 holds the left fork, 2 eats. The left fork of one is the right fork of the one before.
    moves: (state) => {
      const all = cellsOf(state, count)
      return all.flatMap((phase, n) => {
        const before = all[(n + count - 1) % count] ?? 0
        const after = all[(n + 1) % count] ?? 0
        const to = (next: number, what: string) => [{ to: all.with(n, next), what: `${n} ${what}` }]
        if (phase === 0) return before === 2 ? [] : to(1, "takes the left fork")
        if (phase === 1) return after === 0 ? to(2, "takes the right fork") : []
        return to(0, "puts both back")
      })
    },
    bad: (state) => cellsOf(state, count).every((phase) => phase === 1)
  })

/**
 * How many states philosophers have, without exploring: closed walks in the graph of which phase may sit right of which
 * (right of an eater only a thinker), so the trace of a matrix power.
 */
export const philosopherStates = (count: number): number => {
  const may = [
    [1, 1, 1],
    [1, 1, 1],
    [1, 0, 0]
  ]
  const times = (a: ReadonlyArray<ReadonlyArray<number>>, b: ReadonlyArray<ReadonlyArray<number>>) =>
    a.map((row) => [0, 1, 2].map((column) => row.reduce((sum, value, k) => sum + value * (b[k]?.[column] ?? 0), 0)))
  let power: ReadonlyArray<ReadonlyArray<number>> = may
  for (let n = 1; n < count; n++) power = times(power, may)
  return power.reduce((sum, row, n) => sum + (row[n] ?? 0), 0)
}

/** Three missionaries, three cannibals, a boat for two: 16 safe positions are reachable, and the crossing takes 11 trips. */
export const missionaries: PackedModel = toy({
  name: "missionaries",
  cells: 3,
  // Missionaries and cannibals on the first bank, and the boat.
  initial: [3, 3, 1],
  moves: (state) => {
    const [m = 0, c = 0, boat = 0] = cellsOf(state, 3)
    const sign = boat === 1 ? -1 : 1
    return [
      [1, 0],
      [2, 0],
      [0, 1],
      [0, 2],
      [1, 1]
    ].flatMap(([dm = 0, dc = 0]) => {
      const [nm, nc] = [m + sign * dm, c + sign * dc]
      if (nm < 0 || nm > 3 || nc < 0 || nc > 3) return []
      const eaten = (nm > 0 && nm < nc) || (3 - nm > 0 && 3 - nm < 3 - nc)
      return eaten ? [] : [{ to: [nm, nc, 1 - boat], what: `${dm} and ${dc} cross` }]
    })
  },
  bad: (state) => state[0] === 0 && state[1] === 0
})

/** Jugs of three and five gallons: 16 states, four gallons after six pourings. */
export const jugs: PackedModel = toy({
  name: "jugs",
  cells: 2,
  initial: [0, 0],
  moves: (state) => {
    const [small = 0, big = 0] = cellsOf(state, 2)
    const over = Math.min(small, 5 - big)
    const back = Math.min(big, 3 - small)
    return [
      { to: [3, big], what: "fill the small one" },
      { to: [small, 5], what: "fill the big one" },
      { to: [0, big], what: "empty the small one" },
      { to: [small, 0], what: "empty the big one" },
      { to: [small - over, big + over], what: "small into big" },
      { to: [small + back, big - back], what: "big into small" }
    ]
  },
  bad: (state) => state[1] === 4
})

/** The towers of Hanoi: 3^discs states, and 2^discs - 1 moves to the other peg. */
export const hanoi = (discs: number): PackedModel =>
  toy({
    name: `${discs} discs`,
    cells: discs,
    initial: Array.from({ length: discs }, () => 0),
    // The peg of each disc, smallest first.
    moves: (state) => {
      const pegs = cellsOf(state, discs)
      const top = (peg: number): number => pegs.indexOf(peg)
      return pegs.flatMap((from, disc) =>
        top(from) !== disc
          ? []
          : [0, 1, 2].flatMap((to) =>
              to === from || (top(to) !== -1 && top(to) < disc)
                ? []
                : [{ to: pegs.with(disc, to), what: `${disc} to ${to}` }]
            )
      )
    },
    bad: (state) => cellsOf(state, discs).every((peg) => peg === 2)
  })

/** Peterson's algorithm for two: `polite: false` forgets to give way. */
export const peterson = (polite = true): PackedModel =>
  toy({
    name: "Peterson",
    // Program counters, flags, turn.
    cells: 5,
    initial: [0, 0, 0, 0, 0],
    moves: (state) => {
      const all = cellsOf(state, 5)
      return [0, 1].flatMap((self) => {
        const other = 1 - self
        const go = (changes: Readonly<Record<number, number>>, what: string) => [
          { to: all.map((value, n) => changes[n] ?? value), what: `${self} ${what}` }
        ]
        switch (all[self]) {
          case 0:
            return go({ [self]: 1, [2 + self]: 1 }, "raises its flag")
          case 1:
            return go({ [self]: 2, 4: polite ? other : self }, "gives way")
          case 2:
            return all[2 + other] === 1 && all[4] === other ? [] : go({ [self]: 3 }, "enters")
          default:
            return go({ [self]: 0, [2 + self]: 0 }, "leaves")
        }
      })
    },
    bad: (state) => state[0] === 3 && state[1] === 3
  })
