"""Traces that the tests of the views draw: short runs of the lab, each made once."""

from __future__ import annotations

from functools import lru_cache

from tables import FOLDER, tables

from kafka_ctl import Lab
from kafka_ctl.trace import Record, Trace

NASTY = "<script>alert('1')</script>\"&amp;]]>\\N\n\x00{0}"
"""What somebody might put into a name to break out of a picture, a page or a DOT text."""


@lru_cache
def failover() -> Trace:
    """Three brokers and a topic; the controller dies, comes back, and another broker shuts down."""
    with Lab(brokers=3, seed=7) as lab:
        lab.create_topic("orders", partitions=4, replication_factor=3)
        lab.settle()
        first = lab.controller
        assert first is not None
        lab.kill(first.id)
        lab.settle()
        lab.start(first.id)
        lab.settle()
        second = lab.controller
        assert second is not None
        lab.shutdown(next(b for b in (1, 2, 3) if b not in (first.id, second.id)))
        lab.settle()
        return lab.trace


@lru_cache
def sixty() -> Trace:
    """Five brokers and sixty partitions; one broker dies and returns, again and again."""
    with Lab(brokers=5, seed=7) as lab:
        lab.create_topic("orders", partitions=60, replication_factor=3)
        lab.settle()
        for broker in (1, 2, 3, 4, 5, 1, 2):
            lab.kill(broker)
            lab.settle()
            lab.start(broker)
            lab.settle()
        return lab.trace


def every_kind(name: str = "orders") -> list[Record]:
    """One record of each kind, with `name` wherever text from outside can stand."""
    rows = tables(FOLDER / "every_kind.txt")["every kind"].rows
    named = [
        {key: value.replace("NAME", name) if isinstance(value, str) else value for key, value in row.items()}
        for row in rows
    ]
    return [Record(seq=seq, time_ms=seq * 10.0, **row) for seq, row in enumerate(named)]
