"""Producing over the wire, on the logs of this broker; and what ends a transaction there.

Kafka 2.0.1: server/KafkaApis.scala, handleProduceRequest, handleInitProducerIdRequest, handleWriteTxnMarkersRequest
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kafka_ctl.brokers.log import Log
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.generation import Generation
from kafka_ctl.requests import PRODUCE_TIMEOUT, ProduceRequest, Response
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.contents import Kept
from kafka_ctl.wire.error_codes import number_of
from kafka_ctl.wire.service import RefusedFrame, Service
from kafka_ctl.wire.transactions import marker
from kafka_ctl.wire.validation import RefusedRecords, check_batches, received

PRODUCER = "producer"
"""The actor that a client's records are recorded under."""
ALL = -1
"""What `acks=all` is."""
REFUSALS = ("NOT_LEADER_FOR_PARTITION", "NOT_ENOUGH_REPLICAS")
"""The errors after which a batch may be in no log."""
MARKS = -1
"""The version of no request: what a coordinator writes."""
NOT_LEADER, UNKNOWN = "NOT_LEADER_FOR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"


async def produce(service: Service, version: int, request: Message) -> Message | None:
    """Append the records of each partition, and answer when as many have them as `acks` says."""
    acks, seconds = request["acks"], max(0, request["timeout"]) / 1000
    generation = service.broker.generation
    given = [(TopicPartition(topic["name"], part["index"]), part["records"] or b"")
             for topic in request["topic_data"] for part in topic["partition_data"]]  # fmt: skip
    if not generation.requests.answers_invalid_batches:
        for _, data in given:
            _check_or_close(generation, version, data)
    answers = await _all_appended(service, dict(given), acks, seconds, version)
    if acks == 0:
        _close_after_errors(answers)
        return None
    responses = [
        {
            "name": topic["name"],
            "partition_responses": [
                {
                    "index": part["index"],
                    "error_code": number_of(answer.error),
                    "base_offset": -1 if answer.offset is None else answer.offset,
                    "log_start_offset": 0 if answer.error is None else -1,
                    "log_append_time": -1,
                }
                for part in topic["partition_data"]
                for answer in [answers[TopicPartition(topic["name"], part["index"])]]
            ],
        }
        for topic in request["topic_data"]
    ]
    return {"responses": responses}


def _check_or_close(generation: Generation, version: int, data: bytes) -> None:
    try:
        check_batches(generation, version, data)
    except RefusedRecords as refused:
        raise RefusedFrame("INVALID_REQUEST", str(refused)) from None


def _close_after_errors(answers: Mapping[TopicPartition, Response]) -> None:
    """Who wants no answer learns of an error by the end of the connection, and asks for the metadata anew."""
    errors = {tp: answer.error for tp, answer in answers.items() if answer.error is not None}
    if errors:
        summary = ", ".join(f"{tp} -> {error}" for tp, error in errors.items())
        raise RefusedFrame(next(iter(errors.values())), f"error during produce request with ack=0: {summary}")


async def _all_appended(
    service: Service, given: Mapping[TopicPartition, bytes], acks: int, seconds: float, version: int = MARKS
) -> dict[TopicPartition, Response]:
    """Append the records of each partition, at the same time where we lead it.

    Without the version of a producer's request they are `MARKS`, which end a transaction.
    """
    problems = {tp: _problem(service, tp, acks) for tp in given}
    led = [tp for tp, problem in problems.items() if problem is None]
    done = await asyncio.gather(*(_append(service, tp, given[tp], acks, seconds, version) for tp in led))
    refused = {error: Response(error) for error in set(problems.values())}
    return {tp: refused[error] for tp, error in problems.items()} | dict(zip(led, done, strict=True))


async def _append(
    service: Service, tp: TopicPartition, data: bytes, acks: int, seconds: float, version: int
) -> Response:
    """Append one partition's records; the outcome is recorded as a producer of the lab records it."""
    contents, broker = service.shared.contents, service.broker
    try:
        check_batches(broker.generation, version, data)
        batch = received(broker.generation, data, from_client=version != MARKS)
    except RefusedRecords as refused:
        service.refused(refused.error, f"{tp}: {refused}", "refused-records")
        return Response(refused.error)
    if batch is None:
        return Response(None)
    again = contents.sent_before(tp, batch) if batch.sequence >= 0 else None
    if again is None and batch.sequence >= 0 and contents.out_of_order(tp, batch):
        return Response("OUT_OF_ORDER_SEQUENCE_NUMBER")
    kept = again or contents.keep(tp, batch)
    detail = f"records={details.runs(kept.values)} acks={'all' if acks == ALL else acks}"
    CAUSE.set(broker.trace.add(PRODUCER, "request", "Produce", *tp, broker.id, detail=detail))
    answer = await _appended(service, tp, kept, acks, seconds, again is not None)
    if again is None and answer.error in REFUSALS and _offset_of(broker.disk.logs.get(tp), kept.first) is None:
        contents.withdraw(tp, kept)
    where = "" if answer.offset is None else f" offset={answer.offset}"
    broker.trace.add(PRODUCER, "response", "Produce", *tp, broker.id, error=answer.error, detail=detail + where)
    return answer


def _problem(service: Service, tp: TopicPartition, acks: int) -> str | None:
    if acks not in (ALL, 0, 1):
        return "INVALID_REQUIRED_ACKS"
    if tp not in service.broker.metadata:
        return UNKNOWN
    return None if service.broker.leads(tp) else NOT_LEADER


async def _appended(
    service: Service, tp: TopicPartition, kept: Kept, acks: int, seconds: float, again: bool
) -> Response:
    """Append a batch, or, sent again, find out that it has been appended and wait for its replication all the same."""
    broker = service.broker
    offset = _offset_of(broker.disk.logs.get(tp), kept.first) if again else None
    if offset is not None:
        end = offset + kept.batch.records
        error = await broker.as_leader.replicated(tp, end, seconds) if acks == ALL else None
        return Response(error, offset=None if error else offset)
    return (await broker.receive(ProduceRequest(tp, kept.values, acks, kept.sizes, seconds), CAUSE.get()))[0]


def _offset_of(log: Log | None, value: int) -> int | None:
    """Where a log has a record, looked for from its end."""
    entries = [] if log is None else log.entries
    return next((offset for offset in range(len(entries) - 1, -1, -1) if entries[offset].value == value), None)


async def init_producer_id(service: Service, version: int, request: Message) -> Message:
    """An id by which a producer's batches are recognised when they are sent again; no transactions."""
    if request["transactional_id"] is not None:
        return {"error_code": number_of("COORDINATOR_NOT_AVAILABLE"), "producer_id": -1, "producer_epoch": -1}
    service.shared.next_producer += 1
    return {"error_code": 0, "producer_id": service.shared.next_producer, "producer_epoch": 0}


async def write_txn_markers(service: Service, version: int, request: Message) -> Message:
    """End transactions, as a coordinator decided: a control batch goes into each of their partitions."""
    markers = []
    for given in request["markers"]:
        data = marker(
            given["producer_id"], given["producer_epoch"], given["transaction_result"], given["coordinator_epoch"]
        )
        topics = []
        for topic in given["topics"]:
            named = {TopicPartition(topic["name"], number): data for number in topic["partition_indexes"]}
            done = await _all_appended(service, named, ALL, PRODUCE_TIMEOUT)
            parts = [{"partition_index": tp.partition, "error_code": number_of(answer.error)}
                     for tp, answer in done.items()]  # fmt: skip
            topics.append({"name": topic["name"], "partitions": parts})
        markers.append({"producer_id": given["producer_id"], "topics": topics})
    return {"markers": markers}
