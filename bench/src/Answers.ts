/** Answers to the n-th question of a run of `Asking`. */
import type { BranchId } from "@fermata/contract"
import { Client } from "@fermata/runtime"
import { Effect } from "effect"
import { More } from "./Workflows.js"

/** Answers it, durably: so many more steps, or 0 to end. A refusal is a defect of the measurement. */
export const answer = (branch: BranchId, question: number, value: number): Effect.Effect<void, never, Client.Client> =>
  Effect.flatMap(Client.Client, (client) =>
    Effect.orDie(
      client.resume(More, {
        branch,
        interrupt: `more#${question}`,
        value,
        deliveryId: `${branch}-${question}`,
        intent: "retry"
      })
    )
  )

/** Waits until the branch is parked on it. */
export const awaitQuestion = (branch: BranchId, question: number) =>
  Effect.flatMap(Client.Client, (client) =>
    client.awaitStatus(
      branch,
      (description) =>
        description.status === "waiting" &&
        description.waitingFor.some((what) => what._tag === "Answer" && what.interrupt === `more#${question}`)
    )
  )
