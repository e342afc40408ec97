"""Topic deletion: a request under `/admin/delete_topics`; replicas are stopped and deleted, then the znodes.

Deletion waits while a replica is on a dead broker or could not be deleted (the topic is *ineligible*), and goes on when
that is over, also under the next controller. It should also wait for a reassignment, but Kafka checks for one before it
queues the topic, so the check has no effect; only a new controller that finds both postpones the deletion.
Kafka 2.0.1: controller/TopicDeletionManager.scala, TopicDeletionManager
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from kafka_ctl.cluster import Replica, TopicPartition
from kafka_ctl.controller.controller import Controller
from kafka_ctl.controller.process import Thread
from kafka_ctl.errors import StateChangeFailed
from kafka_ctl.partition import NON_EXISTENT, OFFLINE
from kafka_ctl.replica import INELIGIBLE, STARTED, SUCCESSFUL
from kafka_ctl.replica import NON_EXISTENT as NON_EXISTENT_REPLICA
from kafka_ctl.replica import OFFLINE as OFFLINE_REPLICA
from kafka_ctl.zookeeper.store import Delete
from kafka_ctl.zookeeper.znodes import ConfigEntityZNode, DeleteTopicsTopicZNode, DeleteTopicsZNode, TopicZNode

COMPLETE, WAIT, START = "complete", "wait", "start"
"""The next step for a topic that is to be deleted."""
REASSIGNING, FAILED, DEAD = "topic reassignment in progress", "replica deletion failure", "offline replicas"
ELECTING = "preferred replica election in progress"
"""The reason why a deletion is halted."""


def enabled(env: Controller) -> bool:
    return bool(env.config["delete.topic.enable"])


async def initialize(env: Controller) -> None:
    """At failover: take over the deletions that are under way."""
    context = env.context
    wanted = context.orders.in_order(await env.zk.read_children(DeleteTopicsZNode.path()))
    replicas = context.replicas_of(context.all_partitions())
    blocked = {r.topic for r in replicas if not context.online(r.broker, r.topic_partition)}
    blocked |= {tp.topic for tp in (*context.reassigning, *context.preferred_elections)}
    env.log("topics_to_be_deleted", topics=wanted)
    env.log("topics_ineligible", topics=sorted(blocked))
    env.log("initializing_deletion", topics=wanted, ineligible=sorted(blocked))
    if enabled(env):
        _queue(env, wanted)
        context.topics_ineligible = blocked & context.topics_to_be_deleted.keys()
    else:
        env.log("deletion_disabled", topics=wanted)
        await _forget_requests(env, wanted)


async def topic_deletion(env: Controller) -> None:
    """The children of `/admin/delete_topics` changed."""
    wanted = env.context.orders.in_order(await env.zk.read_children(DeleteTopicsZNode.path()))
    async with env.locked():
        await _requested(env, wanted)


async def _requested(env: Controller, wanted: list[str]) -> None:
    known = env.context.all_topics
    if unknown := [t for t in wanted if t not in known]:
        env.log("deleting_unknown_topics", topics=unknown)
        await _forget_requests(env, unknown)
    topics = [t for t in wanted if t in known]
    if not enabled(env):
        env.log("deletion_disabled", topics=topics)
        await _forget_requests(env, topics)
    elif topics:
        env.log("starting_deletion", topics=topics)
        busy = {tp.topic for tp in (*env.context.reassigning, *env.context.preferred_elections)}
        waits = env.generation.deletion.deletion_waits_for_reassignment  # else a new request is not halted
        queued, usual = tuple(env.context.topics_to_be_deleted), partial(_waiting, waits=waits)
        waiting = env.plugins.rule("waiting", usual)(tuple(topics), queued, frozenset(busy))
        _queue(env, topics)
        for topic in waiting:
            halt(env, [topic], REASSIGNING)
        await resume_deletions(env)


def _waiting(asked: Iterable[str], queued: Collection[str], moving: Collection[str], waits: bool) -> list[str]:
    """The topics that are to be deleted and have to wait."""
    return [topic for topic in asked if topic in moving and (waits or topic in queued)]


def _queue(env: Controller, topics: Iterable[str]) -> None:
    for topic in topics:
        env.context.topics_to_be_deleted[topic] = None
        env.context.partitions_to_be_deleted |= set(env.context.partitions_of(topic))


async def _forget_requests(env: Controller, topics: Iterable[str]) -> None:
    for topic in topics:
        await env.zk.write(Delete(DeleteTopicsTopicZNode.path(topic)))


def halt(env: Controller, topics: Iterable[str], reason: str) -> None:
    """Mark those of the topics that are to be deleted as ineligible."""
    halted = sorted(set(topics) & env.context.topics_to_be_deleted.keys())
    env.context.topics_ineligible |= set(halted)
    if enabled(env) and halted:
        env.log("deletion_halted", topics=halted, reason=reason)


async def resume(env: Controller, topics: Iterable[str]) -> None:
    """End the halt of these topics."""
    if again := set(topics) & env.context.topics_to_be_deleted.keys():
        env.context.topics_ineligible -= again
        await resume_deletions(env)


async def resume_deletions(env: Controller) -> None:
    """Look at the queued topics now, or, if a thread does that, notify the thread."""
    if not enabled(env):
        return
    if env.generation.deletion.has_own_thread:
        env.deletion_wanted.set()
    else:
        await check_topics(env)


def start_thread(env: Controller) -> None:
    """The delete-topics thread of 0.10: it looks at the topics whenever it is notified, under the lock.

    Kafka 0.10.2.2: controller/TopicDeletionManager.scala, DeleteTopicsThread
    """

    async def wait() -> None:
        await env.deletion_wanted.wait()
        env.deletion_wanted.clear()

    async def work() -> None:
        async with env.locked():
            await check_topics(env)

    env.deletion_wanted.clear()
    if enabled(env):
        env.threads.append(Thread(env, wait, work))
        if env.context.topics_to_be_deleted:
            env.deletion_wanted.set()


async def check_topics(env: Controller) -> None:
    """Check for each queued topic if its deletion is complete, under way, or can be started (again)."""
    context, leave_first = env.context, env.generation.deletion.partitions_leave_first
    queued = list(context.topics_to_be_deleted)
    if queued:
        env.log("handling_deletion", topics=queued)
    for topic in queued:
        started, move = context.replicas_in(topic, STARTED), _move(env, topic)
        if move == COMPLETE:
            await _complete(env, topic)
            env.log("deletion_completed", topic=topic)
        elif started:
            if not leave_first:
                brokers, partitions = {r.broker for r in started}, {str(r.topic_partition) for r in started}
                env.log("deletion_in_progress", topic=topic, replicas=sorted(brokers), partitions=sorted(partitions))
        elif failed := context.replicas_in(topic, INELIGIBLE):
            env.log("retrying_deletion", topic=topic, replicas=[list(r) for r in failed])
            await env.replica_machine.handle(failed, OFFLINE_REPLICA)
        if topic in context.topics_ineligible and not leave_first:
            env.log("deletion_ineligible", topic=topic)
        if move == START:
            env.log("deletion_started", topic=topic)
            await _begin(env, topic)


def next_move(states: Mapping[tuple[int, int], str], alive: Iterable[int], halted: bool) -> str:
    """The next step for a topic that is to be deleted; `states` are those of its replicas, by partition and broker.

    `complete`: forget it and delete its znodes. `start`: stop and delete the replicas on live brokers. `wait`: nothing
    now, as answers are missing or its deletion is halted.
    """
    if all(state == SUCCESSFUL.value for state in states.values()):
        return COMPLETE
    return WAIT if halted or STARTED.value in states.values() else START


def _move(env: Controller, topic: str) -> str:
    """The next move, by Kafka's rule or a plug-in.

    Raises StateChangeFailed at a replica without a state; since 2.0 only if none before it is being deleted.
    Kafka 0.10.2.2, 2.0.1: controller/ReplicaStateMachine.scala, areAllReplicasForTopicDeleted
    """
    context, replicas = env.context, env.context.replicas_of_topic(topic)
    for r in replicas:
        if r not in context.replicas:
            raise StateChangeFailed(f"key not found: [Topic={topic},Partition={r.partition},Replica={r.broker}]")
        if context.replicas[r] is STARTED and not env.generation.deletion.has_own_thread:
            break
    states = {(r.partition, r.broker): str(context.replicas.get(r)) for r in replicas}
    return env.plugins.rule("deletion", next_move)(states, context.live, topic in context.topics_ineligible)


async def _begin(env: Controller, topic: str) -> None:
    """Remove the topic from the brokers' metadata, then stop and delete the replicas that are online."""
    context, partitions = env.context, env.context.partitions_of(topic)
    env.log("topic_deletion", topics=[topic])
    if env.generation.deletion.partitions_leave_first and topic not in context.deletion_started:
        await _partitions_leave(env, partitions)
    context.deletion_started.add(topic)
    await env.send_update_metadata(partitions)
    env.log("partition_deletion", partitions=[str(tp) for tp in partitions])
    alive = dict.fromkeys(context.online_replicas(topic))
    dead = [r for r in context.replicas_of(partitions) if r not in alive]
    retry = [r for r in alive if context.replicas.get(r) is not SUCCESSFUL]
    await env.replica_machine.handle(dead, INELIGIBLE)
    await env.replica_machine.handle(retry, OFFLINE_REPLICA)
    await env.replica_machine.handle(retry, STARTED, env.deletion_answered)
    if dead:
        halt(env, [topic], DEAD)


