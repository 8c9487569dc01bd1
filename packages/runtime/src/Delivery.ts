/**
 * How a declared side effect may be delivered: the constructors used in `SideEffect.make`.
 *
 * @example
 * const Charge = SideEffect.make("payments/charge", { delivery: Delivery.once({ timeLimit: "10 seconds" }), … })
 */
import type { DeliveryPolicy } from "@fermata/contract"
import { Duration } from "effect"

/** A delivery policy with its limits (milliseconds). */
export interface Delivery<P extends DeliveryPolicy = DeliveryPolicy> {
  readonly policy: P
  /** How long the handler may take. Beyond it the effect is in doubt. */
  readonly timeLimit: number
  /** `once`: how long after the intent was written the handler may still be entered. */
  readonly fireWithin: number
}

/** The handler's limits; both have defaults. */
export interface Limits {
  /** How long the handler may take; 60 seconds by default (`transactional`: 5). Finite. */
  readonly timeLimit?: Duration.DurationInput
}

const make = <P extends DeliveryPolicy>(
  policy: P,
  limits: Limits & { readonly fireWithin?: Duration.DurationInput } = {}
): Delivery<P> => {
  const delivery = {
    policy,
    timeLimit: Duration.toMillis(limits.timeLimit ?? (policy === "transactional" ? "5 seconds" : "60 seconds")),
    fireWithin: Duration.toMillis(limits.fireWithin ?? "10 seconds")
  }
  // Recovery waits for a firing to be over, so that it must be over some time.
  if (!Number.isFinite(delivery.timeLimit) || !Number.isFinite(delivery.fireWithin)) {
    throw new TypeError(`A ${policy} delivery needs finite limits`)
  }
  return delivery
}

/** The receiver honours the idempotency key: after a crash it is fired again with the same key and input. */
export const keyed: Delivery<"keyed"> = make("keyed")

/** As `keyed`, with limits. */
export const keyedWithin = (limits: Limits): Delivery<"keyed"> => make("keyed", limits)

/**
 * Never fired again blindly. After a crash the handler's `reconcile` is asked what became of it; without an answer
 * the branch is stuck until an operator settles it.
 */
export const once = (
  limits: Limits & {
    /** How long after its intent was written the handler may still be entered; 10 seconds by default. */
    readonly fireWithin?: Duration.DurationInput
  } = {}
): Delivery<"once"> => make("once", limits)

/**
 * SQL in the plane's own database: its writes and its outcome commit together. While it runs it holds the database's
 * write lock (SQLite) or a connection and its branch's row (PostgreSQL); beyond 5 seconds it is rolled back. PostgreSQL
 * also ends one that pauses between two statements for longer than the ledger's `idleInTransaction`, 15 seconds.
 */
export const transactional: Delivery<"transactional"> = make("transactional")

/** As `transactional`, with limits. */
export const transactionalWithin = (limits: Limits): Delivery<"transactional"> => make("transactional", limits)

/** Safe to fire again (reads, model calls); memoized once recorded. */
export const repeatable: Delivery<"repeatable"> = make("repeatable")

/** As `repeatable`, with limits. */
export const repeatableWithin = (limits: Limits): Delivery<"repeatable"> => make("repeatable", limits)
