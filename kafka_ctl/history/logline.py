"""One line of Kafka's `state-change.log` or `controller.log`, Kafka 0.8 to 3.x, in the trace's terms.

`parse_line` takes one line by itself; `parse_lines` also names the controller where a line leaves it out, from the
lines before it. Both spellings of a partition, `[orders,0]` and `orders-0`, and topics with dots and dashes are read.
Standard library only, so that Spark can ship it to its workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA

REQUESTS = {
    "LEADER_AND_ISR": "LeaderAndIsr", "UPDATE_METADATA": "UpdateMetadata", "STOP_REPLICA": "StopReplica",
    "UPDATE_METADATA_KEY": "UpdateMetadata",
}
"""Requests as a line about a response calls them, and as the trace does."""


class Line(NamedTuple):
    """One line of a log; columns as in `trace.Record`, None where the line does not say.

    `time` is in epoch milliseconds, of a clock whose zone the log does not tell: as if it were UTC. `partitions` is
    for lines about several partitions at once, as (topic, partition). A line in no known form has the action `other`
    and its text as detail.
    """

    time: int
    level: str
    logger: str
    actor: str | None = None
    kind: str = "controller"
    action: str = "other"
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    source: str | None = None
    target: str | None = None
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    leader_epoch: int | None = None
    zk_version: int | None = None
    controller_epoch: int | None = None
    replicas: tuple[int, ...] | None = None
    error: str | None = None
    detail: str | None = None
    partitions: tuple[tuple[str, int], ...] | None = None


HEAD = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] ([A-Z]+) (.*) \(([\w.$]+)\)\s*$", re.DOTALL)
TP = r"(?P<tp>\[[\w.-]+,\d+\]|[\w.-]+-\d+)"
WHO = (
    (re.compile(r"\[Controller id=(?P<controller>\d+)(?: epoch=(?P<epoch>\d+))?\] "), None),
    (re.compile(r"\[Broker id=(?P<broker>\d+)\] "), None),
    (re.compile(r"Controller (?P<controller>\d+) epoch (?P<epoch>\d+) "), None),
    (re.compile(r"Broker (?P<broker>\d+) (?!is ready|starting|resigned)"), None),
    (re.compile(r"\[Controller-(?P<controller>\d+)-to-broker-\d+-send-thread\],? "), None),
    (re.compile(r"\[[\w ]*?(?:[Cc]ontroller(?:Id=| )|Manager |on )(?P<controller>\d+)\]?[:,]? "), None),
)
"""How a line can begin: whose it is."""


def parse_line(text: str) -> Line | None:
    """What one line says; None for what is no line of a log, as are the lines of a stack trace."""
    head = HEAD.match(text)
    if head is None:
        return None
    at = datetime.strptime(head[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    columns: dict[str, Any] = {
        "time": int(at.timestamp()) * 1000 + int(head[2]), "level": head[3], "logger": head[5],
    }
    message = _who(head[4], columns)
    for pattern, read in RULES:
        if (found := pattern.match(message)) is not None:
            columns |= read(found)
            break
    else:
        columns["detail"] = message
    return Line(**columns)


def parse_lines(texts: Iterable[str]) -> Iterator[Line]:
    """The lines of one broker's log in order; a line that names no actor is the same controller's as the one before."""
    controller = epoch = None
    for text in texts:
        line = parse_line(text)
        if line is None:
            continue
        if line.actor is None and controller is not None:
            line = line._replace(actor=controller)
        if line.actor is not None and line.actor.startswith("controller-"):
            if line.actor != controller:
                controller, epoch = line.actor, None
            epoch = line.controller_epoch if line.controller_epoch is not None and line.kind != "partition" else epoch
            if line.controller_epoch is None:
                line = line._replace(controller_epoch=epoch)
        yield line


def _who(message: str, columns: dict[str, Any]) -> str:
    """Note whose line it is; returns the rest of it."""
    for pattern, _ in WHO:
        if (found := pattern.match(message)) is not None:
            said = found.groupdict()
            if said.get("controller"):
                columns["actor"] = f"controller-{said['controller']}"
            if said.get("broker"):
                columns |= {"actor": f"broker-{said['broker']}", "kind": "broker", "broker": int(said["broker"])}
            if said.get("epoch"):
                columns["controller_epoch"] = int(said["epoch"])
            return message[found.end():]
    return message


# Values


def topic_partition(text: str) -> tuple[str, int]:
    """`[orders,0]` or `orders-0` as ("orders", 0)."""
    topic, _, number = text.strip("[]").rpartition("," if text.startswith("[") else "-")
    return topic, int(number)


def numbers(text: str) -> tuple[int, ...]:
    """All numbers in a text, in order."""
    return tuple(map(int, re.findall(r"-?\d+", text)))


NUMBER = {
    "leader": re.compile(r'\b[Ll]eader"?[:=](-?\d+)'), "leader_epoch": re.compile(r'[lL]eader_?[eE]poch"?[:=](-?\d+)'),
    "zk_version": re.compile(r"[zZ]kVersion[:=](-?\d+)"), "controller_epoch": re.compile(r"[cC]ontrollerEpoch[:=](\d+)"),
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
        "kind": "replica", "action": move.action if move else "move", "broker": int(found["broker"]),
        "source": found["source"], "target": found["target"], **_subject(found),
    }


def _refused(kind: str) -> Callable[[re.Match[str]], dict[str, Any]]:
    def read(found: re.Match[str]) -> dict[str, Any]:
        said = found.groupdict()
        broker = {"broker": int(said["broker"])} if said.get("broker") else {}
        return {"kind": kind, "action": "refuse", "error": "StateChangeFailed", "source": said["source"],
                "target": said["target"], **broker, **_subject(found)}

    return read


def _leader_and_isr(found: re.Match[str]) -> dict[str, Any]:
    new = {"detail": "is_new"} if "isNew=true" in found["state"] else {}
    return {"kind": "request", "action": "LeaderAndIsr", "broker": int(found["broker"]), **_subject(found),
            **state(found["state"]), **new}


def _update_metadata(found: re.Match[str]) -> dict[str, Any]:
    offline = OFFLINE.search(found["state"])
    detail = "brokers=" + ",".join(map(str, sorted(numbers(found["brokers"]))))
    if offline and numbers(offline[1]):
        detail += " offline=" + ",".join(map(str, numbers(offline[1])))
    return {"kind": "request", "action": "UpdateMetadata", **_subject(found), **state(found["state"]), "detail": detail}


def _stop_replicas(found: re.Match[str]) -> dict[str, Any]:
    named = re.findall(r"Topic=([\w.-]+),Partition=(\d+)", found["replicas"])
    return {"kind": "request", "action": "StopReplica", "broker": int(found["broker"]),
            "partitions": tuple((t, int(p)) for t, p in named), "detail": "delete" if found["delete"] == "true" else None}


def _stop_replica(found: re.Match[str]) -> dict[str, Any]:
    epoch = NUMBER["leader_epoch"].search(found["state"])
    return {"kind": "request", "action": "StopReplica", "broker": int(found["broker"]), **_subject(found),
            "leader_epoch": int(epoch[1]) if epoch else None,
            "detail": "delete" if "deletePartition=true" in found["state"] else None}


def _response(found: re.Match[str]) -> dict[str, Any]:
    said = found.groupdict()
    api = REQUESTS.get(said.get("api") or "", said.get("api") or "other")
    failed = re.search(r"error_?[cC]ode=([1-9]\d*)", found["response"])
    return {"kind": "response", "action": api, "broker": int(found["broker"]), "error": failed[1] if failed else None,
            "detail": f"correlation_id={said['correlation']}" if said.get("correlation") else None}


def _at_broker(action: str) -> Callable[[re.Match[str]], dict[str, Any]]:
    def read(found: re.Match[str]) -> dict[str, Any]:
        said = found.groupdict()
        named = _subject(found) if said.get("tp") else {}
        if (inner := re.search(r"topicName='([\w.-]+)', partitionIndex=(\d+)", said.get("state") or "")) and not named:
            named = {"topic": inner[1], "partition": int(inner[2])}
        return {"kind": "broker", "action": said.get("action") or action, **named, **state(said.get("state") or ""),
                "detail": said.get("detail")}

    return read


def _said(action: str, **lists: str) -> Callable[[re.Match[str]], dict[str, Any]]:
    """A line of the controller's own log; `lists` names groups that hold ids or names, and how to read them."""

    def read(found: re.Match[str]) -> dict[str, Any]:
        said = found.groupdict()
        words: dict[str, Any] = {}
        for name, how in lists.items():
            text = said.get(name) or ""
            if how == "ids":
                words[name] = sorted(numbers(text))
            elif how == "number":
                words[name] = int(text)
            else:
                words[name] = sorted(w for w in re.split(r"[,\s]+", text) if w)
        epoch = {"controller_epoch": words["epoch"]} if "epoch" in words else {}
        return {"action": action, "detail": _words(**words) if words else None, **epoch}

    return read


