/**
 * The statements of a `SqlClient`, run with less ceremony: on the connection of the transaction under way, or at once
 * where the client lets it, without a span or a scope for each. These cost several times what a statement on an
 * embedded database does.
 */
import { type SqlClient, TransactionConnection } from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import type { Statement } from "@effect/sql/Statement"
import { Context, Effect } from "effect"
import { isSqliteClient } from "./SqliteClient.js"

/** Values that stand for themselves in a statement; whatever else is a fragment, which makes its text another one. */
const isParameter = (argument: unknown): boolean =>
  argument === null || (typeof argument !== "object" && typeof argument !== "function")

/** The same client; statements written as templates run directly when they are yielded. */
export const directSql = (client: SqlClient): SqlClient => {
  const texts = new WeakMap<TemplateStringsArray, string>()

  const compiled = (statement: Statement<object>, strings: TemplateStringsArray, parameters: Array<unknown>) => {
    if (!parameters.every(isParameter)) return statement.compile(true)
    const known = texts.get(strings)
    if (known !== undefined) return [known, parameters] as const
    const [text, values] = statement.compile(true)
    texts.set(strings, text)
    return [text, values] as const
  }

  const ifFree = isSqliteClient(client) ? client.ifFree : undefined

  const template = (strings: TemplateStringsArray, ...parameters: Array<unknown>) => {
    const statement = client<object>(strings, ...parameters)
    const run: Effect.Effect<ReadonlyArray<object>, SqlError> = Effect.withFiberRuntime((fiber) => {
      const [text, values] = compiled(statement, strings, parameters)
      const transaction = Context.getOption(fiber.currentContext, TransactionConnection)
      if (transaction._tag === "Some") return transaction.value[0].execute(text, values, undefined)
      try {
        const rows = ifFree?.((runSync) => runSync(text, values))
        // The rows of a statement are objects, whatever its columns.
        if (rows !== undefined) return Effect.succeed(rows as ReadonlyArray<object>)
      } catch (cause) {
        return Effect.fail(new SqlError({ cause, message: "Failed to execute statement" }))
      }
      return statement.withoutTransform
    })
    return Object.assign(statement, { commit: () => run })
  }
  const direct = (first: TemplateStringsArray | string, ...parameters: Array<unknown>) =>
    typeof first === "string" ? client(first) : template(first, ...parameters)
  // All else that the client has is the client's.
  return Object.assign(direct, client) as unknown as SqlClient
}
