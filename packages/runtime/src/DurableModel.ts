/**
 * A durable `LanguageModel` of `@effect/ai` (an optional peer dependency): inside a workflow, every call of the model is a
 * memoized step, fired again after a crash only if its answer was not recorded. The tools that a model calls are handled in
 * the workflow, by nodes with declared effects, and may ask a person first.
 *
 * @example
 * const Assistant = DurableModel.make("assistant", { toolkit: Tools })
 *
 * const Answer = Workflow.make("answer", { version: "1", input: Schema.String, success: Schema.String }, (question) =>
 *   LanguageModel.generateText({
 *     prompt: question,
 *     toolkit: DurableModel.handlers(Tools, { refund: (order) => Effect.zipRight(Approval(order), refund(order)) })
 *   }).pipe(Effect.map(({ text }) => text), Assistant.provide)
 * )
 * // The worker: Worker.layer({ workflows: [Answer] }) provided with Assistant.layer, over any LanguageModel layer.
 */
import * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import * as Response from "@effect/ai/Response"
import type * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { type Context, type Duration, Effect, type Layer, Schema, Stream } from "effect"
import * as Delivery from "./Delivery.js"
import type { WorkflowScope } from "./internal/WorkflowScope.js"
import * as Node from "./Node.js"
import * as OutputStream from "./OutputStream.js"
import * as SideEffect from "./SideEffect.js"

type Tools = Record<string, Tool.Any>

/** A declared durable model. `N`: the name of its step and of its side effect. */
export interface DurableModel<N extends string> {
  readonly name: N
  /** Provides the `LanguageModel` to a workflow's body, or a part of one. */
  readonly provide: <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, Exclude<R, LanguageModel.LanguageModel> | WorkflowScope | SideEffect.HandlerOf<N>>
  /** What `streamText` yields, as it comes from the model: tokens, for whoever listens. In their encoded form. */
  readonly parts: OutputStream.OutputStream<string, Response.StreamPartEncoded>
  /** Carries the calls out, on the worker: with the `LanguageModel` that is provided there. */
  readonly layer: Layer.Layer<SideEffect.HandlerOf<N>, never, LanguageModel.LanguageModel>
}

/** Which tools a model may choose, as the library has it. */
const ToolChoice = Schema.Union(
  Schema.Literal("auto", "none", "required"),
  Schema.Struct({ tool: Schema.String }),
  Schema.Struct({
    mode: Schema.optional(Schema.Literal("auto", "required")),
    oneOf: Schema.Array(Schema.String)
  })
)

/** One call of a model: what the step's input is. Tools and object Schemas go by name: they are code. */
const Request = Schema.Struct({
  method: Schema.Literal("text", "object", "stream"),
  prompt: Prompt.Prompt,
  tools: Schema.Array(Schema.String),
  toolChoice: ToolChoice,
  object: Schema.optional(Schema.String)
})
type Request = typeof Request.Type

/**
 * Declares a durable model. `toolkit`: every tool that its calls may offer. `objects`: the Schemas that `generateObject` is
 * called with, by `objectName`. `retry`: how a call that failed with an `AiError` is tried again; not at all by default.
 * `timeLimit`: after which a call is given up and fired again.
 */
export const make = <const N extends string, T extends Tools = {}>(
  name: N,
  options: {
    readonly toolkit?: Toolkit.Toolkit<T>
    readonly objects?: Readonly<Record<string, Schema.Schema.AnyNoContext>>
    readonly retry?: Node.RetryPolicy<AiError.AiError>
    readonly timeLimit?: Duration.DurationInput
  } = {}
): DurableModel<N> => {
  const declared = (options.toolkit ?? Toolkit.empty) as Toolkit.Toolkit<Tools>
  const objects = options.objects ?? {}
  const AnyPart = Response.AllParts(declared) as Schema.Schema<unknown, Response.AllPartsEncoded>
  const Answer = Schema.Array(Schema.encodedSchema(AnyPart))
  const parts = OutputStream.make(`${name}-parts`, { chunk: Schema.encodedSchema(AnyPart) })

  const Ask = SideEffect.make(name, {
    delivery: Delivery.repeatable,
    input: Request,
    success: Answer,
    error: AiError.AiError
  })
  const ask = Node.make(
    name,
    {
      input: Request,
      success: Answer,
      error: AiError.AiError,
      effects: [Ask],
      ...(options.retry === undefined ? {} : { retry: options.retry })
    },
    (request: Request) => Ask(request)
  )

  const layer = Ask.toLayer((request) =>
    Effect.flatMap(LanguageModel.LanguageModel, (model) => {
      const tools = Object.fromEntries(Object.entries(declared.tools).filter(([tool]) => request.tools.includes(tool)))
      return answer(model, request, tools, objects, parts)
    })
  )

  /** The call as the step's input; what was not declared is a mistake of the program. */
  const requestOf = (method: "text" | "stream", call: LanguageModel.ProviderOptions): Effect.Effect<Request> => {
    const tools = call.tools.map((tool) => tool.name)
    const unknown = tools.find((tool) => !Object.hasOwn(declared.tools, tool))
    if (unknown !== undefined) {
      return Effect.dieMessage(`The durable model ${name} was called with the tool ${unknown}: add it to its "toolkit"`)
    }
    const { responseFormat } = call
    const object = responseFormat.type === "json" ? responseFormat.objectName : undefined
    if (object !== undefined && !Object.hasOwn(objects, object)) {
      return Effect.dieMessage(
        `The durable model ${name} was asked for the object ${object}: add its Schema to its "objects" under that name, and call generateObject with that objectName`
      )
    }
    const base = { prompt: call.prompt, tools, toolChoice: call.toolChoice as typeof ToolChoice.Type }
    return Effect.succeed(object === undefined ? { ...base, method } : { ...base, method: "object", object })
  }

  // What the step requires is required by `provide`; the library's signature has no place for it.
  const call = (method: "text" | "stream", options: LanguageModel.ProviderOptions) =>
    Effect.flatMap(requestOf(method, options), ask) as unknown as Effect.Effect<
      ReadonlyArray<Response.AllPartsEncoded>,
      AiError.AiError
    >
  const service = LanguageModel.make({
    generateText: (options) =>
      Effect.map(call("text", options), (content) => content.slice() as Array<Response.PartEncoded>),
    streamText: (options) =>
      Stream.unwrap(
        Effect.map(call("stream", options), (content) =>
          Stream.fromIterable(content as ReadonlyArray<Response.StreamPartEncoded>)
        )
      )
  })

  return {
    name,
    parts: parts as unknown as DurableModel<N>["parts"],
    layer: layer as DurableModel<N>["layer"],
    provide: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.flatMap(service, (model) => Effect.provideService(effect, LanguageModel.LanguageModel, model)) as never
  }
}

