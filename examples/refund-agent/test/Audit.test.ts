import { describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import * as Audit from "../src/Audit.js"
import type * as EffectLog from "../src/EffectLog.js"
import * as Expectation from "../src/Expectation.js"
import * as Money from "../src/Money.js"

const data = (name: string) => readFileSync(new URL(`../data/${name}`, import.meta.url), "utf8")
const expected = Expectation.fromFiles({
  requests: data("requests.jsonl"),
  orders: data("orders.jsonl"),
  desk: data("desk.json")
})

/** A log that is as it must be. */
const goodLog = (): Array<EffectLog.Entry> => {
  const entries: Array<Omit<EffectLog.Entry, "n">> = []
  for (const [request, amount] of expected.payments)
    entries.push({ what: "payment", key: request, request, amount, text: "" })
  for (const [request, letters] of expected.letters) {
    for (let i = 0; i < letters; i++) {
      entries.push({ what: "letter", key: `${request}-${i}`, request, amount: undefined, text: "" })
    }
  }
  return entries.map((entry, i) => ({ ...entry, n: i + 1 }))
}

const replaced = (request: string, by: (entry: EffectLog.Entry) => ReadonlyArray<EffectLog.Entry>) =>
  goodLog().flatMap((entry) => (entry.request === request && entry.what === "payment" ? by(entry) : [entry]))

describe("the expectation", () => {
  it("is what a person counts in the data files", () => {
    expect(expected.payments.size).toBe(27)
    expect(Money.total(expected.payments.values()).map(Money.format)).toEqual([
      "310.00 CHF",
      "1,112.43 EUR",
      "222.41 GBP",
      "16,201 JPY",
      "13.755 KWD",
      "352.50 USD"
    ])
    expect(expected.letters.size).toBe(39)
  })
})

describe("the audit", () => {
  it("finds nothing in a log that is as it must be", () => {
    expect(Audit.findings(expected, goodLog())).toEqual([])
  })

  it("finds a payment that is missing, doubled, wrong, or nobody's", () => {
    expect(
      Audit.findings(
        expected,
        replaced("R-1001", () => [])
      )
    ).toEqual(["R-1001: the payment of 49.90 EUR is missing"])
    expect(
      Audit.findings(
        expected,
        replaced("R-1001", (entry) => [entry, entry])
      )
    ).toEqual(["R-1001: paid 2 times"])
    expect(
      Audit.findings(
        expected,
        replaced("R-1001", (entry) => [{ ...entry, amount: { currency: "EUR", minor: 499 } }])
      )
    ).toEqual(["R-1001: paid 4.99 EUR instead of 49.90 EUR"])
    expect(
      Audit.findings(
        expected,
        replaced("R-1001", (entry) => [entry, { ...entry, request: "R-1004" }])
      )
    ).toEqual(["R-1004: paid, though it must not be"])
  })

  it("finds a `once` payment that was asked for again, and a letter too many", () => {
    expect(
      Audit.findings(
        expected,
        replaced("R-1001", (entry) => [
          entry,
          { ...entry, what: "payment asked for again" },
          { ...entry, what: "letter", amount: undefined }
        ])
      )
    ).toEqual(["R-1001: payment R-1001 was asked for again", "R-1001: 2 letters instead of 1"])
  })
})
