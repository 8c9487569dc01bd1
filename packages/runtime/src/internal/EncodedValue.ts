/** A caller's value as text, checked by its Schema and for its size, before anything is written. */
import { Effect, Either } from "effect"
import { InvalidValue } from "../RunError.js"
import type * as Codec from "./Codec.js"

/** The text, or `InvalidValue`. `what`: what the value is for. */
export const encoded = <A>(
  codec: Codec.Codec<A>,
  value: A,
  what: string,
  maxLength: number
): Effect.Effect<string, InvalidValue> =>
  Either.match(codec.encode(value), {
    onLeft: ({ issues }) => Effect.fail(new InvalidValue({ what, issues })),
    onRight: (json) =>
      json.length <= maxLength
        ? Effect.succeed(json)
        : Effect.fail(
            new InvalidValue({
              what,
              issues: [`$: is ${json.length} characters long as JSON, of ${maxLength} at most`]
            })
          )
  })
