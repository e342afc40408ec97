"""Plots of leaders and of ISRs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.history.plots.picture import (
    SERIES,
    STEPS,
    Picture,
    clock,
    curve,
    legend,
    named_shares,
    nothing,
    per_cent,
    picture,
    quantiles,
    readable,
)
from kafka_ctl.history.questions.frames import check_answer

GROUPS = ((0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 10**9))
"""Numbers of changes that are counted together."""


def leader_churn(answer: DataFrame) -> Picture:
    """Partitions by their number of leader changes.

    The darker part of a bar counts those that went back to the previous leader.
    `answer` comes from `questions.leader_churn`.
    """
    check_answer(answer, "leader_churn", "changes", "returns")
    counted = answer.groupBy("changes").agg(
        fn.count("*").alias("partitions"),
        fn.count_if(fn.col("returns") > 0).alias("back"),
        fn.sum("returns").alias("r"),
    )
    rows = counted.collect()
    title = "How often partitions changed their leader"
    if not rows:
        return nothing(title)
    figure, axes = picture(title, "changes of leader", "partitions")
    groups = [
        str(low) if low == high else f"{low} to {high}" if high < 10**9 else f"{low} or more" for low, high in GROUPS
    ]
    inside = [[row for row in rows if low <= row.changes <= high] for low, high in GROUPS]
    axes.bar(groups, [sum(r.partitions for r in group) for group in inside], color=SERIES[4], label="all")
    axes.bar(groups, [sum(r.back for r in group) for group in inside], color=SERIES[0], label="went back and forth")
    axes.grid(False, axis="x")
    legend(axes)
    total, never = sum(r.partitions for r in rows), sum(r.partitions for r in rows if not r.changes)
    changes = sum(r.partitions * r.changes for r in rows)
    back = sum(r.r for r in rows)
    figure.alt = (
        f"{title}. Of {total} partitions {never} kept theirs; {changes} changes in all, {back} of them back to the "
        f"leader before; the most for one partition is {max(r.changes for r in rows)}."
    )
    return figure


def isr_churn(answer: DataFrame) -> Picture:
    """The share of partitions that lacked a replica in sync, or all but one, for at most so long.

    `answer` comes from `questions.isr_churn`. Curves begin at the share that never did.
    """
    columns = {"under_ms": "fewer in sync than assigned", "single_ms": "only one in sync"}
    check_answer(answer, "isr_churn", *columns)
    row = answer.agg(fn.count("*").alias("all"), *(quantiles(name).alias(name) for name in columns)).collect()[0]
    title = "How long partitions were under-replicated"
    if not row["all"]:
        return nothing(title)
    figure, axes = picture(title, "time altogether", "partitions")
    for (name, label), look in zip(columns.items(), ((SERIES[1], "-"), (SERIES[5], "--")), strict=True):
        curve(axes, row[name], 1, label, look)
    named_shares(axes)
    shares = {
        label: (readable(v[STEPS // 2]), readable(v[STEPS * 9 // 10])) for n, label in columns.items() if (v := row[n])
    }
    texts = (f"{label}: half at most {half}, one in ten more than {most}" for label, (half, most) in shares.items())
    figure.alt = f"{title}, of {row['all']}. {'; '.join(texts)}."
    return figure


def imbalance(answer: DataFrame, history: str | None = None) -> Picture:
    """The share of each broker's preferred partitions that another broker led, over time, in one history.

    `answer` comes from `questions.imbalance`; without `history`, the first one. Above the dotted line, at 10%, Kafka's
    automatic rebalance acts.
    """
    check_answer(answer, "imbalance", "history", "at_ms", "broker", "led_elsewhere", "preferred")
    if history is None:
        history = answer.agg(fn.min("history")).collect()[0][0]
    rows = answer.where(fn.col("history") == history).orderBy("at_ms").collect()
    title = f"Who does not lead what it should: {history}"
    if not rows:
        return nothing(title)
    figure, axes = picture(title, "", "preferred partitions led by others")
    begin, unit = clock(axes, (row.at_ms for row in rows))
    end = max(row.at_ms for row in rows)
    brokers = sorted({row.broker for row in rows})
    for n, broker in enumerate(brokers):
        mine = [row for row in rows if row.broker == broker]
        at = [(row.at_ms - begin) / unit for row in mine] + [(end - begin) / unit]
        shares = [100 * row.share for row in mine]
        style = ("-", "--", "-.", ":")[n // len(SERIES) % 4]
        colour = SERIES[n % len(SERIES)]
        axes.step(
            at, [*shares, shares[-1]], where="post", label=str(broker), color=colour, linestyle=style, linewidth=2
        )
    axes.axhline(10, color="black", linestyle=":", linewidth=1)
    per_cent(axes)
    legend(axes, "broker")
    worst = max(rows, key=lambda row: (row.share, row.led_elsewhere))
    figure.alt = (
        f"{title}. {len(brokers)} brokers, {len(rows)} moments at which it changed; the most was "
        f"{worst.led_elsewhere} of the {worst.preferred} of broker {worst.broker}."
    )
    return figure
