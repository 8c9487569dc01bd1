/** What a caller asks of runs that it looks for, and tags that it gives, checked. */
import type { RunFilter, StartRequest } from "@fermata/ledger"
import { Effect, Either } from "effect"
import type * as Client from "../Client.js"
import { InvalidValue } from "../RunError.js"
import * as Tag from "../Tag.js"

/** A filter as the ledger takes it. */
export const checkedFilter = (filter: Client.RunFilter): Effect.Effect<RunFilter, InvalidValue> =>
  Effect.suspend(() => {
    const { endedAfter, endedBefore, startedAfter, startedBefore, status, workflow } = filter
    const issues: Array<string> = []
    const times: { -readonly [K in "endedAfter" | "endedBefore" | "startedAfter" | "startedBefore"]?: number } = {}
    for (const [name, time] of Object.entries({ endedAfter, endedBefore, startedAfter, startedBefore })) {
      if (time === undefined) continue
      // The keys are those of the object above.
      times[name as keyof typeof times] = time.getTime()
      if (Number.isNaN(time.getTime())) issues.push(`${name}: is not a time`)
    }
    const tags = Tag.filters(filter.tags ?? {})
    if (Either.isLeft(tags)) issues.push(...tags.left)
    if (issues.length > 0 || Either.isLeft(tags)) {
      return Effect.fail(new InvalidValue({ what: "filter of runs", issues }))
    }
    return Effect.succeed({
      ...(workflow === undefined ? {} : { workflow }),
      ...(status === undefined ? {} : { status }),
      ...(tags.right.length === 0 ? {} : { tags: tags.right }),
      ...times
    })
  })

/** The tags of a start as the ledger takes them. */
export const startTags = (
  workflow: { readonly name: string; readonly tags: Tag.Declared<Tag.Schemas> },
  values: Readonly<Record<string, unknown>> | undefined
): Effect.Effect<Pick<StartRequest, "tags">, InvalidValue> =>
  values === undefined
    ? Effect.succeed({})
    : Either.match(Tag.encoded(workflow.tags, values), {
        onLeft: (issues) => Effect.fail(new InvalidValue({ what: `tags of workflow ${workflow.name}`, issues })),
        onRight: (tags) => Effect.succeed(Object.keys(tags).length === 0 ? {} : { tags })
      })
