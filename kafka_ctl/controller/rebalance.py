"""Bringing leadership back to the preferred replicas: on request, and when a broker leads too few of its own.

Kafka 2.0.1: controller/KafkaController.scala, PreferredReplicaLeaderElection, checkAndTriggerAutoLeaderRebalance
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from kafka_ctl import balance
from kafka_ctl.balance import BrokerBalance, Candidate
from kafka_ctl.cluster import NO_LEADER, TopicPartition
from kafka_ctl.controller import deletion, events, listeners
from kafka_ctl.controller.controller import Controller
from kafka_ctl.controller.partition_machine import Strategy
from kafka_ctl.controller.process import Thread
from kafka_ctl.partition import ONLINE
from kafka_ctl.scala_order import grouped
from kafka_ctl.zookeeper.json_fields import NotJson
from kafka_ctl.zookeeper.store import Delete
from kafka_ctl.zookeeper.znodes import PreferredReplicaElectionZNode

FIRST_CHECK = 5.0
"""Seconds from becoming controller to the first look at the balance."""
MANUAL, AUTOMATIC = "ZkTriggered", "AutoTriggered"


async def _requested(env: Controller) -> list[TopicPartition]:
    answer = await env.zk.read(PreferredReplicaElectionZNode.path())
    with suppress(NotJson):
        return PreferredReplicaElectionZNode.decode(answer.value) if isinstance(answer.value, bytes) else []
    return []


async def pending(env: Controller) -> list[TopicPartition]:
    """At failover: the elections that the last controller did not get to and that are still wanted."""
    requested, deleting = await _requested(env), env.context.topics_to_be_deleted
    done = [tp for tp in requested if not env.context.assigned(tp) or _leads(env, tp)]
    to_be_deleted = [tp for tp in requested if tp not in done and tp.topic in deleting]
    rest = [tp for tp in requested if tp not in done and tp not in to_be_deleted]
    found = {"preferred_undergoing": requested, "preferred_completed": done, "preferred_skipped": to_be_deleted}
    for message, partitions in (found | {"preferred_resuming": rest}).items():
        env.log(message, partitions=[str(tp) for tp in partitions])
    return rest


def _leads(env: Controller, tp: TopicPartition) -> bool:
    """True if the leader of a partition is its preferred replica."""
    state = env.context.leadership.get(tp)
    return state is not None and state.leader == env.context.assigned(tp)[0]


async def preferred_election(env: Controller) -> None:
    """`/admin/preferred_replica_election` was created."""
    if not await listeners.watch_preferred(env):
        return
    requested = await _requested(env)
    async with env.locked():
        if running := env.context.preferred_elections:
            env.log("preferred_running", partitions=[str(tp) for tp in running])
        await _elect_requested(env, [tp for tp in env.context.as_set(requested) if tp not in running])


async def _elect_requested(env: Controller, requested: list[TopicPartition]) -> None:
    skips = env.generation.election.skips_needless_elections
    to_be_deleted = [tp for tp in requested if tp.topic in env.context.topics_to_be_deleted]
    rest = [tp for tp in requested if tp not in to_be_deleted]
    unknown = [tp for tp in rest if skips and not env.context.assigned(tp)]
    if to_be_deleted:
        env.log("preferred_deleting", partitions=[str(tp) for tp in to_be_deleted])
    if unknown:
        env.log("preferred_unknown", partitions=[str(tp) for tp in unknown])
    electable = [tp for tp in rest if tp not in unknown and not (skips and _leads(env, tp))]
    await elect(env, electable, MANUAL)


async def elect(env: Controller, partitions: Iterable[TopicPartition], trigger: str) -> None:
    """Elect the preferred replicas of these partitions; a request in ZooKeeper is then fulfilled."""
    wanted = list(partitions)
    env.log("preferred_starting", partitions=[str(tp) for tp in wanted], trigger=trigger)
    if env.generation.deletion.halts_deletions_for_elections:
        env.context.preferred_elections |= dict.fromkeys(wanted)
        deletion.halt(env, {tp.topic for tp in wanted}, deletion.ELECTING)
    await env.partition_machine.handle(wanted, ONLINE, Strategy.PREFERRED)
    for tp in wanted:
        leader = env.context.leader_of(tp)  # without one the request stays where it is, as in Kafka
        preferred = env.context.assigned(tp)[0]
        fields = {"partition": str(tp), "preferred": preferred, "leader": leader}
        env.log("preferred_done" if leader == preferred else "preferred_failed", **fields)
    if trigger == MANUAL:
        await env.zk.write(Delete(PreferredReplicaElectionZNode.path()))
        if env.generation.reassignment.requests_begin_when_created:
            env.queue.put(events.PreferredReplicaLeaderElection())  # the watch is armed again by looking
    if env.generation.deletion.halts_deletions_for_elections:
        env.context.preferred_elections = {tp: None for tp in env.context.preferred_elections if tp not in wanted}
        await deletion.resume(env, {tp.topic for tp in wanted})


def schedule(env: Controller, seconds: float) -> None:
    """Look at the balance in so many seconds, unless the automatic rebalance is switched off."""

    async def wait() -> None:
        await env.clock.sleep(seconds, background=True)

    async def work() -> None:
        thread.ending = True
        env.queue.put(events.AutoPreferredReplicaLeaderElection())

    if env.config["auto.leader.rebalance.enable"]:
        thread = Thread(env, wait, work)
        env.threads = [t for t in env.threads if not t.ending] + [thread]


def start(env: Controller) -> None:
    """At failover: look at the balance from now on.

    Kafka 2.0.1: controller/KafkaController.scala, scheduleAutoLeaderRebalanceTask; 0.10.2.2: onControllerFailover
    """
    if env.generation.election.rebalances_at_fixed_times:
        _start_thread(env)
    else:
        env.log("starting_scheduler")
        schedule(env, FIRST_CHECK)


def _start_thread(env: Controller) -> None:
    """The rebalance thread of 0.10: it checks the balance at fixed times, however long a check takes."""
    due, every = env.clock.now() + FIRST_CHECK, env.config["leader.imbalance.check.interval.seconds"]

    async def wait() -> None:
        nonlocal due
        await env.clock.sleep(max(0.0, due - env.clock.now()), background=True)
        due += every

    async def work() -> None:
        event = events.AutoPreferredReplicaLeaderElection()
        await env.work(event, env.queue.record(event))

    if env.config["auto.leader.rebalance.enable"]:
        env.log("starting_scheduler")
        env.threads.append(Thread(env, wait, work))


async def auto_rebalance(env: Controller) -> None:
    """Elect preferred replicas of brokers that should lead more; with a queue, look again when so much time is over."""
    try:
        await _check(env)
    finally:
        if not env.generation.election.rebalances_at_fixed_times:
            schedule(env, env.config["leader.imbalance.check.interval.seconds"])


async def _check(env: Controller) -> None:
    context, share = env.context, env.config["leader.imbalance.per.broker.percentage"] / 100
    env.log("checking_balance")
    choose: Callable[..., list[TopicPartition]] | None = env.plugins.rule("rebalance", None)
    async with env.locked():
        if choose is not None:
            chosen = choose(*_seen(env))
            if env.plugins.rule("electable", None) is not None:
                chosen = [tp for tp in chosen if _electable(env, tp, context.assigned(tp)[0])]
            if chosen:
                await elect(env, chosen, AUTOMATIC)
            return
        kept = [tp for tp in context.partitions_without(context.topics_to_be_deleted) if context.assigned(tp)]
        by_preferred = grouped(kept, lambda tp: context.assigned(tp)[0])
    for broker, preferring in by_preferred.items():
        partitions = context.walked(preferring)
        async with env.locked():
            led = {tp: context.leadership[tp].leader for tp in partitions if tp in context.leadership}
            not_preferred = [tp for tp, leader in led.items() if leader != broker]
            ratio = len(not_preferred) / len(partitions)
            env.log("imbalance", broker=broker, ratio=ratio)
        if ratio > share:
            await _rebalance(env, broker, not_preferred)


async def _rebalance(env: Controller, broker: int, not_preferred: list[TopicPartition]) -> None:
    """Give a broker the leaderships it is preferred for: all at once, or one by one as far as that still can be."""
    if env.generation.election.rebalances_in_batches:
        await elect(env, [tp for tp in not_preferred if _electable(env, tp, broker)], AUTOMATIC)
        return
    for tp in env.context.walked(not_preferred):
        async with env.locked():
            if _electable(env, tp, broker):
                await elect(env, [tp], AUTOMATIC)


def _electable(env: Controller, tp: TopicPartition, broker: int) -> bool:
    context = env.context
    known = tp.topic in context.all_topics and not context.preferred_elections
    live = frozenset(replica for replica in context.assigned(tp) if context.online(replica, tp))
    in_sync = not env.generation.bugs.rebalances_out_of_sync
    usual = partial(_may_be_elected, in_sync=in_sync)
    may = env.plugins.rule("electable", usual)
    return known and may(_candidate(env, tp), live, frozenset(context.reassigning))


def _may_be_elected(
    partition: Candidate, live: frozenset[int], moving: frozenset[TopicPartition], in_sync: bool
) -> bool:
    return balance.left_out(partition, live, moving, in_sync) is None


def _candidate(env: Controller, tp: TopicPartition) -> Candidate:
    context = env.context
    state, deleting = context.leadership.get(tp), tp.topic in context.topics_to_be_deleted
    isr, leader = (state.isr, state.leader) if state is not None else ((), NO_LEADER)
    return Candidate(*tp, context.assigned(tp), isr, leader, deleting)


def _seen(env: Controller) -> tuple[list[Candidate], frozenset[int], frozenset[TopicPartition], int]:
    """The inputs of a check: partitions that have had a leader, live brokers, moving partitions, the percentage."""
    context = env.context
    seen = [_candidate(env, tp) for tp in context.all_partitions() if tp in context.leadership and context.assigned(tp)]
    return seen, context.live, frozenset(context.reassigning), env.config["leader.imbalance.per.broker.percentage"]


def brokers_balance(env: Controller) -> list[BrokerBalance]:
    """For each broker, the result of a check that would run now, and the elections that would follow."""
    return balance.balance(*_seen(env), in_sync=not env.generation.bugs.rebalances_out_of_sync)
