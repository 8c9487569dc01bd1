/** `@langchain/core`, if it is installed: its messages, and the context in which its runnables find their config. */
import { GraphValueError } from "../GraphError.js"

const load = async <M>(module: () => Promise<M>): Promise<M | undefined> => {
  try {
    return await module()
  } catch {
    // An optional peer: graphs without messages do without it.
    return undefined
  }
}

const [messages, singletons] = await Promise.all([
  load(() => import("@langchain/core/messages")),
  load(() => import("@langchain/core/singletons"))
])

/** A LangChain message, as far as this package looks into it. */
export interface Message {
  id?: string | undefined
  content: unknown
  getType(): string
}

/** True for a LangChain message, of whichever copy of the package. */
export const isMessage = (value: unknown): value is Message =>
  typeof value === "object" &&
  value !== null &&
  "getType" in value &&
  typeof value.getType === "function" &&
  "content" in value &&
  "lc_namespace" in value

/** The module, or an error that says what to install. */
export const messageModule = (): NonNullable<typeof messages> => {
  if (messages === undefined) throw new GraphValueError("Messages need the package @langchain/core: install it")
  return messages
}

/** Class name and constructor fields of a message. */
export const messageToWire = (message: Message): unknown => {
  const { lc_kwargs, constructor } = message as unknown as {
    readonly lc_kwargs: Readonly<Record<string, unknown>>
    readonly constructor: { readonly lc_name?: () => string; readonly name: string }
  }
  const fields: Record<string, unknown> = {}
  for (const key of new Set([...Object.keys(lc_kwargs), "id", "name", "content"])) {
    const value: unknown = Reflect.get(message, key)
    if (value !== undefined && typeof value !== "function") fields[key] = value
  }
  for (const key of ["additional_kwargs", "response_metadata", "tool_calls", "invalid_tool_calls", "usage_metadata"]) {
    const value: unknown = Reflect.get(message, key)
    if (value !== undefined) fields[key] = value
  }
  return { type: constructor.lc_name?.() ?? constructor.name, fields }
}

/** The message that {@link messageToWire} was given. */
export const messageFrom = (wire: unknown): unknown => {
  const { type, fields } = wire as { readonly type: string; readonly fields: Record<string, unknown> }
  const module = messageModule() as unknown as Readonly<Record<string, unknown>>
  const known = module[type]
  if (typeof known !== "function") throw new GraphValueError(`No message class ${type} in @langchain/core`)
  return Reflect.construct(known, [fields]) as unknown
}

/** Runs `body` so that LangChain runnables called in it find `config`. */
export const withRunnableConfig = <A>(config: unknown, body: () => A): A =>
  singletons === undefined ? body() : singletons.AsyncLocalStorageProviderSingleton.runWithConfig(config, body, true)

/** Makes the context that {@link withRunnableConfig} needs. */
export const initialise = (storage: unknown): void => {
  // The provider takes anything that has the methods of AsyncLocalStorage.
  singletons?.AsyncLocalStorageProviderSingleton.initializeGlobalInstance(storage as never)
}
