"""Becoming controller and ceasing to be: the order of 0.10 and 2.4, what is resumed, what survives, who is fenced.

The order of 2.0, and the race itself, are in test_controller_failover.py.
"""

from __future__ import annotations

import json

import pytest
from labs import acting, by_hand, process_of, settled

from kafka_ctl import Generation, Lab
from kafka_ctl.controller.controller import Controller
from kafka_ctl.zookeeper.store import Delete, Set

SETTINGS = {"delete.topic.enable": True, "auto.leader.rebalance.enable": True}
ORDERS = ("orders", 0)
generations = pytest.mark.parametrize("generation", ["0.10", "2.0", "2.4"])


def opened(generation: str | Generation, brokers: int = 4, **config: object) -> Lab:
    """Brokers, of which 1 is controller, and a topic on 2 and 3."""
    return settled(generation, {"orders": {0: [2, 3], 1: [3, 2]}}, brokers, SETTINGS | config)


def reported(lab: Lab, since: int, broker: int) -> list[str]:
    """What a new controller said, did in ZooKeeper and put into batches, until it took up its schedule."""
    words = []
    for r in lab.trace[since:]:
        if r.kind == "controller" and r.actor == f"controller-{broker}":
            words.append(r.action)
        elif r.kind == "zk" and r.actor == f"broker-{broker}" and r.path:
            words.append(f"{r.action} {r.path}")
        elif r.kind == "request" and r.actor == f"controller-{broker}" and r.target == "sent":
            words.append(f"{r.action} to {r.broker}")
    return words


OLD = """
    elected
    reading_epoch | exists /controller_epoch | get /controller_epoch | initialized_epoch
    incrementing_epoch | set /controller_epoch | epoch_incremented
    registering_handlers | exists /admin/reassign_partitions | children /isr_change_notification
    exists /admin/preferred_replica_election | children /brokers/topics | children /admin/delete_topics
    children /brokers/ids
    initializing_context | children /brokers/ids | get /brokers/ids/2 | get /brokers/ids/3 | get /brokers/ids/4
    children /brokers/topics | get /brokers/topics/orders
    get /brokers/topics/orders/partitions/1/state | get /brokers/topics/orders/partitions/0/state
    get /admin/preferred_replica_election | preferred_undergoing | preferred_completed | preferred_skipped
    preferred_resuming
    get /admin/reassign_partitions | partitions_being_reassigned | partitions_already_reassigned
    reassignment_resuming
    children /admin/delete_topics | topics_to_be_deleted | topics_ineligible | initializing_deletion
    active_brokers | shutting_brokers | topics
    sending_update_metadata
    initializing_replica_state | triggering_online_replicas
    initializing_partition_state | triggering_online_partitions
    exists /brokers/topics/orders
    ready
    preferred_starting | delete /admin/preferred_replica_election
    starting_scheduler
"""
NEW = """
    create /controller_epoch | get /controller_epoch | create /controller | set /controller_epoch | elected
    registering_handlers | exists /admin/preferred_replica_election | exists /admin/reassign_partitions
    deleting_log_dir_notifications | children /log_dir_event_notification
    deleting_isr_change_notifications | children /isr_change_notification
    initializing_context | children /brokers/ids | get /brokers/ids/2 | get /brokers/ids/3 | get /brokers/ids/4
    broker_epochs_initialized | children /brokers/topics | get /brokers/topics/orders
    exists /brokers/ids/2 | exists /brokers/ids/3 | exists /brokers/ids/4
    get /brokers/topics/orders/partitions/0/state | get /brokers/topics/orders/partitions/1/state
    active_brokers | shutting_brokers | topics
    fetching_deletions | children /admin/delete_topics | topics_to_be_deleted | topics_ineligible
    initializing_deletion | sending_update_metadata
    initializing_replica_state | triggering_online_replicas | triggering_offline_replicas
    initializing_partition_state | triggering_online_partitions
    ready | exists /admin/reassign_partitions
    get /admin/preferred_replica_election | preferred_undergoing | preferred_completed | preferred_skipped
    preferred_resuming | preferred_starting | multi /admin/preferred_replica_election
    starting_scheduler
"""


