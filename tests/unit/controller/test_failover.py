"""Who is controller, in each generation: the race, taking over, what is resumed, resignation, fencing."""

import asyncio
import json
import re

import pytest
from labs import QUIET, acting, by_hand, play, process_of, settled, until_quiet
from prose import Prose, refuses
from tables import text

from kafka_ctl import Generation, Lab
from kafka_ctl.controller import events, failover
from kafka_ctl.election import ElectionType
from kafka_ctl.errors import ControllerMoved, Unavailable
from kafka_ctl.zookeeper.store import Delete, Set
from kafka_ctl.zookeeper.znodes import ControllerEpochZNode


def opened() -> Lab:
    """Three brokers and two partitions; broker 2 is controller."""
    return settled("2.0", {"orders": {0: [1, 2, 3], 1: [2, 3, 1]}}, 3, QUIET, seed=7, controller=2)


def order(file: str) -> list[str]:
    """The steps of taking over that a file has."""
    return [step.strip() for line in text(file).strip().splitlines() for step in line.split("|")]


def test_taking_over_in_kafkas_order() -> None:
    """Epoch, handlers, old news, brokers, topics, states, deletions, metadata, replicas, partitions."""
    with opened() as lab:
        lab.kill(2)
        seen = len(lab.trace)
        lab.settle()
        did = [step for step in reported_by(lab, seen, 1) if " to " not in step]
        assert did[: did.index("ready") + 1] == order("failover_taking_over.txt")


def test_only_one_wins_the_race() -> None:
    """The others find the znode there, and know who it is."""
    with opened() as lab:
        news = play(lab, "delete_controller; settle")
        created = [r for r in news if r.kind == "zk" and (r.action, r.path) == ("create", "/controller")]
        assert sorted(str(r.error) for r in created) == ["NODEEXISTS", "NODEEXISTS", "None"]
        winner = next(r for r in created if r.error is None).actor
        assert {b.controller.active_id for b in lab.world.brokers.values()} == {int(winner[-1])}
        assert [r.action for r in news if r.action == "elected"] == ["elected"]


def test_the_first_epoch_and_its_wrong_version() -> None:
    """The first controller takes version 1 for the znode it created, which has version 0: the next reads it anew."""
    with opened() as lab:
        assert (acting(lab).context.epoch, acting(lab).context.epoch_zk_version) == (1, 1)
        assert lab.znodes()["/controller_epoch"][:2] == (b"1", 0)


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


def test_of_what_is_dropped_only_shutdowns_and_elections_are_answered() -> None:
    """Kafka 2.4.1: controller/KafkaController.scala, preempt; who asked for a reassignment waits until it gives up."""
    with in_any("2.4") as lab:
        queue, replies = acting(lab).queue, [lab.world.clock.loop.create_future() for _ in range(4)]
        queue.put(events.ControlledShutdown(2, -1, replies[0]))
        queue.put(events.ReplicaLeaderElection(ElectionType.UNCLEAN, (), replies[1]))
        queue.put(events.ApiPartitionReassignment({}, replies[2]))
        queue.put(events.ListPartitionReassignments(None, replies[3]))
        queue.clear_and_put(events.ControllerChange())
        assert [reply.done() for reply in replies] == [True, True, False, False]
        assert {type(reply.exception()) for reply in replies[:2]} == {ControllerMoved}


def test_a_reassignment_that_is_dropped_from_the_queue_is_never_answered() -> None:
    """The client waits until its request has timed out."""
    with in_any("2.4") as lab:
        controller = acting(lab)
        lab.create_topic("many", partitions=300, replication_factor=1)
        lab.run_until(lambda: controller.state == "TopicChange", limit=10)

        async def drop() -> None:
            await lab.world.clock.sleep(0.001)
            assert [event.name for event in controller.queue] == ["ApiPartitionReassignment"]
            controller.queue.clear_and_put(events.ControllerChange())

        lab.world.clock.spawn(drop())
        asked = lab.now
        refuses(Unavailable, "within 30 s", lab.reassign, {("orders", 0): [3, 2, 1]})
        assert lab.now - asked == pytest.approx(30)


