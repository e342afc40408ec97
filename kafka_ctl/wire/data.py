"""Producing and fetching over the wire, on the logs of this broker.

Kafka 2.0.1: server/KafkaApis.scala, handleProduceRequest, handleFetchRequest, handleListOffsetRequest,
handleInitProducerIdRequest; server/DelayedFetch.scala
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from kafka_ctl.brokers.log import Log
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.requests import ProduceRequest, Response
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.contents import Kept, lowered, received
from kafka_ctl.wire.error_codes import number_of
from kafka_ctl.wire.primitives import Malformed
from kafka_ctl.wire.service import Service

PRODUCER = "producer"
"""The actor that a client's records are recorded under."""
ALL, FIRST_MAGIC_1, FIRST_MAGIC_2 = -1, 2, 4
"""What `acks=all` is; the versions of Fetch from which on a reader knows these."""
LATEST, EARLIEST = -1, -2
"""The timestamps that stand for the end and the beginning of a log."""
MOST = 8 << 20
"""Bytes of one answer to a fetch, whatever the client would take."""
REFUSALS = ("NOT_LEADER_FOR_PARTITION", "NOT_ENOUGH_REPLICAS")
"""The errors after which a batch may be in no log."""
NOT_LEADER, UNKNOWN = "NOT_LEADER_FOR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"


async def produce(service: Service, version: int, request: Message) -> Message | None:
    """Append the records of each partition, and answer when as many have them as `acks` says."""
    acks, seconds = request["acks"], max(0, request["timeout"]) / 1000
    given = [(TopicPartition(topic["name"], part["index"]), part["records"] or b"")
             for topic in request["topic_data"] for part in topic["partition_data"]]  # fmt: skip
    outcomes = await asyncio.gather(*(_append(service, tp, data, acks, seconds) for tp, data in given))
    if acks == 0:
        return None
    answers = {tp: outcome for (tp, _), outcome in zip(given, outcomes, strict=True)}
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


async def _append(service: Service, tp: TopicPartition, data: bytes, acks: int, seconds: float) -> Response:
    """Append one partition's records; the outcome is recorded as a producer of the lab records it."""
    problem = _problem(service, tp, acks)
    if problem is not None:
        return Response(problem)
    contents, broker = service.shared.contents, service.broker
    try:
        batch = received(data)
    except Malformed as error:
        service.refused("CORRUPT_MESSAGE", f"{tp}: {error}")
        return Response("CORRUPT_MESSAGE")
    except BadInput as error:
        service.refused("UNSUPPORTED_COMPRESSION_TYPE", f"{tp}: {error}")
        return Response("UNSUPPORTED_COMPRESSION_TYPE")
    again = contents.sent_before(tp, batch) if batch.producer >= 0 else None
    if again is None and contents.out_of_order(tp, batch):
        return Response("OUT_OF_ORDER_SEQUENCE_NUMBER")
    kept = again or contents.keep(tp, batch)
    detail = f"records={','.join(map(str, kept.values))} acks={'all' if acks == ALL else acks}"
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
        return await _replicated(service, tp, offset, kept, acks, seconds)
    try:
        async with asyncio.timeout(seconds):
            return (await broker.receive(ProduceRequest(tp, kept.values, acks), CAUSE.get()))[0]
    except TimeoutError:
        return Response("REQUEST_TIMED_OUT")


async def _replicated(
    service: Service, tp: TopicPartition, offset: int, kept: Kept, acks: int, seconds: float
) -> Response:
    log, until = service.broker.disk.logs[tp], service.broker.clock.now() + seconds
    while acks == ALL and log.high_watermark < offset + kept.batch.records:
        if not service.broker.leads(tp):
            return Response(NOT_LEADER)
        left = until - service.broker.clock.now()
        if left <= 0:
            return Response("REQUEST_TIMED_OUT")
        await service.news(left)
    return Response(offset=offset)


def _offset_of(log: Log | None, value: int) -> int | None:
    """Where a log has a record, looked for from its end."""
    entries = [] if log is None else log.entries
    return next((offset for offset in range(len(entries) - 1, -1, -1) if entries[offset].value == value), None)


class Asked(NamedTuple):
    """What is to be fetched of one partition."""

    tp: TopicPartition
    offset: int
    most: int


