"""Topics and partitions that are created.

Kafka 2.0.1: controller/KafkaController.scala, TopicChange, PartitionModifications, onNewPartitionCreation
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_ctl.cluster import ReplicaAssignment, TopicPartition
from kafka_ctl.controller import listeners
from kafka_ctl.controller.environment import Environment
from kafka_ctl.controller.partition_machine import Strategy
from kafka_ctl.partition import NEW, ONLINE
from kafka_ctl.replica import NEW as NEW_REPLICA
from kafka_ctl.replica import ONLINE as ONLINE_REPLICA
from kafka_ctl.scala_order import case_hash, java_set_order, json_order, map_order, set_order_by, text_hash
from kafka_ctl.zookeeper.store import Set
from kafka_ctl.zookeeper.znodes import TopicPartitionsZNode, TopicsZNode, TopicZNode


async def topic_change(c: Environment) -> None:
    """The children of `/brokers/topics` changed: forget the deleted topics, bring the new ones online."""
    now = await c.zk.read_children(TopicsZNode.path())
    async with c.locked():
        await _topics_are(c, now)


async def _topics_are(c: Environment, now: list[str]) -> None:
    context = c.context
    new = [t for t in topic_names(c, now) if t not in context.topics]
    deleted = [t for t in context.topics if t not in now]
    if c.generation.single_threaded:
        listeners.watch_topics(c, new)
    assignments = await read_assignments(c, new)
    context.remove_topics(deleted)
    for topic in new:
        context.topics[topic] = {}
    partitions = _take(c, assignments, "topics_changed", new=new, deleted=deleted)
    if new and not c.generation.single_threaded:
        c.say("topic_creation", partitions=[str(tp) for tp in partitions])
        await listeners.subscribe_topics(c, new)
        await on_new_partitions(c, partitions)
    elif partitions:
        await on_new_partitions(c, partitions)


def topic_names(c: Environment, children: Iterable[str]) -> list[str]:
    """The topics that were read, in the order in which they are gone through."""
    return set_order_by(java_set_order(children), text_hash) if c.context.in_tables else list(children)


async def read_assignments(c: Environment, topics: Iterable[str]) -> dict[str, dict[int, ReplicaAssignment]]:
    """The assignments of these topics; where that matters, in the order in which 0.10 reads them."""
    if not c.context.in_tables:
        return await c.zk.assignments(topics)
    found = await c.zk.assignments(topics, ascending=False)
    return {topic: {n: numbers[n] for n in json_order(numbers)} for topic, numbers in found.items()}


async def partition_modifications(c: Environment, topic: str) -> None:
    """The assignment of a topic changed: bring the partitions online that were not there before."""
    async with c.locked():
        assignment = (await read_assignments(c, [topic])).get(topic, {})
        if c.context.in_tables:  # what is new is a copy of a part of this table
            walked = map_order((TopicPartition(topic, n) for n in assignment), case_hash)
            assignment = {tp.partition: assignment[tp.partition] for tp in walked}
        await _partitions_are(c, topic, assignment)


async def _partitions_are(c: Environment, topic: str, assignment: dict[int, ReplicaAssignment]) -> None:
    added = {n: a for n, a in assignment.items() if not c.context.assigned(TopicPartition(topic, n))}
    if topic in c.context.topics_to_be_deleted:
        if added and not c.generation.restores_assignments:
            c.say("partitions_not_added", topic=topic, partitions=list(added))
        elif added:
            await _restore(c, topic, assignment, added)
        else:
            c.say("partition_change_ignored")
    elif added:
        await on_new_partitions(c, _take(c, {topic: added}, "partitions_added"))


async def _restore(c: Environment, topic: str, assignment: dict[int, ReplicaAssignment], added: Iterable[int]) -> None:
    """Partitions were added to a topic that is being deleted: write the assignment back as it was (KAFKA-6612).

    Since KIP-455 as the controller knows it, for whoever added the partitions may not know what is on its way.
    """
    c.say("partitions_not_added", topic=topic, partitions=list(added))
    c.say("restoring_assignment", topic=topic)
    existing = await c.zk.read_children(TopicPartitionsZNode.path(topic))
    kept = {n: a for n, a in assignment.items() if str(n) in existing}
    if c.generation.incremental_reassignment:
        kept = {n: c.context.assignment(TopicPartition(topic, n)) for n in kept}
    data = TopicZNode.encode(kept, c.generation.topic_version)
    (await c.zk.write(Set(TopicZNode.path(topic), data))).checked()


def _take(
    c: Environment, assignments: dict[str, dict[int, ReplicaAssignment]], message: str, **words: object
) -> list[TopicPartition]:
    """Take new partitions into the context."""
    partitions = c.context.add(assignments)
    named = {str(tp): list(c.context.assigned(tp)) for tp in partitions}
    c.say(message, **words, assignment=named)
    return partitions


async def on_new_partitions(c: Environment, partitions: list[TopicPartition]) -> None:
    """Four batches: partitions New, replicas New, partitions Online, replicas Online."""
    c.say("partition_creation", partitions=[str(tp) for tp in partitions])
    await c.partition_machine.handle(partitions, NEW)
    await c.replica_machine.handle(c.context.replicas_of(partitions), NEW_REPLICA)
    await c.partition_machine.handle(partitions, ONLINE, Strategy.OFFLINE)
    await c.replica_machine.handle(c.context.replicas_of(partitions), ONLINE_REPLICA)
