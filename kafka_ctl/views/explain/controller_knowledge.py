"""What a controller knew at a record: assignment, ISR, live and shutting-down brokers, from its own records."""

from __future__ import annotations

from kafka_ctl.cluster import parse_int
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.wording import format_ids

Rows = tuple[tuple[str, str], ...]
LIVE = {"brokers_changed": "live", "active_brokers": "brokers", "live_brokers": "brokers"}
"""Notes of a controller that say who is live, each with the word that does."""


def knowledge(trace: Recorder, record: Record, topic: str | None = None, partition: int | None = None) -> Rows:
    """Inputs by name, as far as the records before this one have them."""
    topic, partition = topic or record.topic, record.partition if partition is None else partition
    found: dict[str, tuple[int, ...]] = {}
    gone: set[int] = set()
    for r in reversed(trace.records[: record.seq]):
        if (r.topic, r.partition) == (topic, partition) and topic is not None:
            _of_partition(r, found)
        if r.actor == record.actor and r.kind == "election":
            fields = details.named(r.detail)
            found.setdefault("Live", details.numbers(fields.get("live")))
        if r.actor == record.actor and r.kind == "controller":
            _of_cluster(r, found, gone)
            if r.action == "elected":
                break  # what an earlier time in office knew is forgotten
    order = ("Assigned", "ISR", "Live", "Shutting down")
    return tuple((name, format_ids(found[name])) for name in order if found.get(name))


def _of_partition(r: Record, found: dict[str, tuple[int, ...]]) -> None:
    if r.replicas is not None:
        found.setdefault("Assigned", r.replicas)
    if r.isr is not None and not r.error:
        found.setdefault("ISR", r.isr)


def _of_cluster(r: Record, found: dict[str, tuple[int, ...]], gone: set[int]) -> None:
    fields = details.fields(r)
    if r.action in LIVE:
        found.setdefault("Live", details.ids(fields.get(LIVE[r.action])))
    elif r.action == "removed_from_shutting_down":
        gone |= set(details.ids(fields.get("brokers")))
    elif r.action == "all_shutting_down":
        found.setdefault("Shutting down", tuple(b for b in details.ids(fields.get("brokers")) if b not in gone))


def partition_named(name: object) -> tuple[str | None, int | None]:
    """The topic and number in `orders-0`; None twice for anything else."""
    topic, _, number = str(name).rpartition("-")
    plain = parse_int(number)
    return (topic, plain) if topic and plain is not None else (None, None)
