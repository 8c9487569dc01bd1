/** The filter of a store's search: each field equals a value by content, or satisfies operators. */
import { isDeepStrictEqual } from "node:util"

const operators: Readonly<Record<string, (found: unknown, wanted: unknown) => boolean>> = {
  $eq: (found, wanted) => isDeepStrictEqual(found, wanted),
  $ne: (found, wanted) => !isDeepStrictEqual(found, wanted),
  $gt: (found, wanted) => compared(found, wanted, (order) => order > 0),
  $gte: (found, wanted) => compared(found, wanted, (order) => order >= 0),
  $lt: (found, wanted) => compared(found, wanted, (order) => order < 0),
  $lte: (found, wanted) => compared(found, wanted, (order) => order <= 0),
  $in: (found, wanted) => Array.isArray(wanted) && wanted.some((one) => isDeepStrictEqual(found, one)),
  $nin: (found, wanted) => !(Array.isArray(wanted) && wanted.some((one) => isDeepStrictEqual(found, one)))
}

/** Numbers, texts and dates have an order among their kind; nothing else has. */
const compared = (found: unknown, wanted: unknown, is: (order: number) => boolean): boolean => {
  const [a, b] = [found, wanted].map((value) => (value instanceof Date ? value.getTime() : value))
  if (typeof a === "number" && typeof b === "number") return is(a - b)
  if (typeof a === "string" && typeof b === "string") return is(a < b ? -1 : a > b ? 1 : 0)
  return false
}

const isOperators = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" &&
  value !== null &&
  Object.keys(value).length > 0 &&
  Object.keys(value).every((key) => Object.hasOwn(operators, key))

/** True if the document has what the filter asks for. */
export const isMatch = (
  value: Readonly<Record<string, unknown>>,
  filter: Readonly<Record<string, unknown>> | undefined
): boolean =>
  Object.entries(filter ?? {}).every(([field, wanted]) => {
    const found: unknown = Object.hasOwn(value, field) ? value[field] : undefined
    return isOperators(wanted)
      ? Object.entries(wanted).every(([operator, operand]) => operators[operator]?.(found, operand) === true)
      : isDeepStrictEqual(found, wanted)
  })