async def _partitions_leave(env: Controller, partitions: list[TopicPartition]) -> None:
    for state in (OFFLINE, NON_EXISTENT):
        await env.partition_machine.handle(partitions, state)


async def stop_replica_response(
    env: Controller, broker: int, error: str | None, errors: dict[TopicPartition, str | None]
) -> None:
    """A broker has deleted its copies, or could not."""
    async with env.locked():
        failed = [tp for tp, e in errors.items() if error is not None or e is not None]
        await fail(env, [Replica(*tp, broker) for tp in failed])
        if done := [Replica(*tp, broker) for tp in errors if tp not in failed]:
            deleted = [r for r in done if r.topic in env.context.topics_to_be_deleted]
            await env.replica_machine.handle(deleted, SUCCESSFUL)
            await resume_deletions(env)


async def fail(env: Controller, replicas: Iterable[Replica]) -> None:
    """These replicas cannot be deleted now: their topics must wait."""
    failed = [r for r in replicas if r.topic in env.context.topics_to_be_deleted]
    if enabled(env) and failed:
        await env.replica_machine.handle(failed, INELIGIBLE)
        halt(env, {r.topic for r in failed}, FAILED)
        await resume_deletions(env)


async def _complete(env: Controller, topic: str) -> None:
    """Every replica is gone: drop the topic and delete its znodes. 0.10 fails if it never listened to the topic.

    Kafka 0.10.2.2: controller/PartitionStateMachine.scala, deregisterPartitionChangeListener
    """
    context = env.context
    if not env.zk.forget_node(TopicZNode.path(topic)) and env.generation.deletion.has_own_thread:
        raise StateChangeFailed(f"key not found: {topic}")
    partitions = context.partitions_of(topic)
    await env.replica_machine.handle(context.replicas_in(topic, SUCCESSFUL), NON_EXISTENT_REPLICA)
    if not env.generation.deletion.partitions_leave_first:
        await _partitions_leave(env, partitions)
    del context.topics_to_be_deleted[topic]
    context.deletion_started.discard(topic)
    context.partitions_to_be_deleted -= set(partitions)
    await env.zk.delete_tree(TopicZNode.path(topic))
    for path in (ConfigEntityZNode.path("topics", topic), DeleteTopicsTopicZNode.path(topic)):
        await env.zk.write(Delete(path))
    context.remove_topics((topic,))
