"""The forms of the log lines that are compared with the kit, and what each says in the trace's columns.

One form covers several generations where they differ only in a capital letter or in the print of a state.
Kafka 0.10.2.2, 2.0.1, 2.4.1, 2.8.2: controller/*.scala, server/ReplicaManager.scala, the calls of their loggers
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA

Reader = Callable[[re.Match[str]], dict[str, Any]]
"""Turns a line that a pattern has matched into columns."""

TP = r"(?P<tp>\[[\w.-]+,\d+\]|[\w.-]+-\d+)"
"""A partition in either spelling."""

REQUESTS = {
    "LEADER_AND_ISR": "LeaderAndIsr",
    "UPDATE_METADATA": "UpdateMetadata",
    "STOP_REPLICA": "StopReplica",
}
"""Requests as a line about a response calls them, and as the trace does."""


# Values


def topic_partition(text: str) -> tuple[str, int]:
    """`[orders,0]` or `orders-0` as ("orders", 0)."""
    topic, _, number = text.strip("[]").rpartition("," if text.startswith("[") else "-")
    return topic, int(number)


def numbers(text: str) -> tuple[int, ...]:
    """All numbers in a text, in order."""
    return tuple(map(int, re.findall(r"-?\d+", text)))


NUMBER = {
    "leader": re.compile(r'\b[Ll]eader"?[:=](-?\d+)'),
    "leader_epoch": re.compile(r'[lL]eader_?[eE]poch"?[:=](-?\d+)'),
    "zk_version": re.compile(r"(?:[zZ]kVersion|partitionEpoch)[:=](-?\d+)"),
    "controller_epoch": re.compile(r"[cC]ontrollerEpoch[:=](\d+)"),
}
IDS = {
    "isr": re.compile(r'(?:ISR:|isr"?[:=](?:List\()?\[?)((?:-?\d+(?:, ?(?=-?\d))?)*)'),
    "replicas": re.compile(r"\b(?:replicas=\[?|AllReplicas:)((?:\d+(?:, ?(?=\d))?)*)"),
}
OFFLINE = re.compile(r"offlineReplicas=\[([\d, ]*)\]")


def state(text: str) -> dict[str, Any]:
    """Leader, ISR, epochs, version and replicas out of any print of a partition's state."""
    columns: dict[str, Any] = {k: int(m[1]) for k, p in NUMBER.items() if (m := p.search(text))}
    return columns | {k: numbers(m[1]) for k, p in IDS.items() if (m := p.search(text))}


def _subject(found: re.Match[str]) -> dict[str, Any]:
    topic, partition = topic_partition(found["tp"])
    return {"topic": topic, "partition": partition}


def _words(**words: Any) -> str:
    return json.dumps(words)


# Lines


def _partition(found: re.Match[str]) -> dict[str, Any]:
    moves = PARTITION["2.0"]._moves
    said = found.groupdict()
    columns = {"kind": "partition", "source": said["source"], "target": said["target"], **_subject(found)}
    move = moves.get((said["source"], said["target"]))
    columns["action"] = move.action if move else "move"
    if said.get("replicas"):
        columns["replicas"] = numbers(said["replicas"])
    if said.get("leader"):
        columns["leader"] = int(said["leader"])
    return columns | (state(said["state"]) if said.get("state") else {})


def _replica(found: re.Match[str]) -> dict[str, Any]:
    move = REPLICA["2.4"]._moves.get((found["source"], found["target"]))
    return {
        "kind": "replica",
        "action": move.action if move else "move",
        "broker": int(found["broker"]),
        "source": found["source"],
        "target": found["target"],
        **_subject(found),
    }


def _refused(kind: str) -> Reader:
    def read(found: re.Match[str]) -> dict[str, Any]:
        said = found.groupdict()
        broker = {"broker": int(said["broker"])} if said.get("broker") else {}
        return {
            "kind": kind,
            "action": "refuse",
            "error": "StateChangeFailed",
            "source": said["source"],
            "target": said["target"],
            **broker,
            **_subject(found),
        }

    return read


