/**
 * The set of states seen: full states in an arena, found by an open-addressing table of their numbers.
 *
 * Numbers are given in the order of insertion, so that a breadth-first search reads the arena as its queue. Arena and
 * table grow by pieces; `bytes` is what they hold.
 */
import { hashWords } from "./PackedModel.js"

const pieceBits = 14
const pieceStates = 1 << pieceBits
const pieceMask = pieceStates - 1
const none32 = new Uint32Array(0)
const none16 = new Uint16Array(0)

/** The states of one partition. */
export class StateTable {
  /** States so far. */
  count = 0
  private pieces: Array<Uint32Array> = []
  private before: Array<Uint32Array> = []
  private waiting: Array<Uint16Array> = []
  private slots: Uint32Array
  private mask: number

  constructor(private readonly words: number) {
    this.slots = new Uint32Array(1 << 12)
    this.mask = this.slots.length - 1
  }

  /** Memory that the states, their predecessors and the table take. */
  get bytes(): number {
    return this.pieces.length * pieceStates * (this.words * 4 + 4 + 2) + this.slots.byteLength
  }

  /**
   * The number of the state in `words` at `at`, and whether it is new (negative: `-1 - number`). `predecessor` is kept
   * for a new one.
   */
  insert(state: Uint32Array, at: number, hash: number, predecessor: number): number {
    const { words, mask, slots } = this
    let slot = hash & mask
    for (;;) {
      const held = slots[slot] ?? 0
      if (held === 0) break
      const index = held - 1
      const piece = this.pieceOf(index)
      const base = (index & pieceMask) * words
      let w = 0
      while (w < words && piece[base + w] === state[at + w]) w++
      if (w === words) return index
      slot = (slot + 1) & mask
    }
    const index = this.count++
    const local = index & pieceMask
    if (local === 0) {
      this.pieces.push(new Uint32Array(pieceStates * words))
      this.before.push(new Uint32Array(pieceStates))
      this.waiting.push(new Uint16Array(pieceStates))
    }
    const before = this.before[index >>> pieceBits] ?? none32
    const piece = this.pieceOf(index)
    const base = local * words
    for (let w = 0; w < words; w++) piece[base + w] = state[at + w] ?? 0
    before[local] = predecessor
    slots[slot] = index + 1
    if (this.count * 2 > slots.length) this.grow()
    return -1 - index
  }

  /** The number of a state that was inserted, or -1. */
  find(state: Uint32Array, at: number, hash: number): number {
    const { words, mask, slots } = this
    let slot = hash & mask
    for (;;) {
      const held = slots[slot] ?? 0
      if (held === 0) return -1
      const index = held - 1
      const piece = this.pieceOf(index)
      const base = (index & pieceMask) * words
      let w = 0
      while (w < words && piece[base + w] === state[at + w]) w++
      if (w === words) return index
      slot = (slot + 1) & mask
    }
  }

  /** The arena that holds a state, and where in it; read at once, by `pieceOf(i)` from `baseOf(i)`. */
  pieceOf(index: number): Uint32Array {
    return this.pieces[index >>> pieceBits] ?? none32
  }

  baseOf(index: number): number {
    return (index & pieceMask) * this.words
  }

  predecessorOf(index: number): number {
    return (this.before[index >>> pieceBits] ?? none32)[index & pieceMask] ?? 0
  }

  /** Counts one more system transition that leads here. */
  addWaiting(index: number): void {
    const counts = this.waiting[index >>> pieceBits] ?? none16
    const local = index & pieceMask
    const count = counts[local] ?? 0
    if (count === 0xffff) throw new Error("more than 65,535 transitions lead to one state")
    counts[local] = count + 1
  }

  /** Takes one off; true if none is left. */
  takeWaiting(index: number): boolean {
    const counts = this.waiting[index >>> pieceBits] ?? none16
    const local = index & pieceMask
    const count = (counts[local] ?? 0) - 1
    counts[local] = count
    return count === 0
  }

  waitingOf(index: number): number {
    return (this.waiting[index >>> pieceBits] ?? none16)[index & pieceMask] ?? 0
  }

  private grow(): void {
    const slots = new Uint32Array(this.slots.length * 2)
    const mask = slots.length - 1
    for (let index = 0; index < this.count; index++) {
      let slot = hashWords(this.pieceOf(index), this.baseOf(index), this.words) & mask
      while (slots[slot] !== 0) slot = (slot + 1) & mask
      slots[slot] = index + 1
    }
    this.slots = slots
    this.mask = mask
  }
}
