"""What a controller knew at a record: assignment, ISR, live and shutting-down brokers, from its own records."""

from __future__ import annotations

from typing import Any

from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.cluster_model import ids, loads
from kafka_ctl.views.wording import ring
from kafka_ctl.zookeeper.json_fields import digits

Rows = tuple[tuple[str, str], ...]
LIVE = {"brokers_changed": "live", "active_brokers": "brokers", "live_brokers": "brokers"}
"""Notes of a controller that say who is live, each with the word that does."""


def known(trace: Recorder, record: Record, topic: str | None = None, partition: int | None = None) -> Rows:
    """Inputs by name, as far as the records before this one tell them."""
    topic, partition = topic or record.topic, record.partition if partition is None else partition
    found: dict[str, tuple[int, ...]] = {}
    gone: set[int] = set()
    for r in reversed(trace.records[: record.seq]):
        if (r.topic, r.partition) == (topic, partition) and topic is not None:
            _of_partition(r, found)
        if r.actor == record.actor and r.kind == "election":
            told = dict(word.split("=", 1) for word in (r.detail or "").split() if "=" in word)
            found.setdefault("Live", numbers(told.get("live", "")))
        if r.actor == record.actor and r.kind == "controller":
            _of_cluster(r, found, gone)
            if r.action == "elected":
                break  # what an earlier time in office knew is forgotten
    order = ("Assigned", "ISR", "Live", "Shutting down")
    return tuple((name, ring(found[name])) for name in order if found.get(name))


def _of_partition(r: Record, found: dict[str, tuple[int, ...]]) -> None:
    if r.replicas is not None:
        found.setdefault("Assigned", r.replicas)
    if r.isr is not None and not r.error:
        found.setdefault("ISR", r.isr)


def _of_cluster(r: Record, found: dict[str, tuple[int, ...]], gone: set[int]) -> None:
    told = loads(r.detail)
    if r.action in LIVE:
        found.setdefault("Live", ids(told.get(LIVE[r.action])))
    elif r.action == "removed_from_shutting_down":
        gone |= set(ids(told.get("brokers")))
    elif r.action == "all_shutting_down":
        found.setdefault("Shutting down", tuple(b for b in ids(told.get("brokers")) if b not in gone))


def words_of(record: Record) -> dict[str, Any]:
    """What a controller's note says beside its name."""
    return loads(record.detail)


def numbers(text: str) -> tuple[int, ...]:
    """`1,2,3` as numbers; anything else in it is left out."""
    return tuple(int(word) for word in text.split(",") if word.isdecimal())


def partition_named(name: object) -> tuple[str | None, int | None]:
    """The topic and number in `orders-0`; None twice for anything else."""
    topic, _, number = str(name).rpartition("-")
    plain = digits(number)
    return (topic, plain) if topic and plain is not None else (None, None)
