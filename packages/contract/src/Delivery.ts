/**
 * How a declared side effect may be delivered to the outside world. The policy is the whole of what recovery may
 * do with an effect whose outcome is unknown, and of what must be durable before it fires.
 */
import { Schema } from "effect"

/**
 * - `transactional`: SQL in the plane's own database; commits with its outcome, so it cannot be in doubt.
 * - `keyed`: the receiver honours an idempotency key; fired again with the same key and input.
 * - `once`: never fired again blindly; reconciled with the outside, or settled by an operator.
 * - `repeatable`: fired again (reads, model calls); memoized once recorded.
 */
export const DeliveryPolicy = Schema.Literal("transactional", "keyed", "once", "repeatable")
export type DeliveryPolicy = typeof DeliveryPolicy.Type

/** True if interruption must wait for the outcome of a firing effect of this policy. */
export const isUninterruptible = (policy: DeliveryPolicy): boolean => policy === "once" || policy === "transactional"

/** True if everything before it must be durable before an effect of this policy fires (output commit rule). */
export const needsDurablePrefix = (policy: DeliveryPolicy): boolean => policy !== "repeatable"

/** True if an effect of this policy writes an intent before it fires. */
export const writesIntent = (policy: DeliveryPolicy): boolean => policy === "keyed" || policy === "once"
