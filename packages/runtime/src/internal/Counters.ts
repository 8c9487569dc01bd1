/**
 * The counters that are told apart by a tag. Each value of the tag has a metric of its own here: adding a tag at each
 * update looks the metric up anew, which costs several times what counting does.
 */
import { Metric, MetricKey } from "effect"

/** Counters of one name, by the value of one tag. */
export class TaggedCounter<Value extends string> {
  private readonly counters = new Map<Value, Metric.Metric.Counter<number>>()
  /** The counter as it is without the tag; `Metric.tagged` of it reads what is counted here. */
  readonly metric: Metric.Metric.Counter<number>
  private readonly key: MetricKey.MetricKey.Counter<number>

  constructor(
    name: string,
    description: string,
    private readonly tag: string
  ) {
    this.key = MetricKey.counter(name, { description, incremental: true })
    this.metric = Metric.fromMetricKey(this.key)
  }

  count(value: Value): void {
    let counter = this.counters.get(value)
    if (counter === undefined) {
      counter = Metric.fromMetricKey(MetricKey.tagged(this.key, this.tag, value))
      this.counters.set(value, counter)
    }
    counter.unsafeUpdate(1, [])
  }
}

export const stepCounter = new TaggedCounter<string>("fermata_steps", "Steps that ended", "outcome")
export const restCounter = new TaggedCounter<string>("fermata_rests", "Branches let go of", "rest")
