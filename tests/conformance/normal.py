"""One text for what a controller did, whoever did it: Kafka, as its logs tell, or the kit, as its trace tells.

Both come as items with the columns of a trace record. Lines of one kind that follow each other are one set, as
brokers and partitions go through Scala's hash sets in no particular order: a set is written sorted, and equal
requests to several brokers as one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

from kafka_ctl.table import short
from kafka_ctl.trace import SET
from kafka_ctl.zookeeper.znodes import ControllerZNode, TopicPartitionStateZNode

FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "0.10": {
        "partition": ("leader",),
        "LeaderAndIsr": ("leader", "isr", "leader_epoch", "controller_epoch"),
        "UpdateMetadata": ("leader", "isr", "leader_epoch", "controller_epoch"),
    },
    "": {
        "partition": ("leader", "isr", "leader_epoch", "zk_version"),
        "LeaderAndIsr": ("leader", "isr", "leader_epoch", "controller_epoch", "zk_version", "replicas", "detail"),
        "UpdateMetadata": ("leader", "isr", "leader_epoch", "controller_epoch", "zk_version", "replicas", "detail"),
    },
}
"""What the log of a generation tells about a partition's state; later ones tell more than 0.10."""

CONTROL = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
"""The requests a controller sends."""

LOGGED = ("brokers_changed", "topics_changed", "shutting_down_broker", "isr_changes", "deletion_completed")
"""Lines of the controller's own log that are compared."""


def facts(items: Iterable[Any], generation: str) -> list[str]:
    """The items that are compared, as text: transitions, requests and a few lines of the controller's own log."""
    lines: list[str] = []
    reported: list[Fact] = []
    for fact in (fact for item in items for fact in _facts(item, generation)):
        if fact[0] != ("logged", "isr_changes") or not _in_isr_changes(reported):
            reported.append(fact)
    for (kind, *_), run in groupby(reported, key=lambda fact: fact[0]):
        lines += _written(kind, list(run))
    return lines


Tree = Mapping[str, tuple[bytes, int]]
"""Znodes: data and version by path."""

Fact = tuple[tuple[str, ...], Any]
"""What makes a set (kind, and the new state if it is a move), and one member of it."""


def _in_isr_changes(reported: Sequence[Fact]) -> bool:
    """Whether the last line was about ISR changes too: several rounds of them are written as one."""
    before = next((kind for kind, _ in reversed(reported) if kind != ("UpdateMetadata",)), None)
    return before == ("logged", "isr_changes")


def _facts(item: Any, generation: str) -> list[Fact]:
    fields = FIELDS.get(generation, FIELDS[""])
    match item.kind:
        case "partition" | "replica" if item.action == SET:
            return []  # Kafka logs no line for the states with which a new controller begins
        case "partition" if item.source is None:
            return []  # 0.10's first line about an error while a partition is created; the second names both states
        case "partition":
            text = _move(f"partition {item.topic}-{item.partition}", item)
            if item.action != "refuse":
                text += _columns(item, ("replicas",) if item.target == "NewPartition" else fields["partition"])
            return [(("partition", item.target), (item.topic, item.partition, text))]
        case "replica":
            return [(("replica", item.target), (item.topic, item.partition, _move("{}", item), item.broker))]
        case "request" if item.target is None:
            return _request(item, fields)
        case "controller":
            return _logged(item)
    return []


def _request(item: Any, fields: Mapping[str, tuple[str, ...]]) -> list[Fact]:
    if item.action == "StopReplica":
        several = getattr(item, "partitions", None)
        named = [(item.topic, item.partition)] if several is None else several
        delete = " delete" if item.detail == "delete" else ""
        return [(("StopReplica",), (f"{t}-{p}{delete}", (t, p), item.broker)) for t, p in named]
    text = f"{item.topic}-{item.partition}" + _columns(item, [f for f in fields[item.action] if f != "detail"])
    if item.action == "LeaderAndIsr":
        new = " new" if "detail" in fields[item.action] and "is_new" in (item.detail or "").split() else ""
        return [(("LeaderAndIsr",), (text + new, (item.topic, item.partition), item.broker))]
    words = dict(word.split("=") for word in item.detail.split())
    offline = f" offline={words['offline']}" if "offline" in words and "detail" in fields[item.action] else ""
    brokers = [int(b) for b in words["brokers"].split(",") if b]
    return [(("UpdateMetadata",), (text + offline, (item.topic, item.partition), b)) for b in brokers or [None]]


def _logged(item: Any) -> list[Fact]:
    if item.action not in (*LOGGED, "elected", "epoch_incremented"):
        return []
    words = json.loads(item.detail) if item.detail else {}
    if item.action in ("elected", "epoch_incremented") and "epoch" in words:
        return [(("logged", "elected"), f"{item.actor} elected, epoch {words['epoch']}")]
    if item.action not in LOGGED:
        return []  # the epoch stands in another line
    keys = [
        k
        for k in ("new", "dead", "bounced", "deleted", "live", "broker", "topic")
        if k in words and (words[k] or k != "bounced")
    ]
    if item.action in ("topics_changed", "brokers_changed") and not any(words[k] for k in keys if k != "live"):
        return []
    reported = " ".join(f"{k}={','.join(map(str, v)) if isinstance(v := words[k], list) else v}" for k in keys)
    return [(("logged", item.action), " ".join(filter(None, [item.action.replace("_", " "), reported])))]


def _move(subject: str, item: Any) -> str:
    refused = "refused: " if item.action == "refuse" else ""
    return f"{refused}{subject} {short(item.source)} -> {short(item.target)}"


