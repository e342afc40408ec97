"""Lines that no template writes, by `other_releases.txt`: those of other releases, 0.8.0 to 3.9, and a few more.

Separate from `read.py` because that one reads lines by whatever forms there are, and these are made of prints that the
generations of the kit do not have.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from kafka_ctl.kafka_log.records import Columns, Reading, message, partition_move, reading, replica_move, row
from kafka_ctl.kafka_log.shapes import NUMBERS, PARTITION, REQUESTS, Value, partitions, topic_partition
from kafka_ctl.kafka_log.templates import Text
from kafka_ctl.partition import NEW, NON_EXISTENT, OFFLINE, ONLINE
from kafka_ctl.paths import text_in
from kafka_ctl.trace import details

Reader: TypeAlias = Callable[[re.Match[str]], Columns]
"""Turns a line that a pattern has matched into columns."""

# controller.log

OWN = {"broker_lost": row("broker", "lost", "broker"), "topics_retried": message("retrying_deletion", "topics")}


@functools.cache
def _sections() -> dict[str, list[tuple[str, str]]]:
    """The rows of each section of the table: what stands before the text or pattern, and that."""
    table = text_in(__package__, "other_releases.txt")
    found: dict[str, list[tuple[str, str]]] = {}
    for line in filter(None, table.splitlines()):
        if line.startswith("section "):
            rows = found[line.removeprefix("section ")] = []
        elif not line.startswith("#"):
            name, text = re.split(" {2,}", line, maxsplit=1)
            rows.append((name, text))
    return found


def texts() -> Iterator[tuple[Text, Reading]]:
    """The texts and what they are records of."""
    for name, text in _sections()["texts"]:
        yield Text(text, {}), OWN.get(name) or reading(name)


# state-change.log, the controllers

TP = rf"(?P<tp>{PARTITION.pattern})"
MOVE = r"from (?P<source>\w+) to (?P<target>\w+)"
NODE = r"(?:id:|Node\()?(?P<broker>-?\d+)(?:[,; ].*)?$"
"""A broker as releases before 0.10 print it: `2`, `id:2,host:h,port:9092` or `Node(2, h, 9092)`."""
SHORT = {"NotExists": NON_EXISTENT, "New": NEW, "Online": ONLINE, "Offline": OFFLINE}
"""Kafka 0.8.0's names of partition states, and those of the trace."""
OFFLINE_REPLICAS = re.compile(r"offlineReplicas=\[([\d, ]*)\]")


def _decided(kind: str, action: str, error: str | None, found: re.Match[str]) -> Columns:
    """A controller's transition, election or error: the columns that the pattern's groups are named after."""
    groups = {name: text for name, text in found.groupdict().items() if text}
    columns: Columns = {"kind": kind, "action": action, **_subject(groups), **_state(groups.get("state", ""))}
    columns |= {name: int(groups[name]) for name in ("leader", "broker") if name in groups}
    if "replicas" in groups:
        columns["replicas"] = _ids(groups["replicas"])
    moves = {name: SHORT.get(groups[name], groups[name]) for name in ("source", "target") if name in groups}
    if action == "move":
        name_of = partition_move if kind == "partition" else replica_move
        columns["action"] = name_of(moves.get("source"), moves["target"])
    if error := groups.get("error", error):
        columns["error"] = error
    if "correlation" in groups:
        columns["detail"] = details.write(correlation_id=groups["correlation"])
    elif "detail" in groups:
        columns["detail"] = groups["detail"]
    return columns | moves


def _leader_and_isr(found: re.Match[str]) -> Columns:
    new = {"detail": "is_new"} if "isNew=true" in (found["state"] or "") else {}
    return _decided("request", "LeaderAndIsr", None, found) | new


