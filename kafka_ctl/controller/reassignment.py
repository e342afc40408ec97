"""Moving partitions, the legacy way: twelve steps from the original replicas (OAR) to the requested ones (RAR).

The request stands in `/admin/reassign_partitions`. First the assigned replicas (AR) grow to OAR + RAR and the new ones
catch up; when all of RAR are in sync, leadership moves if it must, the others are stopped and deleted, and AR shrinks
to RAR. AR is written last, so that the next controller can go on from any point.
Kafka 2.0.1: controller/KafkaController.scala, onPartitionReassignment
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka_ctl.cluster import LeaderAndIsr, Replica, TopicPartition
from kafka_ctl.controller import deletion, listeners
from kafka_ctl.controller.controller import Controller
from kafka_ctl.controller.failures import failure, joined
from kafka_ctl.controller.state_machine import newer_controller_wrote
from kafka_ctl.election import Strategy
from kafka_ctl.errors import BadInput, ControllerMoved, KafkaCtlError, StateChangeFailed
from kafka_ctl.partition import ONLINE
from kafka_ctl.replica import NEW, NON_EXISTENT, OFFLINE, STARTED, SUCCESSFUL
from kafka_ctl.replica import ONLINE as ONLINE_REPLICA
from kafka_ctl.scala_order import difference, union
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode

Requests = dict[TopicPartition, tuple[int, ...]]


async def initialize(env: Controller) -> None:
    """At failover: keep the requested reassignments; 0.10 drops those that are done or have no topic."""
    requested = await read_request(env) or {}
    env.log("partitions_being_reassigned", partitions={str(tp): list(r) for tp, r in requested.items()})
    if env.generation.reassignment.drops_finished_requests:
        has, assigned = env.context.has, env.context.assigned
        done = [tp for tp, target in requested.items() if not has(tp) or assigned(tp) == target]
        await forget(env, done)
        requested = {tp: target for tp, target in requested.items() if tp not in done}
        env.log("partitions_already_reassigned", partitions=[str(tp) for tp in done])
        env.log("reassignment_resuming", partitions={str(tp): list(r) for tp, r in requested.items()})
    if not env.generation.reassignment.drops_requests_together:
        requested = {tp: requested[tp] for tp in env.context.orders.requested_map(requested)}
    env.context.reassigning |= requested


async def resume(env: Controller) -> None:
    """At failover, once ready: go on with the reassignments."""
    if env.generation.reassignment.drops_requests_together:
        await trigger(env, env.context.moving())
    else:
        for tp in list(env.context.reassigning):
            await initiate(env, tp, env.context.reassigning[tp])


async def partition_reassignment(env: Controller) -> None:
    """`/admin/reassign_partitions` was created; 0.10 also takes the new partitions of a changed request."""
    if not await listeners.watch_request(env, ReassignPartitionsZNode):
        return
    requested = await read_request(env) or {}
    fresh = requested
    if not env.generation.reassignment.requests_begin_when_created:  # our own changes are noticed, too
        fresh = {tp: target for tp, target in requested.items() if tp not in env.context.reassigning}
    if env.generation.reassignment.drops_requests_together:
        env.context.reassigning |= fresh
        # Also where there is nothing to do: then the znode goes.
        await trigger(env, env.context.orders.requested(fresh))
        return
    for tp in env.context.orders.requested(fresh):
        async with env.locked():
            if tp.topic in env.context.topics_to_be_deleted:
                env.log("reassignment_skipped", partition=str(tp))
                await forget(env, [tp])
            else:
                await initiate(env, tp, requested[tp])


async def trigger(env: Controller, partitions: Iterable[TopicPartition]) -> None:
    """Start these reassignments.

    Those that cannot be started, or need not be, are taken out of the znode in one write.
    """
    dropped: list[TopicPartition] = []
    for tp in partitions:
        if (target := env.context.reassigning.get(tp)) is None:  # this controller resigned during an earlier move
            raise failure("not_reassigning", partition=tp, all="")
        assigned = env.context.assigned(tp)
        if tp.topic in env.context.topics_to_be_deleted:
            env.log("reassignment_skipped", partition=str(tp))
        elif not assigned:
            env.log("reassignment_unknown", partition=str(tp))
        elif assigned == target:
            env.log("reassignment_not_needed", partition=str(tp), replicas=list(target))
        else:
            try:
                await start_move(env, tp, target)
                continue
            except ControllerMoved:
                raise
            except KafkaCtlError as error:
                env.log("reassignment_failed", partition=str(tp), error=str(error))
        dropped.append(tp)
    await forget(env, dropped)


async def initiate(env: Controller, tp: TopicPartition, target: tuple[int, ...]) -> None:
    """0.10: start one reassignment, and take it out of the znode if anything goes wrong.

    Kafka 0.10.2.2: controller/KafkaController.scala, initiateReassignReplicasForTopicPartition
    """
    named = f"[{tp.topic},{tp.partition}]"
    try:
        if not env.context.has(tp):
            raise failure("unknown_partition", partition=named)
        if env.context.assigned(tp) == target:
            raise failure("already_assigned", partition=named, replicas=joined(target, ","))
        await start_move(env, tp, target)
    except KafkaCtlError as error:
        env.log("reassignment_failed", partition=str(tp), error=str(error))
        await forget(env, [tp])


async def start_move(env: Controller, tp: TopicPartition, target: tuple[int, ...]) -> None:
    """Begin to move a partition to its target replicas. Raises StateChangeFailed if the move cannot begin."""
    alive = [r for r in target if r in env.context.live]
    if len(alive) < len(target) and env.generation.bugs.drops_dead_targets:  # before KAFKA-4214
        raise failure("too_few_alive", alive=joined(alive, ","), replicas=joined(target, ","), partition=tp)
    env.log("handling_reassignment", partition=str(tp), replicas=list(target))
    listeners.watch_state(env, tp)
    env.context.reassigning[tp] = target
    deletion.halt(env, [tp.topic], deletion.REASSIGNING)
    await on_reassignment(env, tp, target)


async def isr_change(env: Controller, tp: TopicPartition) -> None:
    """The `state` of a partition on the move was written: perhaps the new replicas have caught up."""
    async with env.locked():
        if (target := env.context.reassigning.get(tp)) is None:
            return
        state = await env.zk.state(tp)
        if state is None:
            env.log("reassignment_never_created", partition=str(tp), replicas=list(target))
            return
        awaited = _moves(env, env.context.assigned(tp), target).in_sync
        missing = [r for r in awaited if r not in state.isr]
        counts = {"caught_up": len(awaited) - len(missing), "wanted": len(awaited), "missing": missing}
        env.log("reassignment_progress", partition=str(tp), **counts)
        if not missing:
            await on_reassignment(env, tp, target)


async def on_reassignment(env: Controller, tp: TopicPartition, target: tuple[int, ...]) -> None:
    """Do those of the twelve steps that can be done now."""
    state = await env.zk.state(tp)
    awaited = _moves(env, env.context.assigned(tp), target).in_sync
    if state is not None and set(awaited) <= set(state.isr):
        await _finish(env, tp, target)
    else:
        await _begin(env, tp, target)


async def _begin(env: Controller, tp: TopicPartition, target: tuple[int, ...]) -> None:
    """Steps 1 to 3: grow AR, send it to all brokers, start the new replicas; step 4 is to wait."""
    env.log("reassignment_not_caught_up", partition=str(tp), replicas=list(target))
    plan = _moves(env, _assigned(env, tp), target)
    await assign(env, tp, plan.during)
    await bump_leader_epoch(env, tp, plan.during, plan.during)
    for broker in plan.create:
        await env.replica_machine.handle([Replica(tp.topic, tp.partition, broker)], NEW)
    env.log("reassignment_waiting", partition=str(tp), replicas=list(target))


class Moves(NamedTuple):
    """Of one reassignment: AR while it lasts, the brokers that get a replica, those that lose theirs, and those that
    have to be in the ISR before any is lost."""

    during: tuple[int, ...]
    create: tuple[int, ...]
    remove: tuple[int, ...]
    in_sync: tuple[int, ...]


def moves(old: tuple[int, ...], new: tuple[int, ...]) -> Moves:
    """The moves from `old` to `new`. While a reassignment runs, `old` has the replicas of both."""
    return Moves(union(new, old), difference(new, old), union((r for r in old if r not in new), ()), new)


def _moves(env: Controller, old: tuple[int, ...], new: tuple[int, ...]) -> Moves:
    """The moves from these replicas to those, by Kafka's rule or a plug-in."""
    return Moves(*env.plugins.rule("reassignment", moves)(old, new))


