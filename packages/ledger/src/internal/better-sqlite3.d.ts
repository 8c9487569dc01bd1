/** The part of the driver that is used; it ships no types. */
declare module "better-sqlite3" {
  interface Statement {
    readonly reader: boolean
    all(...params: ReadonlyArray<unknown>): ReadonlyArray<never>
    run(...params: ReadonlyArray<unknown>): { readonly changes: number }
    raw(on: boolean): this
    safeIntegers(on: boolean): this
  }
  class Database {
    constructor(filename: string, options?: { readonly timeout?: number })
    prepare(sql: string): Statement
    close(): void
  }
  export { type Statement }
  export default Database
}
