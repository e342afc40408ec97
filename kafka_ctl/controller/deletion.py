"""Topic deletion: a request under `/admin/delete_topics`; replicas are stopped and deleted, then the znodes.

Deletion waits while a replica is on a dead broker or could not be deleted (the topic is *ineligible*), and goes on when
that is over, also under the next controller. It should also wait for a reassignment, but Kafka checks for one before it
queues the topic, so the check has no effect; only a new controller that finds both postpones the deletion.
Kafka 2.0.1: controller/TopicDeletionManager.scala, TopicDeletionManager
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_ctl.brokers.requests import Response
from kafka_ctl.cluster import Replica, TopicPartition
from kafka_ctl.controller import events, listeners
from kafka_ctl.controller.environment import Environment
from kafka_ctl.controller.legacy_threads import Thread
from kafka_ctl.partition import NON_EXISTENT, OFFLINE
from kafka_ctl.replica import INELIGIBLE, STARTED, SUCCESSFUL
from kafka_ctl.replica import NON_EXISTENT as NON_EXISTENT_REPLICA
from kafka_ctl.replica import OFFLINE as OFFLINE_REPLICA
from kafka_ctl.zookeeper.store import Delete
from kafka_ctl.zookeeper.znodes import ConfigEntityZNode, DeleteTopicsTopicZNode, DeleteTopicsZNode, TopicZNode

REASSIGNING, FAILED, DEAD = "topic reassignment in progress", "replica deletion failure", "offline replicas"
ELECTING = "preferred replica election in progress"
"""Why a deletion is halted."""


def enabled(c: Environment) -> bool:
    return bool(c.config["delete.topic.enable"])


async def initialize(c: Environment) -> None:
    """At failover: take over the deletions that are under way."""
    context = c.context
    wanted = await c.zk.read_children(DeleteTopicsZNode.path())
    online = context.online
    blocked = {
        r.topic for r in context.replicas_of(context.all_partitions()) if not online(r.broker, r.topic_partition)
    }
    blocked |= {tp.topic for tp in context.reassigning}
    if c.generation.halts_deletions_for_elections:
        blocked |= {tp.topic for tp in context.preferred_elections}
    c.say("topics_to_be_deleted", topics=wanted)
    c.say("topics_ineligible", topics=sorted(blocked))
    c.say("initializing_deletion", topics=wanted, ineligible=sorted(blocked))
    if enabled(c):
        _queue(c, wanted)
        context.topics_ineligible = blocked & context.topics_to_be_deleted.keys()
    else:
        c.say("deletion_disabled", topics=wanted)
        await _forget_wishes(c, wanted)


async def topic_deletion(c: Environment) -> None:
    """The children of `/admin/delete_topics` changed."""
    wanted = await c.zk.read_children(DeleteTopicsZNode.path())
    async with c.locked():
        await _wished(c, wanted)


async def _wished(c: Environment, wanted: list[str]) -> None:
    unknown = [t for t in wanted if t not in c.context.topics]
    if unknown:
        c.say("deleting_unknown_topics", topics=unknown)
        await _forget_wishes(c, unknown)
    topics = [t for t in wanted if t in c.context.topics]
    if not enabled(c):
        c.say("deletion_disabled", topics=topics)
        await _forget_wishes(c, topics)
    elif topics:
        c.say("starting_deletion", topics=topics)
        busy = {tp.topic for tp in (*c.context.reassigning, *c.context.preferred_elections)}
        halt(c, [t for t in topics if t in busy], REASSIGNING)  # before it is queued, so that a new wish is not halted
        _queue(c, topics)
        await resume_deletions(c)


def _queue(c: Environment, topics: Iterable[str]) -> None:
    for topic in topics:
        c.context.topics_to_be_deleted[topic] = None
        c.context.partitions_to_be_deleted |= set(c.context.partitions_of(topic))


async def _forget_wishes(c: Environment, topics: Iterable[str]) -> None:
    for topic in topics:
        await c.zk.write(Delete(DeleteTopicsTopicZNode.path(topic)))


def halt(c: Environment, topics: Iterable[str], reason: str) -> None:
    """Mark those of the topics that are to be deleted as ineligible."""
    halted = sorted(set(topics) & c.context.topics_to_be_deleted.keys())
    c.context.topics_ineligible |= set(halted)
    if enabled(c) and halted:
        c.say("deletion_halted", topics=halted, reason=reason)


async def resume(c: Environment, topics: Iterable[str]) -> None:
    """What halted these topics is over."""
    again = set(topics) & c.context.topics_to_be_deleted.keys()
    if again:
        c.context.topics_ineligible -= again
        await resume_deletions(c)


async def resume_deletions(c: Environment) -> None:
    """Look at the queued topics now, or, where a thread does that, wake it."""
    if not enabled(c):
        return
    if c.generation.single_threaded:
        await look(c)
    else:
        c.deletion_wanted.set()


def start_thread(c: Environment) -> None:
    """0.10's delete-topics thread: looks whenever it is woken, under the lock.

    Kafka 0.10.2.2: controller/TopicDeletionManager.scala, DeleteTopicsThread
    """

    async def wait() -> None:
        await c.deletion_wanted.wait()
        c.deletion_wanted.clear()

    async def work() -> None:
        async with c.locked():
            await look(c)

    c.deletion_wanted.clear()
    if enabled(c):
        c.threads.append(Thread(c, wait, work))
        if c.context.topics_to_be_deleted:
            c.deletion_wanted.set()


async def look(c: Environment) -> None:
    """See for every queued topic whether it is done, under way, or can be started (again)."""
    context = c.context
    queued = list(context.topics_to_be_deleted)
    if queued:
        c.say("handling_deletion", topics=queued)
    for topic in queued:
        replicas = context.replicas_of(context.partitions_of(topic))
        started = context.replicas_in(topic, STARTED)
        if all(context.replicas.get(r) is SUCCESSFUL for r in replicas):
            await _complete(c, topic)
            c.say("deletion_completed", topic=topic)
        elif started:
            if not c.generation.partitions_leave_first:
                c.say(
                    "deletion_in_progress",
                    topic=topic,
                    replicas=sorted({r.broker for r in started}),
                    partitions=sorted({str(r.topic_partition) for r in started}),
                )
        elif failed := context.replicas_in(topic, INELIGIBLE):
            c.say("retrying_deletion", topic=topic, replicas=[list(r) for r in failed])
            await c.replica_machine.handle(failed, OFFLINE_REPLICA)
        if topic not in context.topics_to_be_deleted:
            continue
        if topic in context.topics_ineligible:
            if not c.generation.partitions_leave_first:
                c.say("deletion_ineligible", topic=topic)
        elif not context.replicas_in(topic, STARTED):
            c.say("deletion_started", topic=topic)
            await _begin(c, topic)


async def _begin(c: Environment, topic: str) -> None:
    """Make brokers forget the topic, then stop and delete the replicas that are online."""
    context, partitions = c.context, c.context.partitions_of(topic)
    c.say("topic_deletion", topics=[topic])
    if c.generation.partitions_leave_first and topic not in context.deletion_started:
        await c.partition_machine.handle(partitions, OFFLINE)
        await c.partition_machine.handle(partitions, NON_EXISTENT)
        context.deletion_started.add(topic)
    await c.send_update_metadata(partitions)
    c.say("partition_deletion", partitions=[str(tp) for tp in partitions])
    replicas = context.replicas_of(partitions)
    alive = context.online_replicas(topic)
    dead = [r for r in replicas if r not in set(alive)]
    retry = [r for r in alive if context.replicas.get(r) is not SUCCESSFUL]
    await c.replica_machine.handle(dead, INELIGIBLE)
    await c.replica_machine.handle(retry, OFFLINE_REPLICA)
    await c.replica_machine.handle(retry, STARTED, lambda broker, answer: _answered(c, broker, answer))
    if dead:
        halt(c, [topic], DEAD)


def _answered(c: Environment, broker: int, answer: Response) -> None:
    c.hand_over(events.TopicDeletionStopReplicaResponseReceived(broker, answer.error, dict(answer.errors)))


async def stop_replica_response(
    c: Environment, broker: int, error: str | None, errors: dict[TopicPartition, str | None]
) -> None:
    """A broker has deleted its copies, or could not."""
    async with c.locked():
        await _stopped(c, broker, error, errors)


async def _stopped(c: Environment, broker: int, error: str | None, errors: dict[TopicPartition, str | None]) -> None:
    if c.generation.partitions_leave_first:
        errors = {tp: e for tp, e in errors.items() if tp.topic in c.context.deletion_started}
    failed = [tp for tp, e in errors.items() if error is not None or e is not None]
    await fail(c, [Replica(tp.topic, tp.partition, broker) for tp in failed])
    done = [Replica(tp.topic, tp.partition, broker) for tp in errors if tp not in failed]
    if done:
        await c.replica_machine.handle([r for r in done if r.topic in c.context.topics_to_be_deleted], SUCCESSFUL)
        await resume_deletions(c)


async def fail(c: Environment, replicas: Iterable[Replica]) -> None:
    """These replicas cannot be deleted now: their topics must wait."""
    failed = [r for r in replicas if r.topic in c.context.topics_to_be_deleted]
    if enabled(c) and failed:
        await c.replica_machine.handle(failed, INELIGIBLE)
        halt(c, {r.topic for r in failed}, FAILED)
        await resume_deletions(c)


async def _complete(c: Environment, topic: str) -> None:
    """Every replica is gone: forget the topic and delete its znodes."""
    context = c.context
    listeners.forget_topics(c, [topic])
    partitions = context.partitions_of(topic)
    await c.replica_machine.handle(context.replicas_in(topic, SUCCESSFUL), NON_EXISTENT_REPLICA)
    if not c.generation.partitions_leave_first:
        await c.partition_machine.handle(partitions, OFFLINE)
        await c.partition_machine.handle(partitions, NON_EXISTENT)
    del context.topics_to_be_deleted[topic]
    context.deletion_started.discard(topic)
    context.partitions_to_be_deleted -= set(partitions)
    await c.zk.delete_tree(TopicZNode.path(topic))
    await c.zk.write(Delete(ConfigEntityZNode.path("topics", topic)))
    await c.zk.write(Delete(DeleteTopicsTopicZNode.path(topic)))
    context.remove_topic(topic)
