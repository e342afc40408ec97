"""The requests of controllers, brokers that leave, and administrators, as a broker answers them.

Separate from `attach.py` because that one only says which request has which handler.
Kafka 2.0.1: server/KafkaApis.scala, handleLeaderAndIsrRequest ... handleControlledShutdownRequest;
2.4.1: handleElectReplicaLeader, handleAlterPartitionReassignmentsRequest, handleListPartitionReassignmentsRequest,
handleDeleteRecordsRequest, handleDescribeLogDirsRequest, handleAlterReplicaLogDirsRequest;
server/ReplicaManager.scala, describeLogDirs (KIP-107, KIP-113)
"""

from __future__ import annotations

from kafka_ctl.brokers.delayed_operations import NO_LOW_WATERMARK
from kafka_ctl.brokers.disk import STORAGE_ERROR
from kafka_ctl.election import ElectionType
from kafka_ctl.requests import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    ApiError,
    DeleteRecordsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    Request,
    Response,
)
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.control import (
    errors_by_topic,
    grouped,
    named,
    parts_of,
    read_endpoints,
    read_request,
    write_response,
)
from kafka_ctl.wire.error_codes import number_of
from kafka_ctl.wire.service import Handler, Service

KINDS = (ElectionType.PREFERRED, ElectionType.UNCLEAN)
"""The election types by number (`ElectionType`)."""


async def _received(service: Service, request: Request, number: int) -> Response:
    """Let the broker handle it; a broker of this lab that has asked learns of the record of the answer."""
    response, seq = await service.broker.receive(request, CAUSE.get())
    if number in service.shared.answered:
        service.shared.answered[number] = seq
    return response


def between_brokers(name: str) -> Handler:
    """The handler of a request that brokers send each other."""

    async def handle(service: Service, version: int, request: Message) -> Message:
        if name == "UpdateMetadata":
            service.shared.endpoints |= read_endpoints(request)
        response = await _received(service, read_request(name, request), request["correlation_id"])
        if name == "UpdateMetadata":
            service.coordinator.metadata_changed()
        return write_response(response)

    return handle


async def elect_leaders(service: Service, version: int, request: Message) -> Message:
    """Elect the preferred leaders, or unclean ones, of some partitions or of all (KIP-460)."""
    asked = request["topic_partitions"]
    partitions = None if asked is None else named(asked, "topic")
    number = request.get("election_type", 0)
    if number not in range(len(KINDS)):
        return {"error_code": number_of("INVALID_REQUEST")}
    response = await _received(service, ElectLeadersRequest(KINDS[number], partitions, request["timeout"] / 1000), -1)
    results = [(tp, {"partition_id": tp.partition} | _error_fields(error)) for tp, error in response.elections.items()]
    return {
        "error_code": number_of(response.error),
        "replica_election_results": grouped(results, "topic", "partition_result"),
    }


async def alter_reassignments(service: Service, version: int, request: Message) -> Message:
    """Move partitions, or with null replicas take that back (KIP-455)."""
    targets = {
        tp: None if part["replicas"] is None else tuple(part["replicas"]) for tp, part in parts_of(request["topics"])
    }
    response = await _received(service, AlterPartitionReassignmentsRequest(targets), -1)
    results = [(tp, {"partition_index": tp.partition} | _error_fields(response.refused.get(tp))) for tp in targets]
    return {
        "error_code": number_of(response.error),
        "error_message": response.text,
        "responses": grouped(results, "name", "partitions") if response.error is None else [],
    }


async def list_reassignments(service: Service, version: int, request: Message) -> Message:
    """The partitions that are being moved (KIP-455)."""
    asked = request["topics"]
    partitions = None if asked is None else named(asked, "name", "partition_indexes")
    response = await _received(service, ListPartitionReassignmentsRequest(partitions), -1)
    moving = [
        (
            tp,
            {
                "partition_index": tp.partition,
                "replicas": found.replicas,
                "adding_replicas": found.adding,
                "removing_replicas": found.removing,
            },
        )
        for tp, found in response.moving.items()
    ]
    return {
        "error_code": number_of(response.error),
        "error_message": response.text,
        "topics": grouped(moving, "name", "partitions"),
    }


def _error_fields(error: ApiError | None) -> Message:
    return {"error_code": number_of(error.code if error else None), "error_message": error.text if error else None}


async def delete_records(service: Service, version: int, request: Message) -> Message:
    """Let logs begin at other offsets; answered when all live replicas have done so, or the time is over."""
    asked = {tp: part["offset"] for tp, part in parts_of(request["topics"])}
    known = {tp: offset for tp, offset in asked.items() if tp in service.broker.metadata}
    wanted = DeleteRecordsRequest(known, max(0, request["timeout"]) / 1000)
    response, _ = await service.broker.receive(wanted, CAUSE.get())
    parts = [
        (
            tp,
            {
                "partition_index": tp.partition,
                "low_watermark": response.low_watermarks.get(tp, NO_LOW_WATERMARK),
                "error_code": number_of(response.errors[tp] if tp in known else "UNKNOWN_TOPIC_OR_PARTITION"),
            },
        )
        for tp in asked
    ]
    return {"topics": grouped(parts, "name", "partitions")}


async def describe_log_dirs(service: Service, version: int, request: Message) -> Message:
    """Every log directory with its copies, those that are asked for or all, and their sizes.

    The bytes of deleted records count: the segment that they are in is still there.
    """
    asked = request["topics"]
    wanted = None if asked is None else named(asked, "topic")
    results = []
    for directory in service.broker.log_dirs.directories(wanted):
        parts = [
            (
                copy.partition,
                {
                    "partition_index": copy.partition.partition,
                    "partition_size": copy.size,
                    "offset_lag": copy.lag,
                    "is_future_key": copy.is_future,
                },
            )
            for copy in directory.copies
        ]
        error = number_of(STORAGE_ERROR if directory.failed else None)
        results.append({"error_code": error, "log_dir": directory.path, "topics": grouped(parts, "name", "partitions")})
    return {"results": results}


async def alter_replica_log_dirs(service: Service, version: int, request: Message) -> Message:
    """Bring copies of this broker into other log directories."""
    dirs = {tp: path["path"] for path in request["dirs"] for tp in named(path["topics"])}
    response, _ = await service.broker.receive(AlterReplicaLogDirsRequest(dirs), CAUSE.get())
    return {"results": errors_by_topic(response.errors, "topic_name")}
