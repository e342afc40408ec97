"""Which record of the trace a template's line stands for: the other half of reading, beside the templates themselves.

A line of a message that controllers log (`trace/catalogue.txt`) stands for that message, with those of its fields that
the line prints. All other lines are in `RECORDS`, which make columns of what a line holds, or in `NO_RECORD`: they
follow from what other records hold, and are read as text (action `says`).
Kafka 0.10.2.2, 2.0.1, 2.4.1: controller/*.scala, server/ReplicaManager.scala, server/MetadataCache.scala
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kafka_ctl.kafka_log.shapes import Value
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.trace import details
from kafka_ctl.trace.catalogue import rows

Values: TypeAlias = dict[str, Value]
"""The fields of a line and their values."""
Columns: TypeAlias = dict[str, Value]
"""Columns of a `LogLine`, by name."""


class Reading(NamedTuple):
    """A reader of columns from a line: a function of the fields that it names, as far as the line has them."""

    make: Callable[[Values], Columns]
    fields: frozenset[str]


SUBJECT = frozenset(("tp", "topic", "partition", "detail"))

STATE = "leader isr leader_epoch zk_version controller_epoch replicas"
"""The columns of a partition's state in a request."""


def row(kind: str, action: str, taken: str = "", error: str | None = None) -> Reading:
    """Lines of this kind and action; columns are the partition, `detail` and those of `taken` that the line has.

    `epoch=controller_epoch` takes the field `epoch` as that column.
    """
    pairs = [(name, column or name) for name, _, column in (word.partition("=") for word in taken.split())]
    fixed: Columns = {"kind": kind, "action": action}
    if error:
        fixed["error"] = error

    def make(values: Values) -> Columns:
        columns = fixed | subject(values)
        for name, column in pairs:
            if name in values:
                columns[column] = values[name]
        if "detail" in values:
            columns["detail"] = values["detail"]
        return columns

    return Reading(make, SUBJECT.union(name for name, _ in pairs))


def subject(values: Values) -> Columns:
    """The partition that a line is about, if it is about one."""
    pair = values.get("tp")
    if isinstance(pair, tuple):
        return {"topic": pair[0], "partition": pair[1]}
    return {"topic": values["topic"], "partition": values["partition"]} if "topic" in values else {}


@functools.cache
def partition_move(source: str, target: str) -> str:
    """The name of a partition's move; `move` for one that no table has."""
    return next((m.action for m in PARTITION["2.0"].rows if (m.source, m.target) == (source, target)), "move")


@functools.cache
def replica_move(source: str | None, target: str) -> str:
    """The name of a replica's move; Kafka 0.8.0 does not log the state before, but most have one move only."""
    moves = {m.action for m in REPLICA["2.4"].rows if m.target == target and source in (None, m.source)}
    return moves.pop() if len(moves) == 1 else "move"


def beside(base: Reading, more: Callable[[Values], Columns], fields: str) -> Reading:
    """The columns of another reading, and what `more` makes of these fields."""
    return Reading(lambda values: base.make(values) | more(values), base.fields.union(fields.split()))


def _moved(values: Values) -> Columns:
    return {"action": partition_move(str(values["source"]), str(values["target"]))}


def _replica_moved(values: Values) -> Columns:
    return {"action": replica_move(str(values["source"]), str(values["target"]))}


def _new(values: Values) -> Columns:
    return {"detail": "is_new"} if values.get("is_new") else {}


def _receivers(values: Values) -> Columns:
    brokers, offline = (details.listed(details.ids(values.get(name))) for name in ("brokers", "offline"))
    return {"detail": details.write(brokers=brokers, offline=offline or None)}


def _answered(values: Values) -> Columns:
    """Without its request's name in 0.10: `other`."""
    return {
        "action": values.get("api", "other"),
        "detail": details.write(correlation_id=values.get("correlation_id")),
    }


