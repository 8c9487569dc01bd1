/** The conformance harness: put a plane under the resume contract, in this process or by a child process. */
export * from "./CanonicalWorkflow.js"
export * as Driver from "./Driver.js"
export * as Outside from "./Outside.js"
export * from "./Plane.js"
export { allFaults, Fault, faults } from "./reference/Fault.js"
export * as ReferencePlane from "./reference/ReferencePlane.js"
