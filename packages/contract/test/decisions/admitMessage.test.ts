import { assert, describe, it } from "@effect/vitest"
import { admitExpiry, admitMessage } from "../../src/index.js"
import { combinations } from "../domains.js"

const flag = [false, true] as const
const request = { name: "s", digest: "d" }

describe("admitMessage", () => {
  const facts = [
    ...combinations({
      run: ["known", "unknown", "purged"],
      over: flag,
      declared: flag,
      earlier: [undefined, request, { name: "s", digest: "e" }, { name: "t", digest: "d" }]
    } as const)
  ]

  it("gives each verdict, and accepts only what is new, declared and not too late", () => {
    const given = new Set<string>()
    for (const one of facts) {
      const { _tag } = admitMessage(one, request)
      given.add(_tag)
      const may = one.run === "known" && one.earlier === undefined && one.declared && !one.over
      assert.strictEqual(_tag === "Accepted", may, JSON.stringify(one))
    }
    assert.deepStrictEqual([...given].sort(), [
      "Accepted",
      "Duplicate",
      "MessageIdReused",
      "RunOver",
      "RunPurged",
      "UnknownMessage",
      "UnknownRun"
    ])
  })

  it("a message that was accepted is a duplicate for ever, whatever became of the run and of the declaration", () => {
    for (const one of facts) {
      if (one.run !== "known" || one.earlier === undefined) continue
      const same = one.earlier.name === request.name && one.earlier.digest === request.digest
      assert.strictEqual(admitMessage(one, request)._tag, same ? "Duplicate" : "MessageIdReused")
    }
  })
})

describe("admitExpiry", () => {
  it("CO: expires only what is open, due, and has nothing accepted before it", () => {
    const given = new Set<string>()
    for (const one of combinations({
      open: flag,
      deadline: [10],
      now: [9, 10, 11],
      inboxSeen: [0, 1],
      inboxHead: [1, 2]
    } as const)) {
      const { _tag } = admitExpiry(one)
      given.add(_tag)
      const may = one.open && one.now >= 10 && one.inboxSeen >= one.inboxHead
      assert.strictEqual(_tag === "Expire", may, JSON.stringify(one))
    }
    assert.deepStrictEqual([...given].sort(), ["Expire", "Gone", "InboxFirst", "NotYet"])
  })
})
