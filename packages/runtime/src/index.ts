/** Durable workflows as plain Effect programs. Each module is read as a namespace: `Workflow.make`, `Client.Client`. */
export * as Child from "./Child.js"
export * as Client from "./Client.js"
export * as Delivery from "./Delivery.js"
export * as Health from "./Health.js"
export * as HistoryFile from "./HistoryFile.js"
export * as HumanTask from "./HumanTask.js"
export * as Interrupt from "./Interrupt.js"
export * as Loop from "./Loop.js"
export * as Metrics from "./Metrics.js"
export * as Node from "./Node.js"
export * as OutputStream from "./OutputStream.js"
export * as Plane from "./Plane.js"
export * as Problem from "./Problem.js"
export * as Query from "./Query.js"
export * as Retention from "./Retention.js"
export * as RunError from "./RunError.js"
export * as RunSchedule from "./RunSchedule.js"
export * as Saga from "./Saga.js"
export * as SideEffect from "./SideEffect.js"
export * as Signal from "./Signal.js"
export * as Tag from "./Tag.js"
export * as Update from "./Update.js"
export * as Worker from "./Worker.js"
export * as WorkQueue from "./WorkQueue.js"
export * as Workflow from "./Workflow.js"

export { BranchId, Checkpoint, DeliveryId, EffectKey, ForkId, InterruptId, MessageId, RunId } from "@fermata/contract"
export {
  AlreadyConsumed,
  AlreadySettled,
  CorruptJournal,
  DeliveryIdReused,
  EffectInFlight,
  EffectUnderWay,
  ForkIdReused,
  ImportInvalid,
  InterruptClosed,
  Ledger,
  LedgerUnavailable,
  LedgerUnusable,
  MessageIdReused,
  PayloadCodec,
  ResumeValueInvalid,
  RunConflict,
  RunExists,
  RunNotFound,
  RunNotOver,
  RunOver,
  RunPurged,
  ScheduleConflict,
  ScheduleNotFound,
  SettlementInvalid,
  UnknownCheckpoint,
  UnknownEffect,
  UnknownInterrupt,
  UnknownMessage
} from "@fermata/ledger"
