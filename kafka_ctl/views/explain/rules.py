"""Explanations by the rules other than elections: tables, epochs, versions, the first create, broken invariants.

Separate from `why.py` because that one makes the answer from any rule.
A note of the controller is a decision at one point of `controller/`; its row in `trace/catalogue.txt` has the rule, the
outcome and the alternative, and so have requests, writes, watches and events. The controller's knowledge at a record is
read backwards from there. A broken invariant has its rule, the right behaviour, and the shortest chain of causes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from importlib import import_module
from inspect import getdoc, isfunction
from typing import Any

from kafka_ctl.brokers.replica_manager import ReplicaManager
from kafka_ctl.cluster import parse_int
from kafka_ctl.controller import failover
from kafka_ctl.controller.batch import Channel
from kafka_ctl.controller.partition_machine import PartitionStateMachine
from kafka_ctl.controller.replica_machine import ReplicaStateMachine
from kafka_ctl.controller.state_machine import StateMachine
from kafka_ctl.generation import Generation
from kafka_ctl.invariants.checker import INVARIANTS
from kafka_ctl.invariants.mechanisms import breaking
from kafka_ctl.lab.admin import Admin
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.requests import STORAGE_ERROR
from kafka_ctl.table import TransitionTable, short
from kafka_ctl.trace import details
from kafka_ctl.trace.catalogue import find, reason_of
from kafka_ctl.trace.model import LIVE
from kafka_ctl.trace.record import SET, Record, Recorder
from kafka_ctl.views.captions import READS, brief, brokers, by_controller, caption, format_ids, listed, process_of
from kafka_ctl.views.explain.elections import election
from kafka_ctl.views.explain.source import Finding, Function, citation, cited, finding, rules_of, texts_of, watched
from kafka_ctl.zookeeper.memory.tree import Tree
from kafka_ctl.zookeeper.znodes import ControllerEpochZNode

Rows = tuple[tuple[str, str], ...]


def knowledge(trace: Recorder, record: Record, topic: str | None = None, partition: int | None = None) -> Rows:
    """Inputs by name, as far as the records before this one have them."""
    topic, partition = topic or record.topic, record.partition if partition is None else partition
    found: dict[str, tuple[int, ...]] = {}
    gone: set[int] = set()
    for r in reversed(trace.records[: record.seq]):
        if (r.topic, r.partition) == (topic, partition) and topic is not None:
            if r.replicas is not None:
                found.setdefault("Assigned", r.replicas)
            if r.isr is not None and not r.error:
                found.setdefault("ISR", r.isr)
        if r.actor == record.actor and r.kind == "election":
            found.setdefault("Live", details.numbers(details.named(r.detail).get("live")))
        if r.actor == record.actor and r.kind == "controller":
            fields = details.fields(r)
            brokers_named = details.ids(fields.get("brokers"))
            if r.action in LIVE:
                found.setdefault("Live", details.ids(fields.get(LIVE[r.action])))
            elif r.action == "removed_from_shutting_down":
                gone.update(brokers_named)
            elif r.action == "all_shutting_down":
                found.setdefault("Shutting down", tuple(b for b in brokers_named if b not in gone))
            if r.action == "elected":
                break  # what an earlier time in office knew is forgotten
    order = ("Assigned", "ISR", "Live", "Shutting down")
    return tuple((name, format_ids(found[name])) for name in order if found.get(name))


def partition_named(name: object) -> tuple[str | None, int | None]:
    """The topic and number in `orders-0`; None twice for anything else."""
    topic, _, number = str(name).rpartition("-")
    plain = parse_int(number)
    return (topic, plain) if topic and plain is not None else (None, None)


@cache
def decider(name: str) -> Function:
    """The function that a rule names: `deletion.check_topics` of the controller, or `lab:admin.Admin` elsewhere."""
    folder, _, place = name.rpartition(":")
    module, _, path = place.partition(".")
    found: Any = reduce(getattr, path.split("."), import_module(f"kafka_ctl.{folder or 'controller'}.{module}"))
    return found


ANSWERS = rules_of("answer")
"""By the error of an answer, or by its request; the empty key stands for all others."""


def note(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """The decision behind a controller's note, with its inputs; None for a note that decides nothing."""
    row = find(record.kind, record.action)
    if row.rule is None:
        return None
    fields = {name: _word(value) for name, value in details.fields(record).items()}
    about = knowledge(trace, record, *partition_named(fields.get("partition")))
    knowledge_names = {name for name, _ in about}
    inputs = [(name.replace("_", " ").capitalize(), text) for name, text in fields.items()]
    inputs = inputs or [("Controller", str(record.broker))]
    shown = (*(row for row in inputs if row[0] not in knowledge_names), *about)
    return finding(row.rule, shown, tuple(map(decider, row.rule.by)), fields)


