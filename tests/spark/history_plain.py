"""What the tests of histories share: records told line by line, and questions answered by plain Python."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from kafka_ctl import Record, Trace
from kafka_ctl.history import Workload
from kafka_ctl.history.schema import to_arrow
from kafka_ctl.history.session import spark
from kafka_ctl.trace import SET

NEW, OFFLINE, ONLINE, GONE = "NewPartition", "OfflinePartition", "OnlinePartition", "NonExistentPartition"
BUSY = Workload(brokers=(3, 5), topics=(2, 4), rate=3)


class Run:
    """Records told line by line, one a second unless the time is given."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def record(self, kind: str, action: str, at: float | None = None, **columns: Any) -> Run:
        seq = len(self.records)
        time_ms = 1000.0 * seq if at is None else float(at)
        self.records.append(Record(seq, time_ms, columns.pop("actor", "controller-1"), kind, action, **columns))
        return self

    def move(self, source: str, target: str, at: float | None = None, **columns: Any) -> Run:
        subject = {"topic": "orders", "partition": 0} | columns
        return self.record("partition", "mark", at, source=source, target=target, **subject)


def sorted_rows(table: pa.Table) -> pa.Table:
    """Records in the order of their histories, each in its own order."""
    return table.sort_by([("history", "ascending"), ("seq", "ascending")])


