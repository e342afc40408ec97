"""What can go wrong in a lab: each fault does what it says, is recorded, and can be healed."""

from collections.abc import Iterator

import pytest
from labs import lab_of, play, until_quiet
from prose import Prose, source

from kafka_ctl.errors import BadInput
from kafka_ctl.lab.lab import Lab
from kafka_ctl.requests import UpdateMetadataRequest


@pytest.fixture
def lab(generation: str) -> Iterator[Lab]:
    with Lab(generation=generation, seed=3) as lab:
        until_quiet(lab.create_topic, "t", 3, 3)
        yield lab


def actions(lab: Lab, since: int, **columns: object) -> list[str]:
    return [r.action for r in lab.trace.slice(since, **columns)]


def isrs(lab: Lab) -> list[set[int]]:
    return [set(p.isr) for p in lab.partitions()]


def sound(lab: Lab) -> bool:
    """Somebody acts, every partition has a leader, and every broker that is up knows them."""
    leaders = {(p.topic, p.partition): p.leader for p in lab.partitions()}
    up = [broker for broker in lab.brokers.values() if broker.state == "running"]
    return (
        lab.controller is not None
        and -1 not in leaders.values()
        and all({tp: s.leader for tp, s in broker.metadata.items()} == leaders for broker in up)
    )


# Pauses


def test_a_paused_broker_is_shown_as_paused(lab: Lab) -> None:
    """Its process runs, and stands still."""
    lab.pause(1, 1)
    assert {id: (b.state, b.paused) for id, b in lab.brokers.items()} == {
        1: ("running", True),
        2: ("running", False),
        3: ("running", False),
    }
    lab.run_for(1.1)
    assert not any(b.paused for b in lab.brokers.values())


def test_a_short_pause_is_not_noticed(lab: Lab) -> None:
    """Shorter than the session timeout, it only delays what the process does."""
    id, since = lab.controller.id, len(lab.trace)
    lab.pause(id, 3)
    play(lab, "create_topic u partitions=1 replication_factor=3; run_for 2")
    assert not [r for r in lab.trace[since:] if r.actor in (f"controller-{id}", f"broker-{id}") and r.kind != "watch"]
    lab.settle()
    assert lab.partition("u", 0).leader != -1 and lab.controller.id == id
    assert actions(lab, since, kind="fault") == ["pause", "resume"]


def test_after_a_long_pause_a_controller_finds_itself_replaced(lab: Lab) -> None:
    id, since = lab.controller.id, len(lab.trace)
    lab.pause(id, 20)
    lab.run_for(19)
    assert lab.controller is not None and lab.controller.id != id
    lab.settle()
    assert "session-expired" in actions(lab, since, kind="broker", broker=id)
    assert sound(lab) and isrs(lab) == [{1, 2, 3}] * 3
    assert not lab.brokers[id].is_controller


@pytest.mark.parametrize("seed", range(5))
def test_who_wakes_after_its_session_learns_of_that_when_it_has_connected_again(seed: int) -> None:
    """The server has closed its connection; with one server a client waits for one to two seconds."""
    with Lab(seed=seed) as lab:
        play(lab, "create_topic t partitions=1 replication_factor=3; settle; pause 3 20; settle")
        (woke,) = lab.trace.slice(kind="fault", action="resume")
        (lost,) = lab.trace.slice(kind="zk", action="disconnected")
        (reported,) = lab.trace.slice(kind="broker", action="session-expired")
        assert lost.time_ms == woke.time_ms
        assert 1000 <= reported.time_ms - woke.time_ms <= 2001
        assert sound(lab)


@pytest.mark.parametrize("handling", [False, True])
def test_a_controller_waits_thirty_seconds_for_a_broker_that_stands_still(handling: bool) -> None:
    """Then it closes the connection and sends the request again, for as long as the broker is registered; the broker
    gets every copy. `request.timeout.ms`, also where the pause begins while the request is handled.

    Kafka 2.0.1: controller/ControllerChannelManager.scala, RequestSendThread.doWork
    """
    costs = {"request_state": 0.5 if handling else 0.0}
    with Lab(config={"zookeeper.session.timeout.ms": 600_000}, costs=costs) as lab:
        other, began = lab.controller.id % 3 + 1, len(lab.trace)
        if not handling:
            lab.pause(other, 70)
        lab.create_topic("u", assignment={0: [other], 1: [other]})
        if handling:
            lab.run_until(lambda: lab.trace.slice(began, broker=other, action="LeaderAndIsr", target="sent"))
            lab.run_for(0.7)
            lab.pause(other, 70)
        lab.settle()
        ours = [r for r in lab.trace.slice(began, broker=other, action="LeaderAndIsr") if r.target == "sent" or r.error]
        assert [(r.kind, r.error) for r in ours] == [("request", None), ("response", "DISCONNECTED")]
        assert 29_990 < ours[1].time_ms - ours[0].time_ms < 30_001
        answers = lab.trace.slice(began, actor=f"broker-{other}", kind="response", action="LeaderAndIsr")
        assert len(answers) == 3 and lab.partition("u", 1).isr == (other,)


