/**
 * Waiting for a branch without asking all the time: whoever commits announces, and the announcement says when to look
 * again. LV: the subscription comes before the look, so what happens in between is heard; and since an announcement from
 * another process may be lost, there is a slow poll besides.
 */
import type { BranchId } from "@fermata/contract"
import type { Announcement, Ledger } from "@fermata/ledger"
import { type Duration, Effect, Option } from "effect"

/** Announcements after which a branch may have ended. */
export const mayHaveEnded =
  (branch: BranchId) =>
  (announcement: Announcement): boolean =>
    announcement._tag === "Anything" || (announcement._tag === "Changed" && announcement.branch === branch)

/** Announcements after which a branch may have told something, or stand otherwise than before. */
export const mayHaveTold =
  (branch: BranchId) =>
  (announcement: Announcement): boolean =>
    announcement._tag !== "Emitted" && (!("branch" in announcement) || announcement.branch === branch)

/** Announcements after which a branch may stand otherwise than before: while it runs, its interrupts are no part of that. */
export const mayHaveChanged =
  (branch: BranchId) =>
  (announcement: Announcement): boolean =>
    announcement._tag !== "Told" && mayHaveTold(branch)(announcement)

/** Announcements after which a branch may have said more, or have ended. */
export const mayHaveEmitted =
  (branch: BranchId) =>
  (announcement: Announcement): boolean =>
    mayHaveEnded(branch)(announcement) || (announcement._tag === "Emitted" && announcement.branch === branch)

/** Looks at once, and again after every announcement that `concerns` it and every `poll`, until `look` finds something. */
export const untilFound = <A, E>(
  ledger: Pick<Ledger, "subscribe">,
  concerns: (announcement: Announcement) => boolean,
  poll: Duration.DurationInput,
  look: Effect.Effect<Option.Option<A>, E>
): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const heard = Effect.unsafeMakeLatch(false)
      const stop = ledger.subscribe((announcement) => {
        if (concerns(announcement)) heard.unsafeOpen()
      })
      return { heard, stop }
    }),
    ({ heard }) => {
      const again: Effect.Effect<A, E> = Effect.suspend(() => {
        // Closed before the look: what is announced while it is under way asks for another one.
        heard.unsafeClose()
        return Effect.flatMap(
          look,
          Option.match({
            onSome: (found) => Effect.succeed(found),
            onNone: () => Effect.zipRight(Effect.timeoutOption(heard.await, poll), again)
          })
        )
      })
      return again
    },
    ({ stop }) => Effect.sync(stop)
  )
