"""Producing over the wire, on the logs of this broker: the checks of records, the append, and what ends a transaction.

Separate from `attach.py` because that one only says which request has which handler.
Kafka 2.0.1, 2.4.1: server/KafkaApis.scala, handleProduceRequest, handleWriteTxnMarkersRequest;
common/requests/ProduceRequest.java, validateRecords; log/Log.scala, analyzeAndValidateRecords;
log/LogValidator.scala, validateBatch; common/record/DefaultRecordBatch.java, RecordIterator
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from kafka_ctl.brokers.leader import NOT_ENOUGH
from kafka_ctl.brokers.log import Log
from kafka_ctl.cluster import INTERNAL, OFFSETS_TOPIC, TopicPartition
from kafka_ctl.errors import BadInput, Unavailable
from kafka_ctl.generation import Generation
from kafka_ctl.requests import (
    ALL,
    NOT_LEADER,
    PRODUCE_TIMEOUT,
    STORAGE_ERROR,
    UNKNOWN_PARTITION,
    ProduceRequest,
)
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.wire import batches
from kafka_ctl.wire.batches import MAGIC, Batch, TooLarge, magic_of
from kafka_ctl.wire.codec import Malformed, Message, answered, errors_by_topic, named, parts_of
from kafka_ctl.wire.contents import Kept, marker, sent_before
from kafka_ctl.wire.groups import coordinator_id
from kafka_ctl.wire.schema import Refusal, number_of
from kafka_ctl.wire.service import LOOK, RefusedFrame, Service
from kafka_ctl.wire.versions import announced, known_to

MOST_BYTES = 1_000_012
"""The largest batch: Kafka's `message.max.bytes`."""
ONE_BATCH, ZSTD = 3, 7
"""The versions of Produce from which on a partition has one batch, of magic 2, and this may be compressed with zstd."""
CORRUPT, INVALID, TOO_LARGE = "CORRUPT_MESSAGE", "INVALID_RECORD", "MESSAGE_TOO_LARGE"
UNSUPPORTED, UNKNOWN_CODEC = "UNSUPPORTED_COMPRESSION_TYPE", "UNKNOWN_SERVER_ERROR"


def invalid(generation: Generation) -> str:
    """Kafka's error for records that cannot be: a name of its own only since 2.4 (KIP-467)."""
    return INVALID if generation.requests.answers_invalid_batches else CORRUPT


def unsupported(generation: Generation) -> str:
    """Kafka's error for a codec that cannot be read here: a name of its own only since 2.1 (KIP-110)."""
    return UNSUPPORTED if announced(generation)["Produce"][1] >= ZSTD else UNKNOWN_CODEC


def check_batches(generation: Generation, version: int, data: bytes) -> None:
    """From version 3 on there is one batch for each partition. Raises Refusal where that is not so."""
    if version < ONE_BATCH:
        return
    wrong, found = invalid(generation), _split(generation, data)
    if not found:
        text = "must have at least one record batch"
    elif magic_of(found[0]) != MAGIC:
        text = "are only allowed to contain record batches with magic version 2"
    elif version < ZSTD and _codec(found[0]) == "zstd" and generation.requests.answers_invalid_batches:
        wrong, text = UNSUPPORTED, "are not allowed to use ZStandard compression"
    elif len(found) > 1:
        text = "are only allowed to contain exactly one record batch"
    else:
        return
    raise Refusal(wrong, f"Produce requests with version {version} {text}")


@contextmanager
def _refusing(generation: Generation, malformed: str = CORRUPT) -> Iterator[None]:
    """Refuse records that cannot be read."""
    try:
        yield
    except BadInput as error:
        name = TOO_LARGE if isinstance(error, TooLarge) else malformed if isinstance(error, Malformed) else UNSUPPORTED
        raise Refusal(name, str(error)) from None
    except Unavailable as missing:
        raise Refusal(unsupported(generation), str(missing)) from None


def _split(generation: Generation, data: bytes, most: int | None = None) -> list[bytes]:
    with _refusing(generation):
        found = [raw for _, raw in itertools.islice(batches.split(data), most)]
        if any(magic_of(raw) not in (0, 1, MAGIC) for raw in found):
            raise Malformed(f"Invalid magic found in record: {magic_of(data)}")
    return found


def _codec(raw: bytes) -> str:
    return batches.COMPRESSION.get(raw[batches.LAST_DELTA - 1] & 7, "unknown")


