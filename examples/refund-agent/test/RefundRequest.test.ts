import { describe, expect, it } from "@effect/vitest"
import { Either } from "effect"
import { readFileSync } from "node:fs"
import * as Money from "../src/Money.js"
import { readLines } from "../src/RefundRequest.js"

const line = (fields: Record<string, unknown>) =>
  JSON.stringify({
    id: "R-1",
    order: "O-1",
    customer: "Zoë",
    amount: "12.50",
    currency: "EUR",
    reason: "broken",
    ...fields
  })

const read = (fields: Record<string, unknown>) => readLines(line(fields))[0]?.request

describe("a line of the request file", () => {
  it("is a request with an exact amount, whatever the currency's decimals and the writer's habits", () => {
    const amount = (written: unknown, currency: string) => {
      const request = read({ amount: written, currency })
      return request !== undefined && Either.isRight(request) ? Money.format(request.right.amount) : request
    }
    expect(amount("12.50", "EUR")).toBe("12.50 EUR")
    expect(amount(" 0.1 ", " eur ")).toBe("0.10 EUR")
    expect(amount(18.5, "USD")).toBe("18.50 USD")
    expect(amount("1200", "JPY")).toBe("1,200 JPY")
    expect(amount("1.005", "KWD")).toBe("1.005 KWD")
    expect(amount("-20.00", "EUR")).toBe("-20.00 EUR")
    expect(amount("25000000.00", "USD")).toBe("25,000,000.00 USD")
  })

  it.each([
    [{ amount: "12,50" }, 'amount "12,50" is not a number like 1299.00'],
    [{ amount: "10.5", currency: "JPY" }, "amount 10.5 has more decimals than JPY has (0)"],
    [{ amount: "99999999999999999999" }, "amount 99999999999999999999 is larger than anyone has"],
    [{ amount: 1e21 }, 'amount "1e+21" is not a number like 1299.00'],
    [{ amount: undefined }, "amount is missing"],
    [{ customer: "  " }, "customer is empty or not what it should be"],
    [{ currency: "XBT" }, "currency is not one that we trade in"]
  ])("is refused with a reason: %j", (fields, why) => {
    expect(read(fields)).toEqual(Either.left(why))
  })

  it("may be anything at all: nothing throws, and blank lines are not lines", () => {
    const lines = readLines('null\n\n[]\n{"id":\n  \n7\r\n')
    expect(lines.map(({ number, request }) => [number, Either.isLeft(request) && request.left])).toEqual([
      [1, "is not a request"],
      [3, "is not a request"],
      [4, "is not JSON"],
      [6, "is not a request"]
    ])
  })

  it("comes in a file of which these are turned away", () => {
    const lines = readLines(readFileSync(new URL("../data/requests.jsonl", import.meta.url), "utf8"))
    const bad = lines.flatMap(({ number, request }) => (Either.isLeft(request) ? [`${number}: ${request.left}`] : []))
    expect(lines.length).toBe(53)
    expect(bad).toEqual([
      "13: amount is missing",
      "14: order is missing",
      "15: is not JSON",
      "18: amount 99999999999999999999.00 is larger than anyone has",
      "24: currency is not one that we trade in",
      '25: amount "12,50" is not a number like 1299.00',
      "36: amount 10.5 has more decimals than JPY has (0)",
      "38: customer is empty or not what it should be",
      "43: id is missing",
      "44: is not a request",
      "51: is not a request",
      "52: amount is empty or not what it should be"
    ])
  })
})
