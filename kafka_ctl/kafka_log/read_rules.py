"""What Kafka's controllers write into `state-change.log`: transitions, elections, requests and responses.

A rule is the sentence without its speaker, beginning with a capital letter, and a reader. One rule covers several
releases where they differ only in a capital letter or in the print of a state.
Kafka 0.8.0 to 3.9.0: controller/*.scala, migration/*.scala, the calls of `stateChangeLogger`
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from kafka_ctl.kafka_log.read_values import NUMBER, TP, numbers, partitions, replicas, state, topic_partition
from kafka_ctl.partition import NEW, NON_EXISTENT, OFFLINE, ONLINE, PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.trace import details

Reader: TypeAlias = Callable[[re.Match[str]], dict[str, Any]]
"""Turns a line that a pattern has matched into columns."""
Rules: TypeAlias = dict[str, list[tuple[re.Pattern[str], Reader]]]
"""The rules for each first word of a sentence; those under "" are for sentences that begin with a value."""

REQUESTS = {
    "LEADER_AND_ISR": "LeaderAndIsr",
    "UPDATE_METADATA": "UpdateMetadata",
    "STOP_REPLICA": "StopReplica",
}
"""Requests as a line about a response calls them, and as the trace does."""
SHORT: dict[str, str] = {"NotExists": NON_EXISTENT, "New": NEW, "Online": ONLINE, "Offline": OFFLINE}
"""Kafka 0.8.0's names of partition states, and those of the trace."""
OFFLINE_REPLICAS = re.compile(r"offlineReplicas=\[([\d, ]*)\]")
FIRST = re.compile(r"(?:\(\?(?::|P<\w+>))?([A-Z]\w*(?:\|[A-Z]\w*)*)")
"""The words that a pattern can begin with."""


def indexed(rules: Iterable[tuple[str, Reader]]) -> Rules:
    """The rules by the first words of their patterns, in order."""
    index: Rules = {}
    for pattern, read in rules:
        first = FIRST.match(pattern)
        for word in first[1].split("|") if first else ("",):
            index.setdefault(word, []).append((re.compile(pattern, re.DOTALL), read))
    return index


def subject(found: re.Match[str]) -> dict[str, Any]:
    """The partition that a line is about."""
    topic, partition = topic_partition(found["tp"])
    return {"topic": topic, "partition": partition}


def _partition(found: re.Match[str]) -> dict[str, Any]:
    said = found.groupdict()
    source, target = (SHORT.get(said[name], said[name]) for name in ("source", "target"))
    columns = {"kind": "partition", "source": source, "target": target, **subject(found)}
    move = PARTITION["2.0"]._moves.get((source, target))
    columns["action"] = move.action if move else "move"
    if said.get("replicas"):
        columns["replicas"] = numbers(said["replicas"])
    if said.get("leader"):
        columns["leader"] = int(said["leader"])
    return columns | (state(said["state"]) if said.get("state") else {})


@functools.cache
def _replica_move(source: str | None, target: str) -> str:
    """The name of a move; Kafka 0.8.0 does not log the state before, but most states are entered by one move only."""
    moves = REPLICA["2.4"]._moves.items()
    actions = {move.action for (before, after), move in moves if after == target and source in (None, before)}
    return actions.pop() if len(actions) == 1 else "move"


def _replica(found: re.Match[str]) -> dict[str, Any]:
    said = found.groupdict()
    source, target = said.get("source"), said["target"]
    return {
        "kind": "replica",
        "action": _replica_move(source, target),
        "broker": int(said["broker"]),
        "source": source,
        "target": target,
        **subject(found),
    }


def _refused(kind: str, why: str = "StateChangeFailed") -> Reader:
    def read(found: re.Match[str]) -> dict[str, Any]:
        said = found.groupdict()
        broker = {"broker": int(said["broker"])} if said.get("broker") else {}
        moves = {name: said[name] for name in ("source", "target", "detail") if said.get(name)}
        return {"kind": kind, "action": "refuse", "error": why, **moves, **broker, **subject(found)}

    return read


def _election(action: str, error: str | None = None) -> Reader:
    def read(found: re.Match[str]) -> dict[str, Any]:
        said = found.groupdict()
        leader = {"leader": int(said["leader"])} if said.get("leader") else {}
        detail = {"detail": said["detail"]} if said.get("detail") else {}
        return {"kind": "election", "action": action, "error": error, **subject(found), **leader, **detail}

    return read


