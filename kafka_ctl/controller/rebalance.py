"""Requested leader elections, and the automatic rebalance, for a broker that leads too few of its preferred partitions.

Administrators ask for preferred leaders through ZooKeeper or by a request, and for unclean ones by a request (KIP-460);
a topic's configuration allows unclean elections (KAFKA-6835). Every partition of a request gets an answer of its own. A
requested unclean election is held if no live broker leads. It takes the first live replica in the ISR or, if there is
none, the first live replica; it does not read the configuration.
Kafka 2.0.1: controller/KafkaController.scala, PreferredReplicaLeaderElection, checkAndTriggerAutoLeaderRebalance
Kafka 2.4.1: controller/KafkaController.scala, processReplicaLeaderElection, onReplicaElection,
processTopicUncleanLeaderElectionEnable
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from kafka_ctl import balance
from kafka_ctl.balance import BrokerBalance, Candidate
from kafka_ctl.cluster import NO_LEADER, TopicPartition
from kafka_ctl.controller import deletion, events, listeners
from kafka_ctl.controller.controller import Controller
from kafka_ctl.controller.failures import UNKNOWN
from kafka_ctl.controller.process import Thread
from kafka_ctl.election import ElectionType, Strategy
from kafka_ctl.errors import ControllerMoved, StateChangeFailed
from kafka_ctl.partition import ONLINE
from kafka_ctl.requests import ApiError
from kafka_ctl.scala_order import grouped
from kafka_ctl.zookeeper.znodes import PreferredReplicaElectionZNode

FIRST_CHECK = 5.0
"""Seconds from becoming controller to the first look at the balance."""
MANUAL, AUTOMATIC = "ZkTriggered", "AutoTriggered"
DELETING = ApiError("INVALID_TOPIC_EXCEPTION", "The topic is being deleted")
NOT_NEEDED = ApiError("ELECTION_NOT_NEEDED", "Leader election not needed for topic partition")
UNAVAILABLE = {
    ElectionType.PREFERRED: "PREFERRED_LEADER_NOT_AVAILABLE",
    ElectionType.UNCLEAN: "ELIGIBLE_LEADERS_NOT_AVAILABLE",
}
"""The error where no replica may lead."""

# Asked for through ZooKeeper


async def pending(env: Controller) -> list[TopicPartition]:
    """At failover: the requested elections still to be done. Raises StateChangeFailed for what never had a leader."""
    requested, deleting = await env.zk.preferred_elections(), env.context.topics_to_be_deleted
    done = [tp for tp in requested if not (ar := env.context.assigned(tp)) or env.context.leader_of(tp) == ar[0]]
    to_be_deleted = [tp for tp in requested if tp not in done and tp.topic in deleting]
    rest = [tp for tp in requested if tp not in done and tp not in to_be_deleted]
    found = {"preferred_undergoing": requested, "preferred_completed": done, "preferred_skipped": to_be_deleted}
    for message, partitions in (found | {"preferred_resuming": rest}).items():
        env.log(message, partitions=[str(tp) for tp in partitions])
    return rest


async def preferred_election(env: Controller) -> None:
    """`/admin/preferred_replica_election` was created."""
    if not await listeners.watch_request(env, PreferredReplicaElectionZNode):
        return
    requested = await env.zk.preferred_elections()
    async with env.locked():
        if running := env.context.preferred_elections:
            env.log("preferred_running", partitions=[str(tp) for tp in running])
        await _elect_requested(env, [tp for tp in env.context.orders.as_set(requested) if tp not in running])


async def _elect_requested(env: Controller, requested: list[TopicPartition]) -> None:
    """Elect where it is needed; in 2.4 nowhere if one of the partitions has never had a leader."""
    skips = env.generation.election.skips_needless_elections
    unknown = [tp for tp in requested if skips and not env.context.has(tp)]
    for tp in unknown:
        env.log("preferred_unknown", partitions=[str(tp)])
    known = [tp for tp in requested if tp not in unknown]
    if to_be_deleted := [tp for tp in known if tp.topic in env.context.topics_to_be_deleted]:
        env.log("preferred_deleting", partitions=[str(tp) for tp in to_be_deleted])
    rest = [tp for tp in known if tp not in to_be_deleted]
    await elect(env, [tp for tp in rest if not skips or _needs_election(env, ElectionType.PREFERRED, tp)], MANUAL)


async def elect(env: Controller, partitions: Iterable[TopicPartition], trigger: str) -> None:
    """Elect the preferred replicas of these partitions; a request in ZooKeeper is then fulfilled."""
    wanted = list(partitions)
    env.log("preferred_starting", partitions=[str(tp) for tp in wanted], trigger=trigger)
    if env.generation.deletion.halts_deletions_for_elections:
        env.context.preferred_elections |= dict.fromkeys(wanted)
        deletion.halt(env, {tp.topic for tp in wanted}, deletion.ELECTING)
    moved: ControllerMoved | None = None
    try:
        await env.partition_machine.handle(wanted, ONLINE, Strategy.PREFERRED)
    except ControllerMoved as error:  # the results are logged all the same
        moved = error
    for tp in wanted:
        leader = env.context.leader_of(tp)  # without one the request stays where it is, as in Kafka
        preferred = env.context.preferred(tp)
        fields = {"partition": str(tp), "preferred": preferred, "leader": leader}
        env.log("preferred_done" if leader == preferred else "preferred_failed", **fields)
    if trigger == MANUAL:
        await listeners.end_request(env, PreferredReplicaElectionZNode)
    if moved is not None:
        raise moved
    if env.generation.deletion.halts_deletions_for_elections:
        env.context.preferred_elections = {tp: None for tp in env.context.preferred_elections if tp not in wanted}
        await deletion.resume(env, {tp.topic for tp in wanted})


# Asked for by a request or a topic's configuration


async def elect_leaders(
    env: Controller, kind: ElectionType, partitions: Sequence[TopicPartition], reply: asyncio.Future
) -> None:
    """Elect where it is needed; `reply` gets the new leader of each partition, or why there is none.

    When one of the partitions has never had a leader the event fails, as in Kafka, and nothing is answered.
    """
    answers: dict[TopicPartition, ApiError | int] = {}
    for tp in partitions:
        if not env.context.has(tp):
            env.log("election_unknown", partition=str(tp), type=kind)
            answers[tp] = UNKNOWN
        elif tp.topic in env.context.topics_to_be_deleted:
            answers[tp] = DELETING
    if deleting := [str(tp) for tp, answer in answers.items() if answer is DELETING]:
        env.log("election_deleting", partitions=deleting, type=kind)
    wanted = [tp for tp in partitions if tp not in answers]
    electable = [tp for tp in wanted if _needs_election(env, kind, tp)]
    answers |= dict.fromkeys((tp for tp in wanted if tp not in electable), NOT_NEEDED)
    env.log("election_starting", partitions=[str(tp) for tp in electable], type=kind)
    failures = await env.partition_machine.handle(electable, ONLINE, Strategy[kind])
    for tp in electable:
        error = failures.get(tp)
        code = UNAVAILABLE[kind] if isinstance(error, StateChangeFailed) else "UNKNOWN_SERVER_ERROR"
        answers[tp] = ApiError(code, str(error)) if error is not None else env.context.leader_of(tp)
    env.log("election_results", type=kind, results={str(tp): _printed(answer) for tp, answer in answers.items()})
    if not reply.done():
        reply.set_result(answers)


def _needs_election(env: Controller, kind: ElectionType, tp: TopicPartition) -> bool:
    """True if the leader is not the wanted one. Raises StateChangeFailed if there has never been one."""
    if kind is ElectionType.PREFERRED:
        return env.context.preferred(tp) != env.context.leader_of(tp)
    leader = env.context.leader_of(tp)
    return leader == NO_LEADER or leader not in env.context.live


def _printed(answer: ApiError | int) -> str:
    """An answer as Scala prints it."""
    if isinstance(answer, int):
        return f"Right({answer})"
    return f"Left(ApiError(error={answer.code}, message={answer.text}))"


async def unclean_enabled(env: Controller, topic: str) -> None:
    """Look for leaders of the topic's partitions that have none; its configuration is read from ZooKeeper again."""
    env.log("unclean_enabled", topic=topic)
    await env.partition_machine.trigger_online(topic)


