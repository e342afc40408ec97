"""The requests of consumer groups, as their coordinator answers them.

Kafka 2.0.1: server/KafkaApis.scala, handleJoinGroupRequest, handleSyncGroupRequest, handleOffsetCommitRequest ...
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.error_codes import number_of
from kafka_ctl.wire.groups import GroupError, NameGiven
from kafka_ctl.wire.service import Handler, Service

MOST_METADATA = 4096
"""Bytes that a commit may carry beside an offset: Kafka's `offset.metadata.max.bytes`."""


def _check_coordinator(service: Service) -> None:
    live = service.broker.live_brokers
    if not live:
        raise GroupError("COORDINATOR_NOT_AVAILABLE")
    if min(live) != service.broker.id:
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
    error: str | None = None
    given = {
        TopicPartition(topic["name"], part["partition_index"]): (part["committed_offset"], part["committed_metadata"])
        for topic in request["topics"]
        for part in topic["partitions"]
    }
    unfit = {
        tp: "OFFSET_METADATA_TOO_LARGE" for tp, (_, text) in given.items() if len((text or "").encode()) > MOST_METADATA
    }
    unfit |= {tp: "UNKNOWN_TOPIC_OR_PARTITION" for tp in given if tp not in service.broker.metadata}
    try:
        _check_coordinator(service)
        generation = request.get("generation_id_or_member_epoch", -1)
        fine = {tp: one for tp, one in given.items() if tp not in unfit}
        if fine:
            service.shared.groups.commit(request["group_id"], request.get("member_id", ""), generation, fine)
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
    """How far a group has come; -1 where nothing was committed."""
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
