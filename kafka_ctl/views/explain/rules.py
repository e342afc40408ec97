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
from kafka_ctl.views.explain.source import Finding, Function, citation, cited, watched
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


ANSWERS = {
    "DISCONNECTED": (
        "A request whose connection breaks is sent again, until it is answered or its broker is no longer registered.",
        "the request is sent again; the requests queued behind it wait",
        ("if the broker answered", "the next request for it would be sent"),
    ),
    "NOT_ENOUGH_REPLICAS": (
        "With acks=all, a leader takes records only while its ISR has min.insync.replicas members.",
        "this broker has not written the records",
        ("with that many members in the ISR", "the records would have been written"),
    ),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": (
        "With acks=all, the ISR must still have min.insync.replicas members when all of them have the records.",
        "this broker has written the records, but does not acknowledge them",
        ("with that many members in the ISR", "the records would have been acknowledged"),
    ),
    "Produce": (
        "A leader acknowledges records when it has written them; with acks=all, when each member of the ISR has them.",
        "the records are not acknowledged; some brokers may have them all the same",
        ("without the error", "the records would have been acknowledged"),
    ),
    "": (
        "A broker answers a request with an error if it cannot carry it out, or if the request's epoch is too low.",
        "this broker has not carried out the request",
        ("without the error", "the request would have been carried out"),
    ),
}
"""Error of an answer, or its request -> rule, outcome, alternative; the empty key stands for all others."""


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
    return Finding(
        rule=row.rule.rule,
        inputs=(*(row for row in inputs if row[0] not in knowledge_names), *about),
        decided=_filled(row.rule.outcome, fields),
        otherwise=tuple((_filled(what, fields), then) for what, then in row.rule.otherwise),
        by=tuple(map(decider, row.rule.by)),
    )


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
    rule, decided, otherwise = ANSWERS.get(record.error) or ANSWERS.get(str(record.action)) or ANSWERS[""]
    lost = record.error == "DISCONNECTED"
    inputs = [("Request", record.action), ("Broker", str(record.broker))]
    inputs.append(("Response", "none: disconnected") if lost else ("Error", record.error))
    if record.detail:
        inputs.append(("Connection" if lost else "Said", brief(record.detail)))
    by = (Channel.deliver,) if lost else ()
    return Finding(rule=rule, inputs=tuple(inputs), decided=decided, otherwise=(otherwise,), by=by)


def _word(value: object) -> str:
    if isinstance(value, list):
        plain = all(isinstance(one, int) for one in value)
        return format_ids(value) if plain else listed((_word(one) for one in value), 6) or "none"
    return brief(value)


def _filled(text: str, fields: dict[str, str]) -> str:
    for name, value in fields.items():
        text = text.replace("{" + name + "}", value)
    return text


Found = Finding | None
REFUSED = {
    "BADVERSION": (
        "A conditional write succeeds only if the znode still has the version that was read.",
        "another client has written in between; this client must read the znode again",
        ("if no other client had written in between", "the write would have succeeded"),
    ),
    "NODEEXISTS": (
        "A znode is created once: the second create fails.",
        "another client created the znode first",
        ("if this client had come first", "the znode would belong to it"),
    ),
    "NONODE": (
        "A znode that does not exist cannot be written or deleted.",
        "the znode was deleted, or never existed",
        ("if the znode had existed", "the write would have succeeded"),
    ),
}
"""ZooKeeper's refusal -> rule, outcome, alternative."""
FIRST = {
    "elected": "this broker is the controller: /controller did not exist, and this broker created it first",
    "already_elected": "this broker is not the controller, and watches /controller",
    "other_elected": "this broker is not the controller: another broker created /controller first",
    "elected_and_resigned": "this broker is not the controller: the broker that was elected has resigned",
}
"""Messages of a controller about the race -> the outcome."""
FENCE = (
    "Every write of a controller is bound to the version of /controller_epoch that it was elected with (KAFKA-6082).",
    "the write fails, because another controller has been elected since; so this controller resigns",
    ("if this broker were still the controller", "the write would have succeeded"),
)
"""Rule, outcome and alternative of a write by a controller that has been replaced."""


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


STALE = {
    "STALE_BROKER_EPOCH": "it was meant for an earlier registration of this broker",
    "UNKNOWN_SERVER_ERROR": "the broker does not know its new registration yet (KAFKA-9839)",
}
"""The error of a request with another broker epoch -> why its epoch is another one."""


def broker(trace: Recorder, record: Record, generation: Generation) -> Found:
    """The request that a broker ignored, or its part about one partition."""
    if record.action != "ignored":
        return None
    fields = details.named(record.detail)
    return _stale(record, fields) if "request" in fields else _ignored(record, fields)


def _ignored(record: Record, fields: dict[str, str]) -> Finding:
    """The reason why a LeaderAndIsr is not applied to one partition."""
    if record.error == STORAGE_ERROR:
        rule = "A broker ignores LeaderAndIsr for a partition whose log directory has failed."
        inputs = (("Broker", str(record.broker)), ("Error", record.error))
        instead = "with a working log directory"
    elif "current" not in fields:
        rule = "A broker applies LeaderAndIsr to a partition only if the broker is one of the assigned replicas."
        inputs = (("Assigned", format_ids(record.replicas)), ("Broker", str(record.broker)))
        instead = "if it were an assigned replica"
    else:
        rule = "A broker applies LeaderAndIsr to a partition only if its leader epoch is higher than the known one."
        known = f"leader epoch {fields['current']}"
        inputs = (("Requested", f"leader epoch {record.leader_epoch}"), ("Known", known))
        instead = "with a higher leader epoch"
    return Finding(
        rule=rule,
        inputs=inputs,
        decided="this partition's part of the request is ignored",
        otherwise=((instead, "it would have led or followed as requested"),),
        by=(ReplicaManager.problem,),
    )


