/**
 * The child's side: what a script under `test/src` calls to be stopped, raced and talked to. See `Child.ts` for the
 * test's side.
 *
 * A script started by hand, without a test, passes every point and reports nothing.
 */
import { Schema } from "effect"
import { openSync, readSync, writeSync } from "node:fs"
import { Socket } from "node:net"
import { environmentVariable, Letter, lettersFd, lines, Orders, type Report, reportsFd } from "./Wire.js"

const given = process.env[environmentVariable]
const orders: Orders | undefined = given === undefined ? undefined : Schema.decodeSync(Schema.parseJson(Orders))(given)
// A process that this one starts is not the test's child.
delete process.env[environmentVariable]

const stops = new Set(orders?.stopAt)
const passings = new Map<string, number>()

/**
 * Marks a point of the script's course. If the test asked for it, the whole process stands still here (its timers and
 * its lease renewals, too) until the test releases it or kills it.
 */
export const pass = (point: string): void => {
  const stop = passing(point)
  if (stop === undefined) return
  report({ _tag: "Stopped", point, n: stop, held: false })
  // The end of the pipe means that the test is gone.
  if (readSync(reportsFd, Buffer.alloc(1)) === 0) process.kill(process.pid, "SIGKILL")
}

/** Like `pass`, but only the caller waits; the rest of the process goes on. */
export const hold = (point: string): Promise<void> => {
  const stop = passing(point)
  if (stop === undefined) return Promise.resolve()
  return new Promise((resolve) => {
    held.set(`${point}#${stop}`, resolve)
    stayWhileWaiting()
    report({ _tag: "Stopped", point, n: stop, held: true })
  })
}

/**
 * Waits at the start line until all racers are there, then goes on at the same moment as they. Blocks the process. The
 * nth call waits for the nth start; a racer that sat some out says which one it waits for, counted from 0.
 */
export const race = (start = starts): void => {
  if (orders?.race === null || orders?.race === undefined) return
  startLine ??= openSync(orders.race, "r")
  const byte = Buffer.alloc(1)
  const pause = new Int32Array(new SharedArrayBuffer(4))
  report({ _tag: "Ready" })
  while (readSync(startLine, byte, 0, 1, start) === 0) {
    // The test is gone.
    if (process.ppid !== parent) process.kill(process.pid, "SIGKILL")
    // Microseconds: with more racers than cores, pure spinning would start them one after the other.
    Atomics.wait(pause, 0, 0, 0.02)
  }
  starts = start + 1
}

/** Sends a message to the test. It has left the process when this returns. */
export const tell = (message: unknown): void => report({ _tag: "Told", message })

/** The next message from the test, in order. */
export const receive = <A, I>(schema: Schema.Schema<A, I>): Promise<A> =>
  new Promise<unknown>((resolve) => {
    const message = messages.shift()
    if (message !== undefined) resolve(message.value)
    else receivers.push(resolve)
    stayWhileWaiting()
  }).then(Schema.decodeUnknownSync(schema))

/** What the test gave the script to start with. */
export const input = <A, I>(schema: Schema.Schema<A, I>): A => Schema.decodeUnknownSync(schema)(orders?.input)

let startLine: number | undefined
let starts = 0
const held = new Map<string, () => void>()
const messages: Array<{ readonly value: unknown }> = []
const receivers: Array<(message: unknown) => void> = []

/** The ordinal of this passing if it stops. */
const passing = (point: string): number | undefined => {
  if (orders === undefined) return undefined
  const n = (passings.get(point) ?? 0) + 1
  passings.set(point, n)
  if (stops.has(point) || stops.has(`${point}#${n}`)) return n
  if (orders.trace) report({ _tag: "Passed", point, n })
  return undefined
}

const report = (what: Report): void => {
  if (orders === undefined) return
  const bytes = Buffer.from(`${JSON.stringify(what)}\n`)
  for (let sent = 0; sent < bytes.length;) sent += writeSync(reportsFd, bytes, sent)
}

const parent = process.ppid
const letters = orders === undefined ? undefined : new Socket({ fd: lettersFd, readable: true, writable: false })

/** A script that has nothing left to do ends; one that waits for the test does not. */
const stayWhileWaiting = (): void => {
  if (held.size + receivers.length > 0) letters?.ref()
  else letters?.unref()
}

const open = (letter: Letter): void => {
  if (letter._tag === "Release") {
    const name = `${letter.point}#${letter.n}`
    held.get(name)?.()
    held.delete(name)
  } else {
    const receiver = receivers.shift()
    if (receiver !== undefined) receiver(letter.message)
    else messages.push({ value: letter.message })
  }
  stayWhileWaiting()
}

if (letters !== undefined) {
  const decode = Schema.decodeSync(Schema.parseJson(Letter))
  letters.on(
    "data",
    lines((line) => open(decode(line)))
  )
  // The test is gone, however it went: no child outlives it.
  for (const event of ["close", "error"]) letters.on(event, () => process.kill(process.pid, "SIGKILL"))
  letters.unref()
  report({ _tag: "Hello", pid: process.pid })
}