def _leader_and_isr(found: re.Match[str]) -> dict[str, Any]:
    new = {"detail": "is_new"} if "isNew=true" in found["state"] else {}
    return {
        "kind": "request",
        "action": "LeaderAndIsr",
        "broker": int(found["broker"]),
        **_subject(found),
        **state(found["state"]),
        **new,
    }


def _update_metadata(found: re.Match[str]) -> dict[str, Any]:
    offline = OFFLINE.search(found["state"])
    detail = "brokers=" + ",".join(map(str, sorted(numbers(found["brokers"]))))
    if offline and numbers(offline[1]):
        detail += " offline=" + ",".join(map(str, numbers(offline[1])))
    return {"kind": "request", "action": "UpdateMetadata", **_subject(found), **state(found["state"]), "detail": detail}


def _stop_replicas(found: re.Match[str]) -> dict[str, Any]:
    named = re.findall(r"Topic=([\w.-]+),Partition=(\d+)", found["replicas"])
    return {
        "kind": "request",
        "action": "StopReplica",
        "broker": int(found["broker"]),
        "partitions": tuple((t, int(p)) for t, p in named),
        "detail": "delete" if found["delete"] == "true" else None,
    }


def _stop_replica(found: re.Match[str]) -> dict[str, Any]:
    epoch = NUMBER["leader_epoch"].search(found["state"])
    return {
        "kind": "request",
        "action": "StopReplica",
        "broker": int(found["broker"]),
        **_subject(found),
        "leader_epoch": int(epoch[1]) if epoch else None,
        "detail": "delete" if "deletePartition=true" in found["state"] else None,
    }


def _response(found: re.Match[str]) -> dict[str, Any]:
    said = found.groupdict()
    api = REQUESTS.get(said.get("api") or "", said.get("api") or "other")
    failed = re.search(r"error_?[cC]ode=([1-9]\d*)", found["response"])
    return {
        "kind": "response",
        "action": api,
        "broker": int(found["broker"]),
        "error": failed[1] if failed else None,
        "detail": f"correlation_id={said['correlation']}" if said.get("correlation") else None,
    }


def _at_broker(action: str) -> Reader:
    def read(found: re.Match[str]) -> dict[str, Any]:
        said = found.groupdict()
        named = _subject(found) if said.get("tp") else {}
        if (inner := re.search(r"topicName='([\w.-]+)', partitionIndex=(\d+)", said.get("state") or "")) and not named:
            named = {"topic": inner[1], "partition": int(inner[2])}
        return {
            "kind": "broker",
            "action": said.get("action") or action,
            **named,
            **state(said.get("state") or ""),
            "detail": said.get("detail"),
        }

    return read


def _said(action: str, **lists: str) -> Reader:
    """A line of the controller's own log; `lists` names groups that hold ids or names, and how to read them."""

    def read(found: re.Match[str]) -> dict[str, Any]:
        said = found.groupdict()
        words: dict[str, Any] = {}
        for name, how in lists.items():
            text = said[name]
            if text is None:
                continue  # this generation does not say
            if how == "ids":
                words[name] = sorted(numbers(text))
            elif how == "number":
                words[name] = int(text)
            elif how == "name":
                words[name] = text
            else:
                words[name] = sorted(w for w in re.split(r"[,\s]+", text) if w)
        epoch = {"controller_epoch": words["epoch"]} if "epoch" in words else {}
        return {"action": action, "detail": _words(**words) if words else None, **epoch}

    return read


IDS_TEXT = r"[\d, ]*"
MOVE = r"from (?P<source>\w+) to (?P<target>\w+)"
TRANSITION = r"controller \d+ epoch \d+ starting the (?P<action>become-leader|become-follower) transition"
BY = r"(?:Controller \d+ epoch \d+ )?"

