"""Controlled shutdown in its three forms: one by one under the lock, in batches, and with epochs."""

import asyncio
import itertools

import pytest
from labs import QUIET, acting, play, process_of, settled, until_quiet

from kafka_ctl import Generation, Lab
from kafka_ctl.brokers.follower import State
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import events, failover
from kafka_ctl.requests import ControlledShutdownRequest, Response
from kafka_ctl.trace import Record


def opened(generation: str | Generation, assignment: dict[int, list[int]], brokers: int = 3, **config: object) -> Lab:
    """Brokers, of which 1 is controller, and a topic."""
    return settled(generation, {"orders": assignment}, brokers, QUIET | config)


def ask(lab: Lab, request: ControlledShutdownRequest, receiver: int = 1) -> Response:
    """Ask a broker's controller by hand, as a broker that does not really leave."""
    return lab.world.run(lab.world.network.call(request.broker, receiver, request))[0]


def test_leaderships_move_and_copies_stop(generation: str) -> None:
    with opened(generation, {0: [3, 1, 2], 1: [1, 2, 3], 2: [2, 3, 1]}) as lab:
        since = len(lab.trace)
        assert lab.shutdown(3) == (1, (), None)
        views = lab.partitions()
        assert [p.leader for p in views] == [1, 1, 2]
        assert all(3 not in p.isr for p in views)
        led = [r for r in lab.trace[since:] if r.kind == "election"]
        assert [(r.partition, r.action, r.leader) for r in led] == [(0, "controlled-shutdown", 1)]
        followed = [r for r in lab.trace[since:] if r.kind == "replica" and r.source == "OnlineReplica"]
        assert {r.partition for r in followed} >= {1, 2}
        lab.settle()
        assert lab.brokers[3].state == "down"


def test_the_next_leader_is_the_first_in_order_that_is_in_sync(generation: str) -> None:
    """KAFKA-3670: in the order of the assignment, not of the ISR."""
    with opened(generation, {0: [3, 1, 2]}) as lab:
        play(lab, "lag 1 orders 0; settle; catch_up 1; settle")
        assert lab.partition("orders", 0).isr == (3, 2, 1)
        lab.shutdown(3)
        assert lab.partition("orders", 0).leader == 1


def test_a_single_replica_is_left_alone_and_does_not_count(generation: str) -> None:
    with opened(generation, {0: [3], 1: [1]}) as lab:
        since = len(lab.trace)
        assert lab.shutdown(3) == (1, (), None)
        assert not [r for r in lab.trace[since:] if r.kind == "election" and r.action == "controlled-shutdown"]
        lab.settle()
        assert lab.partition("orders", 0).isr == (() if generation == "0.10" else (3,))  # unclean is 0.10's default


def test_what_cannot_move_is_reported_after_three_attempts(generation: str) -> None:
    """Nobody else is in sync: the broker asks three times, five seconds apart, and leaves all the same."""
    with opened(generation, {0: [3, 2], 1: [3, 1]}) as lab:
        until_quiet(lab.lag, 2, "orders", 0)
        since, start = len(lab.trace), lab.now
        report = lab.shutdown(3)
        assert report.attempts == 3
        assert [str(tp) for tp in report.remaining] == ["orders-0"]
        assert lab.now - start == pytest.approx(15, abs=0.5)
        asked = [r.time_ms for r in lab.trace[since:] if r.action == "ControlledShutdown" and r.target == "sent"]
        assert [round(b - a, -2) for a, b in itertools.pairwise(asked)] == [5000, 5000]
        assert lab.partition("orders", 1).leader == 1


def test_a_leaving_broker_starts_no_fetcher(generation: str) -> None:
    """It is told to follow its successor (not in 2.0), but does not fetch, and so stays out of the ISR."""
    with opened(generation, {0: [3, 2], 1: [3, 1]}) as lab:
        until_quiet(lab.kill, 2)
        since = len(lab.trace)
        assert lab.shutdown(3).attempts == 3
        made = [r for r in lab.trace[since:] if r.action == "become-follower" and r.broker == 3]
        assert [(r.partition, r.detail) for r in made] == ([] if generation == "2.0" else [(1, "fetcher=skipped")])
        assert not [r for r in lab.trace[since:] if r.action in ("caught-up", "expand-isr")]
        state = lab.partition("orders", 1)
        assert (state.leader, state.isr, state.leader_epoch) == (1, (1,), 1)
        assert lab.violations == ()


