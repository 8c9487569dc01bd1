/**
 * Named points at which a test may stop or kill the process. Without a hook they cost one comparison.
 *
 * Points: `appended` and `durable` (detail: `<branch> <seq> <kind> <key>`), `before-intent`, `after-intent`,
 * `before-handler`, `after-handler`, `after-outcome` (detail: the effect key).
 */
import { Effect } from "effect"

/** What a test does at a point: nothing, or an effect that the firing waits for. */
export type Hook = (name: string, detail: string) => Effect.Effect<void> | undefined

let hook: Hook | undefined

/** Installs a hook for this process; returns how to take it away. */
export const install = (installed: Hook): (() => void) => {
  hook = installed
  return () => {
    if (hook === installed) hook = undefined
  }
}

/** Waits for what the hook asks for at this point. */
export const reach = (name: string, detail: string): Effect.Effect<void> =>
  hook === undefined ? Effect.void : Effect.suspend(() => hook?.(name, detail) ?? Effect.void)

/** True if a hook is installed. */
export const armed = (): boolean => hook !== undefined

/** Tells the hook of a point that nothing waits at. */
export const pass = (name: string, detail: string): void => {
  hook?.(name, detail)
}
