/** What can be known of processes on this host; for adapters that keep holds of their own. */
export { self, sight } from "./internal/ProcessTable.js"
