/** What the threads of a parallel exploration and the one that started them say to each other. */

/** Where a thread finds its model: `make` of `module` is called with `arguments`. */
export interface ModelSource {
  readonly module: string
  readonly make: string
  readonly arguments: ReadonlyArray<unknown>
}

/** What a thread is started with. */
export interface ThreadData {
  readonly source: ModelSource
  readonly self: number
  readonly threads: number
  /** Two barrier words, then twice `sharedWords` for each thread. */
  readonly control: SharedArrayBuffer
  /** `boxes[from][to]`: number of records, then the records. */
  readonly boxes: ReadonlyArray<ReadonlyArray<SharedArrayBuffer>>
  readonly maxBytes: number
  readonly maxStates: number
}

/** What a thread says when it is done. */
export interface ThreadReport {
  readonly states: number
  readonly generated: number
  readonly depth: number
  readonly exhaustive: boolean
  readonly bytes: number
  /** Milliseconds of the search, and of the search for cycles after it. */
  readonly searched: number
  readonly peeled: number
  /** By property: depth and reference of the first state of this thread that breaks it. */
  readonly broken: ReadonlyArray<{ readonly depth: number; readonly reference: number } | undefined>
  /** A state of this thread that lies on a cycle of system transitions or behind one. */
  readonly unpeeled: number | undefined
}

/** A question to a thread after its report. */
export interface StateRequest {
  readonly index: number
}

/** A state and who found it. */
export interface StateReply {
  readonly cells: Uint8Array
  readonly predecessor: number
}

/** A state's reference: its thread in the highest bits, its number below. */
export const referenceBits = 28
/** Marks an initial state. */
export const noPredecessor = 0xffffffff
/** Shared words of a thread: states left in its level, states that it has not expanded, all its states, its KB. */
export const sharedWords = 4
/** Records of a box. */
export const boxRecords = 1 << 14