async def fetch(service: Service, version: int, request: Message) -> Message:
    """Records below the high watermark; waits until there are `min_bytes`, for `max_wait` at most."""
    asked = [Asked(TopicPartition(topic["topic"], part["partition"]), part["fetch_offset"], part["partition_max_bytes"])
             for topic in request["topics"] for part in topic["partitions"]]  # fmt: skip
    most = min(request.get("max_bytes", MOST), MOST)
    until = service.broker.clock.now() + max(0, request["max_wait"]) / 1000
    while True:
        found, size, failed = _read_all(service, version, asked, most)
        left = until - service.broker.clock.now()
        if failed or size >= request["min_bytes"] or left <= 0 or not asked:
            break
        await service.news(left)
    responses: dict[str, list[Message]] = {}
    for one in asked:
        responses.setdefault(one.tp.topic, []).append(found[one.tp])
    return {"session_id": 0, "responses": [{"topic": name, "partitions": parts} for name, parts in responses.items()]}


def _read_all(
    service: Service, version: int, asked: list[Asked], most: int
) -> tuple[dict[TopicPartition, Message], int, bool]:
    """By partition what is there now; how many bytes, and whether any partition cannot be read."""
    found: dict[TopicPartition, Message] = {}
    size, failed = 0, False
    for one in asked:
        part = found[one.tp] = _read(service, version, one, min(one.most, most - size), size == 0)
        size += len(part["records"])
        failed = failed or part["error_code"] != 0
    return found, size, failed


def _read(service: Service, version: int, asked: Asked, most: int, first: bool) -> Message:
    """What one partition has; at least one batch where nothing else was found (KIP-74)."""
    log, error = _readable(service, asked.tp)
    end = log.high_watermark
    if error is None and not 0 <= asked.offset <= log.end:
        error = "OFFSET_OUT_OF_RANGE"
    data = b""
    if error is None and (most > 0 or first):
        batches = service.shared.contents.read(asked.tp, log, asked.offset, end, most)
        if not first and batches and len(batches[0][1]) > most:
            batches = []
        try:
            data = lowered(batches, 2 if version >= FIRST_MAGIC_2 else int(version >= FIRST_MAGIC_1))
        except BadInput:
            error = "UNSUPPORTED_COMPRESSION_TYPE"
    return {
        "partition_index": asked.tp.partition,
        "error_code": number_of(error),
        "high_watermark": end if error is None else -1,
        "last_stable_offset": end if error is None else -1,
        "log_start_offset": 0 if error is None else -1,
        "aborted_transactions": [],
        "preferred_read_replica": -1,
        "records": data,
    }


def _readable(service: Service, tp: TopicPartition) -> tuple[Log, str | None]:
    """The log of a partition that we lead, and why there is none."""
    if service.broker.leads(tp):
        return service.broker.disk.logs.get(tp, Log()), None
    return Log(), NOT_LEADER if tp in service.broker.metadata else UNKNOWN


async def list_offsets(service: Service, version: int, request: Message) -> Message:
    """The first offset, the one behind the last that all have, or the first of a time."""
    topics = [
        {"name": topic["name"], "partitions": [_listed(service, topic["name"], part) for part in topic["partitions"]]}
        for topic in request["topics"]
    ]
    return {"topics": topics}


def _listed(service: Service, topic: str, asked: Message) -> Message:
    tp, timestamp = TopicPartition(topic, asked["partition_index"]), asked["timestamp"]
    log, error = _readable(service, tp)
    offset, time = -1, -1
    if error is None:
        end = log.high_watermark
        if timestamp in (LATEST, EARLIEST):
            offset = end if timestamp == LATEST else 0
        elif (found := service.shared.contents.offset_at(tp, log, end, timestamp)) is not None:
            time, offset = found
    return {
        "partition_index": tp.partition,
        "error_code": number_of(error),
        "timestamp": time,
        "offset": offset,
        "old_style_offsets": [offset] if offset >= 0 else [],
        "leader_epoch": -1,
    }


async def init_producer_id(service: Service, version: int, request: Message) -> Message:
    """An id by which a producer's batches are recognised when they are sent again; no transactions."""
    if request["transactional_id"] is not None:
        return {"error_code": number_of("COORDINATOR_NOT_AVAILABLE"), "producer_id": -1, "producer_epoch": -1}
    service.shared.next_producer += 1
    return {"error_code": 0, "producer_id": service.shared.next_producer, "producer_epoch": 0}
