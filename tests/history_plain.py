"""What the tests of histories share: records told line by line, and questions answered by plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from kafka_ctl import Record, Trace
from kafka_ctl.history import Workload
from kafka_ctl.history.schema import to_arrow
from kafka_ctl.history.session import spark

NEW, OFFLINE, ONLINE, GONE = "NewPartition", "OfflinePartition", "OnlinePartition", "NonExistentPartition"
BUSY = Workload(brokers=(3, 5), topics=(2, 4), rate=3)


class Tale:
    """Records told line by line, one a second unless the time is given."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def tell(self, kind: str, action: str, at: float | None = None, **columns: Any) -> Tale:
        seq = len(self.records)
        time_ms = 1000.0 * seq if at is None else float(at)
        self.records.append(Record(seq, time_ms, columns.pop("actor", "controller-1"), kind, action, **columns))
        return self

    def move(self, source: str, target: str, at: float | None = None, **columns: Any) -> Tale:
        subject = {"topic": "orders", "partition": 0} | columns
        return self.tell("partition", "mark", at, source=source, target=target, **subject)


def dicts(answer: DataFrame, *columns: str) -> list[dict[str, Any]]:
    """The rows of an answer, some of its columns only, in a fixed order."""
    rows = [row.asDict() for row in answer.select(*(columns or answer.columns)).collect()]
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row.values()])


def frames(traces: Iterable[Trace]) -> DataFrame:
    """Several traces as one DataFrame."""
    tables = [to_arrow(trace, f"h{number}") for number, trace in enumerate(traces)]
    return spark().createDataFrame(pa.concat_tables(tables))


def same(answer: DataFrame, plain: list[dict[str, Any]]) -> None:
    """Equal as sets of rows, whatever the order of rows and columns."""

    def told(rows: Iterable[dict[str, Any]]) -> Counter[str]:
        return Counter(repr(sorted(row.items())) for row in rows)

    found, expected = told(row.asDict() for row in answer.collect()), told(plain)
    unexpected, missing = list(found - expected), list(expected - found)
    assert not unexpected and not missing, "\n".join(["answered:", *unexpected[:5], "expected:", *missing[:5]])
    assert plain


# The plain computation: one pass over the records, with what is known at each of them.


class Departure(NamedTuple):
    cause: str
    seq: int
    at: float
    began_seq: int
    began: float


def plain_departures(trace: Trace) -> list[tuple[int, Departure]]:
    """Brokers and why they left, a controlled shutdown once, however often it asked."""
    names = {"kill": "broker crash", "bounce": "quick restart", "expire_session": "session expiry", "pause": "pause"}
    left: list[tuple[int, Departure]] = []
    asked: dict[int, tuple[int, float]] = {}
    controller = None
    for r in trace:
        if (r.kind, r.action) == ("controller", "elected"):
            controller = r.broker
        elif (r.kind, r.action, r.actor) == ("event", "shutdown", "admin") and r.broker is not None:
            asked[r.broker] = (r.seq, r.time_ms)
        elif r.kind == "fault" and r.action in names and r.broker is not None:
            crashed = r.action == "kill" and r.broker == controller
            cause = "controller crash" if crashed else names[r.action]
            left.append((r.broker, Departure(cause, r.seq, r.time_ms, r.seq, r.time_ms)))
        elif (r.kind, r.action) == ("broker", "controlled-shutdown") and r.broker is not None:
            mine = [n for n, (broker, _) in enumerate(left) if broker == r.broker]
            if not (r.detail or "").startswith("attempt=1 ") and mine:
                del left[mine[-1]]
            left.append((r.broker, Departure("controlled shutdown", r.seq, r.time_ms, *asked[r.broker])))
    return left


def plain_unavailability(trace: Trace, history: str) -> list[dict[str, Any]]:
    departures = plain_departures(trace)
    epochs: dict[int | None, float] = {}
    open_since: dict[tuple, dict[str, Any]] = {}
    led: dict[tuple, tuple[int, float]] = {}
    found: list[dict[str, Any]] = []
    was_online: dict[tuple, bool] = {}

    def begin(key: tuple, r: Record, start: float) -> dict[str, Any]:
        leader, led_ms = led.get(key, (None, 0.0))
        new = NEW in (r.source, r.target)
        last = next((d for b, d in reversed(departures) if b == leader and d.seq < r.seq), None)
        lost = start if new or last is None else min(start, max(last.at, led_ms))
        cause = "topic creation" if new else last.cause if last else None
        seq = last.seq if last and not new else None
        names = dict(zip(("topic", "partition"), key, strict=True))
        known = {"leader": None if new else leader, "cause": cause, "cause_seq": seq, "lost_ms": lost}
        return {"history": history, **names, "start_ms": start, **known}

    def end(interval: dict[str, Any], at: float | None, restored: bool | None) -> None:
        spans = {"duration_ms": "start_ms", "outage_ms": "lost_ms"}
        interval |= {name: None if at is None else round(at - interval[since], 4) for name, since in spans.items()}
        found.append(interval | {"end_ms": at, "restored": restored})

    for r in trace:
        if r.kind == "controller":
            epochs.setdefault(r.controller_epoch, r.time_ms)
        if r.kind != "partition" or r.error:
            continue
        key = (r.topic, r.partition)
        down = r.target in (NEW, OFFLINE) or r.leader == -1
        if down and key not in open_since:
            open_since[key] = begin(key, r, r.time_ms)
        elif not down and key in open_since:
            interval = open_since.pop(key)
            if not (r.target == GONE and was_online.get(key)):  # a deletion, not a failure
                end(interval, r.time_ms, r.target == ONLINE)
        elif not down and r.source in (NEW, OFFLINE):
            end(begin(key, r, epochs.get(r.controller_epoch, r.time_ms)), r.time_ms, r.target == ONLINE)
        was_online[key] = r.source == ONLINE
        if r.leader is not None and r.leader >= 0:
            led[key] = (r.leader, r.time_ms)
    for interval in open_since.values():
        end(interval, None, None)
    return found


def plain_isr(trace: Trace) -> list[dict[str, Any]]:
    """The ISRs of every partition in the order of their versions, each as soon as anybody tells it."""
    states: list[dict[str, Any]] = []
    open_: dict[tuple, dict[str, Any]] = {}
    newest: dict[tuple, int] = {}
    assigned: dict[tuple, tuple[int, ...] | None] = {}
    end = 0.0
    for r in trace:
        tells = r.kind == "partition" or (r.kind, r.action) == ("request", "LeaderAndIsr")
        if (
            r.topic is None
            or r.error
            or not (tells or (r.kind == "broker" and r.action in ("shrink-isr", "expand-isr")))
        ):
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
            "topic": r.topic, "partition": r.partition, "seq": r.seq, "at_ms": r.time_ms, "isr": isr,
            "isr_before": before["isr"] if before else None, "by_leader": r.kind == "broker",
            "assigned": list(replicas) if replicas is not None else None,
        }  # fmt: skip
        states.append(open_[key])
    for state in open_.values():
        state["until_ms"] = end
    return states


def plain_led(trace: Trace, broker: int, seq: int) -> int:
    """How many partitions a broker led at a record."""
    leaders: dict[tuple, int | None] = {}
    for r in trace:
        if r.seq > seq:
            break
        if r.kind == "partition" and not r.error:
            leads = r.target == ONLINE and r.leader is not None and r.leader >= 0
            leaders[r.topic, r.partition] = r.leader if leads else None
    return sum(leader == broker for leader in leaders.values())
