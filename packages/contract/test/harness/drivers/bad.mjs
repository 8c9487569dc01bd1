// Drivers that misbehave, each in a way of its own: `node bad.mjs HOW`.
import { createInterface } from "node:readline"

const how = process.argv[2]
const capabilities = {
  deliveries: ["keyed"],
  features: ["gate"],
  durable: true,
  processes: "many",
  deliveryIds: true,
  fork: how === "liar",
  intents: how === "liar",
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
}
const say = (line) => process.stdout.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`)
const waiting = {
  branch: "b",
  status: "waiting",
  waitingFor: [{ kind: "answer", name: "ask" }],
  pending: [{ interrupt: "ask", gate: "ask" }]
}

createInterface({ input: process.stdin }).on("line", (text) => {
  const { id, op } = JSON.parse(text)
  const reply = (reply) => say({ id, reply })
  switch (op) {
    case "hello":
      if (how === "dies-at-hello") process.exit(3)
      if (how === "speaks-another-protocol")
        return reply({ protocol: 99, plane: "bad", version: "1", capabilities, documentation: [] })
      if (how === "hello-is-nonsense") return reply({ plane: "bad" })
      return reply({ protocol: 1, plane: "bad", version: "1", capabilities, documentation: [] })
    case "open":
    case "drop":
      return reply({})
    case "start":
      switch (how) {
        case "dies":
          process.stderr.write("out of luck")
          return process.exit(3)
        case "is-killed":
          return process.kill(process.pid, "SIGKILL")
        case "prints":
          return say("Starting up ...")
        case "hangs":
          return
        case "answers-another":
          return say({ id: id + 1000, reply: {} })
        case "reply-is-nonsense":
          return reply({ branch: 7 })
        default:
          return reply({ branch: "b" })
      }
    case "rest":
    case "inspect":
      return reply(waiting)
    default:
      return say({ id, error: { code: "unsupported", message: `${op} is not there` } })
  }
})