def test_events_are_for_the_active_controller() -> None:
    """Anybody else lets them pass."""
    with opened() as lab:
        idle = process_of(lab, 1).controller
        seen = len(lab.trace)
        for event in (events.BrokerChange, events.TopicChange, events.TopicDeletion, events.IsrChangeNotification):
            idle.queue.put(event())
        lab.settle()
        assert {r.kind for r in lab.trace[seen:]} == {"event"}


def test_a_shutdown_asked_of_the_wrong_broker(prose: Prose) -> None:
    with opened() as lab:
        idle = process_of(lab, 1).controller

        async def ask() -> object:
            reply: asyncio.Future[object] = asyncio.get_running_loop().create_future()
            idle.queue.put(events.ControlledShutdown(3, -1, reply))
            return await reply

        prose.refuses(Exception, lab.world.clock.run, ask())


def test_an_unreadable_epoch_ends_the_attempt_to_take_over() -> None:
    """Whoever cannot take over resigns and gives `/controller` back; the log says why."""
    with opened() as lab:
        path = ControllerEpochZNode.path()
        lab.world.clock.run(acting(lab).zk.write(Set(path, b"many")))
        play(lab, "delete_controller; run_for 0.01")
        failed = [r for r in lab.trace if r.action == "election_failed"]
        assert path in json.loads(failed[0].detail or "{}")["error"]
        assert len(failed) > 2
        lab.world.clock.run(process_of(lab, 1).zk.write(Set(path, b"7")))
        lab.settle()
        assert lab.controller.epoch == 8


def test_a_broker_that_comes_while_0_10_takes_over_is_greeted_afterwards() -> None:
    """Its listener waits for the lock before it looks whether this broker is controller: nothing is lost.

    Kafka 0.10.2.2: controller/KafkaController.scala, isActive
    """
    with Lab(brokers=2, generation="0.10", seed=1) as lab:
        play(lab, "create_topic orders partitions=1000 replication_factor=1; kill 1; kill 2; settle")
        since = len(lab.trace)
        lab.start(1)
        lab.run_until(lambda: any(r.action == "elected" for r in lab.trace[since:]))
        until_quiet(lab.start, 2)
        ready = next(r for r in lab.trace[since:] if r.action == "ready")
        first = next(r for r in lab.trace[since:] if r.action == "BrokerChange" and r.target == "started")
        done = next(r for r in lab.trace[first.seq :] if r.action == "BrokerChange" and r.target == "done")
        assert first.seq < ready.seq < done.seq
        assert (done.detail or "").startswith("waited=")
        assert {p.leader for p in lab.partitions()} == {1, 2}
        assert not lab.violations


SETTINGS = {"delete.topic.enable": True, "auto.leader.rebalance.enable": True}
ORDERS = ("orders", 0)


def in_any(generation: str | Generation, brokers: int = 4, **config: object) -> Lab:
    """Brokers, of which 1 is controller, and a topic on 2 and 3."""
    return settled(generation, {"orders": {0: [2, 3], 1: [3, 2]}}, brokers, SETTINGS | config)


def reported_by(lab: Lab, since: int, broker: int) -> list[str]:
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


@pytest.mark.parametrize(("generation", "file"), [("0.10", "failover_old.txt"), ("2.4", "failover_new.txt")])
def test_the_order_of_taking_over(generation: str, file: str) -> None:
    """Kafka: controller/KafkaController.scala, onControllerFailover, at 0.10.2.2 and 2.4.1."""
    with in_any(generation) as lab:
        since = len(lab.trace)
        until_quiet(lab.kill, 1)
        did = reported_by(lab, since, lab.controller.id)
        expected = order(file)
        start = did.index(expected[0])
        extra = ("invoking_partitions", "invoking_replicas")
        kept = [w for w in did[start:] if w not in extra and not w.startswith(("LeaderAndIsr", "UpdateMetadata"))]
        assert kept[: len(expected)] == expected


