"""Brokers that come, change and go, and their reports: ISRs through ZooKeeper, failed log directories in their answers.

Kafka 2.0.1: controller/KafkaController.scala, BrokerChange, onBrokerStartup, onBrokerFailure, onReplicasBecomeOffline,
IsrChangeNotification, LogDirEventNotification, LeaderAndIsrResponseReceived

Separate from `dispatch.py` because each procedure has a file, and that one lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from kafka_ctl.cluster import Broker, LeaderAndIsr, Replica, TopicPartition
from kafka_ctl.controller import deletion, listeners, reassignment, reassignment_incremental, topics
from kafka_ctl.controller.controller import Controller
from kafka_ctl.partition import OFFLINE as OFFLINE_PARTITION
from kafka_ctl.replica import OFFLINE, ONLINE
from kafka_ctl.requests import STORAGE_ERROR
from kafka_ctl.scala_order import filtered
from kafka_ctl.zookeeper import znodes


async def broker_change(env: Controller) -> None:
    """The children of `/brokers/ids` changed: first come the new brokers, then restarted ones, then dead ones."""
    ids = await env.zk.broker_ids()
    async with env.locked():
        now = await env.zk.brokers(ids)
        await _brokers_are(env, now, ids)


def _changed(known: set[int], listed: set[int], read: set[int], twice: bool) -> tuple[set[int], set[int]]:
    """The brokers that are new, and those that are dead."""
    return read - known, known - (listed if twice else read)


async def _brokers_are(env: Controller, now: dict[int, Broker], listed: Collection[int]) -> None:
    """Take over the brokers of `now`. Before KAFKA-3085 a broker that was `listed` did not count as dead."""
    before = env.context.brokers
    changed = env.plugins.rule("brokers", partial(_changed, twice=env.generation.bugs.reads_brokers_twice))
    new, dead = map(sorted, changed(set(before), set(listed), set(now)))
    bounced: list[int] = []
    if env.generation.membership.broker_epochs:
        bounced = sorted(b for b in now.keys() & before.keys() if now[b].epoch > before[b].epoch)
    env.log("brokers_changed", new=new, dead=dead, bounced=bounced, live=sorted(now))
    for broker in [*bounced, *dead]:
        env.channels.remove(broker)
    for broker in [*new, *bounced]:
        env.channels.add(broker)
    if not env.generation.membership.broker_epochs:
        env.context.brokers = now
    if new:
        _update(env, now, new)
        await on_broker_startup(env, new)
    if bounced:
        _update(env, {}, bounced)
        await on_broker_failure(env, bounced)
        _update(env, now, bounced)
        await on_broker_startup(env, bounced)
    if dead:
        _update(env, {}, dead)
        await on_broker_failure(env, dead)
    if env.generation.membership.broker_epochs and (new or bounced or dead):
        env.log("broker_epochs_updated", epochs={id: broker.epoch for id, broker in env.context.brokers.items()})


def _update(env: Controller, now: dict[int, Broker], changed: Iterable[int]) -> None:
    """Take over what is known now of some brokers, group by group, as Kafka does since it has broker epochs."""
    rest = {id: broker for id, broker in env.context.brokers.items() if id not in changed}
    env.context.brokers = dict(sorted((rest | {id: now[id] for id in changed if id in now}).items()))


async def broker_modifications(env: Controller, broker: int) -> None:
    """A broker's endpoints changed: send the metadata to all brokers."""
    new, known = (await env.zk.brokers([broker])).get(broker), env.context.brokers.get(broker)
    if new is not None and known is not None and (new.host, new.port) != (known.host, known.port):
        env.log("broker_updated", broker=broker, host=new.host, port=new.port, old_host=known.host, old_port=known.port)
        env.context.brokers[broker] = new._replace(epoch=known.epoch)
        env.log("broker_info_update", broker=broker)
        await env.announce_brokers()


