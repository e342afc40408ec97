"""Becoming controller, in Kafka's exact order, and ceasing to be.

Listeners come before reading, so that no change is missed; metadata goes out before any LeaderAndIsr, so that brokers
know who is alive (KAFKA-4443).
Kafka 2.0.1: controller/KafkaController.scala, onControllerFailover, onControllerResignation
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.controller import (
    deletion,
    leadership,
    listeners,
    reassignment,
    reassignment_incremental,
    rebalance,
    topics,
)
from kafka_ctl.controller.context import Context
from kafka_ctl.controller.environment import Environment
from kafka_ctl.errors import BadInput
from kafka_ctl.scala_order import HashMap, case_hash, map_order
from kafka_ctl.zookeeper import znodes


async def become_controller(c: Environment) -> None:
    """Everything between winning the race and acting as controller; an error here ends in resignation."""
    if not c.generation.fences_writes:
        c.say("reading_epoch")
        await leadership.read_epoch(c)
        c.say("incrementing_epoch")
        await leadership.increment_epoch(c)
    c.say("registering_handlers")
    await listeners.register(c)
    if c.generation.clears_isr_notifications:
        c.say("deleting_log_dir_notifications")
        await _clear(c, znodes.LogDirEventNotificationZNode.path())
        c.say("deleting_isr_change_notifications")
        await _clear(c, znodes.IsrChangeNotificationZNode.path())
    c.say("initializing_context")
    await initialize_context(c)
    if c.generation.introduces_brokers_first:
        c.say("sending_update_metadata")
        await c.announce_brokers()
    await c.replica_machine.startup()
    await c.partition_machine.startup()
    if not c.generation.single_threaded:
        await listeners.subscribe_topics(c, c.context.topics)
    c.say("ready", epoch=c.context.epoch)
    await _resume(c)
    if not c.generation.introduces_brokers_first:
        await c.announce_brokers()


async def _resume(c: Environment) -> None:
    """Go on with what the last controller left unfinished, then look after the balance."""
    if c.generation.incremental_reassignment:
        await reassignment_incremental.initialize(c)
    else:
        await reassignment.resume(c)
    if c.generation.single_threaded:
        await deletion.resume_deletions(c)
        await rebalance.elect(c, await rebalance.pending(c), rebalance.MANUAL)
        c.say("starting_scheduler")
        rebalance.schedule(c, rebalance.FIRST_CHECK)
    else:
        await rebalance.elect(c, c.context.preferred_elections, rebalance.MANUAL)
        rebalance.start_thread(c)
        deletion.start_thread(c)


async def _clear(c: Environment, path: str) -> None:
    await c.zk.delete_children(path, await c.zk.read_children(path))


async def initialize_context(c: Environment) -> None:
    """Read brokers, topics, assignments and partition states; start a channel for every broker."""
    context = c.context
    context.brokers = await c.zk.brokers(await c.zk.broker_ids())
    if c.generation.broker_epochs:
        c.say("broker_epochs_initialized", epochs={id: broker.epoch for id, broker in context.brokers.items()})
    names = topics.topic_names(c, await c.zk.read_children(znodes.TopicsZNode.path()))
    if c.generation.single_threaded:
        listeners.watch_topics(c, names)
    context.topics, context.table = {name: {} for name in names}, HashMap(case_hash)
    context.topics |= await topics.read_assignments(c, names)
    if context.in_tables:
        read = (TopicPartition(topic, number) for topic, numbers in context.topics.items() for number in numbers)
        context.table, context.leadership = HashMap(case_hash, ((tp, None) for tp in read)), HashMap(case_hash)
    context.leadership.clear()
    context.shutting_down.clear()
    if c.generation.watches_endpoints:
        await listeners.watch_brokers(c, context.brokers)
    await refresh_leadership(c, context.all_partitions())
    c.channels.start(context.brokers)
    if not c.generation.single_threaded:
        context.preferred_elections |= dict.fromkeys(await rebalance.pending(c))
    if c.generation.incremental_reassignment:
        moving = ((tp, context.assignment(tp)) for tp in context.all_partitions())
        context.reassigning = {tp: a.target for tp, a in moving if a.is_being_reassigned}
    else:
        await reassignment.initialize(c)
    if not c.generation.single_threaded:
        await deletion.initialize(c)
    c.say("active_brokers", brokers=sorted(context.brokers))
    c.say("shutting_brokers", brokers=sorted(context.shutting_down))
    c.say("topics", topics=sorted(context.topics))
    if c.generation.single_threaded:
        c.say("fetching_deletions")
        await deletion.initialize(c)


async def refresh_leadership(c: Environment, partitions: Iterable[TopicPartition]) -> None:
    """Read the `state` znodes of these partitions into the cache."""
    found = await c.zk.states(partitions)
    for tp in map_order(found, case_hash) if c.context.in_tables else list(found):
        state = found[tp]
        if isinstance(state, LeaderAndIsr):
            c.context.leadership[tp] = state
        elif isinstance(state, BadInput):
            raise state


async def resign(c: Environment) -> None:
    """Stop listening, stop sending, forget everything.

    In 0.10 only after its threads have finished what they are at, and what it was told to do is not forgotten: when
    it is elected again, it does that too, whatever has happened meanwhile (KAFKA-5310).
    """
    listeners.unregister_wishes(c)
    while c.threads:
        await c.threads.pop().end()
    c.gauges.reset()
    async with c.locked():
        listeners.unregister(c)
        c.channels.close()
        c.zk.fence = None
        if c.generation.clears_batches:
            for batch in (c.batch, c.partition_machine.batch, c.replica_machine.batch):
                batch.clear()
        fresh = vars(Context(c.context.in_tables))
        kept = () if c.generation.forgets_on_resignation else SURVIVORS
        if c.context.in_tables:
            c.context.partitions.clear()
            c.context.replicas.clear()
            kept = (*kept, "partitions", "replicas")
        for name in fresh.keys() - set(kept):
            setattr(c.context, name, fresh[name])
        c.say("resigned")


SURVIVORS = ("reassigning", "preferred_elections")
"""What of the context outlived a resignation and was not read anew at the next election."""
