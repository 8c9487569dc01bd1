/** `fermata show`: a run's branches as a tree, what it waits for, and a branch's timeline. */
import { Args, Command } from "@effect/cli"
import { Client, Ledger } from "@fermata/runtime"
import { Effect } from "effect"
import * as BranchTree from "../BranchTree.js"
import { common, onPlane } from "../Flags.js"
import { oneLine, print, time } from "../Output.js"
import * as Timeline from "../Timeline.js"

export const show = Command.make("show", { ...common, of: Args.text({ name: "run-or-branch" }) }, (options) =>
  onPlane(
    options,
    Effect.gen(function* () {
      const client = yield* Client.Client
      const { now } = yield* Ledger
      const branch = yield* client.describe(options.of)
      const branches = yield* client.branches(branch.run)
      const pending = yield* client.pendingInterrupts({ run: branch.run, limit: 1000 })
      const timeline = Timeline.of(yield* client.history(branch.branch))
      const at = yield* now
      yield* print(options.json, { branch, branches, pending, timeline }, () => [
        `${branch.run}  ${branch.workflow}@${branch.version}  started ${time(branch.createdAt)}`,
        "",
        ...BranchTree.lines(branches, at),
        ...pending.flatMap(({ branch, checkpoint, interrupt, payload }) => [
          "",
          `? ${interrupt} on ${branch} (seq ${checkpoint.seq}): ${oneLine(JSON.stringify(payload), 200)}`
        ]),
        "",
        `Timeline of ${branch.branch}`,
        ...Timeline.lines(timeline)
      ])
    })
  )
).pipe(Command.withDescription("Show a run: branches, what it waits for, timeline"))
