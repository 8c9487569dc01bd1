/** Money as integers of the currency's smallest unit: no amount here ever passes through floating point. */
import { Either, Schema } from "effect"

/** The currencies that the shop trades in. */
export const Currency = Schema.Literal("CHF", "EUR", "GBP", "JPY", "KWD", "USD")
export type Currency = typeof Currency.Type

const decimals: Record<Currency, number> = { CHF: 2, EUR: 2, GBP: 2, JPY: 0, KWD: 3, USD: 2 }

/** An amount: 12.50 EUR is 1250 `minor` units. */
export const Money = Schema.Struct({ currency: Currency, minor: Schema.Int })
export type Money = typeof Money.Type

/** Reads a decimal number as people write it in data, or says what is wrong with it. */
export const parse = (text: string, currency: Currency): Either.Either<Money, string> => {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)
  if (match === null) return Either.left(`amount ${JSON.stringify(text)} is not a number like 1299.00`)
  const [, sign = "", whole = "", fraction = ""] = match
  if (fraction.length > decimals[currency]) {
    return Either.left(`amount ${text} has more decimals than ${currency} has (${decimals[currency]})`)
  }
  const minor = Number(whole + fraction.padEnd(decimals[currency], "0"))
  if (!Number.isSafeInteger(minor)) return Either.left(`amount ${text} is larger than anyone has`)
  return Either.right({ currency, minor: sign === "-" && minor !== 0 ? -minor : minor })
}

/** `1,234.50 EUR`, the same in every locale. */
export const format = ({ currency, minor }: Money): string => {
  const digits = String(Math.abs(minor)).padStart(decimals[currency] + 1, "0")
  const cut = digits.length - decimals[currency]
  const whole = digits.slice(0, cut).replace(/\B(?=(\d{3})+$)/g, ",")
  return `${minor < 0 ? "-" : ""}${whole}${cut === digits.length ? "" : `.${digits.slice(cut)}`} ${currency}`
}

/** The sum by currency, in alphabetical order. */
export const total = (amounts: Iterable<Money>): ReadonlyArray<Money> => {
  const sums = new Map<Currency, number>()
  for (const { currency, minor } of amounts) sums.set(currency, (sums.get(currency) ?? 0) + minor)
  return [...sums].map(([currency, minor]) => ({ currency, minor })).sort((a, b) => (a.currency < b.currency ? -1 : 1))
}
