import { FermataSaver } from "@fermata/adapters/langgraph-checkpoint"
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation"

const suite = {
  checkpointerName: "FermataSaver on SQLite",
  createCheckpointer: () => FermataSaver.sqlite({ filename: ":memory:" }),
  destroyCheckpointer: (saver: FermataSaver) => saver.close()
}

validate(suite)
deltaChannelHistoryTests(suite)
