"""What can be done to the things in a picture: each action is one call of the lab, made from what a click gives.

A thing has the id of its part in the picture: `broker:2`, `partition:orders-0`, `zookeeper`; the whole cluster has
the empty one, and `tool` is Kafka's reassignment tool, which stands beside the picture. What a lab cannot do is not
offered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafka_ctl.cluster import parse_int
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.lab import topic_config
from kafka_ctl.lab.story import Command

Given = Mapping[str, str]
Call = tuple[tuple[Any, ...], dict[str, Any]]


class Field(NamedTuple):
    """Something to fill in; `kind` is `number`, `text`, `optional` (may be left empty), `lines`, `choice` (of what
    `default` lists, with `|` between), or `partition`, `replicas`, `topic`, `brokers`, `plan`, which have suggestions.
    """

    name: str
    label: str
    kind: str
    default: str = ""


class Action(NamedTuple):
    """One button: a method of the lab, what it is called, what it means, and the call it makes."""

    do: str
    label: str
    hint: str
    call: Callable[[str, Given], Call]
    fields: tuple[Field, ...] = ()
    when: str = ""
    """The state that the broker must be in, `up` or `down`; empty when it does not matter."""
    command: str = ""
    """The method of the lab where it is not called like the button."""

    @property
    def method(self) -> str:
        return self.command or self.do


def _number(given: Given, name: str, kind: type = int) -> Any:
    """A number that was filled in."""
    text = given.get(name, "").strip()
    try:
        return kind(text)
    except ValueError:
        raise BadInput(f"{name.replace('_', ' ')} cannot be {text!r}; it is a number") from None


def _seconds(given: Given) -> Any:
    value = _number(given, "seconds", float)
    return int(value) if value == int(value) else value


def _partition(name: str) -> tuple[str, int]:
    topic, _, number = name.strip().rpartition("-")
    plain = parse_int(number)
    if not topic or plain is None:
        raise BadInput(f"{name!r} names no partition; one is called like orders-0")
    return topic, plain


def _end(given: Given) -> int | str:
    """A broker, or `zookeeper`."""
    text = given.get("other", "").strip()
    return text if text == "zookeeper" else _number(given, "other")


def _replicas(given: Given, name: str = "replicas") -> list[int]:
    parts = given.get(name, "").replace(",", " ").split()
    plain = [parse_int(word) for word in parts]
    if not plain or None in plain:
        raise BadInput(f"the {name} {given.get(name, '')!r} cannot be read; write broker ids such as 2, 3, 1")
    return [broker for broker in plain if broker is not None]


def _maybe(given: Given, name: str) -> int | None:
    """A number that may be left out."""
    return _number(given, name) if given.get(name, "").strip() else None


def _some(given: Given, *names: str) -> dict[str, Any]:
    """The numbers that were not left out."""
    return {name: value for name in names if (value := _maybe(given, name)) is not None}


def _choice(given: Given, field: Field) -> str:
    """What was chosen; the first when nothing was."""
    known = field.default.split("|")
    chosen = given.get(field.name, "") or known[0]
    if chosen not in known:
        raise UnknownName(field.name, chosen, known)
    return chosen


def _one(thing: str, given: Given) -> Call:
    return (int(thing),), {}


def _none(thing: str, given: Given) -> Call:
    return (), {}


def _lag(thing: str, given: Given) -> Call:
    return (int(thing), *_partition(given.get("partition", ""))), {}


def _cut(thing: str, given: Given) -> Call:
    ends, way = (int(thing), _end(given)), _choice(given, WAY)
    return (ends[::-1] if way == "only what it receives" else ends), {} if way == "both ways" else {"one_way": True}


def _lose(thing: str, given: Given) -> Call:
    return (int(thing), _end(given)), {"applied": True} if _choice(given, WHEN) == "after it is applied" else {}


def _produce(thing: str, given: Given) -> Call:
    acks = _choice(given, ACKS)
    size = {"size": _number(given, "size")} if given.get("size", "0").strip() not in ("", "0") else {}
    counted = {"records": _number(given, "records"), "acks": int(acks) if acks.isdecimal() else acks}
    return _partition(thing), counted | size


def _alter(thing: str, given: Given) -> Call:
    """A setting of a broker, or of a partition's topic."""
    if thing.isdecimal():
        return ("brokers", int(thing), {_choice(given, RATE): given.get("rate", "").strip() or None}), {}
    value = given.get("value", "").strip() or None
    return ("topics", _partition(thing)[0], {_choice(given, SETTING): value}), {}


