"""The trace as Kafka's own logs: the lines a real cluster would have left behind.

Each record makes no line, one, or several in state-change.log or controller.log; which ones is said here, in
`broker_lines.py` and, where no record says it, in `controller_lines.py`; their texts are in `messages.txt`.
docs/fidelity.md counts how many of the lines of real brokers are among them. Virtual time begins at `EPOCH`. A line
that needs a record before the slice (the request that a broker answers) is left out, not guessed. Collections whose
order Scala leaves to chance are printed sorted or in the order of the assignment.
Kafka 2.0.1: config/log4j.properties; controller/StateChangeLogger.scala, StateChangeLogger
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from kafka_ctl.cluster import parse_int, usual_port
from kafka_ctl.errors import UnknownName
from kafka_ctl.kafka_log.broker_lines import BrokerLines, Sent, listed_ids, state_fields
from kafka_ctl.kafka_log.controller_lines import ControllerLines
from kafka_ctl.kafka_log.controller_state import id_of
from kafka_ctl.kafka_log.listener_lines import ListenerLines
from kafka_ctl.kafka_log.templates import Template, Text, templates_of
from kafka_ctl.partition import NEW, ONLINE, PARTITION
from kafka_ctl.replica import NEW as NEW_REPLICA
from kafka_ctl.replica import OFFLINE, REPLICA
from kafka_ctl.table import Tables
from kafka_ctl.trace import details
from kafka_ctl.trace.record import SET, Record
from kafka_ctl.zookeeper.znodes import TopicPartitionStateZNode

EPOCH = datetime(2018, 10, 25, tzinfo=UTC)
"""The beginning of virtual time: the day Kafka 2.0.1 was tagged."""
NAMES = ("state-change", "controller")
"""The logs that can be asked for."""
ERROR_CODES = {
    "UNKNOWN_SERVER_ERROR": -1,
    None: 0,
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "STALE_CONTROLLER_EPOCH": 11,
    "KAFKA_STORAGE_ERROR": 56,
    "STALE_BROKER_EPOCH": 77,
}
"""The numbers of Kafka's errors."""


def kafka_log(
    records: Iterable[Record], name: str = "state-change", generation: str = "2.0", broker: int | None = None
) -> str:
    """The log `name` as Kafka of that generation would have written it, ending with a line break.

    Without `broker`, the lines of all processes stand together, as if a cluster had one file; with it, only
    those of that broker's process. Raises UnknownName for other names and generations.
    """
    logs = KafkaLogs([name], generation, broker).add(records)
    return "".join(f"{line}\n" for _, line in logs[name])


class WrittenLine:
    """A line that is written when it is read, as most lines of a long trace never are: `str(line)`.

    An exception, which stands below a line, has a text and no template. `state` is the partition state in the request
    that the line is about.
    """

    __slots__ = ("more", "record", "state", "text")

    def __init__(
        self, text: Template | Text, record: Record, more: dict[str, object], state: Record | None = None
    ) -> None:
        self.text, self.record, self.more, self.state = text, record, more, state

    @property
    def fields(self) -> dict[str, object]:
        """The values for the text: the record's columns, the fields of the partition state, and more."""
        return _columns(self.record) | ({} if self.state is None else state_fields(self.state)) | self.more

    def __str__(self) -> str:
        if isinstance(self.text, Text):
            return self.text.fill(self.fields)
        time = EPOCH + timedelta(milliseconds=int(self.record.time_ms))
        return f"[{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03}] {self.text.message(self.fields)}"


