/**
 * Points before and after every commit of this process on the plane's database, whatever part of the code makes it.
 *
 * They sit in the database drivers, so that the plane cannot forget one: a statement that commits is `COMMIT`, or one
 * that writes outside a transaction.
 */
import Database from "better-sqlite3"
import pg from "pg"
import { pass as passInside } from "./processes/Inside.js"
import type { PlaneAddress } from "./PlaneAddress.js"

/** What happens at a point; blocks the process for as long as it must stand still. */
type Pass = (point: "before-commit" | "after-commit") => void

/** Marks `before-commit` and `after-commit` from now on, for the test that started this process unless `pass` is given. */
export const watch = (address: PlaneAddress, pass: Pass = passInside): void =>
  address._tag === "Sqlite" ? watchSqlite(address.filename, pass) : watchPostgres(pass)

const control = /^\s*(BEGIN|START|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|PRAGMA)\b/i
const commit = /^\s*(COMMIT|END)\b/i
const write = /^\s*(WITH|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP)\b/i

/** Only the plane's file: the receiver's own log is outside. */
const watchSqlite = (filename: string, pass: Pass): void => {
  const prepare = Database.prototype.prepare
  const watched = function (this: Database.Database, sql: string): Database.Statement {
    const statement = prepare.call(this, sql)
    if (this.name !== filename) return statement
    const commits = () => commit.test(sql) || (!statement.readonly && !this.inTransaction && !control.test(sql))
    const around =
      <A extends ReadonlyArray<unknown>, B>(run: (...args: A) => B) =>
      (...args: A): B => {
        if (!commits()) return run(...args)
        pass("before-commit")
        const result = run(...args)
        pass("after-commit")
        return result
      }
    statement.run = around(statement.run.bind(statement))
    if (statement.reader) {
      statement.all = around(statement.all.bind(statement))
      statement.get = around(statement.get.bind(statement))
    }
    return statement
  }
  // The declared method is generic in its parameters' type, which does not matter here.
  Database.prototype.prepare = watched as typeof prepare
}

const watchPostgres = (pass: Pass): void => {
  const query: (this: pg.Client, ...args: Array<unknown>) => unknown = pg.Client.prototype.query
  const inTransaction = new WeakSet<object>()
  const watched = function (this: pg.Client, ...args: ReadonlyArray<unknown>): unknown {
    const text = textOf(args[0])
    const callback = args.at(-1)
    if (/^\s*BEGIN\b/i.test(text)) inTransaction.add(this)
    else if (/^\s*(COMMIT|ROLLBACK|END)\b/i.test(text)) inTransaction.delete(this)
    const commits = commit.test(text) || (write.test(text) && !inTransaction.has(this))
    if (!commits || typeof callback !== "function") return query.call(this, ...args)
    pass("before-commit")
    return query.call(this, ...args.slice(0, -1), (...results: ReadonlyArray<unknown>) => {
      pass("after-commit")
      callback(...results)
    })
  }
  // An overloaded method that is passed through as it is called.
  pg.Client.prototype.query = watched as typeof pg.Client.prototype.query
}

const textOf = (query: unknown): string =>
  typeof query === "string"
    ? query
    : typeof query === "object" && query !== null && "text" in query && typeof query.text === "string"
      ? query.text
      : ""
