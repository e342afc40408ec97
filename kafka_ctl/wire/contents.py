"""The records of clients: a broker's log holds their numbers, and their bytes lie here, once for all copies.

A producer's batch is kept as it came, with the number of its first record; the records in it are numbered on. So a log
says which records a replica has and in which order, and a fetch answers with the producer's own bytes.

Batches of a transaction are marked; a control batch of the same producer ends it, by commit or by abort. A reader with
`isolation.level=read_committed` gets what lies below the *last stable offset*, before which everything is decided, and
learns which transactions were aborted, so that it can leave their records out. Leaders write the control batches when
a coordinator asks them to (WriteTxnMarkers, `transaction_coordinator.py`).

Kafka 2.0.1: log/ProducerStateManager.scala, firstUnstableOffset; log/Log.scala, collectAbortedTransactions;
cluster/Replica.scala, lastStableOffset (KIP-98)
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from kafka_ctl.brokers.log import Log
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.wire.batches import (
    CONTROL,
    MAGIC,
    NO_TIMESTAMP,
    SEQUENCE_NUMBERS,
    TRANSACTIONAL,
    Batch,
    Record,
    read_batch,
    read_records,
    write_batch,
    write_messages,
)

REMEMBERED = 5
"""So many batches of one producer are recognised when it sends them again (KIP-98)."""
RUN = 500
"""The most records without bytes of their own that go into one batch."""


# Transactions

ABORT, COMMIT = 0, 1
"""The type of a control record, in its key after the version."""


class Aborted(NamedTuple):
    """A transaction that was given up: its producer, its first offset in this log, and the offset of its end."""

    producer: int
    first: int
    last: int


class Transactions(NamedTuple):
    """The transactions in one log."""

    undecided: int | None
    """The first offset of those that go on, or whose end is not on every in-sync replica yet."""
    aborted: tuple[Aborted, ...]

    def last_stable(self, high_watermark: int) -> int:
        """Up to where a reader of committed records may read."""
        return high_watermark if self.undecided is None else min(self.undecided, high_watermark)

    def aborted_between(self, start: int, end: int) -> list[Aborted]:
        """Those that have records from `start` on, below `end`."""
        return [one for one in self.aborted if one.last >= start and one.first < end]


class ProducerEpochs:
    """The newest epochs of producers that have written to a partition, and of the coordinators of their transactions.

    Kafka 2.0.1: log/ProducerStateManager.scala, checkProducerEpoch, checkSequence, appendEndTxnMarker
    """

    def __init__(self) -> None:
        self._producers: dict[int, int] = {}
        self._coordinators: dict[int, int] = {}

    def newest(self, producer: int) -> int:
        """The newest epoch of a producer, -1 where it has written nothing."""
        return self._producers.get(producer, -1)

    def fences(self, producer: int, epoch: int, coordinator_epoch: int | None = None, sequence: int = 0) -> str | None:
        """The error of an append, None where it is taken; a marker has a coordinator epoch, records have a sequence."""
        known = self.newest(producer)
        if epoch < known:
            return "INVALID_PRODUCER_EPOCH"
        if coordinator_epoch is not None and coordinator_epoch < self._coordinators.get(producer, -1):
            return "TRANSACTION_COORDINATOR_FENCED"
        return "OUT_OF_ORDER_SEQUENCE_NUMBER" if epoch > known >= 0 and sequence > 0 else None

    def note(self, producer: int, epoch: int, coordinator_epoch: int | None = None) -> None:
        """Remember the epochs of an append."""
        self._producers[producer] = epoch
        if coordinator_epoch is not None:
            self._coordinators[producer] = coordinator_epoch

    def forget(self, producer: int) -> None:
        self._producers.pop(producer, None)
        self._coordinators.pop(producer, None)


def transactions(log: Log, batches: Mapping[int, Batch]) -> Transactions:
    """The transactions in a log, by the batches of transactions that its partition ever had and their first records."""
    if not batches:
        return Transactions(None, ())
    going_on: dict[int, int] = {}
    aborted, unstable = [], []
    for offset, entry in enumerate(log.entries):
        one = batches.get(entry.value)
        if one is None:
            continue
        producer = one.producer
        if not one.attributes & CONTROL:
            going_on.setdefault(producer, offset)
        elif (first := going_on.pop(producer, None)) is not None:
            key = read_records(one)[0].key or b""
            if int.from_bytes(key[2:4], "big") == ABORT:
                aborted.append(Aborted(producer, first, offset))
            if offset >= log.high_watermark:
                unstable.append(first)
    unstable += going_on.values()
    first = max(min(unstable), log.start) if unstable else None  # what is deleted is no longer undecided
    return Transactions(first, tuple(aborted))


def coordinator_epoch(batch: Batch) -> int | None:
    """The epoch of the coordinator that sent a marker, None for records."""
    if not batch.attributes & CONTROL:
        return None
    return int.from_bytes((read_records(batch)[0].value or b"")[2:6], "big", signed=True)


def marker(producer: int, producer_epoch: int, commits: bool, coordinator_epoch: int) -> bytes:
    """The control batch that ends a producer's transaction in one partition.

    Kafka 2.0.1: common/record/EndTransactionMarker.java, ControlRecordType.java
    """
    key = (0).to_bytes(2, "big") + (COMMIT if commits else ABORT).to_bytes(2, "big")
    value = (0).to_bytes(2, "big") + coordinator_epoch.to_bytes(4, "big", signed=True)
    record = Record(0, int(time.time() * 1000), key, value)
    return write_batch([record], producer=producer, producer_epoch=producer_epoch, attributes=CONTROL | TRANSACTIONAL)


# Batches


class Kept(NamedTuple):
    """A batch and the numbers of its records."""

    first: int
    batch: Batch

    @property
    def values(self) -> range:
        return range(self.first, self.first + self.batch.records)

    @property
    def sizes(self) -> list[int]:
        """The bytes of the batch, all of them with its first record: a follower's fetch takes whole batches."""
        return [len(self.batch.data)] + [0] * (self.batch.records - 1)


