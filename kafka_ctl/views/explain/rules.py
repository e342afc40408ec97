"""Why was this move made, or refused? The rules beside elections: tables, epochs, versions, who came first."""

from __future__ import annotations

from collections.abc import Callable

from kafka_ctl.brokers.replica_manager import ReplicaManager
from kafka_ctl.controller import leadership
from kafka_ctl.controller.partition_machine import PartitionStateMachine
from kafka_ctl.controller.replica_machine import ReplicaStateMachine
from kafka_ctl.generation import Generation
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.table import TransitionTable, short
from kafka_ctl.trace import details
from kafka_ctl.trace.record import SET, Record, Recorder
from kafka_ctl.views.explain.controller_knowledge import knowledge
from kafka_ctl.views.explain.controller_log import note
from kafka_ctl.views.explain.elections import election
from kafka_ctl.views.explain.source import Finding, cited, watched
from kafka_ctl.views.wording import format_ids
from kafka_ctl.zookeeper.memory.tree import Tree
from kafka_ctl.zookeeper.znodes import ControllerEpochZNode

Found = Finding | None
READS = ("get", "exists", "children")
OTHERWISE = {
    "BADVERSION": ("had nobody written in between", "the write would have succeeded"),
    "NODEEXISTS": ("had it come first", "the znode would be its own"),
    "NONODE": ("had it existed", "the write would have succeeded"),
}
"""ZooKeeper's refusal -> on what condition it would have been none."""
FIRST = {
    "elected": "it is the controller: /controller did not exist, and its own create came first",
    "already_elected": "it stands by and watches /controller",
    "other_elected": "it stands by: another broker's create came first",
    "elected_and_resigned": "it stands by: who was elected is gone again",
}
"""What a controller says of the race -> what came of it."""
FENCE = (
    "Every write of a controller is bound to the version of /controller_epoch that it was elected with (KAFKA-6082).",
    "the write is fenced off; another controller has been elected since, so this one resigns",
    ("were it still the controller", "the write would have succeeded"),
)
"""Rule, outcome and alternative of a write that came from a controller of yesterday."""


def partition(trace: Recorder, record: Record, generation: Generation) -> Found:
    """A partition's move: its row in the table, and the election behind it if there was one."""
    table = PARTITION[generation]
    if record.action == SET:
        rule = (
            "A new controller takes a partition for Online where its leader is alive, for Offline where it is not, and"
        )
        return _begun(trace, record, f"{rule} for New where no leader was ever elected.", PartitionStateMachine.startup)
    if not {record.source, record.target} <= set(table.states):
        return None
    vote = _election_of(trace, record)
    if record.error:
        in_vain = record.error in ("StateChangeFailed", "NoReplicaOnline") and vote is not None and vote.leader is None
        if not in_vain:
            return _refused(trace, table, record, PartitionStateMachine.move)
    if record.action != "initialize":
        if vote is not None and (found := election(trace, vote, generation)) is not None:
            return found._replace(at=vote.seq)
        return _move(trace, table, record)._replace(by=(PartitionStateMachine.move,))
    inputs = (("Assigned", format_ids(record.replicas)), ("Live", format_ids(record.isr)))
    dead = [b for b in record.replicas or () if b not in (record.isr or ())]
    late = f"; {format_ids(tuple(dead))} would have been in the ISR, had they been live" if dead else ""
    first = (record.replicas or (None,))[0]
    led = "the preferred one" if record.leader == first else f"broker {first} is preferred, but dead"
    return Finding(
        rule="Nothing has been written yet: the first live assigned replica leads, all live ones are in sync.",
        inputs=inputs,
        decided=f"broker {record.leader} leads ({led}), ISR {format_ids(record.isr)}{late}",
        otherwise=((f"had broker {record.leader} been dead", "the next live replica would lead"),),
        by=(PartitionStateMachine.initialize,),
    )


def replica(trace: Recorder, record: Record, generation: Generation) -> Found:
    """A replica's move: its row in the table and the method that makes it."""
    table = REPLICA[generation]
    if record.action == SET:
        rule = (
            "A new controller takes a replica for Online where its broker is alive, else for ReplicaDeletionIneligible."
        )
        return _begun(trace, record, rule, ReplicaStateMachine.startup)
    if not {record.source, record.target} <= set(table.states):
        return None
    if record.error:
        return _refused(trace, table, record, ReplicaStateMachine.move)
    name = "start_following" if record.action == "create" else record.action
    return _move(trace, table, record)._replace(by=(ReplicaStateMachine.method_of(name),))


def _begun(trace: Recorder, record: Record, rule: str, method: Callable[..., object]) -> Finding:
    """The state with which a new controller's machine begins."""
    decided = f"it begins as {short(record.target or '')}"
    return Finding(rule=rule, inputs=knowledge(trace, record), decided=decided, otherwise=(), by=(method,))


def _move(trace: Recorder, table: TransitionTable, record: Record) -> Finding:
    """What the table says of a legal move, and what the controller knew."""
    row = table.find("", record.source or "", record.target or "")
    others = [short(state) for state in table.following(record.source or "") if state != record.target]
    legal = ", ".join(others) or "nothing else"
    return Finding(
        rule=f"{short(row.source)} → {short(row.target)} is a legal move ({row.action}): {row.effect}.",
        inputs=(("State", short(row.source)), ("Asked for", short(row.target)), *knowledge(trace, record)),
        decided=f"it is {short(row.target)}",
        otherwise=(("also legal from here", legal),),
    )


