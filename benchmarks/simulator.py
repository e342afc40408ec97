"""The trace records a second of the simulator, on one core: a broker fails in a cluster of 10,000 partitions.

Beside it, what a plain asyncio loop does that only jumps from timer to timer, since no simulator on asyncio can
be faster than that.
"""

from __future__ import annotations

import asyncio
import json
import random
import selectors
import statistics
import time
import timeit
from collections.abc import Iterator

from benchmarks.figures import Figure, median
from kafka_ctl import Lab
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.zookeeper.znodes import TopicPartitionStateZNode

PARTITIONS, TIMES, SLEEPERS, SLEEPS = 10_000, 5, 100, 1_000
QUICK = {"PARTITIONS": 50, "TIMES": 1, "SLEEPS": 10}


class Jump(selectors.SelectSelector):
    """Instead of waiting for a time, lets it have passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.passed += timeout or 0.0
        return []


class Loop(asyncio.SelectorEventLoop):
    """asyncio's own loop on virtual time."""

    def __init__(self) -> None:
        self.jump = Jump()
        super().__init__(self.jump)

    def time(self) -> float:
        return self.jump.passed


def timers() -> float:
    """Timers a second of the plain loop: tasks that sleep again and again."""

    async def sleeper(rng: random.Random) -> None:
        for _ in range(SLEEPS):
            await asyncio.sleep(rng.uniform(0.001, 1))

    async def everybody() -> None:
        await asyncio.gather(*(sleeper(random.Random(n)) for n in range(SLEEPERS)))

    loop = Loop()
    began = time.process_time()
    loop.run_until_complete(everybody())
    taken = time.process_time() - began
    loop.close()
    return SLEEPERS * SLEEPS / taken


def failure() -> tuple[int, float]:
    """Records of a broker's failure, and the seconds of processor time that it took."""
    with Lab(brokers=3, seed=7) as lab:
        lab.create_topic("orders", partitions=PARTITIONS, replication_factor=3)
        lab.settle()
        follower = next(id for id, broker in lab.brokers.items() if not broker.is_controller)
        before, began = len(lab.trace), time.process_time()
        lab.kill(follower)
        lab.settle()
        return len(lab.trace) - before, time.process_time() - began


def states() -> Iterator[Figure]:
    """Writing and reading a partition's `state` znode, of which a failover handles thousands, beside `json` alone."""
    path, state = TopicPartition("orders", 0), LeaderAndIsr(1, (1, 2, 3), 4, 5, 6)
    encoded = TopicPartitionStateZNode.encode(state)
    decoded = json.loads(encoded)
    for name, ours, alone in (
        ("written", lambda: TopicPartitionStateZNode.encode(state), lambda: json.dumps(decoded)),
        ("read", lambda: TopicPartitionStateZNode.decode(encoded, 7, path), lambda: json.loads(encoded)),
    ):
        taken, least = (min(timeit.repeat(call, number=1000, repeat=TIMES)) * 1000 for call in (ours, alone))
        yield Figure(
            f"a `state` znode {name}", f"{taken:.1f} µs", f"json alone: {least:.1f} µs, ratio {taken / least:.2f}"
        )


def measure() -> Iterator[Figure]:
    plain = median(timers, TIMES)
    runs = [failure() for _ in range(TIMES)]
    records, rate = runs[0][0], statistics.median(count / taken for count, taken in runs)
    beside = (
        f"{records:,} records; a plain virtual loop: {plain:,.0f} timers/s, ratio {rate / plain:.2f}; aim: 100,000/s"
    )
    yield Figure(f"a broker fails, {PARTITIONS:,} partitions, 3 replicas", f"{rate:,.0f} records/s", beside)
    yield from states()
