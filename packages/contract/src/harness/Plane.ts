/**
 * A plane under test, as its driver shows it: what it can do, and one session per process of it.
 *
 * The driver holds no opinion. It starts canonical workflows by its plane's own means, passes requests on, and says
 * what came of them. What happens outside the plane is written by the effects themselves (see `Outside.ts`).
 */
import { type Effect, Schema, type Scope } from "effect"
import { DeliveryPolicy } from "../Delivery.js"
import { PropertyId } from "../Property.js"
import { CanonicalWorkflow, Feature } from "./CanonicalWorkflow.js"

/** What a plane can do. A probe that needs more is `cannot be expressed` or `not applicable`, never a violation. */
export const Capabilities = Schema.Struct({
  /** The delivery policies that its effects may have. */
  deliveries: Schema.NonEmptyArray(DeliveryPolicy),
  /** What it can run, beyond nodes in a row. */
  features: Schema.Array(Feature),
  /** Its store outlives a process that is killed. */
  durable: Schema.Boolean,
  /** Several processes may use one store at once. */
  processes: Schema.Literal("one", "many"),
  /** Deliveries carry an id, so that the same one again can be told from another. */
  deliveryIds: Schema.Boolean,
  /** A branch can be made from an answered or open gate, with another answer. */
  fork: Schema.Boolean,
  /** Its wire asks whether a delivery means "again" or "another branch"; such a driver passes `intent: null` on as none. */
  intents: Schema.Boolean,
  /** It checks what it persists against what was declared. */
  schemas: Schema.Boolean,
  cancel: Schema.Boolean,
  /** An operator can say what became of a `once` effect in doubt. */
  settle: Schema.Boolean,
  /** The driver can say which steps have a durable outcome. */
  history: Schema.Boolean,
  /** The driver can list a run's branches. */
  branches: Schema.Boolean,
  /** The driver passes the points `commit.<n>.before` and `commit.<n>.after` around everything that becomes durable. */
  announcesCommits: Schema.Boolean,
  /** The driver can copy a store that no process uses. */
  copy: Schema.Boolean,
  /** A worker opened with `takeover` takes the branches of one that stands still, without its consent. */
  takeover: Schema.Boolean,
  /** The driver can damage what is stored of a branch, as a disk would. */
  damage: Schema.Boolean,
  /** `host:port` of the service that its processes share, if they may run on several hosts; else null. */
  service: Schema.NullOr(Schema.String)
})
export type Capabilities = typeof Capabilities.Type

/** What the plane's documentation says of a property, or of one probe (by id), if anything. */
export const Statement = Schema.Struct({
  about: Schema.String,
  /** `claims`: it promises the property. `diverges`: it says that it behaves otherwise. */
  stance: Schema.Literal("claims", "diverges"),
  /** The sentence. */
  says: Schema.String,
  /** Where it stands. */
  source: Schema.String
})
export type Statement = typeof Statement.Type

/** How a driver introduces its plane. */
export const Hello = Schema.Struct({
  /** Version of the protocol that the driver speaks. */
  protocol: Schema.Int,
  plane: Schema.String,
  version: Schema.String,
  capabilities: Capabilities,
  documentation: Schema.Array(Statement)
})
export type Hello = typeof Hello.Type

/** Where a process of the plane works. */
export const Place = Schema.Struct({
  /** A folder of the store's own; a plane whose store is elsewhere takes it as the store's name. */
  store: Schema.String,
  /** True at the first opening of the store: nothing is there. */
  create: Schema.Boolean,
  /** A worker runs what is due; a client only asks and delivers. Both answer every request. */
  role: Schema.Literal("worker", "client"),
  /** The effect log that effects append to. */
  log: Schema.String,
  /** The folder of the barriers. */
  barriers: Schema.String,
  /** Unique among the sessions of a probe; names this one at barriers and in the log. */
  who: Schema.String,
  /** Take over what another worker holds, as soon as the plane allows it. */
  takeover: Schema.Boolean,
  /** It will be replaced while it stands still: what it holds is to be free soon (short leases and limits, in seconds). */
  brief: Schema.Boolean,
  /** Where to find the shared service from this host, if not where the driver looks by itself. */
  service: Schema.NullOr(Schema.String)
})
export type Place = typeof Place.Type

/** A gate that nobody answered yet. */
export const PendingGate = Schema.Struct({
  /** How the plane addresses it. */
  interrupt: Schema.String,
  /** The gate's name in the workflow (`name@i` in a loop). */
  gate: Schema.String
})
export type PendingGate = typeof PendingGate.Type

/** What a branch at rest waits for, as the plane's inspection names it. */
export const WaitingFor = Schema.Struct({
  kind: Schema.Literal("answer", "time", "operator", "worker", "signal"),
  /** The interrupt, for an answer; the effect's key, for an operator; else what the plane says. */
  name: Schema.String
})
export type WaitingFor = typeof WaitingFor.Type

/** A branch as the plane's inspection shows it. */
export const BranchState = Schema.Struct({
  branch: Schema.String,
  /** `stuck`: it does not go on without help. */
  status: Schema.Literal("running", "waiting", "stuck", "completed", "failed", "cancelled"),
  /** The result, if completed. */
  value: Schema.optional(Schema.Unknown),
  /** What went wrong, if failed or stuck. */
  error: Schema.optional(Schema.String),
  waitingFor: Schema.Array(WaitingFor),
  pending: Schema.Array(PendingGate)
})
export type BranchState = typeof BranchState.Type