def _update_metadata(found: re.Match[str]) -> Columns:
    receivers = [int(id) for id in NUMBERS.findall(found["brokers"])]
    alone: Columns = {} if found["several"] else {"broker": receivers[0]}
    brokers = sorted(receivers) if found["several"] else receivers[:1]
    gone = OFFLINE_REPLICAS.search(found["state"] or "")
    detail = details.write(brokers=details.listed(brokers), offline=gone[1].replace(" ", "") or None if gone else None)
    return _decided("request", "UpdateMetadata", None, found) | alone | {"detail": detail}


def _sent(action: str, found: re.Match[str]) -> Columns:
    """A request as it goes out, with so many partitions."""
    groups = found.groupdict()
    brokers = sorted(map(int, NUMBERS.findall(groups["brokers"]))) if groups.get("brokers") else None
    count = int(groups["n"]) + int(groups.get("m") or 0)
    to = None if brokers is None else details.listed(brokers)
    detail = details.write(partitions=count, delete=groups.get("delete") or None, brokers=to)
    broker: Columns = {"broker": int(groups["broker"])} if groups.get("broker") else {}
    return {"kind": "request", "action": action, "target": "sent", "detail": detail, **broker}


def _old_response(found: re.Match[str]) -> Columns:
    """0.8.2's: `LeaderAndIsrResponse(7,Map(...),0)`."""
    code = found["code"]
    error = {"error": None if code in (None, "0") else code}
    return _decided("response", REQUESTS.get(found["api"], found["api"]), None, found) | error


def _reassignment_sent(found: re.Match[str]) -> Columns:
    lists = {name: found[name] for name in ("replicas", "adding", "removing")}
    fields: dict[str, Value] = {"partition": partitions(found["partition"])[0], **_state(found["state"])}
    fields.pop("controller_epoch", None)
    fields |= {name: [int(id) for id in NUMBERS.findall(text)] for name, text in lists.items()}
    return message("reassignment_told").make(fields)


def _offline(found: re.Match[str]) -> Columns:
    fields: dict[str, Value] = {"partitions": partitions(found["partitions"]), "broker": int(found["broker"])}
    return message("replicas_offline").make(fields)


# state-change.log, the brokers

_FROM = r"(?:received )?from controller -?\d+ epoch (?P<epoch>\d+)"
_ID = r"correlation ?[iI]d (?P<id>\d+)"

REASONS = (
    (re.compile(r"leader epoch|old controller|controller epoch \d+ is old"), "STALE_CONTROLLER_EPOCH"),
    (re.compile(r"not in assigned replica list"), "UNKNOWN_TOPIC_OR_PARTITION"),
    (re.compile(r"offline log directory|disk error|storage e"), "KAFKA_STORAGE_ERROR"),
    (re.compile(r"unavailable|cannot be found in live"), "LEADER_NOT_AVAILABLE"),
)
"""The trace's errors, by the reasons that sentences give."""
_INTEGERS = {"leader": "leader", "leader_epoch": "leader_epoch", "epoch": "controller_epoch", "partition": "partition"}


def _done(action: str, found: re.Match[str]) -> Columns:
    groups = {name: text for name, text in found.groupdict().items() if text}
    if action == "says":
        return {"action": action, **_subject(groups)}
    columns: Columns = {"action": action.rstrip("!"), "kind": "broker"}
    columns |= {column: int(groups[name]) for name, column in _INTEGERS.items() if name in groups}
    columns |= _state(groups.get("state", "")) | _subject(groups)
    if "topic" in groups:
        columns["topic"] = groups["topic"]
    if verb := groups.get("verb", "").lower():
        columns["action"] = verb if action == "verb" else f"become-{verb}"
    why = groups.get("why", "")
    if action == "starts":
        columns |= _starts(why)
    if "broker" in groups:
        columns |= {"actor": f"broker-{groups['broker']}", "broker": int(groups["broker"])}
    flags = details.write("delete" * (groups.get("delete") == "true"), why.strip())
    count = details.write(partitions=groups.get("n"))
    columns["detail"] = " ".join(filter(None, (count, flags))) or columns.get("detail")
    if action.endswith("!"):
        columns["error"] = next((error for reason, error in REASONS if reason.search(why)), "Refused")
    return columns


