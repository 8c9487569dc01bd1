import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"

const file = resolve(dirname(fileURLToPath(import.meta.url)), "illTyped.ts")
const root = resolve(dirname(file), "../../..")
const marker = /^\s*\/\/ @ts-expect-error (.*)$/

/** The errors of the file without its markers: line of the marker before the statement, and the whole message. */
const errors = (source: string): ReadonlyArray<{ readonly marker: number; readonly message: string }> => {
  const lines = source.split("\n")
  const markers = lines.flatMap((line, index) => (marker.test(line) ? [index] : []))
  const bare = lines.map((line) => line.replace("@ts-expect-error", "")).join("\n")
  const config = ts.getParsedCommandLineOfConfigFile(
    resolve(root, "tsconfig.tests.json"),
    {},
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: (diagnostic) => assert.fail(String(diagnostic.messageText))
    }
  )
  assert.isDefined(config)
  const host = ts.createCompilerHost(config.options)
  const read = host.getSourceFile.bind(host)
  host.getSourceFile = (name, version, ...more) =>
    name === file ? ts.createSourceFile(name, bare, version) : read(name, version, ...more)
  const program = ts.createProgram([file], config.options, host)
  const target = program.getSourceFile(file)
  assert.isDefined(target)
  return ts.getPreEmitDiagnostics(program, target).map((diagnostic) => {
    const { line } = ts.getLineAndCharacterOfPosition(target, diagnostic.start ?? 0)
    return {
      marker: markers.findLast((at) => at < line) ?? -1,
      // Inside a string literal type quotes are escaped.
      message: ts.flattenDiagnosticMessageText(diagnostic.messageText, " ").replaceAll('\\"', '"')
    }
  })
}

describe("programs that break a rule do not compile, and the message says which", () => {
  const source = readFileSync(file, "utf8")
  const found = errors(source)
  const expected = source.split("\n").flatMap((line, index) => {
    const text = marker.exec(line)?.[1]
    return text === undefined ? [] : [{ line: index, text }]
  })

  for (const { line, text } of expected) {
    it(`illTyped.ts:${line + 1}: ${text}`, () => {
      const messages = found.filter((error) => error.marker === line).map(({ message }) => message)
      assert.isTrue(
        messages.some((message) => message.includes(text)),
        `expected a message with\n${text}\nfound\n${messages.join("\n") || "none"}`
      )
    })
  }

  it("reports nothing else", () => {
    const markers = new Set(expected.map(({ line }) => line))
    assert.deepStrictEqual(
      found.filter((error) => !markers.has(error.marker)),
      []
    )
  })
})
