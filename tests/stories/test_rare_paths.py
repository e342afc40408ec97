"""Paths that hardly any story takes: what mutants of single lines have shown to be untested."""

from __future__ import annotations

from itertools import pairwise

import pytest
from labs import CLEAN, acting, lab_of, play, process_of, settled, three_brokers, until_quiet

from kafka_ctl.brokers.disk import PATHS, Disk
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import deletion, dispatch, events, membership, reassignment, shutdown
from kafka_ctl.controller.controller import Controller
from kafka_ctl.errors import ControllerMoved, StateChangeFailed
from kafka_ctl.generation import GENERATIONS, Generation
from kafka_ctl.lab.lab import Lab
from kafka_ctl.partition import NEW
from kafka_ctl.requests import STORAGE_ERROR

STATE = "/brokers/topics/orders/partitions/0/state"
NEWER = '{"controller_epoch":9,"leader":2,"version":1,"leader_epoch":0,"isr":[2,3,1]}'

MALFORMED = '{"version":1,"leader":"two"}'
"""JSON of another shape. Since 1.1 it ends the whole batch: see `test_malformed.py`."""


# What stands in ZooKeeper is not what the controller wrote


def store(lab: Lab, state: str | None) -> None:
    """Write the state of `orders-0` by hand, or delete it."""
    if state is None:
        lab.delete_znode(STATE)
    else:
        lab.write_znode(STATE, state)


@pytest.mark.parametrize(
    ("generation", "stored", "reported"),
    [
        *(
            (g, NEWER, "another controller was elected with epoch 9. Aborting state change by this")
            for g in GENERATIONS
        ),
        *((g, None, "since the leader and isr path in zookeeper is empty") for g in GENERATIONS),
        ("0.10", MALFORMED, "field 'leader' is 'two'"),
    ],
)
def test_an_isr_that_cannot_be_shrunk_is_left_alone(generation: str, stored: str | None, reported: str) -> None:
    """A newer controller wrote the state, or it is gone, or nonsense: the replica stays Online, and it is said why."""
    with three_brokers(generation) as lab:
        since = len(lab.trace)
        store(lab, stored)
        until_quiet(lab.kill, 3)
        refused = lab.trace.slice(since, kind="replica", action="refuse", broker=3)
        assert [(r.topic, r.partition, str(r.source), str(r.target)) for r in refused] == [
            ("orders", 0, "OnlineReplica", "OfflineReplica")
        ]
        assert reported in (refused[0].detail or "")
        assert lab.znodes().get(STATE, (None,))[0] == (stored.encode() if stored else None)


@pytest.mark.parametrize(
    ("generation", "stored", "error", "reported"),
    [
        *((g, None, "StateChangeFailed", "LeaderAndIsr information doesn't exist for partition ") for g in GENERATIONS),
        ("0.10", MALFORMED, "BadInput", "field 'leader' is 'two'"),
    ],
)
def test_nobody_is_elected_without_a_state(generation: str, stored: str | None, error: str, reported: str) -> None:
    with three_brokers(generation) as lab:
        since = len(lab.trace)
        store(lab, stored)
        until_quiet(lab.kill, 2)
        refused = lab.trace.slice(since, kind="partition", action="refuse")
        assert [(r.topic, str(r.source), str(r.target), r.error) for r in refused] == [
            ("orders", "OfflinePartition", "OnlinePartition", error)
        ]
        assert reported in (refused[0].detail or "")


def test_0_10_says_why_empty_isr_can_lead() -> None:
    with three_brokers("0.10", (2,)) as lab:
        since = len(lab.trace)
        until_quiet(lab.kill, 2)
        refused = lab.trace.slice(since, kind="partition", action="refuse")
        assert [r.error for r in refused] == ["NoReplicaOnline"]
        assert "No broker in ISR for partition [orders,0] is alive. Live brokers are: " in (refused[0].detail or "")