def test_other_fetchers_of_a_leaving_broker_go_on(generation: str) -> None:
    """The controller is cut off: nobody stops the copy that 3 follows, and it stays in sync until 3 is gone."""
    with opened(generation, {0: [2, 3]}) as lab:
        play(lab, "disconnect 1 3; shutdown 3 wait=false; run_for 12")
        assert lab.brokers[3].state == "pending controlled shutdown"
        assert lab.partition("orders", 0).isr == (2, 3)
        assert lab.produce("orders", 0).acknowledged


def test_it_can_be_switched_off(generation: str) -> None:
    with opened(generation, {0: [3, 1]}, **{"controlled.shutdown.enable": False}) as lab:
        since = len(lab.trace)
        assert lab.shutdown(3).attempts == 0
        assert not [r for r in lab.trace[since:] if r.action == "ControlledShutdown"]
        lab.settle()
        assert lab.partition("orders", 0).leader == 1


def test_the_controller_may_leave_too(generation: str) -> None:
    with opened(generation, {0: [1, 2, 3]}) as lab:
        assert lab.shutdown(1) == (1, (), None)
        lab.settle()
        assert lab.controller.id != 1
        assert lab.partition("orders", 0).leader == 2


# What is refused


def test_an_unknown_broker_and_a_broker_that_is_no_controller(generation: str) -> None:
    with opened(generation, {0: [1, 2]}) as lab:
        response = ask(lab, ControlledShutdownRequest(9))
        assert (response.error, response.text) == ("BROKER_NOT_AVAILABLE", "Broker id 9 does not exist.")
        if generation == "2.4":  # whose epoch is looked up before all else
            response = ask(lab, ControlledShutdownRequest(9, 77))
            assert (response.error, response.text) == ("UNKNOWN_SERVER_ERROR", "key not found: 9")
        response = ask(lab, ControlledShutdownRequest(3), receiver=2)
        assert response.error == "STALE_CONTROLLER_EPOCH"
        assert response.text == "Controller moved to another broker. Aborting controlled shutdown"


@pytest.mark.parametrize(("generation", "refused"), [("0.10", False), ("2.0", False), ("2.4", True)])
def test_a_request_of_an_earlier_life_is_refused_since_there_are_epochs(generation: str, refused: bool) -> None:
    """KIP-380: a delayed request would empty a broker that has just come back."""
    with opened(generation, {0: [3, 1]}) as lab:
        old = process_of(lab, 3).epoch
        play(lab, "bounce 3; settle; elect_preferred; settle")
        assert lab.partition("orders", 0).leader == 3
        response = ask(lab, ControlledShutdownRequest(3, old))
        if refused:
            now = process_of(lab, 3).epoch
            assert response.error == "STALE_BROKER_EPOCH"
            assert response.text == (
                f"Received controlled shutdown request from an old broker epoch {old} for broker 3. "
                f"Current broker epoch is {now}."
            )
            assert lab.partition("orders", 0).leader == 3
        else:
            assert response.error is None
            assert lab.partition("orders", 0).leader == 1
            assert acting(lab).context.shutting_down == {3}


# The three forms


@pytest.mark.parametrize(("generation", "reported"), [("0.10", {1, 2, 3}), ("2.0", {1, 2}), ("2.4", {1, 2, 3})])
def test_whether_the_leaving_broker_is_reported_of_its_successor(generation: str, reported: set[int]) -> None:
    """KAFKA-7482: from 1.1 to 2.0.1 it stays leader in its own eyes."""
    with opened(generation, {0: [3, 1, 2]}) as lab:
        news = play(lab, "shutdown 3")
        first = [r for r in news if r.action == "LeaderAndIsr" and r.topic and r.leader_epoch == 1]
        assert {r.broker for r in first} == reported


