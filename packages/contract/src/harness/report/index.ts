/** The forms of a report. */
export { html } from "./html.js"
export { junit } from "./junit.js"
export { markdown } from "./markdown.js"
export { table } from "./table.js"
