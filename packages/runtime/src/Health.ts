/**
 * How a plane stands: facts from its database, and what an operator should know of them. A worker's `/health` route, a
 * monitor and `fermata doctor` say the same.
 *
 * @example
 * const findings = Effect.map(Health.facts, Health.findings)
 */
import { type HealthFacts, Ledger, type LedgerError } from "@fermata/ledger"
import { Effect } from "effect"

export type { HealthFacts } from "@fermata/ledger"

/** `error`: something stands still until somebody helps. `warning`: something is slow or will be. */
export type Severity = "error" | "warning"

/** Something that an operator should know, and what to do about it. */
export interface Finding {
  readonly severity: Severity
  readonly kind: "clock skew" | "stuck" | "orphaned" | "silent worker" | "lost worker" | "unserved" | "backlog"
  /** The definition, branch or worker concerned; the database where it is none of them. */
  readonly subject: string
  readonly message: string
  readonly advice: string
}

/** Limits beyond which something is found; all in milliseconds. */
export interface Limits {
  /** How far this process's clock may be from the database's; 1 second by default. */
  readonly skew?: number
  /** How long a due branch may wait for a worker; 60 seconds by default. */
  readonly lag?: number
}

/** Gathers the facts: a few reads, one of which walks the table of branches. */
export const facts: Effect.Effect<HealthFacts, LedgerError, Ledger> = Effect.flatMap(Ledger, ({ health }) => health)

/** What an operator should know of these facts, errors first. Pure: the same facts give the same findings. */
export const findings = (facts: HealthFacts, limits: Limits = {}): ReadonlyArray<Finding> => {
  const found = [
    ...clock(facts, limits.skew ?? 1_000),
    ...stuck(facts),
    ...orphaned(facts),
    ...workers(facts),
    ...queues(facts, limits.lag ?? 60_000)
  ]
  return [...found.filter(({ severity }) => severity === "error"), ...found.filter((one) => one.severity !== "error")]
}

const clock = ({ database, skew }: HealthFacts, limit: number): ReadonlyArray<Finding> =>
  Math.abs(skew) <= limit
    ? []
    : [
        {
          severity: "warning",
          kind: "clock skew",
          subject: database,
          message: `This host's clock is ${Math.abs(skew)} ms ${skew > 0 ? "ahead of" : "behind"} the database's.`,
          advice:
            "Timers and leases go by the database's time and are right; set the host's clock by NTP so that its logs are."
        }
      ]

const stuck = ({ branches, stuck }: HealthFacts): ReadonlyArray<Finding> => {
  const rest = branches.stuck - stuck.length
  return [
    ...stuck.map((row): Finding => ({
      severity: "error",
      kind: "stuck",
      subject: row.branch,
      message: `Branch ${row.branch} of ${row.workflow}@${row.version} is stuck: ${problemText(row.problem)}`,
      advice:
        "Deploy code that goes on from its history, or settle its effect in doubt; a starting worker tries it again."
    })),
    ...(rest > 0
      ? [
          {
            severity: "error",
            kind: "stuck",
            subject: "",
            message: `${rest} more branches are stuck.`,
            advice: "List them by status."
          } as const
        ]
      : [])
  ]
}

/** The messages of a stored problem, or its text where it is of an unknown shape. */
const problemText = (problem: string | null): string => {
  if (problem === null) return "no reason is stored."
  try {
    const parsed: unknown = JSON.parse(problem)
    const messages = (Array.isArray(parsed) ? parsed : [parsed]).map((one: unknown) =>
      typeof one === "object" && one !== null && "message" in one ? String(one.message) : "unknown"
    )
    return messages.join("; ")
  } catch {
    return "its reason cannot be read."
  }
}

const orphaned = ({ orphaned }: HealthFacts): ReadonlyArray<Finding> =>
  orphaned.map((row) => ({
    severity: "error",
    kind: "orphaned",
    subject: row.branch,
    message: `Branch ${row.branch} of ${row.workflow}@${row.version} is owned by a worker that is gone (${row.owner ?? "none"}).`,
    advice: "Start a worker on this database: any one frees it at its next look."
  }))

const workers = ({ now, workers }: HealthFacts): ReadonlyArray<Finding> =>
  workers.flatMap((worker): ReadonlyArray<Finding> => {
    if (worker.state === "alive" && worker.leaseUntil < now) {
      return [
        {
          severity: "warning",
          kind: "silent worker",
          subject: worker.worker,
          message: `Worker ${worker.worker} (pid ${worker.pid}) has been silent since its lease ended ${now - worker.leaseUntil} ms ago.`,
          advice: "It crashed or is paused. Other workers take its branches over; restart it if it should run."
        }
      ]
    }
    // What happened in the last hour; older losses are history.
    if ((worker.state === "dead" || worker.state === "expired") && now - worker.leaseUntil < 3_600_000) {
      return [
        {
          severity: "warning",
          kind: "lost worker",
          subject: worker.worker,
          message: `Worker ${worker.worker} (pid ${worker.pid}) was lost in the last hour (${worker.state}); its branches were taken over.`,
          advice: "See its log for why it ended. Nothing has to be done for its runs."
        }
      ]
    }
    return []
  })

const queues = ({ now, queues, workers }: HealthFacts, limit: number): ReadonlyArray<Finding> => {
  const alive = workers.filter(({ leaseUntil, state }) => state === "alive" && leaseUntil >= now)
  // One that registered with an older version of this code did not say what it serves.
  const unsure = alive.some(({ definitions }) => definitions === null)
  return queues.flatMap(({ definition, depth, since }): ReadonlyArray<Finding> => {
    const served = unsure || alive.some(({ definitions }) => definitions?.includes(definition) === true)
    if (!served) {
      return [
        {
          severity: "error",
          kind: "unserved",
          subject: definition,
          message: `${depth} ${depth === 1 ? "branch waits" : "branches wait"} for a worker that knows ${definition}, and none runs.`,
          advice: `Start a worker whose workflows include ${definition}; keep old versions deployed until their runs are over.`
        }
      ]
    }
    return now - since <= limit
      ? []
      : [
          {
            severity: "warning",
            kind: "backlog",
            subject: definition,
            message: `${depth} due ${depth === 1 ? "branch" : "branches"} of ${definition}; the oldest has waited ${Math.round((now - since) / 1000)} s for a worker.`,
            advice: "Start more workers, or raise their concurrency."
          }
        ]
  })
}
