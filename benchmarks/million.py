"""Questions to a lab with a million records, and the time to go back in it."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, processor_seconds
from kafka_ctl import Lab

RECORDS = 1_000_000
QUICK = {"RECORDS": 10_000}
KINDS = ("election", "partition", "replica", "zk", "broker", "controller", "request", "event")


def long_run(records: int, brokers: int, partitions: int) -> Lab:
    """A lab whose brokers are restarted one after the other until its trace is so long."""
    lab = Lab(brokers=brokers, seed=7)
    lab.create_topic("orders", partitions=partitions, replication_factor=3)
    lab.settle()
    while len(lab.trace) < records:
        lab.bounce(len(lab.commands) % brokers + 1)
        lab.settle()
    return lab


def why(lab: Lab) -> float:
    """The longest that "why?" takes for the last record of each kind, without the lines that ran."""
    last = {record.kind: record.seq for record in lab.trace}
    return max(processor_seconds(lambda seq=last[kind]: lab.why(seq, lines=False)) for kind in KINDS if kind in last)  # type: ignore[misc]


def measure() -> Iterator[Figure]:
    with long_run(RECORDS, brokers=6, partitions=1000) as lab:
        size = f"{len(lab.trace):,} records"
        yield Figure(f"why?, the last of each kind of {size}", f"{why(lab):.2f} s", "of processor time; aim: under 2 s")
        middle = processor_seconds(lambda: lab.fork(at=len(lab.trace) // 2).close())
        yield Figure(f"replay {size} up to the middle", f"{middle:.1f} s", "says how far it is")
        back = processor_seconds(lab.back)
        yield Figure(f"rewind {size} by one moment", f"{back:.1f} s", f"{len(lab.trace) / back:,.0f} records a second")
