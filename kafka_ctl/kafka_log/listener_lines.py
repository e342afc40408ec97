"""Lines that only 0.10 writes into controller.log: of listeners, selectors and the deletion thread.

Separate from `write.py` because the other generations have none of these lines.
0.10 has no queue of events. Each change in ZooKeeper fires a listener that logs the change, partitions are
elected and ISRs shrunk one by one with a line at every step, and topics are deleted by a thread of their own.
Kafka 0.10.2.2: controller/KafkaController.scala, PartitionStateMachine.scala, ReplicaStateMachine.scala,
PartitionLeaderSelector.scala, TopicDeletionManager.scala
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_ctl.cluster import LeaderAndIsr
from kafka_ctl.errors import BadInput
from kafka_ctl.kafka_log.broker_lines import Write
from kafka_ctl.kafka_log.controller_lines import ControllerLines
from kafka_ctl.kafka_log.controller_state import id_of, replica_text, state_of, tp_of
from kafka_ctl.partition import NEW, ONLINE
from kafka_ctl.partition import OFFLINE as OFFLINE_PARTITION
from kafka_ctl.replica import OFFLINE, STARTED
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record
from kafka_ctl.zookeeper.memory.tree import Node
from kafka_ctl.zookeeper.znodes import TopicPartitionStateZNode, TopicsZNode

WATCHED = ("/brokers/topics/", "/admin/")
"""The paths of the znodes whose data listeners print."""
FAILED = {"partition_creation_failed": " from New to Online, ", "election_failed_with": " due to: "}
"""The lines about an error that is thrown in the middle of a move, and what its own words come after."""
LISTENERS = {
    "BrokerChange": ("error_in_brokers", "broker changes"),
    "TopicChange": ("error_in_topics", "new topic"),
    "PartitionModifications": ("error_in_additions", "add partitions for data path /brokers/topics/"),
    "PartitionReassignmentIsrChange": ("error_in_isr", "partition reassignment"),
}
"""By event, the listeners that catch every error: the line, and its words for what failed."""


class ListenerLines(ControllerLines):
    """The lines of 0.10; keeps what the watched znodes hold."""

    def __init__(self, write: Write, states: Mapping[object, Sequence[Record]]) -> None:
        super().__init__(write, states)
        self.data: dict[str, str] = {}
        self.topics = Node(b"", 0, 0)
        """`/brokers/topics`, for the order of its children."""
        self.written: dict[object, int | None] = {}
        """By state znode: the event in which a controller wrote it last."""
        self.removing: set[object] = set()
        """The replicas whose removal from an ISR has been written about, and not yet how it ended."""
        self.electing: set[object] = set()
        """By controller and partition: a leader is being elected."""
        self.deletes: dict[int | None, bool] = {}
        """By controller: whether it deletes topics."""
        self.looked: set[int | None] = set()
        """The controllers whose deletion thread has looked at the topics and has not said that it waits."""

    # ZooKeeper

    def _zk(self, r: Record) -> None:
        super()._zk(r)
        path = r.path or ""
        if r.error is not None or not path.startswith(WATCHED):
            return
        parent, _, name = path.rpartition("/")
        is_topic = parent == TopicsZNode.path()
        if r.action in ("create", "set"):
            if is_topic and r.action == "create":
                self.topics.adopt(name)
            self.data[path], self.written[path] = r.detail or "", r.cause
        elif r.action == "delete":
            if is_topic:
                self.topics.children.pop(name, None)
            self.data.pop(path, None)

    def _stored(self, r: Record) -> tuple[str, LeaderAndIsr | None]:
        """The `state` znode of a record's partition: its path and what it holds, if that is a state."""
        path = TopicPartitionStateZNode.path((r.topic or "", r.partition or 0))
        try:
            return path, TopicPartitionStateZNode.decode(self.data.get(path, "").encode())
        except BadInput:
            return path, None

    # Listeners

    def _event(self, r: Record) -> None:
        if r.target == "started":
            self._waits(r)
        if r.target == "done" and r.error is not None and r.action in LISTENERS:
            what, failed = LISTENERS[r.action]
            self.write(r, what, event=failed + (r.topic or "") * failed.endswith("/"))
        super()._event(r)
        match r.target, r.action:
            case "started", "Startup":
                self.write(r, "startup_begun")
            case "done", "Startup":
                self._thread_starts(r)
                self.write(r, "startup_done")
            case "started", "RegisterBrokerAndReelect":
                self.write(r, "session_over")
            case "done", "Reelect":
                self._thread_starts(r)
            case "started", "TopicChange" if self.whole:
                self.write(r, "topic_change_fired", children=self.topics.names())
            case "started", "IsrChangeNotification":
                self.write(r, "isr_change_fired")
            case "started", "PartitionModifications":
                self._fired(r, "partition_modification_fired", f"/brokers/topics/{r.topic}")
            case "started", "PartitionReassignment":
                self._fired(r, "reassignment_fired", "/admin/reassign_partitions")
            case "started", "PreferredReplicaLeaderElection":
                self._fired(r, "preferred_fired", "/admin/preferred_replica_election")
            case "started", "PartitionReassignmentIsrChange":
                self._fired(r, "reassignment_isr_fired", self._stored(r)[0])

    def _before_controller(self, r: Record) -> None:
        super()._before_controller(r)
        match r.action:
            case "brokers_changed":
                children = ",".join(sorted(map(str, details.fields(r)["live"])))
                self.write(r, "broker_change_fired", children=children)
            case "assignment_updated":
                topic, _, _ = details.fields(r)["partition"].rpartition("-")
                self._fired(r, "path_updated", f"/brokers/topics/{topic}")
            case "retaining_last_isr":
                fields = details.fields(r)
                topic, _, number = fields["partition"].rpartition("-")
                self._removes(r, (topic, int(number), fields["replica"]))
            case "invoking_replicas" if details.fields(r)["target"] == STARTED:
                self._deletion_begins(r)
            case "handling_deletion":
                self._waits(r)

    def _fired(self, r: Record, what: str, path: str) -> None:
        """Write the line about a znode with its data, if it is known."""
        if path in self.data:
            self.write(r, what, path=path, data=self.data[path])

    # Elections and ISRs

    def _partition(self, r: Record) -> None:
        if r.source == NEW and r.target == ONLINE and r.error is None:
            self.write(r, "live_replicas", live=r.isr or ())
            self.write(r, "leader_initialized", state_text=state_of(r))
        super()._partition(r)
        self.written.pop(self._stored(r)[0], None)
        if r.error is None and r.target == ONLINE and r.source in (OFFLINE_PARTITION, ONLINE) and self.whole:
            leaders = {tp_of(tp): state_of(s) for tp, s in self.of(r).leadership.items()}
            self.write(r, "leaders_updated", leaders=leaders)

        elif r.error == "NoReplicaOnline" and (r.detail or "").startswith("No replica"):
            self.write(r, "elected_none", candidates=())

    def before(self, r: Record) -> None:
        """Write what comes before the lines of this record itself."""
        super().before(r)
        elected = (r.actor, r.topic, r.partition)
        if r.kind == "election":
            self.electing.add(elected)
        elif r.kind == "partition":
            needless = r.source == r.target == ONLINE and r.error is None
            failed = (r.detail or "").startswith("encountered error while electing leader ")
            if (needless or failed) and elected not in self.electing:
                self.write(r, "election")  # it began, and decided nothing
            self.electing.discard(elected)
        if r.kind == "partition" and r.error:
            for what, begins in FAILED.items():
                if (r.detail or "").startswith("encountered error ") and begins in (r.detail or ""):
                    self.write(r, what, detail=details.after(r.detail, begins))

    def _removes(self, r: Record, replica: tuple[str | None, int | None, int | None]) -> None:
        state = self.of(r).leadership.get(replica[:2])
        if state is not None and replica not in self.removing:
            self.removing.add(replica)
            self.write(r, "isr_removing", replica=replica[2], isr=state.isr, tp=tp_of(replica[:2]))

    def _replica(self, r: Record) -> None:
        if r.error == "StateChangeFailed" and r.target == OFFLINE and self._stored(r)[1] is None:
            replica = r.topic, r.partition, r.broker
            self._removes(r, replica)
            self.removing.discard(replica)
            self.write(r, "isr_absent", replica=r.broker)
        if r.error is None and r.target == OFFLINE and r.action == "stop":
            self._removed(r)
        super()._replica(r)

    def _removed(self, r: Record) -> None:
        """A replica was taken out of an ISR, or was in none: from now on the controller knows what is stored."""
        replica, leadership = (r.topic, r.partition, r.broker), self.of(r).leadership
        self._removes(r, replica)
        path, stored = self._stored(r)
        if stored and replica in self.removing:
            shrunk = self.written.pop(path, None) == r.cause
            fields = {"leader": stored.leader, "leader_epoch": stored.leader_epoch, "isr": stored.isr}
            self.write(r, "isr_removed" if shrunk else "isr_not_removed", replica=r.broker, **fields)
            leadership[replica[:2]] = leadership[replica[:2]]._replace(
                leader=stored.leader,
                isr=stored.isr,
                leader_epoch=stored.leader_epoch,
                controller_epoch=r.controller_epoch,
            )
        self.removing.discard(replica)

    # The deletion of topics

    def _controller(self, r: Record) -> None:
        super()._controller(r)
        controller = r.broker or 0
        match r.action:
            case "initializing_deletion":
                self.deletes[controller] = True
            case "deletion_disabled":
                self.deletes[controller] = False
            case "handling_deletion" if self.whole:
                for topic in details.fields(r)["topics"]:
                    states = {k: s for k, s in self.of(r).replicas.items() if k[0] == topic}
                    self.write(r, "all_deleted", topic=topic, states={replica_text(*k): s for k, s in states.items()})
            case "deletion_started" | "deletion_in_progress" | "deletion_completed" | "deletion_ineligible":
                self.looked.add(controller)
            case "resigned":
                self.deletes.pop(controller, None)

    def _waits(self, r: Record) -> None:
        """The deletion thread has looked at all topics: it waits until something happens."""
        if id_of(r) in self.looked:
            self.looked.discard(id_of(r))
            self.write(r, "deletion_awaited")

    def _thread_starts(self, r: Record) -> None:
        controller = id_of(r)
        if self.deletes.get(controller):
            self.write(r, "deletion_thread_started")

    def _resigns(self, r: Record) -> None:
        self.write(r, "resigning")
        if self.deletes.pop(id_of(r), False):
            self.write(r, "deletion_thread_stopped")
        self.write(r, "machines_stopped")
        for broker in list(self.of(r).channels):
            self._remove_channel(r, broker)
