"""The time to rewind a run of some 10,000 records by one moment, and to reach its middle again."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.figures import Figure, median
from kafka_ctl import Lab

RECORDS, TIMES = 10_000, 5
QUICK = {"RECORDS": 2_000, "TIMES": 1}


def long_run() -> Lab:
    """A lab with a topic and so many restarts that its trace has the wanted length."""
    lab = Lab(brokers=3, seed=7)
    lab.create_topic("orders", partitions=60, replication_factor=3)
    lab.settle()
    while len(lab.trace) < RECORDS:
        lab.bounce(len(lab.commands) % 3 + 1)
        lab.settle()
    return lab


def rewind() -> float:
    """Seconds of processor time that `back` takes at the end of the run."""
    with long_run() as lab:
        began = time.process_time()
        lab.back()
        return time.process_time() - began


def middle() -> float:
    """Seconds of processor time that a replay up to the middle of the run takes."""
    with long_run() as lab:
        began = time.process_time()
        lab.fork(at=len(lab.trace) // 2).close()
        return time.process_time() - began


def measure() -> Iterator[Figure]:
    with long_run() as lab:
        records = len(lab.trace)
    aim = "of processor time; aim: under 1 s"
    yield Figure(f"rewind a run of {records:,} records", f"{median(rewind, TIMES):.2f} s", aim)
    yield Figure("replay it up to the middle", f"{median(middle, TIMES):.2f} s")
