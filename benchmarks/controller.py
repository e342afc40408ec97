"""The costs of the controller's three great tasks: a broker fails, the controller fails, a broker leaves in good order.

Three brokers, and each has a copy of every partition. In memory the clock shows what a cluster would need with the
latencies of `kafka_ctl/latencies.py`; on a real ZooKeeper it is the wall's. The published ladder
(KAFKA-5642): with one operation at a time a controlled shutdown grows by two round trips a partition, with ten in
flight by a fifth of one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.figures import Figure
from kafka_ctl import Generation, Lab
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.latencies import Costs
from kafka_ctl.trace import Record

SIZES = {"memory": (1_000, 10_000, 50_000), "embedded": (1_000, 10_000)}
QUIET = {"auto.leader.rebalance.enable": False}
CALM = QUIET | {"zookeeper.session.timeout.ms": 30_000, "replica.lag.time.max.ms": 60_000}
"""Limits for real time, so that no broker counts as dead, or as slow, because the machine is busy."""
MEASURED = {"memory": tuple(GENERATIONS), "embedded": tuple(GENERATIONS)}
QUICK = {
    "SIZES": {"memory": (30, 60), "embedded": (10,)},
    "MEASURED": {"memory": tuple(GENERATIONS), "embedded": ("2.0",)},
    "CALM": QUIET | {"zookeeper.session.timeout.ms": 3_000, "replica.lag.time.max.ms": 4_000},
}
PATIENCE = 600.0
"""Seconds in which any lab here comes to rest."""


class Task(NamedTuple):
    """A command to a lab, and the records between which the controller works on it."""

    name: str
    act: Callable[[Lab, int], object]
    to_controller: bool
    begins: Callable[[Record], bool]
    ends: Callable[[Record], bool]


TASKS = (
    Task(
        "broker failure",
        Lab.kill,
        False,
        lambda r: r.kind == "watch" and r.path == "/brokers/ids",
        lambda r: r.kind == "replica" and r.target == "OfflineReplica",
    ),
    Task(
        "controller failover",
        Lab.kill,
        True,
        lambda r: r.kind == "watch" and r.path == "/controller",
        lambda r: r.kind == "controller" and r.action == "ready",
    ),
    Task(
        "controlled shutdown",
        Lab.shutdown,
        False,
        lambda r: r.action == "ControlledShutdown",
        lambda r: r.kind == "broker" and r.action == "controlled-shutdown",
    ),
)


class Cost(NamedTuple):
    """Seconds on the lab's clock, ZooKeeper operations of the controller, seconds until the lab had settled."""

    seconds: float
    operations: int
    taken: float


def cost(
    task: Task,
    generation: str | Generation,
    partitions: int,
    zookeeper: str = "memory",
    config: Mapping[str, Any] | None = None,
) -> Cost:
    """The cost of a task with so many partitions, each of which has a copy on each of three brokers."""
    config = config or (QUIET if zookeeper == "memory" else CALM)
    with Lab(brokers=3, generation=generation, seed=7, zookeeper=zookeeper, config=config) as lab:
        lab.create_topic("orders", partitions=partitions, replication_factor=3)
        lab.settle(PATIENCE)
        assert lab.controller is not None
        old = lab.controller.id
        victim = old if task.to_controller else next(id for id in lab.brokers if id != old)
        before, began = len(lab.trace), time.perf_counter()
        task.act(lab, victim)
        lab.settle(PATIENCE)
        taken = time.perf_counter() - began
        assert lab.controller is not None
        records = list(lab.trace)[before:]
        first = next(n for n, record in enumerate(records) if task.begins(record))
        last = max(n for n, record in enumerate(records) if task.ends(record))
        session = f"broker-{lab.controller.id}"
        operations = sum(r.kind == "zk" and r.actor == session for r in records[first:last])
        return Cost((records[last].time_ms - records[first].time_ms) / 1000, operations, taken)


def trips_a_partition(generation: str | Generation, few: int, many: int) -> float:
    """By how many ZooKeeper round trips a controlled shutdown grows with each partition, on the virtual clock."""
    task = TASKS[-1]
    growth = cost(task, generation, many).seconds - cost(task, generation, few).seconds
    return growth / (many - few) / Costs().zookeeper_round_trip


def measure() -> Iterator[Figure]:
    for zookeeper, sizes in SIZES.items():
        unit = "virtual" if zookeeper == "memory" else "on a real ZooKeeper"
        for task in TASKS:
            for generation in MEASURED[zookeeper]:
                costs = [cost(task, generation, size, zookeeper) for size in sizes]
                name = f"{task.name}, {generation}, {' / '.join(f'{size:,}' for size in sizes)} partitions"
                beside = f"{' / '.join(f'{c.operations:,}' for c in costs)} ZooKeeper operations"
                if zookeeper == "memory":
                    growth = (costs[-1].seconds - costs[0].seconds) / (sizes[-1] - sizes[0])
                    beside += f"; {growth / Costs().zookeeper_round_trip:.2f} round trips a partition"
                    beside += f"; simulated in {' / '.join(f'{c.taken:.1f}' for c in costs)} s"
                yield Figure(name, f"{' / '.join(f'{c.seconds:.2f}' for c in costs)} s {unit}", beside)
