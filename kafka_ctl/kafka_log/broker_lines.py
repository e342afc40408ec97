"""The lines brokers leave in state-change.log when they obey, or do not obey, the controller.

A broker writes about a LeaderAndIsr request step by step for all its partitions: received, ignored, then the
transitions of leaders, then those of followers. The trace has one record for each partition, so the lines are
written when the broker has answered.
Kafka 2.0.1: server/ReplicaManager.scala, becomeLeaderOrFollower, makeLeaders, makeFollowers, stopReplica
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kafka_ctl.kafka_log.controller_state import id_of
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

STALE = {"LeaderAndIsr": "stale_leader_and_isr", "UpdateMetadata": "stale_metadata", "StopReplica": "stale_stop"}
FOLLOWING = ("follow_stopped", "follow_truncated", "follow_started")
"""The lines of a broker about every partition that follows a new leader, one after the other."""


class Sent(NamedTuple):
    """A request on its way: its record, the words of its detail, and the partition states in it."""

    record: Record
    fields: dict[str, str]
    states: dict[tuple[str | None, int | None], Record]

    def header(self) -> dict[str, object]:
        """The sender, in the words of every line about the request."""
        return {
            "controller": id_of(self.record),
            "epoch": self.record.controller_epoch,
            "correlation_id": self.fields["correlation_id"],
        }


class Write(Protocol):
    """Writes the lines for what happened at the time, and by the actor, of a record."""

    def __call__(self, r: Record, what: str, state: Record | None = None, /, **fields: object) -> None: ...


def state_fields(r: Record) -> dict[str, object]:
    """The fields of a partition state in a request."""
    listed, is_new = _state_fields(r.detail)
    return {name: list(ids) for name, ids in listed} | {"is_new": is_new}


@functools.lru_cache(1024)  # a request has many states, and few of them differ
def _state_fields(detail: str | None) -> tuple[list[tuple[str, list[int]]], bool]:
    names = ("brokers", "offline", "adding", "removing")
    listed = [(name, [int(id) for id in details.items(detail, name)]) for name in names]
    return listed, "is_new" in details.flags(detail)


def listed_ids(r: Record, name: str) -> list[int]:
    """The brokers that a record's detail lists under a name."""
    return [int(id) for id in details.items(r.detail, name)]


class BrokerLines:
    """The lines of all brokers; keeps the controller that each of them obeys."""

    def __init__(self, write: Write) -> None:
        self.write = write
        self.leaders: dict[int, dict[object, int | None]] = {}
        """By broker and partition: the leader it obeys."""
        self.answers: dict[int, list[Record]] = {}
        """By request: what its receiver did with each partition."""

    def read(self, r: Record, sent: Sent | None) -> None:
        """A record of a broker, and the request it obeys (None if it obeys none, or none that is known)."""
        if r.action == "start":
            self.leaders.pop(r.broker or 0, None)
        if sent is None:
            return
        match r.action:
            case "cached" | "uncached":
                state = sent.states.get((r.topic, r.partition), r)
                self.write(r, r.action, state, **sent.header())
            case "stop-replica":
                self._stopped(r)
            case "ignored" if r.topic is None:
                self._stale(r, sent)
            case "become-leader" | "become-follower" | "ignored":
                self.answers.setdefault(sent.record.seq, []).append(r)

    def _stopped(self, r: Record) -> None:
        flags = details.flags(r.detail)
        delete = "delete" in flags
        self.answers.setdefault(r.cause or 0, []).append(r)
        self.write(r, "stop_handling", delete=delete)
        if "absent" in flags:
            self.write(r, "stop_absent", delete=delete)
            if delete:
                self.write(r, "stop_absent_delete", delete=delete)
        elif delete:
            self.leaders.get(r.broker or 0, {}).pop((r.topic, r.partition), None)
        self.write(r, "stop_handled", delete=delete)

    def _stale(self, r: Record, sent: Sent) -> None:
        """A whole request is refused. These logs say so only where its controller has been replaced.

        Kafka 2.4.1: server/ReplicaManager.scala, becomeLeaderOrFollower; not server/KafkaApis.scala, isBrokerEpochStale
        """
        fields, is_old = details.named(r.detail), r.error == "STALE_CONTROLLER_EPOCH"
        if fields["request"] == "LeaderAndIsr":
            if is_old:
                self._received(r, sent)
            refused = [s._replace(action="ignored", error=r.error) for s in sent.states.values()]
            self.answers[sent.record.seq] = refused
        if is_old:
            self.write(r, STALE[fields["request"]], **sent.header(), latest=fields["latest"])

    def _received(self, r: Record, sent: Sent) -> None:
        header = sent.header()
        for state in sent.states.values():
            self.write(state._replace(actor=r.actor, time_ms=r.time_ms), "received", state, **header)

    def answered(self, r: Record, sent: Sent) -> Sequence[Record]:
        """A broker has answered: write what it did, and return it by partition."""
        done = self.answers.pop(sent.record.seq, [])
        if r.action == "LeaderAndIsr" and r.error is None:
            self._received(r, sent)
            for one in done:
                if one.action == "ignored":
                    self._ignored(one, sent)
            self._lead([one for one in done if one.action == "become-leader"], sent)
            self._follow([one for one in done if one.action == "become-follower"], sent)
        return done

    def _ignored(self, r: Record, sent: Sent) -> None:
        if r.error != "STALE_CONTROLLER_EPOCH":
            self.write(r, "log_offline" if r.error == "KAFKA_STORAGE_ERROR" else "not_assigned", **sent.header())
            return
        current = int(details.named(r.detail).get("current", -1))
        for what in ("not_higher", "not_higher_same" if current == r.leader_epoch else "not_higher_smaller"):
            self.write(r, what, **sent.header(), current=current)

    def _obey(self, r: Record) -> int | None:
        """Set the controller that the broker obeys from now on; returns the one before."""
        leaders = self.leaders.setdefault(r.broker or 0, {})
        before = leaders.get((r.topic, r.partition))
        leaders[r.topic, r.partition] = r.leader
        return before

    def _lead(self, partitions: list[Record], sent: Sent) -> None:
        header = sent.header()
        for r in partitions:
            self.write(r, "lead_handling", **header)
        for r in partitions:
            self.write(r, "lead_skipped" if self._obey(r) == r.broker else "lead_stopped", **header)
        for r in partitions:
            self.write(r, "lead_completed", **header)

    def _follow(self, partitions: list[Record], sent: Sent) -> None:
        header, new = sent.header(), []
        for r in partitions:
            self.write(r, "follow_handling", **header)
        for r in partitions:
            if r.error is not None:
                self.write(r, "follow_unavailable", **header)
                continue
            self._obey(r)
            if details.named(r.detail).get("fetcher") == "kept":
                self.write(r, "follow_skipped", **header)
            else:
                new.append(r)
        for what in FOLLOWING:
            for r in new:
                skipped = what == "follow_started" and details.named(r.detail).get("fetcher") == "skipped"
                self.write(r, "follow_leaving" if skipped else what, **header)
        for r in partitions:
            self.write(r, "follow_completed", **header)
