import { Fermata } from "@fermata/adapters/langgraph"
import { graphSuite } from "./graphSuite.js"

graphSuite("a plane in memory", () => Promise.resolve(Fermata.memory()))
