/** Mutants of what a step's own key decides. */
import { mutantsOf } from "./Mutant.js"

export const keyMutants = mutantsOf("admitKeyedCall", [
  [`if (before.input !== input)`, `if (false)`, "other work is given the outcome of the one that has its key"],
  [`=== "withdrawn") return "Withdrawn"`, `=== "withdrawn") return "Start"`, "EO: effects fire again under used keys"],
  [`=== "ended" ? "Serve" : "Join"`, `=== "ended" ? "Serve" : "Start"`, "EO: one step runs twice at once"],
  [`=== "ended" ? "Serve" : "Join"`, `=== "ended" ? "Join" : "Serve"`, "who calls an ended step waits for ever"],
  ["${scope}${node}@", "${node}@", "RD: an iteration is served what another one did"],
  [`/[#|~%]/`, `/[|~%]/`, "RD: a key reads as a count or as a loop's iteration"],
  [`node.includes("@")`, `false`, "two nodes have one step"]
])
