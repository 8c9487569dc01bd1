/** Definitions are named when a module is loaded: a bad name is a programming error, reported at once. */
import { DefinitionName } from "@fermata/contract"
import { Either, Schema } from "effect"

const decode = Schema.decodeUnknownEither(DefinitionName)

/** Throws, naming the definition and what is wrong with its name. */
export const definitionName = (kind: string, name: string): void => {
  const result = decode(name)
  if (Either.isLeft(result))
    throw new TypeError(`${JSON.stringify(name)} cannot name a ${kind}: ${result.left.message}`)
}
