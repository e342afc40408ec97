"""Why was this move made, or refused? The rules beside elections: tables, epochs, versions, who came first."""

from __future__ import annotations

from inspect import isfunction
from typing import Any

from kafka_ctl.brokers.replica_manager import ReplicaManager
from kafka_ctl.controller import leadership
from kafka_ctl.controller.partitions import PartitionStateMachine
from kafka_ctl.controller.replicas import ReplicaStateMachine
from kafka_ctl.generation import Generation
from kafka_ctl.lab.invariants.checker import INVARIANTS
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.table import TransitionTable, short
from kafka_ctl.trace import Record, Trace
from kafka_ctl.views.phrases import ring
from kafka_ctl.views.source import source
from kafka_ctl.views.whyelection import election

Found = dict[str, Any] | None


def partition(trace: Trace, record: Record, generation: Generation) -> Found:
    """A partition's move: its row in the table, and the election behind it if there was one."""
    table = PARTITION[generation]
    if not {record.source, record.target} <= set(table.states):
        return None
    if record.error:
        vote = _election_of(trace, record)
        if record.error in ("StateChangeFailed", "NoReplicaOnline") and vote is not None and vote.leader is None:
            return election(trace, vote, generation)
        return _refused(table, record)
    if record.action == "elect":
        vote = _election_of(trace, record)
        return election(trace, vote, generation) if vote is not None else None
    if record.action == "initialize":
        machine = source(PartitionStateMachine._initialize, holding="LeaderAndIsr(live[0], live")
        inputs = (("Assigned", ring(record.replicas)), ("Live", ring(record.isr)))
        dead = [b for b in record.replicas or () if b not in (record.isr or ())]
        late = f"; {ring(tuple(dead))} would have been in the ISR, had they been live" if dead else ""
        first = (record.replicas or (None,))[0]
        otherwise = ((f"had broker {record.leader} been dead", "the next live replica would lead"),)
        led = "the preferred one" if record.leader == first else f"broker {first} is preferred, but dead"
        decided = f"broker {record.leader} leads ({led}), ISR {ring(record.isr)}{late}"
        return _move(table, record) | {
            "rule": "Nothing has been written yet: the first live assigned replica leads, all live ones are in sync.",
            "inputs": inputs, "decided": decided, "otherwise": otherwise, "source": machine,
        }  # fmt: skip
    return _move(table, record) | {"source": source(PartitionStateMachine._move, holding="self._moved(tp")}


def replica(trace: Trace, record: Record, generation: Generation) -> Found:
    """A replica's move: its row in the table and the method that makes it."""
    table = REPLICA[generation]
    if not {record.source, record.target} <= set(table.states):
        return None
    if record.error:
        return _refused(table, record)
    method = getattr(ReplicaStateMachine, f"_{record.action}", ReplicaStateMachine._move)
    if record.action == "create":
        method = ReplicaStateMachine._start_following
    return _move(table, record) | {"source": source(method, holding="self._moved(")}


def _move(table: TransitionTable, record: Record) -> dict[str, Any]:
    """What the table says of a legal move."""
    row = table.find("", record.source or "", record.target or "")
    others = [short(state) for state in table.following(record.source or "") if state != record.target]
    legal = ", ".join(others) or "nothing else"
    return {
        "rule": f"{short(row.source)} → {short(row.target)} is a legal move ({row.action}): {row.effect}.",
        "inputs": (("State", short(row.source)), ("Asked for", short(row.target))),
        "decided": f"it is {short(row.target)}",
        "otherwise": (("also legal from here", legal),),
    }


def _refused(table: TransitionTable, record: Record) -> dict[str, Any]:
    """A move that was not made: illegal, or legal and impossible."""
    start, wanted = record.source or "", record.target or ""
    inputs = (("State", short(start)), ("Asked for", short(wanted)))
    legal = table.allows(start, wanted)
    entered = ", ".join(map(short, table.previous(wanted))) or "nowhere"
    rule = f"The table has no row {short(start)} → {short(wanted)}: {short(wanted)} is entered from {entered}."
    if legal:
        rule = f"The move is legal, but it could not be carried out: {record.detail or record.error}"
    machine = PartitionStateMachine if table.name == "partition" else ReplicaStateMachine
    code = source(machine._failed, holding="error=") if legal else source(TransitionTable.find, holding="raise")
    following = ", ".join(short(state) for state in table.following(start)) or "nothing"
    return {
        "rule": rule, "inputs": inputs, "decided": f"refused: it stays {short(start)}",
        "otherwise": (("legal from here", following),), "source": code,
    }  # fmt: skip


