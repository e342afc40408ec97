"""Changes of a watched cluster as records: the facts that ZooKeeper shows, and the causes that follow from them.

A record of the kind `zk` or `watch` is a fact. Its actor is `zookeeper`, as a znode does not say who wrote it; only an
ephemeral znode does, by its session, which is that of a registered broker. A record of any other kind is inferred, and
its `cause` is the fact that it is inferred from.

    a state has another leader          its controller held an election; unclean if the leader was not in the ISR
    ... the same leader, a higher epoch its controller took the missing members out of the ISR
    a state has another ISR only        its leader shrank or expanded it
    a broker's znode goes               the controller took it out of its last ISR while it was registered: a controlled
                                        shutdown; else the broker is lost, and the partitions that it led are offline
    /controller and /controller_epoch   a controller is elected, or resigns

Separate from `watch.py` because what follows from a change does not depend on how it was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby

from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition, parse_int
from kafka_ctl.errors import BadInput
from kafka_ctl.foreign.cluster import CONTROLLER, EPOCH, IDS, STATE, TOPICS, Cluster, ZNode
from kafka_ctl.foreign.reading import Change
from kafka_ctl.partition import NEW, NON_EXISTENT, OFFLINE, ONLINE, PartitionState
from kafka_ctl.replica import ReplicaState
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Recorder
from kafka_ctl.zookeeper.znodes import TopicPartitionStateZNode


class Recording:
    """The trace of a watched cluster, and what is inferred so far."""

    def __init__(self, trace: Recorder, cluster: Cluster) -> None:
        self.trace, self.cluster = trace, cluster
        self.sessions: dict[int, int] = {}
        """Session -> the broker that is registered with it."""
        self.known: dict[TopicPartition, LeaderAndIsr] = {}
        self.states: dict[TopicPartition, PartitionState] = {}
        self.live: set[int] = set()
        self.taken_out: set[int] = set()
        """Live brokers that a controller has taken out of an ISR since they were registered."""
        self.migrates = False
        self._moves: list[Callable[[], None]] = []
        """The moves that follow from the elections of states that change together."""
        self.controllers: dict[int, int] = {}
        """Controller epoch -> the broker that had it."""

    def begin(self, changes: Iterable[Change]) -> None:
        """Record the cluster as it was found."""
        found = [change for change in changes if change.after is not None]
        self._note_sessions(found)
        for path, _, node, _, _ in found:
            assert node is not None
            self._fact("found", path, node)
        self._learn()
        for tp, replicas, state in self.cluster.partitions():
            self._move("set", tp, None, self.states[tp], state, replicas=replicas.replicas)

    def _learn(self) -> None:
        """Take the cluster as it is for what was known before the next change."""
        self.migrates, self.live = bool(self.cluster.migrates), set(self.cluster.brokers)
        self.known, self.states = {}, {}
        self.taken_out.clear()
        self._note_controller(None)
        for tp, _, state in self.cluster.partitions():
            if state is not None:
                self.known[tp] = state
            self.states[tp] = NEW if state is None else ONLINE if state.leader in self.live else OFFLINE

    def add(self, changes: Iterable[Change]) -> None:
        """Record changes, and what follows from each; of states that change together, first all facts.

        Nothing follows while a cluster migrates to KRaft, whose controller is another.
        """
        changes = list(changes)
        self._note_sessions(changes)
        if self.migrates or self.cluster.migrates:
            for change in changes:
                self._facts(change)
            self._learn()
            return
        for are_states, run in groupby(changes, key=lambda change: STATE.fullmatch(change.path) is not None):
            facts = [(change, self._facts(change)) for change in run]
            for change, fact in facts:
                if fact >= 0:
                    self._infer(change.path, change.after, fact)
            if are_states:
                for move in self._moves:
                    move()
                self._moves.clear()

    def _facts(self, change: Change) -> int:
        """Record what was seen of a change: missed versions, a deletion, the new data.

        Returns the last fact's `seq`; -1 if the znode came and went.
        """
        path, before, after, missed, _ = change
        if missed:
            self.trace.add("zookeeper", "watch", "gap", path=path, detail=details.write(changes=missed))
        if before is None or after is None or before.stat.czxid != after.stat.czxid:
            fact = self._fact("delete", path, None) if before is not None else -1
            return fact if after is None else self._fact("create", path, after)
        return self._fact("set", path, after)

    def gap(self, seconds: float) -> None:
        """Record that no session watched for so long: what came and went in it is not known."""
        self.trace.add("watcher", "watch", "gap", detail=details.write(seconds=f"{seconds:.3f}"))

    # Facts

    def _note_sessions(self, changes: Iterable[Change]) -> None:
        for change in changes:
            parent, _, name = change.path.rpartition("/")
            owner, broker = change.after.stat.ephemeral_owner if change.after else 0, parse_int(name)
            if parent == IDS and owner and broker is not None:
                self.sessions[owner] = broker

    def _fact(self, action: str, path: str, node: ZNode | None) -> int:
        """Record a fact. The broker behind an ephemeral znode is known by its session."""
        if node is None:
            return self.trace.add("zookeeper", "zk", action, path=path)
        owner, version = node.stat.ephemeral_owner, node.stat.version
        actor, broker = "zookeeper", self.sessions.get(owner)
        if broker is not None:
            actor = f"{'controller' if path == CONTROLLER else 'broker'}-{broker}"
        target = None if action == "set" else "ephemeral" if owner else "persistent"
        text = node.text or None
        return self.trace.add(actor, "zk", action, path=path, target=target, zk_version=version, detail=text)

    # Causes

    def _infer(self, path: str, node: ZNode | None, fact: int) -> None:
        """Record what follows from a fact."""
        parent, _, name = path.rpartition("/")
        if found := STATE.fullmatch(path):
            self._state(TopicPartition(found[1], int(found[2])), node, fact)
        elif parent == TOPICS and node is not None:
            for number, replicas in self.cluster.topics.get(name, {}).items():
                tp = TopicPartition(name, number)
                if self.states.get(tp, NON_EXISTENT) == NON_EXISTENT:
                    self._move("assign", tp, NON_EXISTENT, NEW, None, fact, replicas.replicas)
        elif parent == IDS and (broker := parse_int(name)) is not None:
            self._broker(broker, node, fact)
        elif path in (CONTROLLER, EPOCH):
            self._note_controller(fact, gone=path == CONTROLLER and node is None)

    def _state(self, tp: TopicPartition, node: ZNode | None, fact: int) -> None:
        before, state, source = self.known.get(tp), None, self.states.get(tp, NEW)
        if node is None:
            self.known.pop(tp, None)
            if source == ONLINE:
                self._move("mark", tp, ONLINE, OFFLINE, None, fact)
            self._move("mark", tp, OFFLINE, NON_EXISTENT, None, fact)
            return
        try:
            state = TopicPartitionStateZNode.decode(node.data, node.stat.version, tp)
        except BadInput:
            return  # one of the cluster's problems
        self.known[tp] = state
        if before is not None:
            self.taken_out -= set(state.isr) - set(before.isr)
            if state.leader_epoch > before.leader_epoch:
                self.taken_out |= (set(before.isr) - set(state.isr)) & self.live
        if before is None:
            self._move("initialize", tp, NEW, ONLINE, state, fact)
        elif state.leader_epoch == before.leader_epoch and state.leader == before.leader:
            self._isr(tp, before, state, fact)
        elif state.leader == NO_LEADER:
            self._move("mark", tp, source, OFFLINE, state, fact)
        elif state.leader == before.leader and source == ONLINE:
            actor, moved = self._controller(state.controller_epoch), (ReplicaState.ONLINE, ReplicaState.OFFLINE)
            for replica in sorted(set(before.isr) - set(state.isr)):
                self.trace.about(actor, "replica", "stop", tp, replica, state, *moved, cause=fact)
        else:
            self._elected(tp, before, state, source, fact)

    def _isr(self, tp: TopicPartition, before: LeaderAndIsr, state: LeaderAndIsr, fact: int) -> None:
        if set(state.isr) == set(before.isr):
            return
        actor, was = f"broker-{state.leader}", details.write(isr_before=details.listed(before.isr))
        action = "shrink-isr" if set(before.isr) - set(state.isr) else "expand-isr"
        self.trace.about(actor, "broker", action, tp, state.leader, state, cause=fact, detail=was)

    def _elected(
        self, tp: TopicPartition, before: LeaderAndIsr, state: LeaderAndIsr, source: PartitionState, fact: int
    ) -> None:
        assignment = self.cluster.topics.get(tp.topic, {}).get(tp.partition)
        assigned = assignment.replicas if assignment else ()
        if source != ONLINE:
            strategy = "offline"
        elif tp in self.cluster.moving():
            strategy = "reassign"
        else:
            strategy = "preferred" if before.leader in state.isr else "controlled-shutdown"
        target = "clean" if state.leader in before.isr else "unclean"
        live, isr = details.listed(sorted(self.live)), details.listed(before.isr)
        was = details.write(live=live, isr_before=isr, leader_before=before.leader)
        actor, replicas = self._controller(state.controller_epoch), assigned or None
        self.trace.about(
            actor, "election", strategy, tp, None, state, target=target, cause=fact, replicas=replicas, detail=was
        )
        self._moves.append(partial(self._move, "elect", tp, source, ONLINE, state, fact, assigned))

    def _broker(self, broker: int, node: ZNode | None, fact: int) -> None:
        actor = f"broker-{broker}"
        if node is not None:
            self.live.add(broker)
            self.taken_out.discard(broker)
            self.trace.add(actor, "broker", "registered", broker=broker, cause=fact)
            return
        self.live.discard(broker)
        led = [tp for tp, state in self.known.items() if state.leader == broker]
        if broker in self.taken_out and not any(broker in state.isr for state in self.known.values()):
            self.trace.add(actor, "broker", "controlled-shutdown", broker=broker, cause=fact)
            return
        self.trace.add(actor, "broker", "lost", broker=broker, cause=fact)
        for tp in led:
            if self.states.get(tp) == ONLINE:
                self._move("mark", tp, ONLINE, OFFLINE, self.known[tp], fact)

    def _note_controller(self, fact: int | None, gone: bool = False) -> None:
        """Learn which broker has the present epoch, and record its election, or that it holds the office no more."""
        controller, node = self.cluster.controller, self.cluster.znodes.get(EPOCH)
        if gone and self.controllers:
            last = self.controllers[max(self.controllers)]
            self.trace.add(f"controller-{last}", "controller", "resigned", broker=last, cause=fact)
        if controller is None or controller.epoch is None or controller.doubt or node is None:
            return
        id, epoch = controller.id, controller.epoch
        if epoch not in self.controllers:
            self.controllers[epoch] = id
            if fact is not None:
                actor = f"controller-{id}"
                text = details.write_fields({"epoch": epoch, "zk_version": node.stat.version})
                self.trace.add(
                    actor, "controller", "elected", broker=id, controller_epoch=epoch, cause=fact, detail=text
                )

    def _controller(self, epoch: int) -> str:
        """The controller with this epoch; without its number where its election was not seen."""
        return f"controller-{self.controllers[epoch]}" if epoch in self.controllers else "controller"

    def _move(
        self,
        action: str,
        tp: TopicPartition,
        source: PartitionState | None,
        target: PartitionState,
        state: LeaderAndIsr | None,
        cause: int | None = None,
        replicas: tuple[int, ...] | None = None,
    ) -> None:
        """Record a move of the controller's state machine."""
        self.states[tp] = target
        if target == NON_EXISTENT:
            del self.states[tp]
        epoch = self.cluster.epoch if state is None or action == "mark" else state.controller_epoch
        actor = self._controller(epoch or 0)
        self.trace.about(
            actor, "partition", action, tp, None, state, source, target, epoch, cause=cause, replicas=replicas
        )