def contents(folder: Path, pattern: str = "*") -> dict[Path, bytes]:
    """The files below a folder that are named so."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob(pattern) if path.is_file()}


def dicts(answer: DataFrame, *columns: str) -> list[dict[str, Any]]:
    """The rows of an answer, some of its columns only, in a fixed order."""
    rows = [row.asDict() for row in answer.select(*(columns or answer.columns)).collect()]
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row.values()])


def frames(traces: Mapping[str, Trace]) -> DataFrame:
    """The traces of several histories, by their names, as one DataFrame."""
    tables = [to_arrow(trace, name) for name, trace in traces.items()]
    return spark().createDataFrame(pa.concat_tables(tables)).cache()


def same(answer: DataFrame, plain: list[dict[str, Any]]) -> None:
    """Equal as sets of rows, whatever the order of rows and columns."""

    def reported(rows: Iterable[dict[str, Any]]) -> Counter[str]:
        return Counter(repr(sorted(row.items())) for row in rows)

    found, expected = reported(row.asDict() for row in answer.collect()), reported(plain)
    unexpected, missing = list(found - expected), list(expected - found)
    assert not unexpected and not missing, "\n".join(["answered:", *unexpected[:5], "expected:", *missing[:5]])
    assert plain


# The plain computation: one pass over the records of each life of a cluster, with what is known at each of them.


def plain_lives(trace: Iterable[Record]) -> list[list[Record]]:
    """The records before ZooKeeper was wiped and after, cut where an epoch comes again or is the lowest."""
    lives: list[list[Record]] = [[]]
    epochs: list[int] = []
    named: list[int] = []
    elected: dict[str, int] = {}
    last_ms = -1.0
    for r in trace:
        lives[-1].append(r)
        if not epochs and r.controller_epoch:
            named.append(r.controller_epoch)
        if r.kind != "controller" or r.action not in ("elected", "epoch_incremented"):
            continue
        epoch = r.controller_epoch if r.action == "epoch_incremented" else json.loads(r.detail or "{}").get("epoch")
        if epoch is None:
            elected.setdefault(r.actor, len(lives[-1]) - 1)
            continue
        begin = elected.get(r.actor, len(lives[-1]) - 1)
        new = epoch in epochs or epoch < min(epochs + named, default=0)
        if epochs and new and r.time_ms > last_ms:
            lives.append(lives[-1][begin:])
            del lives[-2][begin:]
            epochs, named = [], []
        epochs.append(epoch)
        elected, last_ms = {}, r.time_ms
    return lives


class Departure(NamedTuple):
    """A row of `departures`."""

    broker: int
    cause: str
    cause_seq: int
    at_ms: float
    began_seq: int
    began_ms: float


NAMES = {"kill": "broker crash", "bounce": "quick restart", "expire_session": "session expiry", "pause": "pause"}


class Leaving:
    """Brokers and why they left, a controlled shutdown once, however often it asked."""

    def __init__(self) -> None:
        self.left: list[Departure] = []
        self.asked: dict[int, tuple[int, float]] = {}
        self.back: set[int] = set()
        self.controller: int | None = None

    def add(self, r: Record) -> None:
        if (r.kind, r.action) == ("controller", "elected"):
            self.controller = r.broker
            self.back.add(r.broker or 0)
        elif (r.kind, r.action) == ("controller", "brokers_changed"):
            self.back |= set(json.loads(r.detail or "{}")["new"])
        elif (r.kind, r.action) == ("broker", "registered"):
            self.back.add(r.broker or 0)
        elif (r.kind, r.action, r.actor) == ("event", "shutdown", "admin") and r.broker is not None:
            self.asked[r.broker] = (r.seq, r.time_ms)
        elif r.kind == "fault" and r.action in NAMES and r.broker is not None:
            crashed = r.action == "kill" and r.broker == self.controller
            self.leaves(r, "controller crash" if crashed else NAMES[r.action])
        elif (r.kind, r.action) == ("broker", "controlled-shutdown") and r.broker is not None:
            self.shuts_down(r)
        elif (r.kind, r.action) == ("broker", "lost") and r.broker is not None:
            last = self.last(r.broker)
            if last is None or last.cause != "controlled shutdown" or r.broker in self.back:
                self.leaves(r, "broker loss")

    def last(self, broker: int) -> Departure | None:
        return next((d for d in reversed(self.left) if d.broker == broker), None)

    def leaves(self, r: Record, cause: str, began: tuple[int, float] | None = None) -> None:
        assert r.broker is not None
        self.left.append(Departure(r.broker, cause, r.seq, r.time_ms, *(began or (r.seq, r.time_ms))))
        self.back.discard(r.broker)

    def shuts_down(self, r: Record) -> None:
        assert r.broker is not None
        began, last = self.asked.pop(r.broker, None), self.last(r.broker)
        if last is not None and last.cause == "controlled shutdown" and began is None:
            again = r.detail is None and r.broker not in self.back and r.time_ms - last.at_ms <= 300_000
            if again or (r.detail is not None and not r.detail.startswith("attempt=1 ")):
                self.left.remove(last)
                began = last.began_seq, last.began_ms
        self.leaves(r, "controlled shutdown", began)


def plain_departures(trace: Iterable[Record]) -> list[Departure]:
    """In the order of the records."""
    found = []
    for life in plain_lives(trace):
        leaving = Leaving()
        for r in life:
            leaving.add(r)
        found += leaving.left
    return found


def plain_unavailability(trace: Iterable[Record]) -> list[dict[str, Any]]:
    return [row for life in plain_lives(trace) for row in _unavailability(life)]


def _unavailability(life: list[Record]) -> list[dict[str, Any]]:
    departures = plain_departures(life)
    epochs: dict[int | None, float] = {}
    open_since: dict[tuple, dict[str, Any]] = {}
    led: dict[tuple, tuple[int, float]] = {}
    found: list[dict[str, Any]] = []
    was_online: dict[tuple, bool] = {}

    def begin(key: tuple, r: Record, start: float, unseen: bool = False) -> dict[str, Any]:
        leader, led_ms = led.get(key, (None, 0.0))
        new = NEW in (r.source, r.target)
        last = next((d for d in reversed(departures) if d.broker == leader and d.cause_seq < r.seq), None)
        if last is not None and last.cause in ("broker loss", "controlled shutdown") and last.at_ms < led_ms:
            last = None  # it has led again since
        if unseen and last is not None:
            start = max(start, last.at_ms)
        lost = start if new or last is None else min(start, max(last.at_ms, led_ms))
        cause = "topic creation" if new else last.cause if last else None
        seq = last.cause_seq if last and not new else None
        names = dict(zip(("topic", "partition"), key, strict=True))
        known = {"leader": None if new else leader, "cause": cause, "cause_seq": seq, "lost_ms": lost}
        known["election_refused"] = False
        return {**names, "start_ms": start, **known}

    def end(interval: dict[str, Any], at: float | None, restored: bool | None) -> None:
        spans = {"duration_ms": "start_ms", "outage_ms": "lost_ms"}
        interval |= {name: None if at is None else round(at - interval[since], 4) for name, since in spans.items()}
        found.append(interval | {"end_ms": at, "restored": restored})

    for r in life:
        if r.kind == "controller" and r.action != "says":
            epochs.setdefault(r.controller_epoch, r.time_ms)
        if r.kind != "partition" or r.action == SET or (r.error and r.source not in (NEW, OFFLINE)):
            continue
        key = (r.topic, r.partition)
        down = bool(r.error) or r.target in (NEW, OFFLINE) or r.leader == -1
        if down and key not in open_since:
            open_since[key] = begin(key, r, r.time_ms)
        if r.error:
            open_since[key]["election_refused"] = True
        elif not down and key in open_since:
            interval = open_since.pop(key)
            if not (r.target == GONE and was_online.get(key)):  # a deletion, not a failure
                end(interval, r.time_ms, r.target == ONLINE)
        elif not down and r.source in (NEW, OFFLINE):
            end(begin(key, r, epochs.get(r.controller_epoch, r.time_ms), unseen=True), r.time_ms, r.target == ONLINE)
        was_online[key] = r.source == ONLINE
        if r.leader is not None and r.leader >= 0:
            led[key] = (r.leader, r.time_ms)
    for interval in open_since.values():
        end(interval, None, None)
    return found


def plain_isr(trace: Iterable[Record]) -> list[dict[str, Any]]:
    """The ISRs of every partition in the order of their versions, each as soon as anybody tells it."""
    return [state for life in plain_lives(trace) for state in _isr(life)]


def _isr(life: list[Record]) -> list[dict[str, Any]]:
    states: list[dict[str, Any]] = []
    open_: dict[tuple, dict[str, Any]] = {}
    newest: dict[tuple, int] = {}
    assigned: dict[tuple, tuple[int, ...] | None] = {}
    end = 0.0
    for r in life:
        tells = r.kind == "partition" or (r.kind, r.action) == ("request", "LeaderAndIsr")
        changes = r.kind in ("broker", "controller") and r.action in ("shrink-isr", "expand-isr")
        if r.topic is None or r.error or not (tells or changes):
            continue
        key, end = (r.topic, r.partition), r.time_ms
        if r.kind == "partition" and r.source == GONE:
            newest[key] = -1
        assigned[key] = r.replicas if r.replicas is not None else assigned.get(key)
        gone = r.target == GONE
        if not gone and (r.isr is None or (r.zk_version is not None and r.zk_version <= newest.get(key, -1))):
            continue
        newest[key] = max(newest.get(key, -1), r.zk_version if r.zk_version is not None else -1)
        isr = None if gone else list(r.isr or ())
        before = open_.get(key)
        if before:
            before["until_ms"] = r.time_ms
        replicas = assigned[key]
        open_[key] = {
            "topic": r.topic,
            "partition": r.partition,
            "seq": r.seq,
            "at_ms": r.time_ms,
            "isr": isr,
            "isr_before": before["isr"] if before else None,
            "by_leader": r.kind == "broker",
            "assigned": list(replicas) if replicas is not None else None,
        }
        states.append(open_[key])
    for state in open_.values():
        state["until_ms"] = end
    return states


def plain_led(trace: Iterable[Record], broker: int, seq: int) -> int:
    """How many partitions a broker led at a record."""
    leaders: dict[tuple, int | None] = {}
    life = next(life for life in plain_lives(trace) if life and life[-1].seq >= seq)
    for r in life:
        if r.seq > seq:
            break
        if r.kind == "partition" and r.action != SET and not r.error:
            leads = r.target == ONLINE and r.leader is not None and r.leader >= 0
            leaders[r.topic, r.partition] = r.leader if leads else None
    return sum(leader == broker for leader in leaders.values())


def wiped(first: Trace, second: Trace, hours: float = 1.0) -> tuple[Trace, Trace]:
    """One history of two clusters that follow each other in one place, ZooKeeper wiped between; and its second part."""
    seq, ms = len(first), first[-1].time_ms + hours * 3_600_000
    later = [
        r._replace(seq=r.seq + seq, time_ms=r.time_ms + ms, cause=None if r.cause is None else r.cause + seq)
        for r in second
    ]
    names = {"history": first.history, "generation": first.generation}
    return Trace(records=[*first, *later], **names), Trace(records=later, **names)
