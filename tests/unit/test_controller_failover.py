"""Who is controller: the race, the order of taking over, resignation, lost sessions."""

from __future__ import annotations

import asyncio
import json

from labs import acting, process_of, settled
from prose import Prose

from kafka_ctl import Lab
from kafka_ctl.controller import events
from kafka_ctl.zookeeper.store import Set
from kafka_ctl.zookeeper.znodes import ControllerEpochZNode

QUIET = {"auto.leader.rebalance.enable": False}


def opened() -> Lab:
    """Three brokers and two partitions; broker 2 is controller."""
    return settled("2.0", {"orders": {0: [1, 2, 3], 1: [2, 3, 1]}}, 3, QUIET, seed=7, controller=2)


def reported(lab: Lab, since: int, actor: str) -> list[str]:
    """What an actor did, in order: messages and operations of ZooKeeper in one list."""
    broker = actor.replace("controller", "broker")
    return [
        r.action if r.kind == "controller" else f"{r.action} {r.path}"
        for r in lab.trace[since:]
        if (r.kind == "controller" and r.actor == actor) or (r.kind == "zk" and r.actor == broker and r.path)
    ]


TAKING_OVER = """
    exists /controller | get /controller | get /controller
    create /controller | elected
    reading_epoch | get /controller_epoch | initialized_epoch
    incrementing_epoch | set /controller_epoch | epoch_incremented
    registering_handlers | exists /admin/preferred_replica_election | exists /admin/reassign_partitions
    deleting_log_dir_notifications | children /log_dir_event_notification
    deleting_isr_change_notifications | children /isr_change_notification
    initializing_context | children /brokers/ids | get /brokers/ids/1 | get /brokers/ids/3
    children /brokers/topics | get /brokers/topics/orders
    exists /brokers/ids/1 | exists /brokers/ids/3
    get /brokers/topics/orders/partitions/0/state | get /brokers/topics/orders/partitions/1/state
    get /admin/reassign_partitions | partitions_being_reassigned
    active_brokers | shutting_brokers | topics
    fetching_deletions | children /admin/delete_topics | topics_to_be_deleted | topics_ineligible
    initializing_deletion | sending_update_metadata
    initializing_replica_state | triggering_online_replicas
    initializing_partition_state | triggering_online_partitions
    get /brokers/topics/orders/partitions/1/state | set /brokers/topics/orders/partitions/1/state
    ready
"""


def test_taking_over_in_kafkas_order() -> None:
    """Epoch, handlers, old news, brokers, topics, states, deletions, metadata, replicas, partitions."""
    with opened() as lab:
        lab.kill(2)
        seen = len(lab.trace)
        lab.settle()
        did = reported(lab, seen, "controller-1")
        wanted = [step.strip() for line in TAKING_OVER.strip().splitlines() for step in line.split("|")]
        assert did[: did.index("ready") + 1] == wanted


def test_metadata_goes_out_before_any_leader() -> None:
    """So that brokers know who is alive before they are told whom to follow (KAFKA-4443)."""
    with opened() as lab:
        lab.kill(2)
        seen = len(lab.trace)
        lab.settle()
        for broker in (1, 3):
            first = [r.action for r in lab.trace[seen:] if r.target == "sent" and r.broker == broker][:3]
            assert first == ["UpdateMetadata", "LeaderAndIsr", "UpdateMetadata"]


def test_only_one_wins_the_race() -> None:
    """The others find the znode there, and know who it is."""
    with opened() as lab:
        seen = len(lab.trace)
        lab.delete_controller()
        lab.settle()
        created = [r for r in lab.trace[seen:] if r.kind == "zk" and (r.action, r.path) == ("create", "/controller")]
        assert sorted(str(r.error) for r in created) == ["NODEEXISTS", "NODEEXISTS", "None"]
        winner = next(r for r in created if r.error is None).actor
        assert {b.controller.active_id for b in lab.world.brokers.values()} == {int(winner[-1])}
        assert [r.action for r in lab.trace[seen:] if r.action == "elected"] == ["elected"]


def test_who_comes_late_does_not_race() -> None:
    with opened() as lab:
        lab.kill(3)
        lab.settle()
        seen = len(lab.trace)
        lab.start(3)
        lab.settle()
        assert "already_elected" in reported(lab, seen, "controller-3")
        assert "create /controller" not in reported(lab, seen, "controller-3")


def test_epochs_rise_by_one() -> None:
    with opened() as lab:
        for epoch in (2, 3, 4):
            lab.delete_controller()
            lab.settle()
            assert lab.controller is not None
            assert lab.controller.epoch == epoch
            assert lab.znodes()["/controller_epoch"][0] == str(epoch).encode()


