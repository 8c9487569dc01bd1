import { readdirSync } from "node:fs"
import { defineConfig } from "vitepress"

const docs = new URL("../", import.meta.url)
const pages = new Set(readdirSync(docs).filter((file) => file.endsWith(".md")))

/** Pages in the order in which they are read. One that a group names and that is not there is a mistake. */
const group = (text: string, items: ReadonlyArray<readonly [title: string, page: string]>) => ({
  text,
  items: items.map(([title, page]) => {
    if (!pages.delete(`${page}.md`)) throw new Error(`docs/${page}.md is in the sidebar and does not exist`)
    return { text: title, link: `/${page}` }
  })
})

const sidebar = [
  group("Begin", [
    ["Quick start", "quick-start"],
    ["Concepts", "concepts"],
    ["Guarantees", "guarantees"],
    ["Capabilities and their tests", "capabilities"]
  ]),
  group("Write workflows", [
    ["Steps: retries, time limits and keys", "steps"],
    ["Signals, queries and updates", "signals"],
    ["Human tasks", "human-tasks"],
    ["Loops", "loops"],
    ["Child workflows", "children"],
    ["Sagas and cancellation", "sagas"],
    ["Streaming out", "streaming"],
    ["Queues", "queues"],
    ["Schedules", "schedules"],
    ["Language models", "models"],
    ["Changing workflows", "versions"],
    ["With promises", "promise"]
  ]),
  group("Run them", [
    ["The command line", "command-line"],
    ["Operations", "operations"],
    ["Observability", "observability"],
    ["Finding and keeping", "finding"],
    ["Compression and encryption", "payloads"]
  ]),
  group("Coming from", [
    ["Temporal", "from-temporal"],
    ["DBOS", "from-dbos"],
    ["Stock LangGraph.js", "langgraph-checkpoint"],
    ["LangGraph.js", "from-langgraph"]
  ]),
  group("The contract", [
    ["The resume contract", "contract"],
    ["A driver for your plane", "contract-driver"]
  ])
]
pages.delete("index.md")
if (pages.size > 0) throw new Error(`Not in the sidebar: ${[...pages].join(", ")}`)

export default defineConfig({
  title: "Fermata",
  description: "Durable execution for TypeScript, built on Effect",
  srcExclude: ["**/node_modules/**"],
  themeConfig: {
    nav: [
      { text: "Guide", link: "/quick-start" },
      { text: "API", link: "/api/" }
    ],
    sidebar: { "/api/": [{ text: "API", link: "/api/" }], "/": sidebar },
    search: { provider: "local" },
    outline: "deep"
  },
  markdown: {
    config: (md) => {
      // Links into the repository are for readers of the repository: the site shows their text.
      md.core.ruler.push("repository-links", ({ tokens }) => {
        for (const { children } of tokens) {
          let outside = false
          for (const token of children ?? []) {
            if (token.type === "link_open") {
              outside = token.attrGet("href")?.startsWith("../") === true
              if (outside) token.hidden = true
            } else if (token.type === "link_close" && outside) {
              token.hidden = true
              outside = false
            }
          }
        }
      })
      const render = md.renderer.renderToken.bind(md.renderer)
      md.renderer.renderToken = (tokens, index, options) =>
        tokens[index]?.hidden === true ? "" : render(tokens, index, options)
    }
  },
  ignoreDeadLinks: [/^(\.\/)?\.\.\//]
})
