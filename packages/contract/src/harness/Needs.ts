/** What a probe needs of a plane, and what it means if the plane has not got it. */
import { Data } from "effect"
import { type CanonicalWorkflow, deliveriesOf, type Feature, featuresOf } from "./CanonicalWorkflow.js"
import type { Capabilities, Hello } from "./Plane.js"

/** The probe cannot be made: the plane has no means for it (`cannot be expressed`), or the situation cannot be had. */
export class Inapplicable extends Data.TaggedError("Inapplicable")<{
  readonly verdict: "cannot be expressed" | "not applicable"
  readonly reason: string
}> {}

/** The names of capabilities that say yes or no. */
export type Switch = {
  [K in keyof Capabilities]: Capabilities[K] extends boolean ? K : never
}[keyof Capabilities]

const meaning: Record<Switch, { readonly verdict: Inapplicable["verdict"]; readonly reason: string }> = {
  durable: { verdict: "cannot be expressed", reason: "the plane's store does not outlive a killed process" },
  deliveryIds: { verdict: "cannot be expressed", reason: "deliveries carry no id" },
  fork: { verdict: "cannot be expressed", reason: "the plane cannot fork" },
  intents: { verdict: "cannot be expressed", reason: "the plane's wire does not tell a retry from a fork" },
  schemas: { verdict: "cannot be expressed", reason: "the plane does not check what it persists" },
  settle: { verdict: "cannot be expressed", reason: "nobody can settle an effect in doubt" },
  cancel: { verdict: "cannot be expressed", reason: "the plane cannot cancel" },
  history: { verdict: "not applicable", reason: "the driver cannot say which steps have a durable outcome" },
  branches: { verdict: "not applicable", reason: "the driver cannot list branches" },
  announcesCommits: { verdict: "not applicable", reason: "the driver does not announce what becomes durable" },
  copy: { verdict: "not applicable", reason: "the driver cannot copy a store" },
  takeover: { verdict: "not applicable", reason: "a worker cannot take over what another one holds" },
  damage: { verdict: "not applicable", reason: "the driver cannot damage what is stored" }
}

/** Which switches of a plane are off that must be on. */
export const missing = (hello: Hello, switches: ReadonlyArray<Switch>): Inapplicable | undefined => {
  const off = switches.find((name) => !hello.capabilities[name])
  return off === undefined ? undefined : new Inapplicable(meaning[off])
}

/** Why the plane cannot run the workflow. */
export const inexpressible = (hello: Hello, { steps }: CanonicalWorkflow): Inapplicable | undefined => {
  const no = (reason: string) => new Inapplicable({ verdict: "cannot be expressed", reason })
  const feature = [...featuresOf(steps)].find((one: Feature) => !hello.capabilities.features.includes(one))
  if (feature !== undefined) return no(`the plane has no ${feature}`)
  const delivery = [...deliveriesOf(steps)].find((one) => !hello.capabilities.deliveries.includes(one))
  return delivery === undefined ? undefined : no(`the plane has no ${delivery} effects`)
}
