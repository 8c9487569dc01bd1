/** Mutants of the decisions about effects: may it fire, and what if nobody knows whether it did. */
import { mutantsOf } from "./Mutant.js"

const firings = mutantsOf("admitFiring", [
  [`if (recorded.state === "voided") continue`, ``, "LV: an effect that never happened is never tried again"],
  [
    `if (recorded.state === "failed" && recorded.attempt < request.attempt) continue`,
    `if (recorded.state === "failed") continue`,
    "EO: a recorded failure fires again in the same attempt"
  ],
  [
    `if (recorded.state === "failed" && recorded.attempt < request.attempt) continue`,
    `if (recorded.attempt < request.attempt) continue`,
    "EO: an earlier attempt's success fires again"
  ],
  [
    `recorded.attempt < request.attempt`,
    `recorded.attempt <= request.attempt`,
    "PC: a replayed attempt fires again what it recorded as failed"
  ],
  [
    `if (recorded.state === "failed" && recorded.attempt < request.attempt) continue`,
    ``,
    "LV: a failure is served to every later attempt"
  ],
  [
    `if (recorded.effect !== request.effect) return { _tag: "InputChanged", key: recorded.key, differs: "effect" }`,
    ``,
    "RD: one effect is served another one's outcome"
  ],
  [
    `if (recorded.input !== request.input) return { _tag: "InputChanged", key: recorded.key, differs: "input" }`,
    ``,
    "EO: one key goes out with two inputs"
  ],
  [
    `if (recorded.input !== request.input) return`,
    `if (recorded.state === "intended" && recorded.input !== request.input) return`,
    "PC: changed code is served the outcome of what it did not ask for"
  ],
  [`if (recorded.delivery !== request.delivery) {`, `if (false) {`, "EO: a deployment loosens what an intent promised"],
  [
    `return { _tag: "Refused", key: recorded.key }`,
    `return { _tag: "Serve", key: recorded.key }`,
    "CV: a refused value is served"
  ],
  [`return { _tag: "Refused", key: recorded.key }`, `continue`, "EO: an effect that happened fires again"],
  [`return { _tag: "InDoubt", key: recorded.key }`, `continue`, "EO: an effect in doubt fires again under another key"],
  [
    `case "succeeded":
      case "failed":
        return`,
    `case "failed":
        continue
      case "succeeded":
        return`,
    "EO: a failure that was served once fires on replay"
  ],
  [
    `Math.max(...tries.map((t) => t.try)) + 1`,
    `Math.max(...tries.map((t) => t.try))`,
    "EO: a closed key is used again"
  ],
  [`tries.length === 0 ? 0 :`, `tries.length <= 1 ? 0 :`, "EO: the second try has the first one's key"]
])

const recoveries = mutantsOf("recoverEffect", [
  [
    `    case "keyed":
      return { _tag: "FireAgain" }
    case "once":`,
    `      return { _tag: "FireAgain" }
    case "keyed":
    case "once":`,
    "LV: a keyed effect in doubt waits for a person"
  ],
  [
    `    case "transactional":
    case "repeatable":`,
    `    case "transactional":
      return { _tag: "AwaitSettlement" }
    case "repeatable":`,
    "LV: a transaction that did not commit waits for a person"
  ],
  [`facts.firedBy !== "dead"`, `facts.firedBy === "dead"`, "EO: the living are not waited for"],
  [`return { _tag: "Adopt" }`, `return { _tag: "AwaitSettlement" }`, "LV: what the outside reports is not believed"],
  [`return { _tag: "Adopt" }`, `return { _tag: "Void" }`, "EO: what happened is recorded as not having happened"],
  [`return { _tag: "Void" }`, `return { _tag: "FireAgain" }`, "EO: a once effect fires twice under one key"],
  [
    `        case "Unknown":
        case "unavailable":
          return { _tag: "AwaitSettlement" }`,
    `        case "Unknown":
          return { _tag: "Void" }
        case "unavailable":
          return { _tag: "AwaitSettlement" }`,
    `EO: "I see nothing" is taken for "it never will"`
  ],
  [
    `        case "Unknown":
        case "unavailable":
          return { _tag: "AwaitSettlement" }`,
    `        case "unavailable":
          return { _tag: "FireAgain" }
        case "Unknown":
          return { _tag: "AwaitSettlement" }`,
    "EO: without anybody to ask, a once effect fires again"
  ],
  [
    `if (firedByLiving && !Number.isFinite(facts.overAt)) return { _tag: "AwaitSettlement" }`,
    ``,
    "LV: a branch waits for a time that never comes"
  ],
  [
    `if (firedByLiving && !Number.isFinite(facts.overAt)) return`,
    `if (!Number.isFinite(facts.overAt)) return`,
    "a person is asked although the worker is dead and the outside can be asked"
  ],
  [`facts.now < facts.overAt`, `facts.now <= facts.overAt`, "LV: at the time that it waited for it waits again"],
  [`facts.now < facts.overAt`, `facts.now < facts.overAt - 1`, "EO: a zombie's firing is missed"],
  [`return firedByLiving && facts.now < facts.overAt`, `return facts.now < facts.overAt`, "the dead are waited for"],
  [`{ _tag: "WaitUntil", at: facts.overAt }`, `{ _tag: "AskOutside" }`, "EO: the outside is asked while a zombie fires"]
])

const failures = mutantsOf("afterFailure", [
  [`tries < keyedTries`, `tries <= keyedTries`, "a person is asked one firing late"],
  [`tries < keyedTries`, `true`, "LV: a handler that always dies is fired for ever, and nobody is asked"],
  [`4 ** (tries - 1)`, `4 ** tries`, "the first pause is four times as long as it says"],
  [`elapsed < fireWithin`, `elapsed <= fireWithin`, "EO: a handler is entered when its successor looks away"],
  [`elapsed < fireWithin`, `!(elapsed >= fireWithin)`, "EO: a clock that cannot tell lets a handler be entered"],
  [`attempt <= retries`, `attempt < retries`, "the last attempt that the policy allows is not made"],
  [`attempt <= retries`, `attempt <= retries + 1`, "one attempt more than the policy allows"],
  [`!withdrawn && !late`, `!late`, "a step that nobody waits for is attempted again"],
  [`!late && passing`, `passing`, "a step is attempted again when its time is over"],
  [`&& passing &&`, `&&`, "an error that is final is retried"],
  [`retries !== undefined && attempt <= retries`, `attempt <= (retries ?? 1)`, "a node without a policy is retried"]
])

/** Mutants of what is decided for effects. */
export const effectMutants = [...firings, ...recoveries, ...failures]
