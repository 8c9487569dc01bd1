/**
 * Announcements from other processes: notifications on PostgreSQL, a cheap look at the file's version on SQLite.
 * Both are hints on top of what the tables say.
 */
import { BranchId } from "@fermata/contract"
import { Effect, Schema, type Scope } from "effect"
import { channel, type Database, hostSleep } from "./Database.js"
import { pgConnection } from "./PgConnection.js"
import type { Announcement } from "../Ledger.js"

/** Hears other processes until the scope closes. */
export const listen = (db: Database): Effect.Effect<void, never, Scope.Scope> =>
  db.dialect === "pg" ? listenPg(db) : pollSqlite(db)

/** Milliseconds between looks: short while something happens, long when nothing does. */
const shortest = 2
const longest = 40

const pollSqlite = (db: Database) =>
  Effect.asVoid(
    Effect.forkScoped(
      Effect.gen(function* () {
        let known: unknown
        let interval = shortest
        for (;;) {
          // It changes with every commit of another connection, never with one's own.
          const [row] = yield* Effect.orElseSucceed(
            db.sql<{ readonly data_version: number }>`PRAGMA data_version`,
            () => []
          )
          if (row !== undefined && row.data_version !== known) {
            if (known !== undefined) db.hub.publish({ _tag: "Anything" })
            known = row.data_version
            interval = shortest
          } else {
            interval = Math.min(longest, interval * 1.25)
          }
          yield* hostSleep(interval)
        }
      })
    )
  )

const listenPg = (db: Database) =>
  Effect.suspend(() => {
    const session = Effect.scoped(
      Effect.gen(function* () {
        const connection = yield* pgConnection(db)
        yield* connection.onNotification((on, payload) => {
          if (on !== channel) return
          const announcement = decodeAnnouncement(db.instance, payload)
          if (announcement !== undefined) db.hub.publish(announcement)
        })
        yield* connection.run("", `LISTEN ${channel}`, [])
        // What was announced while nobody listened is not known: whoever waits should look.
        db.hub.publish({ _tag: "Anything" })
        yield* Effect.ensuring(connection.gone, Effect.ignore(connection.run("", `UNLISTEN ${channel}`, [])))
      })
    )
    return Effect.asVoid(
      Effect.forkScoped(
        Effect.forever(
          Effect.zipRight(
            Effect.ignore(session),
            Effect.suspend(() => hostSleep(100 + Math.random() * 200))
          )
        )
      )
    )
  })

const isBranchId = Schema.is(BranchId)

const decodeAnnouncement = (self: string, text: string): Announcement | undefined => {
  const [sender, tag, branch = ""] = text.split("\n")
  // What this ledger announced it has heard already.
  if (sender === self) return undefined
  if (tag === "Ready") return { _tag: "Ready" }
  if (tag === "Scheduled") return { _tag: "Scheduled" }
  if (isBranchId(branch)) {
    if (tag === "Inbox") return { _tag: "Inbox", branch }
    if (tag === "Changed") return { _tag: "Changed", branch }
    if (tag === "Told") return { _tag: "Told", branch }
    if (tag === "Emitted") return { _tag: "Emitted", branch }
  }
  // From a newer version of this code.
  return { _tag: "Anything" }
}