def sent_before(batch: Batch, sent: Iterable[tuple[int, Kept]]) -> tuple[tuple[int, Kept] | None, str | None]:
    """The batch as it was appended when its producer sent it before, or the error if the producer has left records out.

    `sent`: the leader's batches of this producer and epoch, the last first; five are recognised. A batch that only a
    former leader had is not among them, whatever came after it.
    Kafka 2.0.1: log/ProducerStateManager.scala, ProducerStateEntry.findDuplicateBatch, checkSequence (KIP-98)
    """
    following = None
    for offset, kept in islice(sent, REMEMBERED):
        if following is None:
            following = (kept.batch.sequences[1] + 1) % SEQUENCE_NUMBERS
        if batch.sequence == following:
            return None, None
        if kept.batch.sequences == batch.sequences:
            return (offset, kept), None
    if following is None:
        return None, "UNKNOWN_PRODUCER_ID" if batch.sequence > 0 else None
    return None, "OUT_OF_ORDER_SEQUENCE_NUMBER"


class Contents:
    """The batches of all partitions; `last_value` counts the records of each, those of the lab's own producer too."""

    def __init__(self, last_value: dict[TopicPartition, int]) -> None:
        self.last_value = last_value
        self._kept: dict[TopicPartition, list[Kept]] = {}
        self._of_transactions: dict[TopicPartition, dict[int, Batch]] = {}
        """The batches of transactions by their first records."""
        self.producer_epochs: defaultdict[TopicPartition, ProducerEpochs] = defaultdict(ProducerEpochs)

    def of_producer(self, tp: TopicPartition, log: Log, batch: Batch) -> Iterator[tuple[int, Kept]]:
        """The numbered batches in a log that have a batch's producer and epoch, with their offsets, the last first."""
        offset = log.end if self.producer_epochs[tp].newest(batch.producer) == batch.producer_epoch else 0
        while offset > 0:
            value = log.entries[offset - 1].value
            kept = self.of(tp, value)
            offset -= 1 if kept is None else value - kept.first + 1
            if kept is not None and kept.batch.is_numbered and kept.batch.producer == batch.producer:
                if kept.batch.producer_epoch < batch.producer_epoch:
                    break
                yield offset, kept

    def fences(self, tp: TopicPartition, batch: Batch) -> str | None:
        """The error for a batch whose producer, or whose coordinator, has been replaced by one with a newer epoch."""
        if batch.producer < 0:
            return None
        epochs = self.producer_epochs[tp]
        return epochs.fences(batch.producer, batch.producer_epoch, coordinator_epoch(batch), batch.sequence)

    def keep(self, tp: TopicPartition, batch: Batch) -> Kept:
        """Number the records of a batch that is about to be appended."""
        first = self.last_value.get(tp, 0) + 1
        self.last_value[tp] = first + batch.records - 1
        kept = Kept(first, batch)
        self._kept.setdefault(tp, []).append(kept)
        if batch.attributes & TRANSACTIONAL:
            self._of_transactions.setdefault(tp, {})[first] = batch
        self._note(tp, batch)
        return kept

    def _note(self, tp: TopicPartition, batch: Batch) -> None:
        if batch.producer >= 0:
            self.producer_epochs[tp].note(batch.producer, batch.producer_epoch, coordinator_epoch(batch))

    def withdraw(self, tp: TopicPartition, kept: Kept) -> None:
        """Forget a batch that was not appended, so that its producer can send it again."""
        if kept not in self._kept.get(tp, ()):  # its topic has been deleted meanwhile
            return
        self._kept[tp].remove(kept)
        if (producer := kept.batch.producer) >= 0:
            self.producer_epochs[tp].forget(producer)
            for other in self._kept[tp]:
                if other.batch.producer == producer:
                    self._note(tp, other.batch)
        if kept.batch.attributes & TRANSACTIONAL:
            del self._of_transactions[tp][kept.first]

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        for tp in partitions:
            self._kept.pop(tp, None)
            self._of_transactions.pop(tp, None)
            self.producer_epochs.pop(tp, None)

    def of(self, tp: TopicPartition, value: int) -> Kept | None:
        """The batch that a record came in, None for a record without bytes."""
        kept = self._kept.get(tp, [])
        place = bisect_right(kept, value, key=lambda one: one.first) - 1
        return kept[place] if place >= 0 and value < kept[place].first + kept[place].batch.records else None

    def transactions(self, tp: TopicPartition, log: Log) -> Transactions:
        """The first offset that is undecided, and the aborted transactions, in one replica's log."""
        return transactions(log, self._of_transactions.get(tp, {}))

    def read(self, tp: TopicPartition, log: Log, offset: int, end: int, most: int) -> list[tuple[int, bytes]]:
        """The batches from the one that has `offset` on, up to `end`: their offsets and bytes, `most` bytes or one."""
        found: list[tuple[int, bytes]] = []
        size = 0
        for base, batch in self._batches(tp, log, offset, end):
            if found and size + len(batch.data) > most:
                break
            found.append((base, batch.at(base, log.entries[base + batch.records - 1].leader_epoch)))
            size += len(batch.data)
            if size >= most:
                break
        return found

    def size(self, tp: TopicPartition, log: Log, offset: int, end: int, enough: int) -> int:
        """The bytes of what `read` brings of all up to `end`; counted on until there are `enough`.

        A batch as its producer made it is not copied: every fetch that waits asks at every append.
        """
        size = 0
        for _, batch in self._batches(tp, log, offset, end):
            size += len(batch.data)
            if size >= enough:
                break
        return size

    def _batches(self, tp: TopicPartition, log: Log, offset: int, end: int) -> Iterator[tuple[int, Batch]]:
        """The first offset and the batch of each from the one that has `offset` on, up to `end`.

        One that ends behind `end` is left out, as it has to stay whole.
        """
        while offset < end:
            base, batch = self._batch_at(tp, log, offset, end)
            offset = base + batch.records
            if offset > end:
                return
            yield base, batch

    def _batch_at(self, tp: TopicPartition, log: Log, offset: int, end: int) -> tuple[int, Batch]:
        """The first offset of the batch that a log has at an offset, and the batch.

        It is as its producer made it where all of it is there, else of records that came together in one leader epoch.
        """
        entries = log.entries
        epoch, value, _ = entries[offset]
        if (kept := self.of(tp, value)) is not None:
            base = offset - (value - kept.first)
            last = base + kept.batch.records - 1
            if base >= 0 and last < log.end and entries[last].value == kept.values[-1]:
                return base, kept.batch
        behind = offset
        while behind < min(end, offset + RUN) and entries[behind].leader_epoch == epoch:
            if behind > offset and self.of(tp, entries[behind].value) is not kept:
                break
            behind += 1
        return offset, read_batch(write_batch(self._records(kept, log, offset, behind), epoch))

    def _records(self, kept: Kept | None, log: Log, offset: int, behind: int) -> list[Record]:
        """Records from an offset on: as their producer made them, or numbers of the lab's own."""
        values = [entry.value for entry in log.entries[offset:behind]]
        if kept is None:
            return [Record(at, NO_TIMESTAMP, None, str(value).encode()) for at, value in enumerate(values, offset)]
        made = read_records(kept.batch)
        return [made[value - kept.first]._replace(offset=at) for at, value in enumerate(values, offset)]

    def offset_at(self, tp: TopicPartition, log: Log, end: int, timestamp: int) -> tuple[int, int] | None:
        """The first record that is as young as this: its timestamp and offset."""
        for base, batch in self._batches(tp, log, log.start, end):
            if batch.max_timestamp < timestamp:
                continue
            for record in read_records(batch):
                offset = base + record.offset - batch.base_offset
                if record.timestamp >= timestamp and offset >= log.start:
                    return record.timestamp, offset
        return None


def down_converted(batches: Sequence[tuple[int, bytes]], magic: int, most: int, start: int = 0) -> bytes:
    """The batches for a reader that knows only this magic. Raises BadInput if one is compressed with zstd.

    Unpacked, they may become larger: no more than `most` bytes, or one batch. Uncompressed records below `start` are
    left out.
    Kafka 2.4.1: common/record/RecordsUtil.java, downConvert
    """
    if magic >= MAGIC:
        return b"".join(data for _, data in batches)
    found = b""
    for batch in (read_batch(data) for _, data in batches):
        if batch.codec == "zstd":
            raise BadInput("Down-conversion of zstandard-compressed batches is not supported")
        records = [] if batch.attributes & CONTROL else read_records(batch)
        part = write_messages([one for one in records if one.offset >= start or batch.codec != "none"], magic)
        if found and len(found) + len(part) > most:
            break
        found += part
    return found
