"""Partitions without a leader and changes of ISRs in one trace of logs, without Spark.

The controller's view: an interval begins when a controller notices, and a leader's own change of an ISR is not seen
before a controller has read it. `questions/unavailability.py` asks the same of many histories.

Separate from `log_report.py` because it computes, and that file writes sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.history.lives import begun, elections, terms
from kafka_ctl.partition import PartitionState
from kafka_ctl.trace.record import SET, Record

DEPARTURES = ("lost", "controlled-shutdown")
"""The records by which a log says that a broker leaves."""


class Outage(NamedTuple):
    """An interval without a leader; `cause` is the departure or the election behind it, `end` None if it goes on."""

    partition: TopicPartition
    begin: Record
    end: Record | None
    cause: Record | None
    refused: bool
    """True if an election failed in it."""

    @property
    def ms(self) -> float:
        """Its length; without an end it is infinite."""
        return float("inf") if self.end is None else self.end.time_ms - self.begin.time_ms


class Outages:
    """The intervals of a trace, record by record; where epochs are missing, what was known ends."""

    def __init__(self, epochs: Mapping[int, int | None]) -> None:
        self.epochs = epochs
        """By the `seq` of each announcement of a controller: the epoch that it announces."""
        self.found: list[Outage] = []
        self.open: dict[TopicPartition, Outage] = {}
        self.led: dict[TopicPartition, Record] = {}
        self.departed: dict[int, Record] = {}
        self.elected: Record | None = None
        self.epoch: int | None = None

    def take(self, record: Record) -> None:
        """Take one record into account."""
        if record.kind == "broker" and record.action in DEPARTURES and record.broker is not None:
            self.departed[record.broker] = record
        elif record.seq in self.epochs:
            self._elected(record)
        elif record.kind == "partition" and record.action != SET and record.topic is not None:
            self._moved(record)

    def _elected(self, record: Record) -> None:
        self.elected, epoch = record, self.epochs[record.seq]
        if epoch is not None and self.epoch is not None and epoch != self.epoch + 1:
            self.found += self.open.values()
            for known in (self.open, self.led, self.departed):
                known.clear()
        self.epoch = self.epoch if epoch is None else epoch

    def _moved(self, record: Record) -> None:
        tp = record.tp
        if record.error is not None:
            if record.source in (PartitionState.OFFLINE, PartitionState.NEW):
                self.open[tp] = (self.open.get(tp) or self._begun(record, self._cause(tp)))._replace(refused=True)
        elif record.target == PartitionState.OFFLINE:
            self.open.setdefault(tp, self._begun(record, self._cause(tp)))
        elif record.target == PartitionState.NON_EXISTENT:
            self.open.pop(tp, None)
        elif record.target == PartitionState.ONLINE:
            begun = self.open.pop(tp, None)
            # Where the move to Offline is not logged (INFO since 2.6), the departure of the leader is the beginning.
            if begun is None and record.source == PartitionState.OFFLINE and (cause := self._cause(tp)) is not None:
                begun = self._begun(cause, cause)._replace(partition=tp)
            if begun is not None:
                self.found.append(begun._replace(end=record))
            self.led[tp] = record

    def _begun(self, record: Record, cause: Record | None) -> Outage:
        return Outage(record.tp, record, None, cause, False)

    def _cause(self, tp: TopicPartition) -> Record | None:
        """The departure of the broker that led, or else the last election of a controller."""
        led = self.led.get(tp)
        left = self.departed.get(led.leader) if led is not None and led.leader is not None else None
        return left if left is not None and led is not None and left.seq > led.seq else self.elected


def outages(records: Sequence[Record]) -> list[Outage]:
    """All intervals in which a partition had no leader, in the order of their ends; those that go on come last."""
    seen = Outages({record.seq: epoch for record, epoch in terms(elections(records))})
    for record in records:
        seen.take(record)
    return [*seen.found, *seen.open.values()]


class IsrChange(NamedTuple):
    """A change of an ISR as the logs show it first, and the brokers that left or joined."""

    record: Record
    brokers: frozenset[int]


def isr_changes(records: Sequence[Record]) -> list[IsrChange]:
    """The changes of ISRs in order; a state that is older than a known one does not count.

    Some lines of 0.10 have no version of it: then a controller's count, in which the states are in order.
    """
    known: dict[TopicPartition, tuple[tuple[int, int], tuple[int, ...]]] = {}
    found, firsts = [], begun(records)
    for record in records:
        if record.seq in firsts:
            known.clear()
        if record.kind == "partition" and record.source in (PartitionState.NON_EXISTENT, PartitionState.NEW):
            known.pop(record.tp, None)  # a topic that is made again begins with the first epoch and version
        if record.isr is None or record.topic is None or record.leader_epoch is None:
            continue
        version = record.leader_epoch, record.zk_version or 0
        before = known.get(record.tp)
        unversioned = record.zk_version is None and record.actor.startswith("controller-")
        if before is None or version > before[0] or (unversioned and version[0] == before[0][0]):
            known[record.tp] = max(version, before[0]) if before else version, record.isr
            changed = frozenset(before[1]) ^ frozenset(record.isr) if before else frozenset[int]()
            if changed:
                found.append(IsrChange(record, changed))
    return found