IDS_TEXT = r"[\d, ]*"
RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], dict[str, Any]]], ...] = tuple(
    (re.compile(pattern), read) for pattern, read in (
        (rf"[Cc]hanged partition {TP} state from (?P<source>\w+) to (?P<target>\w+)"
         r"(?: with assigned replicas (?P<replicas>[\d,]*))?$", _partition),
        (rf"[Cc]hanged partition {TP} from (?P<source>\w+) to (?P<target>\w+) with "
         r"(?:leader (?P<leader>-?\d+)|state (?P<state>.*))$", _partition),
        (rf"[Cc]hanged state of replica (?P<broker>\d+) for partition {TP} from (?P<source>\w+) to (?P<target>\w+)$", _replica),
        (rf"[Ss]ending become-\w+ LeaderAndIsr request (?P<state>.*) to broker (?P<broker>\d+) for partition {TP}$", _leader_and_isr),
        (rf"[Ss]ending UpdateMetadata request (?P<state>[(U\w].*) to brokers (?P<brokers>.*) for partition {TP}$", _update_metadata),
        (r"The stop replica request \(delete = (?P<delete>\w+)\) sent to broker (?P<broker>\d+) is (?P<replicas>.*)$", _stop_replicas),
        (rf"[Ss]ending StopReplica request (?P<state>\w+\(.*\)) to broker (?P<broker>\d+) for partition {TP}$", _stop_replica),
        (r"[Rr]eceived response (?P<response>.*?) for (?:a request|request (?P<api>\w+) with correlation id (?P<correlation>\d+))"
         r" sent to broker .*\(id: (?P<broker>\d+) rack", _response),
        (r"[Rr]eceived LeaderAndIsr request (?P<state>\w+\(.*?\)) (?P<detail>correlation id \d+) from controller \d+ epoch \d+"
         rf"(?: for partition {TP})?$", _at_broker("received")),
        (r"[Hh]andling LeaderAndIsr request correlationId \d+ from controller \d+ epoch \d+ starting the "
         rf"(?P<action>become-leader|become-follower) transition for partition {TP}", _at_broker("become")),
        (rf"[Cc]ached leader info (?P<state>.*) for partition {TP} in response", _at_broker("cached")),
        (rf"[Dd]eleted partition {TP} from metadata cache", _at_broker("uncached")),
        (rf"[Hh]andling stop replica \(delete=(?P<detail>\w+)\) for partition {TP}", _at_broker("stop-replica")),
        (rf"[Ii]gnoring LeaderAndIsr request .* for partition {TP} (?P<detail>.*)$", _at_broker("ignored")),
        (rf"(?:initiated state change for|Controller \d+ epoch \d+ failed to change state for|failed to change state for) "
         rf"partition {TP} from (?P<source>\w+) to (?P<target>\w+)", _refused("partition")),
        (r"(?:Controller \d+ epoch \d+ )?initiated state change of replica (?P<broker>\d+) for partition "
         rf"{TP} from (?P<source>\w+) to (?P<target>\w+)", _refused("replica")),
        (r"\d+ successfully elected as (?:the controller|leader)(?:\. Epoch incremented to (?P<epoch>\d+).*)?$",
         lambda m: _said("elected", **({"epoch": "number"} if m["epoch"] else {}))(m)),
        (r"(?:Epoch incremented to|Controller \d+ incremented epoch to) (?P<epoch>\d+)", _said("epoch_incremented", epoch="number")),
        (r"(?:Broker \d+ is ready|Ready) to serve as the new controller with epoch (?P<epoch>\d+)", _said("ready", epoch="number")),
        (r"(?:Broker \d+ resigned as the controller|Resigned$)", _said("resigned")),
        (rf"Newly added brokers: (?P<new>{IDS_TEXT}), deleted brokers: (?P<dead>{IDS_TEXT}),"
         rf"(?: bounced brokers: (?P<bounced>{IDS_TEXT}),)? all live brokers: (?P<live>{IDS_TEXT})$",
         lambda m: _said("brokers_changed", **dict.fromkeys(("new", "dead", *["bounced"] * (m["bounced"] is not None), "live"), "ids"))(m)),
        (rf"New broker startup callback for (?P<brokers>{IDS_TEXT})$", _said("broker_startup", brokers="ids")),
        (rf"Broker failure callback for (?P<brokers>{IDS_TEXT})$", _said("broker_failure", brokers="ids")),
        (r"New topics: \[\w*Set\((?P<new>.*?)\)\], deleted topics: \[\w*Set\((?P<deleted>.*?)\)\]", _said("topics_changed", new="names", deleted="names")),
        (r"New partitions to be added Map\((?P<added>.*)\)$", _said("partitions_added")),
        (r"Shutting down broker (?P<broker>\d+)$", _said("shutting_down_broker", broker="number")),
        (r"Sending MetadataRequest to Brokers:", _said("isr_changes")),
        (r"Deletion of topic (?P<topics>[\w.-]+) successfully completed", _said("deletion_completed", topics="names")),
    )
)  # fmt: skip
"""The known forms of a line and their readers; the first that matches is taken."""
