"""Records: everything that happens is one, with the record that caused it.

Text, Kafka's log lines, Parquet, animations and analyses are all made from these records and from
nothing else. The columns are the same in memory, in Parquet and in Spark (see `history/schema.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from numbers import Number
from operator import attrgetter
from typing import NamedTuple, Self, TypedDict, overload

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition, whole
from kafka_ctl.display import table
from kafka_ctl.errors import BadInput, UnknownName, short

CAUSE: ContextVar[int | None] = ContextVar("cause", default=None)
"""The `seq` of the record whose consequences the current task is carrying out."""

KINDS = tuple("zk watch event controller partition replica election request response broker fault violation".split())

NUMBERS = ("seq", "time_ms", "partition", "broker", "leader", "leader_epoch", "zk_version", "controller_epoch", "cause")
"""The columns of one number."""

TUPLES = ("isr", "replicas")
"""The columns of several numbers."""

SET = "set"
"""The action of a `partition` or `replica` record without a move: a new controller's machine begins with this state."""


class Record(NamedTuple):
    """One fact. `docs/trace-format.md` explains each column; what does not apply is None.

        from kafka_ctl import Lab
        trace = Lab(brokers=1).trace
        record = trace.slice(kind="zk", action="create", path="/controller")[0]
        record.actor, record.action, record.error  # ('broker-1', 'create', None)
        trace[record.cause]

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

    @property
    def tp(self) -> TopicPartition:
        """The partition that the record is about; of a record about none, a partition without a name."""
        return TopicPartition(self.topic or "", self.partition or 0)

    def set_columns(self) -> dict[str, object]:
        """The columns that apply, by name."""
        return {name: value for name, value in zip(self._fields, self, strict=True) if value is not None}

    def __repr__(self) -> str:
        return f"Record({', '.join(f'{name}={value!r}' for name, value in self.set_columns().items())})"

    def _repr_html_(self) -> str:
        return table(("column", "value"), self.set_columns().items(), len(self.set_columns())).html()


def numbered(records: Sequence[Record], seq: int) -> Record | None:
    """The record with this `seq`; None where it is not among them. They are in the order of `seq`."""
    place = bisect_left(records, seq, key=attrgetter("seq"))
    return records[place] if place < len(records) and records[place].seq == seq else None


def _values(column: str, given: object) -> Collection[object]:
    """The wanted values of a column; UnknownName or BadInput for what no record has there."""
    if column not in Record._fields:
        raise UnknownName("trace column", column, Record._fields)
    values = given if isinstance(given, (set, frozenset)) else (given,)
    kind, name = (Number, "number") if column in NUMBERS else (tuple, "tuple") if column in TUPLES else (str, "text")
    if odd := [value for value in values if value is not None and not isinstance(value, kind)]:
        raise BadInput(f"{column} cannot be {short(min(odd, key=str))}; it must be a {name}, or a set of {name}s")
    if column == "kind" and (unknown := set(values) - set(KINDS)):
        raise UnknownName("trace kind", min(unknown, key=str), KINDS)
    return values


def _number(what: str, value: object) -> int:
    if (number := whole(value)) is None or number < 0:
        raise BadInput(f"{what} cannot be {short(value)}; it must be the number of a record, 0 or more")
    return number


def extent(records: Sequence[Record]) -> str:
    """The numbers of the records of a whole trace, as a sentence."""
    return f"the trace has records 0 to {len(records) - 1}" if records else "the trace has no records yet"


class Columns(TypedDict, total=False):
    """The optional columns of `Record`, for functions that pass them on."""

    source: str | None
    target: str | None
    leader: int | None
    isr: tuple[int, ...] | None
    leader_epoch: int | None
    zk_version: int | None
    controller_epoch: int | None
    path: str | None
    error: str | None
    cause: int | None
    replicas: tuple[int, ...] | None
    detail: str | None


class Recorder(Sequence[Record]):
    """The records of one history, in order: actors add to it, readers slice and filter it.

    It knows nothing that draws, prints or saves records; `Trace` adds that for those who read.
    """

    logged: Mapping[str, Sequence[tuple[int, str]]] = {}
    """Of records that were read from logs, the lines by the name of the log, each with its record's `seq`."""
    began_ms = 0.0
    """Of records that were read from logs, the moment of time 0, in milliseconds since 1970."""

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
        record = tuple.__new__(Record, (  # what Record's own constructor does, which is slower
            seq, self._time_ms, actor, kind, action, topic, partition, broker, source, target, leader, isr,
            leader_epoch, zk_version, controller_epoch, path, error, CAUSE.get() if cause is None else cause, replicas,
            detail,
        ))
        records.append(record)
        for listener in self.listeners:
            listener(record)
        return seq

    def about(
        self, actor: str, kind: str, action: str, partition: TopicPartition, broker: int | None = None,
        state: LeaderAndIsr | None = None, source: str | None = None, target: str | None = None,
        controller_epoch: int | None = None, path: str | None = None, error: str | None = None,
        cause: int | None = None, replicas: tuple[int, ...] | None = None, detail: str | None = None,
    ) -> int:
        """Append a record about a partition and, if given, how it is led; returns its `seq`."""
        topic, number = partition
        leader = isr = leader_epoch = zk_version = None
        if state is not None:
            leader, isr, leader_epoch, zk_version, epoch = state
            controller_epoch = epoch if controller_epoch is None else controller_epoch
        return self.add(  # by position: names would be copied for each of many records
            actor, kind, action, topic, number, broker, source, target, leader, isr, leader_epoch, zk_version,
            controller_epoch, path, error, cause, replicas, detail,
        )
    # fmt: on

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Record | Self:
        if isinstance(index, slice):
            return self._part(self.records[index])
        return self.records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __eq__(self, other: object) -> bool:
        """True for the same records, as of two runs of a story."""
        return self.records == other.records if isinstance(other, Recorder) else NotImplemented

    __hash__ = object.__hash__  # a trace grows: as a key it is itself

    def __reduce__(self) -> tuple[Callable[[], Self], tuple[()]]:
        """A copy has the records there are now, and none to come."""
        return partial(type(self), records=self.records, history=self.history, generation=self.generation), ()

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {len(self)} records"

    def slice(self, start: int = 0, stop: int | None = None, **columns: object) -> Self:
        """The records from `seq` start up to (not including) stop whose columns have these values.

        A value may be a set of values: `trace.slice(kind={"partition", "replica"}, topic="orders")`.
        Raises UnknownName for another column or kind, BadInput for a value that no record can have.
        """
        wanted = {name: _values(name, value) for name, value in columns.items()}
        picked, start = self.records, _number("start", start)
        end = None if stop is None else _number("stop", stop)
        if start > 0 or end is not None:
            picked = [r for r in picked if r.seq >= start and (end is None or r.seq < end)]
        for name, values in wanted.items():
            column = Record._fields.index(name)
            picked = [r for r in picked if r[column] in values]
        return self._part(picked)

    def causes(self, seq: int) -> Self:
        """The chain of causes that ends in the record `seq`, first cause first."""
        chain: list[Record] = []
        record = self.numbered(_number("seq", seq))
        while record is not None:
            chain.append(record)
            record = self.numbered(record.cause) if record.cause is not None else None
        return self._part(chain[::-1])

    def numbered(self, seq: int) -> Record | None:
        """The record with this number, if it is here; a part of a history may lack any."""
        return numbered(self.records, seq)

    def _part(self, records: Sequence[Record]) -> Self:
        return type(self)(records=records, history=self.history, generation=self.generation)
