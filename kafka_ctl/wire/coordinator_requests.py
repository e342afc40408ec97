"""The requests of consumer groups and of transactional producers, as their coordinator answers them.

Separate from `attach.py` because that one only says which request has which handler.
Kafka 2.0.1: server/KafkaApis.scala, handleFindCoordinatorRequest, handleJoinGroupRequest, handleSyncGroupRequest,
handleOffsetCommitRequest ...; handleInitProducerIdRequest, handleAddPartitionToTxnRequest,
handleAddOffsetsToTxnRequest, handleEndTxnRequest
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable

from kafka_ctl.cluster import INTERNAL, TopicPartition
from kafka_ctl.requests import UNKNOWN_PARTITION
from kafka_ctl.wire.codec import Message, answered, errors_by_topic, grouped, named, parts_of
from kafka_ctl.wire.groups import (
    STABLE,
    SYNCING,
    Group,
    NameGiven,
    OffsetAndMetadata,
    Offsets,
    coordinator_id,
    offsets_partition,
)
from kafka_ctl.wire.listeners import HOST
from kafka_ctl.wire.metadata import endpoint, topics_of
from kafka_ctl.wire.schema import Refusal, number_of
from kafka_ctl.wire.service import Handler, RefusedFrame, Service

DEAD = "Dead"
"""The state of an unknown group."""
WAITING = "AwaitingSync"
"""The state before 1.1 that is called CompletingRebalance since."""
MOST_METADATA = 4096
"""Kafka's `offset.metadata.max.bytes`: characters that a commit may carry beside an offset.

