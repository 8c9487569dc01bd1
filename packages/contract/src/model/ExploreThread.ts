/**
 * One thread of a parallel exploration: it owns the states whose hash falls to it, and exchanges successors with the other threads
 * in rounds.
 *
 * A round is: expand own states of the current level until a box is nearly full, wait for all, take in what the others put
 * into the boxes for this thread, wait for all. A level ends when nobody has states of it left, so that the search is
 * breadth-first over all threads; which thread runs faster changes nothing about what is found.
 */
import { parentPort, workerData } from "node:worker_threads"
import { hashWords, pack, type PackedModel, unpack, wordsOf } from "./PackedModel.js"
import {
  boxRecords,
  noPredecessor,
  referenceBits,
  sharedWords,
  type StateReply,
  type StateRequest,
  type ThreadData,
  type ThreadReport
} from "./ExploreProtocol.js"
import { StateTable } from "./StateTable.js"

/** More successors than one state has. */
const mostSuccessors = 1024

class Thread {
  private readonly words: number
  private readonly record: number
  private readonly table: StateTable
  private readonly packed: Uint32Array
  private readonly cells: Uint8Array
  private readonly control: Int32Array
  private readonly outboxes: ReadonlyArray<Uint32Array>
  private readonly inboxes: ReadonlyArray<Uint32Array>
  private readonly firstBroken: Array<{ depth: number; reference: number } | undefined>
  private left: number
  private generated = 0
  private depth = 0
  private levelEnd = 0
  private cursor = 0
  private from = noPredecessor
  private owned = 0
  private round = 0

  constructor(
    private readonly model: PackedModel,
    private readonly data: ThreadData
  ) {
    this.words = wordsOf(model.cells)
    this.record = this.words + 2
    this.table = new StateTable(this.words)
    this.packed = new Uint32Array(this.words)
    this.cells = new Uint8Array(this.words * 8)
    this.control = new Int32Array(data.control)
    this.outboxes = (data.boxes[data.self] ?? []).map((box) => new Uint32Array(box))
    this.inboxes = data.boxes.flatMap((row, from) => {
      const box = row[data.self]
      return from === data.self || box === undefined ? [] : [new Uint32Array(box)]
    })
    this.firstBroken = model.properties.map(() => undefined)
    this.left = (1 << model.properties.length) - 1
  }

  run(): ThreadReport {
    const since = performance.now()
    for (const state of this.model.initial) {
      if (this.data.self === 0) this.generated++
      pack(state, this.packed, 0, this.words)
      const hash = hashWords(this.packed, 0, this.words)
      if (this.ownerOf(hash) === this.data.self) this.take(this.packed, 0, hash, noPredecessor, true)
    }
    this.depth = -1
    const exhaustive = this.search()
    const searched = performance.now() - since
    const unpeeled = exhaustive && this.model.liveness !== undefined ? this.peel() : undefined
    return {
      states: this.table.count,
      generated: this.generated,
      depth: this.depth,
      exhaustive,
      bytes: this.table.bytes,
      searched,
      peeled: performance.now() - since - searched,
      broken: this.firstBroken,
      unpeeled
    }
  }

  stateAt(index: number): StateReply {
    const cells = new Uint8Array(this.words * 8)
    unpack(this.table.pieceOf(index), this.table.baseOf(index), this.words, cells)
    return { cells, predecessor: this.table.predecessorOf(index) }
  }

  /** The table uses the hash's low bits, the partition its high ones. */
  private ownerOf(hash: number): number {
    return (hash >>> 24) % this.data.threads
  }

  private search(): boolean {
    const { table, model } = this
    const { liveness } = model
    for (;;) {
      while (this.cursor < this.levelEnd && this.boxesHaveRoom()) {
        const index = this.cursor++
        unpack(table.pieceOf(index), table.baseOf(index), this.words, this.cells)
        this.from = this.reference(index)
        this.owned = 0
        model.next(this.cells, this.onSuccessor)
        if (this.owned === 0 && liveness !== undefined && (this.left & liveness.bit) !== 0) {
          if (!liveness.mayRest(this.cells)) this.note(this.from, liveness.bit, this.depth)
        }
      }
      this.barrier()
      for (const box of this.inboxes) {
        const { record, words } = this
        const count = box[0] ?? 0
        for (let n = 0, at = 1; n < count; n++, at += record) {
          const environment = box[at + words + 1] === 1
          this.take(box, at, hashWords(box, at, words), box[at + words] ?? 0, environment)
        }
      }
      this.share([this.levelEnd - this.cursor, table.count - this.cursor, table.count, Math.ceil(table.bytes / 1024)])
      this.barrier()
      for (const box of this.outboxes) box[0] = 0
      const [inLevel, open, states, kilobytes] = this.totals()
      if (inLevel === 0) {
        if (open === 0) return true
        this.levelEnd = table.count
        this.depth++
      }
      // Every thread sees the same totals, and so stops at the same round.
      if (states > this.data.maxStates || kilobytes * 1024 > this.data.maxBytes) return false
    }
  }

