/**
 * Breadth-first, exhaustive, deterministic exploration of a packed model.
 *
 * Every reachable state is visited once and every property is looked at in it, also beyond states that break another: one
 * exploration answers for all properties, each by a shortest path to a state that breaks it or by the number of states in which
 * it holds. Liveness is decided exactly: a state with no transition of the system's own must be one in which it may
 * rest, and the system's own transitions must form no cycle (found by peeling off states that nothing unpeeled leads to).
 */
import { hashWords, pack, type PackedModel, unpack, wordsOf } from "./PackedModel.js"
import { StateTable } from "./StateTable.js"

/** One step of a counterexample. */
export interface StoryStep {
  readonly what: string
  readonly environment: boolean
}

/** A shortest path to a state that breaks a property. */
export interface Counterexample {
  readonly property: string
  readonly steps: ReadonlyArray<StoryStep>
  /** What is wrong at the end of it. */
  readonly why: string
}

/** What became of one exploration. */
export interface Exploration {
  readonly model: string
  /** Distinct states. */
  readonly states: number
  /** Successors that were generated, distinct or not. */
  readonly generated: number
  /** Transitions on the longest of the shortest paths. */
  readonly depth: number
  /** False if a bound stopped it: what holds then, holds in the states seen only. */
  readonly exhaustive: boolean
  readonly broken: ReadonlyArray<Counterexample>
  readonly seconds: number
  /** Memory of states, predecessors and table, divided by the states. */
  readonly bytesPerState: number
}

/** What bounds an exploration. */
export interface ExploreOptions {
  /** The most memory that the states may take; 4 GB by default. */
  readonly maxBytes?: number
  readonly maxStates?: number
}

const noPredecessor = 0xffffffff

/** Explores the model on the calling thread. */
export const explore = (model: PackedModel, options: ExploreOptions = {}): Exploration => {
  const { maxBytes = 4e9, maxStates = 2 ** 31 } = options
  const since = performance.now()
  const words = wordsOf(model.cells)
  const table = new StateTable(words)
  const packed = new Uint32Array(words)
  const cells = new Uint8Array(words * 8)
  const { liveness } = model
  /** First state (by number) that breaks each property. */
  const firstBroken = model.properties.map(() => -1)
  let left = (1 << model.properties.length) - 1
  let generated = 0
  let depth = 0
  let levelEnd = 0
  let exhaustive = true

  const note = (index: number, bits: number): void => {
    for (let p = 0; p < firstBroken.length; p++) {
      if ((bits & (1 << p)) !== 0 && firstBroken[p] === -1) {
        firstBroken[p] = index
        left &= ~(1 << p)
      }
    }
  }

  let from = noPredecessor
  let owned = 0
  const emit = (successor: Uint8Array, _label: number, environment: boolean): void => {
    generated++
    pack(successor, packed, 0, words)
    const found = table.insert(packed, 0, hashWords(packed, 0, words), from)
    const index = found < 0 ? -1 - found : found
    if (found < 0 && left !== 0) {
      const bits = model.broken(successor) & left
      if (bits !== 0) note(index, bits)
    }
    if (!environment) {
      owned++
      if (liveness !== undefined) table.addWaiting(index)
    }
  }

  for (const state of model.initial) emit(state, 0, true)
  levelEnd = table.count
  for (let index = 0; index < table.count; index++) {
    if (table.count > maxStates || ((index & 1023) === 0 && table.bytes > maxBytes)) {
      exhaustive = false
      break
    }
    if (index === levelEnd) {
      depth++
      levelEnd = table.count
    }
    unpack(table.pieceOf(index), table.baseOf(index), words, cells)
    from = index
    owned = 0
    model.next(cells, emit)
    if (owned === 0 && liveness !== undefined && (left & liveness.bit) !== 0 && !liveness.mayRest(cells)) {
      note(index, liveness.bit)
    }
  }
  const endless =
    liveness !== undefined && exhaustive && (left & liveness.bit) !== 0 ? onCycle(model, table, words) : undefined
  if (endless !== undefined && liveness !== undefined) note(endless, liveness.bit)
  const seconds = (performance.now() - since) / 1000
  return {
    model: model.name,
    states: table.count,
    generated,
    depth,
    exhaustive,
    broken: firstBroken.flatMap((index, p) =>
      index === -1 ? [] : [counterexample(model, pathTo(table, index, words), p, index === endless)]
    ),
    seconds,
    bytesPerState: table.bytes / table.count
  }
}

