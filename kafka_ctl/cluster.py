"""The nouns of the controller: topic-partitions, replicas, brokers, leaders and assignments.

All are plain immutable values. Numbers follow Kafka: ids are non-negative integers, epochs start at 0
(controller epochs at 1), and `NO_LEADER` stands for a partition without a leader.
Kafka 2.0.1: api/LeaderAndIsr.scala, LeaderAndIsr; cluster/Broker.scala, Broker
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import NamedTuple

from kafka_ctl.errors import BadInput, short

NO_LEADER = -1
"""The leader of a partition that has none."""
LEADER_DURING_DELETE = -2
"""The leader announced to brokers while the topic is being deleted."""


OFFSETS_TOPIC, TRANSACTIONS_TOPIC = INTERNAL = "__consumer_offsets", "__transaction_state"
"""Kafka's own topics, to which no client writes: of groups and their offsets, and of transactions."""


class TopicPartition(NamedTuple):
    """One partition of one topic; prints as Kafka prints it, `orders-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Replica(NamedTuple):
    """One copy of a partition on one broker."""

    topic: str
    partition: int
    broker: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.broker}"


def usual_port(broker: int) -> int:
    """The port of a broker of a lab, where none listens: 9093 for broker 1."""
    return 9092 + broker % (65536 - 9092)


class Broker(NamedTuple):
    """A registered broker: the data of `/brokers/ids/N`, with the czxid of that znode as its epoch."""

    id: int
    host: str = "127.0.0.1"
    port: int = 9092
    rack: str | None = None
    epoch: int = -1


class LeaderAndIsr(NamedTuple):
    """The leader and the ISR of a partition, as stored in its `state` znode.

    `isr` keeps the order of the znode. `zk_version` is the data version of that znode. `controller_epoch` is the epoch
    of the last controller that wrote it; a leader that writes a new ISR keeps it.
    """

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    zk_version: int = 0
    controller_epoch: int = 0

    def led_by(self, leader: int, isr: Iterable[int]) -> LeaderAndIsr:
        """The next state under a new leader and ISR: the leader epoch rises by one."""
        return LeaderAndIsr(leader, tuple(isr), self.leader_epoch + 1, self.zk_version, self.controller_epoch)


class ReplicaAssignment(NamedTuple):
    """The replicas (AR) of one partition and, during a reassignment, those on their way in and out.

        from kafka_ctl import ReplicaAssignment
        moving = ReplicaAssignment((1, 2, 3)).reassign_to((3, 4))
        moving.replicas  # (3, 4, 1, 2)
        moving.adding, moving.removing  # ((4,), (1, 2))
        moving.target  # (3, 4)

    The first replica is the preferred leader. `adding` and `removing` are empty unless a KIP-455
    reassignment runs; then `replicas` holds the union of the old and the new ones.
    Kafka 2.4.1: controller/ControllerContext.scala, ReplicaAssignment
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment (RAR)."""
        return tuple(r for r in self.replicas if r not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment (OAR)."""
        return tuple(r for r in self.replicas if r not in self.adding)

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    def reassign_to(self, target: Iterable[int]) -> ReplicaAssignment:
        """The assignment on the way to `target`: target first, then what is still to leave.

        As Kafka's `reassignTo` it checks nothing: no replicas and duplicates are refused before it is asked.
        """
        wanted = tuple(target)
        full = tuple(dict.fromkeys((*wanted, *self.origin)))
        return ReplicaAssignment(
            full,
            adding=tuple(r for r in full if r not in self.origin),
            removing=tuple(r for r in full if r not in wanted),
        )


def broker_ids(what: str, value: object) -> tuple[int, ...]:
    """The given broker ids; BadInput for what is not several, such as one id."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, (str, bytes, bytearray)) or not isinstance(value, Iterable):
        raise BadInput(f"{what} cannot be {short(value)}; they must be broker ids, such as [1, 2, 3]")
    return tuple(value)


def whole(value: object) -> int | None:
    """The value as an int if it is a whole number, also one of numpy; None for True, False and all else."""
    if isinstance(value, bool):
        return None
    return int(value) if isinstance(value, Integral) else None


def parse_int(text: str) -> int | None:
    """The number that a few plain digits write, None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None