def _leader_and_isr(found: re.Match[str]) -> dict[str, Any]:
    text = found.groupdict().get("state") or ""
    new = {"detail": "is_new"} if "isNew=true" in text else {}
    columns = {"kind": "request", "action": "LeaderAndIsr", "broker": int(found["broker"]), **subject(found)}
    return columns | state(text) | new


def _update_metadata(found: re.Match[str]) -> dict[str, Any]:
    text = found.groupdict().get("state") or ""
    columns = {"kind": "request", "action": "UpdateMetadata", **subject(found), **state(text)}
    receivers = numbers(found["brokers"])
    brokers = sorted(receivers) if found["several"] else receivers[:1]
    columns |= {} if found["several"] else {"broker": receivers[0]}
    offline = numbers(gone[1]) if (gone := OFFLINE_REPLICAS.search(text)) else ()
    detail = details.write(brokers=details.listed(brokers), offline=details.listed(offline) or None)
    return columns | {"detail": detail}


def _stop_replica(found: re.Match[str]) -> dict[str, Any]:
    epoch = NUMBER["leader_epoch"].search(found["state"])
    return {
        "kind": "request",
        "action": "StopReplica",
        "broker": int(found["broker"]),
        **subject(found),
        "leader_epoch": int(epoch[1]) if epoch else None,
        "detail": "delete" if "deletePartition=true" in found["state"] else None,
    }


def _leaves(action: str) -> Reader:
    """A request as it goes out, with so many partitions."""

    def read(found: re.Match[str]) -> dict[str, Any]:
        said = found.groupdict()
        brokers = details.listed(sorted(numbers(said["brokers"]))) if said.get("brokers") else None
        partitions = int(said["n"]) + int(said.get("m") or 0)
        detail = details.write(partitions=partitions, delete=said.get("delete") or None, brokers=brokers)
        broker = {"broker": int(said["broker"])} if said.get("broker") else {}
        return {"kind": "request", "action": action, "target": "sent", "detail": detail, **broker}

    return read


def _response(found: re.Match[str]) -> dict[str, Any]:
    said = found.groupdict()
    response = said["response"] or ""
    old = re.match(r"(\w+)Response\(.*?(?:,(-?\d+))?\)$", response)  # 0.8.2: LeaderAndIsrResponse(7,Map(...),0)
    api = REQUESTS.get(said.get("api") or "", said.get("api") or (old[1] if old else "other"))
    failed = re.search(r"error_?[cC]ode=(-?[1-9]\d*)", response)
    error = failed[1] if failed else old[2] if old and old[2] not in (None, "0") else None
    return {
        "kind": "response",
        "action": api,
        "broker": int(found["broker"]),
        "error": error,
        "detail": details.write(correlation_id=said.get("correlation") or None),
    }


def _failed_response(found: re.Match[str]) -> dict[str, Any]:
    named = subject(found) if found.groupdict().get("tp") else {}
    columns = {
        "kind": "response",
        "action": found["api"],
        "broker": int(found["broker"]),
        "detail": found["detail"] or None,
    }
    return columns | named | {"error": found["error"] or "Refused"}


def _says(action: str, **fields: Callable[[str], Any]) -> Reader:
    """A record of kind `controller`, with the line's words as JSON."""

    def read(found: re.Match[str]) -> dict[str, Any]:
        said = {name: how(found[name]) for name, how in fields.items()}
        return {"kind": "controller", "action": action, "detail": details.write_fields(said)}

    return read


def _reassignment_sent(found: re.Match[str]) -> dict[str, Any]:
    fields = {"partition": partitions(found["partition"])[0], **state(found["state"]), **replicas(found["replicas"])}
    fields.pop("controller_epoch", None)
    return {"kind": "controller", "action": "reassignment_told", "detail": details.write_fields(fields)}


