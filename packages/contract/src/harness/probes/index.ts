/** All probes, by property. */
import type { Probe } from "../Probe.js"
import { checkpointValidity } from "./checkpointValidity.js"
import { consumeOnce } from "./consumeOnce.js"
import { exactlyOnce } from "./exactlyOnce.js"
import { forkDeterminism } from "./forkDeterminism.js"
import { forkIntent } from "./forkIntent.js"
import { liveness } from "./liveness.js"
import { prefixContinuation } from "./prefixContinuation.js"
import { recoveryDeterminism } from "./recoveryDeterminism.js"

export const allProbes: ReadonlyArray<Probe> = [
  ...prefixContinuation,
  ...exactlyOnce,
  ...forkDeterminism,
  ...checkpointValidity,
  ...consumeOnce,
  ...recoveryDeterminism,
  ...forkIntent,
  ...liveness
]