def test_a_move_that_the_table_does_not_have_is_refused(generation: str) -> None:
    """Here of a partition, from Online to New."""
    with three_brokers(generation) as lab:
        tp = TopicPartition("orders", 0)
        with pytest.raises(StopIteration):
            acting(lab).partition_machine.handle([tp], NEW).send(None)
        (refused,) = lab.trace.slice(kind="partition", action="refuse")
        assert (refused.topic, refused.partition, refused.error) == ("orders", 0, "InvalidTransition")
        assert (str(refused.source), str(refused.target)) == ("OnlinePartition", "NewPartition")
        assert lab.partition("orders", 0).leader == 2


# Giving up


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
def test_an_epoch_that_somebody_else_writes_first(generation: str) -> None:
    """The new controller gives up, deletes `/controller`, and a broker is elected under a later epoch.

    0.10 logs an error, and goes on with the epoch that it has read.
    """
    met = 0
    for fifth in range(1, 15):
        with three_brokers(generation) as lab:
            for broker in (1, 2, 3):
                lab.delay(broker, "zookeeper", 0.5)
            since = len(lab.trace)
            lab.delete_controller()
            lab.run_until(lambda now: bool(now.trace.slice(kind="controller", action="elected")[1:]))
            lab.run_for(0.2 * fifth)
            until_quiet(lab.write_znode, "/controller_epoch", "77")
            until_quiet(lab.heal)
            failed = lab.trace.slice(since, kind="controller", action="election_failed")
            ignored = lab.trace.slice(since, kind="controller", action="epoch_not_incremented")
            met += len(ignored if generation == "0.10" else failed)
            assert not (failed if generation == "0.10" else ignored)
            assert lab.controller is not None
            if ignored:
                assert acting(lab).context.epoch == 1
                assert int(lab.znodes()["/controller_epoch"][0]) == 77
            if failed:
                assert acting(lab).context.epoch == int(lab.znodes()["/controller_epoch"][0]) == 78
                assert "Controller moved to another broker" in (failed[0].detail or "")
            assert sum(process.controller.is_active for process in lab.world.brokers.values()) == 1
    assert met


def test_who_cannot_take_over_gives_up_and_is_controller_no_more(generation: str) -> None:
    """The znode of a topic has a version that nobody knows."""
    with three_brokers(generation) as lab:
        good = lab.znodes()["/brokers/topics/orders"][0].decode()
        lab.write_znode("/brokers/topics/orders", '{"version":9,"partitions":{}}')
        since = len(lab.trace)
        lab.delete_controller()
        lab.run_until(lambda now: bool(now.trace.slice(since, action="election_failed")), limit=60)
        failed = lab.trace.slice(since, action="election_failed")[0]
        broker = int(failed.actor.rpartition("-")[2])
        gone = {"kind": "zk", "action": "delete", "actor": f"broker-{broker}", "path": "/controller"}
        lab.run_until(lambda now: bool(now.trace.slice(failed.seq, **gone)), limit=60)
        assert not process_of(lab, broker).controller.is_active
        until_quiet(lab.write_znode, "/brokers/topics/orders", good)
        assert sum(process.controller.is_active for process in lab.world.brokers.values()) == 1
        assert acting(lab).context.epoch == lab.controller.epoch
        assert lab.partition("orders", 0).leader == 2


# Followers


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
def test_news_wakes_a_follower_whose_fetch_waits(generation: str) -> None:
    """A fetch that waits half a second for a higher high watermark is answered at once when a record comes."""
    with three_brokers(generation, (1, 2)) as lab:
        lab.produce("orders", 0, wait=False)
        lab.run_for(0.1)
        lab.produce("orders", 0, wait=False)
        lab.run_for(0.1)
        assert [log.end for log in lab.logs()] == [2, 2]


def test_a_follower_that_lagged_where_nothing_is_left(generation: str) -> None:
    with three_brokers(generation) as lab:
        lab.lag(3, "orders", 0)
        play(lab, "delete_topic orders; settle; catch_up 3; settle")
        assert not lab.partitions()
        assert lab.violations == ()


def test_settle_does_not_wait_for_a_follower_behind_a_cut(generation: str) -> None:
    """It asks again and again, but nobody answers before the cut is healed."""
    with three_brokers(generation) as lab:
        lab.produce("orders", 0)
        until_quiet(lab.lag, 3, "orders", 0)
        assert set(lab.partition("orders", 0).isr) == {1, 2}
        lab.disconnect(2, 3)
        lab.catch_up(3)
        before = lab.now
        lab.settle(limit=60)
        assert lab.now - before < 2
        assert set(lab.partition("orders", 0).isr) == {1, 2}
        until_quiet(lab.heal)
        assert set(lab.partition("orders", 0).isr) == {1, 2, 3}
        assert lab.violations == ()


