/** Where what is kept in a state of the plane: durable rows, workers' memories, what the outside did, and the oracle's log. */
import type { World } from "./PlaneWorld.js"

/** Kinds of operations as numbers; 0 is the end of a program. */
export const opKinds = { end: 0, read: 1, keyed: 2, once: 3, transactional: 4, gate: 5, child: 6 } as const

/** Status of a branch; 0 is a branch that is not there. */
export const status = { absent: 0, ready: 1, running: 2, waiting: 3, stuck: 4, completed: 5, cancelled: 6 } as const

/** A worker process that is gone, where a worker is named. */
export const dead = 15

/** Claims of a fork's first event, where a delivery is named. */
export const byFork = 14

/** How far a worker is with the operation at its position. */
export const phase = {
  /** Nothing of it was done. */
  idle: 0,
  /** Its mark was appended: an intent, an opened interrupt, a started child. */
  marked: 1,
  /** The effect fired, and its outcome is at hand. */
  fired: 2,
  /** The history has an intent without an outcome. */
  inDoubt: 4,
  /** Nobody can say: an operator must. */
  unsettled: 5,
  /** The outcome fails its Schema. */
  invalid: 6,
  /** The recorded intent has another input. */
  inputChanged: 7
} as const

/** Cells of a branch, from its offset. */
export const branchCell = {
  /** Program, plus one; 0 if the branch is not there. */
  program: 0,
  status: 1,
  /** Worker, plus one; 0 for none. */
  owner: 2,
  /** Branch that it was forked from, plus one. */
  parent: 3,
  /** Branch whose child workflow it is, plus one. */
  childOf: 4,
  /** Operations with a durable outcome. */
  done: 5,
  /** 1 if the mark of the operation at `done` is durable. */
  mark: 6,
  /** Input that the durable intent recorded. */
  input: 7,
  /** Tries at `done` that were voided. */
  voided: 8,
  /** Worker that wrote the intent, plus one. */
  intentBy: 9,
  /** 1 once the intent's `fireBefore` and time limit have passed. */
  late: 10,
  /** Value that the fork was asked for with. */
  wanted: 11,
  /** Position of the gate that it was forked at, plus one. */
  forkedAt: 12,
  /** Deliverer that asked for the fork, plus one. */
  forkedBy: 13,
  /** An accepted settlement that was not moved: 1 it happened, 2 it did not; above these bits, the try that it names. */
  settled: 14,
  /** 1: a cancel was accepted; 2: after an answer that waits; 3: it was moved; 4: it came too late. */
  cancel: 15,
  /** Why it is stuck: 1 in doubt, 2 invalid value, 3 input changed. */
  problem: 16,
  /** The branch of its child workflow, plus one. */
  child: 17,
  /** Branch that wrote the intent at `done`, plus one, if that is another. */
  origin: 18,
  /** Of faulty planes: 1 what it waits for was lost, 2 its last two writes may have landed apart. */
  damage: 19
} as const

const branchCells = 20

/** Cells of one operation of a branch: its durable outcome, and two that depend on its kind. */
const opCells = 3

/** Cells of a worker, from its offset; the outcomes that it has in hand follow. */
export const workerCell = {
  /** The branch that it holds, plus one. */
  at: 0,
  /** Bit 0: its epoch is the branch's. Bit 1: paused. Bit 2: the time in which it may fire is up. */
  flags: 1,
  position: 2,
  phase: 3,
  input: 4,
  /** What it knows to be durable: twice the operations, plus one for a mark. */
  base: 5,
  voided: 6
} as const

const workerCells = 7

/** Cell offsets of a world. */
export interface Cells {
  readonly count: number
  readonly branches: number
  readonly workers: number
  readonly deliverers: number
  /** Longest program. */
  readonly ops: number
  readonly branch: (b: number) => number
  /** Durable outcome of an operation: 0 none, 1 and 2 values, 3 invalid. */
  readonly value: (b: number, p: number) => number
  /** A gate's claim: deliverer plus one. An effect's firings, as the outside counts them. */
  readonly claim: (b: number, p: number) => number
  /** A gate's claimed value. An effect's first input; bit 2 once another followed under the same key. */
  readonly claimed: (b: number, p: number) => number
  readonly worker: (w: number) => number
  /** Outcome that a worker has in hand. */
  readonly hand: (w: number, p: number) => number
  /** Times a deliverer sent; the next cell holds a check that it acts on later (a faulty plane). */
  readonly deliverer: (d: number) => number
  readonly crashes: number
  readonly pauses: number
  readonly plainForks: number
  readonly cancels: number
  /** History variables: PC, EO, FD, CV in the first cell, CO, RD, FI in the second. */
  readonly log: number
}

/** Lays out the cells of a world. */
export const cellsOf = (world: World): Cells => {
  const ops = Math.max(...world.programs.map((program) => program.length))
  const perBranch = branchCells + opCells * ops
  const perWorker = workerCells + ops
  const workersAt = 6
  const deliverersAt = workersAt + world.workers * perWorker
  const branchesAt = deliverersAt + world.deliverers.length * 2
  const branch = (b: number) => branchesAt + b * perBranch
  return {
    count: branchesAt + world.branches * perBranch,
    branches: world.branches,
    workers: world.workers,
    deliverers: world.deliverers.length,
    ops,
    branch,
    value: (b, p) => branch(b) + branchCells + p * opCells,
    claim: (b, p) => branch(b) + branchCells + p * opCells + 1,
    claimed: (b, p) => branch(b) + branchCells + p * opCells + 2,
    worker: (w) => workersAt + w * perWorker,
    hand: (w, p) => workersAt + w * perWorker + workerCells + p,
    deliverer: (d) => deliverersAt + d * 2,
    crashes: 0,
    pauses: 1,
    plainForks: 2,
    cancels: 3,
    log: 4
  }
}