# The balance


def schedule(env: Controller, seconds: float) -> None:
    """Look at the balance in so many seconds, if the automatic rebalance is on: Kafka's auto-leader-rebalance-task."""

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
    """0.10's partition-rebalance-thread: it checks the balance at fixed times, however long a check takes."""
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
    """Elect preferred replicas of brokers that should lead more; with a queue, schedule the next check."""
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
                chosen = [tp for tp in chosen if _electable(env, tp, context.preferred(tp))]
            if chosen:
                await elect(env, chosen, AUTOMATIC)
            return
        by_preferred = grouped(context.partitions_without(context.topics_to_be_deleted), context.preferred)
    for broker, preferring in by_preferred.items():
        partitions = context.orders.walked(preferring)
        async with env.locked():
            led = {tp: context.leadership[tp].leader for tp in partitions if tp in context.leadership}
            not_preferred = [tp for tp, leader in led.items() if leader != broker]
            ratio = len(not_preferred) / len(partitions)
            env.log("imbalance", broker=broker, ratio=ratio)
        if ratio > share:
            await _rebalance(env, broker, not_preferred)


async def _rebalance(env: Controller, broker: int, not_preferred: list[TopicPartition]) -> None:
    """Elect a broker where it is preferred: all partitions at once, or one by one while each is electable."""
    if env.generation.election.rebalances_in_batches:
        await elect(env, [tp for tp in not_preferred if _electable(env, tp, broker)], AUTOMATIC)
        return
    for tp in env.context.orders.walked(not_preferred):
        async with env.locked():
            if _electable(env, tp, broker):
                await elect(env, [tp], AUTOMATIC)


