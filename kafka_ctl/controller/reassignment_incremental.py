"""Reassignments since 2.4: the topic's znode has the replicas to add and remove; a move can be changed or cancelled.

While it runs, the replicas are the target followed by the original ones; `adding` and `removing` list which are on
their way. Phase A starts the new replicas, phase B finishes when all of the target are in sync.
Kafka 2.4.1: controller/KafkaController.scala, onPartitionReassignment (KIP-455)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_ctl.cluster import Replica, ReplicaAssignment, TopicPartition
from kafka_ctl.controller import deletion, listeners, reassignment
from kafka_ctl.controller.controller import Controller
from kafka_ctl.controller.failures import UNKNOWN, failure, joined, text
from kafka_ctl.errors import ControllerMoved, KafkaCtlError
from kafka_ctl.replica import NEW
from kafka_ctl.replica import ONLINE as ONLINE_REPLICA
from kafka_ctl.requests import ApiError
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode

NONE_RUNS = ApiError("NO_REASSIGNMENT_IN_PROGRESS", "No partition reassignment is in progress.")
FAILED = ApiError("UNKNOWN_SERVER_ERROR", "The server experienced an unexpected error when processing the request.")
Refusals = dict[TopicPartition, ApiError]
Targets = Mapping[TopicPartition, Sequence[int] | None]
"""The requested replicas by partition; None cancels."""


async def initialize(env: Controller) -> None:
    """At failover, once ready: go on with the moves in the request's znode, then with those in the topics' znodes."""
    handled = await partition_reassignment(env)
    await resume(env, lambda tp, _: tp not in handled)


async def resume(env: Controller, wanted: Callable[[TopicPartition, ReplicaAssignment], bool]) -> None:
    """Go on with the running reassignments that `wanted` picks."""
    for tp in list(env.context.reassigning):
        assignment = env.context.assignment(tp)
        if wanted(tp, assignment):
            await on_reassignment(env, tp, assignment)


async def partition_reassignment(env: Controller) -> set[TopicPartition]:
    """`/admin/reassign_partitions` was created; returns the partitions that are being moved now."""
    if not await listeners.watch_request(env, ReassignPartitionsZNode):
        return set()
    requested = await reassignment.read_request(env) or {}
    refused = await _apply(env, requested)
    if refused:
        env.log("zk_reassignment_failed", partitions={str(tp): refused[tp].code for tp in sorted(refused)})
        await _drop_requests(env, lambda tp, _: tp in refused)
    return requested.keys() - refused.keys()


async def api_partition_reassignment(env: Controller, targets: Targets, reply: asyncio.Future) -> None:
    """AlterPartitionReassignments: answer with the refusals."""
    refused = {tp: error for tp, target in targets.items() if (error := _problem(env, tp, target)) is not None}
    valid = {tp: target for tp, target in targets.items() if tp not in refused}
    if not env.generation.bugs.keeps_older_requests:
        await _drop_requests(env, lambda tp, _: tp in valid)
    refused |= await _apply(env, valid)
    if not reply.done():
        reply.set_result(refused)


def list_partition_reassignments(
    env: Controller, partitions: Iterable[TopicPartition] | None, reply: asyncio.Future
) -> None:
    """ListPartitionReassignments: answer with the moves."""
    wanted = list(env.context.reassigning) if partitions is None else partitions
    found = {tp: env.context.assignment(tp) for tp in wanted}
    reply.set_result({tp: assignment for tp, assignment in found.items() if assignment.is_being_reassigned})


def _problem(env: Controller, tp: TopicPartition, target: Sequence[int] | None) -> ApiError | None:
    """The error of a request, or None: no replicas, a duplicate or negative id, a new replica that is not live.

    The texts are those of 2.5; 2.4 gave the name of the error only.
    """
    current = env.context.assignment(tp)
    if target is None:
        return None if current.is_being_reassigned else NONE_RUNS
    adding = current.reassign_to(target).adding
    problems = {
        "no_replicas": not target,
        "duplicate_replicas": len(set(target)) != len(target),
        "invalid_replicas": min(target, default=0) < 0,
        "replicas_not_alive": not set(adding) <= env.context.live,
    }
    row = next((name for name, found in problems.items() if found), None)
    fields = {"replicas": joined(target), "adding": joined(adding), "live": joined(sorted(env.context.live))}
    return ApiError("INVALID_REPLICA_ASSIGNMENT", text(row, **fields)) if row else None


async def _apply(env: Controller, targets: Targets) -> Refusals:
    """Start, change or cancel these reassignments; the refusals."""
    refused: Refusals = {}
    for tp in env.context.orders.requested_map(targets):
        target, current = targets[tp], env.context.assignment(tp)
        if tp.topic in env.context.topics_to_be_deleted:
            env.log("reassignment_skipped", partition=str(tp))
            refused[tp] = UNKNOWN
        elif not current.replicas:
            refused[tp] = UNKNOWN
        else:
            try:
                await on_reassignment(env, tp, _towards(env, current, current.origin if target is None else target))
            except ControllerMoved:
                env.log("reassignment_moved", partition=str(tp))
                raise
            except KafkaCtlError as error:
                env.log("reassignment_failed", partition=str(tp), error=str(error))
                refused[tp] = FAILED
    return refused


def _towards(env: Controller, current: ReplicaAssignment, target: Iterable[int]) -> ReplicaAssignment:
    """The assignment on the way to `target`, by Kafka's rule or a plug-in."""
    own: Callable[..., tuple[tuple[int, ...], ...]] | None = env.plugins.rule("target", None)
    return current.reassign_to(target) if own is None else ReplicaAssignment(*own(*current, tuple(target)))


