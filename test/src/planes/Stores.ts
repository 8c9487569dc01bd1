/** Where the harness's stores are for this plane: a SQLite file in the store's folder, or a PostgreSQL database a store. */
import pg from "pg"
import { createHash } from "node:crypto"
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { Place } from "@fermata/contract/harness"
import type { PlaneAddress } from "../PlaneAddress.js"

export interface Stores {
  readonly name: string
  /** `host:port` of the database server, if there is one. */
  readonly service: string | null
  readonly address: (place: Place) => Promise<PlaneAddress>
  readonly copy: (store: string, to: string) => Promise<void>
  readonly drop: (store: string) => Promise<void>
}

const files = ["", "-wal", "-shm"].map((suffix) => `plane.db${suffix}`)

export const sqlite: Stores = {
  name: "SQLite",
  service: null,
  address: ({ store }) => Promise.resolve({ _tag: "Sqlite", filename: join(store, "plane.db") }),
  copy: async (store, to) => {
    mkdirSync(to, { recursive: true })
    for (const file of files) if (existsSync(join(store, file))) copyFileSync(join(store, file), join(to, file))
  },
  drop: async (store) => rmSync(store, { recursive: true, force: true })
}

/** A database of the server, with credentials; a store's is named for its folder. */
export const postgres = (server: string): Stores => {
  const { host } = new URL(server)
  const nameOf = (store: string) => `conformance_${createHash("sha256").update(store).digest("hex").slice(0, 24)}`
  return {
    name: "PostgreSQL",
    service: host,
    address: async ({ create, service, store }) => {
      if (create) await onServer(server, `CREATE DATABASE ${nameOf(store)} TEMPLATE template0`)
      const url = new URL(server)
      url.pathname = `/${nameOf(store)}`
      if (service !== null) url.host = service
      // Many racing processes, and one server.
      return { _tag: "Postgres", url: url.href, maxConnections: 4 }
    },
    copy: (store, to) => onServer(server, `CREATE DATABASE ${nameOf(to)} TEMPLATE ${nameOf(store)}`),
    drop: (store) => onServer(server, `DROP DATABASE IF EXISTS ${nameOf(store)} WITH (FORCE)`)
  }
}

const onServer = async (server: string, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
