"""The creation of topics and partitions.

Kafka 2.0.1: controller/KafkaController.scala, TopicChange, PartitionModifications, onNewPartitionCreation
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_ctl.cluster import LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.controller import listeners
from kafka_ctl.controller.controller import Controller
from kafka_ctl.election import Strategy
from kafka_ctl.errors import NoNode
from kafka_ctl.partition import NEW, ONLINE
from kafka_ctl.replica import NEW as NEW_REPLICA
from kafka_ctl.replica import ONLINE as ONLINE_REPLICA
from kafka_ctl.scala_order import parsed
from kafka_ctl.zookeeper.znodes import TopicPartitionsZNode, TopicsZNode


async def topic_change(env: Controller) -> None:
    """The children of `/brokers/topics` changed: drop the deleted topics, bring the new ones online."""
    now = await env.zk.read_children(TopicsZNode.path())
    async with env.locked():
        context, at_once = env.context, env.generation.zookeeper.watches_before_reading
        known = context.all_topics
        new = [topic for topic in context.orders.in_order(now) if topic not in known]
        deleted = [topic for topic in known if topic not in now]
        if at_once:
            listeners.watch_topics(env, new)
        assignments = await read_assignments(env, new)
        context.remove_topics(deleted, vanished=True)
        for topic in new:
            context.topics.setdefault(topic, {})
        context.revived.difference_update(new)
        partitions = _take(env, assignments, "topics_changed", new=new, deleted=deleted)
        if new and not at_once:
            env.log("topic_creation", partitions=[str(tp) for tp in partitions])
            await listeners.subscribe_topics(env, new)
        if partitions or (new and not at_once):
            await on_new_partitions(env, partitions)


async def read_assignments(env: Controller, topics: Iterable[str]) -> dict[str, dict[int, ReplicaAssignment]]:
    """The assignments of these topics; in 0.10, in the order in which it reads them."""
    if env.generation.zookeeper.pipelined:
        return await env.zk.assignments(topics)
    return {topic: parsed(numbers) for topic, numbers in (await env.zk.assignments(topics, ascending=False)).items()}


async def partition_modifications(env: Controller, topic: str) -> None:
    """The assignment of a topic changed: bring the partitions online that were not there before."""
    async with env.locked():
        read = (await read_assignments(env, [topic])).get(topic, {})
        walked = env.context.orders.walked(TopicPartition(topic, number) for number in read)
        assignment = {tp.partition: read[tp.partition] for tp in walked}
        plain = {number: ReplicaAssignment(partition.replicas) for number, partition in read.items()}
        absent_is_empty = env.generation.reassignment.tolerates_deleted_topics
        known = env.context.assigned if absent_is_empty else env.context.has
        added = {tp.partition: plain[tp.partition] for tp in walked if not known(tp)}
        if topic not in env.context.topics_to_be_deleted:
            if added:
                await on_new_partitions(env, _take(env, {topic: added}, "partitions_added"))
        elif not added and env.generation.deletion.restores_assignments:
            env.log("partition_change_ignored")
        else:
            env.log("partitions_not_added", topic=topic, partitions=list(added))
            if env.generation.deletion.restores_assignments:
                await _restore(env, topic, assignment)


async def _restore(env: Controller, topic: str, assignment: dict[int, ReplicaAssignment]) -> None:
    """Partitions were added to a topic that is being deleted: write the assignment back as it was (KAFKA-6612).

    Since KIP-455 it is what the controller knows: the client that added the partitions may not know of a reassignment.
    """
    env.log("restoring_assignment", topic=topic)
    existing = await env.zk.read_children(TopicPartitionsZNode.path(topic))
    kept = {n: a for n, a in assignment.items() if str(n) in existing}
    if env.generation.reassignment.incremental_reassignment:
        kept = {n: env.context.assignment(TopicPartition(topic, n)) for n in kept}
    (await env.zk.set_assignment(topic, kept, env.generation.topic_version)).checked()


def _take(
    env: Controller, assignments: dict[str, dict[int, ReplicaAssignment]], message: str, **fields: object
) -> list[TopicPartition]:
    """Take new partitions into the context."""
    partitions = env.context.add(assignments)
    if env.generation.deletion.partitions_leave_first:  # since then it is the topic that is to be deleted
        queued = env.context.topics_to_be_deleted
        env.context.partitions_to_be_deleted |= {tp for tp in partitions if tp.topic in queued}
    env.log(message, **fields, assignment={str(tp): list(env.context.assigned(tp)) for tp in partitions})
    return partitions


async def on_new_partitions(env: Controller, partitions: list[TopicPartition]) -> None:
    """Four batches: partitions New, replicas New, partitions Online, replicas Online."""
    env.log("partition_creation", partitions=[str(tp) for tp in partitions])
    await env.partition_machine.handle(partitions, NEW)
    await env.replica_machine.handle(env.context.replicas_of(partitions), NEW_REPLICA)
    await env.partition_machine.handle(partitions, ONLINE, Strategy.OFFLINE)
    await env.replica_machine.handle(env.context.replicas_of(partitions), ONLINE_REPLICA)


async def refresh_leadership(env: Controller, partitions: Iterable[TopicPartition]) -> None:
    """Read the `state` znodes of these partitions into the cache."""
    found = await env.zk.states(partitions)
    for tp in env.context.orders.walked(found):
        state = found[tp]
        if isinstance(state, LeaderAndIsr):
            env.context.leadership[tp] = state
        elif not isinstance(state, NoNode):
            raise state
