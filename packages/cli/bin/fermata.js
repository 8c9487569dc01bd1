#!/usr/bin/env node
// A file of its own, so that installing a workspace that is not built yet can link it.
import "../dist/main.js"
