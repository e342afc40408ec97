"""Summaries of unavailability, brokers that flap, brokers that come home: plain Python's answers, and known ones."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from history_plain import Run, dicts, plain_departures, plain_unavailability, same
from labs import play, until_quiet
from prose import Prose
from pyspark.sql import DataFrame

from kafka_ctl import BadInput, Lab, Trace, UnknownName
from kafka_ctl.history import questions
from kafka_ctl.history.schema import to_arrow

SEEDS = range(20, 23)


@pytest.mark.parametrize("by", [("cause",), ("history", "topic", "partition")])
def test_summaries_equal_the_plain_computation(
    by: tuple[str, ...], clusters: dict[str, Trace], simulated: DataFrame
) -> None:
    """Counts, sums and percentiles of each group."""
    groups: dict[tuple, list[Any]] = defaultdict(list)
    for name, trace in clusters.items():
        for row in plain_unavailability(trace):
            groups[tuple({"history": name, **row}[column] for column in by)].append(row["outage_ms"])
    plain = []
    for key, outages in groups.items():
        over = sorted(ms for ms in outages if ms is not None)
        p50, p90, p99 = (over[max(0, math.ceil(p * len(over)) - 1)] if over else None for p in (0.5, 0.9, 0.99))
        plain.append(
            dict(zip(by, key, strict=True))
            | {
                "intervals": len(outages),
                "unfinished": len(outages) - len(over),
                "outage_ms": round(sum(over, 0.0), 4),
                "p50_ms": p50,
                "p90_ms": p90,
                "p99_ms": p99,
                "longest_ms": over[-1] if over else None,
            }
        )
    same(questions.unavailability_by(simulated, *by), plain)


def test_columns_that_cannot_be_grouped_by(prose: Prose) -> None:
    prose.refuses(UnknownName, questions.unavailability_by, Trace(), "outage_ms")


def test_broker_churn_equals_the_plain_computation(clusters: dict[str, Trace], simulated: DataFrame) -> None:
    """Departures, gaps and leaderships of every broker that left."""
    plain = []
    for name, trace in clusters.items():
        left: dict[int, list[float]] = defaultdict(list)
        for d in sorted(plain_departures(trace), key=lambda each: each.cause_seq):
            left[d.broker].append(d.at_ms)
        leads: dict[tuple, list[int]] = defaultdict(list)
        for r in trace:
            if r.kind == "partition" and not r.error and r.leader is not None and r.leader >= 0:
                leads[r.topic, r.partition].append(r.leader)
        moves = [(old, new) for each in leads.values() for old, new in pairwise(each) if old != new]
        for broker, times in left.items():
            gaps = [b - a for a, b in pairwise(times)]
            plain.append(
                {
                    "history": name,
                    "broker": broker,
                    "departures": len(times),
                    "flaps": sum(gap <= 3_600_000 for gap in gaps),
                    "shortest_ms": round(min(gaps), 4) if gaps else None,
                    "won": sum(new == broker for _, new in moves),
                    "lost": sum(old == broker for old, _ in moves),
                }
            )
    same(questions.broker_churn(simulated), plain)
    with pytest.raises(BadInput, match="within_minutes=-1"):
        questions.broker_churn(simulated, -1)


def test_a_broker_comes_home() -> None:
    """Away for a minute, back, and in office again when the preferred leaders are elected."""
    with Lab(brokers=3, seed=4, config={"auto.leader.rebalance.enable": False}) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2], 1: [1, 3], 2: [2, 3]})
        lab.shutdown(1)
        lab.run_for(60)
        lab.start(1)
        lab.run_for(30)
        play(lab, "elect_preferred; settle; kill 2; settle")
        (row,) = questions.preferred_leader_recovery(lab.trace).collect()
    assert (row.broker, row.cause, row.led_elsewhere) == (1, "controlled shutdown", 2)
    assert 60_000 <= row.away_ms < 62_000
    assert row.home_ms == row.back_ms + row.waited_ms
    assert 29_000 < row.waited_ms < 32_000


def test_coming_home_in_logs() -> None:
    """A controller says who is new; one that never leads again has no time."""
    run = Run().move("NewPartition", "OnlinePartition", leader=1, replicas=(1, 2))
    run.record("broker", "lost", broker=1).move("OnlinePartition", "OnlinePartition", leader=2, replicas=(1, 2))
    run.record("controller", "brokers_changed", detail=json.dumps({"new": [1], "dead": []}))
    assert dicts(
        questions.preferred_leader_recovery(to_arrow(run.records)), "broker", "away_ms", "led_elsewhere", "waited_ms"
    ) == [{"broker": 1, "away_ms": 2000.0, "led_elsewhere": 1, "waited_ms": None}]
