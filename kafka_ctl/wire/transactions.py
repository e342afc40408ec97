"""Transactions, as far as readers see them: which records are decided, and which were given up.

Batches of a transaction are marked; a control batch of the same producer ends it, by commit or by abort. A reader with
`isolation.level=read_committed` gets what lies below the *last stable offset*, before which everything is decided, and
learns which transactions were aborted, so that it can leave their records out. Leaders write the control batches when
a coordinator asks them to (WriteTxnMarkers, `transaction_coordinator.py`).

Kafka 2.0.1: log/ProducerStateManager.scala, firstUnstableOffset; log/Log.scala, collectAbortedTransactions;
cluster/Replica.scala, lastStableOffset (KIP-98)
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from kafka_ctl.brokers.log import Log
from kafka_ctl.wire.batches import CONTROL, TRANSACTIONAL, Batch, Record, read_records, write_batch

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

    def fences(self, producer: int, epoch: int, coordinator_epoch: int | None = None, sequence: int = 0) -> str | None:
        """The error of an append, None where it is taken; a marker has a coordinator epoch, records have a sequence."""
        known = self._producers.get(producer, -1)
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


NONE = Transactions(None, ())


def transactions(log: Log, batches: Mapping[int, Batch]) -> Transactions:
    """The transactions in a log, by the batches of transactions that its partition ever had and their first records."""
    if not batches:
        return NONE
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
            if _decision(one) == ABORT:
                aborted.append(Aborted(producer, first, offset))
            if offset >= log.high_watermark:
                unstable.append(first)
    unstable += going_on.values()
    first = max(min(unstable), log.start) if unstable else None  # what is deleted is no longer undecided
    return Transactions(first, tuple(aborted))


def _decision(marker: Batch) -> int:
    key = read_records(marker)[0].key or b""
    return int.from_bytes(key[2:4], "big")


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
