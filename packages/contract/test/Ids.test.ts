import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck as fc, type ParseResult, Schema } from "effect"
import {
  BranchId,
  DefinitionName,
  DeliveryId,
  effectKey,
  ForkId,
  forkBranch,
  idProblem,
  InterruptId,
  maxIdLength,
  maxNameLength,
  rootBranch,
  RunId,
  runOf,
  StepKey,
  WorkflowVersion
} from "../src/index.js"
import { text } from "./domains.js"

const refusedTexts: ReadonlyArray<readonly [string, string, RegExp]> = [
  ["the empty text", "", /empty/],
  ["a blank", " ", /white space/],
  ["a leading blank", " a", /white space/],
  ["a trailing line end", "a\n", /white space/],
  ["a no-break space at the end", "a\u00a0", /white space/],
  ["10 kB", "x".repeat(10_240), /longer than 255/],
  ["one too long", "x".repeat(maxIdLength + 1), /longer than 255/],
  ["a NUL", "a\u0000b", /control/],
  ["a line end", "a\nb", /control/],
  ["an escape sequence", "a\u001b[31mb", /control/],
  ["a DEL", "a\u007fb", /control/],
  ["a C1 control", "a\u0085b", /control/],
  ["a line separator", "a\u2028b", /control/],
  ["half an emoji", "a\ud83d", /surrogate/],
  ["the other half", "\ude00a", /surrogate/]
]
const acceptedTexts = [
  "x",
  "x".repeat(maxIdLength),
  "order 42",
  "Grüße",
  "注文",
  "😀",
  "👩‍👩‍👧",
  "a/b",
  "'; DROP TABLE runs; --",
  "..",
  "__proto__",
  "\\u0000"
]

describe("identifiers", () => {
  const decoders: Readonly<Record<string, (text: unknown) => Either.Either<string, ParseResult.ParseError>>> = {
    RunId: Schema.decodeUnknownEither(RunId),
    ForkId: Schema.decodeUnknownEither(ForkId),
    DeliveryId: Schema.decodeUnknownEither(DeliveryId),
    WorkflowVersion: Schema.decodeUnknownEither(WorkflowVersion),
    DefinitionName: Schema.decodeUnknownEither(DefinitionName),
    InterruptId: Schema.decodeUnknownEither(InterruptId)
  }
  for (const [name, decode] of Object.entries(decoders)) {
    it(`${name} refuses what is no word on every database, and says why`, () => {
      for (const [what, refused, reason] of refusedTexts) {
        const problem = idProblem(refused)
        assert(problem !== undefined, what)
        assert.match(problem, reason)
        const result = decode(refused)
        assert(Either.isLeft(result), what)
        // A name has a shorter limit of its own, so its sentence may differ in the number only.
        assert.match(result.left.message, /is empty|white space|longer than|control|surrogate/)
      }
      for (const value of [undefined, null, 0, {}, ["a"]]) assert.isTrue(Either.isLeft(decode(value)))
    })
  }

  it("RunId, DeliveryId and WorkflowVersion take any other text", () => {
    for (const schema of ["RunId", "DeliveryId", "WorkflowVersion"]) {
      for (const accepted of acceptedTexts) {
        const result = decoders[schema]?.(accepted)
        assert(result !== undefined && Either.isRight(result), accepted)
      }
    }
  })

  it("ForkId refuses slashes and the root's name", () => {
    for (const refused of ["a/b", "/", "main"])
      assert.isTrue(Either.isLeft(Schema.decodeEither(ForkId)(refused)), refused)
    for (const accepted of ["what-if", "main2", "Main"])
      assert.isTrue(Either.isRight(Schema.decodeEither(ForkId)(accepted)), accepted)
  })

  it("DefinitionName refuses the separators of keys, and leaves room for an ordinal", () => {
    for (const refused of ["a#b", "a|b", "x".repeat(maxNameLength + 1)]) {
      assert.isTrue(Either.isLeft(Schema.decodeEither(DefinitionName)(refused)), refused)
    }
    const longest = DefinitionName.make("x".repeat(maxNameLength))
    assert.strictEqual(InterruptId.make(`${longest}#${Number.MAX_SAFE_INTEGER}`).length, maxNameLength + 17)
  })

  it("BranchId refuses what names no branch", () => {
    for (const refused of ["", "run", "/main", "run/", "run/ ", "a\u0000/main", "\ud83d/main"]) {
      assert.isTrue(Either.isLeft(Schema.decodeEither(BranchId)(refused)), refused)
    }
  })

  const valid = text.filter((candidate) => idProblem(candidate) === undefined)
  const runId = fc.oneof(valid, fc.constantFrom("a", "a/main", "a/b", "a|b")).map((candidate) => RunId.make(candidate))
  const forkId = fc
    .oneof(valid, fc.constantFrom("b", "b|n#0", "f~1"))
    .filter((candidate) => !candidate.includes("/") && candidate !== "main")
    .map((candidate) => ForkId.make(candidate))
  const branch = fc.oneof(
    runId.map(rootBranch),
    fc.tuple(runId, forkId).map(([run, fork]) => forkBranch(run, fork))
  )

  it.prop(
    "a branch names its run, and no two branches have one name",
    [runId, forkId, runId, forkId],
    ([run, fork, otherRun, otherFork]) => {
      assert.strictEqual(runOf(rootBranch(run)), run)
      assert.strictEqual(runOf(forkBranch(run, fork)), run)
      assert.strictEqual(
        forkBranch(run, fork) === forkBranch(otherRun, otherFork),
        run === otherRun && fork === otherFork
      )
      assert.notStrictEqual<string>(forkBranch(run, fork), rootBranch(otherRun))
    }
  )

  const stepKey = fc
    .tuple(fc.constantFrom("n", "k:m", "a~1", "b%7C", "1"), fc.nat(2))
    .map(([name, ordinal]) => StepKey.make(`${name}#${ordinal}`))
  const position = fc.oneof(
    fc.nat(12).map(String),
    fc.oneof(text, fc.constantFrom("a", "a~1", "m#0|1", "a%7E1", "%", "%25")).map((key) => `k:${key}`)
  )
  const firing = fc.tuple(branch, stepKey, position, fc.nat(12))

  it.prop(
    "EO: no two firings have one key",
    [firing, firing],
    ([one, other]) => {
      const same = JSON.stringify(one) === JSON.stringify(other)
      assert.strictEqual(effectKey(...one) === effectKey(...other), same)
    },
    { fastCheck: { numRuns: 5000 } }
  )

  it("keys that read alike are kept apart", () => {
    const main = rootBranch(RunId.make("r"))
    const step = StepKey.make("n#0")
    assert.strictEqual(effectKey(main, step, "1", 0), "r/main|n#0|1")
    assert.strictEqual(effectKey(main, step, "1", 2), "r/main|n#0|1~2")
    assert.notStrictEqual(effectKey(main, step, "k:a~1", 0), effectKey(main, step, "k:a", 1))
    assert.notStrictEqual(effectKey(main, step, "k:a~1", 0), effectKey(main, step, "k:a%7E1", 0))
    const run = RunId.make("r")
    assert.notStrictEqual(
      effectKey(forkBranch(run, ForkId.make("f|n#0")), StepKey.make("k:m#0"), "1", 0),
      effectKey(forkBranch(run, ForkId.make("f")), step, "k:m#0|1", 0)
    )
  })
})
