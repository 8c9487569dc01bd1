import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { admitAppend, type AppendRequest, type BranchRow } from "../../src/index.js"

describe("admitAppend", () => {
  const row = fc.record({
    epoch: fc.integer({ min: 1, max: 3 }),
    head: fc.integer({ min: 0, max: 3 }),
    headDigest: fc.constantFrom("a", "b"),
    inboxHead: fc.integer({ min: 0, max: 2 })
  })
  const request = fc.record({
    epoch: fc.integer({ min: 1, max: 3 }),
    base: fc.integer({ min: 0, max: 3 }),
    baseDigest: fc.constantFrom("a", "b"),
    head: fc.integer({ min: 1, max: 4 }),
    headDigest: fc.constantFrom("a", "b", "c"),
    inboxSeen: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined })
  })

  it.prop(
    "appends only under the row's epoch, after its head and digest, with nothing unseen",
    [fc.option(row, { nil: undefined }), request],
    ([stored, asked]) => {
      const verdict = admitAppend(stored, asked)
      if (stored === undefined || stored.epoch !== asked.epoch)
        return assert.deepStrictEqual(verdict, { _tag: "Fenced" })
      switch (verdict._tag) {
        case "Append":
          assert.deepStrictEqual([asked.base, asked.baseDigest], [stored.head, stored.headDigest])
          return assert.include([undefined, stored.inboxHead], asked.inboxSeen)
        case "AlreadyAppended":
          return assert.deepStrictEqual([asked.head, asked.headDigest], [stored.head, stored.headDigest])
        case "InboxAdvanced":
          assert.strictEqual(verdict.inboxHead, stored.inboxHead)
          return assert.notStrictEqual(asked.inboxSeen, stored.inboxHead)
        case "Fenced":
          return assert.notDeepEqual([asked.base, asked.baseDigest], [stored.head, stored.headDigest])
      }
    },
    { fastCheck: { numRuns: 5000 } }
  )

  const action = fc.oneof(
    fc.record({
      _tag: fc.constant("append" as const),
      owner: fc.integer({ min: 0, max: 2 }),
      conditional: fc.boolean(),
      replyLost: fc.boolean()
    }),
    fc.record({ _tag: fc.constant("claim" as const), owner: fc.integer({ min: 0, max: 2 }) }),
    fc.record({ _tag: fc.constant("inbox" as const) })
  )

  it.prop(
    "RD: of any owners, zombies and lost replies one order comes, no row is doubled, and a fenced owner stays so",
    [fc.array(action, { maxLength: 40 })],
    ([actions]) => {
      const row: { -readonly [K in keyof BranchRow]: BranchRow[K] } = {
        epoch: 0,
        head: 0,
        headDigest: "",
        inboxHead: 0
      }
      const journal: Array<{ readonly epoch: number; readonly digest: string }> = []
      const owners = new Map<
        number,
        {
          epoch: number
          head: number
          digest: string
          inboxSeen: number
          pending: AppendRequest | undefined
          fenced: boolean
        }
      >()
      let written = 0
      for (const now of actions) {
        if (now._tag === "inbox") {
          row.inboxHead++
          continue
        }
        if (now._tag === "claim") {
          row.epoch++
          owners.set(now.owner, {
            epoch: row.epoch,
            head: row.head,
            digest: row.headDigest,
            inboxSeen: row.inboxHead,
            pending: undefined,
            fenced: false
          })
          continue
        }
        const owner = owners.get(now.owner)
        if (owner === undefined) continue
        // A reply that was lost is asked about by the same append again.
        const request = owner.pending ?? {
          epoch: owner.epoch,
          base: owner.head,
          baseDigest: owner.digest,
          head: owner.head + 1,
          headDigest: `w${++written}`,
          inboxSeen: now.conditional ? owner.inboxSeen : undefined
        }
        const verdict = admitAppend(row, request)
        if (owner.fenced) assert.strictEqual(verdict._tag, "Fenced")
        // Whoever does not own the branch now writes nothing.
        if (owner.epoch !== row.epoch) assert.strictEqual(verdict._tag, "Fenced")
        else assert.notStrictEqual(verdict._tag, "Fenced")
        if (verdict._tag === "Append") {
          journal.push({ epoch: request.epoch, digest: request.headDigest })
          row.head = request.head
          row.headDigest = request.headDigest
        }
        if (verdict._tag === "Append" && now.replyLost) owner.pending = request
        else owner.pending = undefined
        if ((verdict._tag === "Append" && !now.replyLost) || verdict._tag === "AlreadyAppended") {
          owner.head = request.head
          owner.digest = request.headDigest
        }
        if (verdict._tag === "InboxAdvanced") owner.inboxSeen = verdict.inboxHead
        if (verdict._tag === "Fenced") owner.fenced = true
      }
      assert.strictEqual(journal.length, row.head)
      assert.strictEqual(new Set(journal.map(({ digest }) => digest)).size, journal.length)
      // Epochs never go back along the journal.
      journal.forEach(({ epoch }, i) => assert.isAtLeast(epoch, journal[i - 1]?.epoch ?? 0))
    },
    { fastCheck: { numRuns: 2000 } }
  )
})
