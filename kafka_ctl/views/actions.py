"""What can be done to the things in a picture: each action is one call of the lab, made from what a click gives.

A thing has the id of its part in the picture: `broker:2`, `partition:orders-0`, `zookeeper`; the whole cluster has
the empty one. An action whose method the lab does not have is not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.lab.story import Command
from kafka_ctl.zookeeper.fields import digits

Given = Mapping[str, str]
Call = tuple[tuple[Any, ...], dict[str, Any]]


class Field(NamedTuple):
    """Something to fill in; `kind` is `number`, `text`, `choice` (of what `default` lists, with `|` between), or
    `partition` and `replicas`, which have suggestions."""

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
    plain = digits(number)
    if not topic or plain is None:
        raise BadInput(f"{name!r} names no partition; one is called like orders-0")
    return topic, plain


def _end(given: Given) -> int | str:
    """A broker, or `zookeeper`."""
    text = given.get("other", "").strip()
    return text if text == "zookeeper" else _number(given, "other")


def _replicas(given: Given) -> list[int]:
    words = given.get("replicas", "").replace(",", " ").split()
    plain = [digits(word) for word in words]
    if not plain or None in plain:
        raise BadInput(f"the replicas {given.get('replicas', '')!r} cannot be read; write broker ids such as 2, 3, 1")
    return [broker for broker in plain if broker is not None]


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
    return (ends[::-1] if way == "only what it hears" else ends), {} if way == "both ways" else {"one_way": True}


def _lose(thing: str, given: Given) -> Call:
    return (int(thing), _end(given)), {"applied": True} if _choice(given, WHEN) == "after it is applied" else {}


def _produce(thing: str, given: Given) -> Call:
    acks = _choice(given, ACKS)
    return _partition(thing), {"records": _number(given, "records"), "acks": int(acks) if acks.isdecimal() else acks}


def _create(thing: str, given: Given) -> Call:
    numbers = {name: _number(given, name) for name in ("partitions", "replication_factor")}
    return (given.get("topic", "").strip(),), numbers


OTHER = Field("other", "Broker, or zookeeper", "text", "zookeeper")
SECONDS = Field("seconds", "Seconds", "number", "20")
WAY = Field("way", "Lost is", "choice", "both ways|only what it sends|only what it hears")
WHEN = Field("when", "Breaks", "choice", "before it arrives|after it is applied")
ACKS = Field("acks", "Acks", "choice", "all|1|0")
BROKER = (
    Action("kill", "Kill", "its process dies; ZooKeeper notices when the session times out", _one, when="up"),
    Action("start", "Start", "its process comes up and registers", _one, when="down"),
    Action("shutdown", "Controlled shutdown", "it asks the controller to take its leaderships, then stops", _one,
           when="up"),
    Action("bounce", "Bounce", "it restarts faster than its session times out", _one, when="up"),
    Action("pause", "Pause…", "it hears and says nothing, as in a long garbage collection",
           lambda thing, given: ((int(thing),), {"seconds": _seconds(given)}), (SECONDS,), "up"),
    Action("expire_session", "Expire session", "ZooKeeper forgets it although it is alive", _one, when="up"),
    Action("disconnect", "Cut off…", "it and another broker, or ZooKeeper, no longer reach one another",
           _cut, (OTHER, WAY), "up"),
    Action("delay", "Slow way…", "what it sends to another broker, or to ZooKeeper, takes longer",
           lambda thing, given: ((int(thing), _end(given), _seconds(given)), {}),
           (Field("other", "To broker, or zookeeper", "text", "1"), Field("seconds", "Seconds", "number", "2")), "up"),
    Action("lose", "Lose a request…", "its connection breaks at its next request or write", _lose, (OTHER, WHEN), "up"),
    Action("fail_log_dir", "Disk fails", "one of its two log directories is gone", _one, when="up"),
    Action("lag", "Lag…", "its copy of a partition falls behind and leaves the ISR", _lag,
           (Field("partition", "Partition", "partition"),), "up"),
    Action("slow", "Slow fetches…", "its copies follow so much later, and leave the ISR when that is too late",
           lambda thing, given: ((int(thing), _seconds(given)), {}), (SECONDS,), "up"),
    Action("catch_up", "Catch up", "its copies keep up again", _one, when="up"),
)  # fmt: skip
PARTITION = (
    Action("produce", "Produce…", "a producer sends so many records to its leader", _produce,
           (Field("records", "Records", "number", "1"), ACKS)),
    Action("reassign", "Reassign…", "give it other replicas; the first is preferred as leader",
           lambda thing, given: (({_partition(thing): _replicas(given)},), {}),
           (Field("replicas", "Replicas", "replicas"),)),
    Action("cancel_reassignment", "Cancel reassignment", "back to the replicas it had",
           lambda thing, given: (([_partition(thing)],), {})),
    Action("elect_preferred", "Elect preferred", "its first replica leads again",
           lambda thing, given: (([_partition(thing)],), {})),
    Action("add_partitions", "More partitions…", "its topic gets more partitions",
           lambda thing, given: ((_partition(thing)[0], _number(given, "total")), {}),
           (Field("total", "Altogether", "number"),)),
    Action("delete_topic", "Delete topic", "all copies of its topic are removed",
           lambda thing, given: ((_partition(thing)[0],), {})),
)  # fmt: skip
ZOOKEEPER = (
    Action("delete_controller", "Delete /controller", "the controller resigns, and all brokers compete again", _none),
    Action("write_znode", "Write a znode…", "by hand, whatever belongs there",
           lambda thing, given: ((given.get("path", ""), given.get("data", "")), {}),
           (Field("path", "Path", "text", "/controller"), Field("data", "Data", "text"))),
    Action("delete_znode", "Delete a znode…", "by hand", lambda thing, given: ((given.get("path", ""),), {}),
           (Field("path", "Path", "text", "/controller"),)),
    Action("stop_zookeeper", "Stop", "it answers nobody; no session expires meanwhile", _none),
    Action("start_zookeeper", "Start", "it answers again", _none),
)  # fmt: skip
CLUSTER = (
    Action("create_topic", "Create topic…", "so many partitions, so many copies of each", _create,
           (Field("topic", "Topic", "text", "orders"), Field("partitions", "Partitions", "number", "4"),
            Field("replication_factor", "Copies", "number", "3"))),
    Action("elect_preferred", "Elect all preferred", "every partition is led by its first replica again", _none),
    Action("add_broker", "Add broker…", "one more joins the cluster",
           lambda thing, given: ((_number(given, "broker"),), {}), (Field("broker", "Its id", "number", ""),)),
    Action("heal", "Heal", "pauses, cuts and delays end, and followers keep up", _none),
)  # fmt: skip
TIME = (
    Action("step", "Step", "on to the next moment in which something happens", _none),
    Action("settle", "Until quiet", "on until nothing is under way", _none),
    Action("run_for", "For…", "so many seconds pass", lambda thing, given: ((_seconds(given),), {}), (SECONDS,)),
    Action("run_until_violation", "Until a rule breaks", "on until a rule is broken, or all is quiet", _none),
)
ACTIONS = {"broker": BROKER, "partition": PARTITION, "zookeeper": ZOOKEEPER, "": CLUSTER, "time": TIME}
"""Kind of thing -> what can be done to it; `time` has what lets time pass."""


MEMORY_ONLY = {"step", "run_until_violation", "pause", "stop_zookeeper", "start_zookeeper"}
"""What needs virtual time, or a ZooKeeper that is only simulated."""


def menu(lab: Any) -> dict[str, list[dict[str, Any]]]:
    """The actions this lab has, as data for the browser."""
    hidden = set() if lab.zookeeper == "memory" else MEMORY_ONLY
    if not lab.generation.incremental_reassignment:
        hidden = {*hidden, "cancel_reassignment"}
    return {
        kind: [
            {"do": a.do, "label": a.label, "hint": a.hint, "when": a.when, "fields": [f._asdict() for f in a.fields]}
            for a in actions
            if hasattr(lab, a.do) and a.do not in hidden
        ]
        for kind, actions in ACTIONS.items()
    }


def command(thing: str, do: str, given: Given) -> Command:
    """The call for one click; UnknownName for an action that the thing does not have, BadInput for a bad field."""
    kind, _, name = thing.partition(":")
    known = {action.do: action for action in (*ACTIONS.get(kind, ()), *TIME)}
    if do not in known:
        raise UnknownName(f"action on {thing or 'the cluster'}", do, known)
    if kind == "broker" and digits(name) is None:
        raise BadInput(f"{thing!r} is no broker")
    return Command(do, *known[do].call(name, given))