def _subject(groups: dict[str, str]) -> Columns:
    """The partition that a line is about, if it names one."""
    if "tp" not in groups:
        return {}
    topic, partition = topic_partition(groups["tp"])
    return {"topic": topic, "partition": partition}


def _starts(text: str) -> Columns:
    """`from offset 5 with partition epoch 7 and high watermark 5, ISR [1,2], ... Current leader is 2. ...`"""
    columns: Columns = {"isr": _ids(isr[1])} if (isr := re.search(r"ISR \[([\d, ]*)\]", text)) else {}
    columns |= {"zk_version": int(epoch[1])} if (epoch := re.search(r"partition epoch (\d+)", text)) else {}
    return columns | ({"leader": int(leader[1])} if (leader := re.search(r"Current leader is (-?\d+)", text)) else {})


# Any print of a partition's state

STATE_NUMBERS = {
    "leader": re.compile(r'\b[Ll]eader"?[:=]"?(-?\d+)'),
    "leader_epoch": re.compile(r'[lL]eader_?[eE]poch"?[:=]"?(-?\d+)'),
    "zk_version": re.compile(r"(?:[zZ]kVersion|partitionEpoch)[:=](-?\d+)"),
    "controller_epoch": re.compile(r"[cC]ontrollerEpoch[:=](\d+)"),
}
STATE_IDS = {
    "isr": re.compile(r'(?:ISR"?:"?|isr"?[:=](?:List\()?\[?)((?:-?\d+(?:, ?(?=-?\d))?)*)'),
    "replicas": re.compile(r"\b(?:replicas=\[?|AllReplicas:)((?:\d+(?:, ?(?=\d))?)*)"),
}
NAMED = re.compile(r"topicName='([\w.-]+)', partitionIndex=(\d+)")
MEMBERS = re.compile(r"isrWithBrokerEpoch=List\(((?:BrokerState\([^)]*\)(?:, )?)*)\)")


def _ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, NUMBERS.findall(text)))


def _state(text: str) -> Columns:
    """Leader, ISR, epochs, version, replicas and name out of a print of a state, and whether StopReplica deletes."""
    if not text:
        return {}
    columns: Columns = {k: int(m[1]) for k, p in STATE_NUMBERS.items() if (m := p.search(text))}
    columns |= {k: _ids(m[1]) for k, p in STATE_IDS.items() if (m := p.search(text))}
    if (members := MEMBERS.search(text)) is not None:
        columns["isr"] = tuple(int(id) for id in re.findall(r"brokerId=(\d+)", members[1]))
    if (named := NAMED.search(text)) is not None:
        columns |= {"topic": named[1], "partition": int(named[2])}
    return columns | ({"detail": "delete"} if "deletePartition=true" in text else {})


REQUESTED: dict[str, Reader] = {
    "leader_and_isr": _leader_and_isr,
    "update_metadata": _update_metadata,
    "reassignment_sent": _reassignment_sent,
    "old_response": _old_response,
    "error_received": lambda found: _decided("response", found["api"], None, found),
    "replicas_offline": _offline,
}
"""The readers of the section `requested`."""
PARTS = {"{TP}": TP, "{MOVE}": MOVE, "{NODE}": NODE, "{FROM}": _FROM, "{ID}": _ID}


def forms() -> Iterator[tuple[str, Reader]]:
    """The patterns of sentences in state-change.log and their readers; the first that matches is taken."""
    for section, read in (("decided", _decided_by), ("requested", _requested_by), ("brokers", _done_by)):
        for name, pattern in _sections()[section]:
            yield re.sub(r"\{[A-Z]+\}", lambda part: PARTS[part[0]], pattern), read(name)


def _decided_by(name: str) -> Reader:
    kind, action, error = name.split()
    return partial(_decided, kind, action, None if error == "-" else error)


def _requested_by(name: str) -> Reader:
    reader, _, action = name.partition(" ")
    return partial(_sent, action) if action else REQUESTED[reader]


def _done_by(action: str) -> Reader:
    return partial(_done, action)
