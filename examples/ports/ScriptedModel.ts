/** A chat model that says what it is told to: it stands for a real one, behind the same interface. */
import { BaseChatModel } from "@langchain/core/language_models/chat_models"
import { AIMessage, type BaseMessage } from "@langchain/core/messages"
import type { ChatResult } from "@langchain/core/outputs"

/** What it says next, by the conversation so far. */
export type Script = (messages: ReadonlyArray<BaseMessage>) => AIMessage | string

export class ScriptedModel extends BaseChatModel {
  constructor(private readonly script: Script) {
    super({})
  }

  override _llmType(): string {
    return "scripted"
  }

  /** A script knows its tools. */
  override bindTools(): this {
    return this
  }

  override async _generate(messages: Array<BaseMessage>): Promise<ChatResult> {
    const said = this.script(messages)
    const message = typeof said === "string" ? new AIMessage(said) : said
    return { generations: [{ text: message.text, message }] }
  }
}
