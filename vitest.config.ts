import { availableParallelism } from "node:os"
import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"

/**
 * One configuration for every test of the workspace. Tests run on the packages' sources (the `@fermata/source`
 * condition), child processes too: the global setup makes a file of each program that they start.
 *
 * PostgreSQL: the global setup starts one server and names it in FERMATA_TEST_POSTGRES, unless that is set already. A
 * test takes a database of its own by `freshPostgres` of `@fermata/test/Postgres`, which works in every package.
 */
const conditions = ["@fermata/source", ...defaultServerConditions]

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    exclude: ["**/node_modules/**", "**/dist/**"],
    projects: [
      {
        extends: true,
        test: {
          name: "packages",
          include: ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "bench/test/**/*.test.ts"],
          exclude: [
            "**/node_modules/**",
            "**/dist/**",
            "packages/adapters/test/langgraph-checkpoint/validation.*.test.ts"
          ],
          sequence: { groupOrder: 0 }
        }
      },
      {
        // LangChain's own suite for checkpointers, which finds `describe` and `it` as globals. It is a package that
        // imports vitest, so it is run through vitest's module loader as our tests are.
        extends: true,
        test: {
          name: "langgraph-validation",
          include: ["packages/adapters/test/langgraph-checkpoint/validation.*.test.ts"],
          globals: true,
          server: { deps: { inline: [/checkpoint-validation/] } },
          sequence: { groupOrder: 0 }
        }
      },
      {
        // Crashes, races and zombies start many processes and keep short leases: one file at a time, after all else, so
        // that a starved machine does not decide.
        extends: true,
        test: {
          name: "processes",
          include: ["test/**/*.test.ts"],
          poolOptions: { forks: { singleFork: true } },
          sequence: { groupOrder: 1 }
        }
      }
    ],
    globalSetup: ["./test/setup/postgres.ts", "./test/setup/programs.ts"],
    reporters: ["default", "./test/setup/SummaryReporter.ts"],
    pool: "forks",
    poolOptions: { forks: { minForks: 1, maxForks: Math.max(2, availableParallelism()) } },
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})
