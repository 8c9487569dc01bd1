/**
 * A second opinion: what the shop must have paid, worked out from the data files alone. It shares the arithmetic of money
 * and the model's judgement with the agent, and nothing else: no Schema, no workflow, no plane.
 */
import { Either } from "effect"
import { judge } from "./Assessor.js"
import * as Money from "./Money.js"

/** What the shop's log must show. */
export interface Expectation {
  /** By request: the one payment. */
  readonly payments: ReadonlyMap<string, Money.Money>
  /** By request: how many letters. One, or two if it was forked. */
  readonly letters: ReadonlyMap<string, number>
}

/** The texts of the three files. */
export interface Files {
  readonly requests: string
  readonly orders: string
  readonly desk: string
}

/** Works it out. */
export const fromFiles = (files: Files): Expectation => {
  const orders = new Map(jsonLines(files.orders).map((order) => [text(order, "id"), order]))
  // Ours, and checked by its Schema when it is played.
  const desk = JSON.parse(files.desk) as {
    readonly decisions: Record<string, { readonly approved: boolean } | undefined>
    readonly whatIf: { readonly request: string; readonly decision: { readonly approved: boolean } }
  }
  const payments = new Map<string, Money.Money>()
  const letters = new Map<string, number>()
  for (const request of jsonLines(files.requests)) {
    const id = text(request, "id")
    const amount = amountOf(request, "amount")
    const wellFormed = [id, text(request, "order"), text(request, "customer"), text(request, "reason")].every(
      (t) => t !== ""
    )
    // The first request that makes sense has the id.
    if (!wellFormed || amount === undefined || letters.has(id)) continue
    const forked = desk.whatIf.request === id
    letters.set(id, forked ? 2 : 1)
    const agreed = forked
      ? desk.whatIf.decision.approved
      : (desk.decisions[id]?.approved ?? judge(text(request, "reason")).verdict === "grant")
    if (agreed && coveredBy(orders.get(text(request, "order")), amount)) payments.set(id, amount)
  }
  return { payments, letters }
}

const coveredBy = (order: Json | undefined, amount: Money.Money): boolean => {
  if (order === undefined || text(order, "card") === "closed") return false
  const paid = amountOf(order, "paid")
  const refunded = amountOf({ refunded: "0", ...order }, "refunded")
  if (paid === undefined || refunded === undefined || paid.currency !== amount.currency) return false
  return amount.minor > 0 && amount.minor <= paid.minor - refunded.minor
}

type Json = Readonly<Record<string, unknown>>

const jsonLines = (lines: string): ReadonlyArray<Json> =>
  lines.split("\n").flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line)
      return isObject(value) ? [value] : []
    } catch {
      return []
    }
  })

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const text = (json: Json, field: string): string => {
  const value = json[field]
  return typeof value === "string" ? value.trim() : ""
}

const currencies = ["CHF", "EUR", "GBP", "JPY", "KWD", "USD"] as const

const amountOf = (json: Json, field: string): Money.Money | undefined => {
  const currency = currencies.find((one) => one === text(json, "currency").toUpperCase())
  const value = json[field]
  const written = typeof value === "number" ? String(value) : text(json, field)
  return currency === undefined ? undefined : Either.getOrUndefined(Money.parse(written, currency))
}
