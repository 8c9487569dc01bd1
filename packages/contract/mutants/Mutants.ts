/** All mutants of the contract's decisions. */
import { effectMutants } from "./EffectMutants.js"
import { keyMutants } from "./KeyMutants.js"
import { loopMutants } from "./LoopMutants.js"
import type { Mutant } from "./Mutant.js"
import { outsideMutants } from "./OutsideMutants.js"
import { ownerMutants } from "./OwnerMutants.js"
import { queueMutants } from "./QueueMutants.js"
import { recoveryMutants } from "./RecoveryMutants.js"

/** Every mutant, in the order in which they are run. */
export const mutants: ReadonlyArray<Mutant> = [
  ...outsideMutants,
  ...ownerMutants,
  ...effectMutants,
  ...recoveryMutants,
  ...loopMutants,
  ...keyMutants,
  ...queueMutants
]