@pytest.mark.parametrize(("generation", "order"), [("0.10", OLD), ("2.4", NEW)])
def test_the_order_of_taking_over(generation: str, order: str) -> None:
    """Kafka: controller/KafkaController.scala, onControllerFailover, at 0.10.2.2 and 2.4.1."""
    with opened(generation) as lab:
        since = len(lab.trace)
        lab.kill(1)
        lab.settle()
        assert lab.controller is not None
        did = reported(lab, since, lab.controller.id)
        expected = [word.strip() for line in order.strip().splitlines() for word in line.split("|")]
        start = did.index(expected[0])
        extra = ("invoking_partitions", "invoking_replicas")
        kept = [w for w in did[start:] if w not in extra and not w.startswith(("LeaderAndIsr", "UpdateMetadata"))]
        assert kept[: len(expected)] == expected


@generations
def test_metadata_comes_before_the_first_leader_and_isr(generation: str) -> None:
    """KAFKA-4443: brokers must know who is alive before they follow anybody."""
    with opened(generation) as lab:
        since = len(lab.trace)
        lab.kill(1)
        lab.settle()
        received: dict[int | None, list[str]] = {}
        for r in lab.trace[since:]:
            if r.kind == "request" and r.target == "sent":
                received.setdefault(r.broker, []).append(r.action)
        assert {actions[0] for actions in received.values()} == {"UpdateMetadata"}
        assert all(actions[1] == "LeaderAndIsr" for broker, actions in received.items() if broker in (2, 3))


@pytest.mark.parametrize(("generation", "states"), [("0.10", 2), ("2.0", 2), ("2.4", 0)])
def test_the_first_metadata_of_a_new_controller(generation: str, states: int) -> None:
    """KAFKA-7537: since 2.2 it only says who is there."""
    with opened(generation) as lab:
        since = len(lab.trace)
        lab.kill(1)
        lab.settle()
        first = next(r for r in lab.trace[since:] if r.action == "UpdateMetadata" and r.target == "sent")
        assert f"partitions={states} " in (first.detail or "")


# Work that is resumed


@generations
def test_everything_that_was_under_way_is_resumed(generation: str) -> None:
    """A reassignment that waits for 4, a deletion that waits for 5, an election that nobody heard of."""
    with opened(generation, brokers=5, **{"auto.leader.rebalance.enable": False}) as lab:
        lab.create_topic("moving", assignment={0: [2, 3]})
        lab.create_topic("dying", assignment={0: [2, 5]})
        lab.create_topic("drifted", assignment={0: [3, 2]})
        lab.settle()
        for broker in (3, 4, 5):
            lab.kill(broker)
            lab.settle()
        lab.start(3)
        lab.settle()
        assert lab.partition("drifted", 0).leader == 2
        lab.reassign({("moving", 0): [2, 4]}, through="zookeeper")
        lab.delete_topic("dying")
        lab.settle()
        lab.kill(1)
        lab.elect_preferred([("drifted", 0)])
        lab.settle()
        assert lab.controller is not None
        assert lab.controller.id != 1
        for broker in (1, 4, 5):
            lab.start(broker)
            lab.settle()
        assert lab.partition("moving", 0).replicas == (2, 4)
        assert {p.topic for p in lab.partitions()} == {"drifted", "moving", "orders"}
        assert lab.partition("drifted", 0).leader == 3
        assert [path for path in lab.znodes() if path.startswith("/admin/")] == ["/admin/delete_topics"]


# Resignation


@generations
def test_who_resigns_stops_listening_and_sending(generation: str) -> None:
    with opened(generation) as lab:
        old = acting(lab)
        lab.expire_session(1)
        lab.settle()
        assert acting(lab) is not old
        assert not old.is_active
        assert not old.threads
        assert old.channels.waiting == 0
        assert not old.channels.open
        assert (old.context.epoch, old.context.partitions, old.context.replicas) == (0, {}, {})
        since = len(lab.trace)
        lab.create_topic("other", assignment={0: [1, 2]})
        lab.settle()
        assert not [r for r in lab.trace[since:] if r.actor == old.actor]


def stuck(generation: str) -> Lab:
    """A move to a dead broker is stuck, its request is removed by hand, and the old assignment is written back.

    The controller resigned in between, and after that it is elected again.
    """
    lab = opened(generation, **{"auto.leader.rebalance.enable": False})
    lab.kill(4)
    lab.settle()
    lab.reassign({ORDERS: [2, 4]}, through="zookeeper")
    lab.settle()
    lab.expire_session(1)
    lab.settle()
    assert lab.controller is not None
    assert lab.controller.id != 1

    data = json.dumps({"version": 1, "partitions": {"0": [2, 3], "1": [3, 2]}})
    by_hand(lab, Delete("/admin/reassign_partitions"), Set("/brokers/topics/orders", data.encode()))
    return lab