def _refused(trace: Recorder, table: TransitionTable, record: Record, method: Callable[..., object]) -> Finding:
    """A move that was not made: illegal, or legal and impossible; `method` makes the moves of this machine."""
    start, wanted = record.source or "", record.target or ""
    following = ", ".join(short(state) for state in table.following(start)) or "nothing"
    found = Finding(
        rule=f"The move is legal, but it could not be carried out: {record.detail or record.error}",
        inputs=(("State", short(start)), ("Asked for", short(wanted)), *knowledge(trace, record)),
        decided=f"refused: it stays {short(start)}",
        otherwise=(("without that", f"it would be {short(wanted)}"),),
        by=(method,),
        kafka=cited((method,)),
    )
    if table.allows(start, wanted):
        return found
    entered = ", ".join(map(short, table.previous(wanted))) or "nowhere"
    executed = watched(table.find, "", start, wanted)[1]
    rule = f"The table has no row {short(start)} → {short(wanted)}: {short(wanted)} is entered from {entered}."
    otherwise = (("legal from here", following),)
    return found._replace(rule=rule, otherwise=otherwise, by=(TransitionTable.find,), executed=executed)


def broker(trace: Recorder, record: Record, generation: Generation) -> Found:
    """What a broker ignored, and the epoch by which it knew that it was stale."""
    if record.action != "ignored":
        return None
    fields = details.named(record.detail)
    if "request" not in fields:
        rule = "A broker applies LeaderAndIsr to a partition only if its leader epoch is higher than the known one."
        knowledge = f"leader epoch {fields.get('current', '?')}"
        inputs = (("Requested", f"leader epoch {record.leader_epoch}"), ("Known", knowledge))
        if "current" not in fields:
            rule = "A broker applies LeaderAndIsr to a partition only if it is one of the assigned replicas."
            inputs = (("Assigned", format_ids(record.replicas)), ("Broker", str(record.broker)))
        decided, method = "this partition's part of the request is ignored", ReplicaManager.problem
        otherwise = (("with a higher leader epoch", "it would have led or followed as requested"),)
        return Finding(rule=rule, inputs=inputs, decided=decided, otherwise=otherwise, by=(method,))
    kind = "broker" if "broker_epoch" in fields else "controller"
    given = fields.get("broker_epoch", str(record.controller_epoch))
    return Finding(
        rule=f"A broker refuses requests whose {kind} epoch is lower than the highest it has seen.",
        inputs=(("Request", fields["request"]), ("Its epoch", given), ("Highest seen", fields.get("latest", "?"))),
        decided=(
            "the whole request is refused: it comes from a controller that has been replaced"
            if kind == "controller"
            else "the whole request is refused: it was meant for an earlier life of this broker"
        ),
        otherwise=((f"with {kind} epoch {fields.get('latest', '?')} or more", "it would have been obeyed"),),
        by=(ReplicaManager.stale,),
    )


def controller(trace: Recorder, record: Record, generation: Generation) -> Found:
    """Who became controller, who came too late, and what it decides in office."""
    if record.action not in FIRST:
        return note(trace, record, generation)
    return Finding(
        rule="Who creates the ephemeral znode /controller is the controller; it is theirs until their session ends.",
        inputs=(("Broker", str(record.broker if record.broker is not None else record.actor)),),
        decided=FIRST[record.action],
        otherwise=(("had another broker come first", "that one would be the controller"),),
        by=(leadership.elect_once,),
    )


def refused_write(trace: Recorder, record: Record, generation: Generation) -> Found:
    """A write that ZooKeeper refused."""
    rules = {
        "BADVERSION": ("A conditional write succeeds only if the znode still has the version that was read.",
                       "somebody has written in between; whoever wrote this must read again"),
        "NODEEXISTS": ("A znode is created once: the second create fails.", "somebody else came first"),
        "NONODE": ("What does not exist cannot be written or deleted.", "it is gone, or was never there"),
    }  # fmt: skip
    if record.error not in rules or record.action in READS:
        return None
    rule, decided = rules[record.error]
    otherwise = OTHERWISE[record.error]
    if record.action == "multi" and record.path == ControllerEpochZNode.path() and record.error == "BADVERSION":
        rule, decided, otherwise = FENCE
    inputs = [("Path", record.path or ""), ("Operation", record.action)]
    if record.zk_version is not None:
        inputs.append(("Version", str(record.zk_version)))
    return Finding(
        rule=rule,
        inputs=tuple(inputs),
        decided=f"{record.error}: {decided}",
        otherwise=(otherwise,),
        by=(Tree.problem,),
    )


def _election_of(trace: Recorder, record: Record) -> Record | None:
    """The election for the partition that this record follows from, if there was one."""
    same = (record.topic, record.partition, record.actor)
    for r in reversed(trace.records[: record.seq]):
        if (r.topic, r.partition, r.actor) == same and r.kind in ("election", "partition"):
            return r if r.kind == "election" else None
    return None
