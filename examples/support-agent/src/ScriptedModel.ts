/** Stands in for a model, so that the example needs no network: what it says depends on what it was told last. */
import { LanguageModel, type Prompt, type Response } from "@effect/ai"
import { Effect, Layer, Stream } from "effect"

const usage = { inputTokens: 10, outputTokens: 10, totalTokens: 20 }

const say = (prompt: Prompt.Prompt): Array<Response.PartEncoded> => {
  const last = prompt.content.at(-1)
  if (last?.role !== "tool") {
    const question = JSON.stringify(last?.content)
    const id = /order-\d+/.exec(question)?.[0]
    return id === undefined
      ? [
          { type: "text", text: "Which order is it about?" },
          { type: "finish", reason: "stop", usage }
        ]
      : [
          { type: "tool-call", id: "call-1", name: "lookup_order", params: { id } },
          { type: "finish", reason: "tool-calls", usage }
        ]
  }
  const result = last.content.find((part) => part.type === "tool-result")
  if (result?.name === "lookup_order") {
    const { cents, id } = result.result as { readonly id: string; readonly cents: number }
    return [
      { type: "tool-call", id: "call-2", name: "refund_order", params: { id, cents } },
      { type: "finish", reason: "tool-calls", usage }
    ]
  }
  const text = result?.result === "refunded" ? "Your money is on its way." : "I am sorry, we cannot refund this order."
  return [
    { type: "text", text },
    { type: "finish", reason: "stop", usage }
  ]
}

/** `onCall` hears of each call. For a real model, provide a layer of one of the `@effect/ai-*` packages instead. */
export const layer = (onCall: () => void): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: ({ prompt }) =>
        Effect.sync(() => {
          onCall()
          return say(prompt)
        }),
      streamText: () => Stream.dieMessage("this stand-in does not stream")
    })
  )