def test_metadata_comes_before_the_first_leader_and_isr(generation: str) -> None:
    """KAFKA-4443: brokers must know who is alive before they follow anybody."""
    with in_any(generation) as lab:
        news = play(lab, "kill 1; settle")
        received: dict[int | None, list[str]] = {}
        for r in news:
            if r.kind == "request" and r.target == "sent":
                received.setdefault(r.broker, []).append(r.action)
        assert {actions[0] for actions in received.values()} == {"UpdateMetadata"}
        first = [actions[1:3] for broker, actions in received.items() if broker in (2, 3)]
        assert first == [["LeaderAndIsr", "UpdateMetadata"]] * 2


@pytest.mark.parametrize(("generation", "states"), [("0.10", 2), ("2.0", 2), ("2.4", 0)])
def test_the_first_metadata_of_a_new_controller(generation: str, states: int) -> None:
    """KAFKA-7537: since 2.2 it only says who is there."""
    with in_any(generation) as lab:
        news = play(lab, "kill 1; settle")
        first = next(r for r in news if r.action == "UpdateMetadata" and r.target == "sent")
        assert f"partitions={states} " in (first.detail or "")


# Work that is resumed


def test_everything_that_was_under_way_is_resumed(generation: str) -> None:
    """A reassignment that waits for 4, a deletion that waits for 5, an election that nobody heard of."""
    with in_any(generation, brokers=5, **{"auto.leader.rebalance.enable": False}) as lab:
        lab.create_topic("moving", assignment={0: [2, 3]})
        lab.create_topic("dying", assignment={0: [2, 5]})
        until_quiet(lab.create_topic, "drifted", assignment={0: [3, 2]})
        for broker in (3, 4, 5):
            until_quiet(lab.kill, broker)
        until_quiet(lab.start, 3)
        assert lab.partition("drifted", 0).leader == 2
        lab.reassign({("moving", 0): [2, 4]}, through="zookeeper")
        play(lab, "delete_topic dying; settle; kill 1")
        until_quiet(lab.elect_preferred, [("drifted", 0)])
        assert lab.controller.id != 1
        for broker in (1, 4, 5):
            until_quiet(lab.start, broker)
        assert lab.partition("moving", 0).replicas == (2, 4)
        assert {p.topic for p in lab.partitions()} == {"drifted", "moving", "orders"}
        assert lab.partition("drifted", 0).leader == 3
        assert [path for path in lab.znodes() if path.startswith("/admin/")] == ["/admin/delete_topics"]


# Resignation


def test_who_resigns_stops_listening_and_sending(generation: str) -> None:
    """It knows nothing any more, and listens to `/controller` only."""
    with in_any(generation) as lab:
        old = acting(lab)
        until_quiet(lab.expire_session, 1)
        assert acting(lab) is not old
        assert not old.is_active
        assert not old.threads
        assert old.channels.waiting == 0
        assert not old.channels.open
        context = old.context
        assert (context.epoch, context.brokers, context.topics, context.leadership) == (0, {}, {}, {})
        assert (context.partitions, context.replicas) == ({}, {})
        news = play(lab, "create_topic parcels partitions=2; kill 3; settle")
        assert not [r for r in news if r.actor == old.actor]


def stuck(generation: str) -> Lab:
    """A move to a dead broker is stuck, its request is removed by hand, and the old assignment is written back.

    The controller resigned in between, and after that it is elected again.
    """
    lab = in_any(generation, **{"auto.leader.rebalance.enable": False})
    until_quiet(lab.kill, 4)
    until_quiet(lab.reassign, {ORDERS: [2, 4]}, through="zookeeper")
    until_quiet(lab.expire_session, 1)
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
        controller.context.reassigning[("orders", 0)] = (7,)
        lab.world.run(failover.resign(controller))
        assert controller.context.reassigning == {("orders", 0): (7,)}


def test_0_10_finishes_a_deletion_it_is_at_before_it_resigns() -> None:
    """The thread that deletes is waited for; a resignation does not tear it away from a half-deleted topic."""
    with in_any("0.10") as lab:
        controller = acting(lab)
        lab.delete_topic("orders")
        lab.run_until(lambda lab: any(t.busy for t in controller.threads), limit=5)
        since = len(lab.trace)
        lab.world.run(failover.resign(controller))
        logged = [r.action for r in lab.trace[since:] if r.kind == "controller" and r.actor == controller.actor]
        assert logged[-1] == "resigned"
        assert len(logged) > 1  # it went on until it was done
        assert controller.threads == []