def broker(trace: Trace, record: Record, generation: Generation) -> Found:
    """What a broker ignored, and the epoch by which it knew that it was stale."""
    if record.action != "ignored":
        return None
    told = dict(word.split("=", 1) for word in (record.detail or "").split() if "=" in word)
    if "request" not in told:
        rule = "A broker does what it is told of a partition only if the leader epoch is higher than the one it knows."
        known = f"leader epoch {told.get('current', '?')}"
        inputs = (("Told", f"leader epoch {record.leader_epoch}"), ("Known", known))
        if "current" not in told:
            rule = "A broker does what it is told of a partition only if it is among the assigned replicas."
            inputs = (("Assigned", ring(record.replicas)), ("Broker", str(record.broker)))
        decided, method = "this partition's part of the request is ignored", ReplicaManager._problem
        otherwise = (("with a higher leader epoch", "it would have led or followed as told"),)
        return {"rule": rule, "inputs": inputs, "decided": decided, "otherwise": otherwise,
                "source": source(method, holding="error, detail")}  # fmt: skip
    kind = "broker" if "broker_epoch" in told else "controller"
    given = told.get("broker_epoch", str(record.controller_epoch))
    return {
        "rule": f"A broker refuses requests whose {kind} epoch is lower than the highest it has seen.",
        "inputs": (("Request", told["request"]), ("Its epoch", given), ("Highest seen", told.get("latest", "?"))),
        "decided": "the whole request is refused: it comes from a controller that has been replaced"
        if kind == "controller" else "the whole request is refused: it was meant for an earlier life of this broker",
        "otherwise": ((f"with {kind} epoch {told.get('latest', '?')} or more", "it would have been obeyed"),),
        "source": source(ReplicaManager._stale, holding=f"request.{kind}_epoch <"),
    }  # fmt: skip


def controller(trace: Trace, record: Record, generation: Generation) -> Found:
    """Who became controller, and who came too late."""
    told = {
        "elected": "it is the controller: /controller did not exist, and its own create came first",
        "already_elected": "it stands by and watches /controller",
        "other_elected": "it stands by: another broker's create came first",
        "elected_and_resigned": "it stands by: who was elected is gone again",
    }
    if record.action not in told:
        return None
    return {
        "rule": "Who creates the ephemeral znode /controller is the controller; it is theirs until their session ends.",
        "inputs": (("Broker", str(record.broker if record.broker is not None else record.actor)),),
        "decided": told[record.action],
        "otherwise": (("had another broker come first", "that one would be the controller"),),
        "source": source(leadership._elect, holding=f'"{record.action}"'),
    }  # fmt: skip


def refused_write(trace: Trace, record: Record, generation: Generation) -> Found:
    """A write that ZooKeeper refused."""
    rules = {
        "BADVERSION": ("A conditional write succeeds only if the znode still has the version that was read.",
                       "somebody has written in between; whoever wrote this must read again"),
        "NODEEXISTS": ("A znode is created once: the second create fails.", "somebody else came first"),
        "NONODE": ("What does not exist cannot be written or deleted.", "it is gone, or was never there"),
    }  # fmt: skip
    if record.error not in rules:
        return None
    rule, decided = rules[record.error]
    inputs = [("Path", record.path or ""), ("Operation", record.action)]
    if record.zk_version is not None:
        inputs.append(("Version", str(record.zk_version)))
    return {"rule": rule, "inputs": tuple(inputs), "decided": f"{record.error}: {decided}"}


def violation(trace: Trace, record: Record, generation: Generation) -> Found:
    """A broken invariant: what must be true, how real Kafka comes to break it, and the check that saw it."""
    invariant = next((one for one in INVARIANTS if one.name == record.action), None)
    if invariant is None:
        return None
    ways = [way for way in invariant.breakable if way.ticket == record.error and way.field != "any"]
    checks = [m for m in vars(invariant).values() if isfunction(m) and "broken" in m.__code__.co_names]
    return {
        "rule": " ".join(invariant.sentence.split()),
        "inputs": (("Invariant", invariant.id), ("Known as", record.error or "nothing that Kafka does")),
        "decided": (record.detail or "it is broken").removeprefix(f"{invariant.id}: "),
        "otherwise": tuple((f"with {way.field}={not way.value}", "Kafka would have kept to it") for way in ways),
        "source": source(*checks, holding="self.broken("),
    }


def _election_of(trace: Trace, record: Record) -> Record | None:
    """The last election for the partition before this record, by the same controller."""
    same = (record.topic, record.partition, record.actor)
    for r in reversed(trace.records[: record.seq]):
        if r.kind == "election" and (r.topic, r.partition, r.actor) == same:
            return r
    return None
