"""What a leader asks of a producer's records before it appends them, and the error that it gives otherwise.

Kafka 2.0.1, 2.4.1: common/requests/ProduceRequest.java, validateRecords; log/Log.scala, analyzeAndValidateRecords;
log/LogValidator.scala, validateBatch; common/record/DefaultRecordBatch.java, RecordIterator
"""

from __future__ import annotations

from kafka_ctl.errors import BadInput
from kafka_ctl.generation import Generation
from kafka_ctl.wire.batches import (
    COMPRESSION,
    CONTROL,
    LAST_DELTA,
    MAGIC,
    MOST_RECORDS,
    READABLE,
    Batch,
    TooLarge,
    end_of,
    read_batch,
    read_records,
    split,
    write_batch,
)
from kafka_ctl.wire.message_sets import CODEC_AT, magic_of, read_messages
from kafka_ctl.wire.primitives import Malformed
from kafka_ctl.wire.versions import announced

MOST_BYTES = 1_000_012
"""The largest batch: Kafka's `message.max.bytes`."""
ONE_BATCH, ZSTD = 3, 7
"""The versions of Produce from which on a partition has one batch, of magic 2, and this may be compressed with zstd."""
CORRUPT, INVALID, TOO_LARGE = "CORRUPT_MESSAGE", "INVALID_RECORD", "MESSAGE_TOO_LARGE"


class RefusedRecords(Exception):
    """Records that are not appended: `error` is Kafka's name for that."""

    def __init__(self, error: str, text: str) -> None:
        self.error = error
        super().__init__(text)


def invalid(generation: Generation) -> str:
    """Kafka's error for records that cannot be: a name of its own only since 2.4 (KIP-467)."""
    return INVALID if generation.requests.answers_invalid_batches else CORRUPT


def check_batches(generation: Generation, version: int, data: bytes) -> None:
    """From version 3 on there is one batch for each partition; RefusedRecords where that is not so."""
    if version < ONE_BATCH:
        return
    wrong = invalid(generation)
    found = _split(data)
    if not found:
        raise RefusedRecords(wrong, f"Produce requests with version {version} must have at least one record batch")
    if magic_of(found[0]) != MAGIC:
        only = "are only allowed to contain record batches with magic version 2"
        raise RefusedRecords(wrong, f"Produce requests with version {version} {only}")
    if version < ZSTD and _codec(found[0]) == "zstd" and generation.requests.answers_invalid_batches:
        text = f"Produce requests with version {version} are not allowed to use ZStandard compression"
        raise RefusedRecords("UNSUPPORTED_COMPRESSION_TYPE", text)
    if len(found) > 1:
        only = "are only allowed to contain exactly one record batch"
        raise RefusedRecords(wrong, f"Produce requests with version {version} {only}")


def _split(data: bytes) -> list[bytes]:
    try:
        found = [raw for _, raw in split(data)]
        if any(magic_of(raw) not in (0, 1, MAGIC) for raw in found):
            raise Malformed(f"Invalid magic found in record: {magic_of(data)}")
    except Malformed as error:
        raise RefusedRecords(CORRUPT, str(error)) from None
    return found


def _codec(raw: bytes) -> str:
    return COMPRESSION.get(raw[LAST_DELTA - 1] & 7, "unknown")


def received(generation: Generation, data: bytes, from_client: bool = True) -> Batch | None:
    """What is to be appended, as one batch; None where no whole batch came. Raises RefusedRecords.

    Messages of magic 0 and 1 become a batch. `from_client`: it may not end a transaction.
    """
    found = _split(data)
    if not found:
        return None
    newest = MAGIC if announced(generation)["Produce"][1] >= ONE_BATCH else 1
    if (magic := magic_of(found[0])) > newest:
        raise RefusedRecords(CORRUPT, f"Invalid magic found in record: {magic}")
    if (largest := max(map(len, found))) > MOST_BYTES:
        which = f"{largest} bytes which exceeds the maximum configured value of {MOST_BYTES}"
        raise RefusedRecords(TOO_LARGE, f"The record batch size in the append is {which}")
    try:
        if magic < MAGIC:
            records = [record._replace(offset=number) for number, record in enumerate(read_messages(data))]
            codec = "gzip" if any(raw[CODEC_AT] & 7 for raw in found) else "none"
            _check_number(codec, len(records))
            return read_batch(write_batch(records, codec=codec)) if records else None
        batch = read_batch(data)
    except TooLarge as error:
        raise RefusedRecords(TOO_LARGE, str(error)) from None
    except Malformed as error:
        raise RefusedRecords(CORRUPT, str(error)) from None
    except BadInput as error:
        raise RefusedRecords("UNSUPPORTED_COMPRESSION_TYPE", str(error)) from None
    known = [codec for codec in COMPRESSION.values() if codec != "zstd" or announced(generation)["Produce"][1] >= ZSTD]
    if batch.codec not in known:
        raise RefusedRecords("UNKNOWN_SERVER_ERROR", f"Unknown compression type id: {batch.attributes & 7}")
    if from_client:
        _check_batch(batch, invalid(generation))
    return batch


def _check_number(codec: str, records: int) -> None:
    """However small it is, what is compressed may have any number of records, or say so."""
    if codec != "none" and records > MOST_RECORDS:
        raise TooLarge(f"{records} records in a batch; {MOST_RECORDS} are kept at most")


def _check_batch(batch: Batch, wrong: str) -> None:
    """Whether header and records fit together; records that cannot be unpacked here are not looked at."""
    last = end_of(0, batch.data) - 1
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
    elif batch.attributes & CONTROL:
        text = "Clients are not allowed to write control records"
    else:
        try:
            _check_number(batch.codec, batch.records)
            if batch.codec in READABLE:
                read_records(batch)
            return
        except TooLarge as error:
            raise RefusedRecords(TOO_LARGE, str(error)) from None
        except Malformed as error:
            text = str(error)
    raise RefusedRecords(wrong, text)