Kafka 2.4.1: coordinator/group/GroupMetadataManager.scala, validateOffsetMetadataLength
"""
GROUP, TRANSACTION = 0, 1
"""The kinds of coordinators (`FindCoordinatorRequest.CoordinatorType`)."""


async def find_coordinator(service: Service, version: int, request: Message) -> Message:
    """The broker that keeps a group, or a transactional id: the same for all."""
    found, error = coordinator_id(service.broker.live_brokers), "COORDINATOR_NOT_AVAILABLE"
    if request.get("key_type", GROUP) not in (GROUP, TRANSACTION):
        if not service.broker.generation.requests.answers_unknown_kinds:
            raise RefusedFrame("INVALID_REQUEST", f"FindCoordinator of kind {request['key_type']}")
        error = "UNKNOWN_SERVER_ERROR"
    elif found is not None:
        return {"error_code": 0, "error_message": None, "node_id": found} | endpoint(service, found)
    return {"error_code": number_of(error), "node_id": -1, "host": "", "port": -1}


def _check_coordinator(service: Service) -> None:
    coordinator = coordinator_id(service.broker.live_brokers)
    if coordinator is None:
        raise Refusal("COORDINATOR_NOT_AVAILABLE")
    if coordinator != service.broker.id:
        raise Refusal("NOT_COORDINATOR")


def _check_group(service: Service, request: Message) -> None:
    """Raise Refusal if members of this group cannot ask here.

    Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, isValidGroupId, validateGroupStatus
    """
    if not request["group_id"] and service.broker.generation.requests.checks_group_ids:
        raise Refusal("INVALID_GROUP_ID")
    _check_coordinator(service)


def _refusable(answer: Callable[[Service, int, Message], Awaitable[Message]]) -> Handler:
    """Answer as a coordinator; what it refuses is an error for the whole request, and nothing has a number.

    JoinGroup alone has a `member_id` in its answer: the one that was sent.
    Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, joinError
    """

    @functools.wraps(answer)
    async def checked(service: Service, version: int, request: Message) -> Message:
        try:
            return await answer(service, version, request)
        except Refusal as refused:
            none = {"generation_id": -1 if service.broker.generation.requests.names_no_generation else 0}
            none |= {"producer_id": -1, "producer_epoch": -1}
            return none | {"error_code": number_of(refused.error), "member_id": request.get("member_id", "")}

    return checked


def _refusal(work: Callable[[], object]) -> str | None:
    """Do a part of what a request asks; the error where that is refused."""
    try:
        work()
    except Refusal as refused:
        return refused.error
    return None


# Groups


@_refusable
async def join_group(service: Service, version: int, request: Message) -> Message:
    """Join; the leader is sent the list of members."""
    _check_group(service, request)
    try:
        client, checks = request.get("client_id") or "consumer", service.broker.generation.requests.checks_first_member
        joined, id = await service.shared.groups.join(request, client, version >= 4, checks)
    except NameGiven as given:
        return {"error_code": number_of(given.error), "generation_id": -1, "member_id": given.id}
    return {
        "error_code": 0,
        "generation_id": joined.generation,
        "protocol_name": joined.protocol,
        "leader": joined.leader,
        "member_id": id,
        "members": [
            {"member_id": member, "group_instance_id": instance, "metadata": metadata}
            for member, instance, metadata in joined.members
        ],
    }


@_refusable
async def sync_group(service: Service, version: int, request: Message) -> Message:
    """Bring the assignment, or wait for it."""
    _check_group(service, request)
    given = {one["member_id"]: one["assignment"] for one in request["assignments"]}
    member = request["group_id"], request["member_id"], request["generation_id"]
    mine = await service.shared.groups.sync(*member, given, request.get("group_instance_id"))
    return {"error_code": 0, "assignment": mine}


@_refusable
async def heartbeat(service: Service, version: int, request: Message) -> Message:
    """Handle the heartbeat of a member."""
    _check_group(service, request)
    member = request["group_id"], request["member_id"], request["generation_id"]
    compares = service.broker.generation.requests.checks_heartbeats_first
    service.shared.groups.heartbeat(*member, request.get("group_instance_id"), compares)
    return {"error_code": 0}


@_refusable
async def leave_group(service: Service, version: int, request: Message) -> Message:
    """Members leave: one, or since 2.4 several (KIP-345)."""
    _check_group(service, request)
    leave = functools.partial(service.shared.groups.leave, request["group_id"])
    if "members" not in request:
        leave(request["member_id"])
        return {"error_code": 0}
    answers = [
        one | {"error_code": number_of(_refusal(functools.partial(leave, one["member_id"], one["group_instance_id"])))}
        for one in request["members"]
    ]
    return {"error_code": 0, "members": answers}


async def list_groups(service: Service, version: int, request: Message) -> Message:
    coordinates = coordinator_id(service.broker.live_brokers) == service.broker.id
    groups = service.shared.groups.groups.values() if coordinates else ()
    return {"error_code": 0, "groups": [{"group_id": g.name, "protocol_type": g.protocol_type} for g in groups]}


async def describe_groups(service: Service, version: int, request: Message) -> Message:
    """State and members of groups; the state of an unknown group is Dead."""
    error, groups = _refusal(lambda: _check_coordinator(service)), service.shared.groups.groups
    none = {"error_code": number_of(error), "group_state": "", "members": []}
    waiting = SYNCING if service.broker.generation.requests.completes_rebalances else WAITING
    described = {name: none if error else _described(groups.get(name), waiting) for name in request["groups"]}
    return {"groups": [{"group_id": name, "authorized_operations": 0} | one for name, one in described.items()]}


def _described(group: Group | None, waiting: str) -> Message:
    """A group, with this name for the state in which it waits for its assignment.

    Kafka 2.4.1: coordinator/group/GroupMetadata.scala, summary
    """
    if group is None:
        return {"error_code": 0, "group_state": DEAD, "members": []}
    stable = group.state == STABLE
    members = [
        {
            "member_id": member.id,
            "group_instance_id": member.instance,
            "client_id": member.client,
            "client_host": f"/{HOST}",
            "member_metadata": member.metadata(group.protocol) if stable else b"",
            "member_assignment": member.assignment if stable else b"",
        }
        for member in group.members.values()
    ]
    return {
        "error_code": 0,
        "group_state": waiting if group.state == SYNCING else group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol if stable else "",
        "members": members,
    }


async def delete_groups(service: Service, version: int, request: Message) -> Message:
    """Forget groups without members."""

    def delete(name: str) -> None:
        _check_coordinator(service)
        service.shared.groups.delete(name)

    errors = {name: _refusal(functools.partial(delete, name)) for name in dict.fromkeys(request["groups_names"])}
    return {"results": [{"group_id": name, "error_code": number_of(error)} for name, error in errors.items()]}


# Offsets of groups


async def offset_commit(service: Service, version: int, request: Message) -> Message:
    """Commit the offsets of a group."""
    group, member = request["group_id"], request.get("member_id", "")
    generation = request.get("generation_id_or_member_epoch", -1)
    checks, instance = service.broker.generation.requests.checks_members_first, request.get("group_instance_id")
    commit = service.shared.groups.commit
    return _committed(service, request, lambda given: commit(group, member, generation, given, checks, instance))


async def txn_offset_commit(service: Service, version: int, request: Message) -> Message:
    """The same within a transaction: the offsets count once it is committed.

    Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, handleTxnCommitOffsets
    """
    producer, epoch = request["producer_id"], request["producer_epoch"]

    def commit(given: Offsets) -> None:
        epochs = service.shared.contents.producer_epochs[offsets_partition(request["group_id"])]
        fences = service.broker.generation.requests.fences_offset_commits
        if fences and (error := epochs.fences(producer, epoch)):
            raise Refusal(error)
        service.shared.groups.commit_in_transaction(request["group_id"], producer, given)
        epochs.note(producer, epoch)

    return _committed(service, request, commit)


def _committed(service: Service, request: Message, commit: Callable[[Offsets], None]) -> Message:
    """Commit what can be; each partition is answered."""
    given = {
        tp: OffsetAndMetadata(
            part["committed_offset"], part["committed_metadata"] or "", part.get("committed_leader_epoch", -1)
        )
        for tp, part in parts_of(request["topics"])
    }
    unfit = {tp: "OFFSET_METADATA_TOO_LARGE" for tp, one in given.items() if len(one.metadata) > MOST_METADATA}
    checks = service.broker.generation.requests.checks_committed_partitions
    known = () if checks else topics_of(service)
    unfit |= {tp: UNKNOWN_PARTITION for tp in given if tp not in service.broker.metadata and tp.topic not in known}

    def commit_fit() -> None:
        _check_coordinator(service)
        if fit := {tp: one for tp, one in given.items() if tp not in unfit}:
            commit(fit)

    error = _refusal(commit_fit)
    topics = answered(request["topics"], lambda tp, _: {"error_code": number_of(unfit.get(tp, error))})
    return {"topics": topics}


async def offset_fetch(service: Service, version: int, request: Message) -> Message:
    """The committed offset of a group; -1 where there is none."""
    error = _refusal(lambda: _check_coordinator(service))
    offsets: Offsets = {} if error else service.shared.groups.offsets(request["group_id"])
    asked = offsets if request["topics"] is None else named(request["topics"], of="partition_indexes")
    if error and version >= 2:  # the error stands beside the topics
        asked = ()
    parts = []
    for tp in asked:
        offset, metadata, epoch = offsets.get(tp, OffsetAndMetadata(-1))
        part = {"committed_offset": offset, "committed_leader_epoch": epoch, "metadata": metadata}
        parts.append((tp, part | {"error_code": number_of(error) if version < 2 else 0}))
    return {"topics": grouped(parts), "error_code": number_of(error)}


@_refusable
async def offset_delete(service: Service, version: int, request: Message) -> Message:
    """Delete the committed offsets of a group in some partitions."""
    _check_coordinator(service)
    asked = [tp for tp, _ in parts_of(request["topics"])]
    known = [tp for tp in asked if tp in service.broker.metadata]
    deleted = service.shared.groups.delete_offsets(request["group_id"], known)
    errors = {tp: deleted.get(tp, UNKNOWN_PARTITION) for tp in asked}
    return {"error_code": 0, "topics": errors_by_topic(errors)}


# Transactions


@_refusable
async def init_producer_id(service: Service, version: int, request: Message) -> Message:
    """An id by which a producer's batches are recognised when they are sent again; any broker gives it to a producer
    without transactions, the coordinator to one with a transactional id."""
    id, coordinator = request["transactional_id"], service.coordinator
    if id is None:
        producer, epoch = coordinator.log.next_producer(), 0
    else:
        producer, epoch = coordinator.init_producer_id(id, request["transaction_timeout"] / 1000)
    return {"error_code": 0, "producer_id": producer, "producer_epoch": epoch}


async def add_partitions_to_txn(service: Service, version: int, request: Message) -> Message:
    """A producer is about to write to partitions: to all of them, or to none where one cannot be."""
    errors = {tp: _unfit(service, tp) for tp in named(request["v3_and_below_topics"])}
    if any(errors.values()):
        errors = {tp: error or "OPERATION_NOT_ATTEMPTED" for tp, error in errors.items()}
    else:
        names = ("transactional_id", "producer_id", "producer_epoch")
        id, producer, epoch = (request[f"v3_and_below_{name}"] for name in names)
        error = _refusal(lambda: service.coordinator.add_partitions(id, producer, epoch, errors.keys()))
        errors = dict.fromkeys(errors, error)
    results = errors_by_topic(errors, of="results_by_partition", code="partition_error_code")
    return {"results_by_topic_v3_and_below": results}


def _unfit(service: Service, tp: TopicPartition) -> str | None:
    if tp.topic in INTERNAL:
        return "TOPIC_AUTHORIZATION_FAILED"
    return None if tp in service.broker.metadata else UNKNOWN_PARTITION


@_refusable
async def add_offsets_to_txn(service: Service, version: int, request: Message) -> Message:
    """A producer is about to commit offsets of a group: the partition that keeps them is one of the transaction's."""
    partitions = [offsets_partition(request["group_id"])]
    id, producer, epoch = request["transactional_id"], request["producer_id"], request["producer_epoch"]
    service.coordinator.add_partitions(id, producer, epoch, partitions)
    return {"error_code": 0}


@_refusable
async def end_txn(service: Service, version: int, request: Message) -> Message:
    id, producer, epoch = request["transactional_id"], request["producer_id"], request["producer_epoch"]
    service.coordinator.end(id, producer, epoch, request["committed"])
    return {"error_code": 0}