# Fencing


@pytest.mark.parametrize(("generation", "fence"), [("2.0", None), ("2.4", 1)])
def test_a_deposed_controller_of_2_4_cannot_write_and_one_of_2_0_can(generation: str, fence: int | None) -> None:
    """KAFKA-6082: both wake up late, with another controller in office, and go on with an election they had begun.

    The fence is what it left at `/controller_epoch`.
    """
    with in_any(generation, **{"auto.leader.rebalance.enable": False}) as lab:
        old = acting(lab)
        lab.delete_controller()
        lab.run_until(lambda lab: lab.controller is not None and lab.controller.epoch == 2)
        lab.settle()
        other = old if acting(lab) is not old else process_of(lab, 2).controller
        other.zk.fence = fence
        before = lab.partition(*ORDERS)

        async def write() -> None:
            state = await other.zk.state(("orders", 0))
            assert state is not None
            await other.zk.update_states({("orders", 0): state.led_by(3, (3,))})

        if fence:
            words = re.escape("Controller epoch zkVersion check fails. Expected zkVersion = 1")
            refuses(ControllerMoved, words, lab.world.run, write())
        else:
            lab.world.run(write())
        assert (lab.partition(*ORDERS).zk_version != before.zk_version) is (fence is None)


def test_a_controller_without_an_epoch_in_zookeeper_changes_nothing_and_goes_on() -> None:
    """2.4: each write fails by itself, as only another version would be that of another controller.

    Kafka 2.4.1: zk/KafkaZkClient.scala, unwrapResponseWithControllerEpochCheck, updateLeaderAndIsr
    """
    with in_any("2.4", **{"auto.leader.rebalance.enable": False}) as lab:
        lab.delete_znode("/controller_epoch")
        since, first = len(lab.trace), acting(lab).id
        until_quiet(lab.kill, 3 if first != 3 else 2)
        refused = lab.trace.slice(since, action="refuse")
        assert {(r.kind, r.error, r.detail) for r in refused} == {
            (kind, "NoNode", "NONODE for /controller_epoch") for kind in ("partition", "replica")
        }
        assert "broker_epochs_updated" in {r.action for r in lab.trace.slice(since, kind="controller")}
        assert not lab.trace.slice(since, action="controller_moved") and acting(lab).id == first
        until_quiet(lab.create_topic, "late", assignment={0: [first]})
        assert lab.partition("late", 0).state == "NewPartition"


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_session_that_ends_while_brokers_are_read_kills_no_broker(generation: str) -> None:
    """The event fails; an answer that never came says nothing about a broker."""
    with in_any(generation) as lab:
        since = len(lab.trace)
        lab.kill(3)
        ids = {"actor": "broker-1", "path": "/brokers/ids", "action": "children"}
        lab.run_until(lambda now: bool(now.trace.slice(since, **ids)))
        play(lab, "run_for 0.00015; expire_session 1; settle")
        logged = [record.action for record in lab.trace.slice(since, kind="controller", actor="controller-1")]
        assert "error_processing" in logged
        assert "brokers_changed" not in logged
        assert not lab.trace.slice(since, kind="partition", actor="controller-1")


@pytest.mark.parametrize(("generation", "done"), [("0.10", True), ("2.0", False)])
def test_what_waits_for_zookeeper_when_the_session_expires(generation: str, done: bool) -> None:
    """zkclient, which 0.10 used, does it in the next session as if nothing had happened."""
    with in_any(generation) as lab:
        broker = process_of(lab, 1)
        assert broker.zk.session is not None
        session = broker.zk.session
        answers = []

        async def write() -> None:
            lab.world.expire(session)
            answers.append(await broker.zk.write(Set("/brokers/topics/orders", b"{}")))

        lab.world.run(write())
        assert [a.error for a in answers] == [None if done else "SESSIONEXPIRED"]


def test_the_epoch_rises_with_every_controller(generation: str) -> None:
    with in_any(generation) as lab:
        for epoch in (1, 2, 3, 4):
            assert lab.controller.epoch == epoch
            assert lab.znodes()["/controller_epoch"][0] == str(epoch).encode()
            until_quiet(lab.delete_controller)
