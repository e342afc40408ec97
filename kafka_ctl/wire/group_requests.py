"""The requests of consumer groups, as their coordinator answers them.

Separate from `attach.py` because that one only says which request has which handler.
Kafka 2.0.1: server/KafkaApis.scala, handleJoinGroupRequest, handleSyncGroupRequest, handleOffsetCommitRequest ...
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.control import errors_by_topic, parts_of
from kafka_ctl.wire.error_codes import number_of
from kafka_ctl.wire.groups import STABLE, Group, GroupError, NameGiven, coordinator_id, offsets_partition
from kafka_ctl.wire.listeners import HOST
from kafka_ctl.wire.service import Handler, Service

Offsets = Mapping[TopicPartition, tuple[int, str | None]]
"""Offsets to commit, each with the text that the consumer keeps beside it."""
DEAD = "Dead"
"""The state of an unknown group."""
MOST_METADATA = 4096
"""Bytes that a commit may carry beside an offset: Kafka's `offset.metadata.max.bytes`."""


def _check_coordinator(service: Service) -> None:
    coordinator = coordinator_id(service.broker.live_brokers)
    if coordinator is None:
        raise GroupError("COORDINATOR_NOT_AVAILABLE")
    if coordinator != service.broker.id:
        raise GroupError("NOT_COORDINATOR")


def _coordinated(answer: Callable[[Service, int, Message], Awaitable[Message]]) -> Handler:
    """Answer as the coordinator; what cannot be is an error for the whole request."""

    async def checked(service: Service, version: int, request: Message) -> Message:
        try:
            _check_coordinator(service)
            return await answer(service, version, request)
        except GroupError as error:
            return {"error_code": number_of(str(error)), "generation_id": -1}

    return checked


@_coordinated
async def join_group(service: Service, version: int, request: Message) -> Message:
    """Join; the leader is sent the list of members."""
    try:
        group, id = await service.shared.groups.join(request, request.get("client_id") or "consumer", version >= 4)
    except NameGiven as given:
        return {"error_code": number_of(str(given)), "generation_id": -1, "member_id": given.id}
    members = group.members.values() if id == group.leader else ()
    return {
        "error_code": 0,
        "generation_id": group.generation,
        "protocol_name": group.protocol,
        "leader": group.leader,
        "member_id": id,
        "members": [{"member_id": one.id, "metadata": one.protocols[group.protocol]} for one in members],
    }


@_coordinated
async def sync_group(service: Service, version: int, request: Message) -> Message:
    """Bring the assignment, or wait for it."""
    given = {one["member_id"]: one["assignment"] for one in request["assignments"]}
    groups = service.shared.groups
    mine = await groups.sync(request["group_id"], request["member_id"], request["generation_id"], given)
    return {"error_code": 0, "assignment": mine}


@_coordinated
async def heartbeat(service: Service, version: int, request: Message) -> Message:
    """A member says that it is there."""
    service.shared.groups.heartbeat(request["group_id"], request["member_id"], request["generation_id"])
    return {"error_code": 0}


@_coordinated
async def leave_group(service: Service, version: int, request: Message) -> Message:
    """Members leave: one, or since 2.4 several (KIP-345)."""
    if "members" not in request:
        service.shared.groups.leave(request["group_id"], request["member_id"])
        return {"error_code": 0}
    answers = []
    for member in request["members"]:
        error = None
        try:
            service.shared.groups.leave(request["group_id"], member["member_id"])
        except GroupError as refused:
            error = str(refused)
        answers.append(member | {"error_code": number_of(error)})
    return {"error_code": 0, "members": answers}


async def offset_commit(service: Service, version: int, request: Message) -> Message:
    """Remember how far a group has come."""
    group, member = request["group_id"], request.get("member_id", "")
    generation = request.get("generation_id_or_member_epoch", -1)
    first = service.broker.generation.requests.checks_members_first
    return _committed(
        service, request, lambda given: service.shared.groups.commit(group, member, generation, given, first)
    )


async def txn_offset_commit(service: Service, version: int, request: Message) -> Message:
    """The same within a transaction: the offsets count once it is committed.

    Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, handleTxnCommitOffsets
    """
    producer, epoch = request["producer_id"], request["producer_epoch"]

    def commit(given: Offsets) -> None:
        epochs = service.shared.contents.producer_epochs[offsets_partition(request["group_id"])]
        fences = service.broker.generation.requests.fences_offset_commits
        if fences and (error := epochs.fences(producer, epoch)):
            raise GroupError(error)
        service.shared.groups.commit_in_transaction(request["group_id"], producer, given)
        epochs.note(producer, epoch)

    return _committed(service, request, commit)


