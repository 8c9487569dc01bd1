/** Vitest's global setup: one PostgreSQL server for the whole test run, unless the environment names one. */
import { startPostgres } from "../src/PostgresServer.js"

export default async (): Promise<(() => Promise<void>) | undefined> => {
  if (process.env["FERMATA_TEST_POSTGRES"]) return undefined
  const server = await startPostgres()
  process.env["FERMATA_TEST_POSTGRES"] = server.url
  return server.stop
}