/** What became of a delivery. */
export const Receipt = Schema.Struct({
  outcome: Schema.Literal("accepted", "duplicate", "refused", "forked"),
  /** Why, as the plane says it; for a refusal the error's name or message. */
  reason: Schema.String,
  /** The new branch, if `forked`. */
  branch: Schema.NullOr(Schema.String)
})
export type Receipt = typeof Receipt.Type

/** A step with a durable outcome. */
export const RecordedStep = Schema.Struct({ step: Schema.String, value: Schema.Unknown })
export type RecordedStep = typeof RecordedStep.Type

/** What a `transactional` effect wrote. */
export const Committed = Schema.Struct({
  step: Schema.String,
  effect: Schema.String,
  input: Schema.Unknown,
  value: Schema.String
})
export type Committed = typeof Committed.Type

/** The operations of a session: what is asked, and what is answered. `docs/contract-driver.md` says what each means. */
export const operations = {
  /** Starts a run, durably; the answer names its first branch. The same run again is the same run. */
  start: {
    request: Schema.Struct({ run: Schema.String, workflow: CanonicalWorkflow }),
    reply: Schema.Struct({ branch: Schema.String })
  },
  /** The branch as it stands. */
  inspect: { request: Schema.Struct({ branch: Schema.String }), reply: BranchState },
  /** Answers once the branch is at rest: over, or not going on by itself. Needs a worker somewhere. */
  rest: { request: Schema.Struct({ branch: Schema.String }), reply: BranchState },
  /**
   * Delivers an answer. `line`: a barrier to pass just before delivering. `intent: null`: the delivery says nothing of
   * its intent. `forkId` names the branch to be made, with `intent: "fork"`.
   */
  resume: {
    request: Schema.Struct({
      branch: Schema.String,
      interrupt: Schema.String,
      value: Schema.Unknown,
      deliveryId: Schema.String,
      intent: Schema.NullOr(Schema.Literal("retry", "fork")),
      forkId: Schema.NullOr(Schema.String),
      line: Schema.NullOr(Schema.String)
    }),
    reply: Receipt
  },
  cancel: { request: Schema.Struct({ branch: Schema.String }), reply: Schema.Struct({ accepted: Schema.Boolean }) },
  /** An operator's word on the effect that `WaitingFor` named: it happened, with this value, or it never will. */
  settle: {
    request: Schema.Struct({
      branch: Schema.String,
      key: Schema.String,
      happened: Schema.Boolean,
      value: Schema.Unknown
    }),
    reply: Schema.Struct({ accepted: Schema.Boolean })
  },
  /** The steps with a durable outcome on the branch, inherited ones included, in the plane's order. */
  history: {
    request: Schema.Struct({ branch: Schema.String }),
    reply: Schema.Struct({ steps: Schema.Array(RecordedStep) })
  },
  branches: {
    request: Schema.Struct({ run: Schema.String }),
    reply: Schema.Struct({ branches: Schema.Array(Schema.String) })
  },
  /** What `transactional` effects committed to the plane's own database for the run. */
  committed: {
    request: Schema.Struct({ run: Schema.String }),
    reply: Schema.Struct({ effects: Schema.Array(Committed) })
  },
  /** Damages a recorded outcome of the branch in the store. */
  damage: { request: Schema.Struct({ branch: Schema.String }), reply: Schema.Struct({}) },
  /** Answers once this process has nothing in hand any more. */
  idle: { request: Schema.Struct({}), reply: Schema.Struct({}) }
} as const

export type Operation = keyof typeof operations
export type Request<O extends Operation> = (typeof operations)[O]["request"]["Type"]
export type Reply<O extends Operation> = (typeof operations)[O]["reply"]["Type"]

/**
 * The driver cannot do what is asked. `unsupported`: the plane has no such thing. `unknown`: it names nothing that the
 * plane knows. `failed`: the plane failed.
 */
export class Declined extends Schema.TaggedError<Declined>("fermata/harness/Declined")("Declined", {
  code: Schema.Literal("unsupported", "unknown", "failed"),
  message: Schema.String
}) {}

/** A process of the plane, at work in a place. */
export type Session = {
  readonly [O in Operation]: (request: Request<O>) => Effect.Effect<Reply<O>, Declined>
}

/** A plane under test, in this process. */
export interface Plane {
  readonly hello: Hello
  /**
   * Opens a session. When its scope closes the process has been killed: nothing of it may be written any more, and
   * everything that was not durable is gone.
   */
  readonly open: (place: Place) => Effect.Effect<Session, Declined, Scope.Scope>
  /** Copies a store that no session uses. */
  readonly copy: (store: string, to: string) => Effect.Effect<void, Declined>
  /** Removes a store that no session uses. */
  readonly drop: (store: string) => Effect.Effect<void, Declined>
}

/** The version of the protocol and of this interface. */
export const protocolVersion = 1

/** The property or probe that a statement is about. */
export const isAboutProperty = (statement: Statement): boolean => Schema.is(PropertyId)(statement.about)
