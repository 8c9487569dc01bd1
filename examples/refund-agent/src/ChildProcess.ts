/** Processes of our own that can be told things, tell things, and be killed without warning. */
import { Data, Deferred, Effect, Queue, Schema } from "effect"
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"

/** What a child tells its parent. */
export const Message = Schema.Union(
  Schema.TaggedStruct("Ready", {}),
  /** The cut network lost something. */
  Schema.TaggedStruct("Lost", {}),
  /** What became of an answer. */
  Schema.TaggedStruct("Verdict", { accepted: Schema.Boolean, text: Schema.String })
)
export type Message = typeof Message.Type

/** The child ended while something was still expected of it. */
export class ChildEnded extends Data.TaggedError("ChildEnded")<{
  readonly entry: string
  readonly code: number | null
  readonly signal: string | null
}> {
  override get message() {
    return `${this.entry} ended (${this.signal ?? `exit code ${this.code}`}) while more was expected of it`
  }
}

/** A running child. */
export interface Child {
  readonly pid: number
  /** The next message. */
  readonly receive: Effect.Effect<Message, ChildEnded>
  /** Lets a child that waits in `go` go on. */
  readonly release: Effect.Effect<void>
  /** SIGKILL, and waits until the process is gone. */
  readonly kill: Effect.Effect<void>
  /** Asks it to end, and waits until it did. */
  readonly stop: Effect.Effect<void>
}

/** Starts the entry (a module beside this one) with `options` as its only argument. It does not outlive the scope. */
export const start = (entry: string, options: unknown) =>
  Effect.gen(function* () {
    const messages = yield* Queue.unbounded<Message>()
    const ended = yield* Deferred.make<never, ChildEnded>()
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const path = fileURLToPath(new URL(entry, import.meta.url))
        const child = fork(path, [JSON.stringify(options)], { stdio: ["ignore", "ignore", "inherit", "ipc"] })
        child.on("message", (message) => messages.unsafeOffer(Schema.decodeUnknownSync(Message)(message)))
        child.once("exit", (code, signal) => Deferred.unsafeDone(ended, new ChildEnded({ entry, code, signal })))
        child.once("error", () => Deferred.unsafeDone(ended, new ChildEnded({ entry, code: null, signal: null })))
        return child
      }),
      (child) =>
        Effect.zipRight(
          Effect.sync(() => child.kill("SIGKILL")),
          Effect.ignore(Deferred.await(ended))
        )
    )
    const end = (signal: NodeJS.Signals) =>
      Effect.zipRight(
        Effect.sync(() => child.kill(signal)),
        Effect.ignore(Deferred.await(ended))
      )
    return {
      pid: child.pid ?? 0,
      receive: Effect.raceFirst(Queue.take(messages), Deferred.await(ended)),
      release: Effect.sync(() => void child.send("go")),
      kill: end("SIGKILL"),
      stop: end("SIGTERM")
    } satisfies Child
  })

/** In the child: tells the parent. */
export const tell = (message: Message): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    if (process.send === undefined) resume(Effect.void)
    else process.send(message, undefined, {}, () => resume(Effect.void))
  })

/** In the child: waits until the parent releases it. */
export const go: Effect.Effect<void> = Effect.async<void>((resume) => {
  process.once("message", () => resume(Effect.void))
})

/** In the child: the options that it was started with. */
export const options = <A, I>(schema: Schema.Schema<A, I>): Effect.Effect<A> =>
  Effect.orDie(Schema.decodeUnknown(Schema.parseJson(schema))(process.argv[2]))
