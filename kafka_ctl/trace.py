"""The trace: everything that happens is one record, with the record that caused it.

Text, Kafka's log lines, Parquet, animations and analyses are all made from these records and from
nothing else. The columns are the same in memory, in Parquet and in Spark (see `history/schema.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, overload

CAUSE: ContextVar[int | None] = ContextVar("cause", default=None)
"""The `seq` of the record whose consequences the current task is carrying out."""

KINDS = ("zk", "watch", "event", "controller", "partition", "replica", "election", "request", "response", "broker",
         "fault", "violation")


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