def _committed(service: Service, request: Message, commit: Callable[[Offsets], None]) -> Message:
    """Commit what can be; each partition is answered."""
    error: str | None = None
    given = {tp: (part["committed_offset"], part["committed_metadata"]) for tp, part in parts_of(request["topics"])}
    unfit = {
        tp: "OFFSET_METADATA_TOO_LARGE" for tp, (_, text) in given.items() if len((text or "").encode()) > MOST_METADATA
    }
    unfit |= {tp: "UNKNOWN_TOPIC_OR_PARTITION" for tp in given if tp not in service.broker.metadata}
    try:
        _check_coordinator(service)
        fine = {tp: one for tp, one in given.items() if tp not in unfit}
        if fine:
            commit(fine)
    except GroupError as refused:
        error = str(refused)

    def answer(topic: str, part: Message) -> Message:
        tp = TopicPartition(topic, part["partition_index"])
        return {"partition_index": tp.partition, "error_code": number_of(unfit.get(tp, error))}

    topics = [
        {"name": topic["name"], "partitions": [answer(topic["name"], part) for part in topic["partitions"]]}
        for topic in request["topics"]
    ]
    return {"topics": topics}


async def offset_fetch(service: Service, version: int, request: Message) -> Message:
    """The committed offset of a group; -1 where there is none."""
    error: str | None = None
    offsets: Mapping[TopicPartition, tuple[int, str | None]] = {}
    try:
        _check_coordinator(service)
        offsets = service.shared.groups.offsets(request["group_id"])
    except GroupError as refused:
        error = str(refused)
    if request["topics"] is None:
        asked: dict[str, list[int]] = {}
        for tp in offsets:
            asked.setdefault(tp.topic, []).append(tp.partition)
    else:
        asked = {topic["name"]: topic["partition_indexes"] for topic in request["topics"]}

    def answer(tp: TopicPartition) -> Message:
        offset, text = offsets.get(tp, (-1, ""))
        code = number_of(error) if version < 2 else 0
        return {"partition_index": tp.partition, "committed_offset": offset, "metadata": text, "error_code": code}

    topics = [
        {"name": name, "partitions": [answer(TopicPartition(name, number)) for number in numbers]}
        for name, numbers in asked.items()
    ]
    return {"topics": topics, "error_code": number_of(error)}


async def list_groups(service: Service, version: int, request: Message) -> Message:
    """The groups that this broker coordinates."""
    groups = service.shared.groups.groups.values() if _is_coordinator(service) else ()
    return {"error_code": 0, "groups": [{"group_id": g.name, "protocol_type": g.protocol_type} for g in groups]}


def _is_coordinator(service: Service) -> bool:
    live = service.broker.live_brokers
    return bool(live) and min(live) == service.broker.id


async def describe_groups(service: Service, version: int, request: Message) -> Message:
    """State and members of groups; one that there is not is dead."""
    groups = []
    for name in dict.fromkeys(request["groups"]):
        try:
            _check_coordinator(service)
            groups.append(_described(name, service.shared.groups.groups.get(name)))
        except GroupError as error:
            groups.append({"error_code": number_of(str(error)), "group_id": name, "group_state": "", "members": []})
    return {"groups": groups}


def _described(name: str, group: Group | None) -> Message:
    """Kafka 2.4.1: coordinator/group/GroupMetadata.scala, summary"""
    if group is None:
        return {"error_code": 0, "group_id": name, "group_state": DEAD, "members": []}
    stable = group.state == STABLE
    members = [
        {
            "member_id": member.id,
            "group_instance_id": member.instance,
            "client_id": member.client,
            "client_host": f"/{HOST}",
            "member_metadata": member.protocols[group.protocol] if stable else b"",
            "member_assignment": member.assignment if stable else b"",
        }
        for member in group.members.values()
    ]
    return {
        "error_code": 0,
        "group_id": name,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol if stable else "",
        "members": members,
        "authorized_operations": 0,
    }


async def delete_groups(service: Service, version: int, request: Message) -> Message:
    """Forget groups without members."""
    results = []
    for name in dict.fromkeys(request["groups_names"]):
        error = None
        try:
            _check_coordinator(service)
            service.shared.groups.delete(name)
        except GroupError as refused:
            error = str(refused)
        results.append({"group_id": name, "error_code": number_of(error)})
    return {"results": results}


async def offset_delete(service: Service, version: int, request: Message) -> Message:
    """Forget how far a group has come in some partitions."""
    asked = [tp for tp, _ in parts_of(request["topics"])]
    errors: dict[TopicPartition, str | None] = {}
    try:
        _check_coordinator(service)
        known = [tp for tp in asked if tp in service.broker.metadata]
        errors = dict.fromkeys(asked, "UNKNOWN_TOPIC_OR_PARTITION")
        errors |= service.shared.groups.delete_offsets(request["group_id"], known)
    except GroupError as error:
        return {"error_code": number_of(str(error)), "topics": []}
    return {"error_code": 0, "topics": errors_by_topic(errors)}
