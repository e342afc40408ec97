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


async def become_controller(env: Environment) -> None:
    """Everything between winning the race and acting as controller; an error here ends in resignation."""
    if not env.generation.zookeeper.fences_writes:
        env.log("reading_epoch")
        await leadership.read_epoch(env)
        env.log("incrementing_epoch")
        await leadership.increment_epoch(env)
    env.log("registering_handlers")
    await listeners.register(env)
    if env.generation.failover.clears_isr_notifications:
        env.log("deleting_log_dir_notifications")
        await _clear(env, znodes.LogDirEventNotificationZNode.path())
        env.log("deleting_isr_change_notifications")
        await _clear(env, znodes.IsrChangeNotificationZNode.path())
    env.log("initializing_context")
    await initialize_context(env)
    if not env.generation.bugs.introduces_brokers_last:
        env.log("sending_update_metadata")
        await env.announce_brokers()
    await env.replica_machine.startup()
    await env.partition_machine.startup()
    if not env.generation.zookeeper.watches_before_reading:
        await listeners.subscribe_topics(env, env.context.topics)
    env.log("ready", epoch=env.context.epoch)
    await _resume(env)
    if env.generation.bugs.introduces_brokers_last:
        await env.announce_brokers()


async def _resume(env: Environment) -> None:
    """Go on with what the last controller left unfinished, then look after the balance."""
    if env.generation.reassignment.incremental_reassignment:
        await reassignment_incremental.initialize(env)
    else:
        await reassignment.resume(env)
    if not env.generation.deletion.has_own_thread:
        await deletion.resume_deletions(env)
    known = env.generation.deletion.halts_deletions_for_elections
    elections = env.context.preferred_elections if known else await rebalance.pending(env)
    await rebalance.elect(env, elections, rebalance.MANUAL)
    rebalance.start(env)
    if env.generation.deletion.has_own_thread:
        deletion.start_thread(env)


async def _clear(env: Environment, path: str) -> None:
    await env.zk.delete_children(path, await env.zk.read_children(path))


async def initialize_context(env: Environment) -> None:
    """Read brokers, topics, assignments and partition states; start a channel for every broker."""
    context = env.context
    context.brokers = await env.zk.brokers(await env.zk.broker_ids())
    if env.generation.membership.broker_epochs:
        env.log("broker_epochs_initialized", epochs={id: broker.epoch for id, broker in context.brokers.items()})
    names = topics.topic_names(env, await env.zk.read_children(znodes.TopicsZNode.path()))
    if env.generation.zookeeper.watches_before_reading:
        listeners.watch_topics(env, names)
    context.topics, context.table = {name: {} for name in names}, HashMap(case_hash)
    context.topics |= await topics.read_assignments(env, names)
    if context.in_tables:
        read = (TopicPartition(topic, number) for topic, numbers in context.topics.items() for number in numbers)
        context.table, context.leadership = HashMap(case_hash, ((tp, None) for tp in read)), HashMap(case_hash)
    context.leadership.clear()
    context.shutting_down.clear()
    if env.generation.membership.watches_endpoints:
        await listeners.watch_brokers(env, context.brokers)
    await refresh_leadership(env, context.all_partitions())
    env.channels.start(context.brokers)
    if env.generation.deletion.halts_deletions_for_elections:
        context.preferred_elections |= dict.fromkeys(await rebalance.pending(env))
    if env.generation.reassignment.incremental_reassignment:
        moving = ((tp, context.assignment(tp)) for tp in context.all_partitions())
        context.reassigning = {tp: a.target for tp, a in moving if a.is_being_reassigned}
    else:
        await reassignment.initialize(env)
    if env.generation.deletion.halts_deletions_for_elections:
        await deletion.initialize(env)
    env.log("active_brokers", brokers=sorted(context.brokers))
    env.log("shutting_brokers", brokers=sorted(context.shutting_down))
    env.log("topics", topics=sorted(context.topics))
    if not env.generation.deletion.halts_deletions_for_elections:
        env.log("fetching_deletions")
        await deletion.initialize(env)


async def refresh_leadership(env: Environment, partitions: Iterable[TopicPartition]) -> None:
    """Read the `state` znodes of these partitions into the cache."""
    found = await env.zk.states(partitions)
    for tp in map_order(found, case_hash) if env.context.in_tables else list(found):
        state = found[tp]
        if isinstance(state, LeaderAndIsr):
            env.context.leadership[tp] = state
        elif isinstance(state, BadInput):
            raise state


async def resign(env: Environment) -> None:
    """Stop listening, stop sending, clear the context.

    In 0.10 only after its threads have finished their current work, and what it was asked to do is kept: when
    it is elected again, it does that too, whatever has happened meanwhile (KAFKA-5310).
    """
    listeners.unregister_requests(env)
    while env.threads:
        await env.threads.pop().end()
    env.gauges.reset()
    async with env.locked():
        listeners.unregister(env)
        env.channels.close()
        env.zk.fence = None
        if not env.generation.bugs.keeps_batches:
            for batch in (env.batch, env.partition_machine.batch, env.replica_machine.batch):
                batch.clear()
        fresh = vars(Context(env.context.in_tables))
        kept = () if env.generation.failover.forgets_on_resignation else SURVIVORS
        if env.context.in_tables:
            env.context.partitions.clear()
            env.context.replicas.clear()
            kept = (*kept, "partitions", "replicas")
        for name in fresh.keys() - set(kept):
            setattr(env.context, name, fresh[name])
        env.log("resigned")


SURVIVORS = ("reassigning", "preferred_elections")
"""What of the context outlived a resignation and was not read anew at the next election."""
