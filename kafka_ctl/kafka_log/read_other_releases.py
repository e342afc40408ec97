"""Lines that no template writes: those of other releases, 0.8.0 to 3.9, and a few that the kit has no cause to write.

Messages of controllers that differ by a word from a template's are texts of the same kind. Everything else is a pattern
of a whole sentence, without its speaker and beginning with a capital letter, as one covers several releases and prints.
Kafka 0.8.0 to 3.9.0: controller/*.scala, migration/*.scala, server/ReplicaManager.scala, server/MetadataCache.scala,
server/metadata/*.scala, server/Raft*.scala, cluster/Partition.scala, server/KafkaApis.scala
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from kafka_ctl.kafka_log.records import Columns, Reading, message, partition_move, reading, replica_move, row
from kafka_ctl.kafka_log.shapes import NUMBERS, PARTITION, REQUESTS, Value, partitions, topic_partition
from kafka_ctl.kafka_log.templates import Text
from kafka_ctl.partition import NEW, NON_EXISTENT, OFFLINE, ONLINE
from kafka_ctl.trace import details

Reader: TypeAlias = Callable[[re.Match[str]], Columns]
"""Turns a line that a pattern has matched into columns."""

# controller.log

MESSAGES = """
elected                Becoming active at controller epoch {epoch}.
elected                Becoming the active controller at epoch {epoch}, {text}
reading_epoch          Starting become controller state transition
epoch_incremented      Incremented epoch to {epoch}
resigned               Renouncing the leadership {text}
error_processing       Uncaught error processing event {event}
error_processing       Error while handling {event:text}
broker_updated         Updated broker metadata: {text} -> {broker} : {text}
broker_updated         Updated broker: {broker} : {text}
leader_not_assigned    Leader not assigned yet for partition {partition}. Skip sending udpate metadata request
error_moving_partitions Error while moving some partitions to the {target:text} state
shutting_down_broker   Unfenced broker {broker} has requested and been granted a controlled shutdown.
preferred_unknown      Skipping preferred replica leader election for partition {partitions} since it doesn't exist.
reassignment_skipped   Skipping reassignment of partition {partition} since it is currently being deleted
reassignment_removed   Removing partition {partitions} from the list of reassigned partitions in zookeeper
reassignment_failed    Error completing reassignment of partition {partition} because controller has moved to another broker
reassignment_failed    Failed completing reassignment of partition {partition} because controller has moved to another broker
leader_epoch_updated   Updated leader epoch for partition {partition} to {leader_epoch}, zkVersion={zk_version}
topics_retried         Retrying deletion of topics {topics} since replicas {replicas:Replicas} were not successfully deleted
broker_lost            Fencing broker {broker} because its session has timed out.
"""  # noqa: E501
"""As texts, under the name of a message or of one of `OWN`."""
OWN = {"broker_lost": row("broker", "lost", "broker"), "topics_retried": message("retrying_deletion", "topics")}


def texts() -> Iterator[tuple[Text, Reading]]:
    """The texts and what they are records of."""
    for line in filter(None, MESSAGES.splitlines()):
        name, text = line.split(None, 1)
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


DECIDED = (
    (rf"Changed partition {TP} state {MOVE}(?: with assigned replicas (?P<replicas>[\d,]*))?$", "partition", "move",
     None),
    (rf"Changed partition {TP} {MOVE} with (?:leader (?P<leader>-?\d+)|state (?P<state>.*))$", "partition", "move",
     None),
    (rf"Changed state of replica (?P<broker>\d+) for partition {TP} to (?P<target>\w+)$", "replica", "move", None),
    (rf"Initiated state change of replica (?P<broker>\d+) for partition {TP} to (?P<target>\w+) failed$", "replica",
     "refuse", "StateChangeFailed"),
    (rf"Encountered error while changing partition {TP}'s state from New to Online (?P<detail>.*)", "partition",
     "refuse", "StateChangeFailed"),
    (rf"Aborted leader election for partition {TP} (?P<detail>since .*)", "election", "offline", "StateChangeFailed"),
    (rf"Partition {TP} state changed to (?P<state>\(.*\)) after removing replica (?P<broker>\d+) from the ISR",
     "controller", "shrink-isr", None),
    (rf"Sending StopReplica request (?P<state>\w+\(.*\)) to broker (?P<broker>\d+) for partition {TP}$", "request",
     "StopReplica", None),
    (rf"Failed to send LeaderAndIsr request with new .* for partition being reassigned {TP}", "request", "LeaderAndIsr",
     "Refused"),
    (rf"Received response correlationId (?P<correlation>\d+) for a request sent to broker {NODE}", "response", "other",
     None),
    (rf"Received response \{{.*\}} for a request sent to broker {NODE}", "response", "other", None),
)  # fmt: skip
"""Sentences of controllers: the pattern, and kind, action and error of the record."""
REQUESTED: tuple[tuple[str, Reader], ...] = (
    (rf"Sending become-\w+ LeaderAndIsr request (?:(?P<state>.*) )?(?:with correlationId \d+ )?"
     rf"to broker (?P<broker>\d+) for partition {TP}$", _leader_and_isr),
    (rf"Sending UpdateMetadata request (?:(?P<state>[(U\w].*?) )??(?:with correlationId \d+ )?"
     rf"to broker(?P<several>s?) (?P<brokers>.*) for partition {TP}$", _update_metadata),
    (r"Sending LeaderAndIsr request to broker (?P<broker>\d+) with (?P<n>\d+) become-leader and "
     r"(?P<m>\d+) become-follower partitions", partial(_sent, "LeaderAndIsr")),
    (r"Sending UpdateMetadata request to brokers (?P<brokers>.*) for (?P<n>\d+) partitions",
     partial(_sent, "UpdateMetadata")),
    (r"Sending StopReplica request (?:\(delete = (?P<delete>\w+)\) )?for (?P<n>\d+) replicas to broker (?P<broker>\d+)",
     partial(_sent, "StopReplica")),
    (r"Sent LeaderAndIsr request (?P<state>\(.*?\)) with new replica assignment ReplicaAssignment\(replicas="
     r"(?P<replicas>[\d,]*), addingReplicas=(?P<adding>[\d,]*), removingReplicas=(?P<removing>[\d,]*)\) to leader "
     r"-?\d+ for partition being reassigned (?P<partition>.*)$", _reassignment_sent),
    (rf"Received response (?P<api>\w+)Response\(.*?(?:,(?P<code>-?\d+))?\) for a request sent to broker {NODE}",
     _old_response),
    (r"Received error (?P<error>\w+) in (?P<api>\w+) response (?P<detail>.*) from broker (?P<broker>\d+)$",
     lambda found: _decided("response", found["api"], None, found)),
    (rf"Received error (?P<error>\w+) in (?P<api>\w+) request for partition {TP} from broker (?P<broker>\d+)$",
     lambda found: _decided("response", found["api"], None, found)),
    (r"Found (?P<partitions>.*) on broker (?P<broker>\d+) as offline$", _offline),
)  # fmt: skip
"""Sentences of controllers whose readers do something beside."""

# state-change.log, the brokers

_FROM = r"(?:received )?from controller -?\d+ epoch (?P<epoch>\d+)"
_ID = r"correlation ?[iI]d (?P<id>\d+)"

BROKERS = (
    # LeaderAndIsr as it arrives
    (rf"Received LeaderAndIsr request (?P<state>.*?) (?P<why>correlation id \d+) {_FROM}(?: for partition {TP})?$",
     "received"),
    (rf"Handling LeaderAndIsr request (?P<why>correlation id \d+) {_FROM} for partition {TP}$", "received"),
    (r"Handling LeaderAndIsr request correlationId \d+ from controller -?\d+ for (?P<n>\d+) partitions", "received"),
    (rf"(?:Handling|Received) LeaderAndIsr request {_ID} {_FROM} starting the (?P<verb>become-\w+) transition for "
     rf"partition {TP}(?: with leader (?P<leader>-?\d+))?$", "verb"),
    (rf"(?:Completed the|Completed) become-\w+ transition for partition {TP}$", "done"),
    (rf"Handled LeaderAndIsr request {_ID} {_FROM} for partition {TP}$", "done"),
    (r"Finished LeaderAndIsr request in (?P<why>\d+ms).* for (?P<n>\d+) partitions", "done"),
    # Becoming leader or follower
    (r"Stopped fetchers as part of .* for (?P<n>\d+) partitions", "stopped-fetcher"),
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
"""Sentences of brokers and what the broker did: `says` where the trace has no word for it, `!` marks an error.

Groups carry the columns: `tp`, `leader`, `leader_epoch`, `epoch` (the sender's), `state` (any print of a partition's
state); `n` (partitions), `delete` and `why` go into the detail.
"""
REASONS = (
    (re.compile(r"leader epoch|old controller|controller epoch \d+ is old"), "STALE_CONTROLLER_EPOCH"),
    (re.compile(r"not in assigned replica list"), "UNKNOWN_TOPIC_OR_PARTITION"),
    (re.compile(r"offline log directory|disk error|storage e"), "KAFKA_STORAGE_ERROR"),
    (re.compile(r"unavailable|cannot be found in live"), "LEADER_NOT_AVAILABLE"),
)
"""How a sentence gives the reasons that the trace has as errors."""
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


FORMS: tuple[tuple[str, Reader], ...] = (
    *((text, partial(_decided, kind, action, error)) for text, kind, action, error in DECIDED),
    *REQUESTED,
    *((text, partial(_done, action)) for text, action in BROKERS),
)
"""All these sentences and their readers; the first that matches is taken."""
