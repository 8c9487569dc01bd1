/**
 * A transition system that can be explored exhaustively: a state is a row of cells, each 0 to 15.
 *
 * The explorer stores two cells a byte, compares full states (no hash stands for a state), and finds a shortest path to
 * whatever it reports.
 */

/** Hands over a successor. It is copied at once: the model may use the array again. */
export type Emit = (cells: Uint8Array, label: number, environment: boolean) => void

/** The system under exploration. All functions are pure: the same cells give the same calls in the same order. */
export interface PackedModel {
  readonly name: string
  /** Cells of a state. */
  readonly cells: number
  readonly initial: ReadonlyArray<Uint8Array>
  /** Calls `emit` for each successor of the state. `environment` says that it happens only if the outside wants it. */
  readonly next: (cells: Uint8Array, emit: Emit) => void
  /** As `next`, without the environment's. */
  readonly nextOfSystem: (cells: Uint8Array, emit: Emit) => void
  /** Names of the properties, at most 16; bit `n` of `broken` is the n-th. */
  readonly properties: ReadonlyArray<string>
  /** Properties that this state (with the history that it carries) breaks, as bits. */
  readonly broken: (cells: Uint8Array) => number
  /**
   * Liveness: with the environment silent every path must end, in a state in which the system may rest. The bit that
   * a path without end, or an end elsewhere, breaks; 0 if liveness is not asked for.
   */
  readonly liveness: { readonly bit: number; readonly mayRest: (cells: Uint8Array) => boolean } | undefined
  /** What a transition did, in a sentence. */
  readonly describe: (label: number, before: Uint8Array, after: Uint8Array) => string
  /** What is wrong with a state that breaks the property, in a sentence. */
  readonly explain: (property: number, cells: Uint8Array) => string
}

/** 32-bit words that hold a state of so many cells. */
export const wordsOf = (cells: number): number => (cells + 7) >> 3

/** Writes cells as words, eight a word. `cells` has room for whole words. */
export const pack = (cells: Uint8Array, words: Uint32Array, at: number, count: number): void => {
  for (let w = 0, c = 0; w < count; w++, c += 8) {
    words[at + w] =
      (cells[c] ?? 0) |
      ((cells[c + 1] ?? 0) << 4) |
      ((cells[c + 2] ?? 0) << 8) |
      ((cells[c + 3] ?? 0) << 12) |
      ((cells[c + 4] ?? 0) << 16) |
      ((cells[c + 5] ?? 0) << 20) |
      ((cells[c + 6] ?? 0) << 24) |
      ((cells[c + 7] ?? 0) << 28)
  }
}

/** Reads cells from words. */
export const unpack = (words: Uint32Array, at: number, count: number, cells: Uint8Array): void => {
  for (let w = 0, c = 0; w < count; w++, c += 8) {
    const word = words[at + w] ?? 0
    cells[c] = word & 15
    cells[c + 1] = (word >>> 4) & 15
    cells[c + 2] = (word >>> 8) & 15
    cells[c + 3] = (word >>> 12) & 15
    cells[c + 4] = (word >>> 16) & 15
    cells[c + 5] = (word >>> 20) & 15
    cells[c + 6] = (word >>> 24) & 15
    cells[c + 7] = word >>> 28
  }
}

/** A hash of a packed state. Equal states have equal hashes; nothing else is concluded from it. */
export const hashWords = (words: Uint32Array, at: number, count: number): number => {
  let h = 0x9e3779b9
  for (let w = 0; w < count; w++) {
    h = Math.imul(h ^ (words[at + w] ?? 0), 0x85ebca6b)
    h ^= h >>> 15
  }
  h = Math.imul(h, 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
