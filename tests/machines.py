"""A running controller whose state machines can be put into any state and asked for any move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from labs import acting

from kafka_ctl import Lab
from kafka_ctl.cluster import Replica, ReplicaAssignment, TopicPartition
from kafka_ctl.controller.context import Context
from kafka_ctl.controller.controller import Controller
from kafka_ctl.trace import Record
from kafka_ctl.zookeeper.store import Create
from kafka_ctl.zookeeper.znodes import TopicZNode


class Bench:
    """A lab with one topic, `orders`, of three partitions, all led by broker 1; 2 and 3 follow."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        lab.create_topic("orders", assignment={0: [1, 2, 3], 1: [1, 2, 3], 2: [1, 2, 3]})
        lab.settle()

    @property
    def controller(self) -> Controller:
        return acting(self.lab)

    @property
    def context(self) -> Context:
        return self.controller.context

    def plan(self, topic: str, replicas: Sequence[int] = (1, 2, 3)) -> TopicPartition:
        """A partition with its assignment, in the controller's picture and in ZooKeeper, and nothing more."""
        self.context.topics[topic] = {0: ReplicaAssignment(tuple(replicas))}
        data = TopicZNode.encode({0: tuple(replicas)})
        self.lab.world.clock.run(self.controller.zk.write(Create(TopicZNode.path(topic), data)))
        self.lab.settle()
        return TopicPartition(topic, 0)

    def partitions(self, partitions: Sequence[TopicPartition], target: Any, *strategy: Any) -> list[Record]:
        """Ask the partition state machine for a move; returns what it did at once."""
        return self.carry_out(self.controller.partition_machine.handle(partitions, target, *strategy))

    def replicas(self, replicas: Sequence[Replica], target: Any) -> list[Record]:
        """Ask the replica state machine for a move; returns what it did at once."""
        return self.carry_out(self.controller.replica_machine.handle(replicas, target))

    def carry_out(self, work: Any) -> list[Record]:
        """Let the controller do this; returns what it did at once."""
        seen = len(self.lab.trace)
        self.lab.world.clock.run(work)
        return [r for r in self.lab.trace[seen:] if r.kind != "violation"]  # a state out of nowhere breaks some


@contextmanager
def bench(generation: str = "2.0", **settings: Any) -> Iterator[Bench]:
    """A `Bench` in a lab of its own."""
    with Lab(brokers=3, generation=generation, seed=1, **settings) as lab:
        yield Bench(lab)


def requests(records: Sequence[Record]) -> list[tuple[str, str, int | None]]:
    """The partition states put into batches: (request, partition, receiver)."""
    return [(r.action, f"{r.topic}-{r.partition}", r.broker) for r in records if r.kind == "request" and r.topic]
