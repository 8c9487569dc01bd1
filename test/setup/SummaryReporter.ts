/** Ends a test run with one plain line: `N passed, N failed`, and `, N skipped` if any were. */
import type { Reporter, SerializedError, TestModule } from "vitest/node"

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, errors: ReadonlyArray<SerializedError>): void {
    let passed = 0
    let skipped = 0
    // A file that cannot be loaded and an error outside every test have failed, too.
    let failed = errors.length
    for (const module of modules) {
      if (module.state() === "failed" && module.errors().length > 0) failed++
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === "passed") passed++
        else if (state === "failed") failed++
        else skipped++
      }
    }
    const summary = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`
    // The other reporters write their part of the end first.
    process.once("exit", () => process.stdout.write(`${summary}\n`))
  }
}
