/** Definitions are named when a module is loaded: a bad name is a programming error, reported at once. */
import { DefinitionName } from "@fermata/contract"
import { Either, Schema } from "effect"

const decode = Schema.decodeUnknownEither(DefinitionName)

/** Throws, naming the definition and what is wrong with its name. */
export const definitionName = (kind: string, name: string): void => {
  // Timers are keyed `sleep#n`, in one count with nodes and interrupts.
  if (name === "sleep" && (kind === "node" || kind === "interrupt"))
    throw new TypeError(`"sleep" cannot name a ${kind}: timers have that name`)
  const result = decode(name)
  if (Either.isLeft(result))
    throw new TypeError(`${JSON.stringify(name)} cannot name a ${kind}: ${result.left.message}`)
}
