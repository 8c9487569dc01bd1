/** What `--plane` may be: a built-in plane by name, or a command. */
import { accessSync, constants, statSync } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { childProcess, type Command } from "../harness/ChildDriver.js"
import { type Driver, inProcess, type Limits } from "../harness/Driver.js"
import { allFaults } from "../harness/reference/Fault.js"
import * as ReferencePlane from "../harness/reference/ReferencePlane.js"

/** The built-in planes: the reference plane, and the same with one fault each. */
export const knownPlanes: ReadonlyArray<string> = ["reference", ...allFaults.map((fault) => `reference+${fault}`)]

/** The driver of a plane; `undefined` if it is neither a built-in one nor a command that can be started. */
export const planeOf = (plane: string, limits: Limits): Driver | undefined => {
  const [base, ...switched] = plane.split("+")
  const faults = allFaults.filter((fault) => switched.includes(fault))
  if (base === "reference" && faults.length === switched.length)
    return inProcess(ReferencePlane.make(...faults), limits)
  const command = wordsOf(plane)
  return command === undefined || !isProgram(command[0]) ? undefined : childProcess(command, { ...limits, name: plane })
}

/** The words of a command, with quotes as a shell has them, and without anything else that a shell does. */
export const wordsOf = (text: string): Command | undefined => {
  const words = [...text.matchAll(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g)].map(([word]) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, "$1$2")
  )
  const [program, ...args] = words
  return program === undefined ? undefined : [program, ...args]
}

const isProgram = (program: string): boolean => {
  const places = program.includes("/")
    ? [resolve(program)]
    : (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, program))
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK)
      return statSync(place).isFile()
    } catch {
      return false
    }
  })
}
