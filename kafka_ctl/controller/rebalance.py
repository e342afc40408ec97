"""Bringing leadership back to the preferred replicas: on request, and by itself when too much has drifted.

Kafka 2.0.1: controller/KafkaController.scala, PreferredReplicaLeaderElection, checkAndTriggerAutoLeaderRebalance
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import deletion, events, listeners
from kafka_ctl.controller.environment import Environment
from kafka_ctl.controller.legacy_threads import Thread
from kafka_ctl.controller.partition_machine import Strategy
from kafka_ctl.partition import ONLINE
from kafka_ctl.scala_order import case_hash, group_order, map_order, set_order_by
from kafka_ctl.zookeeper.json_fields import NotJson
from kafka_ctl.zookeeper.store import Delete
from kafka_ctl.zookeeper.znodes import PreferredReplicaElectionZNode

FIRST_CHECK = 5.0
"""Seconds from becoming controller to the first look at the balance."""
MANUAL, AUTOMATIC = "ZkTriggered", "AutoTriggered"


async def _wished(c: Environment) -> list[TopicPartition]:
    answer = await c.zk.read(PreferredReplicaElectionZNode.path())
    with suppress(NotJson):
        return PreferredReplicaElectionZNode.decode(answer.value) if isinstance(answer.value, bytes) else []
    return []


async def pending(c: Environment) -> list[TopicPartition]:
    """At failover: the elections that the last controller did not get to and that are still wanted."""
    context, wished = c.context, await _wished(c)
    done = [tp for tp in wished if not context.assigned(tp) or _leads(c, tp)]
    doomed = [tp for tp in wished if tp not in done and tp.topic in context.topics_to_be_deleted]
    rest = [tp for tp in wished if tp not in done and tp not in doomed]
    for message, partitions in (
        ("preferred_undergoing", wished),
        ("preferred_completed", done),
        ("preferred_skipped", doomed),
        ("preferred_resuming", rest),
    ):
        c.say(message, partitions=[str(tp) for tp in partitions])
    return rest


def _leads(c: Environment, tp: TopicPartition) -> bool:
    """Whether the preferred replica of a partition leads it."""
    state = c.context.leadership.get(tp)
    return state is not None and state.leader == c.context.assigned(tp)[0]


async def preferred_election(c: Environment) -> None:
    """`/admin/preferred_replica_election` was created."""
    if not await listeners.watch_preferred(c):
        return
    wished = await _wished(c)
    if c.context.in_tables:
        wished = set_order_by(wished, case_hash)
    async with c.locked():
        if running := c.context.preferred_elections:
            c.say("preferred_running", partitions=[str(tp) for tp in running])
        await _elect_wished(c, [tp for tp in wished if tp not in running])


async def _elect_wished(c: Environment, wished: list[TopicPartition]) -> None:
    doomed = [tp for tp in wished if tp.topic in c.context.topics_to_be_deleted]
    unknown = []
    if c.generation.skips_needless_elections:
        unknown = [tp for tp in wished if tp not in doomed and not c.context.assigned(tp)]
    if doomed:
        c.say("preferred_deleting", partitions=[str(tp) for tp in doomed])
    if unknown:
        c.say("preferred_unknown", partitions=[str(tp) for tp in unknown])
    electable = [tp for tp in wished if tp not in doomed and tp not in unknown]
    if c.generation.skips_needless_elections:
        electable = [tp for tp in electable if not _leads(c, tp)]
    await elect(c, electable, MANUAL)


async def elect(c: Environment, partitions: Iterable[TopicPartition], trigger: str) -> None:
    """Elect the preferred replicas of these partitions; a wish in ZooKeeper is then fulfilled."""
    wanted = list(partitions)
    c.say("preferred_starting", partitions=[str(tp) for tp in wanted], trigger=trigger)
    if c.generation.halts_deletions_for_elections:
        c.context.preferred_elections |= dict.fromkeys(wanted)
        deletion.halt(c, {tp.topic for tp in wanted}, deletion.ELECTING)
    await c.partition_machine.handle(wanted, ONLINE, Strategy.PREFERRED)
    for tp in wanted:
        leader = c.context.leader_of(tp)  # without one the wish stays where it is, as in Kafka
        preferred = c.context.assigned(tp)[0]
        words = {"partition": str(tp), "preferred": preferred, "leader": leader}
        c.say("preferred_done" if leader == preferred else "preferred_failed", **words)
    if trigger == MANUAL:
        await c.zk.write(Delete(PreferredReplicaElectionZNode.path()))
        if c.generation.wishes_begin_when_created:
            c.queue.put(events.PreferredReplicaLeaderElection())  # the watch is armed again by looking
    if c.generation.halts_deletions_for_elections:
        c.context.preferred_elections = {tp: None for tp in c.context.preferred_elections if tp not in wanted}
        await deletion.resume(c, {tp.topic for tp in wanted})


def schedule(c: Environment, seconds: float) -> None:
    """Look at the balance in so many seconds, unless the automatic rebalance is switched off."""

    async def wait() -> None:
        await c.clock.sleep(seconds, background=True)

    async def work() -> None:
        thread.ending = True
        c.queue.put(events.AutoPreferredReplicaLeaderElection())

    if c.config["auto.leader.rebalance.enable"]:
        thread = Thread(c, wait, work)
        c.threads = [t for t in c.threads if not t.ending] + [thread]


def start_thread(c: Environment) -> None:
    """0.10's rebalance thread: looks at fixed times, however long a look takes."""
    due, every = c.clock.now() + FIRST_CHECK, c.config["leader.imbalance.check.interval.seconds"]

    async def wait() -> None:
        nonlocal due
        await c.clock.sleep(max(0.0, due - c.clock.now()), background=True)
        due += every

    async def work() -> None:
        event = events.AutoPreferredReplicaLeaderElection()
        await c.work(event, c.queue.record(event))

    if c.config["auto.leader.rebalance.enable"]:
        c.say("starting_scheduler")
        c.threads.append(Thread(c, wait, work))


