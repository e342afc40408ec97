"""The requests of controllers, brokers that leave, and administrators, as a broker answers them.

Kafka 2.0.1: server/KafkaApis.scala, handleLeaderAndIsrRequest ... handleControlledShutdownRequest;
2.4.1: handleElectReplicaLeader, handleAlterPartitionReassignmentsRequest, handleListPartitionReassignmentsRequest
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.election import ElectionType
from kafka_ctl.requests import (
    AlterPartitionReassignmentsRequest,
    ApiError,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    Request,
    Response,
)
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.control import grouped, read_endpoints, read_request, write_response
from kafka_ctl.wire.error_codes import number_of
from kafka_ctl.wire.service import Handler, Service

KINDS = (ElectionType.PREFERRED, ElectionType.UNCLEAN)
"""What the number of an election type means (`ElectionType`)."""


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
        return write_response(await _received(service, read_request(name, request), request["correlation_id"]))

    return handle


async def elect_leaders(service: Service, version: int, request: Message) -> Message:
    """Elect the preferred leaders, or unclean ones, of some partitions or of all (KIP-460)."""
    asked = request["topic_partitions"]
    partitions = None if asked is None else _named(asked, "topic", "partitions")
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
        TopicPartition(topic["name"], part["partition_index"]): None
        if part["replicas"] is None
        else tuple(part["replicas"])
        for topic in request["topics"]
        for part in topic["partitions"]
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
    partitions = None if asked is None else _named(asked, "name", "partition_indexes")
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


def _named(topics: Iterable[Message], name: str, partitions: str) -> tuple[TopicPartition, ...]:
    """The partitions that are named, each once."""
    return tuple(dict.fromkeys(TopicPartition(topic[name], number) for topic in topics for number in topic[partitions]))


def _error_fields(error: ApiError | None) -> Message:
    return {"error_code": number_of(error.code if error else None), "error_message": error.text if error else None}
