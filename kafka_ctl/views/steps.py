"""From records to steps: the records that a person sees as one event.

A step is a run of neighbouring records that say the same of several subjects (three elections in one batch,
one request to four brokers). Records without news (reads, answered requests, cached metadata) make no step of their
own, but are still applied to the model in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from kafka_ctl.trace.catalogue import find
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import SET, Record
from kafka_ctl.trace.seen import BrokerSeen, ZNode

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
"""The lessons that a step can hold, the weightiest first; `won` and `lost` are about creating `/controller`."""


def lesson(step: Step) -> str:
    """The lesson of a step: one of `LESSONS`, or none."""
    found = {_lesson(record) for record in step.records}
    return next((name for name in LESSONS if name in found), "")


def _lesson(record: Record) -> str:
    if record.kind == "zk" and record.path == "/controller" and record.action in ("create", "multi"):
        return "won" if record.error is None else "lost"
    if record.kind == "zk" and record.path == "/controller_epoch" and record.error is None:
        return "epoch"
    return _kind(record) if record.kind != "zk" else ""


def newsworthy(record: Record) -> bool:
    """True if a record is worth a step in a view of the whole cluster: its row says so, and its contents."""
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
    """The key that the records of one step share; equal neighbours share a sentence."""
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
    own = ("/brokers/ids/", "/admin/reassign", "/admin/preferred", "/admin/delete_topics/", "/isr_change_notification/")
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
    costs = [
        (_weight(before) + _weight(after), after[0][1].time_ms - before[-1][1].time_ms, place)
        for place, (before, after) in enumerate(pairwise(runs), 1)
    ]
    joined = {place for _, _, place in sorted(costs)[: len(runs) - limit]}
    fitted: list[Run] = []
    for place, run in enumerate(runs):
        if place in joined:
            fitted[-1] = fitted[-1] + run
        else:
            fitted.append(run)
    return fitted


def _weight(run: Run) -> int:
    """The weight of a run: above a limit it has a step of its own."""
    return {"fault": 4, "violation": 4, "controller": 3, "election": 2, "partition": 2}.get(_kind(run[0][1]), 0)


def _kind(record: Record) -> str:
    """The kind a step is counted under: a mere note of a controller is not a change of controller."""
    changes = record.kind != "controller" or record.action in ("elected", "resigned", "elected_and_resigned")
    return record.kind if changes else "event"


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


BRINGS = frozenset({"zk", "partition", "broker", "fault"})
"""The kinds of records that must be folded to know what appears; of others, what they name is enough."""
BECOMES = frozenset({"become-leader", "become-follower"})
"""The many acts of brokers with partitions; the records that they name are enough."""


class Supergraph:
    """Every broker, partition, replica and znode of the records so far, also those that are gone; it only grows.

    `now` is the model of these records; `sizes_only` keeps of it what counts for the layout, which is faster.
    """

    def __init__(self, sizes_only: bool = False) -> None:
        self.now, self.sizes_only = ClusterModel(), sizes_only
        self.znodes: dict[str, ZNode] = {}
        self.brokers: dict[int, None] = {}
        self.members: dict[tuple[str, int], dict[int, None]] = {}
        self.in_sync: dict[tuple[str, int], dict[int, None]] = {}
        """Replicas that records name as in sync: logs of a real cluster often name no others."""

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of things and of znodes for which a picture needs room: equal sizes, equal things."""
        return len(self.brokers) + sum(1 + len(held) for held in self.members.values()), len(self.znodes)

    def add(self, records: Iterable[Record]) -> Supergraph:
        """Make room for what appears in these records: the next ones of the trace, or those of another run."""
        for record in records:
            if record.action != "cached" and not (self.sizes_only and _names_all(record)):
                self.now.apply(record)  # there is much metadata, and nothing is drawn because of it
            self._see(record)
        self.brokers.update(dict.fromkeys(self.now.brokers))
        for key, seen in self.now.partitions.items():
            self._held(key, seen.replicas)
        if not self.znodes:
            for key, in_sync in self.in_sync.items():
                self.now.partition(*key)
                self._held(key, in_sync)
        return self

    def _see(self, record: Record) -> None:
        path = record.path or ""
        key = (record.topic or "", record.partition if record.partition is not None else -1)
        if record.kind == "zk" and path in self.now.znodes:
            self.znodes.setdefault(path, self.now.znodes[path])
            if path.startswith("/brokers/topics/") and path.count("/") == 3:
                for found, seen in self.now.partitions.items():
                    if found[0] == path.rpartition("/")[2]:
                        self._held(found, seen.replicas)
        if record.replicas and key in self.now.partitions:
            self._held(key, record.replicas)
        if record.kind == "replica" and record.broker is not None:
            self.now.partition(*key)
            self._held(key, (record.broker,))
        if record.broker is not None and record.broker >= 0:
            self.brokers[record.broker] = None
        if record.isr and record.topic is not None and record.partition is not None:
            self.in_sync.setdefault(key, {}).update(dict.fromkeys(record.isr))

    def _held(self, key: tuple[str, int], brokers: Iterable[int]) -> None:
        held = self.members.setdefault(key, {})
        for broker in brokers:
            if broker not in held:
                held[broker] = self.brokers[broker] = None

    def model(self) -> ClusterModel:
        """A model that has it all: a partition's `replicas` are all that ever held it, a znode has its first data."""
        now = self.now
        return ClusterModel(
            brokers={broker: now.brokers.get(broker, BrokerSeen(broker)) for broker in self.brokers},
            partitions={key: replace(seen, replicas=tuple(self.members[key])) for key, seen in now.partitions.items()},
            replicas={(*key, broker): "" for key, held in self.members.items() for broker in held},
            znodes=dict(self.znodes),
        )


def _names_all(record: Record) -> bool:
    """True if everything that appears by a record is named in it."""
    return record.kind not in BRINGS or (record.action in BECOMES and record.broker is not None)


def supergraph(*runs: Iterable[Record]) -> ClusterModel:
    """The model of everything in the records of these runs, for one drawing: see `Supergraph.model`."""
    found = Supergraph(sizes_only=True)
    for records in runs:
        found.add(records)
    return found.model()
