import { assert, describe, it } from "@effect/vitest"
import { isUnsettled, serveInboxRow } from "../../src/index.js"
import { combinations } from "../domains.js"

const flag = [false, true] as const
const said = (verdict: ReturnType<typeof serveInboxRow>) => (verdict._tag === "Serve" ? "Serve" : verdict.reason)

describe("serveInboxRow", () => {
  it("PC: a cancel is served until the workflow's root has ended", () => {
    assert.strictEqual(said(serveInboxRow({ kind: "cancel", over: false })), "Serve")
    assert.strictEqual(said(serveInboxRow({ kind: "cancel", over: true })), "the run was over")
  })

  it("PC: an answer is served while its interrupt waits, and else says why it was not", () => {
    const table = {
      "false false": "its interrupt had closed",
      "false true": "Serve",
      "true false": "the run was over",
      // What is left open when the root ends is closed with it, so this does not come about; it would be served.
      "true true": "Serve"
    } as const
    for (const { open, over } of combinations({ over: flag, open: flag })) {
      assert.strictEqual(said(serveInboxRow({ kind: "answer", over, open })), table[`${over} ${open}`])
    }
  })

  it("a signal and an update are served until the workflow's root has ended", () => {
    for (const kind of ["signal", "update"] as const) {
      assert.strictEqual(said(serveInboxRow({ kind, over: false })), "Serve")
      assert.strictEqual(said(serveInboxRow({ kind, over: true })), "the run was over")
    }
  })

  it("EO: a settlement is served only while the outcome is not known or was refused", () => {
    const table = {
      intended: "Serve",
      refused: "Serve",
      succeeded: "its outcome was known",
      failed: "its outcome was known",
      voided: "its outcome was known",
      forgotten: "its outcome was known"
    } as const
    for (const state of ["intended", "succeeded", "failed", "voided", "refused", undefined] as const) {
      const verdict = serveInboxRow({ kind: "settlement", state })
      assert.strictEqual(said(verdict), table[state ?? "forgotten"])
      assert.strictEqual(isUnsettled(state), verdict._tag === "Serve")
    }
  })
})
