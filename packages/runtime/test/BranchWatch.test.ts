import { assert, describe, it } from "@effect/vitest"
import { BranchId } from "@fermata/contract"
import type { Announcement } from "@fermata/ledger"
import { Deferred, Duration, Effect, Fiber, Option, TestClock } from "effect"
import { mayHaveChanged, mayHaveTold, mayHaveEnded, untilFound } from "../src/internal/BranchWatch.js"

const branch = BranchId.make("r/main")
const other = BranchId.make("s/main")

/** The announcing side of a ledger, by hand. */
const announcer = () => {
  const heard = new Set<(announcement: Announcement) => void>()
  return {
    heard,
    publish: (announcement: Announcement) => {
      for (const callback of heard) callback(announcement)
    },
    subscribe: (callback: (announcement: Announcement) => void) => {
      heard.add(callback)
      return () => void heard.delete(callback)
    }
  }
}

describe("waiting for a branch", () => {
  it.effect("an announcement while it looks makes it look again", () =>
    Effect.gen(function* () {
      const ledger = announcer()
      let looks = 0
      const look = Effect.sync(() => {
        looks++
        // What was read is out of date at once: the change comes before the look returns.
        if (looks === 1) ledger.publish({ _tag: "Changed", branch })
        return looks === 1 ? Option.none() : Option.some(looks)
      })
      assert.strictEqual(yield* untilFound(ledger, mayHaveEnded(branch), Duration.infinity, look), 2)
      assert.strictEqual(ledger.heard.size, 0)
    })
  )

  it.effect("it hears its own branch and what concerns all, and nothing else", () =>
    Effect.gen(function* () {
      const ledger = announcer()
      const looked: Array<Deferred.Deferred<void>> = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let looks = 0
      const look = Effect.suspend(() => {
        const at = looked[looks++]
        return at === undefined ? Effect.succeedSome(looks) : Effect.as(Deferred.succeed(at, undefined), Option.none())
      })
      const fiber = yield* Effect.fork(untilFound(ledger, mayHaveEnded(branch), "1 day", look))
      yield* Effect.flatMap(Effect.fromNullable(looked[0]), Deferred.await)
      ledger.publish({ _tag: "Changed", branch: other })
      ledger.publish({ _tag: "Inbox", branch })
      ledger.publish({ _tag: "Ready" })
      yield* Effect.yieldNow()
      assert.strictEqual(looks, 1)
      ledger.publish({ _tag: "Anything" })
      yield* Effect.flatMap(Effect.fromNullable(looked[1]), Deferred.await)
      ledger.publish({ _tag: "Changed", branch })
      assert.strictEqual(yield* Fiber.join(fiber), 3)
    })
  )

  it.effect("it looks again by itself after the poll, and stops listening when interrupted", () =>
    Effect.gen(function* () {
      const ledger = announcer()
      let found = false
      const look = Effect.sync(() => (found ? Option.some("found") : Option.none()))
      const fiber = yield* Effect.fork(untilFound(ledger, mayHaveEnded(branch), "5 seconds", look))
      yield* TestClock.adjust("4 seconds")
      found = true
      assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(fiber), "found")
      const never = yield* Effect.fork(untilFound(ledger, mayHaveEnded(branch), "5 seconds", Effect.succeedNone))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(ledger.heard.size, 1)
      yield* Fiber.interrupt(never)
      assert.strictEqual(ledger.heard.size, 0)
    })
  )

  it("a branch may stand otherwise after whatever is not of another branch", () => {
    const concerns = mayHaveChanged(branch)
    assert.isTrue(concerns({ _tag: "Ready" }))
    assert.isTrue(concerns({ _tag: "Anything" }))
    assert.isTrue(concerns({ _tag: "Inbox", branch }))
    assert.isFalse(concerns({ _tag: "Inbox", branch: other }))
    assert.isFalse(concerns({ _tag: "Changed", branch: other }))
    // What it tells while it runs is for those who wait for that.
    assert.isFalse(concerns({ _tag: "Told", branch }))
    assert.isTrue(mayHaveTold(branch)({ _tag: "Told", branch }))
  })
})
