"""What leaders and followers report: changed ISRs through ZooKeeper, failed log directories in their answers.

Kafka 2.0.1: controller/KafkaController.scala, IsrChangeNotification, LeaderAndIsrResponseReceived
"""

from __future__ import annotations

from contextlib import suppress

from kafka_ctl.cluster import Replica, TopicPartition
from kafka_ctl.controller import failover, membership
from kafka_ctl.controller.environment import Environment
from kafka_ctl.replica import ONLINE
from kafka_ctl.zookeeper.json_fields import NotJson
from kafka_ctl.zookeeper.znodes import (
    IsrChangeNotificationSequenceZNode,
    IsrChangeNotificationZNode,
    LogDirEventNotificationSequenceZNode,
    LogDirEventNotificationZNode,
    sequence_number,
)

STORAGE_ERROR = "KAFKA_STORAGE_ERROR"


async def isr_change_notification(env: Environment) -> None:
    """Read the partitions named by the notifications again, send them to all brokers, delete the notifications."""
    parent = IsrChangeNotificationZNode.path()
    names = await env.zk.read_children(parent)
    async with env.locked():
        try:
            partitions: dict[TopicPartition, None] = {}
            for name, answer in zip(names, await env.zk.read_all(f"{parent}/{n}" for n in names), strict=True):
                if answer.error is None and isinstance(answer.value, bytes):
                    with suppress(NotJson):
                        decoded = IsrChangeNotificationSequenceZNode.decode(answer.value, sequence_number(name))
                        partitions |= dict.fromkeys(decoded)
            if partitions:
                await failover.refresh_leadership(env, partitions)
                await env.send_update_metadata(partitions)
        finally:
            await env.zk.delete_children(parent, names)


async def log_dir_event_notification(env: Environment) -> None:
    """Brokers lost a log directory: ask them for all their replicas; their answers say which are gone."""
    parent = LogDirEventNotificationZNode.path()
    names = await env.zk.read_children(parent)
    try:
        brokers = []
        for name, answer in zip(names, await env.zk.read_all(f"{parent}/{n}" for n in names), strict=True):
            if answer.error is None and isinstance(answer.value, bytes):
                with suppress(NotJson):
                    brokers.append(LogDirEventNotificationSequenceZNode.decode(answer.value, sequence_number(name)))
        await env.replica_machine.handle(env.context.replicas_on(brokers), ONLINE)
    finally:
        await env.zk.delete_children(parent, names)


async def leader_and_isr_response(
    env: Environment, broker: int, error: str | None, errors: dict[TopicPartition, str | None]
) -> None:
    """Partitions answered with a storage error have lost their log directory on that broker."""
    if error is not None:
        env.log("leader_and_isr_error", error=error, broker=broker)
        return
    before = env.context.offline_dirs.get(broker, set())
    failed = {tp for tp, e in errors.items() if e == STORAGE_ERROR}
    now = (before - {tp for tp, e in errors.items() if e is None}) | failed
    if now or before:
        env.context.offline_dirs[broker] = now
    if new := sorted(now - before):
        env.log("replicas_offline", partitions=[str(tp) for tp in new], broker=broker)
        await membership.on_replicas_offline(env, [Replica(tp.topic, tp.partition, broker) for tp in new])
