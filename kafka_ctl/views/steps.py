"""From records to steps: what a person watches as one thing happening.

A step is a run of neighbouring records that say the same of several subjects (three elections in one batch,
one request to four brokers). What carries no news (reads, answered requests, cached metadata) makes no step
of its own, but is still applied to the model in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from kafka_ctl.trace.actions import find
from kafka_ctl.trace.record import SET, Record

Relevance = Callable[[Record], bool]
Run = list[tuple[int, Record]]

NEAR = 5.0
"""Milliseconds within which neighbouring records may be seen as one."""

MARKS = ("fault", "election", "controller", "violation")
"""The kinds of steps that a scrubber marks, the weightiest first."""


class Step(NamedTuple):
    """Some records seen as one; `upto` is the place in the record list just after them, the end for the last step."""

    kind: str
    records: tuple[Record, ...]
    upto: int
    cause: int | None = None
    """The index of the step that caused this one."""

    @property
    def seqs(self) -> tuple[int, ...]:
        return tuple(r.seq for r in self.records)

    @property
    def time_ms(self) -> float:
        return self.records[-1].time_ms


LESSONS = ("violation", "fault", "won", "election", "controller", "epoch", "lost", "partition")
"""What a step can be a lesson in, the weightiest first; `won` and `lost` are about creating `/controller`."""


def lesson(step: Step) -> str:
    """What is to be learnt from a step: one of `LESSONS`, or nothing."""
    found = {_lesson(record) for record in step.records}
    return next((name for name in LESSONS if name in found), "")


def _lesson(record: Record) -> str:
    if record.kind == "zk" and record.path == "/controller" and record.action in ("create", "multi"):
        return "won" if record.error is None else "lost"
    if record.kind == "zk" and record.path == "/controller_epoch" and record.error is None:
        return "epoch"
    return _kind(record) if record.kind != "zk" else ""


def newsworthy(record: Record) -> bool:
    """Whether a record is worth a step in a view of the whole cluster: its row says so, and what it holds."""
    kind, action = record.kind, record.action
    if kind == "zk":
        return _write_is_news(record)
    if kind == "event" and record.actor.startswith("controller"):
        return record.target == "started" and find(kind, action).news
    if kind == "request":
        return record.target == "sent"
    if kind == "response":
        return record.error is not None
    if kind == "replica":
        return record.action != SET and (record.source != record.target or record.error is not None)
    if kind == "partition":
        return record.action != SET
    return find(kind, action).news


def _write_is_news(record: Record) -> bool:
    """Writes with a meaning of their own, refusals included; not reads, not the skeleton of the tree."""
    path, action = record.path or "", record.action
    if not find("zk", action).news:
        return False
    if action == "connect":
        return record.actor.startswith("broker")
    if record.error is not None:
        return action == "multi" or record.error == "BADVERSION" or path == "/controller"
    if action == "create" and record.target == "persistent":
        return _family(path) not in ("other", "partitions")
    return True


def sameness(record: Record) -> tuple[object, ...]:
    """What records of one step have in common; equal neighbours share a sentence."""
    kind, action, failed = record.kind, record.action, record.error
    if kind == "zk":
        return kind, action, record.actor, failed, _family(record.path)
    if kind == "watch":
        return kind, record.target, _family(record.path)
    if kind == "broker" and (record.topic is not None or action == "start"):
        return kind, "applied" if action in ("become-leader", "become-follower") else action, failed
    if kind == "event" and record.target == "queued":
        return kind, action, record.target, record.actor
    if kind in ("partition", "replica", "election"):
        return kind, action, record.source, record.target, failed is None
    if kind in ("request", "response"):
        return kind, action, record.actor if kind == "request" else "", failed
    return kind, action, record.seq


def _family(path: str | None) -> str:
    """Znodes that are written together: the states of partitions, a topic's own znodes, the skeleton."""
    path = path or ""
    if "/brokers/topics" in path:
        return "state" if path.endswith("/state") else "partitions" if "/partitions" in path else path
    own = (
        "/brokers/ids/",
        "/admin/reassign",
        "/admin/preferred",
        "/admin/delete_topics/",
        "/isr_change_notification/",
    )
    return path if path in ("/controller", "/controller_epoch") or path.startswith(own) else "other"


def steps(
    records: Sequence[Record], is_relevant: Relevance = newsworthy, limit: int = 400, start: int = 0
) -> list[Step]:
    """The steps of these records from place `start` on, at most `limit` of them.

    When there are more, neighbouring steps are joined until they fit, the least weighty and closest first.
    """
    runs: list[Run] = []
    open_runs: dict[tuple[object, ...], Run] = {}
    for place in range(start, len(records)):
        record = records[place]
        if not is_relevant(record):
            continue
        key = sameness(record)
        if runs and (record.kind != "broker" or runs[-1][-1][1].kind != "broker"):
            open_runs = {k: run for k, run in open_runs.items() if k == key and run is runs[-1]}
        run = open_runs.get(key)
        if run is not None and record.time_ms - run[0][1].time_ms <= NEAR:
            run.append((place, record))
        else:
            open_runs[key] = [(place, record)]
            runs.append(open_runs[key])
    return _with_causes(records, _fitted(runs, limit))


def _fitted(runs: list[Run], limit: int) -> list[Run]:
    """At most `limit` runs: the neighbours that differ least are joined first."""
    if len(runs) <= limit:
        return runs
    cost = {
        place: (_weight(before) + _weight(after), after[0][1].time_ms - before[-1][1].time_ms, place)
        for place, (before, after) in enumerate(pairwise(runs), 1)
    }
    joined = set(sorted(cost, key=lambda place: cost[place])[: len(runs) - limit])
    fitted: list[Run] = []
    for place, run in enumerate(runs):
        if place in joined:
            fitted[-1] = fitted[-1] + run
        else:
            fitted.append(run)
    return fitted


def _weight(run: Run) -> int:
    """How much a run deserves a step of its own."""
    return {"fault": 4, "violation": 4, "controller": 3, "election": 2, "partition": 2}.get(_kind(run[0][1]), 0)


def _kind(record: Record) -> str:
    """The kind a step is counted under: what a controller merely notes is no change of controller."""
    noted = record.kind == "controller" and record.action not in (
        "elected",
        "resigned",
        "elected_and_resigned",
    )
    return "event" if noted else record.kind


def _with_causes(records: Sequence[Record], runs: list[Run]) -> list[Step]:
    causes = {record.seq: record.cause for record in records}
    step_of = {record.seq: index for index, run in enumerate(runs) for _, record in run}
    found: list[Step] = []
    upto = 0
    for index, run in enumerate(runs):
        seq = run[0][1].cause
        while seq is not None and (step_of.get(seq, index) >= index):
            seq = causes.get(seq)
        kind = min((_kind(r) for _, r in run), key=lambda k: MARKS.index(k) if k in MARKS else len(MARKS))
        upto = len(records) if index == len(runs) - 1 else max(upto, run[-1][0] + 1)
        found.append(Step(kind, tuple(r for _, r in run), upto, step_of.get(seq) if seq is not None else None))
    return found
