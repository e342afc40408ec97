"""The requests of transactional producers, as their coordinator answers them.

Separate from `attach.py` because that one only says which request has which handler.
Kafka 2.0.1: server/KafkaApis.scala, handleInitProducerIdRequest, handleAddPartitionToTxnRequest,
handleAddOffsetsToTxnRequest, handleEndTxnRequest
"""

from __future__ import annotations

from collections.abc import Collection

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.control import errors_by_topic, named
from kafka_ctl.wire.error_codes import number_of
from kafka_ctl.wire.groups import offsets_partition
from kafka_ctl.wire.metadata import INTERNAL
from kafka_ctl.wire.service import Service
from kafka_ctl.wire.transaction_coordinator import TransactionError


async def init_producer_id(service: Service, version: int, request: Message) -> Message:
    """An id by which a producer's batches are recognised when they are sent again; any broker gives it to a producer
    without transactions, the coordinator to one with a transactional id."""
    id, producer, epoch, error = request["transactional_id"], -1, -1, None
    if id is None:
        producer, epoch = service.coordinator.log.next_producer(), 0
    else:
        try:
            producer, epoch = service.coordinator.init_producer_id(id, request["transaction_timeout"] / 1000)
        except TransactionError as refused:
            error = str(refused)
    return {"error_code": number_of(error), "producer_id": producer, "producer_epoch": epoch}


async def add_partitions_to_txn(service: Service, version: int, request: Message) -> Message:
    """A producer is about to write to partitions: to all of them, or to none where one cannot be."""
    errors = {tp: _unfit(service, tp) for tp in named(request["v3_and_below_topics"])}
    if any(errors.values()):
        errors = {tp: error or "OPERATION_NOT_ATTEMPTED" for tp, error in errors.items()}
    else:
        error = _added(service, request, "v3_and_below_", errors)
        errors = dict.fromkeys(errors, error)
    results = errors_by_topic(errors, of="results_by_partition", code="partition_error_code")
    return {"results_by_topic_v3_and_below": results}


def _unfit(service: Service, tp: TopicPartition) -> str | None:
    if tp.topic in INTERNAL:
        return "TOPIC_AUTHORIZATION_FAILED"
    return None if tp in service.broker.metadata else "UNKNOWN_TOPIC_OR_PARTITION"


async def add_offsets_to_txn(service: Service, version: int, request: Message) -> Message:
    """A producer is about to commit offsets of a group: the partition that keeps them is one of the transaction's."""
    return {"error_code": number_of(_added(service, request, "", [offsets_partition(request["group_id"])]))}


def _added(service: Service, request: Message, prefix: str, partitions: Collection[TopicPartition]) -> str | None:
    id, producer, epoch = (request[f"{prefix}{name}"] for name in ("transactional_id", "producer_id", "producer_epoch"))
    try:
        service.coordinator.add_partitions(id, producer, epoch, partitions)
    except TransactionError as refused:
        return str(refused)
    return None


async def end_txn(service: Service, version: int, request: Message) -> Message:
    """Commit or abort."""
    error = None
    try:
        service.coordinator.end(
            request["transactional_id"], request["producer_id"], request["producer_epoch"], request["committed"]
        )
    except TransactionError as refused:
        error = str(refused)
    return {"error_code": number_of(error)}