def _stale(record: Record, fields: dict[str, str]) -> Finding:
    """The epoch by which a broker refused a whole request."""
    latest = fields.get("latest", "?")
    if record.error in STALE:
        rule, known = "A broker refuses requests with another broker epoch than its own.", "Its own"
        why, instead = STALE[record.error], f"with broker epoch {latest}"
    else:
        rule = "A broker refuses requests whose controller epoch is lower than the highest it has seen."
        why, known = "it comes from a controller that has been replaced", "Highest seen"
        instead = f"with controller epoch {latest} or more"
    given = fields.get("broker_epoch", str(record.controller_epoch))
    return Finding(
        rule=rule,
        inputs=(("Request", fields["request"]), ("Its epoch", given), (known, latest)),
        decided=f"the whole request is refused: {why}",
        otherwise=((instead, "the broker would have carried it out"),),
        by=(ReplicaManager.stale,),
    )


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
    rule, decided, otherwise = REFUSED[record.error]
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


LONGEST = 160
"""The most characters of a record's detail in an answer."""


def act(trace: Recorder, record: Record, generation: Generation) -> Finding | None:
    """The rule behind an action of a record; None if there is none."""
    rule = reason_of(record, record.kind == "zk" and by_controller(record, trace.records))
    if rule is None:
        return None
    values = _values(record)
    return Finding(
        rule=rule.rule,
        inputs=_inputs(record),
        decided=_filled(rule.outcome, values).replace(" ()", ""),
        otherwise=tuple((_filled(what, values), _filled(then, values)) for what, then in rule.otherwise),
        by=tuple(map(decider, rule.by)),
    )


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
    rows = [("By", process_of(record))]
    if record.path:
        rows.append(("Path", brief(record.path)))
    if record.topic is not None and record.partition is not None:
        rows.append(("Partition", brief(f"{record.topic}-{record.partition}")))
    if record.controller_epoch is not None:
        rows.append(("Controller epoch", str(record.controller_epoch)))
    if record.zk_version is not None:
        rows.append(("zkVersion", str(record.zk_version)))
    if record.error:
        rows.append(("Error", record.error))
    return tuple(rows)


# Broken invariants

NAMES = frozenset(invariant.name for invariant in INVARIANTS)
DECISIVE = ("brokers_changed", "ready", "error_moving_replicas", "error_moving_partitions", "not_sending")
"""The messages of controllers that decide whether a broker is notified."""
SHORT = 6
"""The most steps of a chain: its beginning and its end."""
SHOULD = {
    "I1": "a replica whose log differs below the high watermark should have left the ISR, or have dropped what differs",
    "I2": "a dead or shrunk leader should have been replaced by a member of the ISR, or by no broker",
    "I3": "the high watermark should have stopped where the shortest log of the ISR ends",
    "I4": "a replica that has every acknowledged record should lead",
    "I5": "the follower should have dropped its records from the point on where the leader epochs differ",
    "I6": "what was once below the high watermark should have stayed in the leader's log",
    "I7": "the second controller should have failed to raise the epoch",
    "I8": "the write of the old controller should have been refused, and it should have resigned",
    "I9": "the broker, or the controller, should have refused what belongs to an older epoch",
    "I10": "the leader epoch should have risen with an election or a new assignment, and with nothing else",
    "I11": "numbers should only have risen as long as the topic exists",
    "I12": "the write should have kept one assigned replica in the ISR, and no other broker",
    "I13": "a move that the table does not have should have been refused",
    "I14": "a LeaderAndIsr with this leader and leader epoch should have reached the broker",
    "I15": "the leader should have waited until the broker is registered and not leaving",
    "I16": "the broker should have kept its copy",
    "I17": "each event should have been begun and ended before the next one",
    "I18": "an UpdateMetadata, or a new read of the znode, should have brought all to what ZooKeeper has",
    "I19": "the request should have been carried out, and a broker should act as controller",
    "I20": "the preferred replica should have been elected at one of the checks",
    "I21": "another member of the ISR should have been elected, or none",
    "I22": "the leader should have waited until the follower's log reaches the high watermark",
    "I23": "the controller should have elected a first leader, and written the state",
    "I24": "the leader should have waited for each member of its ISR before it raised its high watermark",
    "I25": "one broker should have kept the record",
    "I26": "the leader should have counted each member of the ISR that was written, confirmed or not",
    "I27": "the follower should have fetched from the leader that the last LeaderAndIsr names, in that leader epoch",
    "I28": "the broker should have answered, or the producer should have noticed that it cannot",
    "I29": "the follower should have fetched what its leader has",
}
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
    before = (r for r in reversed(trace.records[: record.seq]) if r.kind != "violation")
    path = f"/brokers/topics/{record.topic}/partitions/{record.partition}/state"
    for r in before:
        if record.topic is None:
            if r.kind in ("fault", "controller") and (record.broker is None or r.broker == record.broker):
                return r
        elif record.partition is None:
            if r.topic == record.topic and r.kind in ("replica", "partition", "controller"):
                return r
        elif (r.kind == "zk" and r.path == path and not r.error and r.action in ("create", "set")) or (
            record.broker is not None and (r.action in DECISIVE or (r.kind == "fault" and r.broker == record.broker))
        ):
            return r
    return None
