/** `npm start -w @fermata/example-ports [-- approval|supervisor|review [before|after]]`: runs one port, or all of them. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const ports = ["approval", "supervisor", "review"]
const versions = ["before", "after"]
const [port, version] = process.argv.slice(2)

const folder = mkdtempSync(join(tmpdir(), "fermata-ports-"))
process.env["FERMATA_DATABASE"] ??= join(folder, "ports.db")
try {
  if (!ports.includes(port ?? "approval") || !versions.includes(version ?? "after")) {
    process.stderr.write(`usage: main.js [${ports.join("|")} [${versions.join("|")}]]\n`)
    process.exitCode = 2
  } else
    for (const name of port === undefined ? ports : [port]) {
      for (const when of version === undefined ? versions : [version]) {
        console.log(`== ${name}, ${when}`)
        const { main } = (await import(`./${name}/${when}.js`)) as { readonly main: () => Promise<void> }
        await main()
      }
    }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
