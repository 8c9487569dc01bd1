/**
 * Small worlds: which workflow runs, how many workers take it up, and how often the outside may crash, pause, answer,
 * fork, cancel and settle. A world bounds what is explored, nothing else: within it, everything that can happen does.
 */

/** One operation of a workflow. Programs are straight lines of them; concurrency comes from workers, branches and children. */
export type Op =
  /** A step with a `repeatable` effect: its outcome is the world's choice, and is pipelined (delivered before it is durable). */
  | { readonly kind: "read"; readonly outcomes: 1 | 2; readonly mayBeInvalid?: boolean }
  /** A step with an effect of this policy; its input is the outcome before it. */
  | { readonly kind: "keyed" }
  | { readonly kind: "once" }
  | { readonly kind: "transactional" }
  /** An interrupt: what comes after it is gated by its answer. */
  | { readonly kind: "gate" }
  /** Starts a child workflow of this program, and waits for it. */
  | { readonly kind: "child"; readonly program: number }

/** Somebody who sends one request, maybe several times. Values: 1 is `false`, 2 is `true`, 3 fails the Schema. */
export interface Deliverer {
  readonly value: 1 | 2 | 3
  readonly intent: "retry" | "fork"
  /** How often it sends the same request. */
  readonly sends: number
}

/** What is explored. */
export interface World {
  readonly name: string
  /** Program 0 is the run's. */
  readonly programs: ReadonlyArray<ReadonlyArray<Op>>
  /** Branches that there may be: the root, forks, forks of forks and children. */
  readonly branches: number
  readonly workers: number
  readonly crashes: number
  readonly pauses: number
  readonly deliverers: ReadonlyArray<Deliverer>
  /** Forks of a branch's latest checkpoint, without a value. */
  readonly plainForks: number
  readonly cancels: number
  /** An operator settles what is in doubt, truthfully. */
  readonly operator: boolean
}

const nothing = { crashes: 0, pauses: 0, plainForks: 0, cancels: 0, deliverers: [], operator: false } as const
const steady = { kind: "read", outcomes: 1 } as const
const gate = { kind: "gate" } as const
const once = { kind: "once" } as const
const keyed = { kind: "keyed" } as const
const transactional = { kind: "transactional" } as const

/** The worlds of the matrix. Together they hold every mechanism that a fault switches off. */
export const worlds: ReadonlyArray<World> = [
  {
    // A crash at any point, and a zombie, around effects of every policy.
    ...nothing,
    name: "effects",
    programs: [[{ kind: "read", outcomes: 2, mayBeInvalid: true }, keyed, once, transactional]],
    branches: 1,
    workers: 2,
    crashes: 1,
    pauses: 1,
    operator: true
  },
  {
    // Two questions one after the other, three who answer (one twice, one with the falsy value, one invalid).
    ...nothing,
    name: "gates",
    programs: [[gate, once, gate]],
    branches: 2,
    workers: 2,
    crashes: 1,
    deliverers: [
      { value: 1, intent: "retry", sends: 2 },
      { value: 2, intent: "retry", sends: 2 },
      { value: 3, intent: "retry", sends: 1 }
    ]
  },
  {
    // A cancellation around a question, beside answers, a zombie and a crash.
    ...nothing,
    name: "cancel",
    programs: [[gate, keyed]],
    branches: 2,
    workers: 2,
    crashes: 1,
    pauses: 1,
    cancels: 1,
    deliverers: [
      { value: 1, intent: "retry", sends: 1 },
      { value: 2, intent: "retry", sends: 1 }
    ]
  },
  {
    // Forks at a question with different values, of the root and of each other, beside a retry and a crash.
    ...nothing,
    name: "forks",
    programs: [[gate, keyed]],
    branches: 3,
    workers: 1,
    crashes: 1,
    plainForks: 1,
    deliverers: [
      { value: 1, intent: "retry", sends: 1 },
      { value: 1, intent: "fork", sends: 2 },
      { value: 2, intent: "fork", sends: 1 }
    ]
  },
  {
    // A child that parks: the parent waits for it, and its question is answered while its parent is anywhere.
    ...nothing,
    name: "child",
    programs: [
      [steady, { kind: "child", program: 1 }, once],
      [gate, keyed]
    ],
    branches: 3,
    workers: 2,
    crashes: 2,
    deliverers: [
      { value: 1, intent: "retry", sends: 2 },
      { value: 2, intent: "retry", sends: 1 }
    ]
  }
]

/** The large world: most mechanisms at once. It is explored without a fault. */
export const scaledWorld: World = {
  ...nothing,
  name: "scaled",
  programs: [[{ kind: "read", outcomes: 2 }, gate, once]],
  branches: 2,
  workers: 2,
  crashes: 1,
  pauses: 1,
  cancels: 1,
  operator: true,
  deliverers: [
    { value: 1, intent: "retry", sends: 2 },
    { value: 2, intent: "retry", sends: 2 },
    { value: 2, intent: "fork", sends: 1 }
  ]
}