MOVE = r"from (?P<source>\w+) to (?P<target>\w+)"
NODE = r"(?:id:|Node\(|.*\(id: |)(?P<broker>-?\d+)(?:[,; ].*)?$"
"""A broker in any print of Kafka's: `2`, `id:2,host:h,port:9092`, `Node(2, h, 9092)` or `h:9092 (id: 2 rack: null)`."""
RULES: tuple[tuple[str, Reader], ...] = (
    # Transitions
    (rf"Changed partition {TP} state {MOVE}(?: with assigned replicas (?P<replicas>[\d,]*))?$", _partition),
    (rf"Changed partition {TP} {MOVE} with (?:leader (?P<leader>-?\d+)|state (?P<state>.*))$", _partition),
    (rf"Changed state of replica (?P<broker>\d+) for partition {TP} {MOVE}$", _replica),
    (rf"Changed state of replica (?P<broker>\d+) for partition {TP} to (?P<target>\w+)$", _replica),
    (rf"Initiated state change for partition {TP} {MOVE} failed$", _refused("partition")),
    (rf"Failed to change state for partition {TP} {MOVE}$", _refused("partition")),
    (rf"Initiated state change of replica (?P<broker>\d+) for partition {TP} {MOVE} failed$", _refused("replica")),
    (rf"Initiated state change of replica (?P<broker>\d+) for partition {TP} to (?P<target>\w+) failed$",
     _refused("replica")),
    (rf"Encountered error during state change of partition {TP} from New to Online, (?P<detail>.*)",
     _refused("partition")),
    (rf"Encountered error while changing partition {TP}'s state from New to Online (?P<detail>.*)",
     _refused("partition")),
    # Elections
    (rf"Started leader election for partition {TP}$", _election("started")),
    (rf"Elected leader (?P<leader>-?\d+) for Offline partition {TP}$", _election("offline")),
    (rf"Encountered error while electing leader for partition {TP} due to: (?P<detail>.*)",
     _election("offline", "StateChangeFailed")),
    (rf"Aborted leader election for partition {TP} (?P<detail>since .*)", _election("offline", "StateChangeFailed")),
    (rf"Partition {TP} state changed to (?P<state>\(.*\)) after removing replica (?P<broker>\d+) from the ISR",
     lambda found: {"kind": "controller", "action": "shrink-isr", "broker": int(found["broker"])}
     | subject(found) | state(found["state"])),
    # Requests
    (rf"Sending become-\w+ LeaderAndIsr request (?:(?P<state>.*) )?(?:with correlationId \d+ )?"
     rf"to broker (?P<broker>\d+) for partition {TP}$", _leader_and_isr),
    (rf"Sending UpdateMetadata request (?:(?P<state>[(U\w].*?) )??(?:with correlationId \d+ )?"
     rf"to broker(?P<several>s?) (?P<brokers>.*) for partition {TP}$", _update_metadata),
    (rf"Sending StopReplica request (?P<state>\w+\(.*\)) to broker (?P<broker>\d+) for partition {TP}$",
     _stop_replica),
    (r"Sending LeaderAndIsr request to broker (?P<broker>\d+) with (?P<n>\d+) become-leader and "
     r"(?P<m>\d+) become-follower partitions", _leaves("LeaderAndIsr")),
    (r"Sending UpdateMetadata request to brokers (?P<brokers>.*) for (?P<n>\d+) partitions",
     _leaves("UpdateMetadata")),
    (r"Sending StopReplica request (?:\(delete = (?P<delete>\w+)\) )?for (?P<n>\d+) replicas to broker (?P<broker>\d+)",
     _leaves("StopReplica")),
    (r"Sent LeaderAndIsr request (?P<state>\(.*?\)) with new (?:assigned replica list|replica assignment) "
     r"(?P<replicas>.*) to leader -?\d+ for partition being reassigned (?P<partition>.*)$", _reassignment_sent),
    (rf"Failed to send LeaderAndIsr request with new .* for partition being reassigned {TP}",
     lambda found: {"kind": "request", "action": "LeaderAndIsr", "error": "Refused"} | subject(found)),
    # Responses
    (rf"Received response (?P<response>.*?) for request (?P<api>\w+) with correlation id (?P<correlation>\d+)"
     rf" sent to broker {NODE}", _response),
    (rf"Received response correlationId (?P<correlation>\d+)(?P<response>) for a request sent to broker {NODE}",
     _response),
    (rf"Received response (?P<response>.*) for a request sent to broker {NODE}", _response),
    (r"Received error in LeaderAndIsr response (?P<error>.*) from broker (?P<broker>\d+)$",
     _says("leader_and_isr_error", error=str, broker=int)),
    (r"Received error (?P<error>\w+) in (?P<api>\w+) response (?P<detail>.*) from broker (?P<broker>\d+)$",
     _failed_response),
    (rf"Received error (?P<error>\w+) in (?P<api>\w+) request for partition {TP}(?P<detail>) from broker "
     r"(?P<broker>\d+)$", _failed_response),
    (r"Mark replicas (?P<partitions>.*) on broker (?P<broker>\d+) as offline$",
     _says("replicas_offline", partitions=partitions, broker=int)),
    (r"Found (?P<partitions>.*) on broker (?P<broker>\d+) as offline$",
     _says("replicas_offline", partitions=partitions, broker=int)),
)  # fmt: skip
"""The known sentences and their readers; the first that matches is taken."""
