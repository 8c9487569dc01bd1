import { AiError, LanguageModel, Prompt, type Response, Tool, Toolkit } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Chunk, Effect, Exit, Layer, Schema, Stream } from "effect"
import * as DurableModel from "../src/DurableModel.js"
import { Client, Delivery, Interrupt, Node, SideEffect, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
const finish = (reason: Response.FinishReason): Response.FinishPartEncoded => ({ type: "finish", reason, usage })
const text = (said: string): ReadonlyArray<Response.PartEncoded> => [{ type: "text", text: said }, finish("stop")]
const toolCall = (id: string, name: string, params: unknown): ReadonlyArray<Response.PartEncoded> => [
  { type: "tool-call", id, name, params },
  finish("tool-calls")
]

/** A model that says what the script has for its nth call, and writes down what it was asked. */
const scripted = (
  asked: Array<{ readonly prompt: string; readonly tools: ReadonlyArray<string> }>,
  script: ReadonlyArray<ReadonlyArray<Response.PartEncoded> | AiError.AiError>
) => {
  const next = ({ prompt, tools }: LanguageModel.ProviderOptions) =>
    Effect.suspend(() => {
      const line = script[asked.length]
      const last = prompt.content.at(-1)
      asked.push({ prompt: `${prompt.content.length} ${last?.role ?? ""}`, tools: tools.map(({ name }) => name) })
      if (line === undefined) return Effect.dieMessage("the script is over")
      return Array.isArray(line)
        ? Effect.succeed(line as ReadonlyArray<Response.PartEncoded>)
        : Effect.fail(line as AiError.AiError)
    })
  return Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: (options) => Effect.map(next(options), (parts) => [...parts]),
      streamText: (options) =>
        Stream.unwrap(
          Effect.map(next(options), (parts) =>
            Stream.fromIterable(
              parts.flatMap((part): ReadonlyArray<Response.StreamPartEncoded> =>
                part.type === "reasoning"
                  ? []
                  : part.type !== "text"
                    ? [part]
                    : [
                        { type: "text-start", id: "t" },
                        ...part.text.split(" ").map((delta) => ({ type: "text-delta" as const, id: "t", delta })),
                        { type: "text-end", id: "t" }
                      ]
              )
            )
          )
        )
    })
  )
}

const Order = Schema.Struct({ id: Schema.String, cents: Schema.Number })
const Lookup = Tool.make("lookup", { parameters: { id: Schema.String }, success: Order })
const Refund = Tool.make("refund", { parameters: { id: Schema.String, cents: Schema.Number }, success: Schema.String })
const Tools = Toolkit.make(Lookup, Refund)

const Pay = SideEffect.make("pay", { delivery: Delivery.keyed, input: Order, success: Schema.String })
const lookup = Node.make("lookup", { input: Schema.String, success: Order }, (id) => Effect.succeed({ id, cents: 900 }))
const refund = Node.make("refund", { input: Order, success: Schema.String, effects: [Pay] }, (order) => Pay(order))
const Approval = Interrupt.make("approval", { payload: Order, answer: Schema.Boolean })
const Assistant = DurableModel.make("assistant", { toolkit: Tools })

const Support = Workflow.make(
  "support",
  { version: "1", input: Schema.String, success: Schema.String, error: AiError.AiError },
  (question) =>
    Effect.gen(function* () {
      let prompt = Prompt.make(question)
      for (;;) {
        const response = yield* LanguageModel.generateText({
          prompt,
          toolkit: DurableModel.handlers(Tools, {
            lookup: ({ id }) => lookup(id),
            refund: (order) =>
              Effect.flatMap(Approval(order), (approved) => (approved ? refund(order) : Effect.succeed("not approved")))
          })
        })
        if (response.toolCalls.length === 0) return response.text
        prompt = Prompt.merge(prompt, Prompt.fromResponseParts(response.content))
      }
    }).pipe(Assistant.provide)
)

