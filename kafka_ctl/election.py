"""The next leader of a partition and its new ISR, as pure functions.

Each goes through the assigned replicas in order and takes the first one fit to lead. The order is that of the
assignment, so preferred replicas come first; only `head_of_isr` goes by the ISR. The functions differ in what "fit"
means:

    function                    the leader is the first    that is                       the ISR becomes
    offline_leader              assigned replica           live and in the ISR           its live members
    offline_leader, unclean     assigned replica           live                          the leader alone
    reassigned_leader           target replica             live and in the ISR           what it was
    preferred_leader            assigned (no other)        live and in the ISR           what it was
    controlled_shutdown_leader  assigned replica           live, in the ISR and staying  its staying members

0.10 has a fifth selector, NoOpLeaderSelector: it keeps leader and ISR, and stands where no election takes place.

None means that no replica qualifies: the partition stays as it is. The leader epoch rises with every election, even
when the same replica is elected again; the caller sees to that.

Kafka 2.0.1: controller/PartitionStateMachine.scala, PartitionLeaderElectionAlgorithms
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from kafka_ctl.cluster import broker_ids


class ElectionType(StrEnum):
    """The kinds of requested elections: of the first assigned replica, or of any live one, in sync or not.

    Kafka 2.4.1: clients common/ElectionType.java
    """

    PREFERRED = "PREFERRED"
    UNCLEAN = "UNCLEAN"


class Strategy(StrEnum):
    """The reason for which a leader is needed; it decides which replicas may lead and which brokers get the request."""

    OFFLINE = "offline"
    REASSIGN = "reassign"
    UNCLEAN = "unclean"
    """Offline, and asked for by an administrator: a replica out of sync may lead whatever the configuration says."""
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled-shutdown"


class Election(NamedTuple):
    """The leader and its first ISR; `unclean` if the leader was not in sync, so that records may be lost."""

    leader: int
    isr: tuple[int, ...]
    unclean: bool = False


def offline_leader(
    assignment: Iterable[int], isr: Iterable[int], live: Iterable[int], unclean: bool = False
) -> Election | None:
    """The partition has no leader, because its broker died or because it is new to this controller.

    Leader: the first assigned replica that is live and in the ISR; if there is none and `unclean` allows,
    the first that is live. ISR: its live members in its own order, after an unclean election the leader.
    Receivers: the live assigned replicas.
    Kafka 2.0.1: controller/PartitionStateMachine.scala, offlinePartitionLeaderElection
    """
    assigned, in_sync = broker_ids("assignment", assignment), broker_ids("isr", isr)
    alive = _alive(live)
    leader = first_of(assigned, in_sync, alive)
    if leader is not None:
        return Election(leader, tuple(replica for replica in in_sync if replica in alive))
    if unclean:
        for replica in assigned:
            if replica in alive:
                return Election(replica, (replica,), unclean=True)
    return None


def reassigned_leader(target: Iterable[int], isr: Iterable[int], live: Iterable[int]) -> Election | None:
    """The partition moves, and its leader is not among the brokers it moves to, or is dead.

    Leader: the first target replica that is live and in the ISR. ISR: unchanged, even if members are dead.
    Receivers: all target replicas, dead ones too.
    Kafka 2.0.1: controller/PartitionStateMachine.scala, reassignPartitionLeaderElection
    """
    in_sync = broker_ids("isr", isr)
    leader = first_of(broker_ids("target", target), in_sync, live)
    return None if leader is None else Election(leader, in_sync)


def preferred_leader(assignment: Iterable[int], isr: Iterable[int], live: Iterable[int]) -> Election | None:
    """An administrator or the automatic rebalance asks for the first assigned replica to lead again.

    Leader: the first assigned replica if it is live and in the ISR. ISR: unchanged, even if members are dead.
    Receivers: all assigned replicas, dead ones too.
    Kafka 2.0.1: controller/PartitionStateMachine.scala, preferredReplicaPartitionLeaderElection
    """
    in_sync = broker_ids("isr", isr)
    leader = first_of(broker_ids("assignment", assignment)[:1], in_sync, live)
    return None if leader is None else Election(leader, in_sync)


def controlled_shutdown_leader(
    assignment: Iterable[int], isr: Iterable[int], live: Iterable[int], shutting_down: Iterable[int]
) -> Election | None:
    """The leader is in a controlled shutdown. `live` counts the brokers that are shutting down too.

    Leader: the first assigned replica that is live, in the ISR and not shutting down. ISR: without any broker
    that is shutting down; dead members stay. Receivers: the live assigned replicas, with those shutting
    down (Kafka 1.1 to 2.0 left these out, KAFKA-7482).
    Kafka 2.0.1: controller/PartitionStateMachine.scala, controlledShutdownPartitionLeaderElection
    """
    leaving = frozenset(broker_ids("shutting_down", shutting_down))
    staying = tuple(replica for replica in broker_ids("isr", isr) if replica not in leaving)
    leader = first_of(broker_ids("assignment", assignment), staying, live)
    return None if leader is None else Election(leader, staying)


def head_of_isr(
    assignment: Iterable[int], isr: Iterable[int], live: Iterable[int], shutting_down: Iterable[int]
) -> Election | None:
    """The leader after a controlled shutdown, before KAFKA-3670: the first member of the ISR that stays."""
    in_sync = broker_ids("isr", isr)
    return controlled_shutdown_leader(in_sync, in_sync, in_sync, shutting_down)


def first_of(candidates: Iterable[int], isr: tuple[int, ...], live: Iterable[int]) -> int | None:
    """The first candidate that is live and in the ISR; None if there is none."""
    alive = _alive(live)
    for replica in candidates:
        if replica in alive and replica in isr:
            return replica
    return None


def _alive(live: Iterable[int]) -> frozenset[int]:
    return live if isinstance(live, frozenset) else frozenset(broker_ids("live", live))