def _create(thing: str, given: Given) -> Call:
    numbers = {name: _number(given, name) for name in ("partitions", "replication_factor")}
    return (given.get("topic", "").strip(),), numbers


def _join(thing: str, given: Given) -> Call:
    rack = given.get("rack", "").strip()
    return (_maybe(given, "broker"),), {"rack": rack} if rack else {}


def _meta(thing: str, given: Given) -> Call:
    cluster = given.get("cluster", "").strip()
    who = int(thing), _choice(given, DISK), _maybe(given, "broker_id")
    return (*who, cluster) if cluster else who, {}


def _propose(thing: str, given: Given) -> Call:
    spread = {} if _choice(given, RACKS) == "over racks" else {"rack_aware": False}
    return (given.get("topics", "").replace(",", " ").split(), _replicas(given, "brokers")), spread


def _execute(thing: str, given: Given) -> Call:
    return (given.get("plan", ""),), _some(given, "throttle", "replica_alter_log_dirs_throttle")


def _lay(thing: str, given: Given) -> Call:
    """A plan that leaves the replicas where they are, and moves one of them to another log directory."""
    (topic, number), broker, replicas = _partition(thing), _number(given, "broker"), _replicas(given)
    dirs = [_choice(given, DISK) if replica == broker else "any" for replica in replicas]
    entry = {"topic": topic, "partition": number, "replicas": replicas, "log_dirs": dirs}
    return (json.dumps({"version": 1, "partitions": [entry]}, separators=(",", ":")),), {}


