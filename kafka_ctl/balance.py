"""The automatic rebalance: the leaderships that it gives back, as pure functions.

Partitions are grouped by the broker they *prefer*, the first of their assignment. If other brokers lead more than a
percentage of a group, the check elects all misplaced partitions of the group but these:

    deleting      the topic is to be deleted
    moving        a reassignment is running, of whatever partition
    not in sync   the preferred replica is not in the ISR (since 2.6, KAFKA-9866)
    dead          its broker is not live

Kafka 2.0.1: controller/KafkaController.scala, checkAndTriggerAutoLeaderRebalance
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from kafka_ctl.cluster import NO_LEADER

DELETING, MOVING, NOT_IN_SYNC, DEAD = "deleting", "moving", "not in sync", "dead"


class Candidate(NamedTuple):
    """A partition as the check sees it."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    """A broker id, -1 while the partition has no leader, or None if it has never had one."""
    deleting: bool = False
    """True if its topic is to be deleted."""

    @property
    def preferred(self) -> int:
        """The first replica of the assignment."""
        return self.replicas[0]

    def __repr__(self) -> str:
        deleting = ", deleting" if self.deleting else ""
        return f"<{self.topic}-{self.partition} {self.replicas} isr {self.isr} leader {self.leader}{deleting}>"


class BrokerBalance(NamedTuple):
    """A check's finding about one broker: numbers of partitions, their ratio, and the verdict.

    `prefers` are those whose preferred replica is here, `leads` those that are led here, `misplaced` those that prefer
    this broker and are led by another one. `verdict` is what the check does.
    """

    broker: int
    prefers: int
    leads: int
    misplaced: int
    ratio: float
    verdict: str


def left_out(partition: Candidate, live: Collection[int], moving: Collection[object], in_sync: bool) -> str | None:
    """The reason to leave out a misplaced partition, or None. `in_sync`: whether its preferred replica must be."""
    if partition.deleting:
        return DELETING
    if moving:
        return MOVING
    if in_sync and partition.preferred not in partition.isr:
        return NOT_IN_SYNC
    return DEAD if partition.preferred not in live else None


def by_preferred(partitions: Iterable[Candidate]) -> dict[int, list[Candidate]]:
    """The partitions by the broker that they prefer."""
    groups: dict[int, list[Candidate]] = {}
    for each in partitions:
        groups.setdefault(each.preferred, []).append(each)
    return groups


def candidates(
    partitions: Iterable[Candidate],
    live: Collection[int],
    moving: Collection[object],
    percentage: float,
    in_sync: bool = True,
) -> list[Candidate]:
    """The partitions whose preferred replicas a check elects.

    `moving` are the partitions under reassignment, `percentage` is `leader.imbalance.per.broker.percentage`.
    """
    chosen = []
    for broker, group in by_preferred(each for each in partitions if not each.deleting).items():
        misplaced = [each for each in group if each.leader not in (None, broker)]
        if len(misplaced) / len(group) > percentage / 100:
            chosen += [each for each in misplaced if left_out(each, live, moving, in_sync) is None]
    return chosen


def balance(
    partitions: Iterable[Candidate],
    live: Collection[int],
    moving: Collection[object],
    percentage: float,
    in_sync: bool = True,
) -> list[BrokerBalance]:
    """The findings and acts of a check, for every broker that leads, is preferred or is live, by id."""
    known = [each for each in partitions if not each.deleting]
    groups = by_preferred(known)
    found = []
    for broker in sorted({*groups, *live, *(each.leader for each in known if each.leader is not None)} - {NO_LEADER}):
        group = groups.get(broker, [])
        misplaced = [each for each in group if each.leader not in (None, broker)]
        ratio = len(misplaced) / len(group) if group else 0.0
        verdict = _verdict(misplaced, ratio, percentage, [left_out(each, live, moving, in_sync) for each in misplaced])
        leads = sum(each.leader == broker for each in known)
        found.append(BrokerBalance(broker, len(group), leads, len(misplaced), ratio, verdict if group else "not asked"))
    return found


def _verdict(misplaced: list[Candidate], ratio: float, percentage: float, reasons: list[str | None]) -> str:
    """The verdict of the check about one broker, with its reason."""
    if not misplaced:
        return "nothing to do"
    if ratio <= percentage / 100:
        return f"nothing: {ratio:.3g} is not above {percentage / 100:g}"
    found = [f"elects {reasons.count(None)}"] if None in reasons else []
    explained = {
        MOVING: "a reassignment is running",
        NOT_IN_SYNC: "the preferred replica is not in the ISR",
        DEAD: "the broker is dead",
    }
    found += [f"leaves out {reasons.count(why)}: {text}" for why, text in explained.items() if why in reasons]
    return ", ".join(found)
