/** One probe: a situation, made on a stand, and what must be seen of it. */
import type { Effect, Scope } from "effect"
import type { PropertyId } from "../Property.js"
import type { Stand, Stop } from "./Stand.js"

export interface Probe {
  /** `<property>/<name>`; `--probe` takes it. */
  readonly id: string
  readonly property: PropertyId
  /** The behaviour that it looks for. */
  readonly title: string
  readonly run: (stand: Stand) => Effect.Effect<void, Stop, Scope.Scope>
}

/** Declares probes of a property. */
export const of =
  (property: PropertyId) =>
  (name: string, title: string, run: Probe["run"]): Probe => ({ id: `${property}/${name}`, property, title, run })
