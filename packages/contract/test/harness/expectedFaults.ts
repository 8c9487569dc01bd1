/**
 * Which probes find which fault of the reference plane: what can be seen of it from outside. A probe that begins or ceases
 * to find one changes this table.
 */
import type { Fault } from "@fermata/contract/harness"

export const foundBy: Record<Fault, ReadonlyArray<string>> = {
  rerunOnResume: [
    "PC/resume",
    "PC/parked",
    "PC/behind-gate",
    "EO/once/parked",
    "EO/keyed/parked",
    "EO/transactional/parked",
    "EO/repeatable/parked",
    "LV/killed/two-gates",
    "LV/killed/nested",
    "LV/killed/loop"
  ],
  rebuildFromInitial: [
    "PC/kill-at-body",
    "PC/kill-before-effect",
    "PC/kill-after-effect",
    "PC/two-effects",
    "PC/behind-gate",
    "PC/two-gates",
    "PC/nested",
    "PC/fan-out",
    "PC/loop",
    "PC/parallel",
    "PC/killed-twice",
    "EO/once/kill-before-effect",
    "EO/once/kill-after-effect",
    "EO/transactional/kill-before-effect",
    "EO/transactional/kill-after-effect",
    "EO/once/settled-happened",
    "EO/once/read-then-act",
    "EO/keyed/read-then-act",
    "EO/two-effects/kill-between",
    "EO/parallel/kill",
    "RD/racy-pair/left-only",
    "RD/racy-pair/right-only"
  ],
  forkIgnored: [
    "FD/after-resume",
    "FD/before-resume",
    "FD/between-resumes",
    "FD/equal-values",
    "FD/value-of-parent",
    "FD/parent-untouched",
    "FD/fork-of-fork",
    "FD/after-crash",
    "FI/fork-is-no-duplicate",
    "FI/fork-again"
  ],
  forkServesFirstAnswer: [
    "FD/after-resume",
    "FD/between-resumes",
    "FD/equal-values",
    "FD/parent-untouched",
    "FD/fork-of-fork",
    "FD/after-crash",
    "CV/last-checkpoint"
  ],
  forkRerunsPrefix: ["PC/fork", "EO/fork"],
  invalidPersisted: ["CV/invalid-output"],
  invalidAnswerAccepted: ["CV/invalid-answer", "CV/invalid-fork"],
  unverifiedRead: ["CV/damage"],
  doubleConsume: [
    "CO/race/2-same",
    "CO/race/2-different",
    "CO/race/4-same",
    "CO/race/4-different",
    "CO/race/8-same",
    "CO/race/8-different",
    "CO/race/16-same",
    "CO/race/16-different"
  ],
  duplicateServedAgain: ["EO/duplicate", "CO/same-delivery"],
  answerReused: ["CO/next-gate", "CO/one-of-two", "CO/two-gates-in-one-node", "CO/loop-of-gates"],
  answerBroadcast: ["CO/one-of-two", "CO/answers/left-first", "CO/answers/right-first"],
  falsyIgnored: ["CO/falsy/false", "CO/falsy/zero", "CO/falsy/empty-text", "CO/falsy/null"],
  orderDependentRecovery: ["RD/racy-pair/right-first", "RD/racy-pair/right-only"],
  lostWakeUp: ["LV/answered-while-busy"],
  parkedStateLost: ["LV/parked-crash", "LV/answered-while-down"],
  unnamedWait: ["LV/in-doubt"],
  unfencedZombie: ["EO/zombie"],
  effectBeforeIntent: [
    "EO/once/kill-after-effect",
    "EO/once/settled-happened",
    "EO/once/read-then-act",
    "EO/two-effects/kill-between",
    "EO/zombie"
  ],
  outcomeBeforeDurable: ["EO/once/read-then-act", "EO/keyed/read-then-act"],
  blindRetry: [
    "EO/once/kill-after-effect",
    "EO/once/settled-happened",
    "EO/once/read-then-act",
    "EO/two-effects/kill-between",
    "EO/parallel/kill",
    "EO/zombie"
  ],
  intentDefaulted: ["FI/no-default"],
  retryForks: [
    "CO/second-equal",
    "CO/second-different",
    "CO/falsy/false",
    "CO/falsy/zero",
    "CO/falsy/empty-text",
    "CO/falsy/null",
    "CO/falsy/empty-list",
    "CO/next-gate",
    "CO/crash-after-claim",
    "CO/race/2-same",
    "CO/race/2-different",
    "CO/race/4-same",
    "CO/race/4-different",
    "CO/race/8-same",
    "CO/race/8-different",
    "CO/race/16-same",
    "CO/race/16-different",
    "FI/retry-is-no-fork"
  ]
}
