/** Exploration on several threads: the same states and the same verdicts as on one, sooner. */
import { availableParallelism } from "node:os"
import { Worker } from "node:worker_threads"
import { type Counterexample, counterexample, type Exploration, type ExploreOptions } from "./Explorer.js"
import {
  boxRecords,
  type ModelSource,
  noPredecessor,
  referenceBits,
  sharedWords,
  type StateReply,
  type StateRequest,
  type ThreadData,
  type ThreadReport
} from "./ExploreProtocol.js"
import { type PackedModel, wordsOf } from "./PackedModel.js"
import type { FaultId } from "./PlaneFault.js"
import { makePlane } from "./PlaneModel.js"
import type { World } from "./PlaneWorld.js"

/** What bounds a parallel exploration. */
export interface ParallelOptions extends ExploreOptions {
  /** Threads, at most 15; as many as there are cores by default. */
  readonly threads?: number
}

/** A parallel exploration, with the time that each part took. */
export interface ParallelExploration extends Exploration {
  readonly threads: number
  /** Seconds of the search for states, without that for cycles. */
  readonly searchSeconds: number
}

// Threads run what the build made, also when this file runs as source (under a test runner).
const built = (file: string): URL =>
  new URL(import.meta.url.replace(/\/src\/model\/[^/]*$/, "/dist/model/").replace(/[^/]*$/, file))

/** Explores the plane in a world, with at most one fault. */
export const explorePlane = (
  world: World,
  options: ParallelOptions & { readonly fault?: FaultId } = {}
): Promise<ParallelExploration> => {
  const how = options.fault === undefined ? {} : { fault: options.fault }
  const source = { module: built("PlaneModel.js").href, make: "makePlane", arguments: [world, how] }
  return exploreParallel(makePlane(world, how), source, options)
}

/** Explores a model of which each thread makes its own copy from `source`. */
export const exploreParallel = async (
  model: PackedModel,
  source: ModelSource,
  options: ParallelOptions = {}
): Promise<ParallelExploration> => {
  const { maxBytes = 4e9, maxStates = 2 ** 31 } = options
  const threads = Math.max(1, Math.min(15, options.threads ?? availableParallelism()))
  const since = performance.now()
  const control = new SharedArrayBuffer(4 * (2 + 2 * threads * sharedWords))
  const boxBytes = 4 * (1 + boxRecords * (wordsOf(model.cells) + 2))
  const boxes = Array.from({ length: threads }, (_, from) =>
    Array.from({ length: threads }, (_, to) => new SharedArrayBuffer(from === to ? 4 : boxBytes))
  )
  const workers = Array.from({ length: threads }, (_, self) => {
    const workerData: ThreadData = { source, self, threads, control, boxes, maxBytes, maxStates }
    return new Worker(built("ExploreThread.js"), { workerData })
  })
  try {
    // Listened to before anything is awaited; a thread that dies fails the whole, or the others would wait for it.
    const reports = await Promise.all(workers.map((worker) => answer<ThreadReport>(worker)))
    const searchSeconds = Math.max(...reports.map(({ searched }) => searched)) / 1000
    const broken: Array<Counterexample> = []
    for (let p = 0; p < model.properties.length; p++) {
      const found = reports.flatMap((report) => report.broken[p] ?? []).sort((a, b) => a.depth - b.depth)[0]
      const endless =
        found === undefined && isLiveness(model, p) ? reports.find(({ unpeeled }) => unpeeled !== undefined) : undefined
      const reference = found?.reference ?? endless?.unpeeled
      if (reference === undefined) continue
      const told = counterexample(model, await pathTo(workers, reference), p, false)
      // The threads know that a cycle is left, not which of the states that are left lie on it.
      const why = "The system goes round for ever by its own transitions, here or before."
      broken.push(endless === undefined ? told : { ...told, why })
    }
    const states = sum(reports, ({ states: own }) => own)
    return {
      model: model.name,
      states,
      generated: sum(reports, ({ generated }) => generated),
      depth: Math.max(...reports.map(({ depth }) => depth)),
      exhaustive: reports.every(({ exhaustive }) => exhaustive),
      broken,
      seconds: (performance.now() - since) / 1000,
      bytesPerState: sum(reports, ({ bytes }) => bytes) / states,
      threads,
      searchSeconds
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
}

const sum = <A>(all: ReadonlyArray<A>, of: (one: A) => number): number => all.reduce((total, one) => total + of(one), 0)

const isLiveness = ({ liveness }: PackedModel, property: number): boolean => liveness?.bit === 1 << property

/** The next message of a thread. */
const answer = <A>(worker: Worker): Promise<A> =>
  new Promise((resolve, reject) => {
    const onExit = (code: number): void => reject(new Error(`an exploring thread ended with code ${code}`))
    worker.once("message", (message: A) => {
      worker.off("error", reject)
      worker.off("exit", onExit)
      resolve(message)
    })
    worker.once("error", reject)
    worker.once("exit", onExit)
  })

const pathTo = async (workers: ReadonlyArray<Worker>, end: number): Promise<ReadonlyArray<Uint8Array>> => {
  const path: Array<Uint8Array> = []
  for (let reference = end; reference !== noPredecessor;) {
    const worker = workers[reference >>> referenceBits]
    if (worker === undefined) break
    const reply = answer<StateReply>(worker)
    const request: StateRequest = { index: reference & ((1 << referenceBits) - 1) }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    worker.postMessage(request)
    const { cells, predecessor } = await reply
    path.unshift(cells)
    reference = predecessor
  }
  return path
}
