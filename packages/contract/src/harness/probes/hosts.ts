/** CO across hosts: two network namespaces, a service between them, and a cut. */
import { Inapplicable } from "../Stand.js"
import type { Probe } from "../Probe.js"

export const acrossHosts: Probe["run"] = (stand) =>
  new Inapplicable({
    verdict: "not applicable",
    reason:
      stand.hello.capabilities.service === null
        ? "the plane's processes share no service that other hosts could reach"
        : "not built yet"
  })
