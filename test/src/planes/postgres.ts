/** A driver of this plane on the PostgreSQL server that the environment names; each store is a database of its own. */
import { serve } from "@fermata/contract/harness"
import { serverUrl } from "../Postgres.js"
import * as FermataPlane from "./FermataPlane.js"
import { postgres } from "./Stores.js"

serve(FermataPlane.make(postgres(serverUrl())))