def _assigned(env: Controller, tp: TopicPartition) -> tuple[int, ...]:
    """The replicas of a partition on the move; before 2.0, raises StateChangeFailed if its topic has been deleted.

    Kafka 0.10.2.2: controller/KafkaController.scala, ControllerContext.partitionReplicaAssignment (a map)
    """
    if not env.context.has(tp) and not env.generation.reassignment.tolerates_deleted_topics:
        raise StateChangeFailed(f"key not found: [{tp.topic},{tp.partition}]")
    return env.context.assigned(tp)


async def _finish(env: Controller, tp: TopicPartition, target: tuple[int, ...]) -> None:
    """Steps 5 to 12: all of RAR are in sync, so OAR - RAR can go."""
    old = _moves(env, _assigned(env, tp), target).remove
    for broker in target:
        await env.replica_machine.handle([Replica(tp.topic, tp.partition, broker)], ONLINE_REPLICA)
    before = env.context.assigned(tp)
    env.context.leader_of(tp)  # fails before AR has changed
    env.context.assign(tp, target)
    await move_leader(env, tp, before, target)
    await stop_replicas(env, tp, old)
    await assign(env, tp, target)
    await forget(env, [tp])
    if not env.generation.reassignment.drops_requests_together:
        env.log("reassignment_removed", partitions=[str(tp)])
    await env.send_update_metadata([tp])
    await deletion.resume(env, [tp.topic])


