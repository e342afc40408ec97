"""The gauges of a cluster at one moment: partitions without a leader and since when, under-replicated ones, requests.

Kafka 2.0.1: controller/KafkaController.scala, offlinePartitionCount; cluster/Partition.scala, isUnderReplicated. Unlike
the controller's count, these follow ZooKeeper and the brokers that run: they also change while no broker is controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.seen import Key
from kafka_ctl.views.cluster.travel import Waits
from kafka_ctl.views.dot import printable
from kafka_ctl.views.status import controller_epoch, named_controller

NAMED = 2
"""The most partitions without a leader that are named."""


class Gauge(NamedTuple):
    """A name, the value that is shown before it, and `bad`, `warn` or nothing."""

    name: str
    value: str
    level: str = ""


class Leaderless:
    """Partitions without a leader in a model that moves on, and the time in milliseconds since when."""

    def __init__(self) -> None:
        self.since: dict[Key, float] = {}

    def at(self, model: ClusterModel, now: float) -> dict[Key, float]:
        """Partition -> since when; those of topics that are to be deleted are left out."""
        silent = {NO_LEADER, *(broker.id for broker in model.brokers.values() if broker.is_gone)}
        deleted = model.topics_to_be_deleted
        self.since = {
            key: self.since.get(key, now)
            for key, seen in model.partitions.items()
            if seen.leader in silent and key[0] not in deleted and model.members(key)
        }
        return self.since


def seconds(since: float, now: float) -> str:
    """The time that has passed: `3.2 s`."""
    return f"{max(0.0, now - since) / 1000:.1f} s"


class Gauges:
    """The gauges of a trace, from step to step."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.leaderless, self.waits = Leaderless(), Waits(records)

    def at(self, model: ClusterModel, now: float) -> list[Gauge]:
        """The gauges of a model; none if no broker has been seen."""
        if not model.brokers:
            return []
        lost = self.leaderless.at(model, now)
        named = [f"{topic}-{partition} for {seconds(since, now)}" for (topic, partition), since in lost.items()]
        more = [f"{len(lost) - NAMED} more"] if len(lost) > NAMED else []
        names = f": {', '.join(named[:NAMED] + more)}" if lost else ""
        behind = sum(
            len(seen.isr) < len(seen.replicas)
            for key, seen in model.partitions.items()
            if seen.leader is not None and key not in lost
        )
        pending = sum(1 for _ in self.waits.at(model.seq))
        return [
            Gauge(printable(f"offline{names}"), str(len(lost)), "bad" if lost else ""),
            Gauge("under-replicated", str(behind), "warn" if behind else ""),
            _controller(model),
            Gauge("pending requests", str(pending), "warn" if pending else ""),
        ]


def _controller(model: ClusterModel) -> Gauge:
    """The broker that acts as controller, and its epoch."""
    number, context = model.controller, model.context_of(model.controller)
    if number is None or (context is not None and not context.acts):
        named = named_controller(model)
        return Gauge("controller" + (f": /controller names {named}" if named is not None else ""), "no", "bad")
    epoch = controller_epoch(model)
    return Gauge("" if epoch is None else f"at epoch {epoch}", f"controller {number}")
