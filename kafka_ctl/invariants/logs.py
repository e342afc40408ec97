"""Logs according to the records of a run: the content of each replica, the acknowledged and the readable records.

Kept from the records alone, like the other facts.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_ctl.brokers.log import GONE, Entry
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

CHANGES = ("append", "copy", "truncate", "high-watermark", "log-start")
"""The acts of brokers on logs."""


class Acknowledged(NamedTuple):
    """A record acknowledged to a producer: its offset, its value and the `acks` asked for."""

    offset: int
    value: int
    acks: str


class ReplicaLog:
    """One replica's log, folded from the records."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        """By offset; what lies below `start` is deleted, and no statement about records is about it."""
        self.high_watermark, self.start = 0, 0
        self.dropped: list[Entry] = []
        """The last truncation."""

    def has(self, promised: Acknowledged) -> bool:
        """True if the acknowledged record is at its offset."""
        return promised.offset < len(self.entries) and self.entries[promised.offset].value == promised.value

    def has_deleted(self, promised: Acknowledged) -> bool:
        """True if the log begins after the acknowledged record."""
        return promised.offset < self.start

    def differs(self, other: ReplicaLog) -> bool:
        """True if another log has not what lies below this one's high watermark; deleted records do not count."""
        start, end = max(self.start, other.start), self.high_watermark
        return other.entries[start:end] != self.entries[start:end]


class ReplicaLogs:
    """Every log, and every promise about one."""

    def __init__(self) -> None:
        self.copies: dict[TopicPartition, dict[int, ReplicaLog]] = {}
        """By partition and broker; a broker that has never written anything is not there."""
        self.acknowledged: dict[TopicPartition, list[Acknowledged]] = {}
        self._known: dict[TopicPartition, dict[Entry, Entry]] = {}
        """Every record once, for all copies: logs that are the same are compared quickly."""

    def of(self, tp: TopicPartition, broker: int) -> ReplicaLog:
        """The log of a replica; an empty one where nothing was ever written."""
        return self.copies.get(tp, {}).get(broker) or ReplicaLog()

    def take(self, record: Record) -> bool:
        """Take a broker's record into account; True if it is one of `CHANGES`."""
        changed = record.action in CHANGES and record.topic is not None
        if changed:
            self._change(record)
        elif record.action == "stop-replica" and record.error is None and "delete" in details.flags(record.detail):
            self.copies.get(record.tp, {}).pop(record.broker or 0, None)
        return changed

    def _change(self, record: Record) -> None:
        copy = self.copies.setdefault(record.tp, {}).setdefault(record.broker or 0, ReplicaLog())
        fields = details.named(record.detail)
        offset = int(fields["offset"])
        if record.action == "high-watermark":
            copy.high_watermark = offset
            return
        if record.action == "log-start":
            if offset > len(copy.entries):
                copy.entries = [GONE] * offset
            copy.start, copy.high_watermark = offset, max(copy.high_watermark, offset)
            return
        copy.dropped = copy.entries[offset:]
        del copy.entries[offset:]
        if record.action == "truncate":
            copy.high_watermark, copy.start = min(copy.high_watermark, offset), min(copy.start, offset)
        else:
            known = self._known.setdefault(record.tp, {})
            for value, epoch in details.records(fields["records"]):
                entry = Entry(epoch, value)
                copy.entries.append(known.setdefault(entry, entry))

    def replaced(self, broker: int) -> None:
        """A broker begins with empty disks."""
        for copies in self.copies.values():
            copies.pop(broker, None)

    def answered(self, record: Record) -> None:
        if promised := acknowledged(record):
            self.acknowledged.setdefault(record.tp, []).extend(promised)

    def forget(self, tp: TopicPartition) -> None:
        """The partition is gone, and every promise about it."""
        self.acknowledged.pop(tp, None)
        self._known.pop(tp, None)


def acknowledged(record: Record) -> list[Acknowledged]:
    """The records that an answer to a producer acknowledges; none where it is an error."""
    fields = details.named(record.detail)
    if "offset" not in fields:
        return []
    values, offset = details.records(fields["records"]), int(fields["offset"])
    return [Acknowledged(n, value, fields["acks"]) for n, (value, _) in enumerate(values, offset)]
