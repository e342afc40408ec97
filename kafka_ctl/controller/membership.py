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


async def broker_change(c: Environment) -> None:
    """The children of `/brokers/ids` changed: greet the new brokers, then bury the dead."""
    ids = await c.zk.broker_ids()
    async with c.locked():
        now = await c.zk.brokers(ids)
        await _brokers_are(c, now, now if c.generation.reads_brokers_once else ids)


async def _brokers_are(c: Environment, now: dict[int, Broker], listed: Collection[int]) -> None:
    """Take over who is there `now`; whoever is `listed` counts as alive, though before KAFKA-3085 it could be gone."""
    before = c.context.brokers
    new, dead = sorted(now.keys() - before.keys()), sorted(before.keys() - set(listed))
    bounced: list[int] = []
    if c.generation.broker_epochs:
        bounced = sorted(b for b in now.keys() & before.keys() if now[b].epoch > before[b].epoch)
    c.say("brokers_changed", new=new, dead=dead, bounced=bounced, live=sorted(now))
    for broker in [*bounced, *dead]:
        c.channels.remove(broker)
    for broker in [*new, *bounced]:
        c.channels.add(broker)
    if not c.generation.broker_epochs:
        c.context.brokers = now
    if new:
        _update(c, now, new)
        await on_broker_startup(c, new)
    if bounced:
        _update(c, {}, bounced)
        await on_broker_failure(c, bounced)
        _update(c, now, bounced)
        await on_broker_startup(c, bounced)
    if dead:
        _update(c, {}, dead)
        await on_broker_failure(c, dead)
    if c.generation.broker_epochs and (new or bounced or dead):
        c.say("broker_epochs_updated", epochs={id: broker.epoch for id, broker in c.context.brokers.items()})


def _update(c: Environment, now: dict[int, Broker], changed: Iterable[int]) -> None:
    """Take over what is known now of some brokers, group by group, as Kafka does since it has broker epochs."""
    rest = {id: broker for id, broker in c.context.brokers.items() if id not in changed}
    c.context.brokers = dict(sorted((rest | {id: now[id] for id in changed if id in now}).items()))


async def broker_modifications(c: Environment, broker: int) -> None:
    """A broker's endpoints changed: everybody must know."""
    answer = await c.zk.read(BrokerIdZNode.path(broker))
    known = c.context.brokers.get(broker)
    if answer.error is None and known is not None:
        assert isinstance(answer.value, bytes) and answer.stat is not None
        new = BrokerIdZNode.decode(answer.value, broker, answer.stat.czxid)
        if (new.host, new.port) != (known.host, known.port):
            c.say("broker_updated", broker=broker, host=new.host, port=new.port)
            c.context.brokers[broker] = new
            c.say("broker_info_update", broker=broker)
            await c.announce_brokers()


async def on_broker_startup(c: Environment, brokers: Sequence[int]) -> None:
    """Tell everybody of them, tell them what they hold, and see whom they bring back."""
    c.say("broker_startup", brokers=list(brokers))
    for broker in brokers:
        c.context.offline_dirs.pop(broker, None)
    if c.generation.metadata_to_all_on_broker_change:
        await c.send_update_metadata()
    else:
        await c.send_update_metadata((), [b for b in c.context.live_or_shutting_down if b not in brokers])
        await c.send_update_metadata(None, brokers)
    replicas = c.context.replicas_on(brokers)
    await c.replica_machine.handle(replicas, ONLINE)
    await c.partition_machine.trigger_online()
    returning = frozenset(brokers)
    if c.generation.incremental_reassignment:
        await reassignment_incremental.resume(c, lambda _, assignment: not returning.isdisjoint(assignment.target))
    else:
        moving = c.context.reassigning
        for tp in filtered(moving, lambda _, target: not returning.isdisjoint(target)):
            await reassignment.on_reassignment(c, tp, moving[tp])
    doomed = [r for r in replicas if r.topic in c.context.topics_to_be_deleted]
    if doomed:
        topics = list(c.context.topics_to_be_deleted)
        c.say("deletion_can_resume", replicas=[list(r) for r in doomed], topics=topics, brokers=list(brokers))
        await deletion.resume(c, {r.topic for r in doomed})
    if c.generation.watches_endpoints:
        await listeners.watch_brokers(c, brokers)


async def on_broker_failure(c: Environment, brokers: Sequence[int]) -> None:
    """Their replicas are offline; new leaders are elected where one of them led."""
    c.say("broker_failure", brokers=list(brokers))
    leaving = [b for b in brokers if b in c.context.shutting_down]
    for broker in brokers:
        c.context.offline_dirs.pop(broker, None)
        c.context.shutting_down.discard(broker)
    if leaving or not c.generation.broker_epochs:
        c.say("removed_from_shutting_down", brokers=leaving)
    await on_replicas_offline(c, c.context.replicas_on(brokers), frozenset(brokers))
    listeners.forget_brokers(c, brokers)


async def on_replicas_offline(c: Environment, replicas: Iterable[Replica], dead: frozenset[int] = frozenset()) -> None:
    """Partitions without an online leader go Offline and look for one; then the replicas leave their ISRs.

    Before 1.0 only those that one of the `dead` brokers led do.
    """
    context, doomed, every = c.context, c.context.topics_to_be_deleted, c.generation.follows_missing_leaders
    leaderless = filtered(
        context.leadership,
        lambda tp, state: (
            tp.topic not in doomed and (state.leader in dead or (every and not context.online(state.leader, tp)))
        ),
    )
    await c.partition_machine.handle(leaderless, OFFLINE_PARTITION)
    await c.partition_machine.trigger_online()
    gone = list(replicas)
    await c.replica_machine.handle([r for r in gone if r.topic not in doomed], OFFLINE)
    await deletion.fail(c, [r for r in gone if r.topic in doomed])
    if not leaderless:
        await c.announce_brokers()