@pytest.mark.parametrize("seconds", [25, 35])
def test_a_pause_shorter_than_the_timeout_only_delays_the_answer(seconds: int) -> None:
    with Lab(config={"zookeeper.session.timeout.ms": 600_000}) as lab:
        other = lab.controller.id % 3 + 1
        lab.pause(other, seconds)
        until_quiet(lab.create_topic, "u", assignment={0: [other]})
        assert len(lab.trace.slice(error="DISCONNECTED")) == (seconds > 30)
        lab.pause(other, 20)  # a second pause: nothing is left of the first
        lab.settle()
        assert len(lab.trace.slice(error="DISCONNECTED")) == (seconds > 30)


def test_a_paused_broker_can_only_be_killed_or_healed(prose: Prose, lab: Lab) -> None:
    lab.pause(2, 60)
    prose.refuses(BadInput, lab.shutdown, 2)
    until_quiet(lab.heal)
    assert lab.now < 40
    play(lab, "pause 2 60; kill 2; settle; start 2; settle")
    assert sound(lab) and isrs(lab) == [{1, 2, 3}] * 3


# The way to ZooKeeper


def test_who_cannot_reach_zookeeper_is_dead_to_it(lab: Lab) -> None:
    since = len(lab.trace)
    until_quiet(lab.disconnect, 2, "zookeeper")
    assert actions(lab, since, actor="broker-2", kind="zk")[:1] == ["disconnected"]
    assert [r.detail.split()[-1] for r in lab.trace.slice(since, action="expired")] == ["broker-2"]
    assert 2 not in {p.leader for p in lab.partitions()}
    until_quiet(lab.heal)
    assert sound(lab) and isrs(lab) == [{1, 2, 3}] * 3


@pytest.mark.parametrize(("source", "target"), [(1, "zookeeper"), ("zookeeper", 1)])
def test_one_way_is_enough_to_lose_a_session(source: int | str, target: int | str) -> None:
    """Requests that get there are applied even when no answer comes back."""
    with Lab(seed=3) as lab:
        until_quiet(lab.create_topic, "t", 1, 3)
        until_quiet(lab.disconnect, source, target, one_way=True)
        assert {"disconnected", "expired"} <= {r.action for r in lab.trace.slice(kind="zk")}
        until_quiet(lab.heal)
        assert sound(lab)


def test_a_short_cut_is_survived(lab: Lab) -> None:
    """The client notices nothing, or connects again in time; the session lives on."""
    session = {path: owner for path, (_, _, owner) in lab.znodes().items() if owner}
    for seconds in (2, 5):
        lab.disconnect(1, "zookeeper")
        lab.run_for(seconds)
        until_quiet(lab.heal)
    assert {path: owner for path, (_, _, owner) in lab.znodes().items() if owner} == session
    assert sound(lab)


@pytest.mark.parametrize("applied", [False, True])
def test_an_answer_lost_is_a_write_sent_twice(lab: Lab, applied: bool) -> None:
    """With `applied` the second attempt meets the first one's version; either way the write is there once."""
    id = lab.controller.id
    victim = next(p.leader for p in lab.partitions() if p.leader != id)
    since = len(lab.trace)
    lab.lose(id, "zookeeper", applied=applied)
    until_quiet(lab.kill, victim)
    assert actions(lab, since, actor=f"broker-{id}", kind="zk").count("disconnected") == 1
    errors = [r.error for r in lab.trace.slice(since, actor=f"broker-{id}", action={"set", "multi"}) if r.error]
    assert errors[:1] == (["BADVERSION"] if applied else [])
    assert sound(lab)


