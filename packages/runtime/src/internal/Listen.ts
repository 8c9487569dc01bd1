/** Listening to what a branch says: pages of its chunks, and waiting for more while it is not over. */
import type { BranchId, RunId } from "@fermata/contract"
import type { Chunk, Ledger } from "@fermata/ledger"
import { Chunk as Chunks, type Duration, Effect, Either, Option, Stream } from "effect"
import type { ReadError, RunHandle } from "../Client.js"
import type { Emitted, OutputStream } from "../OutputStream.js"
import { InvalidValue } from "../RunError.js"
import { branchOf } from "./BranchAddress.js"
import { mayHaveEmitted, untilFound } from "./BranchWatch.js"
import type { Codec } from "./Codec.js"

/** Chunks that are read at once. */
const page = 256

export const listen = <N extends string, A>(
  ledger: Ledger,
  poll: Duration.DurationInput,
  stream: OutputStream<N, A>,
  of: RunId | BranchId | RunHandle | string,
  { after = 0, follow = true }: { readonly after?: number; readonly follow?: boolean } = {}
): Stream.Stream<Emitted<A>, InvalidValue | ReadError> =>
  Stream.unwrap(
    Effect.map(branchOf(ledger, of), (branch) =>
      Stream.paginateChunkEffect(startOf(after), (offset) => {
        const look = Effect.map(
          ledger.chunks({ branch, stream: stream.name, after: offset, limit: page }),
          Option.liftPredicate(({ chunks, over }) => chunks.length > 0 || over || !follow)
        )
        return Effect.flatMap(untilFound(ledger, mayHaveEmitted(branch), poll, look), ({ chunks }) =>
          Effect.map(
            Effect.forEach(chunks, (chunk) => emitted(stream.name, stream.codec, chunk)),
            (values) => [Chunks.unsafeFromArray(values), Option.fromNullable(chunks.at(-1)?.pos)] as const
          )
        )
      })
    )
  )

/** Offsets begin at 1: what is no number of chunks is before all of them. */
const startOf = (after: number): number => (after >= 1 ? Math.floor(Math.min(after, Number.MAX_SAFE_INTEGER)) : 0)

const emitted = <A>(name: string, codec: Codec<A>, chunk: Chunk): Effect.Effect<Emitted<A>, InvalidValue> =>
  Either.match(codec.decode(chunk.payload), {
    onLeft: ({ issues }) =>
      Effect.fail(new InvalidValue({ what: `chunk ${chunk.pos} of output stream ${name} as stored`, issues })),
    onRight: (value) =>
      Effect.succeed({ offset: chunk.pos, value, step: chunk.step, execution: chunk.execution, at: chunk.at })
  })