/** A state from which the system's own transitions lead back to it, the first by number; `undefined` if there is none. */
const onCycle = (model: PackedModel, table: StateTable, words: number): number | undefined => {
  const packed = new Uint32Array(words)
  const cells = new Uint8Array(words * 8)
  const peel: Array<number> = []
  for (let index = 0; index < table.count; index++) if (table.waitingOf(index) === 0) peel.push(index)
  let peeled = 0
  const emit = (successor: Uint8Array): void => {
    pack(successor, packed, 0, words)
    const index = table.find(packed, 0, hashWords(packed, 0, words))
    if (table.takeWaiting(index)) peel.push(index)
  }
  for (let index = peel.pop(); index !== undefined; index = peel.pop()) {
    peeled++
    unpack(table.pieceOf(index), table.baseOf(index), words, cells)
    model.nextOfSystem(cells, emit)
  }
  if (peeled === table.count) return undefined
  // What is left lies on a cycle or behind one: the first that leads back to itself is the one to show.
  for (let index = 0; index < table.count; index++) {
    if (table.waitingOf(index) > 0 && leadsBack(model, table, words, index)) return index
  }
  return undefined
}

const leadsBack = (model: PackedModel, table: StateTable, words: number, start: number): boolean => {
  const packed = new Uint32Array(words)
  const cells = new Uint8Array(words * 8)
  const seen = new Set<number>()
  const stack = [start]
  for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
    if (seen.has(start)) return true
    unpack(table.pieceOf(index), table.baseOf(index), words, cells)
    model.nextOfSystem(cells, (successor) => {
      pack(successor, packed, 0, words)
      const next = table.find(packed, 0, hashWords(packed, 0, words))
      if (table.waitingOf(next) === 0 || seen.has(next)) return
      seen.add(next)
      stack.push(next)
    })
  }
  return seen.has(start)
}

const pathTo = (table: StateTable, end: number, words: number): ReadonlyArray<Uint8Array> => {
  const path: Array<Uint8Array> = []
  for (let index = end; index !== noPredecessor; index = table.predecessorOf(index)) {
    const cells = new Uint8Array(words * 8)
    unpack(table.pieceOf(index), table.baseOf(index), words, cells)
    path.unshift(cells)
  }
  return path
}

/** Tells the path by finding, state by state, the transition that leads on. */
export const counterexample = (
  model: PackedModel,
  path: ReadonlyArray<Uint8Array>,
  property: number,
  endless: boolean
): Counterexample => {
  const words = wordsOf(model.cells)
  const steps: Array<StoryStep> = []
  for (let n = 1; n < path.length; n++) {
    const before = path[n - 1]
    const after = path[n]
    if (before === undefined || after === undefined) continue
    const goal = new Uint32Array(words)
    pack(after, goal, 0, words)
    const packed = new Uint32Array(words)
    let told = false
    model.next(before, (successor, label, environment) => {
      if (told) return
      pack(successor, packed, 0, words)
      for (let w = 0; w < words; w++) if (packed[w] !== goal[w]) return
      told = true
      steps.push({ what: model.describe(label, before, after), environment })
    })
  }
  const last = path.at(-1) ?? new Uint8Array(words * 8)
  return {
    property: model.properties[property] ?? "",
    steps,
    why: endless ? "From here the system goes round for ever by its own transitions." : model.explain(property, last)
  }
}

/** A counterexample as text: numbered steps, what the outside did marked, and what broke. */
export const story = (found: Counterexample): string =>
  [
    ...found.steps.map(
      ({ what, environment }, n) => `${String(n + 1).padStart(3)}. ${environment ? "» " : "  "}${what}`
    ),
    `     ${found.property} is broken: ${found.why}`
  ].join("\n")