RULES: tuple[tuple[re.Pattern[str], Reader], ...] = tuple((re.compile(pattern), read) for pattern, read in (
    # Transitions
    (rf"[Cc]hanged partition {TP} state {MOVE}(?: with assigned replicas (?P<replicas>[\d,]*))?$", _partition),
    (rf"[Cc]hanged partition {TP} {MOVE} with (?:leader (?P<leader>-?\d+)|state (?P<state>.*))$", _partition),
    (rf"[Cc]hanged state of replica (?P<broker>\d+) for partition {TP} {MOVE}$", _replica),
    (rf"{BY}(?:initiated state change|failed to change state) for partition {TP} {MOVE}", _refused("partition")),
    (rf"{BY}initiated state change of replica (?P<broker>\d+) for partition {TP} {MOVE}", _refused("replica")),
    # Requests and responses
    (rf"[Ss]ending become-\w+ LeaderAndIsr request (?P<state>.*) to broker (?P<broker>\d+) for partition {TP}$",
     _leader_and_isr),
    (rf"[Ss]ending UpdateMetadata request (?P<state>[(U\w].*) to brokers (?P<brokers>.*) for partition {TP}$",
     _update_metadata),
    (r"The stop replica request \(delete = (?P<delete>\w+)\) sent to broker (?P<broker>\d+) is (?P<replicas>.*)$",
     _stop_replicas),
    (rf"[Ss]ending StopReplica request (?P<state>\w+\(.*\)) to broker (?P<broker>\d+) for partition {TP}$",
     _stop_replica),
    (r"[Rr]eceived response (?P<response>.*?) for "
     r"(?:a request|request (?P<api>\w+) with correlation id (?P<correlation>\d+))"
     r" sent to broker .*\(id: (?P<broker>\d+) rack", _response),
    # At a broker
    (r"[Rr]eceived LeaderAndIsr request (?P<state>\w+\(.*?\)) (?P<detail>correlation id \d+) from controller"
     rf" \d+ epoch \d+(?: for partition {TP})?$", _at_broker("received")),
    (rf"[Hh]andling LeaderAndIsr request correlationId \d+ from {TRANSITION} for partition {TP}", _at_broker("become")),
    (rf"[Cc]ached leader info (?P<state>.*) for partition {TP} in response", _at_broker("cached")),
    (rf"[Dd]eleted partition {TP} from metadata cache", _at_broker("uncached")),
    (rf"[Hh]andling stop replica \(delete=(?P<detail>\w+)\) for partition {TP}", _at_broker("stop-replica")),
    (rf"[Ii]gnoring LeaderAndIsr request .* for partition {TP} (?P<detail>.*)$", _at_broker("ignored")),
    # The controller's own log
    (r"\d+ successfully elected as (?:the controller|leader)(?:\. Epoch incremented to (?P<epoch>\d+).*)?$",
     _said("elected", epoch="number")),
    (r"(?:Epoch incremented to|Controller \d+ incremented epoch to) (?P<epoch>\d+)",
     _said("epoch_incremented", epoch="number")),
    (r"(?:Broker \d+ is ready|Ready) to serve as the new controller with epoch (?P<epoch>\d+)",
     _said("ready", epoch="number")),
    (r"(?:Broker \d+ resigned as the controller|Resigned$)", _said("resigned")),
    (rf"Newly added brokers: (?P<new>{IDS_TEXT}), deleted brokers: (?P<dead>{IDS_TEXT}),"
     rf"(?: bounced brokers: (?P<bounced>{IDS_TEXT}),)? all live brokers: (?P<live>{IDS_TEXT})$",
     _said("brokers_changed", new="ids", dead="ids", bounced="ids", live="ids")),
    (rf"New broker startup callback for (?P<brokers>{IDS_TEXT})$", _said("broker_startup", brokers="ids")),
    (rf"Broker failure callback for (?P<brokers>{IDS_TEXT})$", _said("broker_failure", brokers="ids")),
    (r"New topics: \[\w*Set\((?P<new>.*?)\)\], deleted topics: \[\w*Set\((?P<deleted>.*?)\)\]",
     _said("topics_changed", new="names", deleted="names")),
    (r"New partitions to be added Map\((?P<added>.*)\)$", _said("partitions_added")),
    (r"Shutting down broker (?P<broker>\d+)$", _said("shutting_down_broker", broker="number")),
    (r"Sending MetadataRequest to Brokers:", _said("isr_changes")),
    (r"Deletion of topic (?P<topic>[\w.-]+) successfully completed", _said("deletion_completed", topic="name")),
))  # fmt: skip
"""The known forms of a line and their readers; the first that matches is taken."""
