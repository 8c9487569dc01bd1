/**
 * One execution of a node's function, on the host. What it asks (`interrupt`) and what it did (`task`, nodes of graphs
 * called inside it) has a path: its place in the order of calls. What is known of a path is served; what is new is
 * reported to the thread, which records it before the function hears of it. A function that is cut by a crash, or that
 * waited for an answer, runs again from its top, and what was recorded is not done again (PC, EO).
 */
import { GraphInterrupt, GraphValueError } from "../GraphError.js"
import type { Exit } from "effect"
import type { Call, Perform } from "./Effects.js"
import { errorToWire, fromWire, toWire } from "./Wire.js"

/** What is known of one path. */
export type Note =
  | { readonly _tag: "Answer"; readonly value: unknown }
  | { readonly _tag: "Done"; readonly name: string; readonly value: unknown }
  | { readonly _tag: "Failed"; readonly name: string; readonly error: unknown }

/** A question that has no answer yet. */
export interface Ask {
  readonly path: string
  readonly value: unknown
}

/** What a segment of an execution ends with. Values are wire data. */
export type Segment =
  | { readonly _tag: "Notes"; readonly notes: ReadonlyArray<readonly [path: string, note: Note]> }
  | {
      readonly _tag: "Asks"
      readonly asks: ReadonlyArray<Ask>
      readonly notes: ReadonlyArray<readonly [path: string, note: Note]>
    }
  | { readonly _tag: "Done"; readonly value: unknown }
  | { readonly _tag: "Failed"; readonly error: unknown; readonly retry: boolean }

export class Attempt {
  /** Segments that ended. */
  segment = 0
  /** The error object itself, for a caller in this process. */
  thrown: { readonly error: unknown } | undefined
  readonly abort = new AbortController()
  private readonly notes: Map<string, Note>
  private fresh: Array<readonly [string, Note]> = []
  private readonly asks = new Map<string, unknown>()
  private readonly heard = new Map<string, () => void>()
  private running = 0
  /** Effects that are under way in the step of this segment: it ends after them. */
  private firing = 0
  private performing: Perform | undefined
  private readonly awaiting: Array<(perform: Perform) => void> = []
  private settled: Segment | undefined
  private wake: (() => void) | undefined

  constructor(
    notes: ReadonlyMap<string, Note>,
    readonly canAsk: boolean
  ) {
    this.notes = new Map(notes)
  }

  /** Runs the function; `retry` says whether an error is one to try again after. */
  start(body: () => Promise<unknown>, retry: (error: unknown) => boolean): void {
    void (async () => {
      try {
        const value = await body()
        this.settled = { _tag: "Done", value }
      } catch (error) {
        this.thrown = { error }
        this.settled = { _tag: "Failed", error: errorToWire(error), retry: retry(error) }
      }
      this.changed()
    })()
  }

  /** The step of the next segment performs what the function asks for. */
  performBy(perform: Perform): void {
    this.performing = perform
    for (const go of this.awaiting.splice(0)) go(perform)
  }

  /** Performs an effect in the step that is under way, or in the next one if none is. */
  async perform(call: Call): Promise<Exit.Exit<unknown, string>> {
    const perform = this.performing ?? (await new Promise<Perform>((resolve) => this.awaiting.push(resolve)))
    this.firing++
    try {
      return await perform(call)
    } finally {
      this.firing--
      this.changed()
    }
  }

  /** What the thread recorded since: the function goes on with it. */
  feed(notes: ReadonlyMap<string, Note>): void {
    for (const [path, note] of notes) {
      this.notes.set(path, note)
      const go = this.heard.get(path)
      this.heard.delete(path)
      go?.()
    }
  }

  /** Waits for the end of the segment that is under way. */
  async next(): Promise<Segment> {
    for (;;) {
      const segment = this.take()
      if (segment !== undefined) {
        this.segment++
        this.performing = undefined
        return segment
      }
      await new Promise<void>((resolve) => (this.wake = resolve))
    }
  }

  private take(): Segment | undefined {
    // An effect belongs to the step that it began in.
    if (this.firing > 0) return undefined
    // What was asked counts, however the function took the exception: it parks.
    if (this.asks.size > 0) {
      if (this.settled === undefined || this.running > 0) return undefined
      return { _tag: "Asks", asks: [...this.asks].map(([path, value]) => ({ path, value })), notes: this.fresh }
    }
    if (this.fresh.length > 0) {
      const notes = this.fresh
      this.fresh = []
      return { _tag: "Notes", notes }
    }
    return this.settled
  }

  private changed(): void {
    const { wake } = this
    this.wake = undefined
    wake?.()
  }

  /** The answer to the question at `path`, or the exception that leaves the function. */
  answer(path: string, question: unknown): unknown {
    const note = this.notes.get(path)
    if (note?._tag === "Answer") return fromWire(note.value)
    if (!this.canAsk)
      throw new GraphValueError("interrupt() needs a checkpointer: compile({ checkpointer: Fermata.sqlite(...) })", {
        code: "MISSING_CHECKPOINTER"
      })
    this.asks.set(path, toWire(question))
    throw new GraphInterrupt()
  }

  /** The result of `body`, done once and recorded before the caller has it. */
  async once(path: string, name: string, body: () => Promise<unknown>): Promise<unknown> {
    const known = this.notes.get(path)
    if (known !== undefined) return this.serve(path, name, known)
    // A function that asked is only leaving: it does nothing more.
    if (this.asks.size > 0) throw new GraphInterrupt()
    this.running++
    let note: Note
    let live: unknown
    try {
      const value = await body()
      note = { _tag: "Done", name, value: toWire(value) }
    } catch (error) {
      if (this.asks.size > 0) throw error
      live = error
      note = { _tag: "Failed", name, error: errorToWire(error) }
    } finally {
      this.running--
      this.changed()
    }
    this.fresh.push([path, note])
    const recorded = new Promise<void>((resolve) => this.heard.set(path, resolve))
    this.changed()
    await recorded
    if (note._tag === "Failed") throw live
    return this.serve(path, name, note)
  }

  private serve(path: string, name: string, note: Note): unknown {
    if (note._tag === "Answer" || note.name !== name)
      throw new GraphValueError(
        `The node called "${name}" where its history has ${note._tag === "Answer" ? "a question" : `"${note.name}"`} ` +
          `(${path}): calls of tasks, graphs and interrupt() must come in the same order each time`
      )
    if (note._tag === "Failed") throw fromWire(note.error)
    return fromWire(note.value)
  }
}