@pytest.mark.parametrize(("generation", "attempted"), [("0.10", True), ("2.0", False)])
def test_0_10_attempts_again_what_it_was_reported_before_it_resigned(generation: str, attempted: bool) -> None:
    """KAFKA-5310: what was being reassigned outlives the resignation, whatever has happened meanwhile."""
    with stuck(generation) as lab:
        while lab.controller is None or lab.controller.id != 1:
            lab.shutdown(lab.controller.id) if lab.controller else None
            lab.settle()
        handled = [r for r in lab.trace if r.actor == "controller-1" and r.action == "handling_reassignment"]
        assert len(handled) == 1 + attempted
        assert (4 in lab.partition(*ORDERS).replicas) == attempted


def test_one_field_brings_the_old_memory_back() -> None:
    """2.0 without KAFKA-5310."""
    lab = Lab(brokers=2, generation=Generation("2.0").but(forgets_on_resignation=False), seed=1)
    with lab:
        controller = acting(lab)
        controller.context.reassigning[("orders", 0)] = (7,)  # type: ignore[index]
        lab.world.run(controller.resign())
        assert controller.context.reassigning == {("orders", 0): (7,)}


def test_0_10_finishes_a_deletion_it_is_at_before_it_resigns() -> None:
    """The thread that deletes is waited for; a resignation does not tear it away from a half-deleted topic."""
    with opened("0.10") as lab:
        controller = acting(lab)
        lab.delete_topic("orders")
        lab.run_until(lambda lab: any(t.busy for t in controller.threads), limit=5)
        since = len(lab.trace)
        lab.world.run(controller.resign())
        logged = [r.action for r in lab.trace[since:] if r.kind == "controller" and r.actor == controller.actor]
        assert logged[-1] == "resigned"
        assert len(logged) > 1  # it went on until it was done
        assert controller.threads == []


# Fencing


def test_a_deposed_controller_of_2_4_cannot_write_and_one_of_2_0_can() -> None:
    """KAFKA-6082: both wake up late, with another controller in office, and go on with an election they had begun."""
    written = {}
    for generation in ("2.0", "2.4"):
        with opened(generation, **{"auto.leader.rebalance.enable": False}) as lab:
            old = acting(lab)
            lab.delete_controller()
            lab.run_until(lambda lab: lab.controller is not None and lab.controller.epoch == 2)
            lab.settle()
            other = old if acting(lab) is not old else process_of(lab, 2).controller
            fence = 1 if generation == "2.4" else None  # what it left at /controller_epoch
            other.zk.fence = fence
            before = lab.partition(*ORDERS)
            error = None

            async def write(other: Controller = other) -> None:
                nonlocal error
                state = await other.zk.state(("orders", 0))  # type: ignore[arg-type]
                assert state is not None
                try:
                    await other.zk.update_states({("orders", 0): state.led_by(3, (3,))})  # type: ignore[dict-item]
                except Exception as refusal:
                    error = str(refusal)

            lab.world.run(write())
            written[generation] = lab.partition(*ORDERS).zk_version != before.zk_version
            assert bool(error) == (generation == "2.4")
            if error:
                assert "Controller epoch zkVersion check fails. Expected zkVersion = 1" in error
    assert written == {"2.0": True, "2.4": False}


@pytest.mark.parametrize(("generation", "done"), [("0.10", True), ("2.0", False)])
def test_what_waits_for_zookeeper_when_the_session_expires(generation: str, done: bool) -> None:
    """zkclient, which 0.10 used, does it in the next session as if nothing had happened."""
    with opened(generation) as lab:
        broker = process_of(lab, 1)
        assert broker.zk.session is not None
        session = broker.zk.session
        answers = []

        async def write() -> None:
            lab.world.expire(session)
            answers.append(await broker.zk.write(Set("/brokers/topics/orders", b"{}")))

        lab.world.run(write())
        assert [a.error for a in answers] == [None if done else "SESSIONEXPIRED"]


@generations
def test_the_epoch_rises_with_every_controller(generation: str) -> None:
    with opened(generation) as lab:
        epochs = []
        for _ in range(4):
            assert lab.controller is not None
            epochs.append(lab.controller.epoch)
            lab.delete_controller()
            lab.settle()
        assert epochs == [1, 2, 3, 4]
