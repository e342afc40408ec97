"""Unavailability in a few numbers, by whatever one wants to compare, and how exactly so many clusters tell them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import median, quantiles
from typing import NamedTuple

from pyspark.sql import DataFrame

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.history.questions.frames import Records, ask
from kafka_ctl.history.questions.unavailability import unavailability

BY = ("history", "topic", "partition", "cause", "leader", "restored", "nobody_else")
"""What intervals can be grouped by."""

_QUERY = """
WITH grouped AS (
    SELECT <by>, count(*) AS intervals, count_if(end_ms IS NULL) AS unfinished,
           round(coalesce(sum(outage_ms), 0), 4) AS outage_ms,
           percentile_approx(outage_ms, array(0.5, 0.9, 0.99), 10000) AS p, max(outage_ms) AS longest_ms
    FROM {intervals} GROUP BY <by>
)
SELECT <by>, intervals, unfinished, outage_ms, p[0] AS p50_ms, p[1] AS p90_ms, p[2] AS p99_ms, longest_ms FROM grouped
"""


def unavailability_by(records: Records, *by: str) -> DataFrame:
    """How long partitions were without a leader, summed up by cause, or by any of `BY`: `"topic", "partition"`.

    One row each: those columns, `intervals`, `unfinished` (not over when their history ended), `outage_ms` (the sum, as
    producers felt it), and of single intervals that are over `p50_ms`, `p90_ms`, `p99_ms`, `longest_ms` (percentiles;
    null when there is none). Raises UnknownName for another column.
    """
    columns = by or ("cause",)
    for name in columns:
        if name not in BY:
            raise UnknownName("column to group by", name, BY)
    return ask(_QUERY.replace("<by>", ", ".join(columns)), intervals=unavailability(records))


# Bands

MOST = 1000
"""Histories that are looked at: a band needs no more, and what they hold comes here."""


class Band(NamedTuple):
    """Where an answer from so many clusters lies: 5 of 100 samples are below `low`, 5 above `high`."""

    clusters: int
    median_s: tuple[float, float]
    """Of an interval without a leader, in seconds; 0 for a sample that has none."""
    minutes: tuple[float, float]
    """Without a leader for each cluster, all partitions summed up."""


def resampled(answer: DataFrame, histories: int, sizes: Sequence[int], samples: int = 200, seed: int = 1) -> list[Band]:
    """For each of `sizes`, the band of the median interval and of the minutes of a cluster, from that many clusters.

    `answer` comes from `questions.unavailability`, from so many `histories`: those without an interval count as well.
    Clusters are drawn with replacement, `samples` times (B. Efron, Bootstrap Methods: Another Look at the Jackknife,
    1979). Creations and intervals that did not end are left out. Raises BadInput for a size that is no number of
    clusters, and for less than 20 samples.
    """
    if samples < 20 or not sizes or min(sizes) < 1 or histories < 1:
        raise BadInput(f"histories={histories}, sizes={list(sizes)}, samples={samples}: at least 1, 1 each, and 20")
    rows = (
        answer.where("NOT cause <=> 'topic creation' AND outage_ms IS NOT NULL")
        .groupBy("history")
        .agg({"outage_ms": "collect_list"})
        .orderBy("history")
        .limit(MOST)
        .collect()
    )
    found = [sorted(row[1]) for row in rows]
    found += [[] for _ in range(min(histories, MOST) - len(found))]
    chance = Random(seed)
    return [_band(found, size, samples, chance) for size in sizes]


def _band(found: list[list[float]], size: int, samples: int, chance: Random) -> Band:
    medians, minutes = [], []
    for _ in range(samples):
        drawn = [ms for each in chance.choices(found, k=size) for ms in each]
        medians.append(median(drawn) / 1000 if drawn else 0.0)
        minutes.append(sum(drawn) / 60_000 / size)
    return Band(size, _ends(medians), _ends(minutes))


def _ends(values: list[float]) -> tuple[float, float]:
    at = quantiles(values, n=20)
    return round(at[0], 2), round(at[-1], 2)
