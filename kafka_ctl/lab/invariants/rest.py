"""Invariants of a cluster at rest: nothing is under way, nothing is broken, the brokers that are down stay down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.cluster import NO_LEADER, TopicPartition
from kafka_ctl.lab.invariants.base import Breakable, Invariant
from kafka_ctl.lab.invariants.facts import TOPIC
from kafka_ctl.trace import Record

if TYPE_CHECKING:
    from kafka_ctl.lab.world import World


UNWATCHED = Breakable("change before the watch", True, "KAFKA-13407", "none of them acts")
"""`/controller` changed again before whoever was told of the first change looked, so nobody was told of the second."""
OVERTAKEN = Breakable("session renewed at start", True, "KAFKA-4229", "none of them acts")
"""0.10: who resigns for a new session does not notice that it has just been elected in it."""
UNHOSTED = Breakable("failed log directory", True, "KAFKA-10314", "does not end")
"""A broker that has lost a disk refuses a replica that it is not told is new, and nobody tells it again."""
UNTOLD = Breakable("told in an earlier life", True, "KAFKA-7235", "does not end")
"""What a broker was told went to an earlier life of it: it came back faster than anybody noticed."""
DROPPED = Breakable(
    "reassignment skipped at failover", True, "KafkaController.maybeTriggerPartitionReassignment", "is to be deleted"
)
"""A topic that could not be deleted because it moved: its reassignment is dropped, and nobody resumes the deletion."""
AWAY = Breakable("away at a deletion", True, "MetadataCache.scala, updateCache", "believes")
"""A broker that was not registered when a topic was deleted is never told to forget it."""


def running(world: World) -> list[Broker]:
    return [broker for broker in world.brokers.values() if broker.listening]


class EverybodyIsTold(Invariant):
    """Every live broker has been told who leads the partitions it holds, once nothing is under way."""

    id, name = "I14", "everybody-is-told"
    motive = "KAFKA-7235, KAFKA-13407"
    follows = ("I8",)
    breakable = (
        Breakable("introduces_brokers_first", False, "KAFKA-4443"),
        Breakable("clears_batches", False, "KAFKA-2300"),
        Breakable("broker_epochs", False, "KAFKA-7235"),
    )

    def rest(self, world: World) -> None:
        if world.acting() is None:
            return  # I19 tells of that
        brokers = {broker.id: broker for broker in running(world) if broker.id in self.facts.registered}
        for tp, state in self.facts.states.items():
            assignment = self.facts.assigned(tp)
            if assignment is None or state.leader == NO_LEADER or tp.topic in self.facts.doomed:
                continue
            for id in assignment.replicas:
                if id not in brokers or brokers[id].disk.refuses(tp):
                    continue
                hosted = brokers[id].replicas.hosted.get(tp)
                told = hosted.state if hosted else None
                if told is None or (told.leader, told.leader_epoch) != (state.leader, state.leader_epoch):
                    knows = f"leader {told.leader} epoch {told.leader_epoch}" if told else "nothing"
                    text = f"broker {id} knows {knows} of {tp}; it is leader {state.leader} epoch {state.leader_epoch}"
                    self.broken(None, text, tp, id)


class AllAgree(Invariant):
    """Once nothing is under way, ZooKeeper, the controller and every live broker say the same of a partition."""

    id, name = "I18", "all-agree"
    motive = "EventuallyMetadataConverges in formal models of Kafka"
    follows = ("I8",)
    breakable = (
        AWAY,
        Breakable("accepts_own_isr", False, "KAFKA-1382"),
        Breakable("clears_batches", False, "KAFKA-2300"),
        Breakable("caches_bumped_epoch", False, "KAFKA-9212"),
        Breakable("broker_epochs", False, "KAFKA-7235"),
    )

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.gone: dict[str, int] = {}
        """Topics that were deleted, and the record of that."""

    def written(self, record: Record) -> None:
        path = record.path or ""
        if record.action == "delete" and path.startswith(TOPIC) and "/" not in path[len(TOPIC) :]:
            self.gone[path[len(TOPIC) :]] = record.seq

    def rest(self, world: World) -> None:
        acting = world.acting()
        if acting is None:
            return
        stored = {tp: s[:3] for tp, s in self.facts.states.items() if tp.topic not in self.facts.doomed}
        views = {f"controller {acting.id}": acting.context.leadership}
        views |= {f"broker {b.id}": b.replicas.metadata for b in running(world) if b.id in self.facts.registered}
        for who, known in views.items():
            believed = {tp: state[:3] for tp, state in known.items() if tp.topic not in self.facts.doomed}
            if believed != stored:
                for tp in sorted(tp for tp in {*believed, *stored} if believed.get(tp) != stored.get(tp)):
                    text = f"{who} believes {_told(believed.get(tp))} of {tp}; ZooKeeper has {_told(stored.get(tp))}"
                    self.broken(None, text, tp, who, because=self._missed(who, tp.topic))

    def _missed(self, who: str, topic: str) -> str | None:
        """Why a broker knows of a topic that was deleted while it was not registered: nobody ever takes it back."""
        kind, _, id = who.partition(" ")
        since = self.facts.registered.get(int(id), -1) if kind == "broker" else -1
        missed = topic not in self.facts.assignments and self.gone.get(topic, since) < since
        return AWAY.ticket if missed else None


def _told(state: tuple | None) -> str:
    return f"leader={state[0]} isr={list(state[1])} leader_epoch={state[2]}" if state else "nothing"


class WhatIsWishedHappens(Invariant):
    """When nothing is broken any more, somebody is controller, every partition with a live in-sync replica has a
    leader, and reassignments and deletions whose brokers are all alive come to an end.
    """

    id, name = "I19", "what-is-wished-happens"
    motive = "KAFKA-13407, KAFKA-9478, KAFKA-3175"
    follows = ("I8",)
    breakable = (
        Breakable("reads_brokers_once", False, "KAFKA-3085", "is led by"),
        UNWATCHED,
        OVERTAKEN,
        Breakable("skips_own_reelection", False, "KAFKA-4229", "none of them acts"),
        Breakable("fails_waiters_at_expiry", False, "KAFKA-6879", "not registered"),
        Breakable("restores_assignments", False, "KAFKA-6612", "is to be deleted"),
        Breakable("tolerates_missing_state", False, "KAFKA-6650", "is to be deleted"),
        UNHOSTED,
        UNTOLD,
        DROPPED,
    )

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.vacated = self.failed = self.raced = False
        """The last controller resigned because it could not take over or, looking who is controller, found nobody;
        or in 0.10 because its session was new, and it did not look who had just been elected."""
        self.skipped: set[str] = set()
        """Topics of reassignments that this controller has skipped."""

    def said(self, record: Record) -> None:
        if record.action == "resigned":
            cause = self.facts.records[record.cause] if record.cause is not None else None
            event = cause.action if cause is not None else ""
            self.vacated = self.failed or event == "ControllerChange"
            self.raced = event == "RegisterBrokerAndReelect" and not self.generation.single_threaded
        elif record.action in ("election_failed", "ready"):
            self.failed = record.action == "election_failed"
        elif record.action == "elected":
            self.skipped.clear()
        elif record.action == "reassignment_skipped":
            self.skipped.add(json.loads(record.detail or "{}")["partition"].rpartition("-")[0])

    def rest(self, world: World) -> None:
        live = {broker.id: broker for broker in running(world)}
        if not live:
            return
        acting = world.acting()
        if acting is None or self.facts.controller != acting.id or acting.context.epoch != self.facts.epoch:
            text = "brokers are up, but none of them acts as the controller that ZooKeeper knows"
            self.broken(None, text, "controller", because=self._unnoticed())
            return
        if absent := sorted(live.keys() - self.facts.registered):
            self.broken(None, f"brokers {absent} are up but not registered", "registered")
        for text, tp in self._leaderless(live):
            self.broken(None, text, tp)
        self._check_deletions(world, live)
        self._check_moves(live)

    def _unnoticed(self) -> str | None:
        """Why nobody competes: what was watched had changed before it was looked at again; or who resigned had won."""
        if self.facts.controller is not None:
            return OVERTAKEN.ticket if self.raced else None
        return UNWATCHED.ticket if self.vacated else None

    def _serves(self, live: dict[int, Broker], id: int, tp: TopicPartition) -> bool:
        return id in live and not live[id].disk.refuses(tp)

    def _leaderless(self, live: dict[int, Broker]) -> Iterator[tuple[str, tuple[str, int]]]:
        for tp, state in self.facts.states.items():
            assigned = self.facts.assigned(tp)
            able = [id for id in state.isr if self._serves(live, id, tp) and assigned and id in assigned.replicas]
            if able and not self._serves(live, state.leader, tp) and tp.topic not in self.facts.doomed:
                yield f"{tp} is led by {state.leader}, which cannot, though {able} of its ISR could", tp

    def _check_deletions(self, world: World, live: dict[int, Broker]) -> None:
        moving = {tp.topic for tp in self._moving()}
        for topic in self.facts.doomed:
            copies = self.facts.assignments.get(topic, {}).items()
            # A topic whose assignment a restoration emptied says no more where its copies are.
            whole = bool(copies) and all(
                self._serves(live, id, TopicPartition(topic, n)) for n, assigned in copies for id in assigned.replicas
            )
            if whole and topic not in moving and world.config["delete.topic.enable"]:
                text = f"topic {topic} is to be deleted and all its copies are there, but it is not"
                self.broken(None, text, (topic, 0), because=DROPPED.ticket if topic in self.skipped else None)

    def _check_moves(self, live: dict[int, Broker]) -> None:
        for tp in self._moving():
            target, state = self.facts.target(tp), self.facts.states.get(tp)
            able = state is not None and self._serves(live, state.leader, tp)
            keeping_up = all(self._serves(live, id, tp) and tp not in live[id].replication.lagging for id in target)
            if able and keeping_up and tp.topic not in self.facts.doomed:
                text = f"the reassignment of {tp} to {list(target)} does not end though all of them are alive"
                self.broken(None, text, tp, because=self._why_not(live, tp))

    def _why_not(self, live: dict[int, Broker], tp: TopicPartition) -> str | None:
        """The ticket that tells why a replica does not join: its broker has lost a disk, or has not been told."""
        joining = set(self.facts.target(tp)) - set(self.facts.states[tp].isr)
        if any(live[id].disk.failed for id in joining):
            return UNHOSTED.ticket
        heads = tuple(f"broker {id} knows " for id in joining)
        untold = [v for v in self.checker.violations if v.invariant == "I14" and v.text.startswith(heads)]
        earlier = {v.known for v in untold if f" of {tp};" in v.text}
        return UNTOLD.ticket if UNTOLD.ticket in earlier else None

    def _moving(self) -> list[TopicPartition]:
        moving = {
            TopicPartition(topic, n)
            for topic, numbers in self.facts.assignments.items()
            for n, assignment in numbers.items()
            if assignment.is_being_reassigned
        }
        return sorted(moving | self.facts.wishes.keys())


class LeadersComeHome(Invariant):
    """Where the leadership is rebalanced by itself, no broker lacks more than its share for longer than two checks
    while it could lead.
    """

    id, name = "I20", "leaders-come-home"
    motive = "zalando-nakadi/bubuku#156"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.astray: dict[int, int] = {}

    def event(self, record: Record) -> None:
        if record.action != "AutoPreferredReplicaLeaderElection" or record.target != "done":
            return
        facts, share = self.facts, self.checker.config["leader.imbalance.per.broker.percentage"] / 100
        busy = facts.wishes or any(a.is_being_reassigned for p in facts.assignments.values() for a in p.values())
        led: dict[int, list[bool]] = {}
        for topic, numbers in facts.assignments.items():
            for n, assignment in numbers.items():
                tp = TopicPartition(topic, n)
                state = facts.states.get(tp)
                if state is not None and topic not in facts.doomed:
                    preferred = assignment.replicas[0]
                    could = preferred in facts.registered and preferred in state.isr
                    could = could and not self.checker.world.brokers[preferred].disk.refuses(tp)
                    led.setdefault(preferred, []).append(could and state.leader != preferred)
        acting = record.actor == f"controller-{facts.controller}" and self.checker.world.healthy and not busy
        for broker, astray in led.items():
            late = acting and sum(astray) / len(astray) > share
            self.astray[broker] = self.astray.get(broker, 0) + 1 if late else 0
            if self.astray[broker] > 2:
                text = f"broker {broker} does not get {sum(astray)} of its {len(astray)} leaderships back"
                self.broken(record, text, broker)


class TheDeadDoNotLead(Invariant):
    """Once nothing is under way, whoever leads a partition is registered; a partition nobody can lead has no leader."""

    id, name = "I21", "the-dead-do-not-lead"
    motive = "KAFKA-3143"
    follows = ("I8",)
    breakable = (
        Breakable("resets_dead_leader", False, "KAFKA-708"),
        Breakable("reads_brokers_once", False, "KAFKA-3085"),
        Breakable("stops_dead_replicas_at_startup", False, "KAFKA-3143"),
    )

    def rest(self, world: World) -> None:
        if world.acting() is None:
            return
        for tp, state in self.facts.states.items():
            known = state.leader == NO_LEADER or state.leader in self.facts.registered
            if not known and tp.topic not in self.facts.doomed:
                self.broken(None, f"{tp} is led by broker {state.leader}, which is not there", tp)


INVARIANTS = (EverybodyIsTold, AllAgree, WhatIsWishedHappens, LeadersComeHome, TheDeadDoNotLead)
