/** The filter of `list`: a checkpoint's metadata must have each field with an equal value, nothing more and less. */
import { StrictJson } from "@fermata/contract"
import { Either } from "effect"

/** True if the metadata has what the filter names. Values are compared by content. */
export const matches = (metadata: unknown, filter: Readonly<Record<string, unknown>> | undefined): boolean =>
  filter === undefined ||
  Object.entries(filter).every(([field, wanted]) => {
    const found: unknown =
      typeof metadata === "object" && metadata !== null && Object.hasOwn(metadata, field)
        ? Reflect.get(metadata, field)
        : undefined
    return isEqual(found, wanted)
  })

const isEqual = (found: unknown, wanted: unknown): boolean => {
  if (Object.is(found, wanted)) return true
  if (typeof found !== "object" || typeof wanted !== "object") return false
  const [a, b] = [StrictJson.canonical(found), StrictJson.canonical(wanted)]
  return Either.isRight(a) && Either.isRight(b) && a.right === b.right
}