@pytest.mark.parametrize(("generation", "order"), [("0.10", [2, 1, 0]), ("2.0", [0, 2, 1]), ("2.4", [0, 2, 1])])
def test_0_10_goes_through_one_set_and_the_others_take_leaderships_first(generation: str, order: list[int]) -> None:
    """Partition 1 is followed, 0 and 2 are led: 0.10 takes them as its hash set has them."""
    with opened(generation, {0: [3, 1, 2], 1: [1, 2, 3], 2: [3, 2, 1]}) as lab:
        moved = play(lab, "shutdown 3").slice(kind={"election", "replica"}, topic="orders")
        assert list(dict.fromkeys(r.partition for r in moved)) == order  # a repeated one counted once


@pytest.mark.parametrize(("generation", "round_trips"), [("0.10", 2.0), ("2.0", 0.2), ("2.4", 0.2)])
def test_the_clock_shows_what_pipelining_bought(generation: str, round_trips: float) -> None:
    """Half of the partitions are led: serial two round trips each, pipelined a fifth of one."""
    taken = []
    for partitions in (100, 200):
        with opened(generation, {n: [3, 1] if n % 2 else [1, 3] for n in range(partitions)}) as lab:
            lab.shutdown(3)
            taken.append(at(lab, "done").time_ms - at(lab, "started").time_ms)
    # round trips of 0.2 ms a partition
    assert (taken[1] - taken[0]) / 100 / 0.2 == pytest.approx(round_trips, rel=0.05)


def at(lab: Lab, target: str) -> Record:
    """When the shutdown began, or was over."""
    return next(r for r in lab.trace if r.kind == "event" and r.action == "ControlledShutdown" and r.target == target)


def hand_over(lab: Lab, *brokers: int) -> list[asyncio.Future]:
    """Let these brokers ask at the same moment; where the answers will be."""
    controller, replies = acting(lab), [lab.world.clock.loop.create_future() for _ in brokers]

    def ask() -> None:
        for broker, reply in zip(brokers, replies, strict=True):
            controller.hand_over(events.ControlledShutdown(broker, -1, reply))

    lab.world.clock.call(ask)
    return replies


@pytest.mark.parametrize(("generation", "between"), [("0.10", True), ("2.0", False)])
def test_0_10_lets_others_in_between_two_partitions_and_2_0_makes_them_wait(generation: str, between: bool) -> None:
    """A topic is created while a broker with many partitions leaves."""
    with opened(generation, {n: [3, 1] for n in range(200)}) as lab:
        (reply,) = hand_over(lab, 3)
        until_quiet(lab.create_topic, "between", assignment={0: [1, 2]})
        created = next(r.seq for r in lab.trace if r.topic == "between" and r.target == "OnlinePartition")
        assert (created < at(lab, "done").seq) is between
        assert len(reply.result()) == 0


def test_0_10_shuts_down_one_broker_at_a_time_and_says_how_long_it_waited() -> None:
    """Two brokers ask at the same moment: the second waits for the shutdown lock, then both are gone."""
    with opened("0.10", {n: [3, 4, 1, 2] if n % 2 else [4, 3, 1, 2] for n in range(40)}, brokers=4) as lab:
        since = len(lab.trace)
        replies = hand_over(lab, 3, 4)
        lab.settle()
        asked = [r for r in lab.trace[since:] if r.kind == "event" and r.action == "ControlledShutdown"]
        assert [(r.broker, r.target) for r in asked] == [
            (3, "queued"),
            (4, "queued"),
            (3, "started"),
            (4, "started"),
            (3, "done"),
            (4, "done"),
        ]
        first, second = asked[-2:]
        waited = float(second.detail.removeprefix("waited=").removesuffix("ms"))
        assert waited == pytest.approx(first.time_ms - asked[1].time_ms, rel=0.1)
        assert {p.leader for p in lab.partitions()} == {1}
        assert all(reply.result() == () for reply in replies)