def test_nobody_dies_while_zookeeper_is_down(prose: Prose, lab: Lab) -> None:
    """No session expires; a broker that was killed meanwhile is noticed afterwards."""
    since = len(lab.trace)
    play(lab, "stop_zookeeper; kill 3; run_for 60")
    assert "expired" not in actions(lab, since, kind="zk")
    prose.refuses(BadInput, lab.create_topic, "u")
    prose.refuses(BadInput, lab.start, 3)
    until_quiet(lab.start_zookeeper)
    assert actions(lab, since, kind="zk", actor="zookeeper")[:1] == ["expired"]
    assert sound(lab) and 3 not in {p.leader for p in lab.partitions()}


# The way between brokers


def test_requests_wait_for_a_cut_to_heal(lab: Lab) -> None:
    other = lab.controller.id % 3 + 1
    lab.disconnect(lab.controller.id, other)
    until_quiet(lab.create_topic, "u", 1, 3)
    assert ("u", 0) not in lab.brokers[other].metadata
    lab.run_for(100)  # given up after 30 s, and tried again
    assert "no request came from" in str([r.detail for r in lab.trace.slice(error="DISCONNECTED")])
    until_quiet(lab.heal)
    assert ("u", 0) in lab.brokers[other].metadata


def test_a_follower_behind_a_cut_leaves_the_isr_and_comes_back() -> None:
    """In 2.0 a silent follower is late also where nothing was written."""
    with lab_of("t", {0: [1, 2, 3]}, seed=3) as lab:
        until_quiet(lab.disconnect, 1, 2)
        assert set(lab.partition("t", 0).isr) == {1, 3}
        until_quiet(lab.heal)
        assert set(lab.partition("t", 0).isr) == {1, 2, 3}


@pytest.mark.parametrize("applied", [False, True])
def test_a_lost_answer_makes_a_request_come_twice(lab: Lab, applied: bool) -> None:
    other = lab.controller.id % 3 + 1
    since = len(lab.trace)
    lab.lose(lab.controller.id, other, applied=applied)
    until_quiet(lab.create_topic, "u", assignment={0: [other]})
    sent = [r.seq for r in lab.trace.slice(since, kind="request", target="sent", broker=other)]
    answered = [r.cause for r in lab.trace.slice(since, actor=f"broker-{other}", kind="response")]
    assert answered == ([sent[0]] if applied else []) + sent
    assert sound(lab)


def test_what_is_slow_arrives_late(lab: Lab) -> None:
    id = lab.controller.id
    lab.delay(id, id % 3 + 1, 1.5)
    start = lab.now
    until_quiet(lab.create_topic, "u", assignment={0: [id % 3 + 1]})
    reported = next(r for r in lab.trace.slice(kind="broker", action="become-leader", topic="u"))
    assert reported.time_ms / 1000 - start > 1.5


def test_what_is_slow_arrives_also_when_its_sender_has_died(lab: Lab) -> None:
    """It is on its way; who sent it is not asked."""
    leaving = lab.controller.id % 3 + 1
    lab.delay(leaving, lab.controller.id, 2)
    lab.shutdown(leaving, wait=False)
    lab.run_for(1)
    lab.kill(leaving)
    assert not lab.trace.slice(kind="event", action="ControlledShutdown", broker=leaving)
    lab.run_for(2)
    begun = lab.trace.slice(kind="event", action="ControlledShutdown", broker=leaving)
    assert [r.target for r in begun] == ["queued", "started", "done"]
    assert sound(lab)


def test_what_is_slow_finds_nobody_where_the_receiver_has_died(lab: Lab) -> None:
    """The sender is refused, as if it had asked just then."""
    leaving, controller = lab.controller.id % 3 + 1, lab.controller.id
    lab.delay(leaving, controller, 1)
    lab.shutdown(leaving, wait=False)
    lab.run_for(0.5)
    lab.kill(controller)
    lab.run_for(1)
    reported = lab.trace.slice(kind="broker", action="controlled-shutdown", broker=leaving)
    assert [r.error for r in reported] == ["DISCONNECTED"]