  private readonly onSuccessor = (successor: Uint8Array, _label: number, environment: boolean): void => {
    const { words, packed } = this
    this.generated++
    if (!environment) this.owned++
    pack(successor, packed, 0, words)
    const hash = hashWords(packed, 0, words)
    const owner = this.ownerOf(hash)
    if (owner === this.data.self) return this.take(packed, 0, hash, this.from, environment, successor)
    const box = this.outboxes[owner]
    if (box === undefined) return
    const count = box[0] ?? 0
    const at = 1 + count * this.record
    for (let w = 0; w < words; w++) box[at + w] = packed[w] ?? 0
    box[at + words] = this.from
    box[at + words + 1] = environment ? 1 : 0
    box[0] = count + 1
  }

  private take(
    state: Uint32Array,
    at: number,
    hash: number,
    from: number,
    environment: boolean,
    successor?: Uint8Array
  ): void {
    const { table, model } = this
    const found = table.insert(state, at, hash, from)
    const index = found < 0 ? -1 - found : found
    if (!environment && model.liveness !== undefined) table.addWaiting(index)
    if (found >= 0 || this.left === 0) return
    let cells = successor
    if (cells === undefined) {
      cells = this.cells
      unpack(state, at, this.words, cells)
    }
    const bits = model.broken(cells) & this.left
    if (bits !== 0) this.note(this.reference(index), bits, this.depth + 1)
  }

  private note(reference: number, bits: number, depth: number): void {
    for (let p = 0; p < this.firstBroken.length; p++) {
      if ((bits & (1 << p)) === 0 || this.firstBroken[p] !== undefined) continue
      this.firstBroken[p] = { depth, reference }
      this.left &= ~(1 << p)
    }
  }

  /** Peels off states that no unpeeled state leads to by a system transition; what is left holds a cycle. */
  private peel(): number | undefined {
    const { table, words, record } = this
    const stack: Array<number> = []
    for (let index = 0; index < table.count; index++) if (table.waitingOf(index) === 0) stack.push(index)
    const onSystem = (successor: Uint8Array): void => {
      pack(successor, this.packed, 0, words)
      const hash = hashWords(this.packed, 0, words)
      const owner = this.ownerOf(hash)
      if (owner === this.data.self) return arrive(this.packed, 0, hash)
      const box = this.outboxes[owner]
      if (box === undefined) return
      const count = box[0] ?? 0
      box.set(this.packed, 1 + count * record)
      box[0] = count + 1
    }
    const arrive = (state: Uint32Array, at: number, hash: number): void => {
      const index = table.find(state, at, hash)
      if (table.takeWaiting(index)) stack.push(index)
    }
    for (;;) {
      while (stack.length > 0 && this.boxesHaveRoom()) {
        const index = stack.pop() ?? 0
        unpack(table.pieceOf(index), table.baseOf(index), words, this.cells)
        this.model.nextOfSystem(this.cells, onSystem)
      }
      this.barrier()
      for (const box of this.inboxes) {
        const count = box[0] ?? 0
        for (let n = 0, at = 1; n < count; n++, at += record) arrive(box, at, hashWords(box, at, words))
      }
      this.share([stack.length, 0, 0, 0])
      this.barrier()
      for (const box of this.outboxes) box[0] = 0
      if (this.totals()[0] === 0) break
    }
    for (let index = 0; index < table.count; index++) if (table.waitingOf(index) > 0) return this.reference(index)
    return undefined
  }

  private reference(index: number): number {
    return ((this.data.self << referenceBits) | index) >>> 0
  }

  private boxesHaveRoom(): boolean {
    for (const box of this.outboxes) if ((box[0] ?? 0) > boxRecords - mostSuccessors) return false
    return true
  }

  private share(values: ReadonlyArray<number>): void {
    this.round = 1 - this.round
    const at = this.sharedAt(this.data.self)
    values.forEach((value, n) => Atomics.store(this.control, at + n, value))
  }

  private totals(): readonly [number, number, number, number] {
    const sum = (n: number): number => {
      let total = 0
      for (let t = 0; t < this.data.threads; t++) total += Atomics.load(this.control, this.sharedAt(t) + n)
      return total
    }
    return [sum(0), sum(1), sum(2), sum(3)]
  }

  /** Rounds take turns with two sets of numbers: nobody shares its next ones over those that another still reads. */
  private sharedAt(thread: number): number {
    return 2 + (2 * thread + this.round) * sharedWords
  }

  private barrier(): void {
    const { control } = this
    const generation = Atomics.load(control, 1)
    if (Atomics.add(control, 0, 1) === this.data.threads - 1) {
      Atomics.store(control, 0, 0)
      Atomics.add(control, 1, 1)
      Atomics.notify(control, 1)
    } else {
      while (Atomics.load(control, 1) === generation) Atomics.wait(control, 1, generation)
    }
  }
}

const port = parentPort
if (port !== null) {
  // Only `exploreParallel` starts this file, with this data.
  const data = workerData as ThreadData
  // The module is the caller's, and so is the promise that it exports the model's maker.
  const module = (await import(data.source.module)) as Record<string, (...args: ReadonlyArray<unknown>) => PackedModel>
  const make = module[data.source.make]
  if (make === undefined) throw new Error(`${data.source.module} has no ${data.source.make}`)
  const thread = new Thread(make(...data.source.arguments), data)
  port.on("message", ({ index }: StateRequest) => port.postMessage(thread.stateAt(index)))
  port.postMessage(thread.run())
}