describe("a durable model", () => {
  it.effect("is asked once for each call, has its tools handled by nodes, and waits for a person", () => {
    const asked: Array<{ readonly prompt: string; readonly tools: ReadonlyArray<string> }> = []
    const paid: Array<number> = []
    const model = scripted(asked, [
      toolCall("c1", "lookup", { id: "o1" }),
      toolCall("c2", "refund", { id: "o1", cents: 900 }),
      text("It is done")
    ])
    const pay = Pay.toLayer(({ cents }) =>
      Effect.sync(() => {
        paid.push(cents)
        return "paid"
      })
    )
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const run = yield* client.start(Support, "refund o1, please", { run: "r" })
      const waiting = yield* client.awaitStatus(
        run,
        ({ status }) => status === "waiting" || status === "stuck" || status === "failed"
      )
      assert.deepStrictEqual(waiting.waitingFor, [
        { _tag: "Answer", interrupt: "approval#1" as never, name: "approval" }
      ])
      assert.deepStrictEqual(paid, [])
      yield* client.resume(Approval, {
        branch: run.branch,
        interrupt: "approval#1",
        value: true,
        deliveryId: "d",
        intent: "retry"
      })
      assert.strictEqual(yield* client.result(Support, run), "It is done")
      assert.deepStrictEqual(paid, [900])
      assert.deepStrictEqual(asked, [
        { prompt: "1 user", tools: ["lookup", "refund"] },
        { prompt: "3 tool", tools: ["lookup", "refund"] },
        { prompt: "5 tool", tools: ["lookup", "refund"] }
      ])
      // Whoever replays it asks nobody again.
      yield* Testing.replayCheck(Support, run.branch)
      assert.strictEqual(asked.length, 3)
      // A fork goes on from the recorded calls.
      const opened = (yield* client.history(run)).find(({ kind }) => kind === "interrupt.opened")
      const fork = yield* client.resume(Approval, {
        branch: run.branch,
        interrupt: "approval#1",
        value: false,
        deliveryId: "d2",
        intent: "fork",
        forkId: "f"
      })
      assert.isDefined(opened)
      const died = yield* Effect.exit(client.result(Support, fork.branch))
      assert.include(Exit.isFailure(died) ? Cause.pretty(died.cause) : "", "the script is over")
      assert.strictEqual(asked.length, 4)
    }).pipe(
      Effect.provide(
        Testing.worker({ workflows: [Support] }).pipe(
          Layer.provide(Assistant.layer),
          Layer.provide(model),
          Layer.provide(pay),
          Layer.provideMerge(Testing.layer)
        )
      )
    )
  })

  it.effect("says the parts of a stream as they come, and gives them to the workflow from the journal", () => {
    const Teller = DurableModel.make("teller")
    const Tell = Workflow.make("tell", { version: "1", success: Schema.String, error: AiError.AiError }, () =>
      LanguageModel.streamText({ prompt: "tell" }).pipe(
        Stream.runFold("", (all, part) => (part.type === "text-delta" ? `${all}${part.delta}` : all)),
        Teller.provide
      )
    )
    return Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.start(Tell, undefined, { run: "r" })
      const parts = yield* Stream.runCollect(client.listen(Teller.parts, "r"))
      assert.deepStrictEqual(
        Chunk.toReadonlyArray(parts).flatMap(({ value }) => (value.type === "text-delta" ? [value.delta] : [])),
        ["once", "upon", "a", "time"]
      )
      assert.strictEqual(yield* client.result(Tell, "r"), "onceuponatime")
    }).pipe(
      Effect.provide(
        Testing.worker({ workflows: [Tell] }).pipe(
          Layer.provide(Teller.layer),
          Layer.provide(scripted([], [text("once upon a time")])),
          Layer.provideMerge(Testing.layer)
        )
      )
    )
  })

  it.effect(
    "answers with objects of declared Schemas, and is asked again after an error that its policy lets pass",
    () => {
      const City = Schema.Struct({ name: Schema.String, people: Schema.NumberFromString })
      const Atlas = DurableModel.make("atlas", { objects: { city: City }, retry: { times: 2 } })
      const Describe = Workflow.make("describe", { version: "1", success: City, error: AiError.AiError }, () =>
        LanguageModel.generateObject({ prompt: "a city", schema: City, objectName: "city" }).pipe(
          Effect.map(({ value }) => value),
          Atlas.provide
        )
      )
      const asked: Array<never> = []
      const failure = new AiError.UnknownError({
        module: "Scripted",
        method: "generateText",
        description: "overloaded"
      })
      return Effect.gen(function* () {
        const client = yield* Client.Client
        yield* client.start(Describe, undefined, { run: "r" })
        assert.deepStrictEqual(yield* client.result(Describe, "r"), { name: "Ulm", people: 128_928 })
        assert.strictEqual(asked.length, 3)
      }).pipe(
        Effect.provide(
          Testing.worker({ workflows: [Describe] }).pipe(
            Layer.provide(Atlas.layer),
            Layer.provide(
              // What is no such object is an error of the model, and is asked again, too.
              scripted(asked, [failure, text(`{"name":"Ulm"}`), text(`{"name":"Ulm","people":"128928"}`)])
            ),
            Layer.provideMerge(Testing.layer)
          )
        )
      )
    }
  )

  it.effect("says what to declare when it is asked with what it does not know", () => {
    const Bare = DurableModel.make("bare")
    const City = Schema.Struct({ name: Schema.String })
    const Undeclared = Workflow.make(
      "undeclared",
      { version: "1", input: Schema.Boolean, error: AiError.AiError },
      (object) =>
        (object
          ? Effect.asVoid(LanguageModel.generateObject({ prompt: "x", schema: City, objectName: "city" }))
          : Effect.asVoid(
              LanguageModel.generateText({
                prompt: "x",
                toolkit: DurableModel.handlers(Toolkit.make(Lookup), { lookup: ({ id }) => lookup(id) })
              })
            )
        ).pipe(Bare.provide)
    )
    return Effect.gen(function* () {
      const client = yield* Client.Client
      for (const [object, message] of [
        [true, `was asked for the object city: add its Schema to its "objects"`],
        [false, `was called with the tool lookup: add it to its "toolkit"`]
      ] as const) {
        const run = yield* client.start(Undeclared, object)
        const exit = yield* Effect.exit(client.result(Undeclared, run))
        assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", message)
      }
    }).pipe(
      Effect.provide(
        Testing.worker({ workflows: [Undeclared] }).pipe(
          Layer.provide(Bare.layer),
          Layer.provide(scripted([], [])),
          Layer.provideMerge(Testing.layer)
        )
      )
    )
  })
})
