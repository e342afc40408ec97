"""Answers to look at. Each function takes the answer of a question and returns a matplotlib Figure."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.errors import UnknownName

LOOKS = {
    "topic creation": ("#56B4E9", "-"),
    "session expiry": ("#0072B2", "--"),
    "controlled shutdown": ("#009E73", "-"),
    "quick restart": ("#E69F00", "-"),
    "broker crash": ("#D55E00", "-"),
    "controller crash": ("#CC79A7", "--"),
}
"""A cause looks the same in every plot. Everybody can tell the colours apart (they are Okabe's and Ito's)."""
OTHERS = ("#000000", ":")
TICKS = {
    0.1: "0.1 ms", 1: "1 ms", 10: "10 ms", 100: "0.1 s", 1e3: "1 s", 1e4: "10 s", 6e4: "1 min", 6e5: "10 min",
    3.6e6: "1 h", 3.6e7: "10 h",
}  # fmt: skip
STEPS = 400
"""Points of a curve; the rest is left to Spark."""


def unavailability_by_cause(answer: DataFrame, measure: str = "outage_ms") -> Figure:
    """For each cause, the share of intervals without a leader that were over after so long.

    `answer` comes from `questions.unavailability`. `measure` is `outage_ms`, from the loss of the leader, or
    `duration_ms`, from the moment the controller noticed. Intervals that were not over when their history
    ended keep a curve below 100%.
    """
    if measure not in ("outage_ms", "duration_ms"):
        raise UnknownName("measure", measure, ("outage_ms", "duration_ms"))
    shares = [i / STEPS for i in range(STEPS + 1)]
    curves = (
        answer.groupBy(fn.coalesce("cause", fn.lit("unknown")).alias("cause"))
        .agg(
            fn.percentile_approx(measure, shares, 100_000).alias("after_ms"),
            fn.count(measure).alias("over"),
            fn.count("*").alias("intervals"),
        )
        .orderBy(fn.col("after_ms")[STEPS // 2], "cause")
        .collect()
    )
    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    plt.close(figure)  # so that a notebook shows it once, as the value of its cell
    for row in curves:
        _curve(axes, row, shares)
    _dress(axes, measure)
    return figure


def _curve(axes: Any, row: Any, shares: list[float]) -> None:
    after = [max(ms, 0.1) for ms in row.after_ms or []]
    percent = [share * 100 * row.over / row.intervals for share in shares][: len(after)]
    colour, style = LOOKS.get(row.cause, OTHERS)
    label = f"{row.cause} ({row.intervals:,})"
    axes.step(after, percent, where="post", label=label, color=colour, linestyle=style, linewidth=2)


def _dress(axes: Any, measure: str) -> None:
    since = "since its leader was lost" if measure == "outage_ms" else "since the controller noticed"
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    shown = {at: text for at, text in TICKS.items() if low / 3 <= at <= high * 3}
    axes.set_xticks(list(shown), list(shown.values()))
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 102)
    axes.set_yticks(range(0, 101, 25), [f"{share}%" for share in range(0, 101, 25)])
    axes.set_xlabel(f"time without a leader, {since}")
    axes.set_ylabel("intervals that are over")
    axes.set_title("How long partitions were without a leader, by cause", loc="left")
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(title="cause (intervals)", frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
