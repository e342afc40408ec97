"""Two runs side by side: where they part, and how they differ at the same time.

Separate from `views/widget/live.py` because it compares runs as values, without a widget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.display import Table
from kafka_ctl.errors import BadInput, short
from kafka_ctl.invariants.logs import ReplicaLogs
from kafka_ctl.lab import validate
from kafka_ctl.lab.view import LogView
from kafka_ctl.trace import details
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Record
from kafka_ctl.trace.text import describe, subject_and_change

if TYPE_CHECKING:
    from kafka_ctl.lab.recorded_run import RecordedRun

TIMESTAMP = re.compile(r'"timestamp":"?\d+"?')
WIDEST = 60
"""The most characters of a value in the text of a table."""


class Difference(NamedTuple):
    """Something that differs at the same time: its name and its value in each run; None where it does not exist."""

    what: str
    left: object
    right: object


class Comparison(NamedTuple):
    """Two runs side by side: the first fact in which they part, and what differs at one time."""

    parted: int | None
    """The number of shared facts; None if all facts of both are shared."""
    left: Record | None
    """The next record of the left run; None if it had ended."""
    right: Record | None
    time_ms: float
    """The time at which they are compared, on the clocks of both."""
    differences: tuple[Difference, ...]
    """The differences of controller, partitions, brokers, logs, violations and znodes then."""

    def __str__(self) -> str:
        if self.parted is None and not self.differences:
            return "the same facts from beginning to end"
        lines = []
        if self.parted is None:
            lines.append("the same facts in the same order")
        else:
            lines.append(f"the first {self.parted} facts are the same, then")
            for side, record in (("left", self.left), ("right", self.right)):
                lines.append(f"  {side:<5}  {'has ended' if record is None else describe(record)}")
        lines.append(f"at {self.time_ms / 1000:.4f} s" + ("" if self.differences else " nothing differs"))
        if self.differences:
            lines += [f"  {line}" for line in self._table(WIDEST).text().splitlines()]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        before = str(self._replace(differences=())).removesuffix(" nothing differs" if self.differences else "")
        return f"<pre>{escape(before)}</pre>{self._table(None).html() if self.differences else ''}"

    def rows(self, widest: int | None = None) -> list[list[str]]:
        """The differences as texts: the name and both values, cut to so many characters."""
        return [[_cell(value, widest) for value in row] for row in self.differences]

    def _table(self, widest: int | None) -> Table:
        return Table(("", "left", "right"), self.rows(widest))


def compare(left: RecordedRun, right: RecordedRun, seconds: float | None = None) -> Comparison:
    """The first difference of two runs, and the differences at the same time: `seconds` after their beginnings.

    By default that is the end of the shorter one. The first difference depends on what happened and in which order, not
    on the times, nor on the times that znodes contain. Raises BadInput for a value that is not a lab, and for a time
    that is none.
    """
    for lab in (left, right):
        if not hasattr(lab, "trace") or not hasattr(lab, "znodes"):
            raise BadInput(f"compare needs two labs; {short(lab)} is not one")
    if seconds is not None:
        validate.seconds("seconds", seconds)
    facts = zip_longest(map(_fact, left.trace.records), map(_fact, right.trace.records))
    parted = next((n for n, (a, b) in enumerate(facts) if a != b), None)
    here = [None if parted is None or parted >= len(lab.trace) else lab.trace[parted] for lab in (left, right)]
    time_ms = 1000 * (min(left.now, right.now) if seconds is None else seconds)
    states = [dict(_state(lab.trace.records, time_ms)) for lab in (left, right)]
    names = dict.fromkeys([*states[0], *states[1]])
    differ = [Difference(n, states[0].get(n), states[1].get(n)) for n in names if states[0].get(n) != states[1].get(n)]
    return Comparison(parted, here[0], here[1], time_ms, tuple(differ))


def _fact(record: Record) -> Record:
    """A record without its moment."""
    detail = record.detail and TIMESTAMP.sub("timestamp", record.detail)
    return record._replace(time_ms=0.0, detail=detail)


def _state(records: Iterable[Record], time_ms: float) -> Iterator[tuple[str, object]]:
    past = list(takewhile(lambda record: record.time_ms <= time_ms + 1e-6, records))
    model = ClusterModel().apply_all(past)
    context = model.context_of(model.controller)
    yield "controller", model.controller
    yield "controller epoch", context and context.epoch
    for (topic, number), seen in sorted(model.partitions.items()):
        name = f"{topic}-{number}"
        if not seen.stored and not seen.replicas:
            continue
        yield f"{name} state", seen.state
        yield f"{name} leader", seen.leader
        yield f"{name} ISR", list(seen.isr)
        yield f"{name} replicas", list(seen.replicas)
        yield f"{name} leader epoch", seen.leader_epoch
        yield f"{name} zkVersion", seen.zk_version
    for id, broker in sorted(model.brokers.items()):
        yield f"broker {id}", ("paused" if broker.paused else broker.note or "up") if broker.alive else "down"
        for what, wanted in (("leads", True), ("follows", False)):
            hosted = sorted(key for key, led in broker.beliefs.hosted.items() if (led.leader == id) is wanted)
            yield f"broker {id} {what}", ", ".join(f"{topic}-{number}" for topic, number in hosted)
    yield from _logs(past)
    for record in past:
        if record.kind == "violation":
            invariant, text = details.violation(record.detail)
            yield f"{invariant} {record.action} {subject_and_change(record)[0]}".rstrip(), text
    for path, node in sorted(model.znodes.items()):
        if not path.endswith("/state"):  # that is shown as a partition
            yield path, TIMESTAMP.sub("timestamp", node.data)


def _logs(records: Iterable[Record]) -> Iterator[tuple[str, str]]:
    logs = ReplicaLogs()
    for record in records:
        if record.kind == "broker":
            logs.take(record)
    for tp, copies in sorted(logs.copies.items()):
        for broker, copy in sorted(copies.items()):
            there = tuple(copy.entries[copy.start :])
            view = LogView(*tp, broker, len(copy.entries), copy.high_watermark, there, copy.start)
            yield f"log of {tp} on broker {broker}", view.content


def _cell(value: object, widest: int | None) -> str:
    text = "-" if value is None else str(value) or "none"
    return text if widest is None or len(text) <= widest else text[: widest - 2] + " …"
