/** Goes back to a decision that was made, and makes another one: on a branch of its own, beside the first. */
import type { Entry } from "@fermata/contract"
import { Client } from "@fermata/runtime"
import { Effect } from "effect"
import type { Script } from "./Desk.js"
import { Approval, type Outcome, Refund } from "./Refund.js"

/** Two branches of one run. */
export interface WhatIf {
  /** What became of the other answer when it was not asked for as a fork. */
  readonly asRetry: string
  readonly main: Branch
  readonly fork: Branch
  /** How many entries the two have in common. */
  readonly shared: number
}

/** One branch and what is in its history. */
export interface Branch {
  readonly branch: string
  readonly outcome: Outcome
  readonly history: ReadonlyArray<Entry>
}

/** Asks for another answer, first without saying "fork", and then saying it. */
export const explore = ({ decision, request }: Script["whatIf"]) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const other = {
      branch: `${request}/main`,
      interrupt: "approval#1",
      value: decision,
      deliveryId: `${request}-what-if`
    }
    const asRetry = yield* client.resume(Approval, { ...other, intent: "retry" }).pipe(
      Effect.map(({ _tag }) => String(_tag)),
      Effect.catchTag("AlreadyConsumed", ({ _tag }) => Effect.succeed(String(_tag)))
    )
    const fork = yield* client.resume(Approval, { ...other, intent: "fork", forkId: "what-if" })
    const [main, child] = yield* Effect.all([look(other.branch), look(fork.branch)])
    const same = main.history.findIndex((entry, i) => entry.digest !== child.history[i]?.digest)
    return { asRetry, main, fork: child, shared: same < 0 ? main.history.length : same } satisfies WhatIf
  })

const look = (branch: string) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const outcome = yield* client.result(Refund, branch)
    return { branch, outcome, history: yield* client.history(branch) } satisfies Branch
  })
