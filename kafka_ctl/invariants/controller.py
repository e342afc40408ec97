"""Invariants of the controller that single records show.

Separate from `checker.py` because that one calls the invariants.
"""

from __future__ import annotations

from collections import deque

from kafka_ctl.cluster import NO_LEADER, TopicPartition, parse_int
from kafka_ctl.invariants.base import MOVE, Invariant, Reports, State, Subject
from kafka_ctl.invariants.facts import CONTROLLER, only
from kafka_ctl.partition import PARTITION
from kafka_ctl.replica import REPLICA
from kafka_ctl.trace.record import Record

REQUESTS = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")


class LeaderInIsr(Invariant):
    """The leader of a partition is in its ISR."""

    id, name = "I2", "leader-in-isr"
    motive = "KAFKA-708"

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if new is not None and new.leader != NO_LEADER and new.leader not in new.isr:
            text = f"{tp} is led by {new.leader}, which is not in its ISR {list(new.isr)}"
            self.broken(record, text, Subject(tp, state=old))


class OneControllerPerEpoch(Invariant):
    """The controller epoch in ZooKeeper never falls, and no two controllers act under the same one."""

    id, name = "I7", "one-controller-per-epoch"
    motive = "KAFKA-532"

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.owners: dict[int, str] = {}

    def written(self, record: Record) -> None:
        if record.path == "/controller_epoch" and record.action != "delete":
            new = parse_int(record.detail or "")
            if new is not None and new < self.facts.epoch:
                text = f"the controller epoch fell from {self.facts.epoch} to {new}"
                self.broken(record, text, Subject(aspect=str(new)))

    @only("epoch_incremented", "ready")
    def logged(self, record: Record) -> None:
        epoch = record.controller_epoch or 0
        owner = self.owners.setdefault(epoch, record.actor)
        if owner != record.actor:
            text = f"{record.actor} acts under epoch {epoch}, which is {owner}'s"
            self.broken(record, text, Subject(aspect=str(epoch)))


class DeposedControllerWritesNothing(Invariant):
    """Once another controller has been elected, the old one changes nothing in ZooKeeper any more."""

    id, name = "I8", "deposed-controller-writes-nothing"
    motive = "KAFKA-6082"

    def written(self, record: Record) -> None:
        author = self.facts.author(record)
        epoch = self.facts.epochs.get(author)
        if not self.facts.is_deposed(record):
            return
        if record.path == CONTROLLER and record.action == "delete":
            text = f"{author} deleted /controller, which was broker {self.facts.controller}'s"
            self.broken(record, text, Subject(controller=author))
        else:
            elected = f"elected as epoch {epoch}" if epoch is not None else "not in office yet"
            text = f"{author}, {elected}, wrote {record.path} in epoch {self.facts.epoch}"
            self.broken(record, text, Subject(controller=author, aspect=str(epoch)))


class OldRequestsAreRefused(Invariant):
    """A broker carries out no request of an older controller, and none that was sent to an earlier process of it."""

    id, name = "I9", "old-requests-are-refused"
    motive = "KAFKA-532, KAFKA-7235"

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.newest: dict[int, int] = {}
        self.registered: dict[int, int] = {}

    @only("start", "registered")
    def process(self, record: Record) -> None:
        if record.broker is None:
            return
        if record.action == "start" and record.kind == "broker":
            self.newest.pop(record.broker, None)
        elif record.action == "registered":
            self.registered[record.broker] = self.facts.registered.get(record.broker, -1)

    def answered(self, record: Record) -> None:
        if record.error is not None or record.cause is None or record.action not in REQUESTS:
            return
        asked, broker = self.facts.records[record.cause], record.broker
        if asked.kind != "request" or broker is None:
            return
        epoch, newest = asked.controller_epoch or 0, self.newest.get(broker, 0)
        if epoch < newest:
            text = f"broker {broker} obeyed a request ({record.action}) of epoch {epoch} after one of epoch {newest}"
            self.broken(record, text, Subject(broker=broker, aspect=f"{record.action} controller"))
        if asked.seq < self.registered.get(broker, -1):
            text = f"broker {broker} obeyed a request ({record.action}) sent to it before it registered again"
            self.broken(record, text, Subject(broker=broker, aspect=f"{record.action} broker"))
        self.newest[broker] = max(epoch, newest)

    @only("shutting_down_broker")
    def logged(self, record: Record) -> None:
        """A broker counts as shutting down if this process of it has asked for that, not an earlier one."""
        asked = self.past.request(record)
        broker = int(asked.actor.removeprefix("broker-")) if asked else -1
        if asked is not None and asked.seq < self.registered.get(broker, -1):
            who = f"{record.actor} takes broker {broker} to be leaving"
            text = f"{who}, as it had asked before it registered again"
            self.broken(record, text, Subject(broker=broker, aspect="ControlledShutdown broker"))


class EpochsTellWhoChanged(Invariant):
    """A controller that changes a partition's state raises its leader epoch; a leader that changes its ISR does not. A
    state that an administrator wrote does not count.
    """

    id, name = "I10", "epochs-tell-who-changed"
    motive = "KAFKA-13790"

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if old is None or new is None or record.actor == "admin":
            return
        author = self.facts.author(record)
        if author.startswith("controller-"):
            if new.leader_epoch <= old.leader_epoch:
                text = f"{author} wrote {tp} and left its leader epoch at {new.leader_epoch}"
                self.broken(record, text, Subject(tp))
        # A leader writes the controller epoch that it received, which may be a newer one.
        elif author != f"broker-{old.leader}" or (new.leader, new.leader_epoch) != (old.leader, old.leader_epoch):
            self.broken(record, f"{author} wrote more of {tp} than the ISR of what it leads", Subject(tp))


