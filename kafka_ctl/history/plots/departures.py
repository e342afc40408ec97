"""What it costs when brokers leave."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.history.plots.picture import LOOKS, OTHERS, SERIES, Picture, clock, nothing, picture, readable, times

MOST = 25
"""Sessions in one picture."""


def shutdown_vs_failure(answer: DataFrame) -> Picture:
    """By cause: how often a departure left partitions without a leader, and for how long altogether.

    `answer` comes from `questions.shutdown_vs_failure`. On the right, departures that hurt: a line from the 10th to the
    90th percentile of their summed outages, and a dot for the median.
    """
    rows = (
        answer.groupBy("cause")
        .agg(
            fn.count("*").alias("departures"),
            fn.count_if(fn.col("leaderless") > 0).alias("hurt"),
            fn.percentile_approx(fn.when(fn.col("outage_ms") > 0, fn.col("outage_ms")), [0.1, 0.5, 0.9]).alias("ms"),
        )
        .orderBy("cause")
        .collect()
    )
    title = "Brokers that leave"
    if not rows:
        return nothing(title)
    figure = Picture(figsize=(9, 1.6 + 0.45 * len(rows)), layout="constrained")
    often, long = figure.subplots(1, 2, sharey=True)
    for at, row in enumerate(reversed(rows)):
        colour = LOOKS.get(row.cause, OTHERS)[0]
        often.barh(at, 100 * row.hurt / row.departures, color=colour, height=0.6)
        often.text(100 * row.hurt / row.departures + 1, at, f"{row.hurt} of {row.departures}", va="center")
        if row.ms:
            long.plot([row.ms[0], row.ms[2]], [at, at], color=colour, linewidth=2)
            long.plot(row.ms[1], at, "o", color=colour)
    often.set_yticks(range(len(rows)), [row.cause for row in reversed(rows)])
    often.set_xlim(0, 130)
    often.set_xticks(range(0, 101, 25), [f"{share}%" for share in range(0, 101, 25)])
    often.set_xlabel("departures that left somebody without a leader")
    long.set_xlabel("time without a leader, summed over partitions")
    times(long, narrow=True)
    for axes in (often, long):
        axes.set_axisbelow(True)
        axes.grid(True, axis="x", color="#dddddd", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    often.set_title(title, loc="left")
    texts = (
        f"{r.cause} {r.hurt} of {r.departures}" + (f", half above {readable(r.ms[1])}" if r.ms else "") for r in rows
    )
    figure.alt = f"{title}. Departures that left partitions without a leader: {'; '.join(texts)}."
    return figure


def rolling_restarts(answer: DataFrame) -> Picture:
    """When rolling restarts happened, how long they took and how many partitions they moved; the `MOST` largest.

    `answer` comes from `questions.rolling_restarts`.
    """
    rows = answer.orderBy(fn.desc("moved"), "history", "start_ms").limit(MOST).collect()
    rows = sorted(rows, key=lambda row: (row.history, row.start_ms), reverse=True)
    title = "Rolling restarts"
    if not rows:
        return nothing(title)
    figure, axes = picture(title, "", "", max(1.8, 1.2 + 0.25 * len(rows)))
    begin, unit = clock(axes, (row.start_ms for row in rows))
    for at, row in enumerate(rows):
        axes.barh(at, row.duration_ms / unit, left=(row.start_ms - begin) / unit, color=SERIES[2])
        texts = f" {' '.join(map(str, row.brokers))}: {row.moved} moved"
        axes.text(
            (row.end_ms - begin) / unit,
            at,
            texts + (f", {row.leaderless} without leader" if row.leaderless else ""),
            va="center",
        )
    axes.set_yticks(range(len(rows)), [row.history for row in rows])
    axes.margins(x=0.35)
    hurt = sum(row.leaderless > 0 for row in rows)
    longest = max((row.duration_ms for row in rows), default=0.0)
    figure.alt = (
        f"{title}. {len(rows)} of them, the longest took {readable(longest)}; {hurt} left partitions without a leader; "
        f"{sum(row.moved for row in rows)} leaderships were moved."
    )
    return figure
