/**
 * The resume contract as code: vocabulary, properties and the decision functions that the ledger and the runtime
 * call. It depends on `effect` alone.
 */
export * as Defect from "./Defect.js"
export * from "./Delivery.js"
export * from "./Entry.js"
export * from "./Ids.js"
export * from "./Property.js"
export * as StrictJson from "./StrictJson.js"
export * from "./decisions/admitAppend.js"
export * from "./decisions/admitCancel.js"
export * from "./decisions/admitEntry.js"
export * from "./decisions/admitFiring.js"
export * from "./decisions/admitFork.js"
export * from "./decisions/admitSettlement.js"
export * from "./decisions/admitStart.js"
export * from "./decisions/afterFailure.js"
export * from "./decisions/judgeDelivery.js"
export * from "./decisions/ownership.js"
export * from "./decisions/recoverEffect.js"
export * from "./decisions/Recovery.js"
export * from "./decisions/serveInboxRow.js"