async def auto_rebalance(c: Environment) -> None:
    """Elect preferred replicas of brokers that should lead more; with a queue, look again when so much time is over."""
    try:
        await _check(c)
    finally:
        if c.generation.single_threaded:
            schedule(c, c.config["leader.imbalance.check.interval.seconds"])


async def _check(c: Environment) -> None:
    context = c.context
    c.say("checking_balance")
    by_preferred: dict[int, list[TopicPartition]] = {}
    async with c.locked():
        for tp in _kept(c):
            if context.assigned(tp):
                by_preferred.setdefault(context.assigned(tp)[0], []).append(tp)
    for broker in group_order(by_preferred):
        partitions = _walked(c, by_preferred[broker])
        async with c.locked():
            astray = [tp for tp in partitions if tp in context.leadership and context.leadership[tp].leader != broker]
            ratio = len(astray) / len(partitions)
            c.say("imbalance", broker=broker, ratio=ratio)
        if ratio > c.config["leader.imbalance.per.broker.percentage"] / 100:
            await _rebalance(c, broker, astray)


def _kept(c: Environment) -> list[TopicPartition]:
    """The partitions of topics that are not to be deleted.

    `filterNot`, unlike `filter`, copies a map once for each key that it leaves out, and not at all where there is none.
    Scala 2.12: collection/MapLike.scala, filterNot; collection/mutable/MapLike.scala, -
    """
    doomed, every = c.context.topics_to_be_deleted, list(c.context.all_partitions())
    if c.context.in_tables:
        earlier: list[TopicPartition] = []
        for left in range(sum(tp.topic in doomed for tp in every), 0, -1):
            if (walked := _walked(c, every)) == earlier and left % 2 == 0:
                break  # two copies more are as these
            earlier, every = every, walked
    return [tp for tp in every if tp.topic not in doomed]


def _walked(c: Environment, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The partitions in the order of a new table, where they are in tables."""
    return map_order(partitions, case_hash) if c.context.in_tables else list(partitions)


async def _rebalance(c: Environment, broker: int, astray: list[TopicPartition]) -> None:
    """Give a broker the leaderships it is preferred for: all at once, or one by one as far as that still can be."""
    if c.generation.rebalances_in_batches:
        await elect(c, [tp for tp in astray if _electable(c, tp, broker)], AUTOMATIC)
        return
    for tp in _walked(c, astray):
        async with c.locked():
            if _electable(c, tp, broker):
                await elect(c, [tp], AUTOMATIC)


def _electable(c: Environment, tp: TopicPartition, broker: int) -> bool:
    context = c.context
    busy = context.reassigning or context.preferred_elections
    known = tp.topic in context.topics and tp.topic not in context.topics_to_be_deleted
    may_lead = not c.generation.rebalances_to_in_sync or broker in context.leadership[tp].isr
    return known and not busy and may_lead and context.online(broker, tp)
