/**
 * What a customer asks for, and the door through which requests come in: a file of JSON lines, written by many hands.
 * What does not make sense as a request is refused here, with a reason, before any run exists.
 */
import { Either, ParseResult, Schema } from "effect"
import * as Money from "./Money.js"

/** A request that makes sense. Whether it is justified is for the workflow to find out. */
export const RefundRequest = Schema.Struct({
  id: Schema.String,
  order: Schema.String,
  customer: Schema.String,
  amount: Money.Money,
  reason: Schema.String
})
export type RefundRequest = typeof RefundRequest.Type

/** One line of the file: a request, or what is wrong with it. */
export interface Line {
  readonly number: number
  readonly request: Either.Either<RefundRequest, string>
}

/** Reads the file's text. Blank lines are skipped; numbers are those that an editor shows. */
export const readLines = (text: string): ReadonlyArray<Line> =>
  text
    .split("\n")
    .flatMap((line, index) => (line.trim() === "" ? [] : [{ number: index + 1, request: readLine(line) }]))

const Text = Schema.compose(Schema.Trim, Schema.NonEmptyString)

const Written = Schema.Struct({
  id: Text,
  order: Text,
  customer: Text,
  amount: Schema.Union(Schema.Trim, Schema.Number),
  currency: Schema.compose(Schema.compose(Schema.Trim, Schema.Uppercase), Money.Currency),
  reason: Text
})

const decode = Schema.decodeUnknownEither(Written)

const readLine = (line: string): Either.Either<RefundRequest, string> =>
  Either.gen(function* () {
    const json = yield* Either.try({ try: (): unknown => JSON.parse(line), catch: () => "is not JSON" })
    const written = yield* Either.mapLeft(decode(json), complaint)
    const amount = yield* Money.parse(String(written.amount), written.currency)
    return { id: written.id, order: written.order, customer: written.customer, amount, reason: written.reason }
  })

/** The first complaint, in the words of whoever has to correct the line. */
const complaint = (error: ParseResult.ParseError): string => {
  const first = ParseResult.ArrayFormatter.formatErrorSync(error)[0]
  if (first === undefined || first.path.length === 0) return "is not a request"
  const field = first.path.join(".")
  if (first._tag === "Missing") return `${field} is missing`
  return field === "currency" ? "currency is not one that we trade in" : `${field} is empty or not what it should be`
}
