"""Controlled shutdown: the controller moves everything off a broker that asks to leave.

Leaderships move to another in-sync replica; followed partitions are stopped and leave their ISRs. Partitions with a
single replica cannot move and are left alone.
Kafka 2.0.1: controller/KafkaController.scala, ControlledShutdown
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import nullcontext

from kafka_ctl.brokers.requests import UNKNOWN_EPOCH
from kafka_ctl.cluster import Replica, TopicPartition
from kafka_ctl.controller.environment import Environment
from kafka_ctl.controller.partition_machine import Strategy
from kafka_ctl.errors import BatchNotEmpty, ControllerMoved, Refused, StaleBrokerEpoch, StateChangeFailed
from kafka_ctl.partition import ONLINE
from kafka_ctl.replica import OFFLINE
from kafka_ctl.scala_order import case_hash, filtered, product_hash, set_order_by


async def controlled_shutdown(c: Environment, broker: int, broker_epoch: int, reply: asyncio.Future) -> None:
    """Answer with the partitions the broker still leads, or with an error."""
    try:
        if not c.is_active:
            raise ControllerMoved("Controller moved to another broker. Aborting controlled shutdown")
        async with nullcontext() if c.generation.single_threaded else c.shutdown_lock:
            remaining = await _move_away(c, broker, broker_epoch)
    except Exception as error:
        if not reply.done():
            reply.set_exception(error)
    else:
        if not reply.done():
            reply.set_result(remaining)


async def _move_away(c: Environment, broker: int, broker_epoch: int) -> tuple[TopicPartition, ...]:
    async with c.locked():
        _begin(c, broker, broker_epoch)
    if c.generation.pipelined:
        await _move_together(c, broker)
    else:
        await _move_one_by_one(c, broker)
    async with c.locked():
        remaining = filtered(
            c.context.leadership,
            lambda tp, state: (
                state.leader == broker and len(c.context.assigned(tp)) > 1 and tp.topic not in _skipped(c)
            ),
        )
        return tuple(set_order_by(remaining, case_hash) if c.context.in_tables else remaining)


def _begin(c: Environment, broker: int, broker_epoch: int) -> None:
    """From now on this broker leads nothing new."""
    context = c.context
    known = context.brokers.get(broker)
    if broker_epoch != UNKNOWN_EPOCH and known is None:
        raise Refused("UNKNOWN_SERVER_ERROR", f"key not found: {broker}")  # whose epoch is looked up before all else
    if known is not None and UNKNOWN_EPOCH != broker_epoch < known.epoch:
        text = (
            f"Received controlled shutdown request from an old broker epoch {broker_epoch} for broker {broker}. "
            f"Current broker epoch is {known.epoch}."
        )
        c.say("stale_controlled_shutdown", text=text)
        raise StaleBrokerEpoch(text)
    c.say("shutting_down_broker", broker=broker)
    if broker not in context.brokers:
        raise StateChangeFailed(f"Broker id {broker} does not exist.")
    context.shutting_down.add(broker)
    c.say("all_shutting_down", brokers=sorted(context.shutting_down))
    c.say("live_brokers", brokers=sorted(context.live))


def _skipped(c: Environment) -> Collection[str]:
    return c.context.topics_to_be_deleted if c.generation.shutdown_skips_deletions else ()


async def _move_together(c: Environment, broker: int) -> None:
    """First all that it leads, then all that it follows."""
    context, skipped = c.context, _skipped(c)
    movable = [
        tp
        for tp in context.partitions_on(broker)
        if len(context.assigned(tp)) > 1 and tp in context.leadership and tp.topic not in skipped
    ]
    led = [tp for tp in movable if context.leadership[tp].leader == broker]
    followed = [tp for tp in movable if context.leadership[tp].leader != broker]
    await _move_leadership(c, led)
    await _stop_following(c, broker, followed)


async def _move_one_by_one(c: Environment, broker: int) -> None:
    """Each partition by itself, and between two of them others may have the lock; who has how many replicas was
    looked up at the beginning, who leads is not."""
    context = c.context
    async with c.locked():
        found = {tp: len(context.assigned(tp)) for tp in context.partitions_on(broker)}
    for tp in set_order_by(found, lambda tp: product_hash(case_hash(tp), found[tp])):
        replicas = found[tp]
        async with c.locked():
            if replicas > 1 and tp in context.leadership and tp.topic not in _skipped(c):
                if context.leadership[tp].leader == broker:
                    await _move_leadership(c, [tp])
                else:
                    await _stop_following(c, broker, [tp])


async def _move_leadership(c: Environment, partitions: list[TopicPartition]) -> None:
    await c.partition_machine.handle(partitions, ONLINE, Strategy.CONTROLLED_SHUTDOWN)


async def _stop_following(c: Environment, broker: int, partitions: list[TopicPartition]) -> None:
    """Stop the copies first, so that they have gone by the time the ISRs are written."""
    try:
        c.batch.open()
        for tp in partitions:
            c.batch.stop_replica(broker, tp, False, None)
        c.batch.send()
    except BatchNotEmpty as error:
        await c.illegal_state(error)
    await c.replica_machine.handle([Replica(tp.topic, tp.partition, broker) for tp in partitions], OFFLINE)
