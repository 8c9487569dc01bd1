/** The list of mutants fits the sources; `npm run contract:mutants` runs them. */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { mutated } from "../../mutants/Mutant.js"
import { mutants } from "../../mutants/Mutants.js"

const folder = new URL("../../src/decisions/", import.meta.url)
const decisions = readdirSync(folder).map((file) => file.replace(/\.ts$/, ""))

describe("the mutants of the decisions", () => {
  it("each change a text that its decision has exactly once", () => {
    for (const mutant of mutants) mutated(readFileSync(new URL(`${mutant.decision}.ts`, folder), "utf8"), mutant)
  })

  it("are different ones, of every decision several", () => {
    assert.strictEqual(
      new Set(mutants.map(({ decision, replace, find }) => JSON.stringify([decision, find, replace]))).size,
      mutants.length
    )
    for (const decision of decisions) {
      assert.isAtLeast(mutants.filter((mutant) => mutant.decision === decision).length, 4, decision)
    }
  })

  it("are refused if their text is missing, there twice, or unchanged", () => {
    const mutant = { decision: "d", find: "a", replace: "b", breaks: "it" }
    assert.strictEqual(mutated("xay", mutant), "xby")
    assert.throws(() => mutated("xy", mutant), "0 times, not once")
    assert.throws(() => mutated("aa", mutant), "2 times, not once")
    assert.throws(() => mutated("a", { ...mutant, replace: "a" }), "changes nothing")
  })
})
