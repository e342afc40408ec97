"""Becoming controller, in Kafka's exact order, and ceasing to be.

Listeners come before reading, so that no change is missed; metadata goes out before any LeaderAndIsr, so that brokers
know who is alive (KAFKA-4443).
Kafka 2.0.1: controller/KafkaController.scala, onControllerFailover, onControllerResignation
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_ctl.cluster import LeaderAndIsr
from kafka_ctl.controller import leadership, listeners
from kafka_ctl.controller.context import Context
from kafka_ctl.zookeeper import znodes

if TYPE_CHECKING:
    from kafka_ctl.controller.controller import Controller


async def become_controller(c: Controller) -> None:
    """Everything between winning the race and acting as controller; an error here ends in resignation."""
    c.say("reading_epoch")
    await leadership.read_epoch(c)
    c.say("incrementing_epoch")
    await leadership.increment_epoch(c)
    c.say("registering_handlers")
    await listeners.register(c)
    c.say("deleting_isr_change_notifications")
    isr_changes = znodes.IsrChangeNotificationZNode.path()
    await c.zk.delete_children(isr_changes, await c.zk.read_children(isr_changes))
    c.say("initializing_context")
    await initialize_context(c)
    c.say("sending_update_metadata")
    await c.send_update_metadata()
    await c.replica_machine.startup()
    await c.partition_machine.startup()
    c.say("ready", epoch=c.context.epoch)


async def initialize_context(c: Controller) -> None:
    """Read brokers, topics, assignments and partition states; start a channel for every broker."""
    context = c.context
    context.brokers = await c.zk.brokers()
    names = await c.zk.read_children(znodes.TopicsZNode.path())
    listeners.watch_topics(c, names)
    context.topics = {name: {} for name in names} | await c.zk.assignments(names)
    context.leadership.clear()
    context.shutting_down.clear()
    await listeners.watch_brokers(c, context.brokers)
    await refresh_leadership(c, context.all_partitions())
    for broker in context.brokers:
        c.channels.add(broker)
    c.say("active_brokers", brokers=sorted(context.brokers))
    c.say("shutting_brokers", brokers=sorted(context.shutting_down))
    c.say("topics", topics=sorted(context.topics))


async def refresh_leadership(c: Controller, partitions: object) -> None:
    """Read the `state` znodes of these partitions into the cache."""
    for tp, state in (await c.zk.states(partitions)).items():  # type: ignore[arg-type]
        if isinstance(state, LeaderAndIsr):
            c.context.leadership[tp] = state


def resign(c: Controller) -> None:
    """Stop listening, stop sending, forget everything."""
    context = c.context
    listeners.unregister(c)
    listeners.forget_brokers(c, context.brokers)
    listeners.forget_topics(c, context.topics)
    c.channels.close()
    for batch in (c.batch, c.partition_machine.batch, c.replica_machine.batch):
        batch.clear()
    for name, value in vars(Context()).items():
        setattr(context, name, value)
    c.say("resigned")
