"""Plots of the time that partitions are without a leader, and of the brokers whose departures cost it."""

from __future__ import annotations

from itertools import accumulate

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.errors import UnknownName
from kafka_ctl.history.plots.picture import (
    LOOKS,
    OTHERS,
    SERIES,
    STEPS,
    TITLE,
    WIDTH,
    Picture,
    clock,
    curve,
    legend,
    named_shares,
    nothing,
    picture,
    quantiles,
    readable,
    times,
)
from kafka_ctl.history.questions.frames import check_answer

MOST = 40
"""Partitions in one picture."""


def unavailability_by_cause(answer: DataFrame, measure: str = "outage_ms") -> Picture:
    """For each cause, the share of intervals without a leader that had ended after a given time.

    `answer` comes from `questions.unavailability`. `measure` is `outage_ms`, from the loss of the leader, or
    `duration_ms`, from the moment the controller noticed. A curve stays below 100% if some of its
    intervals were not over when their history ended.
    """
    if measure not in ("outage_ms", "duration_ms"):
        raise UnknownName("measure", measure, ("outage_ms", "duration_ms"))
    check_answer(answer, "unavailability", "cause", measure)
    curves = (
        answer.groupBy(fn.coalesce("cause", fn.lit("unknown")).alias("cause"))
        .agg(quantiles(measure).alias("after_ms"), fn.count(measure).alias("over"), fn.count("*").alias("intervals"))
        .orderBy(fn.col("after_ms")[STEPS // 2], "cause")
        .collect()
    )
    title = "How long partitions were without a leader, by cause"
    if not curves:
        return nothing(title)
    since = "since its leader was lost" if measure == "outage_ms" else "since the controller noticed"
    figure, axes = picture(title, f"time without a leader, {since}", "intervals that are over")
    for row in curves:
        label = f"{row.cause} ({row.intervals:,})"
        curve(axes, row.after_ms, row.over / row.intervals, label, LOOKS.get(row.cause, OTHERS))
    named_shares(axes)
    texts = (
        f"{r.cause} {readable(r.after_ms and r.after_ms[STEPS // 2])} ({r.over} of {r.intervals} over)" for r in curves
    )
    figure.alt = f"{title}. Half were over after: {'; '.join(texts)}."
    return figure


def outages_by_weight(answer: DataFrame) -> Picture:
    """The share of intervals without a leader that took at most so long, and the share of all minutes that is in them.

    `answer` comes from `questions.unavailability`; creations and intervals that did not end are left out. Lengths are
    counted in steps of 5%, so that the picture costs the same for a million intervals.
    """
    check_answer(answer, "unavailability", "cause", "outage_ms")
    ended = answer.where("NOT cause <=> 'topic creation' AND outage_ms IS NOT NULL")
    step = fn.round(fn.log10(fn.greatest("outage_ms", fn.lit(0.1))) * 48)
    rows = ended.groupBy(step.alias("step")).agg(fn.count("*"), fn.sum("outage_ms"), fn.max("outage_ms"))
    found = sorted(tuple(row) for row in rows.collect())
    title = "Intervals without a leader, and the minutes in them"
    if not any(row[2] for row in found):
        return nothing(title)
    figure, axes = picture(title, "time without a leader, since it was lost", "share up to that time")
    after = [10 ** (at / 48) for at, *_ in found]
    for place, label, look in ((1, "intervals", LOOKS["session expiry"]), (2, "minutes", LOOKS["broker crash"])):
        up_to = list(accumulate(row[place] for row in found))
        shares = [100 * each / up_to[-1] for each in up_to]
        axes.step(after, shares, where="post", label=label, color=look[0], linestyle=look[1], linewidth=2)
    named_shares(axes)
    number, total = sum(row[1] for row in found), sum(row[2] for row in found)
    brief = [row for row in found if row[3] <= 10_000]
    many, little = sum(row[1] for row in brief) / number, sum(row[2] for row in brief) / total
    figure.alt = (
        f"{title}: {number} intervals, {readable(total)} in all. {many:.0%} of the intervals took at most 10 s; "
        f"in them are {little:.0%} of the time."
    )
    return figure


def outages_over_time(answer: DataFrame, history: str | None = None) -> Picture:
    """The outages of each partition of one history, each from the loss of its leader on.

    `answer` comes from `questions.unavailability`; without `history`, the first one. Creations are left out, and the
    `MOST` partitions that were longest without a leader are shown. An outage that did not end goes on to the last
    moment.
    """
    check_answer(answer, "unavailability", *"history topic partition cause lost_ms start_ms end_ms outage_ms".split())
    if history is None:
        history = answer.agg(fn.min("history")).collect()[0][0]
    mine = answer.where(fn.col("history") == history).where("NOT cause <=> 'topic creation'")
    worst = mine.groupBy("topic", "partition").agg(fn.sum(fn.coalesce("outage_ms", fn.lit(1e15))).alias("ms"))
    worst = worst.orderBy(fn.desc("ms"), "topic", "partition").limit(MOST)
    rows = mine.join(worst, ["topic", "partition"]).orderBy("topic", "partition", "lost_ms").collect()
    names = sorted({(row.topic, row.partition) for row in rows}, reverse=True)
    title = f"When partitions were without a leader: {history}"
    if not rows:
        return nothing(title)
    figure, axes = picture(title, "", "", max(1.8, 1.2 + 0.22 * len(names)))
    begin, unit = clock(axes, (row.lost_ms for row in rows))
    last = max((max(row.end_ms or 0, row.start_ms) for row in rows), default=begin)
    labelled: set[str] = set()
    for row in rows:
        cause = row.cause or "unknown"
        end = last if row.end_ms is None else row.end_ms
        at, start = names.index((row.topic, row.partition)), (row.lost_ms - begin) / unit
        colour, label = LOOKS.get(cause, OTHERS)[0], None if cause in labelled else cause
        long = (end - row.lost_ms) / unit
        axes.barh(at, long, left=start, label=label, color=colour, edgecolor="black", linewidth=0.5)
        axes.plot(start, at, "|", color=colour, markersize=11)  # a moment would not be seen otherwise
        labelled.add(cause)
    axes.set_yticks(range(len(names)), [f"{topic}-{partition}" for topic, partition in names])
    legend(axes, "cause")
    longest = max((row.outage_ms for row in rows if row.outage_ms is not None), default=0.0)
    figure.alt = (
        f"{title}. {len(rows)} intervals of {len(names)} partitions, because of "
        f"{', '.join(sorted(labelled)) or 'nothing'}; the longest took {readable(longest)}, and "
        f"{sum(row.end_ms is None for row in rows)} did not end."
    )
    return figure


def compare(answer: DataFrame, before: str = "before", after: str = "after") -> Picture:
    """Two histories side by side: median and 99th percentile of the time without a leader, by cause.

    `answer` comes from `questions.compare`; `before` and `after` name its sides.
    """
    check_answer(
        answer, "compare", *(f"{name}_ms_{side}" for name in ("median", "p99") for side in ("before", "after"))
    )
    rows = answer.where("median_ms_before IS NOT NULL OR median_ms_after IS NOT NULL").orderBy("cause").collect()
    title = f"Time without a leader, {before} and {after}"
    if not rows:
        return nothing(title)
    figure, axes = picture(title, "median (dot) and 99th percentile (end of the line)", "", 1.6 + 0.5 * len(rows))
    for side, name, colour, up in (("before", before, SERIES[1], 0.15), ("after", after, SERIES[0], -0.15)):
        for at, row in enumerate(reversed(rows)):
            median, high = row[f"median_ms_{side}"], row[f"p99_ms_{side}"]
            if median is not None:
                axes.plot([max(median, 0.1), max(high, 0.1)], [at + up] * 2, color=colour, linewidth=2)
                mark = "o" if side == "before" else "D"
                axes.plot(max(median, 0.1), at + up, mark, color=colour, label=name if row is rows[-1] else None)
    axes.set_yticks(range(len(rows)), [row.cause for row in reversed(rows)])
    times(axes)
    legend(axes)
    texts = (f"{row.cause} {readable(row.median_ms_before)} and {readable(row.median_ms_after)}" for row in rows)
    figure.alt = f"{title}. Medians: {'; '.join(texts)}."
    return figure


SESSIONS = 25
"""Rolling restarts in one picture."""


def shutdown_vs_failure(answer: DataFrame) -> Picture:
    """By cause: how often a departure left partitions without a leader, and for how long altogether.

    `answer` comes from `questions.shutdown_vs_failure`. On the right, departures that hurt: a line from the 10th to the
    90th percentile of their summed outages, and a dot for the median.
    """
    check_answer(answer, "shutdown_vs_failure", "cause", "leaderless", "outage_ms")
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
    figure = Picture(figsize=(WIDTH, 1.6 + 0.45 * len(rows)), layout="constrained")
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
    often.set_xlabel("departures that left a partition without a leader")
    long.set_xlabel("time without a leader, summed over partitions")
    times(long, narrow=True)
    for axes in (often, long):
        axes.set_axisbelow(True)
        axes.grid(True, axis="x", color="#dddddd", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    often.set_title(title, loc="left", fontsize=TITLE)
    halves = (f", half above {readable(r.ms[1])}" if r.ms else "" for r in rows)
    texts = (f"{r.cause} {r.hurt} of {r.departures}{half}" for r, half in zip(rows, halves, strict=True))
    figure.alt = f"{title}. Departures that left partitions without a leader: {'; '.join(texts)}."
    return figure


def rolling_restarts(answer: DataFrame) -> Picture:
    """Rolling restarts: their times, lengths and numbers of moved partitions; the `SESSIONS` largest.

    `answer` comes from `questions.rolling_restarts`.
    """
    check_answer(answer, "rolling_restarts", *"history start_ms end_ms duration_ms brokers moved leaderless".split())
    rows = answer.orderBy(fn.desc("moved"), "history", "start_ms").limit(SESSIONS).collect()
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