@pytest.mark.parametrize(
    ("generation", "error", "most"),
    [("0.10", "NETWORK_EXCEPTION", 1), ("2.0", "REQUEST_TIMED_OUT", 31), ("2.4", "KAFKA_STORAGE_ERROR", 1)],
)
def test_a_leader_that_loses_its_disk_tells_who_waits(generation: str, error: str, most: int) -> None:
    """0.10 halts; 2.0 when the producer's time is over; 2.4 when the controller stops the copy.

    Kafka 2.4.1: server/ReplicaManager.scala, handleLogDirFailure, stopReplica (KAFKA-9198)
    """
    with three_brokers(generation) as lab:
        lab.produce("orders", 0)
        lab.pause(3, 5)
        since = len(lab.trace)
        lab.produce("orders", 0, wait=False)
        lab.run_for(0.1)
        lab.fail_log_dir(2)
        lab.run_for(31)
        answers = [r for r in lab.trace.slice(since, kind="response", actor="producer") if r.error]
        assert answers[0].error == error
        assert 1000 * (most - 1) <= answers[0].time_ms - lab.trace[since].time_ms < 1000 * most


def test_a_silent_follower_that_has_everything_stays_in_sync() -> None:
    """Since 2.4 only who lacks a record is late."""
    with three_brokers("2.4", (1, 2)) as lab:
        until_quiet(lab.produce, "orders", 0)
        lab.disconnect(1, 2)
        lab.run_for(60)
        assert set(lab.partition("orders", 0).isr) == {1, 2}
        lab.produce("orders", 0, wait=False)
        lab.run_for(60)
        assert set(lab.partition("orders", 0).isr) == {1}


@pytest.mark.parametrize("records", [0, 3])
def test_a_follower_that_never_reached_a_new_leader_is_late(records: int) -> None:
    """The new leader of 2.4 knows no end of its log, also where nothing was ever written.

    Kafka 2.4.1: cluster/Partition.scala, makeLeader (UnknownOffsetMetadata), isFollowerOutOfSync
    """
    with settled("2.4", {"orders": {0: [2, 3, 4]}}, 4, CLEAN) as lab:
        for _ in range(records):
            until_quiet(lab.produce, "orders", 0)
        lab.disconnect(3, 4)
        lab.run_for(30)
        assert set(lab.partition("orders", 0).isr) == {2, 3, 4}
        lab.kill(2)
        lab.run_for(30)
        led = lab.partition("orders", 0)
        assert (led.leader, led.isr) == (3, (3,))


def test_who_was_counted_in_has_the_whole_time_again(generation: str) -> None:
    """A follower that is too slow is not taken out sooner than `replica.lag.time.max.ms` after it came back."""
    with three_brokers(generation, (1, 2)) as lab:
        limit = lab.world.config["replica.lag.time.max.ms"]
        since = len(lab.trace)
        lab.slow(2, limit / 1000 + 1)
        lab.run_for(20 * limit / 1000)
        changes = [
            (r.action, r.time_ms) for r in lab.trace.slice(since, kind="broker", action={"shrink-isr", "expand-isr"})
        ]
        pairs = [
            left - joined
            for (one, joined), (other, left) in pairwise(changes)
            if (one, other) == ("expand-isr", "shrink-isr")
        ]
        assert pairs and min(pairs) >= limit


def test_a_leader_and_isr_gives_every_member_of_the_isr_the_whole_time(generation: str) -> None:
    """Broker 3 leaves by a controlled shutdown nine seconds after broker 2 has begun to lag: the lag begins again."""
    with settled(generation, {"orders": {0: [1, 2, 3]}}, 4, CLEAN) as lab:
        lab.lag(2, "orders", 0)
        lab.produce("orders", 0, acks=1)
        lab.run_for(9)
        since = len(lab.trace)
        lab.shutdown(3)
        lab.run_for(25)
        leads, late = lab.trace.slice(since, topic="orders", action={"become-leader", "shrink-isr"}, actor="broker-1")
        assert (leads.isr, late.isr) == ((1, 2), (1,))
        limit = lab.world.config["replica.lag.time.max.ms"]
        assert limit < late.time_ms - leads.time_ms <= 1.5 * limit