def _electable(env: Controller, tp: TopicPartition, broker: int) -> bool:
    context = env.context
    known = tp.topic in context.all_topics and not context.preferred_elections
    live = frozenset(replica for replica in context.assigned(tp) if context.online(replica, tp))
    in_sync = not env.generation.bugs.rebalances_out_of_sync
    may = env.plugins.rule(
        "electable", lambda seen, live, moving: balance.left_out(seen, live, moving, in_sync) is None
    )
    return known and may(_candidate(env, tp), live, frozenset(context.reassigning))


def _candidate(env: Controller, tp: TopicPartition) -> Candidate:
    context = env.context
    state, deleting = context.leadership.get(tp), tp.topic in context.topics_to_be_deleted
    isr, leader = (state.isr, state.leader) if state is not None else ((), None)
    return Candidate(*tp, context.assigned(tp), isr, leader, deleting)


def _seen(env: Controller, never_led: bool = False) -> tuple[list[Candidate], frozenset[int], frozenset, int]:
    """The inputs of a check: partitions that have had a leader (or all), live brokers, moving ones, the percentage."""
    context = env.context
    known = (tp for tp in context.all_partitions() if never_led or tp in context.leadership)
    seen = [_candidate(env, tp) for tp in known if context.assigned(tp)]
    return seen, context.live, frozenset(context.reassigning), env.config["leader.imbalance.per.broker.percentage"]


def brokers_balance(env: Controller) -> list[BrokerBalance]:
    """For each broker, the result of a check that would run now, and the elections that would follow."""
    return balance.balance(*_seen(env, never_led=True), in_sync=not env.generation.bugs.rebalances_out_of_sync)