@pytest.mark.parametrize("slow", ["request", "answer", "both"])
def test_a_controller_gives_up_what_is_not_answered_in_time(lab: Lab, slow: str) -> None:
    """After 30 s it closes the connection; as long as the link is so slow, no other connection comes about.

    What had left arrives all the same, once: Kafka 2.0.1: clients/NetworkClient.java, handleTimedOutRequests;
    controller/ControllerChannelManager.scala, RequestSendThread.
    """
    controller, other = lab.controller.id, lab.controller.id % 3 + 1
    if slow != "answer":
        lab.delay(controller, other, 40 if slow == "request" else 20)
    if slow != "request":
        lab.delay(other, controller, 40 if slow == "answer" else 20)
    since, start = len(lab.trace), lab.now
    play(lab, "create_topic u partitions=1 replication_factor=3; run_for 100")
    lost = lab.trace.slice(since, kind="response", error="DISCONNECTED", broker=other)
    assert [r.actor for r in lost[:1]] == [f"controller-{controller}"]
    assert f"from broker {other} to broker {controller}" in (lost[0].detail or "")
    assert 30 < lost[0].time_ms / 1000 - start < 30.1
    sent = lab.trace.slice(since, kind="request", target="sent", broker=other)
    assert [r.action for r in sent] == ["LeaderAndIsr"], "it is sent until it is answered"
    assert len(lab.trace.slice(since, kind="response", action="LeaderAndIsr", actor=f"broker-{other}")) == 1
    until_quiet(lab.heal)
    assert len(lab.trace.slice(since, kind="response", action="LeaderAndIsr", actor=f"broker-{other}")) == 2
    assert ("u", 0) in lab.brokers[other].metadata and sound(lab)


def test_an_answer_and_a_connection_have_timeouts_of_their_own() -> None:
    """`request.timeout.ms` for the answer; after it, `controller.socket.timeout.ms` for each try to connect again.

    Kafka 2.0.1: controller/ControllerChannelManager.scala, RequestSendThread.brokerReady
    """
    with Lab(config={"request.timeout.ms": 20_000, "controller.socket.timeout.ms": 5_000}) as lab:
        lab.delay(1, 2, 40)
        for seconds, problem in ((20, "no answer came"), (5, "no connection to broker 2 came"), (5, "no connection")):
            start = lab.now
            with pytest.raises(ConnectionAbortedError, match=problem):
                lab.world.run(lab.world.network.call(1, 2, UpdateMetadataRequest(1, 1, {})))
            assert lab.now - start == pytest.approx(seconds, abs=0.01)


def test_what_is_fast_again_in_time_is_answered(lab: Lab) -> None:
    controller, other = lab.controller.id, lab.controller.id % 3 + 1
    lab.delay(controller, other, 20)
    lab.delay(other, controller, 20)
    news = play(lab, "create_topic u partitions=1 replication_factor=3; run_for 10; heal; settle")
    assert "DISCONNECTED" not in {r.error for r in news} and sound(lab)
    assert ("u", 0) in lab.brokers[other].metadata


@pytest.mark.parametrize(("source", "target"), [(1, "zookeeper"), ("zookeeper", 1)])
def test_a_slow_zookeeper_answers_late_and_in_order(source: int | str, target: int | str) -> None:
    """What was sent first arrives first, also when the way is fast again meanwhile."""
    with Lab(seed=3) as lab:
        until_quiet(lab.create_topic, "t", 2, 3)
        id = lab.controller.id
        lab.delay(*((id, target) if source == 1 else (source, id)), 1.5)
        assert not lab.world.is_healthy
        start, since = lab.now, len(lab.trace)
        play(lab, "create_topic u partitions=1 replication_factor=1; run_for 2; heal; settle")
        created = next(r for r in lab.trace.slice(since, kind="controller", action="topics_changed"))
        assert created.time_ms / 1000 - start > 1.5
        assert "disconnected" not in actions(lab, since, kind="zk")
        assert sound(lab) and not lab.violations
        since = len(lab.trace)
        until_quiet(lab.create_topic, "v", 1, 1)
        assert lab.now - lab.trace[since].time_ms / 1000 < 1.5


def test_what_takes_longer_than_a_client_waits_is_a_cut(prose: Prose) -> None:
    with Lab() as lab, prose.refused(BadInput):
        lab.delay(1, "zookeeper", 4)


@pytest.mark.parametrize("target", [2, "zookeeper"])
def test_a_loss_that_has_not_happened_yet_can_be_healed(lab: Lab, target: int | str) -> None:
    lab.lose(1, target)
    lab.heal()
    since = len(lab.trace)
    play(lab, "create_topic u partitions=1 replication_factor=3; settle; bounce 1; settle")
    assert "disconnected" not in actions(lab, since, kind="zk") and sound(lab)
    assert "DISCONNECTED" not in {r.error for r in lab.trace[since:]}