@pytest.mark.parametrize(("isr", "error"), [([1, 2], None), ([2, 1], "BADVERSION")])
def test_an_isr_that_is_there_already_is_compared_as_content(
    generation: str, isr: list[int], error: str | None
) -> None:
    """The order of the keys does not count, that of the ISR does."""
    with three_brokers(generation, (1, 2)) as lab:
        lab.lag(2, "orders", 0)
        lab.run_for(25)
        assert lab.partition("orders", 0).isr == (1,)
        wanted = {"version": 1, "isr": isr, "leader": 1, "leader_epoch": 0, "controller_epoch": 1}
        lab.write_znode(STATE, wanted)
        since = len(lab.trace)
        lab.catch_up(2)
        lab.run_for(3)
        assert lab.trace.slice(since, action="expand-isr")[0].error == error


def test_since_when_a_broker_leads(generation: str) -> None:
    """Since it was told to, also where it followed before."""
    with three_brokers(generation) as lab:
        play(lab, "kill 2; settle; start 2; settle")
        lab.run_for(10)
        since = len(lab.trace)
        until_quiet(lab.elect_preferred)
        (led,) = lab.trace.slice(since, kind="broker", action="become-leader")
        hosted = process_of(lab, 2).hosted[TopicPartition("orders", 0)]
        assert hosted.state_since * 1000 == pytest.approx(led.time_ms, abs=1)


# Topics and reassignments


def test_a_topic_without_partitions_does_not_hold_up_the_deletion_of_the_next(generation: str) -> None:
    with three_brokers(generation) as lab:
        until_quiet(lab.write_znode, "/brokers/topics/empty", '{"version":1,"partitions":{}}')
        lab.delay(1, "zookeeper", 0.5)  # so that both are found by one look
        since = len(lab.trace)
        until_quiet(lab.at_once, ["delete_topic empty", "delete_topic orders"])
        logged = [r for r in lab.trace.slice(since, kind="controller") if "orders" in (r.detail or "")]
        done = lab.trace.slice(since, kind="controller", action="deletion_completed")[0]
        assert "empty" in (done.detail or "")
        assert done.cause in {r.cause for r in logged if r.action in ("deletion_started", "deletion_in_progress")}
        assert [path for path in lab.znodes() if path.startswith(("/brokers/topics/", "/admin/delete_topics/"))] == []


def test_what_is_moving_is_listed_and_reported() -> None:
    with three_brokers("2.4", (2, 3)) as lab:
        assert lab.list_reassignments() == "No partition reassignments found."
        since = len(lab.trace)
        lab.disconnect(1, 2)
        lab.reassign({"orders-0": [1, 2]})
        lab.run_for(2)
        listed = lab.list_reassignments()
        assert "orders-0" in listed and "adding: 1. removing: 3." in listed
        reported = {
            r.broker: r.detail for r in lab.trace.slice(since, kind="request", action="LeaderAndIsr", topic="orders")
        }
        assert reported[1] == "is_new adding=1 removing=3" and reported[2] == "adding=1 removing=3"
        until_quiet(lab.heal)
        assert len(lab.trace.slice(since, kind="controller", action="reassignment_caught_up")) == 1
        reply = lab.world.clock.loop.create_future()
        asked = events.ListPartitionReassignments(None, reply)
        lab.world.clock.run(dispatch.process(process_of(lab, 2).controller, asked))
        assert isinstance(reply.exception(), ControllerMoved)


@pytest.mark.parametrize("waits", [False, True])
def test_a_reassignment_to_brokers_that_are_alive(waits: bool) -> None:
    """It is begun, also where one to a dead broker would be dropped (KAFKA-4214)."""
    generation = Generation("2.0").but(waits_for_dead_targets=waits)
    with three_brokers(generation, (2, 3)) as lab:
        until_quiet(lab.reassign, {"orders-0": [1, 2]})
        assert lab.partition("orders", 0).replicas == (1, 2)


