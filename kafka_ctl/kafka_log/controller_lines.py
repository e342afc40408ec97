"""The lines of controller.log that no record of the controller says: of channels, threads, handlers and state machines.

The controller's own log messages are records (`ControllerProcess.log`). The other lines of that file follow from the
other records: a new broker gets a channel with a thread, a controller that shuts down in good order resigns first. Such
a line may depend on all that happened before, so a trace that does not begin at the start of the run has none of them.
Kafka 2.0.1: controller/KafkaController.scala, ControllerChannelManager.scala, TopicDeletionManager.scala
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from kafka_ctl.cluster import NO_LEADER, parse_int
from kafka_ctl.errors import BadInput
from kafka_ctl.kafka_log.broker_lines import Write, listed_ids
from kafka_ctl.kafka_log.controller_state import TP, ControllerState, id_of, replica_text, state_of, tp_of
from kafka_ctl.partition import NON_EXISTENT
from kafka_ctl.replica import INELIGIBLE, STARTED
from kafka_ctl.replica import OFFLINE as OFFLINE_REPLICA
from kafka_ctl.trace import details
from kafka_ctl.trace.record import SET, Record
from kafka_ctl.zookeeper.znodes import (
    LogDirEventNotificationSequenceZNode,
    LogDirEventNotificationZNode,
    PreferredReplicaElectionZNode,
    sequence_number,
)

LOG_DIRS, PREFERRED = LogDirEventNotificationZNode.path(), PreferredReplicaElectionZNode.path()
NOT_NEEDED = "Left(ApiError(error=ELECTION_NOT_NEEDED, message=Leader election not needed for topic partition))"
SKIPPED = {
    "preferred_deleting": "Left(ApiError(error=INVALID_TOPIC_EXCEPTION, message=The topic is being deleted))",
    "preferred_unknown": "Left(ApiError(error=UNKNOWN_TOPIC_OR_PARTITION, message=The partition does not exist.))",
}
"""By message, the answer for its partitions."""


class ControllerLines:
    """Writes those lines; keeps what each controller knows."""

    def __init__(self, write: Write, states: Mapping[object, Sequence[Record]]) -> None:
        self.write, self.states = write, states
        """The writer, and the partition states put into batches, by sender, request, receiver and cause."""
        self.whole: bool | None = None
        """True if the trace begins at its beginning; None before the first record."""
        self.known: dict[int | None, ControllerState] = {}
        self.deletions: dict[str, None] = {}
        """The topics under `/admin/delete_topics`."""
        self.failing: dict[str, int] = {}
        """By notification, the broker that has lost a log directory."""
        self.requested: tuple[str, ...] = ()
        """The partitions in `/admin/preferred_replica_election`."""
        self.answers: dict[int | None, tuple[Sequence[Record], str]] = {}
        """By an answer to StopReplica, what the broker did."""
        self.causes: dict[int | None, int | None] = {}
        """By an event that brings an answer, the answer."""

    def before(self, r: Record) -> None:
        """Write what comes before the lines of this record itself."""
        if self.whole is None:
            self.whole = r.seq == 0
        if r.kind == "controller":
            self._before_first(r)
            self._before_controller(r)

    def after(self, r: Record) -> None:
        """Write what comes after them."""
        handler: Callable[[Record], None] | None = getattr(self, f"_{r.kind}", None)
        if handler is not None:
            handler(r)

    def of(self, r: Record) -> ControllerState:
        """The context of the controller of this record's broker; empty if the broker has no id."""
        broker = id_of(r)
        if broker is None:
            return ControllerState()
        if broker not in self.known:
            self.known[broker] = ControllerState()
        return self.known[broker]

    # The controller's words

    def _controller(self, r: Record) -> None:
        known, fields = self.of(r), details.fields(r)
        known.initializing_deletion = r.action == "initializing_deletion"
        match r.action:
            case "preferred_deleting" | "preferred_unknown":
                known.skipped |= dict.fromkeys(fields["partitions"], SKIPPED[r.action])
            case "preferred_starting":
                known.elections = {}
            case "preferred_done" | "preferred_failed" if known.elections is not None:
                refusal = known.elections.get(fields["partition"], "")
                known.elections[fields["partition"]] = refusal or f"Right({fields['leader']})"
            case "partition_deletion":
                known.moved, known.undeletable, known.deleting = [], [], True
            case "initializing_context":
                known.read = {}
                known.leadership.clear()
            case "brokers_changed":
                self._channels_change(r, fields)
            case "broker_startup":
                known.handlers |= dict.fromkeys(fields["brokers"])
                known.appearing = fields["brokers"]
            case "broker_failure":
                known.vanishing = fields["brokers"]
            case "shutting_down_broker":
                known.shutting_down = True
            case "checking_balance" if self.whole:
                self.write(r, "preferred_by_broker", preferred=_named(known.by_preferred()))
            case "resigned":
                self.known[id_of(r)] = ControllerState()
                self.known[id_of(r)].stopping = r.cause != known.event

    def _before_first(self, r: Record) -> None:
        """The first words after a new controller has read who is there: it listens to them and has channels."""
        known = self.of(r)
        if known.read is None or r.action in ("initializing_context", "broker_epochs_initialized"):
            return
        known.handlers, known.channels, known.read = known.read, dict(known.read), None
        self.write(r, "handlers_registered", brokers=list(known.handlers))
        for broker in known.channels:
            self.write(r, "channel_added", to=broker)
        for broker in known.channels:
            self.write(r, "channel_started", to=broker)

    def _channels_change(self, r: Record, fields: Mapping[str, list[int]]) -> None:
        bounced = fields.get("bounced", [])
        for broker in fields["new"]:
            self._add_channel(r, broker)
        for broker in bounced:
            self._remove_channel(r, broker)
        for broker in bounced:
            self._add_channel(r, broker)
        for broker in fields["dead"]:
            self._remove_channel(r, broker)

    def _add_channel(self, r: Record, broker: int) -> None:
        channels = self.of(r).channels
        if broker not in channels:
            channels[broker] = None
            self.write(r, "channel_added", to=broker)
            self.write(r, "channel_started", to=broker)

    def _remove_channel(self, r: Record, broker: int) -> None:
        channels = self.of(r).channels
        if broker in channels:
            del channels[broker]
            self.write(r, "channel_removed", to=broker)

    def _before_controller(self, r: Record) -> None:
        known = self.of(r)
        match r.action:
            case "initializing_partition_state" if self.whole:
                states = {replica_text(*key): state for key, state in known.replicas.items()}
                self.write(r, "replica_machine_started", states=states)
            case "ready" if self.whole:
                states = {tp_of(tp): state for tp, state in known.partitions.items()}
                self.write(r, "partition_machine_started", states=states)
            case "leader_epoch_updated":
                self.write(r, "leader_epoch_updating", partition=details.fields(r)["partition"])
            case "imbalance" if self.whole:
                self._imbalance(r)
            case "broker_startup" | "broker_epochs_updated":
                self._vanished(r)
            case "full_assignment_updated":
                self._full_assignment(r)
            case "preferred_done" | "preferred_failed":
                for partition, text in known.refused.items():
                    self.write(r, "election_error", partition=partition, text=text)
                known.refused = {}
            case "deletion_halted":
                self._deletion_halted(r)
            case "resigned":
                if r.cause != known.event:  # outside an event because its process stops
                    self.write(r, "thread_stopped")
                self._resigns(r)

    def _imbalance(self, r: Record) -> None:
        known, broker = self.of(r), details.fields(r)["broker"]
        not_preferred = {
            tp_of(tp): replicas
            for tp, replicas in known.by_preferred().get(broker, {}).items()
            if tp in known.leadership and known.leadership[tp].leader != broker
        }
        self.write(r, "not_preferred", broker=broker, partitions=not_preferred)

    def _vanished(self, r: Record) -> None:
        """Dead brokers are no longer listened to."""
        known = self.of(r)
        if known.vanishing:
            self.write(r, "handlers_dropped", brokers=known.vanishing)
        for broker in known.vanishing:
            known.handlers.pop(broker, None)
        known.vanishing = []

    def _full_assignment(self, r: Record) -> None:
        """Write the intended change of a partition before its outcome."""
        known, fields = self.of(r), details.fields(r)
        partition, new = fields["partition"], {n: fields[n] for n in ("replicas", "adding", "removing")}
        topic, _, number = partition.rpartition("-")
        before = known.moving.get(partition)
        if known.asked is not None and partition not in known.asked:
            known.asked.add(partition)
            known.moving[partition] = new
            plain = {"replicas": list(known.assigned.get((topic, int(number)), ())), "adding": [], "removing": []}
            if self.whole and (before or plain) != new:
                self.write(r, "assignment_updating", partition=partition, before=before or plain, after=new)
        else:
            known.moving.pop(partition, None)

    def _resigns(self, r: Record) -> None:
        known = self.of(r)
        self.write(r, "resigning")
        if self.whole:
            self.write(r, "handlers_unregistered", brokers=list(known.handlers))
        self.write(r, "machines_stopped")
        for broker in list(known.channels):
            self._remove_channel(r, broker)

    # Deletion

    def _deletion_halted(self, r: Record) -> None:
        known, fields = self.of(r), details.fields(r)
        failed, known.undeletable = [list(m) for m in known.undeletable], []
        if failed and fields.get("reason") == "offline replicas":
            self.write(r, "dead_replicas", replicas=failed, topic=fields["topics"][0])
        elif failed and fields.get("reason") == "replica deletion failure":
            self.write(r, "deletion_failed", replicas=failed, topics=fields["topics"])

    def _replica(self, r: Record) -> None:
        known, key = self.of(r), (r.topic, r.partition, r.broker)
        if r.target == INELIGIBLE and r.action != SET:
            known.undeletable.append(key)
        if r.error:
            return
        if r.target == STARTED:
            self._deletion_begins(r)
        known.replicas[key] = r.target or ""
        if r.action != SET:
            known.moved.append(key)
        if r.action == "forget":
            del known.replicas[key]

    def _deletion_begins(self, r: Record) -> None:
        """The first replica is about to be deleted; those that will be have been stopped."""
        known = self.of(r)
        if known.deleting:
            known.deleting = False
            begun = [m for m in known.moved if known.replicas.get(m) == OFFLINE_REPLICA]
            self.write(r, "deletion_begun", replicas=[list(m) for m in begun])

    def _partition(self, r: Record) -> None:
        known, tp = self.of(r), (r.topic, r.partition)
        if r.error:
            if known.elections is not None:
                refusal = f"Left(ApiError(error=PREFERRED_LEADER_NOT_AVAILABLE, message={r.detail}))"
                known.elections[tp_of(tp)], known.refused[tp_of(tp)] = refusal, r.detail or ""
            return
        known.partitions[tp] = r.target or ""
        if r.replicas is not None:
            known.assigned[tp] = r.replicas
        if r.leader is not None and r.isr is not None:
            known.leadership[tp] = r
        if r.target == NON_EXISTENT:
            known.forget(tp)

    # Requests, brokers, events

    def _request(self, r: Record) -> None:
        if r.topic is None or r.action == "StopReplica" or not r.actor.startswith("controller-"):
            return
        known, tp = self.of(r), (r.topic, r.partition)
        known.assigned[tp] = r.replicas or ()
        if r.leader is not None and r.leader >= NO_LEADER:
            known.leadership[tp] = r

    def _broker(self, r: Record) -> None:
        if r.action == "stopped" and r.error is None and not self.of(r).stopping:
            self.write(r, "thread_stopped")
            self._resigns(r)
            self.write(r, "resigned")
        if r.action in ("start", "stopped"):
            self.known.pop(id_of(r), None)

    def _zk(self, r: Record) -> None:
        parent, _, name = (r.path or "").rpartition("/")
        if parent == "/brokers/ids" and r.error is None and (broker := parse_int(name)) is not None:
            self._broker_znode(r, broker)
        elif r.path == PREFERRED and r.action == "create" and r.error is None:
            with suppress(BadInput):
                found = PreferredReplicaElectionZNode.decode((r.detail or "").encode())
                self.requested = tuple(map(str, found))
        elif parent == LOG_DIRS and r.error is None:
            self._log_dir_znode(r, name)
        elif parent == "/admin/delete_topics" and r.error is None:
            if r.action == "create":
                self.deletions[name] = None
            elif r.action == "delete":
                self.deletions.pop(name, None)

    def _log_dir_znode(self, r: Record, name: str) -> None:
        if r.action == "create":
            with suppress(BadInput):
                data = (r.detail or "").encode()
                self.failing[name] = LogDirEventNotificationSequenceZNode.decode(data, sequence_number(name))
        elif r.action == "delete":
            self.failing.pop(name, None)

    def _broker_znode(self, r: Record, broker: int) -> None:
        if r.action not in ("get", "exists"):
            return
        known = self.of(r)
        if r.action == "get" and known.read is not None:
            known.read[broker] = None
        elif r.action == "exists" and known.appearing:
            self.write(r, "handlers_added", brokers=known.appearing)
            known.appearing = []

    def _event(self, r: Record) -> None:
        if not r.actor.startswith("controller-"):
            return
        known = self.of(r)
        if r.target == "started":
            known.event, known.elections, known.skipped = r.seq, None, {}
            known.asked = set() if r.action.endswith("PartitionReassignment") else None
        elif r.target == "done":
            known.event = None
        match r.target, r.action:
            case "started", "LogDirEventNotification":
                self.write(r, "log_dir_failure", brokers=list(self.failing.values()))
            case "started", "AutoPreferredReplicaLeaderElection":
                self.write(r, "rebalance_started")
            case "started", "TopicDeletion" if self.whole:
                self.write(r, "deletions_fired", topics=list(self.deletions))
            case "queued", "TopicDeletionStopReplicaResponseReceived":
                self.causes[r.seq] = r.cause
            case "started", "TopicDeletionStopReplicaResponseReceived":
                self._deleted(r)
            case "done", "BrokerChange":
                self._vanished(r)
            case "done", "PreferredReplicaLeaderElection":
                self._elected(r)
            case "done", "ControlledShutdown":
                if known.shutting_down and self.whole:
                    leaders = {tp_of(tp): state_of(s) for tp, s in known.leadership.items()}
                    self.write(r, "all_leaders", leaders=leaders)
                known.shutting_down = False
            case "done", "IsrChangeNotification":
                if states := self.states.get((r.actor, "UpdateMetadata", id_of(r), r.cause)):
                    partitions = [tp_of((s.topic, s.partition)) for s in states]
                    self.write(r, "isr_changes", brokers=listed_ids(states[0], "brokers"), partitions=partitions)

    def _elected(self, r: Record) -> None:
        """A request from a znode is answered as well, though nothing waits for the answer."""
        known = self.of(r)
        if known.elections is not None and r.error is None and self.whole:
            answered = known.elections | known.skipped
            needless = {tp: NOT_NEEDED for tp in self.requested if tp not in answered}
            skipped = {tp: why for why in SKIPPED.values() for tp, given in known.skipped.items() if given == why}
            self.write(r, "elections_done", results=known.elections | needless | skipped)
        known.elections = None

    def answered(self, r: Record, done: Sequence[Record], response: str) -> None:
        """A broker has answered, having done so much, with this response."""
        if r.action == "StopReplica":
            self.answers[r.seq] = done, response

    def _deleted(self, r: Record) -> None:
        done, response = self.answers.pop(self.causes.pop(r.cause, None), ((), ""))
        if not done:
            return
        errors = {tp_of((d.topic, d.partition)): d.error or "NONE" for d in done}
        self.write(r, "delete_answered", broker=done[0].broker, errors=errors, error="NONE", response=response)
        deleted = [[d.topic, d.partition, d.broker] for d in done if d.error is None]
        if deleted:
            self.write(r, "deletion_successful", replicas=deleted)


def _named(by_broker: Mapping[int, Mapping[TP, tuple[int, ...]]]) -> dict[int, dict[str, tuple[int, ...]]]:
    return {id: {tp_of(tp): replicas for tp, replicas in found.items()} for id, found in by_broker.items()}
