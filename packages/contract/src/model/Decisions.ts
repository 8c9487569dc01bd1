/**
 * The decisions that a model's transitions call. By default they are the very functions that the ledger and the
 * runtime call; a test that wants to see a model notice a changed decision passes another.
 */
import { admitAppend } from "../decisions/admitAppend.js"
import { admitCancel } from "../decisions/admitCancel.js"
import { admitEntry } from "../decisions/admitEntry.js"
import { admitFiring } from "../decisions/admitFiring.js"
import { admitFork } from "../decisions/admitFork.js"
import { admitSettlement } from "../decisions/admitSettlement.js"
import { admitStart } from "../decisions/admitStart.js"
import { mayStillFire } from "../decisions/afterFailure.js"
import { judgeDelivery } from "../decisions/judgeDelivery.js"
import { admitPark, judgeOwner } from "../decisions/ownership.js"
import { recoverEffect } from "../decisions/recoverEffect.js"
import { Recovery } from "../decisions/Recovery.js"
import { serveInboxRow } from "../decisions/serveInboxRow.js"

/** The decision functions of the contract, as one value. */
export interface Decisions {
  readonly admitStart: typeof admitStart
  readonly admitEntry: typeof admitEntry
  readonly admitAppend: typeof admitAppend
  readonly admitFiring: typeof admitFiring
  readonly mayStillFire: typeof mayStillFire
  readonly recoverEffect: typeof recoverEffect
  readonly judgeDelivery: typeof judgeDelivery
  readonly admitFork: typeof admitFork
  readonly admitSettlement: typeof admitSettlement
  readonly admitCancel: typeof admitCancel
  readonly serveInboxRow: typeof serveInboxRow
  readonly judgeOwner: typeof judgeOwner
  readonly admitPark: typeof admitPark
  /** The fold of a history. */
  readonly recover: typeof Recovery.of
}

/** The decisions that ship. */
export const shippedDecisions: Decisions = {
  admitStart,
  admitEntry,
  admitAppend,
  admitFiring,
  mayStillFire,
  recoverEffect,
  judgeDelivery,
  admitFork,
  admitSettlement,
  admitCancel,
  serveInboxRow,
  judgeOwner,
  admitPark,
  recover: (branch, history) => Recovery.of(branch, history)
}
