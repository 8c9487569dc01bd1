/** A kind of database to measure on: where its databases are, and what it can do at most. */
import { Plane } from "@fermata/runtime"
import { type Effect, Layer, Schema, type Scope } from "effect"

/** Where one database is; as JSON it goes to child processes. */
export const Location = Schema.Union(
  Schema.TaggedStruct("Sqlite", { filename: Schema.String }),
  Schema.TaggedStruct("Postgres", { url: Schema.String })
)
export type Location = typeof Location.Type

export interface Target {
  readonly name: "sqlite" | "postgres"
  readonly title: string
  /** An empty database of its own, removed with the scope. */
  readonly database: Effect.Effect<Location, unknown, Scope.Scope>
  /** Single-row durable commits a second, one after the other, through the driver alone; a sample of some 100 ms. */
  readonly raw: Effect.Effect<number>
}

/** The plane on a database, as durable as it is by default. A plane that cannot be opened ends the measurement. */
export const planeOf = (location: Location): Layer.Layer<Plane.Plane> =>
  Layer.orDie(
    location._tag === "Sqlite" ? Plane.sqlite({ filename: location.filename }) : Plane.postgres({ url: location.url })
  )

/** How many commits a raw sample has. */
export const sampleSize = 500

/** What a raw row carries: about as much as a step's entry. */
export const rawPayload = "x".repeat(100)
