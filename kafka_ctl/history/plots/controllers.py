"""Plots of the work of controllers: its times, the moves of the two state machines, what administrators waited for."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from kafka_ctl.history.plots.picture import (
    SERIES,
    STEPS,
    TITLE,
    WIDTH,
    Picture,
    curve,
    legend,
    named_shares,
    nothing,
    picture,
    quantiles,
    readable,
)
from kafka_ctl.history.questions.frames import check_answer
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA

STAGES = {
    "taking_over_ms": "taking over",
    "reading_ms": "reading the cluster",
    "replica_ms": "replica state machine",
    "partition_ms": "partition state machine",
}


def failover_time(answer: DataFrame) -> Picture:
    """The times of new controllers after the election, by the number of partitions and by stages: medians.

    `answer` comes from `questions.failover_time`. A bar stands for elections with up to so many partitions and more
    than half as many; elections in empty clusters are left out.
    """
    check_answer(answer, "failover_time", "failover_ms", "partitions", *STAGES)
    size = fn.ceil(fn.log2(fn.greatest(fn.col("partitions"), fn.lit(1)))).alias("size")
    medians = (fn.coalesce(fn.median(name), fn.lit(0.0)).alias(name) for name in STAGES)
    grouped = answer.where("failover_ms IS NOT NULL AND partitions > 0").groupBy(size)
    counted = grouped.agg(fn.count("*").alias("n"), fn.median("failover_ms").alias("ms"), *medians)
    rows = counted.orderBy("size").collect()
    title = "How long a new controller takes, by stages"
    if not rows:
        return nothing(title)
    figure, axes = picture(title, "partitions (elections)", "time after the election")
    sizes = [f"up to {2 ** row['size']:,}\n({row.n:,})" for row in rows]
    below = [0.0] * len(rows)
    for (name, label), colour in zip(STAGES.items(), SERIES, strict=False):
        axes.bar(sizes, [row[name] for row in rows], bottom=below, color=colour, label=label, edgecolor="white")
        below = [low + row[name] for low, row in zip(below, rows, strict=True)]
    axes.yaxis.set_major_formatter(lambda ms, _: readable(ms) if ms else "0")
    axes.grid(False, axis="x")
    legend(axes, "stage (median)")
    texts = (f"up to {2 ** row['size']:,} partitions {readable(row.ms)} ({row.n} elections)" for row in rows)
    figure.alt = f"{title}. Medians: {'; '.join(texts)}."
    return figure


def request_amplification(answer: DataFrame) -> Picture:
    """The requests, and the partition states in them, of one event of the controller, on average.

    `answer` comes from `questions.request_amplification`. Events that say nothing are left out.
    """
    check_answer(answer, "request_amplification", "event", "events", "requests", "states")
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


def durations(**answers: DataFrame) -> Picture:
    """The share of reassignments or deletions done after so long; below 100% are those that never were.

    Give the answers of `questions.reassignments` and `questions.deletions` under any names:
    `durations(deletions=questions.deletions(records))`.
    """
    title = "How long administrators waited"
    figure, axes = picture(title, "from the beginning", "done")
    texts = []
    for n, ((name, answer), colour) in enumerate(zip(answers.items(), SERIES, strict=False)):
        check_answer(answer, "reassignments or questions.deletions", "duration_ms")
        row = answer.agg(
            fn.count("*").alias("all"), fn.count("duration_ms").alias("done"), quantiles("duration_ms").alias("ms")
        ).collect()[0]
        if row["all"]:
            look = (colour, ("-", "--", "-.", ":")[n % 4])
            curve(axes, row.ms, row.done / row["all"], f"{name} ({row['all']:,})", look)
        half = readable(row.ms[STEPS // 2]) if row.ms else "nothing"
        texts.append(f"{name}: {row.done} of {row['all']} done, half of these within {half}")
    if not axes.lines:
        return nothing(title)
    named_shares(axes)
    figure.alt = f"{title}. {'; '.join(texts)}."
    return figure


TABLES = {"partition": PARTITION, "replica": REPLICA}
MADE, NEVER, ILLEGAL = "#cfe5f3", "#ffffff", "#f6c6a8"


def transition_counts(answer: DataFrame) -> Picture:
    """Both machines as grids: from the state of the row to that of the column, so many times.

    `answer` comes from `questions.transition_counts`. A dot is a move that is not legal and was not tried; *never*, a
    legal one that was not made; a hatched cell, one that the table does not have, which was tried or even made.
    """
    check_answer(answer, "transition_counts", "machine", "source", "target", "legal", "made", "refused")
    rows = {(row.machine, row.source, row.target): row for row in answer.collect()}
    if not any(row.made or row.refused for row in rows.values()):
        return nothing("Moves of the state machines")
    figure = Picture(figsize=(WIDTH, 6.4), layout="constrained")
    grids = figure.subplots(2, 1, height_ratios=(4, 7))
    for axes, (name, tables) in zip(grids, TABLES.items(), strict=True):
        states = [str(state) for state in tables["2.0"].states]
        _grid(axes, name, states, {key[1:]: row for key, row in rows.items() if key[0] == name})
    figure.suptitle("Moves of the state machines", x=0.01, ha="left", fontsize=TITLE)
    never = sorted(f"{source} to {target}" for (_, source, target), r in rows.items() if r.legal and not r.made)
    wrong = [f"{s} to {t} ({r.made} made, {r.refused} refused)" for (_, s, t), r in sorted(rows.items()) if not r.legal]
    figure.alt = (
        f"Moves of the state machines. {sum(r.made for r in rows.values())} made; legal but never made: "
        f"{', '.join(never) or 'none'}; not legal: {', '.join(wrong) or 'none tried'}."
    )
    return figure


def _grid(axes: Axes, name: str, states: list[str], rows: dict[tuple[str, str], Row]) -> None:
    short = [
        state.removesuffix("Partition").removesuffix("Replica").replace("ReplicaDeletion", "Del.") for state in states
    ]
    for y, source in enumerate(states):
        for x, target in enumerate(states):
            row = rows.get((source, target))
            text, colour, hatch = "·", NEVER, None
            if row is not None and row.legal:
                text, colour = (f"{row.made:,}", MADE) if row.made else ("never", NEVER)
            elif row is not None:
                text, colour, hatch = f"{row.made:,}", ILLEGAL, "//"
            text += f"\n({row.refused:,} refused)" if row is not None and row.refused else ""
            edge = "black" if text != "·" else "#dddddd"
            corner = (x - 0.46, y - 0.44)
            axes.add_patch(Rectangle(corner, 0.92, 0.88, facecolor=colour, edgecolor=edge, hatch=hatch, linewidth=0.8))
            axes.text(x, y, text, ha="center", va="center", fontsize=9)
    axes.set_xlim(-0.5, len(states) - 0.5)
    axes.set_ylim(len(states) - 0.5, -0.5)
    axes.set_xticks(range(len(states)), short)
    axes.set_yticks(range(len(states)), short)
    axes.xaxis.tick_top()
    axes.set_ylabel(f"{name}: from")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
