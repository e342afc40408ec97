"""The relations between the fields of a context, of the virtual loop and of a session, during random walks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import pytest

from kafka_ctl.cluster import Broker, LeaderAndIsr, Replica, ReplicaAssignment, TopicPartition
from kafka_ctl.controller.context import Context
from kafka_ctl.explore.play import Failure, apply
from kafka_ctl.explore.walk import walk
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.partition import NEW, NON_EXISTENT, ONLINE
from kafka_ctl.replica import NON_EXISTENT as NON_EXISTENT_REPLICA
from kafka_ctl.replica import ONLINE as ONLINE_REPLICA
from kafka_ctl.simulation.clock import VirtualClock
from kafka_ctl.trace import Record
from kafka_ctl.zookeeper.memory.server import MemoryStore

TP, LOST = TopicPartition("orders", 0), TopicPartition("lost", 0)


def known(context: Context) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for topic, numbers in context.topics.items() for number in numbers}


RELATIONS: dict[str, Callable[[Context], bool]] = {
    "shutting down is registered": lambda c: c.shutting_down <= c.brokers.keys(),
    "offline directories are of registered brokers": lambda c: c.offline_dirs.keys() <= c.brokers.keys(),
    "revived topics are in memory": lambda c: c.revived <= c.topics.keys(),
    "topics to be deleted are in memory": lambda c: c.topics_to_be_deleted.keys() <= c.topics.keys(),
    "ineligible topics are to be deleted": lambda c: c.topics_ineligible <= c.topics_to_be_deleted.keys(),
    "started deletions are wanted": lambda c: c.deletion_started <= c.topics_to_be_deleted.keys(),
    "deleted partitions are of deleted topics": lambda c: all(
        tp.topic in c.topics_to_be_deleted for tp in c.partitions_to_be_deleted
    ),
    "leaders are of known partitions": lambda c: c.leadership.keys() <= known(c),
    "no state is of a later epoch": lambda c: all(s.controller_epoch <= c.epoch for s in c.leadership.values()),
    "an ISR is assigned": lambda c: all(set(s.isr) <= set(c.assigned(tp)) for tp, s in c.leadership.items()),
    "states are of known partitions": lambda c: all(
        tp in known(c) or s is NON_EXISTENT for tp, s in c.partitions.items()
    ),
    "an Online partition has had a leader": lambda c: all(
        tp in c.leadership for tp, s in c.partitions.items() if s is ONLINE
    ),
    "no replica is NonExistent": lambda c: NON_EXISTENT_REPLICA not in c.replicas.values(),
    "an Online replica is assigned": lambda c: all(
        r.broker in c.assigned(r.topic_partition) for r, s in c.replicas.items() if s is ONLINE_REPLICA
    ),
    "what moves is known": lambda c: c.reassigning.keys() <= known(c),
    "no preferred election goes on": lambda c: not c.preferred_elections,
    "the table has the known partitions": lambda c: not c.in_tables or set(c.table) == known(c),
}
SINCE_2_4 = {
    "a target is that of the assignment": lambda c: all(
        c.assignment(tp).target == target for tp, target in c.reassigning.items()
    ),
    "what moves is being reassigned": lambda c: (
        {tp for tp in known(c) if c.assignment(tp).is_being_reassigned} == c.reassigning.keys()
    ),
}


@pytest.mark.parametrize("seed", [101, 103])
def test_the_relations_hold_after_every_event(generation: str, seed: int) -> None:
    wanted = RELATIONS | (SINCE_2_4 if generation == "2.4" else {})
    events, drawn = 0, walk(generation, seed)
    broken: list[str] = []
    with Lab(**story.opening(drawn.opening)) as lab:

        def check(record: Record) -> None:
            nonlocal events
            if record.kind != "event" or record.target != "done":
                return
            controller = lab.world.brokers[int(record.actor.removeprefix("controller-"))].controller
            if controller.is_active:
                events += 1
                broken.extend(f"{name} after {record}" for name, rule in wanted.items() if not rule(controller.context))

        lab.trace.listeners.append(check)
        for line in drawn.commands:
            if isinstance(apply(lab, line), Failure):
                break
    assert events > 20
    assert broken == []


def test_time_and_sessions_hold_their_relations(generation: str) -> None:
    """At every record: time never falls, timers are counted, sessions that have ended own nothing."""
    drawn, seen = walk(generation, 104), {"pending": 0, "cut off": 0, "ended": 0}
    with Lab(**story.opening(drawn.opening)) as lab:
        clock, store = lab.world.clock, lab.world.store
        assert isinstance(clock, VirtualClock) and isinstance(store, MemoryStore)
        latest, sessions = 0.0, dict(store.sessions)

        def check(record: Record) -> None:
            nonlocal latest
            assert clock.loop.now >= latest
            latest = clock.loop.now
            assert clock.loop.foreground == len(clock.loop.pending)
            seen["pending"] += clock.loop.foreground > 0

        lab.trace.listeners.append(check)
        for line in drawn.commands:
            if isinstance(apply(lab, line), Failure):
                break
            sessions |= store.sessions
            owners = {owner for _, _, owner in lab.znodes().values()}
            for id, session in sessions.items():
                assert session.connected or session.waiting == 0
                assert session.alive or id not in owners
                seen["cut off"] += not session.connected
                seen["ended"] += not session.alive
    assert min(seen.values()) > 0


BREAKS: dict[str, dict[str, object]] = {
    "shutting down is registered": {"shutting_down": {9}},
    "offline directories are of registered brokers": {"offline_dirs": {9: {TP}}},
    "revived topics are in memory": {"revived": {"lost"}},
    "topics to be deleted are in memory": {"topics_to_be_deleted": {"lost": None}},
    "ineligible topics are to be deleted": {"topics_ineligible": {"orders"}},
    "started deletions are wanted": {"deletion_started": {"orders"}},
    "deleted partitions are of deleted topics": {"partitions_to_be_deleted": {TP}},
    "leaders are of known partitions": {"leadership": {TP: LeaderAndIsr(1, (1,)), LOST: LeaderAndIsr(1, ())}},
    "no state is of a later epoch": {"leadership": {TP: LeaderAndIsr(1, (1,), controller_epoch=2)}},
    "an ISR is assigned": {"leadership": {TP: LeaderAndIsr(1, (1, 9))}},
    "states are of known partitions": {"partitions": {LOST: NEW}},
    "an Online partition has had a leader": {"leadership": {}},
    "no replica is NonExistent": {"replicas": {Replica(*TP, 1): NON_EXISTENT_REPLICA}},
    "an Online replica is assigned": {"replicas": {Replica(*TP, 9): ONLINE_REPLICA}},
    "what moves is known": {"reassigning": {LOST: (1,)}},
    "no preferred election goes on": {"preferred_elections": {TP: None}},
    "the table has the known partitions": {"in_tables": True},
}


@pytest.mark.parametrize("name", RELATIONS)
def test_a_broken_relation_is_noticed(name: str) -> None:
    """Of a sound context with one field changed, this relation and no other is broken."""
    sound = Context(
        epoch=1,
        brokers={1: Broker(1)},
        topics={"orders": {0: ReplicaAssignment((1,))}},
        leadership={TP: LeaderAndIsr(1, (1,), controller_epoch=1)},
        partitions={TP: ONLINE},
        replicas={Replica(*TP, 1): ONLINE_REPLICA},
    )
    assert [each for each, holds in RELATIONS.items() if not holds(sound)] == []
    assert {*BREAKS[name]} <= {field.name for field in fields(Context)}
    for field, value in BREAKS[name].items():
        setattr(sound, field, value)
    assert [each for each, holds in RELATIONS.items() if not holds(sound)] == [name]