async def isr_change(env: Controller, tp: TopicPartition) -> None:
    """The `state` of a partition on the move was written: perhaps the target has caught up."""
    if tp in env.context.reassigning:
        assignment = env.context.assignment(tp)
        if await _complete(env, tp, assignment):
            env.log("reassignment_caught_up", partition=str(tp), replicas=list(assignment.target))
            await on_reassignment(env, tp, assignment)


async def _complete(env: Controller, tp: TopicPartition, assignment: ReplicaAssignment) -> bool:
    if not assignment.is_being_reassigned:
        return True
    state = await env.zk.state(tp)
    return state is not None and set(assignment.target) <= set(state.isr)


async def on_reassignment(env: Controller, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
    """Write the target of the partition, then do phase A or phase B."""
    deletion.halt(env, [tp.topic], deletion.REASSIGNING)
    await _update_current(env, tp, assignment)
    if not await _complete(env, tp, assignment):
        await reassignment.bump_leader_epoch(env, tp, assignment.replicas, assignment.replicas)
        for broker in assignment.adding:
            await env.replica_machine.handle([Replica(tp.topic, tp.partition, broker)], NEW)
        return
    adding = [Replica(tp.topic, tp.partition, broker) for broker in assignment.adding]
    await env.replica_machine.handle(adding, ONLINE_REPLICA)
    done = ReplicaAssignment(assignment.target)
    env.context.update_assignment(tp, done)
    await reassignment.move_leader(env, tp, done.replicas, done.replicas)
    await reassignment.stop_replicas(env, tp, assignment.removing)
    await _write(env, tp, done)
    listeners.forget_state(env, tp)
    await _drop_requests(env, lambda other, replicas: other == tp and replicas == done.replicas)
    env.context.reassigning.pop(tp, None)
    await env.send_update_metadata([tp])
    await deletion.resume(env, [tp.topic])


async def _update_current(env: Controller, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
    """Steps U1 to U3: write the znode and the memory, and remove replicas that an earlier request had added."""
    current = env.context.assignment(tp)
    if current != assignment:
        await _write(env, tp, assignment)
        if unneeded := [r for r in current.replicas if r not in assignment.replicas]:
            await reassignment.stop_replicas(env, tp, unneeded)
    listeners.watch_state(env, tp)
    env.context.reassigning[tp] = assignment.target


async def _write(env: Controller, tp: TopicPartition, assignment: ReplicaAssignment) -> None:
    """Write the assignment of a partition into the topic's znode, then into memory."""
    known = env.context.topics.get(tp.topic, {}) | {tp.partition: assignment}
    answer = await env.zk.set_assignment(tp.topic, known, env.generation.topic_version)
    if answer.error == "NONODE":
        raise failure("nothing_assigned", partition=tp)
    answer.checked()
    env.context.update_assignment(tp, assignment)
    fields = {name: list(replicas) for name, replicas in assignment._asdict().items()}
    env.log("full_assignment_updated", partition=str(tp), **fields)


async def _drop_requests(env: Controller, unwanted: Callable[[TopicPartition, tuple[int, ...]], bool]) -> None:
    """Take partitions out of `/admin/reassign_partitions`, and delete it if nothing is left."""
    if (requested := await reassignment.read_request(env)) is not None:
        rest = {tp: replicas for tp, replicas in requested.items() if not unwanted(tp, replicas)}
        gone = {str(tp): list(replicas) for tp, replicas in requested.items() if tp not in rest}
        env.log("reassignment_removed", partitions=list(gone), targets=gone)
        await reassignment.write_request(env, rest)
