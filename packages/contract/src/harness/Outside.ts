/**
 * The world outside the plane, as effects see it: a log that they append to, and barriers that they stop at. The log
 * is the harness's oracle; nothing of it is the plane's.
 *
 * A point is passed by `reach`: if the folder of the barriers has a file `trace`, the point's name is appended to it; if
 * it has a file `<point>.hold`, a file `<point>.here.<who>` is made and the caller waits until the hold is gone. A
 * harness that wants a process dead at a point makes the hold, waits for the `here`, and kills.
 */
import { Effect, Either, Schema } from "effect"
import {
  appendFileSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync
} from "node:fs"
import { createHash } from "node:crypto"
import { join } from "node:path"
import { DeliveryPolicy } from "../Delivery.js"
import type { Place } from "./Plane.js"

/** One line of the log. `body`: a node's body began. `fire`: an effect reached the outside. */
export const LogLine = Schema.Union(
  Schema.Struct({
    kind: Schema.Literal("body"),
    run: Schema.String,
    step: Schema.String,
    who: Schema.String
  }),
  Schema.Struct({
    kind: Schema.Literal("fire"),
    run: Schema.String,
    step: Schema.String,
    effect: Schema.String,
    delivery: DeliveryPolicy,
    /** The idempotency key that the plane handed out; empty if it has none. */
    key: Schema.String,
    input: Schema.Unknown,
    /** What the receiver gave back. */
    value: Schema.String,
    who: Schema.String
  }),
  /** The receiver was asked about a key that it had not seen, and will refuse it from now on. */
  Schema.Struct({ kind: Schema.Literal("ruled"), run: Schema.String, key: Schema.String, who: Schema.String })
)
export type LogLine = typeof LogLine.Type
export type Fired = Extract<LogLine, { readonly kind: "fire" }>

/** An effect about to reach the outside. */
export type Firing = Omit<Fired, "kind" | "value" | "who">

/** The receiver refused: it had promised that this key would never happen. */
export class RuledOut extends Error {
  override readonly name = "RuledOut"
}

export interface Outside {
  /** Marks that a node's body began, and passes `body.<run>.<step>`. */
  readonly body: (run: string, step: string) => Effect.Effect<void>
  /**
   * Fires: passes `before.<run>.<step>.<effect>`, appends to the log, passes `after.<run>.<step>.<effect>`, and gives what
   * the receiver gave back: for `repeatable` something new each time, else a function of effect and input. Dies with
   * `RuledOut` if `ask` has ruled the key out.
   */
  readonly fire: (firing: Firing) => Effect.Effect<string>
  /**
   * As `fire`, but what happens outside is `happen`'s doing, and its line is not logged: for an effect in the plane's own
   * database, whose rows `committed` reports.
   */
  readonly around: <A, E, R>(
    firing: Firing,
    happen: (value: string) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** What the receiver says of a key: the value that it gave back, or that it never happened and never will. */
  readonly ask: (run: string, key: string) => Effect.Effect<string | undefined>
  /** Passes a point. */
  readonly reach: (point: string) => Effect.Effect<void>
  /** Passes a point, and the whole process stands still while it is held. */
  readonly reachSync: (point: string) => void
}

/** The outside of a place. */
export const at = ({ barriers, log, who }: Pick<Place, "log" | "barriers" | "who">): Outside => {
  const append = (line: LogLine): void => {
    const file = openSync(log, "a")
    try {
      // One write, so that lines of several processes do not mix; on disk before the effect is said to have happened.
      writeSync(file, `${JSON.stringify(line)}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }
  /** True if the caller must wait. */
  const arrive = (point: string): boolean => {
    const trace = join(barriers, "trace")
    if (existsSync(trace)) appendFileSync(trace, `${point}\n`)
    if (!existsSync(join(barriers, `${point}.hold`))) return false
    writeFileSync(join(barriers, `${point}.here.${who}`), "")
    return true
  }
  const held = (point: string): boolean => existsSync(join(barriers, `${point}.hold`))
  const reach = (point: string): Effect.Effect<void> =>
    Effect.suspend(() => (arrive(point) ? waitUntil(() => !held(point)) : Effect.void))
  const around: Outside["around"] = (firing, happen) =>
    Effect.suspend(() => {
      const point = `${firing.run}.${firing.step}.${firing.effect}`
      return reach(`before.${point}`).pipe(
        Effect.zipRight(Effect.suspend(() => happen(valueOf(firing, who)))),
        Effect.tap(() => reach(`after.${point}`))
      )
    })
  return {
    body: (run, step) =>
      Effect.suspend(() => {
        append({ kind: "body", run, step, who })
        return reach(`body.${run}.${step}`)
      }),
    fire: (firing) =>
      around(firing, (value) =>
        Effect.sync(() => {
          if (firing.key !== "" && readLog(log).some((line) => line.kind === "ruled" && line.key === firing.key))
            throw new RuledOut(`${firing.key} was ruled never to happen`)
          append({ kind: "fire", ...firing, value, who })
          return value
        })
      ),
    around,
    ask: (run, key) =>
      Effect.sync(() => {
        const fired = readLog(log).find((line): line is Fired => line.kind === "fire" && line.key === key)
        if (fired === undefined) append({ kind: "ruled", run, key, who })
        return fired?.value
      }),
    reach,
    reachSync: (point) => {
      if (!arrive(point)) return
      const pause = new Int32Array(new SharedArrayBuffer(4))
      while (held(point)) Atomics.wait(pause, 0, 0, 0.5)
    }
  }
}

let reads = 0

/** What a receiver gives back: a function of what it was asked for, except where the world is read. */
const valueOf = ({ delivery, effect, input }: Firing, who: string): string =>
  delivery === "repeatable"
    ? `${effect}:read-${++reads}-by-${who}`
    : `${effect}:${createHash("sha256").update(JSON.stringify(input)).digest("hex").slice(0, 12)}`

/** Waits for something that the file system shows. By the host's timers: a test's clock may stand still. */
export const waitUntil = (isSo: () => boolean): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    let timer: NodeJS.Timeout | undefined
    const look = (): void => {
      if (isSo()) resume(Effect.void)
      else timer = setTimeout(look, 1)
    }
    look()
    return Effect.sync(() => clearTimeout(timer))
  })

/** What a driver wrote to the log is not a line of it. */
export class BadLog extends Error {
  override readonly name = "BadLog"
}

const decodeLine = Schema.decodeUnknownEither(Schema.parseJson(LogLine))

/** The lines of a log, in order. A last line without its end was cut off by a kill: it never was. */
export const readLog = (file: string): ReadonlyArray<LogLine> => {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, "utf8").split("\n")
  return lines.slice(0, -1).map((line) => {
    const decoded = decodeLine(line)
    if (Either.isLeft(decoded))
      throw new BadLog(`the effect log has ${JSON.stringify(line.slice(0, 200))}, which is no line of it`)
    return decoded.right
  })
}