def received(generation: Generation, data: bytes, from_client: bool = True) -> Batch | None:
    """The records to append, as one batch; None where no whole batch came. Raises Refusal.

    Messages of magic 0 and 1 become a batch. `from_client`: it may not end a transaction.
    """
    found = _split(generation, data)
    if not found:
        return None
    _, newest = announced(generation)["Produce"]
    if (magic := magic_of(found[0])) == MAGIC and newest < ONE_BATCH:
        raise Refusal(CORRUPT, f"Invalid magic found in record: {magic}")
    if (largest := max(map(len, found))) > MOST_BYTES:
        which = f"{largest} bytes which exceeds the maximum configured value of {MOST_BYTES}"
        raise Refusal(TOO_LARGE, f"The record batch size in the append is {which}")
    with _refusing(generation):
        if magic < MAGIC:
            records = [record._replace(offset=number) for number, record in enumerate(batches.read_messages(data))]
            codec = "gzip" if any(raw[batches.CODEC_AT] & 7 for raw in found) else "none"
            _check_number(codec, len(records))
            return batches.read_batch(batches.write_batch(records, codec=codec)) if records else None
        batch = batches.read_batch(data)
    if batch.codec == "unknown" or (batch.codec == "zstd" and newest < ZSTD):
        raise Refusal(UNKNOWN_CODEC, f"Unknown compression type id: {batch.attributes & 7}")
    if from_client:
        _check_batch(generation, batch)
    return batch


def _check_number(codec: str, records: int) -> None:
    """Refuse too many compressed records: a small batch may have any number of them, or claim so."""
    if codec != "none" and records > batches.MOST_RECORDS:
        raise TooLarge(f"{records} records in a batch; {batches.MOST_RECORDS} are kept at most")


def _check_batch(generation: Generation, batch: Batch) -> None:
    """Refuse a batch whose header and records do not fit together."""
    wrong = invalid(generation)
    last = batches.end_of(0, batch.data) - 1
    if batch.base_offset:
        text = f"The baseOffset of the record batch in the append should be 0, but it is {batch.base_offset}"
    elif last < 0:
        text = f"Batch has an invalid offset range: [0, {last}]"
    elif batch.records <= 0:
        text = f"Invalid reported count for record batch: {batch.records}"
    elif last != batch.records - 1:
        text = f"Inconsistent batch offset range [0, {last}] and count of records {batch.records}"
    elif batch.producer >= 0 and batch.sequence < 0:
        text = f"Invalid sequence number {batch.sequence} in record batch with producerId {batch.producer}"
    elif batch.attributes & batches.CONTROL:
        text = "Clients are not allowed to write control records"
    else:
        with _refusing(generation, wrong):
            _check_number(batch.codec, batch.records)
            batches.check_records(batch)
        return
    raise Refusal(wrong, text)


PRODUCER = "producer"
"""The actor that a client's records are recorded under."""
REFUSALS = (NOT_LEADER, UNKNOWN_PARTITION, STORAGE_ERROR, NOT_ENOUGH)
"""The errors after which a batch may be in no log."""
APPENDING = -1
"""The offset of a batch that is about to be appended."""
MARKS = -1
"""The version of no request: what a coordinator writes."""
UNKNOWN_START = (NOT_LEADER, UNKNOWN_PARTITION, STORAGE_ERROR, TOO_LARGE, CORRUPT)
"""The errors of an append that are answered without the log start offset.

Kafka 2.0.1, 2.4.1: server/ReplicaManager.scala, appendToLocalLog
"""


class Answer(NamedTuple):
    """The answer for one partition, with the names of its fields.

    After an append an error leaves the offsets. A batch that the log has already is answered with its own timestamp.
    Kafka 2.0.1: server/DelayedProduce.scala, tryComplete; log/Log.scala, append (maybeDuplicate)
    """

    error: str | None = None
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1


async def produce(service: Service, version: int, request: Message) -> Message | None:
    """Append the records of each partition, and answer when as many have them as `acks` says."""
    acks, seconds = request["acks"], max(0, request["timeout"]) / 1000
    generation = service.broker.generation
    parts = parts_of(request["topic_data"], of="partition_data", number="index")
    given = [(tp, part["records"]) for tp, part in parts]
    try:
        for _, data in given:
            _check_request(generation, version, data)
    except Refusal as refused:
        raise RefusedFrame("INVALID_REQUEST", str(refused)) from None
    answers = await _all_appended(service, dict(given), acks, seconds, version)
    if acks == 0:
        _close_after_errors(answers)
        return None

    def outcome(tp: TopicPartition, _: Message) -> Message:
        answer = answers[tp]
        return answer._asdict() | {"error_code": number_of(known_to("Produce", version, answer.error))}

    topics = answered(request["topic_data"], outcome, "partition_data", "index", "partition_responses")
    return {"responses": topics}


