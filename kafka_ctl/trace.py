"""The trace: everything that happens is one record, with the record that caused it.

Text, Kafka's log lines, Parquet, animations and analyses are all made from these records and from
nothing else. The columns are the same in memory, in Parquet and in Spark (see `history/schema.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from operator import attrgetter
from typing import Any, NamedTuple, overload

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.errors import UnknownName, needed_for

CAUSE: ContextVar[int | None] = ContextVar("cause", default=None)
"""The `seq` of the record whose consequences the current task is carrying out."""

KINDS = (
    "zk",
    "watch",
    "event",
    "controller",
    "partition",
    "replica",
    "election",
    "request",
    "response",
    "broker",
    "fault",
    "violation",
)

SET = "set"
"""The action of a `partition` or `replica` record without a move: a new controller's machine begins with this state."""


class Record(NamedTuple):
    """One fact. `docs/trace-format.md` explains each column; what does not apply is None.

    `seq` orders the records of one history; `time_ms` counts milliseconds since its start.
    """

    seq: int
    time_ms: float
    actor: str
    kind: str
    action: str
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    source: str | None = None
    target: str | None = None
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    leader_epoch: int | None = None
    zk_version: int | None = None
    controller_epoch: int | None = None
    path: str | None = None
    error: str | None = None
    cause: int | None = None
    replicas: tuple[int, ...] | None = None
    detail: str | None = None


class Trace(Sequence[Record]):
    """The records of one history, in order; a sequence that can be sliced, filtered, printed and saved."""

    def __init__(
        self,
        now: Callable[[], float] = lambda: 0.0,
        records: Sequence[Record] = (),
        history: str = "lab",
        generation: str = "2.0",
    ) -> None:
        self.history, self.generation = history, generation
        self.records: list[Record] = list(records)
        self._now = now
        self._second, self._time_ms = -1.0, 0.0
        self.listeners: list[Callable[[Record], None]] = []
        """Called with every new record: invariants, live views."""

    # fmt: off
    def add(
        self, actor: str, kind: str, action: str, topic: str | None = None, partition: int | None = None,
        broker: int | None = None, source: str | None = None, target: str | None = None, leader: int | None = None,
        isr: tuple[int, ...] | None = None, leader_epoch: int | None = None, zk_version: int | None = None,
        controller_epoch: int | None = None, path: str | None = None, error: str | None = None,
        cause: int | None = None, replicas: tuple[int, ...] | None = None, detail: str | None = None,
    ) -> int:
        """Append one record at the present time and return its `seq`; the cause defaults to `CAUSE`."""
        now = self._now()
        if now != self._second:
            self._second, self._time_ms = now, round(now * 1000, 4)
        records = self.records
        seq = len(records)
        record = Record(
            seq, self._time_ms, actor, kind, action, topic, partition, broker, source, target, leader, isr,
            leader_epoch, zk_version, controller_epoch, path, error, CAUSE.get() if cause is None else cause, replicas,
            detail,
        )
        records.append(record)
        for listener in self.listeners:
            listener(record)
        return seq
    # fmt: on

    def about(
        self,
        actor: str,
        kind: str,
        action: str,
        partition: TopicPartition,
        broker: int | None = None,
        state: LeaderAndIsr | None = None,
        **columns: Any,
    ) -> int:
        """Append a record about a partition and, if given, how it is led; returns its `seq`."""
        topic, number = partition
        if state is None:
            return self.add(actor, kind, action, topic, number, broker, **columns)
        leader, isr, leader_epoch, zk_version, epoch = state
        columns.setdefault("controller_epoch", epoch)
        return self.add(
            actor,
            kind,
            action,
            topic,
            number,
            broker,
            leader=leader,
            isr=isr,
            leader_epoch=leader_epoch,
            zk_version=zk_version,
            **columns,
        )

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Trace: ...
    def __getitem__(self, index: int | slice) -> Record | Trace:
        if isinstance(index, slice):
            return self._part(self.records[index])
        return self.records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __repr__(self) -> str:
        return f"Trace of {len(self)} records"

    def slice(self, start: int = 0, stop: int | None = None, **columns: Any) -> Trace:
        """The records from `seq` start up to (not including) stop whose columns have these values.

        A value may be a set of values: `trace.slice(kind={"partition", "replica"}, topic="orders")`.
        """
        wanted = {name: value if isinstance(value, (set, frozenset)) else {value} for name, value in columns.items()}
        if unknown := wanted.keys() - set(Record._fields):
            raise UnknownName("trace column", sorted(unknown)[0], Record._fields)
        picked = [
            r
            for r in self.records
            if r.seq >= start
            and (stop is None or r.seq < stop)
            and all(getattr(r, name) in values for name, values in wanted.items())
        ]
        return self._part(picked)

    def causes(self, seq: int) -> Trace:
        """The chain of causes that ends in the record `seq`, first cause first."""
        chain: list[Record] = []
        record = self._numbered(seq)
        while record is not None:
            chain.append(record)
            record = self._numbered(record.cause) if record.cause is not None else None
        return self._part(chain[::-1])

    def _numbered(self, seq: int) -> Record | None:
        """The record with this number, if it is here; a part of a history may lack any."""
        place = bisect_left(self.records, seq, key=attrgetter("seq"))
        found = self.records[place : place + 1]
        return found[0] if found and found[0].seq == seq else None

    def text(self, level: str = "story") -> str:
        """The trace as aligned text, one fact a line; `level` is one of `LEVELS`."""
        from kafka_ctl.describe import text

        return text(self.records, level)

    def _part(self, records: Sequence[Record]) -> Trace:
        return Trace(records=records, history=self.history, generation=self.generation)

    def kafka_log(self, name: str = "state-change", generation: str | None = None) -> str:
        """What Kafka of a generation (the lab's own) would have written to `state-change.log` or `controller.log`."""
        from kafka_ctl.lab.kafkalog import kafka_log

        return kafka_log(self.records, name, generation or self.generation)

    def player(self, view: str | Sequence[str] = "cluster", **options: Any) -> Any:
        """A player of these records, as `Lab.player` makes it of all of a lab's."""
        with needed_for("a player"):
            from kafka_ctl.views.player import player

        return player(self, view, generation=self.generation, **options)

    def to_arrow(self) -> Any:
        """The trace as a pyarrow table in the trace schema."""
        with needed_for("an Arrow table"):
            from kafka_ctl.history.schema import to_arrow

        return to_arrow(self)

    def to_parquet(self, path: Any) -> None:
        """Write the trace to one Parquet file in the trace schema."""
        with needed_for("Parquet"):
            from kafka_ctl.history.schema import to_parquet

        to_parquet(self, path)
