"""Whether a topic can get more partitions, and where they would go, as brokers check a CreatePartitions request.

Kafka 2.0.1, 2.4.1: server/AdminManager.scala, createPartitions; zk/AdminZkClient.scala, validateReplicaAssignment
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kafka_ctl.errors import ApiException
from kafka_ctl.wire.service import Service
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode

Assignments = Sequence[Sequence[int]] | None
"""The replicas of each new partition, in order; None where the broker is to choose."""


async def check_growth(
    service: Service, topic: str, count: int, given: Assignments
) -> dict[int, tuple[int, ...]] | None:
    """The new partitions as they were given, None where nothing was; ApiException where this cannot be."""
    zk = KafkaZkClient(service.broker.zk)
    per_topic = service.broker.generation.reassignment.incremental_reassignment
    if not per_topic and await zk.exists(ReassignPartitionsZNode.path()):
        raise ApiException("REASSIGNMENT_IN_PROGRESS", "A partition reassignment is in progress.")
    known = (await zk.assignments([topic])).get(topic, {})
    if per_topic and any(assignment.is_being_reassigned for assignment in known.values()):
        text = f"A partition reassignment is in progress for the topic '{topic}'."
        raise ApiException("REASSIGNMENT_IN_PROGRESS", text)
    _check_count(topic, known, count)
    if given is None:
        return None
    brokers = await zk.broker_ids()
    new = {len(known) + place: tuple(replicas) for place, replicas in enumerate(given)}
    unknown = sorted({broker for replicas in given for broker in replicas} - set(brokers))
    if unknown:
        _refuse(f"Unknown broker(s) in replica assignment: {_listed(unknown)}.")
    if len(given) != count - len(known):
        more = count - len(known)
        _refuse(f"Increasing the number of partitions by {more} but {len(given)} assignments provided.")
    _check_replicas(new, len(known[0].replicas) if 0 in known else 0)
    return new


def _check_count(topic: str, known: Collection[int], count: int) -> None:
    if not known:
        raise ApiException("UNKNOWN_TOPIC_OR_PARTITION", f"The topic '{topic}' does not exist.")
    if count < len(known):
        text = f"Topic currently has {len(known)} partitions, which is higher than the requested {count}."
        raise ApiException("INVALID_PARTITIONS", text)
    if count == len(known):
        raise ApiException("INVALID_PARTITIONS", f"Topic already has {len(known)} partitions.")


def _check_replicas(new: Mapping[int, Sequence[int]], factor: int) -> None:
    """Each new partition has replicas, none twice, as many as partition 0."""
    for number, replicas in new.items():
        if not replicas:
            _refuse(f"Cannot have replication factor of 0 for partition id {number}.")
        if len(set(replicas)) != len(replicas):
            twice = f"Duplicate brokers not allowed in replica assignment: {_listed(replicas)}"
            _refuse(f"{twice} for partition id {number}.")
    bad = {number: len(replicas) for number, replicas in new.items() if len(replicas) != factor}
    if bad:
        _refuse(
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
            f"[{_listed(bad)}] have replication factors [{_listed(bad.values())}], respectively."
        )


def _refuse(text: str) -> None:
    raise ApiException("INVALID_REPLICA_ASSIGNMENT", text)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
