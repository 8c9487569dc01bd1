/** A driver of this plane on SQLite files, for `fermata-contract run --plane "node test/dist/planes/sqlite.js"`. */
import { serve } from "@fermata/contract/harness"
import * as FermataPlane from "./FermataPlane.js"
import { sqlite } from "./Stores.js"

serve(FermataPlane.make(sqlite))