def _columns(item: Any, fields: Iterable[str]) -> str:
    text = ""
    for name in fields:
        value = getattr(item, name)
        if value is not None:
            text += f" {name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
    return text


def _written(kind: str, run: Sequence[Fact]) -> list[str]:
    members = [member for _, member in run]
    if kind == "logged":
        return members
    if kind == "partition":
        return [text for *_, text in sorted(members, key=lambda m: m[:2])]
    lines = []
    if kind == "replica":
        for (topic, partition, move), several in groupby(sorted(members), key=lambda m: m[:3]):
            lines.append(move.format(f"replica {topic}-{partition} on {','.join(str(m[3]) for m in several)}"))
        return lines
    members.sort(key=lambda m: (m[1], m[0], -1 if m[2] is None else m[2]))
    for (text, _), several in groupby(members, key=lambda m: m[:2]):
        brokers = ",".join(str(m[2]) for m in several if m[2] is not None)
        lines.append(f"{kind} to {brokers or 'nobody'}: {text}")
    return lines


# ZooKeeper

COMPARED = (
    "/admin/",
    "/brokers/topics",
    "/config/topics/",
    "/config/brokers/",
    "/controller",
    "/isr_change_notification/",
)


ADMIN = ("/admin", "/admin/delete_topics")
"""Where administrators leave their requests."""


def znodes(tree: Tree) -> list[str]:
    """The znodes that are compared, with their versions: brokers by id only, and no timestamps."""
    lines = []
    for path, (data, version) in sorted(tree.items()):
        if path.startswith("/brokers/ids/"):
            lines.append(path)
        elif path.startswith(COMPARED):
            lines.append(f"{path} version={version} {_content(path, data)}".rstrip())
    return lines


def _content(path: str, data: bytes) -> str:
    """The data; JSON that a Scala map or a clock had a hand in is put in order."""
    text = data.decode()
    if path == "/controller":
        return f"brokerid={json.loads(text)['brokerid']}"
    if path.startswith("/brokers/topics/") and text.startswith("{") and not path.endswith("/state"):
        with suppress(json.JSONDecodeError):
            return json.dumps(_sorted(json.loads(text)), separators=(",", ":"))
    return text


def _sorted(value: Any) -> Any:
    """Maps from partition numbers in numeric order; the order of other keys is Kafka's."""
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda kv: int(kv[0])) if all(k.isdigit() for k in value) else value.items()
        return {k: _sorted(v) for k, v in pairs}
    return value


def changed_states(before: Tree, after: Tree) -> list[str]:
    """The partitions whose `state` znode is another one than before, or gone."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        if not path.endswith("/state") or before.get(path) == after.get(path):
            continue
        topic, _, number = path.split("/")[3:6]
        if path not in after:
            lines.append(f"state {topic}-{number} gone")
            continue
        s = TopicPartitionStateZNode.decode(after[path][0], after[path][1], (topic, int(number)))
        lines.append(f"state {topic}-{number}" + _columns(s, s._fields))
    return lines


def changed_requests(before: Tree, after: Tree) -> list[str]:
    """The assignments of topics that were there before, and what administrators wait for, where they changed."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        parent = path.rpartition("/")[0]
        assignment = parent == "/brokers/topics" and path in before
        if before.get(path) != after.get(path) and (assignment or (parent in ADMIN and path not in ADMIN)):
            text = f"version={after[path][1]} {_content(path, after[path][0])}" if path in after else "gone"
            lines.append(f"znode {path} {text}".rstrip())
    return lines


def joined_out_of_order(before: Tree, after: Tree) -> list[int]:
    """Replicas that joined the ISR of a partition in another order than ascending; empty when there are none."""
    for path in sorted(before.keys() & after.keys()):
        if path.endswith("/state"):
            old, new = (TopicPartitionStateZNode.decode(*tree[path]) for tree in (before, after))
            joined = [broker for broker in new.isr if broker not in old.isr]
            if joined != sorted(joined):
                return joined
    return []


def answered(broker: int, requests: Sequence[str]) -> str:
    """The controller's requests a broker has answered, in order, runs of the same one counted."""
    runs = [(name, len(list(run))) for name, run in groupby(requests)]
    return f"answered by {broker}: " + (" ".join(n if c == 1 else f"{n}*{c}" for n, c in runs) or "nothing")


def controller(tree: Tree) -> int | None:
    """The broker that `/controller` names."""
    return ControllerZNode.decode(tree["/controller"][0]) if "/controller" in tree else None


def wire(answers: Mapping[int, Sequence[str]], items: Iterable[Any]) -> list[str]:
    """What each broker answered, without the UpdateMetadata that ends each round of ISR changes.

    Whether two leaders' changes reach the controller in one round or in two is a matter of milliseconds.
    """
    rounds = sum(1 for item in items if item.kind == "controller" and item.action == "isr_changes")
    lines = []
    for broker, names in sorted(answers.items()):
        kept = list(names)
        for _ in range(rounds):
            if kept and kept[-1] == "UpdateMetadata":
                kept.pop()
        lines.append(answered(broker, kept))
    return lines


# Clients


def outcome(values: Iterable[int], leader: int, offset: int | None, error: str | None) -> str:
    """What became of records that were sent."""
    became = error or ("not answered" if offset is None else f"offset {offset}")
    return f"produced {','.join(map(str, values))} by {leader}: {became}"


def elections(answers: Mapping[str, str]) -> list[str]:
    """What became of each election that was asked for."""
    return [f"election of {partition}: {answer}" for partition, answer in sorted(answers.items())]