def _check_request(generation: Generation, version: int, data: bytes | None) -> None:
    """Raise Refusal for records with which a request cannot be read: null, in 2.4 also no whole batch at the beginning.

    Kafka 2.4.1: common/requests/ProduceRequest.java, setFlags
    """
    if data is None:
        raise Refusal(INVALID, "a partition's records are null")
    if not generation.requests.answers_invalid_batches:
        check_batches(generation, version, data)
    elif not _split(generation, data, most=1):
        raise Refusal(INVALID, "a partition's records do not begin with a whole batch")


def _close_after_errors(answers: Mapping[TopicPartition, Answer]) -> None:
    """With acks=0 an error closes the connection, so that the client asks for the metadata again."""
    errors = {tp: answer.error for tp, answer in answers.items() if answer.error is not None}
    if errors:
        summary = ", ".join(f"{tp} -> {error}" for tp, error in errors.items())
        raise RefusedFrame(next(iter(errors.values())), f"error during produce request with ack=0: {summary}")


async def _all_appended(
    service: Service, given: Mapping[TopicPartition, bytes], acks: int, seconds: float, version: int = MARKS
) -> dict[TopicPartition, Answer]:
    """Append the records of each partition, at the same time where we lead it.

    Without the version of a producer's request they are `MARKS`, which end a transaction.
    """
    problems = {tp: _problem(service, tp, data, acks, version) for tp, data in given.items()}
    led = [tp for tp, problem in problems.items() if problem is None]
    done = await asyncio.gather(*(_append(service, tp, given[tp], acks, seconds, version) for tp in led))
    logs = service.broker.disk.logs
    for at, (tp, answer) in enumerate(zip(led, done, strict=True)):
        if answer.base_offset >= 0 or answer.error not in UNKNOWN_START:
            done[at] = answer._replace(log_start_offset=logs.get(tp, Log()).start)
    return {tp: Answer(error) for tp, error in problems.items()} | dict(zip(led, done, strict=True))


async def _append(service: Service, tp: TopicPartition, data: bytes, acks: int, seconds: float, version: int) -> Answer:
    """Append one partition's records; the outcome is recorded as a producer of the lab records it."""
    contents, broker = service.shared.contents, service.broker
    try:
        batch = received(broker.generation, data, from_client=version != MARKS)
    except Refusal as refused:
        service.refused(refused.error, f"{tp}: {refused}", "refused-records")
        return Answer(refused.error)
    if batch is None:
        return Answer()
    again, error = await _sent_before(service, tp, batch)
    error = contents.fences(tp, batch) or error
    if (error or again) and acks == ALL and broker.as_leader.has_too_few(tp):
        error = NOT_ENOUGH
    if error is not None:
        return Answer(error)
    offset, kept = again or (None, contents.keep(tp, batch))
    detail = f"records={details.runs(kept.values)} acks={'all' if acks == ALL else acks}"
    CAUSE.set(broker.trace.add(PRODUCER, "request", "Produce", *tp, broker.id, detail=detail))
    answer = await _appended(service, tp, kept, acks, seconds, offset)
    if again is None and answer.error in REFUSALS and not _is_in_a_log(service, tp, kept):
        contents.withdraw(tp, kept)
    where = "" if answer.error else f" offset={answer.base_offset}"
    broker.trace.add(PRODUCER, "response", "Produce", *tp, broker.id, error=answer.error, detail=detail + where)
    return answer


def _problem(service: Service, tp: TopicPartition, data: bytes, acks: int, version: int) -> str | None:
    """The error of records that come to no log."""
    broker = service.broker
    if tp not in broker.metadata:
        return broker.refusal(tp)
    try:
        check_batches(broker.generation, version, data)
    except Refusal as refused:
        service.refused(refused.error, f"{tp}: {refused}", "refused-records")
        return refused.error
    if acks not in (ALL, 0, 1):
        return "INVALID_REQUIRED_ACKS"
    if version != MARKS and tp.topic in INTERNAL:
        return "INVALID_TOPIC_EXCEPTION"
    return None if broker.leads(tp) else broker.refusal(tp)