class EpochsNeverFall(Invariant):
    """A partition's leader epoch and the version of its znode never fall while its topic exists. A state that an
    administrator wrote does not count.
    """

    id, name = "I11", "epochs-never-fall"
    motive = "KAFKA-2729"

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if old is None or new is None or record.actor == "admin":
            return
        if new.leader_epoch < old.leader_epoch or new.zk_version <= old.zk_version:
            before, after = (f"epoch {s.leader_epoch} version {s.zk_version}" for s in (old, new))
            self.broken(record, f"{tp} fell from {before} to {after}", Subject(tp))


class IsrIsAssigned(Invariant):
    """An ISR is never empty, and all its members are assigned replicas; a state that an administrator wrote is not
    looked at.
    """

    id, name = "I12", "isr-is-assigned"
    motive = "KAFKA-708, KAFKA-1097"

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        assignment = self.facts.assigned(tp)
        if new is None or assignment is None or record.actor == "admin":
            return
        if not new.isr and (old is None or old.isr):
            self.broken(record, f"the ISR of {tp} is empty", Subject(tp, aspect="empty", state=old))
        strangers = [r for r in new.isr if r not in assignment.replicas]
        if strangers:
            text = f"{strangers} are in the ISR of {tp} but not assigned to it"
            self.broken(record, text, Subject(tp, aspect="strangers", state=old, brokers=tuple(strangers)))


class OnlyLegalMoves(Invariant):
    """Partitions and replicas move as their tables allow, each move from where the last one led."""

    id, name = "I13", "only-legal-moves"
    motive = "the logs of real controllers"

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.tables = {"partition": PARTITION[self.generation], "replica": REPLICA[self.generation]}
        self.last: dict[str, dict[tuple[object, ...], str]] = {}

    @only("resigned", "initializing_replica_state", "initializing_partition_state")
    def logged(self, record: Record) -> None:
        kept = "partition" if record.action == "initializing_replica_state" else "replica"
        known = {} if record.action == "resigned" else self.last.get(record.actor, {})
        self.last[record.actor] = {key: state for key, state in known.items() if key[0] == kept}

    @only("start")
    def process(self, record: Record) -> None:
        if record.kind == "broker":
            self.last.pop(f"controller-{record.broker}", None)

    def moved(self, record: Record) -> None:
        source, target = record.source, record.target
        if record.action == "refuse" or source is None or target is None:
            return
        if not self.tables[record.kind].allows(source, target):
            self._moved_wrongly(record, f"{source} -> {target}")
        states = self.last.setdefault(record.actor, {})
        key = (record.kind, record.topic, record.partition, record.broker if record.kind == "replica" else None)
        before = states.get(key, source)
        if before != source:
            self._moved_wrongly(record, f"from {source}, but had moved to {before} before")
        states[key] = target

    def _moved_wrongly(self, record: Record, how: str) -> None:
        thing = f"{record.tp}" + (f"@{record.broker}" if record.kind == "replica" else "")
        self.broken(record, f"{record.kind} {thing} moved {how}", Subject(record.tp, record.broker))


class NoLeavingBrokerIsAdded(Invariant):
    """No leader adds a broker to an ISR if that broker is shutting down or is not registered."""

    id, name = "I15", "no-leaving-broker-is-added"
    motive = "KAFKA-14140"

    def state_written(self, record: Record, tp: TopicPartition, old: State, new: State) -> None:
        if old is None or new is None or not self.facts.author(record).startswith("broker-"):
            return
        for replica in new.isr:
            if replica not in old.isr and (replica in self.facts.shutting_down or replica not in self.facts.registered):
                why = "shutting down" if replica in self.facts.shutting_down else "not registered in ZooKeeper"
                text = f"broker {replica} was added to the ISR of {tp} though it is {why}"
                self.broken(record, text, Subject(tp, replica))


class NothingIsDeletedUnasked(Invariant):
    """A copy is deleted only if its topic is to be deleted, or if a reassignment is to remove it."""

    id, name = "I16", "nothing-is-deleted-unasked"
    motive = "KAFKA-5310, KAFKA-7235"

    @only("StopReplica")
    def sent(self, record: Record) -> None:
        if record.detail != "delete":
            return
        tp = record.tp
        if not self.facts.is_deleting(tp) and record.broker in self.facts.target(tp):
            text = f"broker {record.broker} is asked to delete {tp}, which it must keep"
            self.broken(record, text, Subject(tp, record.broker, aspect=MOVE))


class EventsInOrder(Invariant):
    """A controller works on its events one at a time, in the order they came, and loses none."""

    id, name = "I17", "events-in-order"
    motive = "KAFKA-5028, KAFKA-6879"
    needs = "single_threaded"

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.queues: dict[str, deque[tuple[object, ...]]] = {}
        self.working: dict[str, str] = {}

    @only("start")
    def process(self, record: Record) -> None:
        if record.kind == "broker":
            self.queues.pop(f"controller-{record.broker}", None)
            self.working.pop(f"controller-{record.broker}", None)

    def event(self, record: Record) -> None:
        actor = record.actor
        if not actor.startswith("controller-"):
            return
        queue = self.queues.setdefault(actor, deque())
        what = (record.action, record.topic, record.partition, record.broker)
        if record.target == "queued":
            queue.append(what)
        elif record.target == "dropped":
            queue.popleft()
        elif record.target == "started":
            if actor in self.working:
                text = f"{actor} began {record.action} in the middle of {self.working[actor]}"
                self.broken(record, text, Subject(controller=actor))
            expected = queue.popleft() if queue else None
            if expected != what:
                text = f"{actor} began {record.action}, but {expected and expected[0]} came first"
                self.broken(record, text, Subject(controller=actor))
            self.working[actor] = record.action
        elif record.target == "done":
            self.working.pop(actor, None)