OTHER = Field("other", "Broker, or zookeeper", "text", "zookeeper")
SECONDS = Field("seconds", "Seconds", "number", "20")
WAY = Field("way", "Lost is", "choice", "both ways|only what it sends|only what it receives")
WHEN = Field("when", "Breaks", "choice", "before it arrives|after it is applied")
ACKS = Field("acks", "Acks", "choice", "all|1|0")
DISK = Field("directory", "Log directory", "choice", "/d0|/d1")
RATE = Field("key", "Rate", "choice", "leader.replication.throttled.rate|follower.replication.throttled.rate")
SETTING = Field("key", "Setting", "choice", "|".join(topic_config.CHECKS))
RACKS = Field("racks", "Spread", "choice", "over racks|without regard to racks")
PLAN = Field("plan", "Plan", "plan")
BROKER = (
    Action("kill", "Kill", "its process dies; ZooKeeper notices when the session times out", _one, when="up"),
    Action("start", "Start", "its process comes up and registers", _one, when="down"),
    Action("start_empty", "Start, disks replaced", "it comes up without any record",
           lambda thing, given: ((int(thing),), {"empty": True}), when="down", command="start"),
    Action("shutdown", "Controlled shutdown", "it asks the controller to take its leaderships, then stops", _one,
           when="up"),
    Action("stop_within", "Stop within…", "the same, and SIGKILL after so many seconds",
           lambda thing, given: ((int(thing),), {"grace": _seconds(given)}), (SECONDS,), "up", "shutdown"),
    Action("bounce", "Bounce", "it restarts faster than its session times out", _one, when="up"),
    Action("pause", "Pause…", "its process stops for some seconds, as in a long garbage collection",
           lambda thing, given: ((int(thing),), {"seconds": _seconds(given)}), (SECONDS,), "up"),
    Action("expire_session", "Expire session", "ZooKeeper expires its session although it is alive", _one, when="up"),
    Action("disconnect", "Network partition…", "it and another broker, or ZooKeeper, no longer reach one another",
           _cut, (OTHER, WAY), "up"),
    Action("delay", "Network delay…", "what it sends to another broker, or to ZooKeeper, takes longer",
           lambda thing, given: ((int(thing), _end(given), _seconds(given)), {}),
           (Field("other", "To broker, or zookeeper", "text", "1"), Field("seconds", "Seconds", "number", "2")), "up"),
    Action("lose", "Lose a request…", "its connection breaks at its next request or write", _lose, (OTHER, WHEN), "up"),
    Action("fail_log_dir", "Disk fails", "one of its two log directories is gone", _one, when="up"),
    Action("lag", "Lag…", "its replica of a partition falls behind and leaves the ISR", _lag,
           (Field("partition", "Partition", "partition"),), "up"),
    Action("slow", "Slow fetches…", "its replicas fetch so much later, and leave the ISR when that is too late",
           lambda thing, given: ((int(thing), _seconds(given)), {}), (SECONDS,), "up"),
    Action("catch_up", "Catch up", "its replicas catch up with their leaders", _one, when="up"),
    Action("alter_config", "Throttle…", "a rate in bytes a second for its throttled replicas; empty removes it", _alter,
           (RATE, Field("rate", "Bytes/s", "text", "10000000"))),
    Action("set_broker_id", "Change broker.id…", "another id in its configuration, or none",
           lambda thing, given: ((int(thing), _maybe(given, "broker_id")), {}),
           (Field("broker_id", "broker.id", "optional"),), "down"),
    Action("set_meta", "Change meta.properties…", "what a disk says of its owner; no id removes the file", _meta,
           (DISK, Field("broker_id", "broker.id", "optional"), Field("cluster", "cluster.id", "optional")), "down"),
)  # fmt: skip
PARTITION = (
    Action("produce", "Produce…", "a producer sends so many records to its leader", _produce,
           (Field("records", "Records", "number", "1"), Field("size", "Bytes of each", "optional"), ACKS)),
    Action("reassign", "Reassign…", "give it other replicas; the first is preferred as leader",
           lambda thing, given: (({_partition(thing): _replicas(given)},), {}),
           (Field("replicas", "Replicas", "replicas"),)),
    Action("execute_reassignment", "To another disk…", "a copy moves between the log directories of its broker", _lay,
           (Field("replicas", "Replicas", "replicas"), Field("broker", "Copy on broker", "number", "1"), DISK)),
    Action("cancel_reassignment", "Cancel reassignment", "back to the replicas it had",
           lambda thing, given: (([_partition(thing)],), {})),
    Action("alter_config", "Change setting…", "a setting of its topic, on every broker; empty removes it", _alter,
           (SETTING, Field("value", "Value", "text", "true"))),
    Action("elect_preferred", "Elect preferred", "its first replica leads again",
           lambda thing, given: (([_partition(thing)],), {})),
    Action("elect_leaders", "Elect unclean", "where nobody leads, a replica outside the ISR may; records may be lost",
           lambda thing, given: (("unclean", [_partition(thing)]), {})),
    Action("add_partitions", "Add partitions…", "its topic gets more partitions",
           lambda thing, given: ((_partition(thing)[0], _number(given, "total")), {}),
           (Field("total", "Partitions in total", "number"),)),
    Action("delete_topic", "Delete topic", "all replicas of its topic are deleted",
           lambda thing, given: ((_partition(thing)[0],), {})),
)  # fmt: skip
ZOOKEEPER = (
    Action("delete_controller", "Delete /controller", "the controller resigns, and a new one is elected", _none),
    Action("write_znode", "Write a znode…", "by hand, whatever belongs there",
           lambda thing, given: ((given.get("path", ""), given.get("data", "")), {}),
           (Field("path", "Path", "text", "/controller"), Field("data", "Data", "text"))),
    Action("delete_znode", "Delete a znode…", "by hand", lambda thing, given: ((given.get("path", ""),), {}),
           (Field("path", "Path", "text", "/controller"),)),
    Action("stop_zookeeper", "Stop", "it answers no request; no session expires meanwhile", _none),
    Action("start_zookeeper", "Start", "it answers again", _none),
)  # fmt: skip
CLUSTER = (
    Action("create_topic", "Create topic…", "so many partitions, each with so many replicas", _create,
           (Field("topic", "Topic", "text", "orders"), Field("partitions", "Partitions", "number", "4"),
            Field("replication_factor", "Replication factor", "number", "3"))),
    Action("elect_preferred", "Elect all preferred", "every partition is led by its first replica again", _none),
    Action("add_broker", "Add broker…", "one more joins the cluster; without an id it gets a generated one", _join,
           (Field("broker", "Its id", "optional"), Field("rack", "Rack", "optional"))),
    Action("at_once", "Tools at once…", "several administrators at the same moment, one command a line",
           lambda thing, given: (([line for line in given.get("commands", "").splitlines() if line.strip()],), {}),
           (Field("commands", "Commands", "lines", "delete_topic orders\nadd_partitions orders 9"),)),
    Action("heal", "Heal", "pauses, network faults and lags end", _none),
)  # fmt: skip
TOOL = (
    Action("generate_reassignment", "Propose…", "--generate: where topics could lie instead", _propose,
           (Field("topics", "Topics", "topic"), Field("brokers", "On brokers", "brokers"), RACKS)),
    Action("execute_reassignment", "Execute…", "--execute: start to move as the plan says", _execute,
           (PLAN, Field("throttle", "Throttle, bytes/s", "optional"),
            Field("replica_alter_log_dirs_throttle", "Between disks, bytes/s", "optional"))),
    Action("verify_reassignment", "Verify…", "--verify: how far it is; throttles go when it is done",
           lambda thing, given: ((given.get("plan", ""),), {}), (PLAN,)),
    Action("list_reassignments", "List", "--list: what is moving", _none),
    Action("cancel_reassignment", "Cancel all", "everything that moves goes back to the replicas it had", _none),
)  # fmt: skip
TIME = (
    Action("step", "Step", "on to the next moment in which something happens", _none),
    Action("settle", "Until quiet", "on until nothing is under way", _none),
    Action("run_for", "For…", "so many seconds pass", lambda thing, given: ((_seconds(given),), {}), (SECONDS,)),
    Action(
        "run_until_violation", "Until a violation", "on until an invariant is violated, or nothing is under way", _none
    ),
)
ACTIONS = {"broker": BROKER, "partition": PARTITION, "zookeeper": ZOOKEEPER, "": CLUSTER, "tool": TOOL, "time": TIME}
"""Kind of thing -> what can be done to it; `time` has what lets time pass."""


