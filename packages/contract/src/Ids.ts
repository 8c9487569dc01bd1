/**
 * Branded identifiers. Each is a string with a Schema, checked where it enters the system, so that an
 * identifier that reached the journal is well-formed text on every database.
 */
import { Schema } from "effect"

/** The most UTF-16 code units an identifier may have. */
export const maxIdLength = 255

// Control characters (C0, DEL, C1) and line separators are refused: ids are digest fields, SQL keys and log words.
// oxlint-disable-next-line no-control-regex -- refusing control characters is the point
const forbidden = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** Says what is wrong with a text as an identifier, or `undefined` if it is one. Total. */
export const idProblem = (text: string): string | undefined => {
  if (text.length === 0) return "is empty"
  if (text.length > maxIdLength) return `is longer than ${maxIdLength} characters (${text.length})`
  if (text.trim() !== text) return "begins or ends with white space"
  if (forbidden.test(text)) return "contains a control character"
  if (!text.isWellFormed()) return "contains a lone surrogate"
  return undefined
}

const id = <B extends string>(brand: B, extra?: (text: string) => string | undefined) =>
  Schema.String.pipe(
    Schema.filter(
      (text) => {
        const problem = idProblem(text) ?? extra?.(text)
        return problem === undefined ? undefined : `${brand} ${problem}`
      },
      { identifier: brand, description: `1 to ${maxIdLength} characters, no control characters` }
    ),
    Schema.brand(brand)
  )

/** Names one run. Given by the caller (which makes `start` idempotent) or generated. */
export const RunId = id("RunId")
export type RunId = typeof RunId.Type

/**
 * Names a fork of a run; chosen by the caller, which makes forking idempotent. It may not contain `/`, so that
 * a {@link BranchId} splits in one way only, and may not be `main`, which names the root branch.
 */
export const ForkId = id("ForkId", (text) =>
  text.includes("/") ? "contains a slash" : text === rootForkId ? "is reserved for the root branch" : undefined
)
export type ForkId = typeof ForkId.Type

const rootForkId = "main"

/** Names one timeline of a run: `<RunId>/main` for the root, `<RunId>/<ForkId>` for a fork. */
export const BranchId = Schema.String.pipe(
  Schema.filter(
    (text) => {
      const slash = text.lastIndexOf("/")
      if (slash < 0) return "BranchId has no slash: it reads <RunId>/main or <RunId>/<ForkId>"
      const problem = idProblem(text.slice(0, slash)) ?? idProblem(text.slice(slash + 1))
      return problem === undefined ? undefined : `BranchId ${problem}`
    },
    { identifier: "BranchId" }
  ),
  Schema.brand("BranchId")
)
export type BranchId = typeof BranchId.Type

/** The root branch of a run. */
export const rootBranch = (run: RunId): BranchId => BranchId.make(`${run}/${rootForkId}`)

/** The assignee of an interrupt that a run answers by its end. Texts from `from` to below `below` are such, and no others. */
export const runAssignee = {
  of: (run: RunId): string => `run:${run}`,
  /** The run that an assignee stands for; `undefined` if it is another kind of assignee. */
  runOf: (assignee: string): RunId | undefined =>
    assignee.startsWith("run:") ? RunId.make(assignee.slice(4), { disableValidation: true }) : undefined,
  from: "run:",
  below: "run;"
} as const

/** The branch that a fork of `run` named `fork` creates. */
export const forkBranch = (run: RunId, fork: ForkId): BranchId => BranchId.make(`${run}/${fork}`)

/** The run that a branch belongs to. */
export const runOf = (branch: BranchId): RunId => RunId.make(branch.slice(0, branch.lastIndexOf("/")))

/** Names one journaled call of a node: node name, `#`, ordinal of that name in its scope. */
export const StepKey = Schema.String.pipe(Schema.brand("StepKey"))
export type StepKey = typeof StepKey.Type

/** Names one interrupt of a branch: interrupt name, `#`, ordinal of that name. */
export const InterruptId = Schema.String.pipe(
  Schema.filter((text) => idProblem(text) ?? true, { identifier: "InterruptId" }),
  Schema.brand("InterruptId")
)
export type InterruptId = typeof InterruptId.Type

/** Names one durable timer of a branch. */
export const TimerId = Schema.String.pipe(Schema.brand("TimerId"))
export type TimerId = typeof TimerId.Type

/** One attempt to answer an interrupt, chosen by whoever delivers it (a request id, a button's nonce). */
export const DeliveryId = id("DeliveryId")
export type DeliveryId = typeof DeliveryId.Type

/** One signal or update, chosen by whoever sends it: sent again under the same id it is the same message. */
export const MessageId = id("MessageId")
export type MessageId = typeof MessageId.Type

/** The most UTF-16 code units a definition's name may have: a key made of it and an ordinal is an identifier still. */
export const maxNameLength = 200

/** The name of a definition: workflow, node, side effect or interrupt. It may not contain `#` or `|`, which end names in keys. */
export const DefinitionName = id("DefinitionName", (text) =>
  text.length > maxNameLength
    ? `is longer than ${maxNameLength} characters (${text.length})`
    : /[#|]/.test(text)
      ? "contains # or |, which separate names from ordinals"
      : undefined
)
export type DefinitionName = typeof DefinitionName.Type

/** The version of a workflow definition. Workers claim only versions that they know. */
export const WorkflowVersion = id("WorkflowVersion")
export type WorkflowVersion = typeof WorkflowVersion.Type

/**
 * Names one firing of a side effect: branch of origin, step key, position within the step, and the try when an
 * earlier try at that position is closed. It stays the same on every replay and worker (EO).
 */
export const EffectKey = Schema.String.pipe(Schema.brand("EffectKey"))
export type EffectKey = typeof EffectKey.Type

/**
 * Builds an {@link EffectKey}. `position` is the call's ordinal within the step, or the caller's explicit key. EO: no two
 * firings have one key, so what separates the parts is escaped where a part contains it.
 */
export const effectKey = (branch: BranchId, step: StepKey, position: string, attemptAt: number): EffectKey =>
  EffectKey.make(`${keyPart(branch)}|${keyPart(step)}|${keyPart(position)}${attemptAt === 0 ? "" : `~${attemptAt}`}`)

const keyPart = (text: string): string =>
  /[|~%]/.test(text) ? text.replaceAll("%", "%25").replaceAll("|", "%7C").replaceAll("~", "%7E") : text

/** A position in a history. Addressable and immutable. */
export const Checkpoint = Schema.Struct({ branch: BranchId, seq: Schema.NonNegativeInt })
export type Checkpoint = typeof Checkpoint.Type
