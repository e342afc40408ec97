"""The time to rewind a run of some 10,000 records by one moment, and to reach its middle again."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, median, processor_seconds
from benchmarks.million import long_run

RECORDS, TIMES = 10_000, 5
QUICK = {"RECORDS": 2_000, "TIMES": 1}


def rewind() -> float:
    """Seconds of processor time that `back` takes at the end of the run."""
    with long_run(RECORDS, brokers=3, partitions=60) as lab:
        return processor_seconds(lab.back)


def middle() -> float:
    """Seconds of processor time that a replay up to the middle of the run takes."""
    with long_run(RECORDS, brokers=3, partitions=60) as lab:
        return processor_seconds(lambda: lab.fork(at=len(lab.trace) // 2).close())


def measure() -> Iterator[Figure]:
    with long_run(RECORDS, brokers=3, partitions=60) as lab:
        records = len(lab.trace)
    aim = "of processor time; aim: under 1 s"
    yield Figure(f"rewind a run of {records:,} records", f"{median(rewind, TIMES):.2f} s", aim)
    yield Figure("replay it up to the middle", f"{median(middle, TIMES):.2f} s")