def _stops(values: Values) -> Columns:
    """The replicas that one request stops, or stops and deletes."""
    delete = "deleted" in values
    replicas = values["deleted" if delete else "kept"]
    assert isinstance(replicas, list)
    partitions = tuple((topic, number) for topic, number, _ in replicas)
    return {"partitions": partitions, "detail": "delete" if delete else None}


def _deletes(values: Values) -> Columns:
    return {"detail": "delete"} if values["delete"] else {}


def message(action: str, *also: str, **fixed: Value) -> Reading:
    """A message of a controller's: those fields of its row in the catalogue that the line prints, and `also`."""
    known = (*rows()["controller", action].fields, *also) if ("controller", action) in rows() else also

    def make(values: Values) -> Columns:
        fields = {name: value for name, value in values.items() if name in known} | fixed
        epoch = {"controller_epoch": values["epoch"]} if "epoch" in values else {}
        return {"kind": "controller", "action": action, "detail": details.write_fields(fields), **epoch}

    return Reading(make, frozenset((*known, "epoch")))


def _machine_started(values: Values) -> Columns:
    return {"detail": details.write_fields({"partitions": values["states"]})}


def _with_partitions(values: Values) -> Values:
    """2.4 prints the target replicas of the partitions whose reassignment is removed."""
    targets = values.get("targets")
    return ({"partitions": list(targets)} if isinstance(targets, dict) else {}) | values


def _one_topic(values: Values) -> Columns:
    """0.10 prints one topic in a line."""
    return {"detail": details.write_fields({"topics": [values["topic"]]})} if "topic" in values else {}


SAYS = Reading(lambda _: {"action": "says"}, frozenset())
PARTITION_MOVED = beside(row("partition", "move", f"source target {STATE}"), _moved, "")
REMOVED, DISABLED = message("reassignment_removed"), message("deletion_disabled")
STOPS = beside(row("request", "StopReplica", "to=broker"), _stops, "deleted kept")
RECORDS: dict[str, Reading] = {
    # Transitions and elections
    "partition_new": PARTITION_MOVED,
    "partition_online": PARTITION_MOVED,
    "partition_moved": PARTITION_MOVED,
    "partition_failed": row("partition", "refuse", "source target", "StateChangeFailed"),
    "replica_moved": beside(row("replica", "move", "source target replica=broker"), _replica_moved, ""),
    "replica_failed": row("replica", "refuse", "source target replica=broker", "StateChangeFailed"),
    "election": row("election", "started"),
    "elected_leader": row("election", "offline", "leader"),
    "partition_creation_failed": row("partition", "refuse", "", "StateChangeFailed"),
    "election_failed_with": row("election", "offline", "", "StateChangeFailed"),
    # Requests and responses
    "sending_leader_and_isr": beside(row("request", "LeaderAndIsr", f"{STATE} to=broker"), _new, "is_new"),
    "sending_metadata": beside(row("request", "UpdateMetadata", STATE), _receivers, "brokers offline"),
    "stopping_replicas": STOPS,
    "stopping_deleted": STOPS,
    "stopping_kept": STOPS,
    "answered": beside(row("response", "other", "to=broker response=error"), _answered, "api correlation_id"),
    # What a broker does with LeaderAndIsr: it writes step by step what is one record in a lab
    "received": row("broker", "received", STATE),
    "lead_handling": row("broker", "become-leader", "epoch=controller_epoch"),
    "lead_stopped": row("broker", "stopped-fetcher"),
    "lead_skipped": row("broker", "skipped"),
    "lead_completed": row("broker", "done", "epoch=controller_epoch"),
    "follow_handling": row("broker", "become-follower", "leader epoch=controller_epoch"),
    "follow_skipped": row("broker", "skipped"),
    "follow_unavailable": row("broker", "ignored", "leader", "LEADER_NOT_AVAILABLE"),
    "follow_stopped": row("broker", "stopped-fetcher", "leader"),
    "follow_truncated": row("broker", "truncated", "leader"),
    "follow_started": row("broker", "started-fetcher", "leader"),
    "follow_leaving": row("broker", "skipped"),
    "follow_completed": row("broker", "done", "leader epoch=controller_epoch"),
    "not_higher": row("broker", "ignored", "leader_epoch", "STALE_CONTROLLER_EPOCH"),
    "not_higher_smaller": row("broker", "ignored", "leader_epoch", "STALE_CONTROLLER_EPOCH"),
    "not_higher_same": row("broker", "ignored", "leader_epoch", "STALE_CONTROLLER_EPOCH"),
    "not_assigned": row("broker", "ignored", "", "UNKNOWN_TOPIC_OR_PARTITION"),
    "log_offline": row("broker", "ignored", "", "KAFKA_STORAGE_ERROR"),
    "stale_leader_and_isr": row("broker", "ignored", "", "STALE_CONTROLLER_EPOCH"),
    # ... with StopReplica, and with UpdateMetadata
    "stop_handling": beside(row("broker", "stop-replica"), _deletes, "delete"),
    "stop_handled": beside(row("broker", "done"), _deletes, "delete"),
    "stop_absent": row("broker", "skipped"),
    "stop_absent_delete": row("broker", "skipped"),
    "stale_stop": row("broker", "ignored", "", "STALE_CONTROLLER_EPOCH"),
    "cached": row("broker", "cached", STATE),
    "uncached": row("broker", "uncached"),
    "stale_metadata": row("broker", "ignored", "", "STALE_CONTROLLER_EPOCH"),
    # Messages under names of their own
    "partition_machine_started": beside(row("controller", "partition_states"), _machine_started, "states"),
    "isr_changes": message("isr_changes"),
    "reassignment_removed": Reading(lambda values: REMOVED.make(_with_partitions(values)), REMOVED.fields),
    "deletion_disabled": beside(DISABLED, _one_topic, "topic"),
    "deletion_disabled_at_failover": beside(DISABLED, _one_topic, "topic"),
    "reassignment_progress_done": message("reassignment_progress", missing=[]),
}
"""By template, other than those of a controller's messages: the columns that the line holds."""