NOT_CLICKED = {"order": "its numbers come from kafka-ctl explore; nobody sees which events are pending"}
"""Commands that are only called, each with the reason."""
MEMORY_ONLY = {"step", "run_until_violation", "pause", "stop_zookeeper", "start_zookeeper"}
"""What needs virtual time, or a ZooKeeper that is only simulated."""


def menu(lab: Any) -> dict[str, list[dict[str, Any]]]:
    """The actions this lab has, as data for the browser."""
    hidden = set() if lab.zookeeper == "memory" else MEMORY_ONLY
    if not lab.generation.reassignment.incremental_reassignment:
        hidden = {*hidden, "cancel_reassignment", "list_reassignments"}
    if not lab.generation.election.elects_on_request:
        hidden = {*hidden, "elect_leaders"}
    return {
        kind: [
            {"do": a.do, "label": a.label, "hint": a.hint, "when": a.when, "fields": [f._asdict() for f in a.fields]}
            for a in actions
            if hasattr(lab, a.method)
            and a.do not in hidden
            and (a.call is not _lay or lab.generation.log_dirs.moves_between_log_dirs)
        ]
        for kind, actions in ACTIONS.items()
    }


def command(thing: str, do: str, given: Given) -> Command:
    """The call for one click; UnknownName for an action that the thing does not have, BadInput for a bad field."""
    kind, _, name = thing.partition(":")
    known = {action.do: action for action in (*ACTIONS.get(kind, ()), *TIME)}
    if do not in known:
        raise UnknownName(f"action on {thing or 'the cluster'}", do, known)
    if kind == "broker" and parse_int(name) is None:
        raise BadInput(f"{thing!r} is no broker")
    return Command(known[do].method, *known[do].call(name, given))