# Followers


def test_a_slow_follower_keeps_producers_waiting(lab: Lab) -> None:
    """Records are acknowledged when it has them."""
    led = lab.partition("t", 0)
    follower = next(id for id in led.replicas if id != led.leader)
    lab.slow(follower, 3)
    start = lab.now
    assert lab.produce("t", 0).acknowledged
    assert lab.now - start > 3 and isrs(lab) == [{1, 2, 3}] * 3
    until_quiet(lab.heal)
    start = lab.now
    assert lab.produce("t", 0).acknowledged
    assert lab.now - start < 1


def test_a_follower_that_is_too_slow_leaves_and_comes_back_again_and_again(lab: Lab) -> None:
    """Its leaders wait `replica.lag.time.max.ms` for it; then it catches up, slowly, and the same begins anew."""
    led = lab.partition("t", 0)
    follower = next(id for id in led.replicas if id != led.leader)
    since = len(lab.trace)
    lab.slow(follower, 12)
    lab.run_for(80)
    moves = [r.action for r in lab.trace.slice(since, kind="broker", topic="t", partition=0) if "isr" in r.action]
    assert moves[:4] == ["shrink-isr", "expand-isr"] * 2
    until_quiet(lab.slow, follower, 0)
    assert isrs(lab) == [{1, 2, 3}] * 3


def test_who_returns_before_the_session_ends_waits_for_that(lab: Lab) -> None:
    """A crash and a return, faster than the session's timeout: the znode of the earlier life is still there."""
    since = len(lab.trace)
    play(lab, "kill 2; start 2; run_for 3")
    assert (
        "waiting" in actions(lab, since, kind="broker", broker=2)
        and lab.brokers[2].state == "recovering from unclean shutdown"
    )
    lab.settle()
    assert sound(lab) and isrs(lab) == [{1, 2, 3}] * 3


def test_a_broker_is_started_once(prose: Prose) -> None:
    with Lab() as lab:
        play(lab, "kill 1; start 1")
        prose.refuses(BadInput, lab.start, 1)


def test_a_session_lost_behind_a_cut_is_renewed() -> None:
    """Also when it was healed before the client had noticed anything."""
    with Lab(brokers=2, generation="2.4") as lab:
        play(lab, "disconnect 2 zookeeper; expire_session 2; heal; settle")
        assert "/brokers/ids/2" in lab.znodes() and not lab.violations


def test_a_shutdown_whose_session_has_expired_still_ends(lab: Lab) -> None:
    lab.expire_session(2)
    assert lab.shutdown(2) is not None and lab.brokers[2].state == "down"
    lab.settle()
    assert not [v for v in lab.violations if not v.known]


def test_a_dead_process_sends_nothing(lab: Lab) -> None:
    """Not even to itself: a controller's channel to its own broker dies with both."""
    id = lab.controller.id
    play(lab, "create_topic u partitions=3 replication_factor=3; step n=60")
    lab.kill(id)
    assert not play(lab, "run_for 30").slice(actor=f"controller-{id}")


# Disks


def test_a_broker_lives_on_with_one_of_its_log_directories() -> None:
    """Its copies there leave the ISRs and lose their leaderships; after a restart they are back."""
    with lab_of("t", {0: [1, 2], 1: [1, 2]}, brokers=[1, 2], seed=3) as lab:
        until_quiet(lab.fail_log_dir, 1)
        assert sorted((p.leader, p.isr) for p in lab.partitions()) == [(1, (1, 2)), (2, (2,))]
        until_quiet(lab.fail_log_dir, 1)
        assert lab.brokers[1].state == "down" and [p.leader for p in lab.partitions()] == [2, 2]
        until_quiet(lab.start, 1)
        assert isrs(lab) == [{1, 2}] * 2


def test_before_1_0_a_broken_disk_is_a_dead_broker() -> None:
    with Lab(brokers=[1, 2], generation="0.10", seed=3) as lab:
        lab.fail_log_dir(1)
        assert lab.brokers[1].state == "down"


def test_a_topic_with_a_copy_on_a_broken_disk_cannot_be_deleted() -> None:
    with lab_of("t", {0: [1, 2]}, brokers=[1, 2], seed=3) as lab:
        play(lab, "fail_log_dir 1; settle; delete_topic t; settle")
        assert [p.topic for p in lab.partitions()] == ["t"]
        until_quiet(lab.bounce, 1)
        assert lab.partitions() == []


