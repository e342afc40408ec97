"""What happened in ZooKeeper, in plain words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.trace import details
from kafka_ctl.trace.model import controller_of, number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.views.wording import brokers, format_ids, listed, who

_OWNER = re.compile(r"\bof (\S+)")

CHANGES = {
    "NodeCreated": "was created",
    "NodeDeleted": "was deleted",
    "NodeDataChanged": "has new data",
    "NodeChildrenChanged": "has other children",
}
"""ZooKeeper's names of what a watch reports, in words."""
SESSION = ("connect", "disconnected", "reconnected", "expired", "closed")
"""What becomes of a session and its connection."""


def zk(records: Sequence[Record]) -> str:
    """An operation, or several of one kind."""
    first = records[0]
    actor, path = who(first.actor), first.path or ""
    if first.error:
        if path == "/controller" and first.action == "create":
            return f"{actor} tries to create /controller too, but it exists: the race is lost."
        return f"ZooKeeper refuses {actor}'s {first.action} of {_paths(records)}: {first.error}."
    if first.action in SESSION:
        return _session(first)
    if first.action == "delete":
        return _deleted(records, actor, path)
    if path == "/controller":
        named = controller_of(first.detail)
        if named != number_of(first.actor):
            by_hand = f"broker {named}" if named is not None else "nobody"
            return f"{actor} writes /controller by hand: it names {by_hand}, and nobody was elected."
        won = f"it names broker {named}, and the race is won" if named is not None else "the race is won"
        return f"{actor} creates the ephemeral znode /controller: {won}."
    if path == "/controller_epoch":
        return f"{actor} writes epoch {first.detail} to /controller_epoch: older controllers are stale now."
    if path.startswith("/brokers/ids/"):
        return f"{actor} registers: the ephemeral znode {_paths(records)} says that it is alive."
    if path.endswith("/state"):
        return _states(records, actor)
    if first.action == "create":
        made = "znodes" if len(records) > 1 else f"{first.target or ''} znode".strip()
        return f"{actor} creates the {made} {_paths(records)}."
    version = f" (now version {first.zk_version})" if len(records) == 1 else ""
    return f"{actor} writes {_paths(records)}{version}."


def _paths(records: Sequence[Record]) -> str:
    return listed(r.path for r in records)


def _session(record: Record) -> str:
    owner = who(found[1]) if (found := _OWNER.search(record.detail or "")) else who(record.actor)
    if record.action == "connect":
        return f"{who(record.actor)} opens a session with ZooKeeper."
    if record.action == "disconnected":
        return f"{who(record.actor)} has no connection to ZooKeeper any more."
    if record.action == "reconnected":
        return f"{who(record.actor)} has connected to ZooKeeper again."
    if record.action == "closed":
        return f"{owner}'s ZooKeeper session is closed, so its ephemeral znodes go."
    return f"{owner}'s ZooKeeper session expires, so its ephemeral znodes go."


def _deleted(records: Sequence[Record], actor: str, path: str) -> str:
    if path == "/controller":
        why = " with its owner's session" if records[0].actor == "zookeeper" else ""
        return f"{actor} deletes /controller{why}: there is no controller now."
    if path.startswith("/brokers/ids/"):
        return f"{actor} deletes {_paths(records)}: for the cluster, the broker is gone."
    return f"{actor} deletes {_paths(records)}."


def _states(records: Sequence[Record], actor: str) -> str:
    names = [(r.path or "").split("/") for r in records]
    subject = listed(f"{n[-4]}-{n[-2]}" if len(n) > 4 else n[-1] for n in names)
    if len(records) > 1:
        return f"{actor} writes the new state of {subject} to ZooKeeper."
    fields, version = details.json_object(records[0].detail), records[0].zk_version
    leader = "nobody leads" if fields.get("leader") == NO_LEADER else f"leader {fields.get('leader')}"
    isr, leader_epoch = format_ids(details.ids(fields.get("isr"))), fields.get("leader_epoch")
    rest = f"ISR {isr}, leader epoch {leader_epoch}, znode version {version}"
    return f"{actor} writes the state of {subject}: {leader}, {rest}."


def watch(records: Sequence[Record]) -> str:
    """Watches that fire for one change."""
    receivers = brokers(number_of(r.actor) for r in records)
    change = CHANGES.get(records[0].target or "", "changed")
    return f"Watches fire: ZooKeeper notifies {receivers} that {_paths(records)} {change}."
