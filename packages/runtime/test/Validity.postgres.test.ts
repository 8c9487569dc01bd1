import { Plane } from "@fermata/runtime"
import { freshPostgres } from "@fermata/test/Postgres"
import { Effect, Layer } from "effect"
import { validitySuite } from "./ValiditySuite.js"

validitySuite("PostgreSQL", Layer.unwrapScoped(Effect.map(freshPostgres, (url) => Plane.postgres({ url }))))
