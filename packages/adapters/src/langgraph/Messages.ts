/** State that is a conversation: lists of LangChain messages, merged by id. */
import type { BaseMessage, BaseMessageLike } from "@langchain/core/messages"
import { Annotation } from "./Annotation.js"
import { GraphValueError } from "./GraphError.js"
import { messageModule } from "./internal/LangChain.js"
import { newMessageId } from "./internal/MessageIds.js"

/** The id of a `RemoveMessage` that removes all. */
export const REMOVE_ALL_MESSAGES = "__remove_all__"

/** Messages, or what becomes one. */
export type Messages = ReadonlyArray<BaseMessage | BaseMessageLike> | BaseMessage | BaseMessageLike

const coerced = (messages: Messages): Array<BaseMessage> => {
  const { coerceMessageLikeToMessage } = messageModule()
  const list = (Array.isArray(messages) ? messages : [messages]) as ReadonlyArray<BaseMessageLike>
  return list.map((one) => {
    const message = coerceMessageLikeToMessage(one)
    if (message.id === undefined || message.id === null) message.id = newMessageId()
    return message
  })
}

/** Appends messages; one with a known id replaces its predecessor, a `RemoveMessage` removes it. */
export const messagesStateReducer = (left: Messages, right: Messages): Array<BaseMessage> => {
  const before = coerced(left)
  const added = coerced(right)
  const all = added.findLastIndex((message) => message.getType() === "remove" && message.id === REMOVE_ALL_MESSAGES)
  if (all >= 0) return added.slice(all + 1)
  const merged = [...before]
  const places = new Map(merged.map((message, i) => [message.id, i]))
  const removed = new Set<string | undefined>()
  for (const message of added) {
    const place = places.get(message.id)
    if (message.getType() === "remove") {
      if (place === undefined)
        throw new GraphValueError(
          `Attempting to delete a message with an ID that doesn't exist ('${message.id ?? ""}')`
        )
      removed.add(message.id)
    } else {
      removed.delete(message.id)
      if (place === undefined) {
        places.set(message.id, merged.length)
        merged.push(message)
      } else merged[place] = message
    }
  }
  return removed.size === 0 ? merged : merged.filter(({ id }) => !removed.has(id))
}

/** As {@link messagesStateReducer}. */
export const addMessages = messagesStateReducer

/** A state whose `messages` are a conversation. */
export const MessagesAnnotation = Annotation.Root({
  messages: Annotation<Array<BaseMessage>, Messages>({ reducer: messagesStateReducer, default: () => [] })
})
