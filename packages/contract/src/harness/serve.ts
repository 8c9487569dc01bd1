/** Serves a plane of this process to the harness, over standard input and output: a driver's whole main program. */
import { Cause, Effect, Exit, Option, Schema, Scope } from "effect"
import { Declined, operations, type Operation, type Plane, type Session } from "./Plane.js"
import { lines, processRequests, WireRequest } from "./Protocol.js"

/**
 * Answers requests until standard input ends, and ends the process then. Standard output is the protocol's: the console
 * is turned to standard error.
 */
export const serve = (plane: Plane): void => {
  // What libraries log is not for the harness.
  console.log = console.info = console.debug = console.error
  const scope = Effect.runSync(Scope.make())
  let session: Session | undefined

  const answer = (op: string, request: unknown): Effect.Effect<unknown, Declined> =>
    Effect.gen(function* () {
      switch (op) {
        case "hello":
          yield* decoded(processRequests.hello, request)
          return plane.hello
        case "open":
          session = yield* Scope.extend(plane.open(yield* decoded(processRequests.open, request)), scope)
          return {}
        case "copy": {
          const { store, to } = yield* decoded(processRequests.copy, request)
          yield* plane.copy(store, to)
          return {}
        }
        case "drop":
          yield* plane.drop((yield* decoded(processRequests.drop, request)).store)
          return {}
        default: {
          if (!isOperation(op)) return yield* declined("unsupported", `there is no operation ${op}`)
          if (session === undefined) return yield* declined("failed", `${op} came before open`)
          // The table types each operation by its own Schema.
          const asked = yield* decoded(operations[op].request as unknown as Schema.Schema<unknown>, request)
          return yield* (session[op] as (request: unknown) => Effect.Effect<unknown, Declined>)(asked)
        }
      }
    })

  const reply = (id: number, op: string, request: unknown) =>
    Effect.map(Effect.exit(answer(op, request)), (exit) => {
      const line = Exit.isSuccess(exit) ? { id, reply: exit.value ?? {} } : { id, error: refusal(exit.cause) }
      process.stdout.write(`${JSON.stringify(line)}\n`)
    })

  process.stdin.setEncoding("utf8").on(
    "data",
    lines((line) => {
      const { id, op, request } = Schema.decodeSync(Schema.parseJson(WireRequest))(line)
      Effect.runFork(reply(id, op, request))
    })
  )
  // The harness is gone, however it went: no driver outlives it.
  process.stdin.on("end", () => process.exit(0))
}

const declined = (code: Declined["code"], message: string) => new Declined({ code, message })

const isOperation = (op: string): op is Operation => Object.hasOwn(operations, op)

const decoded = <A, I>(schema: Schema.Schema<A, I>, request: unknown): Effect.Effect<A, Declined> =>
  Effect.mapError(Schema.decodeUnknown(schema)(request), ({ message }) => declined("failed", message))

const refusal = (cause: Cause.Cause<Declined>): { readonly code: Declined["code"]; readonly message: string } =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => ({ code: "failed" as const, message: Cause.pretty(cause) }),
    onSome: ({ code, message }) => ({ code, message })
  })
