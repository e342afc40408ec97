"""Invariants of a cluster at rest: nothing is under way, nothing is broken, the brokers that are down stay down.

Separate from `checker.py` because that one calls the invariants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka_ctl.invariants.base import DELETION, MOVE, Invariant, Reports, Subject
from kafka_ctl.invariants.facts import only
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

if TYPE_CHECKING:
    from kafka_ctl.simulation.world import World


def running(world: World) -> list[Broker]:
    return [broker for broker in world.brokers.values() if broker.listening]


class PartitionsAtRest(Invariant):
    """The parts that the invariants of this file share: the live brokers, and the partitions that are to stay."""

    def registered(self, world: World) -> dict[int, Broker]:
        """The brokers that are up and registered."""
        return {broker.id: broker for broker in running(world) if broker.id in self.facts.registered}

    def staying(self) -> dict[TopicPartition, LeaderAndIsr]:
        """The states of partitions whose topics are to stay."""
        return {tp: state for tp, state in self.facts.states.items() if not self.facts.is_deleting(tp)}


class MetadataPropagated(PartitionsAtRest):
    """Once nothing is under way, every live broker knows the leaders of the partitions it holds."""

    id, name = "I14", "metadata-propagated"
    motive = "KAFKA-7235, KAFKA-13407"

    def quiescent(self, world: World) -> None:
        brokers = self.registered(world)
        for tp, state in self.staying().items() if world.acting() else ():  # I19 reports that there is none
            assignment = self.facts.assigned(tp)
            for id in assignment.replicas if assignment and state.leader != NO_LEADER else ():
                if id not in brokers or brokers[id].disk.refuses(tp):
                    continue
                hosted = brokers[id].hosted.get(tp)
                known = hosted.state if hosted else None
                if known is None or (known.leader, known.leader_epoch) != (state.leader, state.leader_epoch):
                    knows = f"leader {known.leader} epoch {known.leader_epoch}" if known else "nothing"
                    text = f"broker {id} knows {knows} of {tp}; it is leader {state.leader} epoch {state.leader_epoch}"
                    self.broken(None, text, Subject(tp, id, state=known))


class AllAgree(PartitionsAtRest):
    """Once nothing is under way, ZooKeeper, the controller and all live brokers have the same state of a partition."""

    id, name = "I18", "all-agree"
    motive = "EventuallyMetadataConverges in formal models of Kafka"

    def quiescent(self, world: World) -> None:
        acting = world.acting()
        if acting is None:
            return
        stored = {tp: state[:3] for tp, state in self.staying().items()}
        views = [(f"controller {acting.id}", Subject(controller=acting.actor), acting.context.leadership)]
        views += [(f"broker {id}", Subject(broker=id), b.metadata) for id, b in self.registered(world).items()]
        for who, about, known in views:
            believed = {tp: state[:3] for tp, state in known.items() if not self.facts.is_deleting(tp)}
            if believed != stored:
                for tp in sorted(tp for tp in {*believed, *stored} if believed.get(tp) != stored.get(tp)):
                    has, should = _state_text(believed.get(tp)), _state_text(stored.get(tp))
                    text = f"{who} has {has} for {tp}; ZooKeeper has {should}"
                    self.broken(None, text, about._replace(partition=tp, state=known.get(tp)))


def _state_text(state: tuple | None) -> str:
    return f"leader={state[0]} isr={list(state[1])} leader_epoch={state[2]}" if state else "nothing"


class AdminRequestsComplete(PartitionsAtRest):
    """Without faults under way there is a controller, and every partition with a live in-sync replica has a
    leader, and reassignments and deletions whose brokers are all alive come to an end.
    """

    id, name = "I19", "admin-requests-complete"
    motive = "KAFKA-13407, KAFKA-9478, KAFKA-3175"

    def quiescent(self, world: World) -> None:
        live = {broker.id: broker for broker in running(world)}
        if not live:
            return
        acting = world.acting()
        if acting is None or self.facts.controller != acting.id or acting.context.epoch != self.facts.epoch:
            text = "brokers are up, but none of them acts as the controller that ZooKeeper knows"
            if acting is not None and self.facts.controller == acting.id:
                text = f"broker {acting.id} acts as the controller of epoch {acting.context.epoch}, and ZooKeeper has "
                text += f"epoch {self.facts.epoch}"
            self.broken(None, text, Subject(aspect="controller"))
            return
        if absent := sorted(live.keys() - self.facts.registered):
            about = Subject(aspect="registered", brokers=tuple(absent))
            self.broken(None, f"brokers {absent} are up but not registered", about)
        for text, about in self._leaderless(live):
            self.broken(None, text, about)
        self._check_deletions(world, live)
        self._check_moves(live)

    def _serves(self, live: dict[int, Broker], id: int, tp: TopicPartition) -> bool:
        return id in live and not live[id].disk.refuses(tp)

    def _leaderless(self, live: dict[int, Broker]) -> Iterator[tuple[str, Subject]]:
        for tp, state in self.staying().items():
            assigned = self.facts.assigned(tp)
            able = [id for id in state.isr if self._serves(live, id, tp) and assigned and id in assigned.replicas]
            if able and not self._serves(live, state.leader, tp):
                leads = "has no leader" if state.leader == NO_LEADER else f"is led by {state.leader}, which cannot"
                text = f"{tp} {leads}, though {able} of its ISR could"
                yield text, Subject(tp, brokers=tuple(able))

    def _check_deletions(self, world: World, live: dict[int, Broker]) -> None:
        moving = {tp.topic for tp in self.facts.moving()}
        for topic in self.facts.topics_to_be_deleted:
            copies = [(tp, id) for tp, assigned in self.facts.partitions(topic).items() for id in assigned.replicas]
            # A topic whose assignment a restoration emptied no longer says where its copies are.
            whole = bool(self.facts.assignments.get(topic)) and all(self._serves(live, id, tp) for tp, id in copies)
            if whole and topic not in moving and world.config["delete.topic.enable"]:
                text = f"topic {topic} is to be deleted and all its copies are there, but it is not"
                self.broken(None, text, Subject(topic=topic, aspect=DELETION))

    def _check_moves(self, live: dict[int, Broker]) -> None:
        for tp in self.facts.moving():
            target, state = self.facts.target(tp), self.facts.states.get(tp)
            if state is None or not self._serves(live, state.leader, tp) or self.facts.is_deleting(tp):
                continue
            # A broker could hold a copy that it refuses where it has a directory that works to make one in.
            able = (id in live and not live[id].disk.refuses(tp, is_new=True) for id in target)
            if all(able) and all(live[id].as_follower.will_catch_up(tp) for id in target):
                text = f"the reassignment of {tp} to {list(target)} does not end though all of them are alive"
                joining = tuple(id for id in target if id not in state.isr)
                self.broken(None, text, Subject(tp, aspect=MOVE, brokers=joining))


class PreferredLeadersRestored(Invariant):
    """With automatic rebalancing, no broker lacks more than its share for longer than two checks
    while it could lead.
    """

    id, name = "I20", "preferred-leaders-restored"
    motive = "zalando-nakadi/bubuku#156"

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.not_preferred: dict[int, int] = {}
        self.looked = -math.inf
        """The time of the last counted check, in milliseconds; 0.10 makes up for missed ones, many at once."""

    @only("AutoPreferredReplicaLeaderElection")
    def event(self, record: Record) -> None:
        if record.target != "done":
            return
        if record.time_ms - self.looked < 500 * self.config["leader.imbalance.check.interval.seconds"]:
            return
        self.looked = record.time_ms
        facts, share = self.facts, self.checker.config["leader.imbalance.per.broker.percentage"] / 100
        led: dict[int, list[bool]] = {}
        for tp, assignment in facts.partitions().items():
            state = facts.states.get(tp)
            if state is not None and assignment.replicas and not facts.is_deleting(tp):
                preferred = assignment.replicas[0]
                host = self.checker.world.brokers.get(preferred)  # None for one that was registered by hand
                could = preferred in facts.registered and preferred in state.isr
                could = could and host is not None and not host.disk.refuses(tp)
                led.setdefault(preferred, []).append(could and state.leader != preferred)
        acting = record.actor == facts.acting and self.checker.world.is_healthy and not facts.moving()
        for broker, not_preferred in led.items():
            late = acting and sum(not_preferred) / len(not_preferred) > share
            self.not_preferred[broker] = self.not_preferred.get(broker, 0) + 1 if late else 0
            if self.not_preferred[broker] > 2:
                text = f"broker {broker} does not get {sum(not_preferred)} of its {len(not_preferred)} leaderships back"
                self.broken(record, text, Subject(broker=broker))


class NoDeadLeader(PartitionsAtRest):
    """Once nothing is under way, every leader is registered; a partition that no broker can lead has no leader."""

    id, name = "I21", "no-dead-leader"
    motive = "KAFKA-3143"

    def quiescent(self, world: World) -> None:
        known = {NO_LEADER, *self.facts.registered}
        for tp, state in self.staying().items() if world.acting() else ():
            if state.leader not in known:
                text = f"{tp} is led by broker {state.leader}, which is not there"
                self.broken(None, text, Subject(tp, state.leader))


class PartitionsGetState(PartitionsAtRest):
    """Once nothing is under way, every partition of a topic has a state: its first leader and ISR are in ZooKeeper.

    It needs none while its topic is to be deleted, or before one of its brokers that could lead it has been there.
    """

    id, name = "I23", "partitions-get-state"
    motive = "PartitionStateMachine.scala, initializeLeaderAndIsrForPartitions"

    def quiescent(self, world: World) -> None:
        acting = world.acting()
        if acting is None or self.facts.controller != acting.id:
            return  # I19 reports that
        live = self.registered(world)
        for tp, assignment in self.facts.partitions().items():
            able = tuple(id for id in assignment.replicas if id in live and not live[id].disk.refuses(tp))
            if able and tp not in self.facts.states and not self.facts.is_deleting(tp):
                text = f"{tp} has no state in ZooKeeper, though {list(able)} of its brokers are alive"
                self.broken(None, text, Subject(tp, brokers=able))


class ProducesAreAnswered(Invariant):
    """Once nothing is under way and nothing is broken, every produce request has had its answer, an error or not."""

    id, name = "I28", "produces-are-answered"
    motive = "EventuallyWriteIsAcceptedOrRejected in Vanlightly/kafka-tlaplus"

    def __init__(self, checker: Reports) -> None:
        super().__init__(checker)
        self.unanswered: dict[tuple[TopicPartition, str], Record] = {}

    @only("Produce")
    def sent(self, record: Record) -> None:
        if record.actor == "producer":
            self.unanswered[self._key(record)] = record

    @only("Produce")
    def answered(self, record: Record) -> None:
        if record.actor == "producer":
            self.unanswered.pop(self._key(record), None)

    def _key(self, record: Record) -> tuple[TopicPartition, str]:
        """The key of a producer's request: each value is sent once."""
        return record.tp, details.named(record.detail).get("records", "")

    def quiescent(self, world: World) -> None:
        for (tp, values), request in self.unanswered.items():
            text = f"records {values} of {tp}, sent to broker {request.broker}, were never answered"
            self.broken(None, text, Subject(tp, request.broker, aspect=values))


