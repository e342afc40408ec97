"""The costs of fetches that wait in a leader's purgatory: to put one there, and each time its partition is written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import cast

from benchmarks.figures import Figure
from kafka_ctl import Lab, TopicPartition
from kafka_ctl.wire.attach import HANDLERS
from kafka_ctl.wire.batches import Record, write_batch
from kafka_ctl.wire.fetch_sessions import Asked
from kafka_ctl.wire.fetching import Reading
from kafka_ctl.wire.groups import Groups
from kafka_ctl.wire.produce import produce
from kafka_ctl.wire.service import Administrator, Holding, Service, Shared

WAITING, SIZES, TIMES = (100, 1000, 10_000), (1_000, 900_000), 3
QUICK = {"WAITING": (10,), "SIZES": (1_000,), "TIMES": 1}
PARTITION, LONG, PLENTY = TopicPartition("orders", 0), 1_000_000, 1 << 30
"""A partition, milliseconds that a fetch waits, and bytes that never come."""


def costs(waiting: int, size: int, min_bytes: int) -> tuple[float, float, int]:
    """Seconds to let so many fetches wait on one partition, and of an append of one batch of so many bytes to it, with
    acks=all and its replication; how many fetches it completed."""
    with Lab(brokers=3) as lab:
        lab.create_topic("orders", assignment={0: [1, 2, 3]})
        lab.settle()
        leader, clock = lab.world.brokers[1], lab.world.clock
        service = Service(leader, Shared(lab.world, cast(Administrator, None), Groups()), HANDLERS)
        asked = {"replica_id": -1, "min_bytes": min_bytes, "max_bytes": 1 << 20}
        each = [asked | {"holding": Holding(service.unsent)} for _ in range(waiting)]
        fetches = [Reading(service, 4, one, {PARTITION: Asked(0, 1 << 20)}).operation(LONG) for one in each]
        began = time.perf_counter()
        for fetch in fetches:
            leader.as_leader.fetch_purgatory.try_complete_else_watch(fetch, [PARTITION])
        watched = time.perf_counter()
        part = {"index": 0, "records": write_batch([Record(0, 5, None, bytes(size))])}
        topic = {"name": "orders", "partition_data": [part]}
        clock.run(produce(service, 6, {"acks": -1, "timeout": 10_000, "topic_data": [topic]}))
        written = time.perf_counter()
        return watched - began, written - watched, sum(fetch.is_completed for fetch in fetches)


def measure() -> Iterator[Figure]:
    for waiting in WAITING:
        for size in SIZES:
            for min_bytes, what in ((1, "completes them"), (PLENTY, "completes none")):
                runs = [costs(waiting, size, min_bytes) for _ in range(TIMES)]
                watch, append = (min(run[place] for run in runs) for place in (0, 1))
                assert runs[0][2] == (waiting if min_bytes == 1 else 0), runs
                each = f"{append / waiting * 1e6:.0f} µs for each; to let one wait: {watch / waiting * 1e6:.0f} µs"
                name = f"{size:,} bytes appended, {waiting:,} fetches wait, it {what}"
                yield Figure(name, f"{append * 1000:.1f} ms", each)