def resigned_in_the_middle(lab: Lab) -> asyncio.Future:
    """Broker 3 leaves, and its controller resigns before all has been moved; the answer."""
    (reply,) = hand_over(lab, 3)
    lab.world.run(failover.resign(acting(lab)))
    lab.run_for(1)
    assert [r.target for r in lab.trace if r.action == "ControlledShutdown"] == ["queued", "started", "done"]
    return reply


def test_0_10_answers_with_what_it_could_not_move_because_it_had_resigned() -> None:
    """The state machine has not started, and what it knew of the leaders is still there."""
    with opened("0.10", {n: [3, 1] for n in range(40)}) as lab:
        left = resigned_in_the_middle(lab).result()
        assert 0 < len(left) < 40
        assert sorted(left) == [TopicPartition(p.topic, p.partition) for p in lab.partitions() if p.leader == 3]
        assert len([r for r in lab.trace if r.action == "error_moving_partitions"]) == len(left)
        assert lab.znodes()["/controller_epoch"][0] == b"1"


def test_0_10_deletes_the_controller_when_it_has_no_channels_any_more() -> None:
    """The first copy that it should stop: whoever is controller by then has to be elected again."""
    with opened("0.10", {n: [1, 3] for n in range(40)}) as lab:
        assert str(resigned_in_the_middle(lab).exception()) == "java.lang.NullPointerException"
        lab.settle()
        assert lab.controller.epoch == 2


@pytest.mark.parametrize(("generation", "left"), [("2.0", False), ("2.4", True)])
def test_partitions_of_a_dying_topic_are_left_alone_since_2_1(generation: str, left: bool) -> None:
    with opened(generation, {0: [3, 1, 2]}) as lab:
        play(lab, "kill 2; settle; delete_topic orders; settle")
        news = play(lab, "shutdown 3")
        stopped = [r for r in news if r.action == "StopReplica" and r.topic == "orders"]
        assert (not stopped) == left


@pytest.mark.parametrize(("generation", "answered"), [("2.0", False), ("2.4", True)])
def test_2_2_and_later_tell_the_old_controllers_clients_to_look_again(generation: str, answered: bool) -> None:
    """The session of the controller expires while a shutdown waits in its queue: 2.4 answers, 2.0 forgets it."""
    with opened(generation, {0: [3, 1]}) as lab:
        queue, reply = acting(lab).queue, lab.world.clock.loop.create_future()

        async def drop() -> None:
            queue.put(events.ControlledShutdown(3, -1, reply))
            queue.clear_and_put(events.ControllerChange())

        lab.world.run(drop())
        lab.settle()
        assert reply.done() is answered
        if answered:
            assert str(reply.exception()) == "Controller moved to another broker"


def test_who_is_killed_before_it_hears_is_dead(generation: str) -> None:
    """Told to leave, and killed at the same moment: a process that is dead does not begin to leave."""
    with opened(generation, {0: [2, 1]}) as lab:
        play(lab, "shutdown 2 wait=false; kill 2; settle")
        assert lab.brokers[2].state == "down"
        assert lab.violations == ()
        assert [r.action for r in lab.trace.slice(broker=2, action={"shutdown", "kill"})] == ["shutdown", "kill"]
        until_quiet(lab.start, 2)
        assert lab.partition("orders", 0).isr == (1, 2)


def test_a_move_to_a_broker_that_is_leaving_need_not_end(generation: str) -> None:
    """It starts no fetcher, though its process is still there when all else is at rest. Walks have found it."""
    story = """disconnect 1 zookeeper\ncreate_topic c partitions=1 replication_factor=1
reassign '{"c-0":[3,2,1]}' zookeeper\nshutdown 1\nheal\nsettle\n"""
    with Lab.replay(f"lab brokers=[1,2,3] generation={generation} seed=0\n{story}") as lab:
        stopped = [p for p in process_of(lab, 1).as_follower.partitions.values() if p.state is State.STOPPED]
        assert stopped or lab.brokers[1].state == "down"
        assert [v for v in lab.violations if v.known is None] == []
