/** What a child has reported and nobody took yet, and who waits for what. */
import { Data, Effect } from "effect"
import type { Report } from "./Wire.js"

/** The child ended first. */
export class WaitedInVain extends Data.TaggedError("WaitedInVain")<{ readonly waitedFor: string }> {}

export interface Reports {
  /** Takes the oldest report that is as wanted, now or when it comes. */
  readonly take: <Tag extends Report["_tag"]>(
    tag: Tag,
    waitedFor: string,
    wanted?: (report: Extract<Report, { readonly _tag: Tag }>) => boolean
  ) => Effect.Effect<Extract<Report, { readonly _tag: Tag }>, WaitedInVain>
  readonly put: (report: Report) => void
  /** No more will come. */
  readonly end: () => void
}

interface Taker {
  /** Whether it took the report. */
  readonly offer: (report: Report) => boolean
  readonly giveUp: () => void
}

export const make = (): Reports => {
  const untaken: Array<Report> = []
  const takers: Array<Taker> = []
  let over = false

  return {
    take: (tag, waitedFor, wanted = () => true) =>
      Effect.async((resume) => {
        type Wanted = Extract<Report, { readonly _tag: typeof tag }>
        // `wanted` is asked about reports of its tag only, which the compiler can't see through the generic tag.
        const matches = (report: Report): report is Wanted => report._tag === tag && wanted(report as Wanted)
        for (const [index, report] of untaken.entries()) {
          if (!matches(report)) continue
          untaken.splice(index, 1)
          return resume(Effect.succeed(report))
        }
        if (over) return resume(new WaitedInVain({ waitedFor }))
        const taker: Taker = {
          offer: (report) => {
            if (!matches(report)) return false
            resume(Effect.succeed(report))
            return true
          },
          giveUp: () => resume(new WaitedInVain({ waitedFor }))
        }
        takers.push(taker)
        return Effect.sync(() => void takers.splice(takers.indexOf(taker), 1))
      }),
    put: (report) => {
      const index = takers.findIndex((taker) => taker.offer(report))
      if (index >= 0) takers.splice(index, 1)
      else untaken.push(report)
    },
    end: () => {
      over = true
      takers.splice(0).forEach((taker) => taker.giveUp())
    }
  }
}