/** Asks the worker's model, and gives the parts of its answer in their encoded form. */
const answer = (
  model: LanguageModel.Service,
  request: Request,
  tools: Tools,
  objects: Readonly<Record<string, Schema.Schema.AnyNoContext>>,
  parts: OutputStream.OutputStream<string, Response.AllPartsEncoded>
): Effect.Effect<ReadonlyArray<Response.AllPartsEncoded>, AiError.AiError> => {
  const toolkit: Toolkit.WithHandler<Tools> = {
    tools,
    handle: (tool) => Effect.dieMessage(`The tool ${tool} is handled in the workflow`)
  }
  const options = {
    prompt: request.prompt,
    // What a model calls is handled in the workflow, where it is durable.
    disableToolCallResolution: true as const,
    ...(request.tools.length === 0
      ? {}
      : { toolkit, toolChoice: request.toolChoice as LanguageModel.ToolChoice<string> })
  }
  const malformed = (error: Parameters<typeof AiError.MalformedOutput.fromParseError>[0]["error"]) =>
    AiError.MalformedOutput.fromParseError({ module: "DurableModel", method: request.method, error })
  const encode = <A, I>(schema: Schema.Schema<A, I>) => {
    const encoder = Schema.encode(schema)
    return (part: A) => Effect.mapError(encoder(part), malformed)
  }
  switch (request.method) {
    case "text":
      return Effect.flatMap(model.generateText(options), ({ content }) =>
        Effect.forEach(content, encode(Response.Part(toolkit)))
      )
    case "object": {
      const { object } = request
      const schema = object === undefined ? undefined : objects[object]
      // The journal may be older than the code.
      if (object === undefined || schema === undefined) {
        return Effect.dieMessage(`There is no Schema for the object ${object} in "objects"`)
      }
      return Effect.flatMap(model.generateObject({ ...options, schema, objectName: object }), ({ content }) =>
        Effect.forEach(content, encode(Response.Part(toolkit)))
      )
    }
    case "stream": {
      const encodePart = encode(Response.StreamPart(toolkit))
      return Effect.map(
        Stream.runCollect(
          Stream.mapEffect(model.streamText(options), (part) =>
            Effect.flatMap(encodePart(part), (encoded) =>
              // The handler runs in the node's body, where chunks may be said.
              Effect.as(parts(encoded) as Effect.Effect<void>, encoded as Response.AllPartsEncoded)
            )
          )
        ),
        (all) => [...all]
      )
    }
  }
}

type Handlers<T extends Tools> = {
  readonly [Name in keyof T]: (
    parameters: Tool.Parameters<T[Name]>
  ) => Effect.Effect<Tool.Success<T[Name]>, Tool.Failure<T[Name]>, unknown>
}
type Requirements<H> = {
  readonly [Name in keyof H]: H[Name] extends (...parameters: never) => Effect.Effect<infer _A, infer _E, infer R>
    ? R
    : never
}[keyof H]

/**
 * Handlers for the tools of a toolkit that run in the workflow: they call nodes, ask interrupts and sleep. Pass it as the
 * `toolkit` of a call.
 */
export const handlers = <T extends Tools, H extends Handlers<T>>(
  toolkit: Toolkit.Toolkit<T>,
  handle: H
): Effect.Effect<Toolkit.WithHandler<T>, never, Requirements<H>> =>
  // The library lets a handler require what its tool declares; here it runs where the workflow's own requirements are.
  Effect.flatMap(
    (toolkit as unknown as Toolkit.Toolkit<Tools>).toContext(handle as never) as unknown as Effect.Effect<
      Context.Context<never>
    >,
    (context) => Effect.provide(toolkit as unknown as Effect.Effect<Toolkit.WithHandler<T>>, context)
  )