def refused_command(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """The refusal of the administrator's tool, or of the controller that it asked."""
    if record.action != "refused":
        return None
    asked = next((r for r in reversed(trace.causes(record.seq)[:-1].records) if r.actor == "admin"), None)
    given = (asked.detail or asked.topic or "") if asked else ""
    return Finding(
        rule="A command is carried out only if everything in it exists, and is allowed at that moment.",
        inputs=(("Command", asked.action if asked else "unknown"), ("Given", given or "nothing")),
        decided=f"refused, {record.error}: {record.detail}",
        otherwise=(("without that", "the command would have been carried out"),),
        by=(Admin.record_refusal,),
    )


def response(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """An answer that carries an error, or a connection that broke."""
    if record.error is None:
        return None
    rule = ANSWERS.get(record.error) or ANSWERS.get(record.action) or ANSWERS[""]
    lost = record.error == "DISCONNECTED"
    inputs = [("Request", record.action), ("Broker", str(record.broker))]
    inputs.append(("Response", "none: disconnected") if lost else ("Error", record.error))
    if record.detail:
        inputs.append(("Connection" if lost else "Said", brief(record.detail)))
    return finding(rule, inputs, (Channel.deliver,) if lost else ())


def _word(value: object) -> str:
    if isinstance(value, list):
        plain = all(isinstance(one, int) for one in value)
        return format_ids(value) if plain else listed((_word(one) for one in value), 6) or "none"
    return brief(value)


Found = Finding | None
REFUSED = rules_of("refused")
"""By ZooKeeper's refusal."""
FENCE = rules_of("fence")[""]
"""The rule of a write by a controller that has been replaced."""
FIRST = texts_of("race")
"""Messages of a controller about the race -> the outcome."""
IGNORED, STALE = rules_of("ignored"), rules_of("stale")


def partition(trace: Recorder, record: Record, generation: Generation) -> Found:
    """A partition's move: its row in the table, and the election behind it if there was one."""
    table = PARTITION[generation]
    if record.action == SET:
        states = "to Online if its leader is alive, to Offline if its leader is dead"
        rule = f"A new controller sets a partition {states}, and to New if no leader was ever elected."
        return _begun(trace, record, rule, PartitionStateMachine.startup)
    if not {record.source, record.target} <= set(table.states):
        return None
    vote = _election_of(trace, record)
    elected_none = record.error in ("StateChangeFailed", "NoReplicaOnline") and vote is not None and vote.leader is None
    if record.error and not elected_none:
        return _refused(trace, table, record, PartitionStateMachine)
    if record.action != "initialize":
        if vote is not None and (found := election(trace, vote, generation)) is not None:
            return found._replace(at=vote.seq)
        return _move(trace, table, record, PartitionStateMachine)
    inputs = (("Assigned", format_ids(record.replicas)), ("Live", format_ids(record.isr)))
    dead = [b for b in record.replicas or () if b not in (record.isr or ())]
    late = f"; {format_ids(tuple(dead))} would have been in the ISR if they had been live" if dead else ""
    first = (record.replicas or (None,))[0]
    led = "the preferred one" if record.leader == first else f"broker {first} is preferred, but dead"
    return Finding(
        rule="There is no state znode yet: the first live assigned replica leads, and all live ones are in the ISR.",
        inputs=inputs,
        decided=f"broker {record.leader} leads ({led}), ISR {format_ids(record.isr)}{late}",
        otherwise=((f"if broker {record.leader} had been dead", "the next live replica would lead"),),
        by=_performers(PartitionStateMachine, "initialize"),
    )


def replica(trace: Recorder, record: Record, generation: Generation) -> Found:
    """A replica's move: its row in the table and the method that makes it."""
    table = REPLICA[generation]
    if record.action == SET:
        rule = "to Online if its broker is alive, and else to ReplicaDeletionIneligible"
        return _begun(trace, record, f"A new controller sets a replica {rule}.", ReplicaStateMachine.startup)
    if not {record.source, record.target} <= set(table.states):
        return None
    if record.error:
        return _refused(trace, table, record, ReplicaStateMachine)
    return _move(trace, table, record, ReplicaStateMachine)


def _begun(trace: Recorder, record: Record, rule: str, method: Callable[..., object]) -> Finding:
    """The state with which a new controller's machine begins."""
    decided = f"its first state is {short(record.target or '')}"
    return Finding(rule=rule, inputs=knowledge(trace, record), decided=decided, otherwise=(), by=(method,))


def _performers(machine: type[StateMachine], action: str) -> tuple[Callable[..., object]]:
    """The method that makes a move: that of its action, or the one that makes all others."""
    return (machine.method_of(action) or machine.move,)


def _move(trace: Recorder, table: TransitionTable, record: Record, machine: type[StateMachine]) -> Finding:
    """The row of the table for a legal move, and the controller's knowledge."""
    row = table.find("", record.source or "", record.target or "")
    others = [short(state) for state in table.following(record.source or "") if state != record.target]
    legal = ", ".join(others) or "nothing else"
    return Finding(
        rule=f"{short(row.source)} → {short(row.target)} is a legal move ({row.action}): {row.effect}.",
        inputs=(("State", short(row.source)), ("Asked for", short(row.target)), *knowledge(trace, record)),
        decided=f"its state is {short(row.target)}",
        otherwise=(("also legal from here", legal),),
        by=_performers(machine, row.action),
        kafka=cited((machine.startup,)),
    )


def _refused(trace: Recorder, table: TransitionTable, record: Record, machine: type[StateMachine]) -> Finding:
    """A move that was not made: illegal, or legal and impossible."""
    start, wanted = record.source or "", record.target or ""
    following = ", ".join(short(state) for state in table.following(start)) or "nothing"
    found = Finding(
        rule=f"The move is legal, but it could not be carried out: {record.detail or record.error}",
        inputs=(("State", short(start)), ("Asked for", short(wanted)), *knowledge(trace, record)),
        decided=f"refused: its state stays {short(start)}",
        otherwise=(("without that", f"its state would be {short(wanted)}"),),
        by=(machine.move,),
        kafka=cited((machine.startup,)),
    )
    if table.allows(start, wanted):
        return found
    entered = ", ".join(map(short, table.previous(wanted))) or "nowhere"
    executed = watched(table.find, "", start, wanted)[1]
    rule = f"The table has no row {short(start)} → {short(wanted)}: {short(wanted)} is entered from {entered}."
    otherwise = (("legal from here", following),)
    return found._replace(rule=rule, otherwise=otherwise, by=(TransitionTable.find,), executed=executed)


def broker(trace: Recorder, record: Record, generation: Generation) -> Found:
    """The request that a broker ignored, or its part about one partition."""
    if record.action != "ignored":
        return None
    fields = details.named(record.detail)
    return _stale(record, fields) if "request" in fields else _ignored(record, fields)


def _ignored(record: Record, fields: dict[str, str]) -> Finding:
    """The reason why a LeaderAndIsr is not applied to one partition."""
    if record.error == STORAGE_ERROR:
        why, inputs = "disk", (("Broker", str(record.broker)), ("Error", record.error))
    elif "current" not in fields:
        why, inputs = "unassigned", (("Assigned", format_ids(record.replicas)), ("Broker", str(record.broker)))
    else:
        known = f"leader epoch {fields['current']}"
        why, inputs = "epoch", (("Requested", f"leader epoch {record.leader_epoch}"), ("Known", known))
    return finding(IGNORED[why], inputs, (ReplicaManager.problem,))


def _stale(record: Record, fields: dict[str, str]) -> Finding:
    """The epoch by which a broker refused a whole request."""
    name, latest = record.error if record.error in STALE else "", fields.get("latest", "?")
    given = fields.get("broker_epoch", str(record.controller_epoch))
    known = "Its own" if name else "Highest seen"
    inputs = ("Request", fields["request"]), ("Its epoch", given), (known, latest)
    return finding(STALE[name], inputs, (ReplicaManager.stale,), {"latest": latest})


def controller(trace: Recorder, record: Record, generation: Generation) -> Found:
    """The winner and the losers of a race for `/controller`, and the decisions of a controller in office."""
    if record.action not in FIRST:
        return note(trace, record, generation)
    return Finding(
        rule="The broker that creates the ephemeral znode /controller is the controller until its session ends.",
        inputs=(("Broker", str(record.broker if record.broker is not None else record.actor)),),
        decided=FIRST[record.action],
        otherwise=(("if another broker had come first", "that broker would be the controller"),),
        by=(failover.elect_once,),
    )


def refused_write(trace: Recorder, record: Record, generation: Generation) -> Found:
    """A write that ZooKeeper refused."""
    if record.error not in REFUSED or record.action in READS:
        return None
    rule = REFUSED[record.error]
    if record.action == "multi" and record.path == ControllerEpochZNode.path() and record.error == "BADVERSION":
        rule = FENCE
    inputs = [("Path", record.path or ""), ("Operation", record.action)]
    if record.zk_version is not None:
        inputs.append(("Version", str(record.zk_version)))
    return finding(rule._replace(outcome=f"{record.error}: {rule.outcome}"), inputs, (Tree.problem,))


def _election_of(trace: Recorder, record: Record) -> Record | None:
    """The election for the partition that this record follows from, if there was one."""
    same = (record.topic, record.partition, record.actor)
    for r in reversed(trace.records[: record.seq]):
        if (r.topic, r.partition, r.actor) == same and r.kind in ("election", "partition"):
            return r if r.kind == "election" else None
    return None


LONGEST = 160
"""The most characters of a record's detail in an answer."""


def act(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """The rule behind an action of a record; None if there is none."""
    rule = reason_of(record, record.kind == "zk" and by_controller(record, trace.records))
    if rule is None:
        return None
    return finding(rule, _inputs(record), tuple(map(decider, rule.by)), _values(record))


def _values(record: Record) -> dict[str, str]:
    """The names that a rule's outcome may use."""
    detail = record.detail or ""
    named = details.named(detail)
    count = named.get("partitions", "some")
    return {
        "who": process_of(record),
        "path": brief(record.path or ""),
        "target": brief(record.target or ""),
        "partition": brief(f"{record.topic}-{record.partition}") if record.topic is not None else _of_path(record.path),
        "topic": brief(record.topic or ""),
        "broker": str(record.broker),
        "leader": str(record.leader),
        "leader_epoch": str(record.leader_epoch),
        "isr": format_ids(record.isr),
        "receiver": brokers([record.broker]) if record.broker is not None else "every live broker",
        "count": f"{count} partition{'s' * (count != '1')}",
        "offset": named.get("offset", ""),
        "by": named.get("by", ""),
        "attempt": "" if "attempt" not in named else f" to attempt {named['attempt']}{_remaining(record)}",
        "failed": f", which failed: {record.error}" if record.error else "",
        "detail": detail if len(detail) <= LONGEST else detail[: LONGEST - 2] + " …",
    }


def _remaining(record: Record) -> str:
    """The partitions that could not be moved at an attempt to leave; nothing if there was no answer."""
    left = details.items(record.detail, "remaining")
    return "" if record.error else f": it still leads {listed(left)}" if left else ": no partition remains"


def _of_path(path: str | None) -> str:
    """The partition that a `state` znode is of."""
    parts = (path or "").split("/")
    return brief(f"{parts[3]}-{parts[5]}") if len(parts) > 6 else brief(path or "")


def _inputs(record: Record) -> tuple[tuple[str, str], ...]:
    """The names that come from the record itself."""
    of_partition = record.topic is not None and record.partition is not None
    rows = {
        "By": process_of(record),
        "Path": brief(record.path or ""),
        "Partition": brief(f"{record.topic}-{record.partition}") if of_partition else "",
        "Controller epoch": record.controller_epoch,
        "zkVersion": record.zk_version,
        "Error": record.error,
    }
    return tuple((name, str(value)) for name, value in rows.items() if value not in (None, ""))


# Broken invariants

NAMES = frozenset(invariant.name for invariant in INVARIANTS)
DECISIVE = ("brokers_changed", "ready", "error_moving_replicas", "error_moving_partitions", "not_sending")
"""The messages of controllers that decide whether a broker is notified."""
SHORT = 6
"""The most steps of a chain: its beginning and its end."""
SHOULD = texts_of("should")
"""Invariant -> what should have happened instead."""


def violation(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """A broken invariant: its sentence, the mechanism by which real Kafka breaks it, and the check that noticed it."""
    invariant = next((one for one in INVARIANTS if one.name == record.action), None)
    if invariant is None:
        return None
    mechanisms = [m for m in breaking(invariant.id) if m.ticket == record.error and m.field is not None]
    fixes = [(f"with {m.field}={not m.value}", "Kafka would not have broken it") for m in mechanisms]
    checks = [m for m in vars(invariant).values() if isfunction(m) and "broken" in m.__code__.co_names]
    text = (record.detail or "it is broken").removeprefix(f"{invariant.id}: ")
    return Finding(
        rule=" ".join(invariant.sentence.split()),
        inputs=(("Invariant", invariant.id), ("Known as", record.error or "no known bug of Kafka")),
        decided=text,
        otherwise=(("should have happened", SHOULD[invariant.id]), *fixes),
        by=tuple(checks),
        chain=_chain(trace, record),
        kafka=next(filter(None, (citation(getdoc(mechanism) or "") for mechanism in mechanisms)), ""),
    )


def _chain(trace: Recorder, record: Record) -> tuple[str, ...]:
    """The shortest chain to the violation: from the command to the last record that caused it."""
    anchor = _anchor(trace, record)
    if anchor is None:
        return ()
    links = list(dict.fromkeys(caption([cause], trace.records) for cause in trace.causes(anchor.seq)))
    return tuple(links if len(links) <= SHORT else [links[0], *links[1 - SHORT :]])


def _anchor(trace: Recorder, record: Record) -> Record | None:
    """The record that broke the invariant: the cause, or the last one about the subject of the violation."""
    if record.cause is not None:
        return trace.numbered(record.cause)
    return next((r for r in reversed(trace.records[: record.seq]) if _may_break(r, record)), None)


def _may_break(r: Record, violation: Record) -> bool:
    """True for a record about the subject of a violation."""
    broker = violation.broker
    if violation.topic is None:
        return r.kind in ("fault", "controller") and broker in (None, r.broker)
    if violation.partition is None:
        return r.topic == violation.topic and r.kind in ("replica", "partition", "controller")
    if r.kind == "zk" and r.path == f"/brokers/topics/{violation.topic}/partitions/{violation.partition}/state":
        return not r.error and r.action in ("create", "set")
    return broker is not None and (r.action in DECISIVE or (r.kind == "fault" and r.broker == broker))