def test_what_moves_already_is_not_begun_again() -> None:
    """0.10 notices its own changes of the znode when the first of two moves has ended."""
    with three_brokers("0.10", (2, 3), (2, 3)) as lab:
        lab.disconnect(1, 2, one_way=True)
        since = len(lab.trace)
        until_quiet(lab.reassign, {"orders-0": [3, 2], "orders-1": [2, 1]})
        begun = lab.trace.slice(since, kind="controller", action="handling_reassignment")
        assert len(begun) == 2
        until_quiet(lab.heal)
        assert not lab.trace.slice(since, kind="controller", action="reassignment_failed")


def test_a_deletion_does_not_wait_for_a_move(generation: str) -> None:
    """The topic is halted before it is queued, which has no effect, as in Kafka; only the cut holds it up."""
    with three_brokers(generation, (2, 3)) as lab:
        lab.disconnect(1, 2, one_way=True)
        lab.reassign({"orders-0": [1, 2]})
        lab.run_for(5)
        until_quiet(lab.delete_topic, "orders")
        assert "/brokers/topics/orders" in lab.znodes()
        until_quiet(lab.heal)
        assert "/brokers/topics/orders" not in lab.znodes()


def test_a_controller_that_has_moved_leaves_the_reassignments_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes nothing out of the znode; what cannot be done it does take out."""
    kept = {}
    for error in (ControllerMoved("moved"), StateChangeFailed("oops")):

        async def fails(*_: object, error: Exception = error) -> None:
            raise error

        with three_brokers("2.0", (2, 3)) as lab:
            monkeypatch.setattr(reassignment, "start_move", fails)
            until_quiet(lab.reassign, {"orders-0": [1, 2]})
            kept[type(error)] = "/admin/reassign_partitions" in lab.znodes()
    assert kept == {ControllerMoved: True, StateChangeFailed: False}


def test_a_deletion_is_looked_at_again_when_a_broker_dies_in_it(generation: str) -> None:
    """Kafka 2.0.1: controller/TopicDeletionManager.scala, failReplicaDeletion."""
    with three_brokers(generation) as lab:
        lab.delete_topic("orders")
        lab.run_until(
            lambda now: (
                bool(now.trace.slice(kind="controller", action="partition_deletion"))
                or bool(now.trace.slice(kind="request", action="StopReplica"))
            )
        )
        until_quiet(lab.kill, 3)
        logged = [r.action for r in lab.trace.slice(kind="controller", actor="controller-1")]
        halted = logged.index("deletion_halted")
        assert logged[halted + 1 : halted + 3] == ["handling_deletion", "retrying_deletion"]


def test_leaderships_of_a_topic_that_is_being_deleted_are_not_rebalanced(generation: str) -> None:
    config = CLEAN | {"auto.leader.rebalance.enable": True, "leader.imbalance.check.interval.seconds": 20}
    topics = {"orders": {0: [2, 3, 1]}, "other": {0: [1, 2]}}
    with settled(generation, topics, 3, config) as lab:
        play(lab, "kill 2; settle; kill 3; settle; delete_topic orders; settle")
        since = len(lab.trace)
        lab.start(2)
        lab.run_for(100)
        shares = [r.detail or "" for r in lab.trace.slice(since, kind="controller", action="imbalance")]
        assert shares and not [share for share in shares if '"broker": 2' in share]


def test_0_10_does_not_know_new_replicas() -> None:
    """The flag came with LeaderAndIsr version 1 (KIP-112)."""
    reported = {}
    for generation in GENERATIONS:
        with three_brokers(generation) as lab:
            reported[generation] = {
                r.detail for r in lab.trace.slice(kind="request", action="LeaderAndIsr", topic="orders")
            }
    assert reported == {"0.10": {None}, "2.0": {"is_new"}, "2.4": {"is_new"}}


def test_elections_that_are_needless_or_of_nothing() -> None:
    """2.4 leaves out what is led by its preferred replica, or what there is not; 2.0 tries the former as well."""
    wanted = {}
    for generation in ("2.0", "2.4"):
        with three_brokers(generation) as lab:
            since, partitions = len(lab.trace), ["orders"] + ["ghosts"] * (generation == "2.4")
            listed = ",".join(f'{{"topic":"{topic}","partition":0}}' for topic in partitions)
            lab.write_znode("/admin/preferred_replica_election", f'{{"version":1,"partitions":[{listed}]}}')
            lab.settle()
            logged = lab.trace.slice(since, kind="controller")
            wanted[generation] = [r.detail for r in logged if r.action in ("preferred_unknown", "preferred_starting")]
    assert ["orders-0" in (detail or "") for detail in wanted["2.0"]] == [True]
    assert ["ghosts-0" in (detail or "") for detail in wanted["2.4"]] == [True, False]
    assert "orders-0" not in str(wanted["2.4"])


@pytest.mark.parametrize("in_sync_only", [False, True])
def test_who_is_not_in_sync_and_the_automatic_rebalance(in_sync_only: bool) -> None:
    """Until 2.6 it elects in vain (KAFKA-9866)."""
    generation = Generation("2.4").but(rebalances_to_in_sync=in_sync_only)
    config = CLEAN | {"auto.leader.rebalance.enable": True, "leader.imbalance.check.interval.seconds": 20}
    with settled(generation, {"orders": {0: [2, 3]}}, 3, config) as lab:
        until_quiet(lab.kill, 2)
        lab.disconnect(2, 3)
        lab.start(2)
        since = len(lab.trace)
        lab.run_for(60)
        assert lab.partition("orders", 0).leader == 3
        vain = lab.trace.slice(since, kind="controller", action="preferred_failed")
        assert bool(vain) != in_sync_only
        lab.heal()
        lab.run_for(60)
        assert lab.partition("orders", 0).leader == 2


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_topic_that_is_being_deleted_may_be_written_again(generation: str) -> None:
    with three_brokers(generation) as lab:
        play(lab, "kill 3; settle; delete_topic orders; settle")
        since = len(lab.trace)
        until_quiet(lab.write_znode, "/brokers/topics/orders", lab.znodes()["/brokers/topics/orders"][0].decode())
        assert lab.trace.slice(since, kind="controller", action="partition_change_ignored")


def test_a_future_copy_that_is_given_up_makes_room() -> None:
    """A new copy goes where the fewest are."""
    disk, first, second = Disk(), TopicPartition("orders", 0), TopicPartition("orders", 1)
    disk.hold(first)
    disk.begin_move(first, PATHS[1])
    disk.drop_future(first)
    disk.hold(second)
    assert (disk.places[first], disk.places[second]) == (0, 1)
    disk.delete(first)
    disk.delete(second)
    disk.hold(second)
    disk.hold(first)
    assert (disk.places[first], disk.places[second]) == (1, 0)


def test_a_broker_may_have_the_id_0(generation: str) -> None:
    with lab_of("orders", {0: [0, 1], 1: [1, 0]}, brokers=[0, 1], generation=generation, seed=1, config=CLEAN) as lab:
        assert [p.leader for p in lab.partitions()] == [0, 1]
        assert set(process_of(lab, 0).hosted) == set(process_of(lab, 1).hosted)
        assert len(process_of(lab, 0).metadata) == 2
        assert lab.violations == ()


def test_a_preference_counts_for_copies_that_are_still_to_be_made() -> None:
    with three_brokers("2.4") as lab:
        broker, tp, other = process_of(lab, 3), TopicPartition("orders", 0), TopicPartition("orders", 1)
        number = 1 - broker.disk.places[tp]
        broker.log_dirs.preferred |= {tp: PATHS[number], other: PATHS[number]}
        assert not broker.log_dirs.prefers_failed(other)
        broker.disk.failed.add(number)
        assert broker.log_dirs.prefers_failed(other)
        assert not broker.log_dirs.prefers_failed(tp)


def test_a_thread_of_0_10_that_dies_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(c: object) -> None:
        raise StateChangeFailed("oops")

    with three_brokers("0.10") as lab:
        monkeypatch.setattr(deletion, "check_topics", fails)
        until_quiet(lab.delete_topic, "orders")
        died = lab.trace.slice(kind="controller", action="thread_died")
        assert [record.actor for record in died] == ["controller-1"] and "oops" in (died[0].detail or "")


def test_a_state_that_is_there_already(generation: str) -> None:
    """The answer to its creation is lost: that is told, and ZooKeeper keeps the state."""
    with three_brokers(generation) as lab:
        lab.create_topic("payments", assignment={0: [2, 3]})
        lab.run_until(lambda now: any((r.path or "").endswith("payments/partitions/0") for r in now.trace[-4:]))
        lab.lose(1, "zookeeper", applied=True)
        lab.settle(limit=300)
        refused = lab.trace.slice(kind="partition", action="refuse", topic="payments")
        assert [(r.partition, r.error) for r in refused][:1] == [(0, "NodeExists")]
        assert "/brokers/topics/payments/partitions/0/state" in lab.znodes()


# Who is controller


def test_0_10_competes_where_a_change_turns_out_to_be_a_deletion() -> None:
    """Since 1.1 nobody does (KAFKA-13407)."""
    acts = {}
    for generation in GENERATIONS:
        with three_brokers(generation) as lab:
            for broker in (1, 2, 3):
                lab.delay(broker, "zookeeper", 0.5)
            lab.write_znode("/controller", '{"version":1,"brokerid":9,"timestamp":"1"}')
            lab.delete_controller()
            lab.settle(limit=60)
            acts[generation] = lab.world.acting() is not None
    assert acts["0.10"] and not acts["2.0"]


def test_who_leaves_while_there_is_no_controller_asks_again(generation: str) -> None:
    refused = 0
    for steps in range(0, 24, 2):
        with three_brokers(generation) as lab:
            since = len(lab.trace)
            lab.delete_controller()
            if steps:
                lab.step(steps)
            until_quiet(lab.shutdown, 3, wait=False)
            asked = [r.error for r in lab.trace.slice(since, kind="broker", action="controlled-shutdown")]
            refused += "CONTROLLER_NOT_AVAILABLE" in asked
            assert asked[-1] is None
            assert lab.brokers[3].state != "running" and 3 not in lab.partition("orders", 0).isr
    assert refused


# Answers to LeaderAndIsr


def answered(lab: Lab, error: str | None, errors: dict[TopicPartition, str | None]) -> None:
    """The controller hears this from broker 3; nothing of it takes time."""
    with pytest.raises(StopIteration):
        membership.leader_and_isr_response(acting(lab), 3, error, errors).send(None)


def test_a_replica_that_is_answered_for_is_no_longer_taken_for_lost() -> None:
    with three_brokers("2.4") as lab:
        lost, kept = TopicPartition("orders", 0), TopicPartition("orders", 1)
        offline = acting(lab).context.offline_dirs
        offline[3] = {lost, kept}
        answered(lab, None, {lost: None, kept: STORAGE_ERROR})
        assert offline[3] == {kept}
        answered(lab, None, {kept: None})
        assert not offline[3]
        answered(lab, None, {lost: "STALE_CONTROLLER_EPOCH"})
        assert not offline[3]


def test_a_refused_request_is_reported() -> None:
    with three_brokers("2.4") as lab:
        answered(lab, "STALE_CONTROLLER_EPOCH", {TopicPartition("orders", 0): STORAGE_ERROR})
        last = lab.trace[-1]
        assert (last.action, last.actor) == ("leader_and_isr_error", "controller-1")
        assert "STALE_CONTROLLER_EPOCH" in (last.detail or "")
        assert not acting(lab).context.offline_dirs


# The lock of 0.10


def test_what_remains_is_counted_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else has the lock for a second once all has been moved: the answer waits for that."""

    async def moved(c: Controller, broker: int) -> None:
        async def busy() -> None:
            async with c.locked():
                await c.clock.sleep(1.0)

        c.clock.spawn(busy())
        await c.clock.sleep(0.1)

    with three_brokers("0.10") as lab:
        monkeypatch.setattr(shutdown, "move_one_by_one", moved)
        since = lab.now
        lab.shutdown(3, wait=False)
        lab.run_until(lambda now: bool(now.trace.slice(kind="broker", action="controlled-shutdown")))
        assert lab.now - since >= 1.0
