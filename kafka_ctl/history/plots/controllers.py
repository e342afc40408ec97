"""What controllers do, and how long it takes them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.history.plots.picture import SERIES, Picture, legend, nothing, picture, readable

STAGES = {
    "taking_over_ms": "taking over",
    "reading_ms": "reading the cluster",
    "replica_ms": "replica state machine",
    "partition_ms": "partition state machine",
}


def failover_time(answer: DataFrame) -> Picture:
    """How long new controllers took, by the number of partitions and by stages: medians, after the election.

    `answer` comes from `questions.failover_time`. A bar stands for elections with up to so many partitions and more
    than half as many; elections in empty clusters are left out.
    """
    size = fn.ceil(fn.log2(fn.greatest(fn.col("partitions"), fn.lit(1)))).alias("size")
    medians = (fn.coalesce(fn.median(name), fn.lit(0.0)).alias(name) for name in STAGES)
    grouped = answer.where("failover_ms IS NOT NULL AND partitions > 0").groupBy(size)
    rows = (
        grouped.agg(fn.count("*").alias("n"), fn.median("failover_ms").alias("ms"), *medians).orderBy("size").collect()
    )
    title = "How long a new controller takes, by stages"
    if not rows:
        return nothing(title)
    figure, axes = picture(title, "partitions (elections)", "time after the election")
    names = [f"up to {2 ** row['size']:,}\n({row.n:,})" for row in rows]
    below = [0.0] * len(rows)
    for (name, label), colour in zip(STAGES.items(), SERIES, strict=False):
        axes.bar(names, [row[name] for row in rows], bottom=below, color=colour, label=label, edgecolor="white")
        below = [low + row[name] for low, row in zip(below, rows, strict=True)]
    axes.yaxis.set_major_formatter(lambda ms, _: readable(ms) if ms else "0")
    axes.grid(False, axis="x")
    legend(axes, "stage (median)")
    texts = (f"up to {2 ** row['size']:,} partitions {readable(row.ms)} ({row.n} elections)" for row in rows)
    figure.alt = f"{title}. Medians: {'; '.join(texts)}."
    return figure


def request_amplification(answer: DataFrame) -> Picture:
    """How many requests, and partition states in them, one event of the controller makes, on average.

    `answer` comes from `questions.request_amplification`. Events that say nothing are left out.
    """
    total = answer.groupBy("event").agg(*(fn.sum(name).alias(name) for name in ("events", "requests", "states")))
    rows = total.where("requests + states > 0").orderBy(fn.col("states") / fn.col("events"), "event").collect()
    title = "What one event makes a controller say"
    if not rows:
        return nothing(title)
    figure, axes = picture(title, "on average, for each event", "", 1.6 + 0.4 * len(rows))
    for name, colour, up in (("requests", SERIES[1], 0.2), ("states", SERIES[0], -0.2)):
        label = "requests" if name == "requests" else "partition states in them"
        places = [at + up for at in range(len(rows))]
        axes.barh(places, [row[name] / row.events for row in rows], height=0.38, color=colour, label=label)
    axes.set_yticks(range(len(rows)), [f"{row.event} ({row.events:,})" for row in rows])
    axes.grid(False, axis="y")
    legend(axes)
    texts = (f"{r.event} {r.requests / r.events:.1f} requests and {r.states / r.events:.1f} states" for r in rows[::-1])
    figure.alt = f"{title}, on average: {'; '.join(texts)}."
    return figure
