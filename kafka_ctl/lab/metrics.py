"""What Kafka's metrics say of a controller's event queue: its length, how long events wait, and how long they take.

Everything is read from the trace. Times are milliseconds on the lab's clock; Kafka shows the same numbers over JMX, as
`kafka.controller:type=ControllerEventManager` and `type=ControllerStats`.
Kafka 2.0.1: controller/ControllerEventManager.scala, ControllerEventManager; controller/ControllerState.scala
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka_ctl.controller import events
from kafka_ctl.trace import Record

STATES = (
    "Idle", "ControllerChange", "BrokerChange", "TopicChange", "TopicDeletion", "PartitionReassignment",
    "AutoLeaderBalance", "ManualLeaderBalance", "ControlledShutdown", "IsrChange", "LeaderAndIsrResponseReceived",
    "LogDirChange",
)  # fmt: skip
"""Kafka's ControllerState: the metric of that name is the place in this list."""


class Timer(NamedTuple):
    """How often something happened, and how long it took in milliseconds: on average, mostly, at most."""

    number: int
    mean: float
    p99: float
    max: float


def timer(times: Sequence[float]) -> Timer:
    """The figures of some times, none of which may be missing."""
    ordered = sorted(times)
    return Timer(len(ordered), sum(ordered) / len(ordered), ordered[(99 * len(ordered) - 1) // 100], ordered[-1])


def metric(state: str) -> str:
    """The name of the timer of a controller state; that of BrokerChange is older than the others."""
    return f"{'LeaderElection' if state == 'BrokerChange' else state}RateAndTimeMs"


def metrics(records: Iterable[Record], broker: int) -> dict[str, int | Timer]:
    """The metrics of one broker's controller, by Kafka's names; a timer is there once it has been used."""
    queued: dict[int, Record] = {}
    times: dict[str, list[float]] = {}
    running: Record | None = None
    for r in records:
        if r.kind != "event" or r.actor != f"controller-{broker}":
            continue
        if r.target == "queued":
            queued[r.seq] = r
        elif r.source == "queued":
            arrived = queued.pop(r.cause or 0, None)
            if arrived is not None and r.target == "started":
                times.setdefault("EventQueueTimeMs", []).append(r.time_ms - arrived.time_ms)
                running = r
        elif r.target == "done" and running is not None:
            times.setdefault(metric(_state(r.action)), []).append(r.time_ms - running.time_ms)
            running = None
    state = STATES.index(_state(running.action)) if running else 0
    return {"ControllerState": state, "EventQueueSize": len(queued)} | {n: timer(t) for n, t in sorted(times.items())}


def _state(event: str) -> str:
    return str(getattr(events, event).state)
