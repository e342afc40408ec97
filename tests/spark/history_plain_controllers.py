"""Questions about controllers, and about what they were asked for, answered by plain Python: see `history_plain`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from history_plain import GONE, plain_departures, plain_isr, plain_lives, plain_unavailability, same
from pyspark.sql import DataFrame

from kafka_ctl import Record, Trace
from kafka_ctl.history import questions
from kafka_ctl.trace import SET

STAGES = {
    "context_ms": "initializing_context",
    "replicas_ms": "initializing_replica_state",
    "partitions_ms": "initializing_partition_state",
    "ready_ms": "ready",
    "resigned_ms": "resigned",
}
SPANS = {
    "detection_ms": ("vacant_ms", "elected_ms"),
    "taking_over_ms": ("elected_ms", "context_ms"),
    "reading_ms": ("context_ms", "replicas_ms"),
    "replica_ms": ("replicas_ms", "partitions_ms"),
    "partition_ms": ("partitions_ms", "ready_ms"),
    "failover_ms": ("elected_ms", "ready_ms"),
}


def words(r: Record) -> dict[str, Any]:
    """What a controller says."""
    return json.loads(r.detail) if r.kind == "controller" and (r.detail or "").startswith("{") else {}


def plain_failovers(trace: Iterable[Record]) -> list[dict[str, Any]]:
    return [row for life in plain_lives(trace) for row in _failovers(life)]


def _failovers(life: list[Record]) -> list[dict[str, Any]]:
    left = {d.cause_seq: d.broker for d in plain_departures(life)}
    offices: list[dict[str, Any]] = []
    office: dict[str, dict[str, Any]] = {}
    step: dict[str, str] = {}
    exists: dict[tuple, bool] = {}
    vacant = None
    for r in life:
        if r.kind == "partition" and r.action != SET and not r.error:
            exists[r.topic, r.partition] = r.target != GONE
        if r.seq in left and offices and left[r.seq] == offices[-1]["controller"]:
            vacant = r.time_ms
        if r.kind != "controller" or r.action not in (
            "elected",
            "epoch_incremented",
            "partition_states",
            *STAGES.values(),
        ):
            continue
        if r.action == "elected" or (r.action == "epoch_incremented" and step.get(r.actor) != "elected"):
            office[r.actor] = {
                "controller": r.broker,
                "epoch": words(r).get("epoch"),
                "elected_ms": r.time_ms,
                "vacant_ms": vacant,
                "reported": r.controller_epoch or None,
                "before": offices[-1] if offices else None,
                "partitions": sum(exists.values()),
                **dict.fromkeys(STAGES),
            }
            offices.append(office[r.actor])
            vacant = None
        elif r.actor in office:
            mine = office[r.actor]
            if r.action in ("epoch_incremented", "ready") and mine["epoch"] is None:
                mine["epoch"] = r.controller_epoch
            if r.action == "partition_states":
                mine["partitions"] = words(r)["partitions"]
            if r.action == "resigned" and mine["resigned_ms"] is None:
                vacant = r.time_ms
            for name, action in STAGES.items():
                if r.action == action and mine[name] is None:
                    mine[name] = r.time_ms
        step[r.actor] = r.action
    return [_reported(mine) for mine in offices]


def _reported(mine: dict[str, Any]) -> dict[str, Any]:
    """The row of a term: whoever had one before that ends, and the spans between what is known."""
    before = mine["before"]
    epochs = [each["epoch"] or each["reported"] for each in (before, mine) if each]
    follows = before is not None and (None in epochs or epochs[0] + 1 == epochs[1])
    row = {name: mine[name] for name in ("controller", "partitions", "vacant_ms", "elected_ms", "ready_ms")}
    row |= {"epoch": epochs[-1], "previous": before["controller"] if follows else None}
    row["vacant_ms"] = mine["vacant_ms"] if follows else None
    times = mine | {"vacant_ms": row["vacant_ms"]}
    for name, (start, end) in SPANS.items():
        known = times[start] is not None and times[end] is not None
        row[name] = round(times[end] - times[start], 4) if known else None
    return row


def plain_reassignments(trace: Iterable[Record]) -> list[dict[str, Any]]:
    return [row for life in plain_lives(trace) for row in _reassignments(life)]


class Moving:
    """The reassignments of one partition, told step by step."""

    def __init__(self, name: str) -> None:
        topic, _, number = name.rpartition("-")
        self.names = {"topic": topic, "partition": int(number)}
        self.now: dict[str, Any] | None = None
        self.moved = False
        """Whether its leader was looked at since the assignment was written."""
        self.epoch: int | None = None
        """Of the controller that works on it."""
        self.done: list[dict[str, Any]] = []

    def take_up(self, r: Record) -> None:
        if self.now is None:
            self.now = {**self.names, "start_ms": r.time_ms, "tries": 0, "extra_epochs": 0, "replicas": None}
        self.now["tries"] += 1

    def end(self, r: Record | None) -> None:
        if self.now is not None:
            at = r.time_ms if r else None
            took = None if at is None else round(at - self.now["start_ms"], 4)
            self.done.append(self.now | {"end_ms": at, "duration_ms": took})
        self.now, self.moved = None, False

    def old(self, r: Record) -> None:
        """Until Kafka 2.3 the list in `/admin/reassign_partitions` tells of beginning and end."""
        if r.action == "handling_reassignment":
            self.take_up(r)
        elif r.action in ("reassignment_removed", "reassignment_failed"):
            self.end(r)
        self.counts(r)

    def new(self, r: Record) -> None:
        """Since 2.4 the assignment is written twice; a new controller goes on without a word about it."""
        reported = words(r)
        if r.action in ("reassignment_removed", "reassignment_failed"):
            return
        if r.action == "full_assignment_updated" and self.moved and not reported["adding"] and not reported["removing"]:
            self.counts(r)
            self.end(r)
            return
        if r.action == "full_assignment_updated" or self.now is None or self.epoch != r.controller_epoch:
            self.take_up(r)
        self.moved = r.action.startswith("reassignment_leader") or (
            self.moved and r.action != "full_assignment_updated"
        )
        self.epoch = r.controller_epoch
        self.counts(r)

    def counts(self, r: Record) -> None:
        if self.now is not None:
            reported = words(r)
            self.now["extra_epochs"] += r.action == "leader_epoch_updated"
            if "replicas" in reported:
                self.now["replicas"] = [id for id in reported["replicas"] if id not in reported.get("removing", ())]


STEPS = (
    "handling_reassignment",
    "reassignment_removed",
    "reassignment_failed",
    "full_assignment_updated",
    "reassignment_caught_up",
    "leader_epoch_updated",
    "reassignment_leader_outside",
    "reassignment_leader_stays",
    "reassignment_leader_dead",
)


def _reassignments(life: list[Record]) -> list[dict[str, Any]]:
    """All of a life in one way: no cluster here is upgraded while it runs."""
    partitions: dict[str, Moving] = {}
    steps = [r for r in life if r.kind == "controller" and r.action in STEPS]
    way = Moving.new if any(r.action == "full_assignment_updated" for r in steps) else Moving.old
    for r in steps:
        reported = words(r)
        for name in reported.get("partitions", [reported.get("partition")]):
            way(partitions.setdefault(name, Moving(name)), r)
    for each in partitions.values():
        each.end(None)
    return [row for each in partitions.values() for row in each.done]


def plain_deletions(trace: Iterable[Record]) -> list[dict[str, Any]]:
    return [row for life in plain_lives(trace) for row in _deletions(life)]


def _deletions(life: list[Record]) -> list[dict[str, Any]]:
    """From the request to the end; logs tell of a request when a controller hears of it."""
    found: list[dict[str, Any]] = []
    running: dict[str, dict[str, Any]] = {}
    for r in life:
        topics: list[str] = []
        if (r.kind, r.action, r.actor) == ("event", "delete_topic", "admin") and r.topic:
            topics = [r.topic]
        elif r.kind == "controller" and r.action in ("starting_deletion", "topics_to_be_deleted"):
            topics = words(r)["topics"]
        elif r.kind == "controller" and r.action in ("deletion_started", "deletion_completed"):
            topics = [words(r)["topic"]]
        for topic in topics:
            empty = dict.fromkeys(("asked_ms", "started_ms", "completed_ms", "duration_ms"))
            mine = running.setdefault(topic, {"topic": topic, "tries": 0, **empty})
            if r.action == "deletion_completed":
                since = mine["asked_ms"] if mine["asked_ms"] is not None else mine["started_ms"]
                took = None if since is None else round(r.time_ms - since, 4)
                found.append(running.pop(topic) | {"completed_ms": r.time_ms, "duration_ms": took})
                continue
            name = "started_ms" if r.action == "deletion_started" else "asked_ms"
            mine[name] = r.time_ms if mine[name] is None else mine[name]
            mine["tries"] += r.action == "deletion_started"
    return found + list(running.values())


PLAIN: dict[str, Callable[[Iterable[Record]], list[dict[str, Any]]]] = {
    "departures": lambda trace: [departure._asdict() for departure in plain_departures(trace)],
    "unavailability": plain_unavailability,
    "isr_states": plain_isr,
    "failover_time": plain_failovers,
    "reassignments": plain_reassignments,
    "deletions": plain_deletions,
}
"""The answers to questions by plain Python; of `departures`, what does not depend on the words of a request."""


def equals_plain(question: str, records: DataFrame, traces: Mapping[str, Trace]) -> list[dict[str, Any]]:
    """The answer to a question about histories, which must be what plain Python finds in the trace of each."""
    plain = [{"history": name, **row} for name, trace in traces.items() for row in PLAIN[question](trace)]
    same(getattr(questions, question)(records).drop("attempts", "remaining"), plain)
    return plain
