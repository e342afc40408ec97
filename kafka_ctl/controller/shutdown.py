"""Controlled shutdown: the controller moves everything off a broker that asks to leave.

Leaderships move to another in-sync replica; followed partitions are stopped and leave their ISRs. Partitions with a
single replica cannot move and are left alone.
Kafka 2.0.1: controller/KafkaController.scala, ControlledShutdown

Separate from `dispatch.py` because each procedure has a file, and that one lists them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from kafka_ctl.cluster import LeaderAndIsr, Replica, TopicPartition
from kafka_ctl.controller.controller import Controller
from kafka_ctl.controller.failures import text
from kafka_ctl.election import Strategy
from kafka_ctl.errors import ApiException, BatchNotEmpty, ControllerMoved, StaleBrokerEpoch
from kafka_ctl.partition import ONLINE
from kafka_ctl.replica import OFFLINE
from kafka_ctl.requests import UNKNOWN_EPOCH
from kafka_ctl.scala_order import filtered


async def controlled_shutdown(env: Controller, broker: int, broker_epoch: int, reply: asyncio.Future) -> None:
    """Answer with the partitions the broker still leads, or with an error."""

    def stays(tp: TopicPartition, state: LeaderAndIsr) -> bool:
        return state.leader == broker and len(env.context.assigned(tp)) > 1 and tp.topic not in _skipped(env)

    try:
        if not env.is_active:
            raise ControllerMoved("Controller moved to another broker. Aborting controlled shutdown")
        async with env.locked(env.shutdown_lock):
            async with env.locked():
                _begin(env, broker, broker_epoch)
            left = await (_move_together if env.generation.zookeeper.pipelined else move_one_by_one)(env, broker)
            async with env.locked():
                remaining = left or tuple(env.context.orders.as_set(filtered(env.context.leadership, stays)))
        if not reply.done():
            reply.set_result(remaining)
    except Exception as error:
        if not reply.done():
            reply.set_exception(error)


def _begin(env: Controller, broker: int, broker_epoch: int) -> None:
    """Mark this broker, so that it becomes leader of no partition from now on."""
    context = env.context
    known = context.brokers.get(broker)
    if broker_epoch != UNKNOWN_EPOCH and known is None:
        # Its epoch is looked up before all else.
        raise ApiException("UNKNOWN_SERVER_ERROR", f"key not found: {broker}")
    if known is not None and UNKNOWN_EPOCH != broker_epoch < known.epoch:
        epochs = {"broker": broker, "broker_epoch": broker_epoch, "current": known.epoch}
        env.log("stale_controlled_shutdown", **epochs)
        raise StaleBrokerEpoch(text("old_broker_epoch", **epochs))
    env.log("shutting_down_broker", broker=broker)
    if broker not in context.brokers:
        raise ApiException("BROKER_NOT_AVAILABLE", f"Broker id {broker} does not exist.")
    context.shutting_down.add(broker)
    env.log("all_shutting_down", brokers=sorted(context.shutting_down))
    env.log("live_brokers", brokers=sorted(context.live))


def _skipped(env: Controller) -> Collection[str]:
    return env.context.topics_to_be_deleted if env.generation.shutdown.shutdown_skips_deletions else ()


async def _move_together(env: Controller, broker: int) -> tuple[TopicPartition, ...]:
    """Move first the partitions that it leads, then those that it follows."""
    context, skipped = env.context, _skipped(env)
    led: dict[bool, list[TopicPartition]] = {True: [], False: []}
    for tp in context.partitions_on(broker):
        if len(context.assigned(tp)) > 1 and tp in context.leadership and tp.topic not in skipped:
            led[context.leadership[tp].leader == broker].append(tp)
    await env.partition_machine.handle(led[True], ONLINE, Strategy.CONTROLLED_SHUTDOWN)
    await _stop_following(env, broker, led[False])
    return ()


async def move_one_by_one(env: Controller, broker: int) -> tuple[TopicPartition, ...]:
    """Move each partition by itself; between two of them another thread may have the lock. The numbers of replicas
    are looked up once, at the beginning, and the leader for each partition.

    A controller that has resigned meanwhile goes on with the leaders it knew. The partitions that the broker leads stay
    where they are, and are returned; the first partition that it follows makes this controller delete `/controller`.
    Kafka 0.10.2.2: controller/KafkaController.scala, shutdownBroker, onControllerResignation
    """
    context = env.context
    async with env.locked():
        found, known = context.replication_factors(broker), context.leadership
    for tp, replicas in found.items():
        async with env.locked():
            known = context.leadership if env.channels.open else known
            if replicas > 1 and tp in known and tp.topic not in _skipped(env):
                if not env.channels.open:
                    if known[tp].leader != broker:
                        await env.illegal_state(BatchNotEmpty("java.lang.NullPointerException"))
                    env.log("error_moving_partitions", target=str(ONLINE), error="the state machine has not started")
                elif known[tp].leader == broker:
                    await env.partition_machine.handle([tp], ONLINE, Strategy.CONTROLLED_SHUTDOWN)
                else:
                    await _stop_following(env, broker, [tp])
    replicated = filtered(known, lambda tp, state: state.leader == broker and found.get(tp, 0) > 1)
    return () if env.channels.open else tuple(replicated)


async def _stop_following(env: Controller, broker: int, partitions: list[TopicPartition]) -> None:
    """Stop the copies first, so that they have gone by the time the ISRs are written."""
    async with env.batch_of_its_own() as batch:
        for tp in partitions:
            batch.stop_replica(broker, tp, False, None)
    await env.replica_machine.handle([Replica(*tp, broker) for tp in partitions], OFFLINE)
