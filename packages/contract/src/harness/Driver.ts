/**
 * How the harness uses a plane: as processes that answer, may be killed, and may misbehave. A plane in this process and
 * a child process that speaks the protocol look the same from here.
 */
import { Cause, Data, Effect, Exit, Fiber, Schema, Scope } from "effect"
import {
  type Declined,
  Hello,
  type Operation,
  operations,
  type Place,
  type Plane,
  protocolVersion,
  type Reply,
  type Request
} from "./Plane.js"

/**
 * The driver, not the plane, gave no usable answer. `crashed`: its process ended. `nonsense`: what it said is not in the
 * protocol. `lied`: it cannot do what it said it can. `silent`: it did not answer within the time limit.
 */
export class DriverFault extends Data.TaggedError("DriverFault")<{
  readonly kind: "crashed" | "nonsense" | "lied" | "silent"
  readonly message: string
}> {}

export type DriverError = DriverFault | Declined

/** A process of the plane, seen from outside. */
export interface Process {
  readonly who: string
  readonly ask: <O extends Operation>(operation: O, request: Request<O>) => Effect.Effect<Reply<O>, DriverError>
  /** SIGKILL, and waits until it is gone. */
  readonly kill: Effect.Effect<void>
  /** Fails when the process ends without having been killed from here. */
  readonly ended: Effect.Effect<never, DriverFault>
  /** SIGSTOP. Nothing in this process: there only the barrier holds it. */
  readonly freeze: Effect.Effect<void>
  /** SIGCONT. */
  readonly thaw: Effect.Effect<void>
}

export interface Driver {
  /** What `--plane` names it by. */
  readonly name: string
  readonly hello: Effect.Effect<Hello, DriverError>
  /** A process of its own for each place; killed when the scope closes. */
  readonly open: (place: Place) => Effect.Effect<Process, DriverError, Scope.Scope>
  readonly copy: (store: string, to: string) => Effect.Effect<void, DriverError>
  readonly drop: (store: string) => Effect.Effect<void, DriverError>
  /** The same driver with its processes on another host: their command is put behind the prefix. Not in this process. */
  readonly onHost?: (prefix: ReadonlyArray<string>) => Driver
}

export interface Limits {
  /** How long any one answer may take, in milliseconds; 60,000 by default. Exceeding it decides nothing. */
  readonly timeLimit?: number
}

export const defaultTimeLimit = 60_000

/** The effect, or `silent` after so many milliseconds of the host's clock: a test's clock may stand still. */
export const within =
  (timeLimit: number, what: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | DriverFault, R> =>
    // Interruptible also in a finalizer, and not waited for: what hangs may not hold the harness up.
    Effect.raceFirst(
      Effect.disconnect(Effect.interruptible(effect)),
      Effect.interruptible(
        Effect.async<never, DriverFault>((resume) => {
          const timer = setTimeout(
            () => resume(new DriverFault({ kind: "silent", message: `${what}: no answer within ${timeLimit} ms` })),
            timeLimit
          )
          return Effect.sync(() => clearTimeout(timer))
        })
      )
    )

/** A driver of a plane in this process. A defect of it is a crash; a reply that is not as described is nonsense. */
export const inProcess = (plane: Plane, limits: Limits = {}): Driver => {
  const timeLimit = limits.timeLimit ?? defaultTimeLimit
  const guard = <A>(what: string, effect: Effect.Effect<A, Declined>): Effect.Effect<A, DriverError> =>
    effect.pipe(
      Effect.catchAllDefect(
        (defect) => new DriverFault({ kind: "crashed", message: `${what}: ${Cause.pretty(Cause.die(defect))}` })
      ),
      // A plane that is killed interrupts what it was asked.
      Effect.fork,
      Effect.flatMap((fiber) => Effect.onInterrupt(Fiber.join(fiber), () => Fiber.interruptFork(fiber))),
      within(timeLimit, what)
    )
  return {
    name: plane.hello.plane,
    hello: Effect.suspend(() => checkHello(plane.hello)),
    open: (place) =>
      Effect.gen(function* () {
        const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
        const session = yield* guard("open", Scope.extend(plane.open(place), scope))
        return {
          who: place.who,
          ask: (operation, request) =>
            // The session's members are typed by the same table as `operation` is.
            guard(
              operation,
              (session[operation] as (request: unknown) => Effect.Effect<unknown, Declined>)(request)
            ).pipe(Effect.flatMap((reply) => decodeReply(operation, reply))),
          kill: Scope.close(scope, Exit.void),
          ended: Effect.never,
          freeze: Effect.void,
          thaw: Effect.void
        } satisfies Process
      }),
    copy: (store, to) => guard("copy", plane.copy(store, to)),
    drop: (store) => guard("drop", plane.drop(store))
  }
}

/** A hello that is one, of this protocol. */
export const checkHello = (hello: unknown): Effect.Effect<Hello, DriverFault> =>
  Effect.gen(function* () {
    const decoded = yield* Effect.mapError(
      Schema.decodeUnknown(Hello)(hello),
      (issue) => new DriverFault({ kind: "nonsense", message: `hello is not as described: ${issue.message}` })
    )
    if (decoded.protocol !== protocolVersion)
      return yield* new DriverFault({
        kind: "nonsense",
        message: `the driver speaks protocol ${decoded.protocol}, this harness speaks ${protocolVersion}`
      })
    return decoded
  })

/** A reply that is one to this operation. */
export const decodeReply = <O extends Operation>(
  operation: O,
  reply: unknown
): Effect.Effect<Reply<O>, DriverFault> => {
  // The union of all replies' Schemas; the one of this operation decodes to its own type.
  const schema = operations[operation].reply as unknown as Schema.Schema<Reply<O>, unknown>
  return Effect.mapError(
    Schema.decodeUnknown(schema)(reply),
    (issue) =>
      new DriverFault({ kind: "nonsense", message: `the reply to ${operation} is not as described: ${issue.message}` })
  )
}