async def on_broker_startup(env: Controller, brokers: Sequence[int]) -> None:
    """Announce these brokers, move their replicas to Online, and elect leaders where there are none."""
    env.log("broker_startup", brokers=list(brokers))
    for broker in brokers:
        env.context.offline_dirs.pop(broker, None)
    if env.generation.requests.metadata_to_all_on_broker_change:
        await env.send_update_metadata()
    else:
        await env.send_update_metadata((), [b for b in env.context.live_or_shutting_down if b not in brokers])
        await env.send_update_metadata(None, brokers)
    replicas = env.context.replicas_on(brokers)
    await env.replica_machine.handle(replicas, ONLINE)
    await env.partition_machine.trigger_online()
    returning = frozenset(brokers)
    if env.generation.reassignment.incremental_reassignment:
        await reassignment_incremental.resume(env, lambda _, assignment: not returning.isdisjoint(assignment.target))
    else:
        moving = env.context.reassigning
        for tp in filtered(moving, lambda _, target: not returning.isdisjoint(target)):
            await reassignment.on_reassignment(env, tp, moving[tp])
    if to_be_deleted := [r for r in replicas if r.topic in env.context.topics_to_be_deleted]:
        topics = list(env.context.topics_to_be_deleted)
        env.log("deletion_can_resume", replicas=[list(r) for r in to_be_deleted], topics=topics, brokers=list(brokers))
        await deletion.resume(env, {r.topic for r in to_be_deleted})
    if env.generation.membership.watches_endpoints:
        await listeners.watch_brokers(env, brokers)


async def on_broker_failure(env: Controller, brokers: Sequence[int]) -> None:
    """Move the replicas of these dead brokers to Offline, and elect new leaders where one of the brokers led."""
    env.log("broker_failure", brokers=list(brokers))
    shutting_down = [b for b in brokers if b in env.context.shutting_down]
    for broker in brokers:
        env.context.offline_dirs.pop(broker, None)
        env.context.shutting_down.discard(broker)
    if shutting_down or not env.generation.membership.broker_epochs:
        env.log("removed_from_shutting_down", brokers=shutting_down)
    await on_replicas_offline(env, env.context.replicas_on(brokers), frozenset(brokers))
    listeners.forget_brokers(env, brokers)


async def on_replicas_offline(env: Controller, replicas: Iterable[Replica], dead: frozenset[int] = frozenset()) -> None:
    """Move partitions without an online leader to Offline, elect leaders, then move the replicas to Offline.

    Before 1.0 only partitions that one of the `dead` brokers led are moved.
    """
    context, to_be_deleted, gone = env.context, env.context.topics_to_be_deleted, list(replicas)

    def is_leaderless(tp: TopicPartition, state: LeaderAndIsr) -> bool:
        missing = env.generation.election.follows_missing_leaders and not context.online(state.leader, tp)
        return tp.topic not in to_be_deleted and (state.leader in dead or missing)

    leaderless = filtered(context.leadership, is_leaderless)
    await env.partition_machine.handle(leaderless, OFFLINE_PARTITION)
    await env.partition_machine.trigger_online()
    await env.replica_machine.handle([r for r in gone if r.topic not in to_be_deleted], OFFLINE)
    await deletion.fail(env, [r for r in gone if r.topic in to_be_deleted])
    if not leaderless:
        await env.announce_brokers()


# Reports


async def isr_change_notification(env: Controller) -> None:
    """Read the partitions named by the notifications again, send them to all brokers, delete the notifications."""
    parent = znodes.IsrChangeNotificationZNode.path()
    names = await env.zk.read_children(parent)
    async with env.locked():
        try:
            found = await env.zk.notifications(parent, names, znodes.IsrChangeNotificationSequenceZNode.decode)
            if partitions := dict.fromkeys(tp for named in found for tp in named):
                await topics.refresh_leadership(env, partitions)
                await env.send_update_metadata(partitions)
        finally:
            await env.zk.delete_children(parent, names)


async def log_dir_event_notification(env: Controller) -> None:
    """Brokers lost a log directory: ask them for all their replicas; their answers say which are gone."""
    parent = znodes.LogDirEventNotificationZNode.path()
    names = await env.zk.read_children(parent)
    try:
        brokers = await env.zk.notifications(parent, names, znodes.LogDirEventNotificationSequenceZNode.decode)
        await env.replica_machine.handle(env.context.replicas_on(brokers), ONLINE)
    finally:
        await env.zk.delete_children(parent, names)


async def leader_and_isr_response(
    env: Controller, broker: int, error: str | None, errors: dict[TopicPartition, str | None]
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
        await on_replicas_offline(env, [Replica(tp.topic, tp.partition, broker) for tp in new])
