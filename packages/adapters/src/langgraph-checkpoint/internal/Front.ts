/** What a run of the front knows about itself, and hands through LangGraph's config to the saver and to effects. */
import { canSee, type WorkerPlace } from "@fermata/contract"
import type { ThreadHold } from "@fermata/ledger"
import * as ProcessTable from "@fermata/runtime/ProcessTable"
import { Effect, Option, Schema } from "effect"
import { randomUUID } from "node:crypto"
import type { FermataSaver } from "../FermataSaver.js"
import { ThreadLost } from "../SaverError.js"
import { frontKey, type FrontMark } from "./SaverConfig.js"

/** The mark of a run, with what effects need besides. */
export interface FrontRun extends FrontMark {
  readonly saver: FermataSaver
  readonly thread: string
  readonly hold: ThreadHold
}

/** The run that a node's config belongs to, if it is one of a front. */
export const runOf = (configurable: Readonly<Record<string, unknown>> | undefined): FrontRun | undefined => {
  const mark = configurable?.[frontKey]
  return typeof mark === "object" && mark !== null && "saver" in mark ? (mark as FrontRun) : undefined
}

const Runner = Schema.parseJson(
  Schema.Struct({
    id: Schema.String,
    place: Schema.NullOr(
      Schema.Struct({
        bootId: Schema.String,
        pidNamespace: Schema.String,
        pid: Schema.Number,
        startTime: Schema.String
      })
    )
  })
)

const place: WorkerPlace | undefined = Effect.runSync(ProcessTable.self)

/** Of this process: its runners have it in their names. */
const self = randomUUID()

/** A name for one run of this process. It says where the process is, so that others can see that it is gone. */
const newRunner = (): string => Schema.encodeSync(Runner)({ id: `${self}/${randomUUID()}`, place: place ?? null })

/** True if the runner is of this process. */
export const isOwn = (runner: string): boolean =>
  Option.exists(Schema.decodeOption(Runner)(runner), ({ id }) => id.startsWith(`${self}/`))

/** True if the runner's process is seen to be gone; no guess. */
export const isGone = (runner: string): boolean => {
  const decoded = Schema.decodeOption(Runner)(runner)
  if (Option.isNone(decoded) || decoded.value.place === null) return false
  return canSee(place, decoded.value.place) && ProcessTable.sight(decoded.value.place) === "gone"
}

/** Renewals of a hold within one lease. */
const renewals = 3

/** Holds the thread while `use` runs. Its signal aborts when the hold is lost, and then it fails with `ThreadLost`. */
export const holding = async (saver: FermataSaver, thread: string, lease: number): Promise<Held> => {
  const hold = await saver.run(({ checkpoints }) =>
    checkpoints.hold(thread, { runner: newRunner(), lease, gone: isGone })
  )
  const lost = new AbortController()
  const renew = async () => {
    try {
      if (await saver.run(({ checkpoints }) => checkpoints.renew(thread, hold, lease))) return
      lost.abort(new ThreadLost({ thread, epoch: hold.epoch }))
    } catch {
      // The database is away: the next renewal says whether the hold is.
    }
  }
  const timer = setInterval(() => void renew(), lease / renewals)
  timer.unref()
  return {
    hold,
    signal: lost.signal,
    release: async () => {
      clearInterval(timer)
      await saver.settled(thread)
      await saver.run(({ checkpoints }) => checkpoints.release(thread, hold))
    }
  }
}

/** A thread that is held. */
export interface Held {
  readonly hold: ThreadHold
  readonly signal: AbortSignal
  /** Stores what is under way, and gives the thread back. */
  readonly release: () => Promise<void>
}