async def _sent_before(
    service: Service, tp: TopicPartition, batch: Batch
) -> tuple[tuple[int, Kept] | None, str | None]:
    """A batch that this leader has already, with its offset, or the error of one that is out of order.

    While another request is about to append it, this one waits.
    """
    if not batch.is_numbered:
        return None, None
    while True:
        found, error = sent_before(batch, _here(service, tp, batch))
        if found is None or found[0] != APPENDING:
            return found, error
        await asyncio.sleep(LOOK)


def _here(service: Service, tp: TopicPartition, batch: Batch) -> Iterator[tuple[int, Kept]]:
    """The batches of a producer and epoch on this leader, the last first; sequence numbers may go with deleted records.

    Kafka 2.0.1: log/ProducerStateManager.scala, truncateHead
    """
    log, kept_long = service.broker.disk.logs.get(tp, Log()), service.broker.generation.requests.keeps_deleted_producers
    for at, kept in reversed(service.appending):
        is_same = (kept.batch.producer, kept.batch.producer_epoch) == (batch.producer, batch.producer_epoch)
        if at == tp and is_same and _offset_of(log, kept.first) is None:
            yield APPENDING, kept
    for offset, kept in service.shared.contents.of_producer(tp, log, batch):
        if not kept_long and offset + kept.batch.records <= log.start:
            return
        yield offset, kept


async def _appended(
    service: Service, tp: TopicPartition, kept: Kept, acks: int, seconds: float, offset: int | None
) -> Answer:
    """Append a batch or, where the log has it at an offset, wait for its replication all the same."""
    if offset is not None:
        end = offset + kept.batch.records
        error = await service.broker.as_leader.replicated(tp, end, seconds) if acks == ALL else None
        return Answer(error, offset, kept.batch.max_timestamp)
    service.appending.append((tp, kept))
    try:
        request = ProduceRequest(tp, kept.values, acks, kept.sizes, seconds)
        response, _ = await service.broker.receive(request, CAUSE.get())
        return Answer(response.error, -1 if response.offset is None else response.offset)
    finally:
        service.appending.remove((tp, kept))


def _is_in_a_log(service: Service, tp: TopicPartition, kept: Kept) -> bool:
    """True if any replica has a batch: a former leader may have dropped what the next one has copied."""
    logs = [broker.disk.logs.get(tp) for broker in service.shared.world.brokers.values()]
    return any(_offset_of(log, kept.first) is not None for log in logs)


def _offset_of(log: Log | None, value: int) -> int | None:
    """The place of a record in a log, searched from the end."""
    entries = [] if log is None else log.entries
    return next((offset for offset in range(len(entries) - 1, -1, -1) if entries[offset].value == value), None)


async def write_txn_markers(service: Service, version: int, request: Message) -> Message:
    """End transactions, as a coordinator decided: a control batch goes into each of their partitions.

    The offsets of groups that belong to one count when the markers are appended, or never.
    Kafka 2.0.1: server/KafkaApis.scala, handleWriteTxnMarkersRequest
    """
    markers = []
    for given in request["markers"]:
        names = ("producer_id", "producer_epoch", "transaction_result", "coordinator_epoch")
        data, asked = marker(*(given[name] for name in names)), named(given["topics"], of="partition_indexes")
        records = {tp: data for tp in asked if tp.topic != OFFSETS_TOPIC}
        done = await _all_appended(service, records, ALL, PRODUCE_TIMEOUT)
        done |= {tp: _offsets_ended(service, tp, given) for tp in asked if tp.topic == OFFSETS_TOPIC}
        topics = errors_by_topic({tp: done[tp].error for tp in asked})
        markers.append({"producer_id": given["producer_id"], "topics": topics})
    return {"markers": markers}


def _offsets_ended(service: Service, tp: TopicPartition, given: Message) -> Answer:
    """End a transaction for the groups of one partition of `__consumer_offsets`, which their coordinator leads."""
    if coordinator_id(service.broker.live_brokers) != service.broker.id:
        return Answer(NOT_LEADER)
    epochs, names = service.shared.contents.producer_epochs[tp], ("producer_id", "producer_epoch", "coordinator_epoch")
    producer, epoch, coordinator_epoch = (given[name] for name in names)
    if error := epochs.fences(producer, epoch, coordinator_epoch):
        return Answer(error)
    epochs.note(producer, epoch, coordinator_epoch)
    service.shared.groups.end_transaction(producer, (tp,), given["transaction_result"])
    return Answer()
