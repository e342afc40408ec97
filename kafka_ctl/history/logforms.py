"""Forms of `state-change.log` lines beyond those that `logline` compares with Kafka: the rest of what Kafka 0.8 to
3.x write there.

A form is a pattern, what the line is in the trace's terms, and what else it says. Groups carry the columns:
`tp`, `broker`, `leader`, `leader_epoch`, `controller_epoch`, `replicas`, `state` (any print of a partition's
state), `isr`; `n` and `m` add up to `partitions=` in the detail, and `brokers`, `delete` and `why` go there too.
"""

from __future__ import annotations

import re
from typing import Any

from kafka_ctl.history.logrules import TP, numbers, state, topic_partition

_FROM = r"from controller (?P<controller>-?\d+)"
_EPOCH = r"epoch (?P<controller_epoch>\d+)"

_FORMS = (
    # The controller: elections
    (rf"Started leader election for partition {TP}$", "election", "started"),
    (rf"Elected leader (?P<leader>\d+) for Offline partition {TP}$", "election", "offline"),
    (rf"Encountered error while electing leader for partition {TP} due to: (?P<why>.*)", "election", "offline!"),
    (rf"Aborted leader election for partition {TP} (?P<why>since .*)", "election", "offline!"),
    (rf"Encountered error during state change of partition {TP} from New to Online, (?P<why>.*)",
     "partition", "refuse!"),
    (rf"Encountered error while changing partition {TP}'s state from New to Online (?P<why>.*)",
     "partition", "refuse!"),
    (rf".*error while changing (?:state|the state) of partition {TP}(?P<why>.*)", "partition", "refuse!"),
    (rf"Partition {TP} state changed to (?P<state>\(.*\)) after removing replica (?P<broker>\d+) from the ISR",
     "controller", "shrink-isr"),
    (rf"Retaining last ISR \d+ of partition {TP}(?P<why>.*)", "controller", "keeps-isr"),
    (r"Mark replicas (?P<why>.*) on broker (?P<broker>\d+) as offline", "controller", "replicas-offline"),
    (rf"Changed (?:state of )?replica (?P<broker>\d+) (?:for|of) partition {TP}(?: state)? to (?P<target>\w+)$",
     "replica", "move"),
    (rf"Changed partition {TP} state to (?P<target>\w+)(?: with leader (?P<leader>\d+))?$", "partition", "move"),
    # The controller: requests
    (r"Sending LeaderAndIsr request to broker (?P<broker>\d+) with (?P<n>\d+) become-leader and "
     r"(?P<m>\d+) become-follower", "request", "LeaderAndIsr>"),
    (r"Sending UpdateMetadata request to brokers (?P<brokers>.*) for (?P<n>\d+) partitions",
     "request", "UpdateMetadata>"),
    (r"Sending StopReplica request (?:\(delete = (?P<delete>\w+)\) )?for (?P<n>\d+) replicas to broker (?P<broker>\d+)",
     "request", "StopReplica>"),
    (rf"Sent LeaderAndIsr request (?P<state>.*) with new (?:assigned replica list|replica assignment) (?P<why>.*)"
     rf" to leader (?P<broker>-?\d+) for partition being reassigned {TP}", "request", "LeaderAndIsr"),
    (rf"Failed to send LeaderAndIsr request with new .* for partition being reassigned {TP}(?P<why>.*)",
     "request", "LeaderAndIsr!"),
    (rf"Sending UpdateMetadata request with correlationId \d+ to broker (?P<broker>\d+) for partition {TP}",
     "request", "UpdateMetadata"),
    (r"Received error (?P<why>.*?in \w+ response .*) from broker (?P<broker>\d+)", "response", "error!"),
    (r"Received response (?P<why>.*) (?:for|of|to) .*broker.*?(?P<broker>-?\d+)", "response", "other"),
    # Brokers: LeaderAndIsr
    (rf"(?:Handling|Received) LeaderAndIsr request correlationId \d+ {_FROM}(?: {_EPOCH})? for (?P<n>\d+) partitions",
     "broker", "received"),
    (rf"Received LeaderAndIsr request (?P<state>.*?) correlation id \d+ {_FROM} {_EPOCH}(?: for partition {TP})?",
     "broker", "received"),
    (rf"(?:Handling LeaderAndIsr request|Starting).*? {_EPOCH} starting the (?P<verb>become-\w+) transition for "
     rf"partition {TP}", "broker", "verb"),
    (rf"Stopped fetchers as part of .*(?:for partition {TP}|for (?P<n>\d+) partitions)", "broker", "stopped-fetcher"),
    (rf"Truncated logs and checkpointed .*for partition {TP}", "broker", "truncated"),
    (rf"Started fetcher to new leader as part of .*for partition {TP}(?: with leader (?P<leader>\d+))?",
     "broker", "started-fetcher"),
    (rf"(?:Completed|Finished) LeaderAndIsr request .*for the (?P<verb>become-\w+) transition for partition {TP}",
     "broker", "done"),
    (r"Finished LeaderAndIsr request in (?P<why>\d+ms).* for (?P<n>\d+) partitions", "broker", "done"),
    (rf"Skipped the become-\w+ state change .*for partition {TP} since (?P<why>.*)", "broker", "skipped"),
    (rf"Skipped the become-\w+ state change .*for partition {TP}(?P<why>)", "broker", "skipped"),
    (rf"Received LeaderAndIsrRequest .*for partition {TP}.* but (?P<why>cannot become .*)", "broker", "ignored!"),
    (rf"(?P<verb>Leader|Follower) {TP} (?:with topic id \S+ )?starts at leader epoch (?P<leader_epoch>\d+) "
     r"(?P<why>from offset .*)", "broker", "started"),
    (rf"Ignoring (?:LeaderAndIsr|StopReplica|stop replica).*?for partition {TP} (?P<why>.*)", "broker", "ignored!"),
    (r"Ignoring (?:LeaderAndIsr|StopReplica|UpdateMetadata) (?P<why>.*)", "broker", "ignored!"),
    (rf"Aborted the become-\w+ state change .*for partition {TP}(?P<why>.*)", "broker", "ignored!"),
    (rf"Error while (?P<why>.*)partition {TP}", "broker", "failed!"),
    (rf"(?P<why>Topic ID in memory: .*) for partition {TP}", "broker", "ignored!"),
    (rf"Skip(?:ped|ping) (?P<why>.*)partition {TP}", "broker", "skipped"),
    # Brokers: StopReplica, UpdateMetadata
    (r"Handling StopReplica request correlationId .* for (?P<n>\d+) partitions", "broker", "stop-replica"),
    (rf"Received StopReplica request (?P<state>.*) correlation id .* for partition {TP}", "broker", "stop-replica"),
    (rf"(?:Finished handling|Handling) stop replica \(delete=(?P<delete>\w+)\) for partition {TP}",
     "broker", "stop-replica"),
    (r"Received stop replica request from an old controller (?P<why>.*)", "broker", "ignored!"),
    (r"Stop replica request (?P<why>.*)", "broker", "stop-replica"),
    (rf"Cached leader info (?P<state>.*) for partition {TP}", "broker", "cached"),
    (rf"Deleted partition {TP} from metadata cache", "broker", "uncached"),
    (r"Add (?P<n>\d+) partitions and deleted (?P<why>\d+) partitions from metadata cache", "broker", "cached"),
    # Log4j's own words, written there when the process starts
    (r"PreRegister called\. Server=(?P<why>.*)", "broker", "log-opened"),
)  # fmt: skip


