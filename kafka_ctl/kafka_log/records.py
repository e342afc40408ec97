"""The record of the trace that a template's line stands for: the other half of reading, beside the templates.

A line of a message that controllers log (`trace/catalogue.txt`) stands for that message, with those of its fields that
the line prints. All other lines are in `RECORDS`, mostly from `records.txt`, which make columns of what a line holds,
or in `NO_RECORD`: they follow from what other records hold, and are read as text (action `says`).
Kafka 0.10.2.2, 2.0.1, 2.4.1: controller/*.scala, server/ReplicaManager.scala, server/MetadataCache.scala

Separate from `read.py` because it takes the values of a line by their names, and that one takes the text.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kafka_ctl.kafka_log.templates import Value
from kafka_ctl.partition import PARTITION
from kafka_ctl.paths import blocks
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


def row(kind: str, action: str, *taken: str) -> Reading:
    """Lines of this kind and action; columns are the partition, `detail` and those of `taken` that the line has.

    `epoch=controller_epoch` takes the field `epoch` as that column, `state` is `STATE`; `!` begins an error.
    """
    error = next((word[1:] for word in taken if word.startswith("!")), None)
    words = " ".join(STATE if word == "state" else word for word in taken if not word.startswith("!"))
    pairs = [(name, column or name) for name, _, column in (word.partition("=") for word in words.split())]
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


def _moved(name_of: Callable[[str, str], str]) -> Callable[[Values], Columns]:
    return lambda values: {"action": name_of(str(values["source"]), str(values["target"]))}


def _flag(field: str, word: str) -> Callable[[Values], Columns]:
    return lambda values: {"detail": word} if values.get(field) else {}


def _receivers(values: Values) -> Columns:
    brokers, offline = (details.listed(details.ids(values.get(name))) for name in ("brokers", "offline"))
    return {"detail": details.write(brokers=brokers, offline=offline or None)}


def _answered(values: Values) -> Columns:
    """The columns of an answer. 0.10's line does not name the request, so the action is `other`."""
    return {"action": values.get("api", "other"), "detail": details.write(correlation_id=values.get("correlation_id"))}


def _stops(values: Values) -> Columns:
    """The replicas that one request stops, or stops and deletes."""
    delete = "deleted" in values
    replicas = values["deleted" if delete else "kept"]
    assert isinstance(replicas, list)
    partitions = tuple((topic, number) for topic, number, _ in replicas)
    return {"partitions": partitions, "detail": "delete" if delete else None}


def message(action: str, *also: str, **fixed: Value) -> Reading:
    """A message of a controller's: those fields of its row in the catalogue that the line prints, and `also`."""
    known = (*rows()["controller", action].fields, *also) if ("controller", action) in rows() else also

    def make(values: Values) -> Columns:
        fields = {name: value for name, value in values.items() if name in known} | fixed
        epoch = {"controller_epoch": values["epoch"]} if "epoch" in values else {}
        return {"kind": "controller", "action": action, "detail": details.write_fields(fields), **epoch}

    return Reading(make, frozenset((*known, "epoch")))


def _with_partitions(values: Values) -> Values:
    """2.4 prints the target replicas of the partitions whose reassignment is removed."""
    targets = values.get("targets")
    return ({"partitions": list(targets)} if isinstance(targets, dict) else {}) | values


def _one_topic(values: Values) -> Columns:
    """0.10 prints one topic in a line."""
    return {"detail": details.write_fields({"topics": [values["topic"]]})} if "topic" in values else {}


SAYS = Reading(lambda _: {"action": "says"}, frozenset())
PARTITION_MOVED = beside(row("partition", "move", "source", "target", "state"), _moved(partition_move), "")
FAILURE = message("error_processing")
REMOVED, DISABLED = message("reassignment_removed"), message("deletion_disabled")
STOPS = beside(row("request", "StopReplica", "to=broker"), _stops, "deleted kept")
TABLE = [line.split() for (line,) in blocks(__package__, "records.txt")]
RECORDS: dict[str, Reading] = {name: row(*words) for name, *words in TABLE if name != "-"} | {
    **dict.fromkeys(("partition_new", "partition_online", "partition_moved"), PARTITION_MOVED),
    "replica_moved": beside(row("replica", "move", "source", "target", "replica=broker"), _moved(replica_move), ""),
    "sending_leader_and_isr": beside(
        row("request", "LeaderAndIsr", "state", "to=broker"), _flag("is_new", "is_new"), "is_new"
    ),
    "sending_metadata": beside(row("request", "UpdateMetadata", "state"), _receivers, "brokers offline"),
    **dict.fromkeys(("stopping_replicas", "stopping_deleted", "stopping_kept"), STOPS),
    "answered": beside(row("response", "other", "to=broker", "response=error"), _answered, "api correlation_id"),
    "stop_handling": beside(row("broker", "stop-replica"), _flag("delete", "delete"), "delete"),
    "stop_handled": beside(row("broker", "done"), _flag("delete", "delete"), "delete"),
    "partition_machine_started": beside(
        row("controller", "partition_states"),
        lambda values: {"detail": details.write_fields({"partitions": values["states"]})},
        "states",
    ),
    "isr_changes": message("isr_changes"),
    **dict.fromkeys(("error_in_brokers", "error_in_topics", "error_in_additions", "error_in_isr"), FAILURE),
    "reassignment_removed": Reading(lambda values: REMOVED.make(_with_partitions(values)), REMOVED.fields),
    **dict.fromkeys(("deletion_disabled", "deletion_disabled_at_failover"), beside(DISABLED, _one_topic, "topic")),
    "reassignment_progress_done": message("reassignment_progress", missing=[]),
}
"""By template, other than those of a controller's messages: the columns that the line holds."""
NO_RECORD = frozenset(word for words in TABLE if words[0] == "-" for word in words[1:])
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
