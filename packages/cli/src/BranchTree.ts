/** The branches of a run as a tree: each fork below the branch that it was forked from. */
import type { Client } from "@fermata/runtime"
import { duration, oneLine, time } from "./Output.js"

/** What a branch waits for, or why it is stuck, in words. */
export const stateOf = (branch: Client.Description): string => {
  const waits = branch.waitingFor.map((what) => {
    switch (what._tag) {
      case "Answer":
        return `answer to ${what.interrupt}`
      case "Signal":
        return `signal ${what.name}`
      case "Update":
        return `update ${what.name}`
      case "Time":
        return `time ${time(what.at)}`
      case "Worker":
        return `a worker that knows ${what.definition}`
      case "Operator":
        return `an operator: ${oneLine(what.problem.message, 300)}`
    }
  })
  return waits.length === 0 ? branch.status : `${branch.status}, waits for ${waits.join("; ")}`
}

/** Lines of the tree, root first. `now`: ledger milliseconds. */
export const lines = (branches: ReadonlyArray<Client.Description>, now: number): ReadonlyArray<string> => {
  const below = (parent: string | undefined, indent: string): ReadonlyArray<string> => {
    const children = branches.filter((one) => one.parent?.branch === parent)
    return children.flatMap((one, index) => {
      const last = index === children.length - 1
      const root = parent === undefined
      const from = one.parent === null ? "" : ` from seq ${one.parent.seq}`
      const age = duration(Math.max(0, now - one.createdAt))
      return [
        `${indent}${root ? "" : last ? "└─ " : "├─ "}${one.branch}${from}  ${stateOf(one)}  (head ${one.head}, ${age} old)`,
        ...below(one.branch, root ? "" : `${indent}${last ? "   " : "│  "}`)
      ]
    })
  }
  return below(undefined, "")
}