class AcknowledgedIsEverywhere(PartitionsAtRest):
    """Once nothing is under way, every live assigned replica has the acknowledged records of its leader.

    If the replica does not know of that leader, that violates I14; records that the leader has lost violate I4.
    """

    id, name = "I29", "acknowledged-is-everywhere"
    motive = "EventuallyAcknowledgedValueFullyReplicated in Vanlightly/kafka-tlaplus"

    def quiescent(self, world: World) -> None:
        brokers, states = self.registered(world), self.staying()
        for tp, promised in self.facts.logs.acknowledged.items():
            state, assigned = states.get(tp), self.facts.assigned(tp)
            if state is None or assigned is None or not self._follows(brokers, state.leader, tp, state):
                continue
            theirs = self.facts.logs.of(tp, state.leader)
            kept = [p for p in promised if theirs.has(p) and not theirs.has_deleted(p)]
            for id in assigned.replicas:
                if id == state.leader or not self._follows(brokers, id, tp, state):
                    continue
                own = self.facts.logs.of(tp, id)
                if lacking := [p for p in kept if not own.has(p) and not own.has_deleted(p)]:
                    values = ",".join(str(p.value) for p in lacking)
                    has = f"which were acknowledged and leader {state.leader} has"
                    self.broken(None, f"broker {id} has not {values} of {tp}, {has}", Subject(tp, id))

    def _follows(self, brokers: dict[int, Broker], id: int, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        """True if a live broker takes part in this leader epoch, and keeps up."""
        hosted = brokers[id].hosted.get(tp) if id in brokers else None
        if hosted is None or hosted.state[:1] + hosted.state[2:3] != state[:1] + state[2:3]:
            return False
        return id == state.leader or brokers[id].as_follower.will_catch_up(tp)