# Operators


def test_znodes_can_be_written_and_deleted_by_hand(prose: Prose, lab: Lab) -> None:
    lab.write_znode("/config/topics/t", '{"version":1,"config":{}}')
    lab.write_znode("/strange", "")
    assert lab.znodes()["/strange"][0] == b""
    for line, written in (("""'{"a":[1]}'""", b'{"a":[1]}'), ("[1]", b"[1]"), ("7", b"7"), ("'\"{}\"'", b"{}")):
        lab.do(f"write_znode /strange {line}")
        assert lab.znodes()["/strange"][0] == written
    lab.delete_znode("/strange")
    assert "/strange" not in lab.znodes()
    prose.refuses(BadInput, lab.delete_znode, "/strange")
    assert "delete_znode /strange" in lab.story and lab.story.count("\ndelete_znode") == 1


@pytest.mark.parametrize("name", ["0.10", "2.0", "2.4"])
def test_the_tools_create_the_znodes_above(name: str) -> None:
    """After they were deleted by hand; the next controller finds the topic.

    Kafka 2.0.1: zk/KafkaZkClient.scala, createRecursive; 0.10.2.2: utils/ZkUtils.scala, createParentPath
    """
    with Lab(brokers=2, generation=name, config={"delete.topic.enable": True}) as lab:
        play(lab, "delete_znode /brokers/topics; delete_znode /config/topics; settle")
        lab.create_topic("orders", assignment={0: [1, 2]})
        assert {"/brokers/topics/orders", "/config/topics/orders"} <= lab.znodes().keys()
        lab.delete_znode("/config/changes")
        lab.alter_config("topics", "orders", config={"min.insync.replicas": 2})
        assert any(path.startswith("/config/changes/config_change_") for path in lab.znodes())
        play(lab, "delete_controller; settle; delete_znode /admin/delete_topics; delete_znode /admin; settle")
        until_quiet(lab.reassign, {"orders-0": [2, 1]})
        assert [view.replicas for view in lab.partitions()] == [(2, 1)]
        play(lab, "kill 1; settle; delete_topic orders")
        assert "/admin/delete_topics/orders" in lab.znodes()


def test_a_process_can_be_killed_while_it_leaves_or_starts(lab: Lab) -> None:
    play(lab, "shutdown 2 wait=false; step n=3; kill 2; settle; start 2; step; kill 2; settle")
    assert lab.brokers[2].state == "down"
    until_quiet(lab.start, 2)
    assert sound(lab) and isrs(lab) == [{1, 2, 3}] * 3


# As commands


def test_faults_are_part_of_the_story(lab: Lab) -> None:
    play(lab, "pause 1 2.5; disconnect 2 3 one_way=true; disconnect zookeeper 2")
    play(lab, "lose 3 2; delay 1 3 0.25; run_for 20; heal; settle; fail_log_dir 1; settle")
    with Lab.replay(lab.story) as again:
        assert again.trace.records == lab.trace.records


@pytest.mark.parametrize(
    "call",
    [
        lambda lab: lab.disconnect(1, 1),
        lambda lab: lab.disconnect(1, 9),
        lambda lab: lab.disconnect("zookeeper", "zookeeper"),
        lambda lab: lab.disconnect(1, "kafka"),
        lambda lab: lab.pause(1, -1),
        lambda lab: lab.delay(1, 2, "long"),
        lambda lab: lab.start_zookeeper(),
        lambda lab: lab.write_znode("", "x"),
        lambda lab: lab.write_znode("/a/b/c", "x"),
    ],
    ids=source,
)
def test_a_fault_that_cannot_be_is_refused(prose: Prose, call: object) -> None:
    with Lab() as lab:
        before = lab.story
        prose.refuses(BadInput, call, lab)
        assert lab.story.removeprefix(before) in ("", "refused write_znode /a/b/c x\n")


def test_an_order_does_not_keep_time_from_ending(generation: str) -> None:
    """Where one event is pending that renews itself, periodic checks come in their turn, and `run_for` ends."""
    with Lab(generation=generation) as lab:
        play(lab, "disconnect zookeeper 3; settle limit=300")
        lab.order([2, 3, 2, 1, 0, 2])
        play(lab, "kill 2; run_for 20; stop_zookeeper")
        start = lab.now
        lab.run_for(20)
        assert lab.now - start == pytest.approx(20)
