"""What Kafka's brokers write into `state-change.log`, in ZooKeeper mode and in KRaft mode.

A form is the sentence without its speaker, beginning with a capital letter, and what the broker did; `says` where
the trace has no word for it. Groups carry the columns: `tp`, `leader`, `leader_epoch`, `epoch` (the sender's),
`state` (any print of a partition's state); `n` (partitions), `delete` and `why` go into the detail.
Kafka 0.8.0 to 3.9.0: server/ReplicaManager.scala, server/MetadataCache.scala, server/metadata/*.scala,
server/Raft*.scala, cluster/Partition.scala, server/KafkaApis.scala: the calls of `stateChangeLogger`
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from kafka_ctl.kafka_log.read_rules import Reader, subject
from kafka_ctl.kafka_log.read_values import NAMED, TP, numbers, state
from kafka_ctl.trace import details

_FROM = r"(?:received )?from controller -?\d+ epoch (?P<epoch>\d+)"
_ID = r"correlation ?[iI]d (?P<id>\d+)"

_FORMS = (
    # LeaderAndIsr as it arrives
    (rf"Received LeaderAndIsr request (?P<state>.*?) (?P<why>correlation id \d+) {_FROM}(?: for partition {TP})?$",
     "received"),
    (rf"Handling LeaderAndIsr request (?P<why>correlation id \d+) {_FROM} for partition {TP}$", "received"),
    (r"Handling LeaderAndIsr request correlationId \d+ from controller -?\d+ for (?P<n>\d+) partitions", "received"),
    (rf"(?:Handling|Received) LeaderAndIsr request {_ID} {_FROM} starting the (?P<verb>become-\w+) transition for "
     rf"partition {TP}(?: with leader (?P<leader>-?\d+))?$", "verb"),
    (rf"Completed LeaderAndIsr request {_ID} {_FROM} for the become-\w+ transition for partition {TP}"
     r"(?: with leader (?P<leader>-?\d+))?$", "done"),
    (rf"(?:Completed the|Completed) become-\w+ transition for partition {TP}$", "done"),
    (rf"Handled LeaderAndIsr request {_ID} {_FROM} for partition {TP}$", "done"),
    (r"Finished LeaderAndIsr request in (?P<why>\d+ms).* for (?P<n>\d+) partitions", "done"),
    # Becoming leader or follower
    (rf"Stopped fetchers as part of .* for partition {TP}(?: .*with leader (?P<leader>-?\d+))?", "stopped-fetcher"),
    (r"Stopped fetchers as part of .* for (?P<n>\d+) partitions", "stopped-fetcher"),
    (rf"Truncated logs and checkpointed recovery boundaries for partition {TP} .*?(?:with leader (?P<leader>-?\d+))?$",
     "truncated"),
    (rf"Started fetcher to new leader as part of .* for partition {TP}"
     r"(?: with leader (?:BrokerEndPoint\(id=)?(?P<leader>-?\d+))?", "started-fetcher"),
    (r"Started fetchers as part of .* for (?P<n>\d+) partitions", "started-fetcher"),
    (rf"(?P<verb>Leader|Follower) {TP} (?:with topic id \S+ )?starts at leader epoch (?P<leader_epoch>\d+) "
     r"(?P<why>from offset .*)", "starts"),
    (rf"Skipped the become-\w+ state change .*?for partition {TP}(?P<why>.*(?:disk|storage) error .*)", "ignored!"),
    (rf"Skipped the become-\w+ state change for {TP} (?P<why>.*(?:disk|storage) error .*)", "ignored!"),
    (rf"Skipped the .*? for partition {TP}(?:.*? since| with)? ?(?P<why>.*)", "skipped"),
    (rf"Skipped the become-\w+ state change for {TP} (?P<why>.*)", "skipped"),
    # Refused requests
    (rf"Received LeaderAndIsrRequest .*for partition {TP} .*but (?P<why>cannot become follower since the new leader "
     r"(?P<leader>-?\d+) is unavailable)", "ignored!"),
    (r"Received (?P<why>(?:LeaderAndIsr|stop replica|update metadata) request .*old controller .*)", "ignored!"),
    (rf"Received invalid LeaderAndIsr request {_ID.replace('correlation', 'with correlation')} {_FROM} (?P<why>with an "
     rf"older leader epoch (?P<leader_epoch>\d+) for partition {TP}, current leader epoch is \d+)", "ignored!"),
    (rf"Discarded the become-\w+ request .*for partition {TP} (?P<why>since current leader epoch -?\d+ is >= the "
     r"request's leader epoch (?P<leader_epoch>-?\d+))", "ignored!"),
    (r"Ignored the become-\w+ state change .*for partition Topic: (?P<topic>[\w.-]+); Partition: (?P<partition>\d+);.* "
     r"(?P<why>since the designated leader (?P<leader>-?\d+) .*)", "ignored!"),
    (rf"Ignored the become-\w+ state change .*for partition {TP} (?P<why>since .*)", "ignored!"),
    (r"Ignored the become-\w+ state change .*(?P<why>since it is shutting down)", "ignored!"),
    (rf"Aborted the become-\w+ state change .*for partition {TP} (?P<why>new leader (?P<leader>-?\d+))", "ignored!"),
    (r"Ignoring LeaderAndIsr request (?P<why>with .* as broker is not in assigned replica list .*) for partition "
     rf"{TP}$", "ignored!"),
    (rf"Ignoring (?:LeaderAndIsr request|handlePartitionChanges) .*?for partition {TP} (?P<why>.*?"
     r"(?:associated leader epoch (?P<leader_epoch>-?\d+) .*|$))", "ignored!"),
    (rf"Ignoring stop replica \(delete=\w+\) for partition {TP} (?P<why>as replica doesn't exist on broker)",
     "skipped"),
    (rf"Ignoring (?:StopReplica request|stop replica) .*?for partition {TP} (?P<why>.*?"
     r"(?:associated leader epoch (?P<leader_epoch>-?\d+) .*|$))", "ignored!"),
    (r"Ignoring (?P<why>(?:LeaderAndIsr|StopReplica) request .* since its controller epoch \d+ is old.*)", "ignored!"),
    (rf"Topic I[dD] in memory: (?P<why>.*) for partition {TP}", "ignored!"),
    (rf"Error (?:on broker (?P<broker>\d+) )?while (?P<why>processing LeaderAndIsr request {_ID} {_FROM}) for "
     rf"partition {TP}$", "failed!"),
    (rf"Error (?:on broker (?P<broker>\d+) )?while (?P<why>processing LeaderAndIsr request with {_ID} {_FROM}.*)",
     "failed!"),
    (rf"A ZooKeeper client exception has occurred.* for the partition {TP} with leader epoch: (?P<leader_epoch>-?\d+)",
     "failed!"),
    # StopReplica
    (r"Handling StopReplica request correlationId .* for (?P<n>\d+) partitions", "stop-replica"),
    (rf"Received StopReplica request (?P<state>.*) {_ID} {_FROM} for partition {TP}$", "stop-replica"),
    (rf"Handling stop replica (?:\(delete=(?P<delete>\w+)\) )?for partition {TP}$", "stop-replica"),
    (rf"Finished handling stop replica (?:\(delete=(?P<delete>\w+)\) )?for partition {TP}$", "done"),
    # UpdateMetadata
    (rf"Cached leader info (?P<state>.*) for partition {TP} in response", "cached"),
    (rf"Deleted partition {TP} from metadata cache", "uncached"),
    (r"Add (?P<n>\d+) partitions and deleted (?P<why>\d+) partitions (?:from|to) (?:the )?metadata cache", "cached"),
    # What the trace has no word for: 0.8.1.1, 2.8, KRaft mode and the way to it
    (r"Deleted partitions for topic [\w.-]+ from metadata cache", "says"),
    (r"Cached leader info MetadataPartition\(", "says"),
    (rf"(?:Metadata|Apply) (?:batch|deferred) .*?(?:partition )?{TP}", "says"),
    (r"Metadata (?:batch (?:\d+|<multiple deferred>): |changes are )", "says"),
    (r"(?:Applying|Applied) (?:\d+ )?deferred (?:metadata changes|partitions)", "says"),
    (r"Completed batch \d+ become-deferred transition", "says"),
    (r"(?:Deferring|Deleting|Transitioning) (?:metadata changes for )?\d+ partition\(s\)", "says"),
    (rf"(?:Unable|Expected|Creating) .*?(?:fetching|replica|leader|partition) {TP}", "says"),
    (rf"Updating (?:log|PartitionFetchState) for {TP}", "says"),
    (rf"The topic partition {TP} was marked as RECOVERING", "says"),
    (r"While handling full LeaderAndIsr request from KRaft controller", "says"),
    (r"Received UpdateMetadataRequest with Type=FULL", "says"),
    (r"Removing (?:topic [\w.-]+|\d+ partition\(s\) from topic [\w.-]+) with ID \S+ from the metadata cache", "says"),
    (r"Error: ", "says"),
    (r"Adding brokers .*, removing brokers ", "says"),
    # Log4j's own words, written there when the process starts
    (r"PreRegister called\. Server=(?P<why>.*)", "log-opened"),
)  # fmt: skip

REASONS = (
    (re.compile(r"leader epoch|old controller|controller epoch \d+ is old"), "STALE_CONTROLLER_EPOCH"),
    (re.compile(r"not in assigned replica list"), "UNKNOWN_TOPIC_OR_PARTITION"),
    (re.compile(r"offline log directory|disk error|storage e"), "KAFKA_STORAGE_ERROR"),
    (re.compile(r"unavailable|cannot be found in live"), "LEADER_NOT_AVAILABLE"),
)
"""How a sentence gives the reasons that the trace has as errors."""
_INTEGERS = {"leader": "leader", "leader_epoch": "leader_epoch", "epoch": "controller_epoch", "partition": "partition"}


def _read(action: str, found: re.Match[str]) -> dict[str, Any]:
    said = found.groupdict()
    if action == "says":
        return {"action": action, **(subject(found) if said.get("tp") else {})}
    columns: dict[str, Any] = {"action": action.rstrip("!"), "kind": "broker"}
    columns |= {column: int(said[name] or 0) for name, column in _INTEGERS.items() if said.get(name)}
    if said.get("state"):
        columns |= _state(said["state"] or "")
    if said.get("tp"):
        columns |= subject(found)
    elif said.get("topic"):
        columns["topic"] = said["topic"]
    if verb := (said.get("verb") or "").lower():
        columns["action"] = verb if action == "verb" else f"become-{verb}"
    why = said.get("why")
    if action == "starts":
        columns |= _starts(why or "")
    if said.get("broker"):
        columns |= {"actor": f"broker-{said['broker']}", "broker": int(said["broker"] or 0)}
    words = details.write("delete" * (said.get("delete") == "true"), (why or "").strip())
    count = details.write(partitions=said.get("n") or None)
    columns["detail"] = " ".join(filter(None, (count, words))) or columns.get("detail")
    if action.endswith("!"):
        columns["error"] = next((error for reason, error in REASONS if reason.search(why or "")), "Refused")
    return columns


def _starts(text: str) -> dict[str, Any]:
    """`from offset 5 with partition epoch 7 and high watermark 5, ISR [1,2], ... Current leader is 2. ...`"""
    columns: dict[str, Any] = {"isr": numbers(isr[1])} if (isr := re.search(r"ISR \[([\d, ]*)\]", text)) else {}
    columns |= {"zk_version": int(epoch[1])} if (epoch := re.search(r"partition epoch (\d+)", text)) else {}
    return columns | ({"leader": int(leader[1])} if (leader := re.search(r"Current leader is (-?\d+)", text)) else {})


def _state(text: str) -> dict[str, Any]:
    """A partition's state, its name where the print has it, and whether StopReplica deletes."""
    columns = state(text)
    if (named := NAMED.search(text)) is not None:
        columns |= {"topic": named[1], "partition": int(named[2])}
    if "deletePartition=true" in text:
        columns["detail"] = "delete"
    return columns


FORMS: tuple[tuple[str, Reader], ...] = tuple((text, partial(_read, action)) for text, action in _FORMS)
"""Sentences and their readers; `!` marks an error."""