def test_the_first_epoch_and_its_wrong_version() -> None:
    """The first controller takes version 1 for the znode it created, which has version 0: the next reads it anew."""
    with opened() as lab:
        assert (acting(lab).context.epoch, acting(lab).context.epoch_zk_version) == (1, 1)
        assert lab.znodes()["/controller_epoch"][:2] == (b"1", 0)


def test_a_resigned_controller_knows_nothing() -> None:
    with opened() as lab:
        before = acting(lab)
        lab.expire_session(2)
        lab.settle()
        assert acting(lab) is not before
        context = before.context
        assert (context.epoch, context.brokers, context.topics, context.leadership) == (0, {}, {}, {})
        assert (context.partitions, context.replicas, before.channels.waiting) == ({}, {}, 0)
        assert not before.is_active


def test_a_resigned_controller_hears_nothing() -> None:
    """It listens to `/controller` only."""
    with opened() as lab:
        lab.expire_session(2)
        lab.settle()
        seen = len(lab.trace)
        lab.create_topic("parcels", partitions=2)
        lab.kill(3)
        lab.settle()
        assert [r for r in lab.trace[seen:] if r.actor == "controller-2"] == []


def test_what_waits_in_the_queue_is_dropped_at_expiry() -> None:
    """2.0 drops it silently; what is being worked on is finished first."""
    with opened() as lab:
        controller, seen = acting(lab), len(lab.trace)
        for _ in range(3):
            controller.queue.put(events.TopicChange())
        lab.world.clock.run(controller.session_expired())
        did = [(r.action, r.target) for r in lab.trace[seen:] if r.kind == "event"]
        assert did[3:9] == [
            ("TopicChange", "started"),
            ("TopicChange", "dropped"),
            ("TopicChange", "dropped"),
            ("Expire", "queued"),
            ("TopicChange", "done"),
            ("Expire", "started"),
        ]


def test_events_are_for_the_active_controller() -> None:
    """Anybody else lets them pass."""
    with opened() as lab:
        idle = process_of(lab, 1).controller
        seen = len(lab.trace)
        for event in (
            events.BrokerChange(),
            events.TopicChange(),
            events.TopicDeletion(),
            events.IsrChangeNotification(),
        ):
            idle.queue.put(event)
        lab.settle()
        assert {r.kind for r in lab.trace[seen:]} == {"event"}


def test_a_shutdown_asked_of_the_wrong_broker(prose: Prose) -> None:
    with opened() as lab:
        idle = process_of(lab, 1).controller

        async def ask() -> object:
            reply: asyncio.Future[object] = asyncio.get_running_loop().create_future()
            idle.queue.put(events.ControlledShutdown(3, -1, reply))
            return await reply

        with prose.refused(Exception):
            lab.world.clock.run(ask())


def test_an_unreadable_epoch_ends_the_attempt_to_take_over() -> None:
    """Whoever cannot take over resigns and gives `/controller` back; the log says why."""
    with opened() as lab:
        path = ControllerEpochZNode.path()
        lab.world.clock.run(acting(lab).zk.write(Set(path, b"many")))
        lab.delete_controller()
        lab.run_for(0.01)
        failed = [r for r in lab.trace if r.action == "election_failed"]
        assert path in json.loads(failed[0].detail or "{}")["error"]
        assert len(failed) > 2
        lab.world.clock.run(process_of(lab, 1).zk.write(Set(path, b"7")))
        lab.settle()
        assert lab.controller is not None
        assert lab.controller.epoch == 8


def test_a_broker_that_comes_while_0_10_takes_over_is_greeted_afterwards() -> None:
    """Its listener waits for the lock before it looks whether this broker is controller: nothing is lost.

    Kafka 0.10.2.2: controller/KafkaController.scala, isActive
    """
    with Lab(brokers=2, generation="0.10", seed=1) as lab:
        lab.create_topic("orders", partitions=1000, replication_factor=1)
        lab.kill(1)
        lab.kill(2)
        lab.settle()
        since = len(lab.trace)
        lab.start(1)
        lab.run_until(lambda: any(r.action == "elected" for r in lab.trace[since:]))
        lab.start(2)
        lab.settle()
        ready = next(r for r in lab.trace[since:] if r.action == "ready")
        first = next(r for r in lab.trace[since:] if r.action == "BrokerChange" and r.target == "started")
        done = next(r for r in lab.trace[first.seq :] if r.action == "BrokerChange" and r.target == "done")
        assert first.seq < ready.seq < done.seq
        assert (done.detail or "").startswith("waited=")
        assert {p.leader for p in lab.partitions()} == {1, 2}
        assert not lab.violations