async def move_leader(env: Controller, tp: TopicPartition, receivers: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Step 7: elect a leader among the target replicas unless one of them leads already and is alive."""
    leader = env.context.leader_of(tp)
    fields = {"partition": str(tp), "leader": leader, "replicas": list(target)}
    if leader in target and env.context.online(leader, tp):
        env.log("reassignment_leader_stays", **fields)
        await bump_leader_epoch(env, tp, receivers, target)
        return
    env.log("reassignment_leader_dead" if leader in target else "reassignment_leader_outside", **fields)
    await env.partition_machine.handle([tp], ONLINE, Strategy.REASSIGN)


async def stop_replicas(env: Controller, tp: TopicPartition, brokers: Iterable[int]) -> None:
    """Steps 8 and 9: take replicas out of the ISR, stop, delete and forget them, without waiting for an answer."""
    replicas = [Replica(tp.topic, tp.partition, broker) for broker in brokers]
    for state in (OFFLINE, STARTED, SUCCESSFUL, NON_EXISTENT):
        await env.replica_machine.handle(replicas, state)


async def bump_leader_epoch(
    env: Controller, tp: TopicPartition, receivers: tuple[int, ...], assignment: tuple[int, ...]
) -> None:
    """Raise the leader epoch in ZooKeeper, so that brokers accept a LeaderAndIsr with a new assignment."""
    if not env.generation.zookeeper.pipelined:
        env.batch.open()  # before the write; an error here does not make the controller resign
    done: dict[TopicPartition, LeaderAndIsr] = {}
    while tp not in done:
        if (state := await env.zk.state(tp)) is None:
            raise failure("epoch_without_state", partition=tp)
        if state.controller_epoch > env.context.epoch:
            raise newer_controller_wrote(env, state)
        new = state.led_by(state.leader, state.isr)._replace(controller_epoch=env.context.epoch)
        updated = await env.zk.update_states({tp: new}, env.generation.zookeeper.accepts_own_lost_write)
        for error in updated.failed.values():
            raise error
        done = updated.done
    keeps, written = env.generation.reassignment.caches_bumped_epoch, done[tp]
    remember = env.plugins.rule("bumped", lambda cached, written: written if keeps else cached)
    if keeps or tp in env.context.leadership:  # a partition whose creation was not answered has no entry to replace
        cached = env.context.leadership.get(tp, written)
        epoch = remember(cached.leader_epoch, written.leader_epoch)
        env.context.leadership[tp] = written if epoch == written.leader_epoch else cached._replace(leader_epoch=epoch)
    env.log("leader_epoch_updated", partition=str(tp), leader_epoch=written.leader_epoch)
    full = env.context.assignment(tp)
    async with env.batch_of_its_own() as batch:
        added = () if env.generation.bugs.omits_new_replicas else full.adding
        batch.leader_and_isr([r for r in receivers if r not in added], tp, written, assignment, is_new=False)
        if added:
            batch.leader_and_isr(added, tp, written, assignment, is_new=True)
    led = {"leader": written.leader, "isr": list(written.isr)}
    led |= {"leader_epoch": written.leader_epoch, "zk_version": written.zk_version, "replicas": list(assignment)}
    moves = {"adding": list(full.adding), "removing": list(full.removing)}
    env.log("reassignment_told", partition=str(tp), **led, **moves)


async def assign(env: Controller, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
    """Change AR in memory and in the topic's znode; 0.10 makes the znode again if it is gone."""
    env.context.assign(tp, replicas)
    known, creates = env.context.assignment_of(tp.topic), not env.generation.zookeeper.pipelined
    answer = await env.zk.set_assignment(tp.topic, known, env.generation.topic_version, creates)
    if answer.error == "NONODE":
        raise StateChangeFailed(f"Topic {tp.topic} doesn't exist")
    answer.checked()
    env.log("assignment_updated", partition=str(tp), replicas=list(replicas))


# The request in ZooKeeper


async def read_request(env: Controller) -> Requests | None:
    """The contents of `/admin/reassign_partitions`; None if it is missing, empty if it cannot be read.

    The administrator's tool writes it. While it is there, no other reassignment can be asked for.
    """
    try:
        return await env.zk.reassignments(env.generation.zookeeper.pipelined)
    except BadInput as error:
        env.log("reassignment_ignored", error=str(error))
        return {}


async def write_request(env: Controller, rest: Requests) -> None:
    """Write the rest of the request, or delete the znode if nothing is left."""
    if rest:
        znode = ReassignPartitionsZNode
        (await env.zk.set_or_create(znode.path(), znode.encode(rest))).checked()
    else:
        env.log("reassignment_done")
        await listeners.end_request(env, ReassignPartitionsZNode)


async def forget(env: Controller, partitions: Iterable[TopicPartition]) -> None:
    """Take these partitions out, and stop listening to their states.

    All are taken out of the znode in one write, computed from the controller's context. In 0.10 there is a write for
    each partition, and the znode is read again before each.
    Kafka 2.0.1: controller/KafkaController.scala, removePartitionsFromReassignedPartitions
    """
    gone = list(partitions)
    together = env.generation.reassignment.drops_requests_together
    for each in [gone] if together else [[tp] for tp in gone]:
        for tp in each:
            if together and tp not in env.context.reassigning:  # this controller has resigned: the request stays
                raise StateChangeFailed(f"key not found: {tp}")
            listeners.forget_state(env, tp)
        if together:
            env.log("reassignment_removed", partitions=[str(tp) for tp in each])
        requested = env.context.reassigning if together else await read_request(env) or {}
        await write_request(env, {tp: target for tp, target in requested.items() if tp not in each})
        for tp in each:
            env.context.reassigning.pop(tp, None)
