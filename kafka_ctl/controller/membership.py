"""Brokers that come, change and go.

Kafka 2.0.1: controller/KafkaController.scala, BrokerChange, onBrokerStartup, onBrokerFailure, onReplicasBecomeOffline
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kafka_ctl.cluster import Broker, Replica
from kafka_ctl.controller import deletion, listeners, reassignment, reassignment_incremental
from kafka_ctl.controller.environment import Environment
from kafka_ctl.partition import OFFLINE as OFFLINE_PARTITION
from kafka_ctl.replica import OFFLINE, ONLINE
from kafka_ctl.scala_order import filtered
from kafka_ctl.zookeeper.znodes import BrokerIdZNode


async def broker_change(env: Environment) -> None:
    """The children of `/brokers/ids` changed: greet the new brokers, then bury the dead."""
    ids = await env.zk.broker_ids()
    async with env.locked():
        now = await env.zk.brokers(ids)
        await _brokers_are(env, now, ids if env.generation.bugs.reads_brokers_twice else now)


async def _brokers_are(env: Environment, now: dict[int, Broker], listed: Collection[int]) -> None:
    """Take over who is there `now`; whoever is `listed` counts as alive, though before KAFKA-3085 it could be gone."""
    before = env.context.brokers
    new, dead = sorted(now.keys() - before.keys()), sorted(before.keys() - set(listed))
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


def _update(env: Environment, now: dict[int, Broker], changed: Iterable[int]) -> None:
    """Take over what is known now of some brokers, group by group, as Kafka does since it has broker epochs."""
    rest = {id: broker for id, broker in env.context.brokers.items() if id not in changed}
    env.context.brokers = dict(sorted((rest | {id: now[id] for id in changed if id in now}).items()))


async def broker_modifications(env: Environment, broker: int) -> None:
    """A broker's endpoints changed: everybody must know."""
    answer = await env.zk.read(BrokerIdZNode.path(broker))
    known = env.context.brokers.get(broker)
    if answer.error is None and known is not None:
        assert isinstance(answer.value, bytes) and answer.stat is not None
        new = BrokerIdZNode.decode(answer.value, broker, answer.stat.czxid)
        if (new.host, new.port) != (known.host, known.port):
            env.log("broker_updated", broker=broker, host=new.host, port=new.port)
            env.context.brokers[broker] = new
            env.log("broker_info_update", broker=broker)
            await env.announce_brokers()


async def on_broker_startup(env: Environment, brokers: Sequence[int]) -> None:
    """Send them to all brokers, send them their replicas, and elect leaders that have come back with them."""
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
    to_be_deleted = [r for r in replicas if r.topic in env.context.topics_to_be_deleted]
    if to_be_deleted:
        topics = list(env.context.topics_to_be_deleted)
        env.log("deletion_can_resume", replicas=[list(r) for r in to_be_deleted], topics=topics, brokers=list(brokers))
        await deletion.resume(env, {r.topic for r in to_be_deleted})
    if env.generation.membership.watches_endpoints:
        await listeners.watch_brokers(env, brokers)


async def on_broker_failure(env: Environment, brokers: Sequence[int]) -> None:
    """Their replicas are offline; new leaders are elected where one of them led."""
    env.log("broker_failure", brokers=list(brokers))
    shutting_down = [b for b in brokers if b in env.context.shutting_down]
    for broker in brokers:
        env.context.offline_dirs.pop(broker, None)
        env.context.shutting_down.discard(broker)
    if shutting_down or not env.generation.membership.broker_epochs:
        env.log("removed_from_shutting_down", brokers=shutting_down)
    await on_replicas_offline(env, env.context.replicas_on(brokers), frozenset(brokers))
    listeners.forget_brokers(env, brokers)


async def on_replicas_offline(
    env: Environment, replicas: Iterable[Replica], dead: frozenset[int] = frozenset()
) -> None:
    """Partitions without an online leader go Offline and look for one; then the replicas leave their ISRs.

    Before 1.0 only those that one of the `dead` brokers led do.
    """
    context, to_be_deleted, every = (
        env.context,
        env.context.topics_to_be_deleted,
        env.generation.election.follows_missing_leaders,
    )
    leaderless = filtered(
        context.leadership,
        lambda tp, state: (
            tp.topic not in to_be_deleted and (state.leader in dead or (every and not context.online(state.leader, tp)))
        ),
    )
    await env.partition_machine.handle(leaderless, OFFLINE_PARTITION)
    await env.partition_machine.trigger_online()
    gone = list(replicas)
    await env.replica_machine.handle([r for r in gone if r.topic not in to_be_deleted], OFFLINE)
    await deletion.fail(env, [r for r in gone if r.topic in to_be_deleted])
    if not leaderless:
        await env.announce_brokers()
