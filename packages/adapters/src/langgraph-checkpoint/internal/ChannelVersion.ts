/** Versions of channels: they rise along a branch, and no two branches make the same one (FD). */
import { randomBytes } from "node:crypto"

// A letter first, so that it sorts above the plain numbers of savers that counted.
const form = /^v(\d{12})\./

/** The version after this one. It compares above it, and above all that the counter passed. */
export const nextVersion = (current: string | number | undefined, seed: string): string => {
  const counted =
    current === undefined ? 0 : typeof current === "number" ? current : Number(form.exec(current)?.[1] ?? current)
  const next = Number.isFinite(counted) ? Math.floor(counted) + 1 : 1
  return `v${String(next).padStart(12, "0")}.${seed}${randomBytes(4).toString("hex")}`
}

/** True of a version that {@link nextVersion} made. */
export const isOwnVersion = (version: string | number): boolean => typeof version === "string" && form.test(version)