NO_RECORD = frozenset(
    # A thread, a channel, a connection, a handler begins or ends with what it belongs to.
    "startup_begun startup_done thread_started thread_stopped channel_added channel_started channel_removed connected "
    "unreachable fails_to_send handlers_registered handlers_added handlers_dropped handlers_unregistered resigning "
    "machines_stopped "
    "deletion_thread_started deletion_thread_stopped deletion_awaited "
    # A listener has fired: the records are the watch and the event.
    "session_over log_dir_failure broker_change_fired topic_change_fired isr_change_fired "
    "partition_modification_fired preferred_fired "
    "reassignment_fired reassignment_isr_fired deletions_fired rebalance_started "
    # What a controller knows, or is about to do, printed once more.
    "replica_machine_started leaders_updated all_leaders preferred_by_broker not_preferred all_deleted live_replicas "
    "leader_initialized leader_epoch_updating path_updated assignment_updating isr_removing "
    # How an election or a shrinking ISR ends: the records are the move, and the write to ZooKeeper.
    "isr_removed isr_absent isr_not_removed elected_clean elected_nobody elected_unclean elected_controlled_shutdown "
    "elected_preferred election_error elections_done "
    # How the deletion of replicas goes on: the records are their moves, and the responses.
    "delete_answered deletion_begun deletion_successful deletion_failed dead_replicas".split()
)
"""The templates whose lines stand for no record."""


@functools.cache
def reading(name: str) -> Reading:
    """The reader of a template's lines. Raises KeyError for a template that is neither a message nor listed here."""
    if name in RECORDS:
        return RECORDS[name]
    if ("controller", name) in rows():
        return message(name)
    if name not in NO_RECORD:
        raise KeyError(name)
    return SAYS
