/**
 * A driver of a plane in TypeScript or JavaScript: say what your plane can do, and how each operation is done with it.
 * Compile it, then: npx fermata-contract run --plane "node driver.js"
 *
 * Here each operation says what it must do. An operation whose capability is `false` may stay as it is.
 */
import {
  Declined,
  type Hello,
  Outside,
  type Plane,
  protocolVersion,
  serve,
  type Session
} from "@fermata/contract/harness"
import { Effect } from "effect"

const hello: Hello = {
  protocol: protocolVersion,
  plane: "my plane",
  version: "1",
  capabilities: {
    // Name the strictest first: "once" where nobody may fire an effect twice, "repeatable" where anybody may.
    deliveries: ["repeatable"],
    features: ["gate"],
    durable: true,
    processes: "one",
    deliveryIds: false,
    fork: false,
    intents: false,
    schemas: false,
    cancel: false,
    settle: false,
    history: false,
    branches: false,
    announcesCommits: false,
    copy: false,
    takeover: false,
    damage: false,
    service: null
  },
  // What your documentation says decides between "violates" and "documented divergence".
  documentation: []
}

const todo = (what: string) => Effect.fail(new Declined({ code: "unsupported", message: `${what} is not there yet` }))

const plane: Plane = {
  hello,
  open: (place) =>
    Effect.gen(function* () {
      // In each node call outside.body(run, step), and outside.fire(…) for each of its effects.
      const outside = Outside.at(place)
      yield* outside.reach("opened")
      const session: Session = {
        start: () => todo("start: run `workflow` as `run`, durably, and name its branch"),
        inspect: () => todo("inspect: say how the branch stands"),
        rest: () => todo("rest: wait until the branch is over or does not go on by itself, then inspect"),
        resume: () => todo("resume: deliver the answer (pass `line` first, if there is one)"),
        cancel: () => todo("cancel"),
        settle: () => todo("settle"),
        history: () => todo("history"),
        branches: () => todo("branches"),
        committed: () => todo("committed"),
        damage: () => todo("damage"),
        idle: () => todo("idle")
      }
      return session
    }),
  copy: () => todo("copy"),
  drop: () => Effect.void
}

serve(plane)