class KafkaLogs:
    """The lines of several logs, each with the `seq` of the record it comes from, for a trace that grows."""

    def __init__(self, names: Sequence[str] = NAMES, generation: str = "2.0", broker: int | None = None) -> None:
        for name in names:
            if name not in NAMES:
                raise UnknownName("Kafka log", name, NAMES)
        self.book, self.broker = templates_of(getattr(generation, "name", generation)), broker
        self.logs: dict[str, list[tuple[int, WrittenLine]]] = {name: [] for name in names}
        """The lines of the records that were added last."""
        self.seq = 0
        """The record that is being read."""
        self.due: dict[str, list[tuple[str, list[Template]]]] = {}
        """The writers of the lines of each log, by the name of the record's action."""
        self.epochs: dict[str, int] = {}
        """The epoch of each controller, in a slice the first one that a record has."""
        self.nodes: dict[int, dict[str, object]] = {}
        self.states: dict[object, list[Record]] = {}
        """The partition states put into batches, by who they are for and what caused them."""
        self.taken: dict[object, int] = {}
        self.sent: dict[int | None, Sent] = {}
        self.stopping: list[Record] = []
        """The StopReplica states of the batch that is being read."""
        self.brokers = BrokerLines(self.write)
        unrecorded = ListenerLines if "listeners" in self.book.values else ControllerLines
        self.unrecorded = unrecorded(self.write, self.states)

    def add(self, records: Iterable[Record]) -> dict[str, list[tuple[int, WrittenLine]]]:
        """By log: the lines of these records, which follow those of the call before."""
        new = list(records)
        self.epochs = {r.actor: r.controller_epoch or 0 for r in reversed(new) if _carries_epoch(r)} | self.epochs
        self.logs = {name: [] for name in self.logs}
        for record in new:
            if self.stopping and not _continues(self.stopping[0], record):
                self._stopping()
            self._read(record)
        if self.stopping:
            self._stopping()
        return self.logs

    def _read(self, record: Record) -> None:
        self.seq = record.seq
        if _carries_epoch(record):
            self.epochs[record.actor] = record.controller_epoch or 0
        self.unrecorded.before(record)
        handler = getattr(self, f"_{record.kind}", None)
        if handler is not None:
            handler(record)
        self.unrecorded.after(record)

    def write(self, r: Record, what: str, state: Record | None = None, /, **fields: object) -> None:
        """Write the lines for `what`, by the record's actor; its columns and the fields of `state` are words too."""
        number, due = id_of(r), self._due(what)
        if not due or number is None or self.broker not in (None, number):
            return
        known = {"id": number, "epoch": self.epochs.get(r.actor, 0)} | fields
        if what == "follow_started":
            known |= {
                f"leader_{name}": value for name, value in self.node(-1 if r.leader is None else r.leader).items()
            }
        without_json = fields.get("problem") == "None.get"
        thrown = self.book.texts.get("no_such_element" if without_json else f"thrown_by_{what}")
        for log, lines in due:
            self.logs[log] += [(self.seq, WrittenLine(line, r, known, state)) for line in lines]
            if thrown:
                self.logs[log].append((self.seq, WrittenLine(thrown, r, known)))

    def _due(self, what: str) -> list[tuple[str, list[Template]]]:
        if what not in self.due:
            lines = self.book.templates.get(what, [])
            by_file = [(name, [line for line in lines if line.component.file == name]) for name in self.logs]
            self.due[what] = [(name, own) for name, own in by_file if own]
        return self.due[what]

    def node(self, broker: int) -> dict[str, object]:
        """The address of a broker: from its znode, else the lab's."""
        usual = {"to": broker, "host": "127.0.0.1", "port": usual_port(broker), "rack": None}
        return usual | self.nodes.get(broker, {})

    # The controller

    def _zk(self, r: Record) -> None:
        parent, _, name = (r.path or "").rpartition("/")
        if (
            r.action == "create"
            and r.error is None
            and parent == "/brokers/ids"
            and (broker := parse_int(name)) is not None
        ):
            data = details.json_object(r.detail)
            self.nodes[broker] = {k: data[k] for k in ("host", "port", "rack") if k in data}

    def _event(self, r: Record) -> None:
        if r.action == "Startup" and r.target == "queued":
            self.write(r, "thread_started")

    def _controller(self, r: Record) -> None:
        fields = details.fields(r)
        done = r.action == "reassignment_progress" and not fields["missing"]
        if "error" in fields:
            fields["problem"] = str(fields["error"]).partition(", path = ")[0]  # the kit says where it met it, too
        if r.action == "broker_updated":
            fields["rack"] = self.node(fields["broker"])["rack"]
        if r.action == "not_sending":
            fields["request"] = self._unsent(r, fields)
        if r.action == "deletion_disabled":
            self._deletion_disabled(r, fields["topics"])
            return
        if r.action == "reassignment_removed":
            fields = {"targets": dict.fromkeys(fields["partitions"], ())} | fields
        self.write(r, "reassignment_progress_done" if done else r.action, **fields)

    def _deletion_disabled(self, r: Record, topics: Sequence[str]) -> None:
        """0.10 writes a line for each topic; at failover the line is the deletion manager's.

        Kafka 0.10.2.2: controller/TopicDeletionManager.scala; PartitionStateMachine.scala, DeleteTopicsListener
        """
        what = "deletion_disabled_at_failover" if self.unrecorded.of(r).initializing_deletion else r.action
        for each in [[topic] for topic in topics] if "listeners" in self.book.values else [topics]:
            self.write(r, what, topics=each, topic="".join(each[:1]))

    def _unsent(self, r: Record, fields: dict[str, object]) -> str:
        """A request to a broker without channel as Kafka prints it; its states are the last that were batched, and
        leave the batch."""
        batched = self.states.get((r.actor, fields["request"], fields["broker"], r.cause), [])
        first = len(batched) - len(details.fields(r).get("partitions", ()))
        states, batched[first:] = batched[first:], []
        return self._printed(r, str(fields["request"]), states, fields)

    def _printed(self, r: Record, request: str, states: Iterable[Record], fields: Mapping[str, object]) -> str:
        """A request as Kafka prints it, only its name for one without a text of its own."""
        text = self.book.texts.get(f"printed_{request}")
        if text is None:
            return request
        known = dict(fields) | {"id": id_of(r), "epoch": self.epochs.get(r.actor, 0)}
        states = list(states)
        state, node = self.book.texts["partition_state"], self.book.texts["node"]
        printed = [f"{s.topic}-{s.partition}={state.fill(_columns(s) | state_fields(s))}" for s in states]
        leaders = [node.fill(self.node(b)) for b in dict.fromkeys(s.leader for s in states) if b is not None and b >= 0]
        return text.fill(known | {"states": ", ".join(printed), "leaders": ", ".join(leaders)})

    def _partition(self, r: Record) -> None:
        if r.action == SET:
            return
        if r.error:
            self.write(r, "partition_failed")
            self._thrown(r, PARTITION, "illegal_partition")
        else:
            self.write(
                r, {str(NEW): "partition_new", str(ONLINE): "partition_online"}.get(r.target or "", "partition_moved")
            )

    def _replica(self, r: Record) -> None:
        if r.action == SET:
            return
        if not r.error:
            self.write(r, "replica_moved", replica=r.broker)
            return
        slip = r.target == NEW_REPLICA and r.error == "StateChangeFailed"  # 2.0 and 2.4 name the wrong state there
        named = OFFLINE if slip and self.book.generation != "0.10" else r.target
        self.write(r, "replica_failed", replica=r.broker, target=named)
        self._thrown(r, REPLICA, "illegal_replica")

    def _thrown(self, r: Record, tables: Tables, illegal: str) -> None:
        """The exception below an ERROR line, without the stack."""
        above = self.logs.get("state-change")
        if not above or self.broker not in (None, id_of(r)):
            return
        kinds = {"InvalidTransition": illegal, "StateChangeFailed": "failed", "NoReplicaOnline": "no_replica"}
        kind = kinds.get(r.error or "", "zookeeper_failed")
        if (text := self.book.texts.get(kind)) is not None:
            table = tables[self.book.generation]
            allowed = sorted(table.previous(r.target or ""), key=table.states.index) if kind == illegal else ()
            created = tables is PARTITION and r.source == NEW  # Kafka makes that error without its path
            path = f" for {TopicPartitionStateZNode.path((r.topic or '', r.partition or 0))}" if not created else ""
            code = "Session expired" if r.error == "SessionExpired" else r.error
            fields: dict[str, object] = {"replica": r.broker, "allowed": allowed, "text": r.detail}
            fields |= {"kind": r.error, "code": code, "path": path}
            above.append((self.seq, WrittenLine(text, r, fields)))

    def _election(self, r: Record) -> None:
        self.write(r, "election")
        fields = details.named(r.detail)
        if r.action == "offline" and r.leader is not None:
            candidates = [b for b in r.replicas or () if str(b) in fields["live"].split(",")]
            self.write(r, f"elected_{r.target}", candidates=candidates)
        elif r.leader is not None or r.action == "preferred":
            self.write(r, f"elected_{r.action.replace('-', '_')}", leader_before=fields.get("leader_before"))
        if r.leader is not None:
            self.write(r, "elected_leader")

    # Requests

    def _request(self, r: Record) -> None:
        if not r.actor.startswith("controller-"):
            return
        if r.target == "sent":
            self._leaves(r)
            return
        if r.action == "StopReplica":
            self.stopping.append(r)
            return
        receivers = [r.broker] if r.action == "LeaderAndIsr" else listed_ids(r, "brokers")
        for receiver in receivers:
            self.states.setdefault((r.actor, r.action, receiver, r.cause), []).append(r)
        if r.action == "LeaderAndIsr":
            role = "become-leader" if r.broker == r.leader else "become-follower"
            self.write(r, "sending_leader_and_isr", r, role=role, to=r.broker)
        else:
            self.write(r, "sending_metadata", r)

    def _stopping(self) -> None:
        batch, self.stopping = self.stopping, []
        self.seq = batch[0].seq
        replicas: dict[bool, list[object]] = {True: [], False: []}
        for r in batch:
            delete = r.detail == "delete"
            replicas[delete].append((r.topic, r.partition, r.broker, delete))
        fields = {"to": batch[0].broker, "deleted": replicas[True], "kept": replicas[False]}
        self.write(batch[0], "stopping_replicas", **fields)
        if replicas[True]:
            self.write(batch[0], "stopping_deleted", **fields)
        if replicas[False]:
            self.write(batch[0], "stopping_kept", **fields)

    def _leaves(self, r: Record) -> None:
        """A request goes out: it carries the next states that were put into a batch for its receiver."""
        fields = details.named(r.detail)
        key, count = (r.actor, r.action, r.broker, r.cause), int(fields["partitions"])
        waiting = self.states.get(key, [])
        start = self.taken.get(key, 0)
        self.taken[key] = start + count
        states = {(s.topic, s.partition): s for s in waiting[start : start + count]}
        self.sent[r.seq] = Sent(r, fields, states)
        if fields["correlation_id"] == "0":
            self.write(r, "connected", **self.node(r.broker or 0))

    def _response(self, r: Record) -> None:
        if r.error == "DISCONNECTED":
            self._disconnected(r)
            return
        sent = self.sent.pop(r.cause, None)
        if sent is None:
            return
        done = self.brokers.answered(r, sent)
        fields = {"code": ERROR_CODES.get(r.error, -1), "answers": ",".join(map(self._answer, done))}
        kind = "plain_response" if r.action == "UpdateMetadata" else "partition_response"
        response = self.book.texts[kind].fill(fields)
        self.unrecorded.answered(r, done, response)
        fields = {"response": response, "api": r.action, "correlation_id": sent.fields["correlation_id"]}
        self.write(r._replace(actor=sent.record.actor), "answered", **fields, **self.node(r.broker or 0))

    def _disconnected(self, r: Record) -> None:
        """The connection was refused, or the request was sent and nothing came back."""
        sent, node = self.sent.get(r.cause), self.node(r.broker or 0)
        if sent is None or "refused the connection" in (r.detail or ""):
            self.write(r, "unreachable", **node)
            return
        states = list(sent.states.values())
        named = [f"{s.topic}-{s.partition}" for s in states]
        deletes = any("delete" in details.flags(s.detail) for s in states)
        printed = self._printed(r, r.action, states, {"partitions": ",".join(named), "delete": deletes})
        self.write(r, "fails_to_send", request=printed, **node)

    def _answer(self, done: Record) -> str:
        """The result of one partition in a response."""
        code = ERROR_CODES.get(done.error if done.action == "ignored" else None, -1)
        return self.book.texts["answer"].fill(_columns(done) | {"code": code})

    def _broker(self, r: Record) -> None:
        self.brokers.read(r, self.sent.get(r.cause))


def _carries_epoch(r: Record) -> bool:
    carries = r.kind in ("controller", "partition", "replica") or r.target == "sent"
    return carries and r.actor.startswith("controller-")


def _columns(r: Record) -> dict[str, object]:
    """A record's columns as words, and its partition as Kafka prints it."""
    columns: Iterable[tuple[str, object]] = zip(r._fields, r, strict=True)
    return {n: value for n, value in columns if value is not None} | {"tp": f"{r.topic}-{r.partition}"}


def _continues(first: Record, r: Record) -> bool:
    """True if a record belongs to the batch of StopReplica states that `first` began."""
    same = r.kind == "request" and r.action == "StopReplica" and r.target is None
    return same and (r.actor, r.broker, r.cause) == (first.actor, first.broker, first.cause)