FORMS = tuple((re.compile(text, re.DOTALL), kind, action) for text, kind, action in _FORMS)
"""Pattern, kind and action; `!` marks an error, `>` a request as it leaves, `verb` an action named in the line."""
_INTEGERS = ("broker", "leader", "leader_epoch", "controller_epoch")


def read_form(message: str) -> dict[str, Any] | None:
    """The columns of a state-change line whose beginning (whose it is) was taken off; None for no known form.

    Older Kafkas begin these sentences with a small letter, as there they come after a name.
    """
    message = message[:1].upper() + message[1:]
    for pattern, kind, action in FORMS:
        if (found := pattern.match(message)) is not None:
            return _columns(found.groupdict(), kind, action)
    return None


def _columns(said: dict[str, str | None], kind: str, action: str) -> dict[str, Any]:
    columns: dict[str, Any] = {"kind": kind, "action": action.rstrip("!>")}
    if said.get("tp"):
        columns["topic"], columns["partition"] = topic_partition(said["tp"] or "")
    columns |= state(said.get("state") or "")
    columns |= {name: int(said[name] or 0) for name in _INTEGERS if said.get(name)}
    verb, why = (said.get("verb") or "").lower(), said.get("why")
    if action == "verb":
        columns["action"] = verb
    elif action == "started":
        columns["action"] = f"become-{verb}" if verb else "started"
        columns |= _started(why or "") if verb else {}
    words = [f"partitions={int(said['n'] or 0) + int(said.get('m') or 0)}"] if said.get("n") else []
    words += [f"{name}={said[name]}" for name in ("delete",) if said.get(name)]
    words += ["brokers=" + ",".join(map(str, numbers(said["brokers"] or "")))] if said.get("brokers") else []
    words += [why] if why else []
    columns["detail"] = " ".join(words) or None
    if said.get("target"):
        columns["target"] = said["target"]
    if action.endswith("!"):
        columns["error"] = "StateChangeFailed" if kind in ("partition", "election", "replica") else "Refused"
    if action.endswith(">"):
        columns["target"] = "sent"
    return columns


def _started(why: str) -> dict[str, Any]:
    """The ISR out of `from offset 5 with high watermark 5 ISR [1,2] addingReplicas [] ...`."""
    isr = re.search(r"ISR \[([\d, ]*)\]", why)
    return {"isr": numbers(isr[1])} if isr else {}
