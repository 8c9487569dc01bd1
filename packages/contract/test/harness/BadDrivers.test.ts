import { describe, expect, it } from "@effect/vitest"
import { ChildDriver, Conformance, Outside, ReferencePlane, Driver, type Verdict } from "@fermata/contract/harness"
import { Effect } from "effect"
import { appendFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const bad = (how: string, timeLimit = 20_000) =>
  ChildDriver.childProcess([process.execPath, fileURLToPath(new URL("drivers/bad.mjs", import.meta.url)), how], {
    timeLimit
  })

const probed = (driver: Driver.Driver, probe: string, timeLimit = 20_000) =>
  Effect.map(Conformance.run(driver, { probes: [probe], timeLimit }), ({ findings }) => {
    const [finding] = findings
    if (finding === undefined) throw new Error(`${probe} was not run`)
    return finding
  })

describe("a driver that misbehaves gets a clear verdict", () => {
  it.live.each<[how: string, verdict: Verdict, said: RegExp]>([
    ["dies", "driver fault", /crashed.*exit code 3.*out of luck/],
    ["is-killed", "driver fault", /crashed.*SIGKILL/],
    ["prints", "driver fault", /nonsense.*Starting up/],
    ["answers-another", "driver fault", /nonsense.*never made/],
    ["reply-is-nonsense", "driver fault", /nonsense.*reply to start/s]
  ])("%s", ([how, verdict, said]) =>
    Effect.gen(function* () {
      const finding = yield* probed(bad(how), "CO/second-different")
      expect(finding.verdict).toBe(verdict)
      expect(finding.reasons.join("\n")).toMatch(said)
      expect(finding.rerun).toContain("--probe CO/second-different")
    })
  )

  it.live("one that hangs has not answered in time, and violates nothing", () =>
    Effect.gen(function* () {
      const finding = yield* probed(bad("hangs", 3000), "CO/second-different", 3000)
      expect(finding.verdict).toBe("no answer in time")
      expect(finding.reasons).toEqual(["start: no answer within 3000 ms"])
    })
  )

  it.live("one that lies about what it can do is said to lie", () =>
    Effect.gen(function* () {
      const finding = yield* probed(bad("liar"), "FI/no-default")
      expect(finding.verdict).toBe("driver fault")
      expect(finding.reasons.join()).toMatch(/lied.*resume is not there/)
    })
  )

  it.live.each<[how: string, kind: string]>([
    ["dies-at-hello", "crashed"],
    ["hello-is-nonsense", "nonsense"],
    ["speaks-another-protocol", "nonsense"]
  ])("one that does not introduce itself is not probed: %s", ([how, kind]) =>
    Effect.gen(function* () {
      const fault = yield* Effect.flip(Conformance.run(bad(how)))
      expect(fault).toMatchObject({ _tag: "DriverFault", kind })
    })
  )

  it.live("a command that is none is not probed", () =>
    Effect.gen(function* () {
      const fault = yield* Effect.flip(Conformance.run(ChildDriver.childProcess(["/nowhere/driver"])))
      expect(fault.message).toMatch(/could not be started/)
    })
  )

  it.live("a plane in this process that dies is a driver fault, too", () =>
    Effect.gen(function* () {
      const plane = ReferencePlane.make()
      const driver = Driver.inProcess({ ...plane, open: () => Effect.die("no more") })
      expect((yield* probed(driver, "CO/falsy/zero")).verdict).toBe("driver fault")
    })
  )

  it.live("one that announces no commits, and says that it does, lies", () =>
    Effect.gen(function* () {
      const plane = ReferencePlane.make()
      const capabilities = { ...plane.hello.capabilities, announcesCommits: true }
      const driver = Driver.inProcess({ ...plane, hello: { ...plane.hello, capabilities } })
      const finding = yield* probed(driver, "EO/every-commit")
      expect(finding.verdict).toBe("driver fault")
      expect(finding.reasons.join()).toMatch(/lied.*announced none/)
    })
  )

  it.live("what is no line in the effect log is nonsense", () =>
    Effect.gen(function* () {
      const plane = ReferencePlane.make()
      const driver = Driver.inProcess({
        ...plane,
        open: (place) =>
          Effect.map(plane.open(place), (session) => ({
            ...session,
            rest: (request) =>
              Effect.tap(session.rest(request), ({ status }) =>
                Effect.sync(() => status === "completed" && appendFileSync(place.log, "hello\n"))
              )
          }))
      })
      const finding = yield* probed(driver, "CO/falsy/zero")
      expect(finding.verdict).toBe("driver fault")
      expect(finding.reasons.join()).toMatch(/nonsense.*hello/)
    })
  )
})

describe("the effect log", () => {
  it("has no line that a kill cut off", () => {
    const file = `${process.env["TMPDIR"] ?? "/tmp"}/fermata-cut-${process.pid}.jsonl`
    appendFileSync(file, `${JSON.stringify({ kind: "body", run: "r", step: "s", who: "p" })}\n{"kind":"bo`)
    expect(Outside.readLog(file)).toHaveLength(1)
  })
})
