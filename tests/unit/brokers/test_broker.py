"""What brokers do with what they are told: epochs protect them, and leaving takes up to three attempts."""

from collections.abc import Iterator
from typing import Any

import pytest
from labs import QUIET, lab_of, play, process_of, until_quiet

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.brokers.broker import Broker, ShutdownReport
from kafka_ctl.cluster import LEADER_DURING_DELETE, LeaderAndIsr
from kafka_ctl.requests import (
    LeaderAndIsrRequest,
    PartitionState,
    Response,
    StopReplicaRequest,
    UpdateMetadataRequest,
    api_name,
)
from kafka_ctl.trace import Record

STALE, UNKNOWN = "STALE_CONTROLLER_EPOCH", "UNKNOWN_TOPIC_OR_PARTITION"
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(brokers=3, seed=1, config={"auto.leader.rebalance.enable": False}) as opened:
        yield opened


@pytest.fixture
def broker(lab: Lab) -> Broker:
    """Broker 2, which so far has heard of controller epoch 1 and of no partition."""
    process = process_of(lab, 2)
    assert process.replicas.controller_epoch == 1
    return process


def state(leader: int, leader_epoch: int, isr: tuple[int, ...] = (1, 2, 3)) -> LeaderAndIsr:
    return LeaderAndIsr(leader, isr, leader_epoch, leader_epoch, 1)


def lead(
    broker: Broker, leader: int, leader_epoch: int, epoch: int = 1, replicas: tuple[int, ...] = (1, 2, 3)
) -> Response:
    """Tell a broker who leads `orders-0`."""
    reported = {ORDERS: PartitionState(state(leader, leader_epoch), replicas)}
    return broker.world.clock.run(broker.replicas.leader_and_isr(LeaderAndIsrRequest(1, epoch, reported, (leader,))))


def last(lab: Lab) -> Record:
    return next(r for r in reversed(lab.trace) if r.kind == "broker")


# Epochs: Kafka 2.0.1: server/ReplicaManager.scala, becomeLeaderOrFollower


@pytest.mark.parametrize(("leader", "action"), [(2, "become-leader"), (1, "become-follower")])
def test_leading_and_following(lab: Lab, broker: Broker, leader: int, action: str) -> None:
    answer = lead(broker, leader, 0)
    assert (answer.error, answer.errors) == (None, {ORDERS: None})
    assert (last(lab).action, last(lab).leader, last(lab).error) == (action, leader, None)
    assert broker.hosted[ORDERS].state == state(leader, 0)


@pytest.mark.parametrize(("leader_epoch", "error"), [(4, STALE), (5, STALE), (6, None)])
def test_a_leader_epoch_must_be_higher(lab: Lab, broker: Broker, leader_epoch: int, error: str | None) -> None:
    """The same one is as stale as an older one; the request as a whole is fine."""
    lead(broker, 2, 5)
    answer = lead(broker, 1, leader_epoch)
    assert (answer.error, answer.errors) == (None, {ORDERS: error})
    assert broker.hosted[ORDERS].state.leader == (1 if error is None else 2)
    if error:
        assert (last(lab).action, last(lab).error, last(lab).detail) == ("ignored", STALE, "current=5")


def test_one_stale_partition_does_not_stop_the_others(broker: Broker) -> None:
    other = TopicPartition("orders", 1)
    lead(broker, 2, 5)
    reported = {ORDERS: PartitionState(state(1, 5), (1, 2)), other: PartitionState(state(1, 0), (1, 2))}
    answer = broker.world.clock.run(broker.replicas.leader_and_isr(LeaderAndIsrRequest(1, 1, reported, (1,))))
    assert answer.errors == {ORDERS: STALE, other: None}
    assert other in broker.hosted


def test_a_broker_becomes_leader_before_it_becomes_follower(lab: Lab) -> None:
    """So each log directory gets one led copy and one followed copy: `makeLeaders` is before `makeFollowers`."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2], 1: [2, 1], 2: [1, 2], 3: [2, 1]})
    became = [(r.action, r.partition) for r in lab.trace if r.broker == 2 and r.action.startswith("become")]
    assert [action for action, _ in became] == ["become-leader"] * 2 + ["become-follower"] * 2
    assert {tp.partition: place for tp, place in process_of(lab, 2).disk.places.items()} == {1: 0, 3: 1, 0: 0, 2: 1}


def test_who_is_not_assigned_does_not_take_part(lab: Lab, broker: Broker) -> None:
    assert lead(broker, 1, 0, replicas=(1, 3)).errors == {ORDERS: UNKNOWN}
    assert (last(lab).action, last(lab).error) == ("ignored", UNKNOWN)
    assert ORDERS not in broker.hosted


def test_a_leader_that_is_not_alive_cannot_be_followed(lab: Lab, broker: Broker) -> None:
    """The copy is there, but nothing that was told is remembered: the same may be said again (KAFKA-4443)."""
    assert lead(broker, 9, 3).errors == {ORDERS: None}
    assert (last(lab).action, last(lab).error) == ("become-follower", "LEADER_NOT_AVAILABLE")
    assert broker.as_follower.lag(ORDERS).silent_since == lab.now  # it fetches from no broker
    assert lead(broker, 1, 3).errors == {ORDERS: None}
    assert (last(lab).action, last(lab).error) == ("become-follower", None)


@pytest.mark.parametrize("epoch", [1, 2, 7])
def test_an_older_controller_is_refused_altogether(lab: Lab, broker: Broker, epoch: int) -> None:
    """In all three requests, and whatever they say; the same and a newer one are obeyed, and remembered."""
    lead(broker, 1, 0, epoch=epoch)
    assert broker.replicas.controller_epoch == epoch
    known = {ORDERS: PartitionState(state(3, 9), (1, 2, 3))}
    for old in range(epoch):
        requests: list[Any] = [
            (
                lambda request: broker.world.clock.run(broker.replicas.leader_and_isr(request)),
                LeaderAndIsrRequest(1, old, known, (3,)),
            ),
            (broker.replicas.update_metadata, UpdateMetadataRequest(1, old, known, (3,))),
            (broker.replicas.stop_replica, StopReplicaRequest(1, old, (ORDERS,), True)),
        ]
        for handle, request in requests:
            answer = handle(request)
            listed = {ORDERS: STALE} if isinstance(request, LeaderAndIsrRequest) else {}
            assert (answer.error, answer.errors) == (STALE, listed)
            assert (last(lab).action, last(lab).error, last(lab).topic) == ("ignored", STALE, None)
            assert last(lab).detail == f"request={api_name(request)} controller=1 latest={epoch}"
    assert broker.replicas.controller_epoch == epoch
    assert broker.hosted[ORDERS].state.leader == 1
    assert broker.live_brokers == (1, 2, 3)


@pytest.mark.parametrize(("generation", "listed"), [("0.10", {}), ("2.0", {ORDERS: STALE}), ("2.4", {ORDERS: STALE})])
def test_a_refused_leader_and_isr_names_each_partition(generation: str, listed: dict[TopicPartition, str]) -> None:
    """Kafka 2.0.1: common/requests/LeaderAndIsrRequest.java, getErrorResponse"""
    with Lab(brokers=2, generation=generation, seed=1) as lab:
        assert lead(process_of(lab, 2), 1, 0, epoch=0).errors == listed


@pytest.mark.parametrize(("ahead", "error"), [(-1, "STALE_BROKER_EPOCH"), (1, "UNKNOWN_SERVER_ERROR")])
def test_a_request_for_another_life_is_refused_altogether(ahead: int, error: str) -> None:
    """One for a later life is an error of the server (KAFKA-9839), with an answer for each partition.

    Kafka 2.4.1: server/KafkaApis.scala, isBrokerEpochStale; requests/StopReplicaRequest.java, getErrorResponse
    """
    with Lab(brokers=3, generation="2.4", seed=1) as lab:
        lab.create_topic("orders", partitions=1, replication_factor=3)
        broker, epoch = process_of(lab, 2), process_of(lab, 2).epoch
        for given, refused in ((epoch + ahead, error), (-1, None), (epoch, None)):
            answer = broker.replicas.stop_replica(StopReplicaRequest(1, 1, (ORDERS,), False, given))
            assert (answer.error, last(lab).error) == (refused, refused)
            assert answer.errors == ({} if refused == "STALE_BROKER_EPOCH" else {ORDERS: refused})


@pytest.mark.parametrize("handle", ["update_metadata", "stop_replica"])
def test_every_request_teaches_the_epoch(broker: Broker, handle: str) -> None:
    requests: dict[str, Any] = {
        "update_metadata": UpdateMetadataRequest(1, 5, {}, (1, 2)),
        "stop_replica": StopReplicaRequest(1, 5, ()),
    }
    assert getattr(broker.replicas, handle)(requests[handle]).error is None
    assert broker.replicas.controller_epoch == 5


# Metadata and stopping


def test_metadata_is_cached_whoever_holds_a_copy(lab: Lab, broker: Broker) -> None:
    other = TopicPartition("elsewhere", 3)
    known = {other: PartitionState(state(1, 4), (1, 3))}
    broker.replicas.update_metadata(UpdateMetadataRequest(1, 1, known, (1, 2)))
    assert broker.metadata == {other: state(1, 4)}
    assert broker.live_brokers == (1, 2)
    assert other not in broker.hosted
    assert (last(lab).action, last(lab).leader_epoch) == ("cached", 4)


def test_metadata_knows_no_leader_epochs(broker: Broker) -> None:
    """What comes last is believed; only controllers are told apart."""
    for epoch in (4, 2):
        known = {ORDERS: PartitionState(state(1, epoch), (1, 2))}
        broker.replicas.update_metadata(UpdateMetadataRequest(1, 1, known, (1, 2)))
    assert broker.metadata[ORDERS].leader_epoch == 2


def test_a_topic_being_deleted_leaves_the_metadata(lab: Lab, broker: Broker) -> None:
    known = {ORDERS: PartitionState(state(1, 0), (1, 2))}
    broker.replicas.update_metadata(UpdateMetadataRequest(1, 1, known, (1, 2)))
    gone = {ORDERS: PartitionState(state(LEADER_DURING_DELETE, 0), (1, 2))}
    broker.replicas.update_metadata(UpdateMetadataRequest(1, 1, gone, (1, 2)))
    assert broker.metadata == {}
    assert last(lab).action == "uncached"


def test_stopping_keeps_the_copy_and_deleting_does_not(lab: Lab, broker: Broker) -> None:
    """What is not there can be stopped without error."""
    lead(broker, 1, 0)
    for delete, detail, held in ((False, None, True), (True, "delete", False), (True, "delete absent", False)):
        answer = broker.replicas.stop_replica(StopReplicaRequest(1, 1, (ORDERS,), delete))
        assert (answer.error, answer.errors) == (None, {ORDERS: None})
        assert (last(lab).action, last(lab).detail) == ("stop-replica", detail)
        assert (ORDERS in broker.hosted) is held


def test_a_stopped_copy_still_knows_its_epoch(broker: Broker) -> None:
    """Only deletion forgets: a copy may then begin at epoch 0 again."""
    lead(broker, 1, 5)
    broker.replicas.stop_replica(StopReplicaRequest(1, 1, (ORDERS,)))
    assert lead(broker, 1, 5).errors == {ORDERS: STALE}
    broker.replicas.stop_replica(StopReplicaRequest(1, 1, (ORDERS,), True))
    assert lead(broker, 1, 0).errors == {ORDERS: None}


# Leaders and the ISR: Kafka 2.0.1: cluster/Partition.scala, maybeShrinkIsr, maybeExpandIsr


def test_a_leader_does_not_overwrite_what_it_does_not_know(lab: Lab) -> None:
    """Somebody wrote the state meanwhile: the cached zkVersion does not fit, and the ISR stays."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3]})
    leader = process_of(lab, 1)
    hosted = leader.hosted[ORDERS]
    hosted.state = hosted.state._replace(zk_version=7)
    until_quiet(lab.lag, 3, "orders", 0)
    shrink = next(r for r in lab.trace if r.action == "shrink-isr")
    assert (shrink.error, shrink.isr) == ("BADVERSION", (1, 2))
    assert "cached_version=7" in (shrink.detail or "")
    assert lab.partition("orders", 0).isr == (1, 2, 3)


def test_a_changed_isr_keeps_the_epochs_of_the_deciding_controller(lab: Lab) -> None:
    """Only the ISR and the version of the znode change; brokers learn it by way of the controller."""
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3]})
    play(lab, "delete_controller; settle; lag 3 orders 0; settle")
    view = lab.partition("orders", 0)
    assert (view.isr, view.leader_epoch, view.controller_epoch, view.zk_version) == ((1, 2), 0, 1, 1)
    assert [b.metadata[ORDERS].isr for b in lab.brokers.values()] == [(1, 2)] * 3
    assert not [path for path in lab.znodes() if path.startswith("/isr_change_notification/")]


def test_each_isr_is_judged_at_its_turn(generation: str) -> None:
    """Of two that were late, the second has caught up before the first ISR is written: only that one shrinks.

    Kafka 2.0.1: cluster/Partition.scala, maybeShrinkIsr
    """
    with Lab(brokers=4, generation=generation, config={"zookeeper.session.timeout.ms": 60_000}) as lab:
        for topic, follower in (("a", 3), ("b", 4)):
            lab.create_topic(topic, assignment={0: [2, follower]})
        play(lab, "produce a 0; produce b 0; settle; disconnect 2 3; disconnect 2 4; produce a 0 acks=1")
        play(lab, "produce b 0 acks=1; stop_zookeeper; run_for 17")
        lab.world.clock.call(lab.world.network.heal)
        play(lab, "run_for 3; start_zookeeper; settle")
        assert [r.topic for r in lab.trace.slice(action="shrink-isr")] == ["a"]


def test_a_new_process_that_nobody_asks_to_follow_is_late(generation: str) -> None:
    """Before broker epochs a controller may not see that a broker restarted (KAFKA-1120): it is sent nothing.

    Its leader takes it out of the ISR. Kafka 2.0.1: cluster/Partition.scala, getOutOfSyncReplicas
    """
    with Lab(brokers=3, generation=generation, seed=1, config={"replica.lag.time.max.ms": 10_000}) as lab:
        controller = lab.controller.id
        leader, follower = (id for id in lab.brokers if id != controller)
        until_quiet(lab.create_topic, "orders", assignment={0: [leader, follower]})
        until_quiet(lab.produce, "orders", 0)
        play(lab, f"pause {controller} 3; bounce {follower}; run_for 5")
        asked = lab.generation.membership.broker_epochs
        assert (ORDERS in process_of(lab, follower).hosted) == asked
        outcome = lab.produce("orders", 0, acks="all")
        assert (outcome.error, lab.partition("orders", 0).isr) == (None, (leader, follower) if asked else (leader,))


def test_leaders_do_not_look_for_a_copy_that_is_in_no_isr() -> None:
    """A copy that was moved away while its broker was down stays on the disk; an idle cluster stays idle."""
    with lab_of("orders", {0: [1, 2]}, brokers=4, seed=3, config=QUIET) as lab:
        play(lab, "kill 2; settle")
        until_quiet(lab.reassign, {"orders-0": [1, 3]})
        play(lab, "start 2; settle")
        assert list(lab.world.brokers[2].as_follower.unasked()) == [ORDERS]
        before = lab.world.clock.loop.callbacks_run
        lab.run_for(36_000)
        assert lab.world.clock.loop.callbacks_run - before < 5_000


@pytest.mark.parametrize(("generation", "four"), [("0.10", (1, 4, 3, 2)), ("2.0", (1, 4, 3, 2)), ("2.4", (1, 2, 3, 4))])
def test_an_isr_of_five_is_in_the_order_of_a_hash_set(generation: str, four: tuple[int, ...]) -> None:
    """And stays so with four: the set is of ids in 2.4, before that of replicas, until the next LeaderAndIsr.

    Computed by Scala 2.12: (1 to 6).toSet - 6, and - 5; the same of objects whose hashes are those of Replica
    """
    with lab_of("orders", {0: [1, 2, 3, 4, 5, 6]}, brokers=6, generation=generation, seed=1) as lab:
        play(lab, "lag 6 orders 0; settle; lag 5 orders 0; settle")
        assert [r.isr for r in lab.trace.slice(action="shrink-isr")] == [(5, 1, 2, 3, 4), four]


def test_leaders_announce_isrs_at_times_of_their_own(lab: Lab) -> None:
    """Every 2.5 seconds since each broker had its session: as brokers do not start together, rounds do not coincide.

    Kafka 2.0.1: server/ReplicaManager.scala, startup
    """
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 3], 1: [2, 3]})
    play(lab, "kill 3; settle; start 3; settle")
    begun = {r.actor: r.time_ms for r in reversed(lab.trace) if r.kind == "zk" and r.action == "connect"}
    made = [r for r in lab.trace if r.action == "create" and (r.path or "").startswith("/isr_change_notification/")]
    assert {r.actor for r in made} == {"broker-1", "broker-2"}
    assert [round((r.time_ms - begun[r.actor]) % 2500, 1) <= 0.2 for r in made] == [True] * len(made)
    reported = [r for r in lab.trace if r.action == "UpdateMetadata" and r.topic and r.cause is not None]
    rounds = {r.cause for r in reported if lab.trace[r.cause or 0].action == "IsrChangeNotification"}
    assert len(rounds) == len(made)


# Leaving: Kafka 2.0.1: server/KafkaServer.scala, controlledShutdown


def test_a_change_of_an_isr_waits_for_the_znode_of_its_notification(lab: Lab) -> None:
    """The leader tries again at each check, as a task of Kafka's scheduler does after an error.

    Kafka 2.4.1: server/ReplicaManager.scala, maybePropagateIsrChanges; utils/KafkaScheduler.scala, schedule
    """
    until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3]})
    play(lab, "delete_znode /isr_change_notification; lag 3 orders 0; run_for 30")
    assert lab.partition("orders", 0).isr == (1, 2)
    play(lab, "write_znode /isr_change_notification ''; run_for 30")
    assert [path for path in lab.znodes() if path.startswith("/isr_change_notification/")]


def attempts(lab: Lab) -> list[tuple[str | None, str | None]]:
    return [(r.error, r.detail) for r in lab.trace if r.kind == "broker" and r.action == "controlled-shutdown"]


def test_leaving_at_the_first_attempt(lab: Lab) -> None:
    assert lab.shutdown(2) == ShutdownReport(1)
    assert attempts(lab) == [(None, "attempt=1 remaining=")]


def test_every_failed_attempt_is_followed_by_a_wait(lab: Lab) -> None:
    """Also the last one."""
    until_quiet(lab.create_topic, "orders", assignment={0: [2, 3]})
    until_quiet(lab.kill, 3)
    begun = lab.now
    assert lab.shutdown(2) == ShutdownReport(3, (ORDERS,))
    assert 15 <= lab.now - begun < 15.5
    assert attempts(lab) == [(None, f"attempt={n} remaining=orders-0") for n in (1, 2, 3)]


def test_attempts_and_waits_are_configured() -> None:
    config = {"controlled.shutdown.max.retries": 5, "controlled.shutdown.retry.backoff.ms": 100}
    with lab_of("orders", {0: [2, 1]}, brokers=2, config=config) as lab:
        until_quiet(lab.lag, 1, "orders", 0)
        begun = lab.now
        assert lab.shutdown(2).attempts == 5
        assert 0.5 <= lab.now - begun < 1


def test_the_follower_that_was_missing_comes_in_time(lab: Lab) -> None:
    """The second attempt finds another replica in sync."""
    until_quiet(lab.create_topic, "orders", assignment={0: [2, 3]})
    until_quiet(lab.kill, 3)
    lab.world.clock.later(1, process_of(lab, 3).start, 0.05)
    report = lab.shutdown(2)
    assert (report.attempts, report.remaining) == (2, ())
    lab.settle()
    assert lab.partition("orders", 0).leader == 3


def test_without_a_controller_there_is_nobody_to_ask() -> None:
    with Lab(brokers=2, seed=1, config={"controlled.shutdown.retry.backoff.ms": 10}) as lab:
        controller = lab.controller
        lab.kill(controller.id)
        other = 3 - controller.id
        report = lab.shutdown(other)
        assert (report.attempts, report.error) == (3, "DISCONNECTED")


def test_the_controller_asks_itself(lab: Lab) -> None:
    assert lab.shutdown(lab.controller.id) == ShutdownReport(1)
    lab.settle()
    assert lab.controller.epoch == 2


# Life


def test_a_broker_waits_for_its_older_session_to_end(lab: Lab) -> None:
    """Started again within the session timeout: its own znode is still there, of a session nobody keeps."""
    play(lab, "kill 2; run_for 1; start 2; settle")
    reported = [r.action for r in lab.trace if r.actor == "broker-2" and r.kind == "broker"]
    assert "waiting" in reported
    assert reported[-1] == "registered"
    assert lab.brokers[2].state == "running"


def test_a_request_under_way_is_lost_when_its_receiver_dies(lab: Lab) -> None:
    """The channel notes it once and tries until the broker is back or gone."""
    lab.create_topic("orders", assignment={0: [1, 2, 3]})
    controller = lab.controller
    victim = 2 if controller.id != 2 else 3
    lab.run_until(lambda lab: any(r.action == "LeaderAndIsr" and r.target == "sent" for r in lab.trace))
    lab.kill(victim)
    lab.run_for(3)
    lost = [r for r in lab.trace if r.error == "DISCONNECTED"]
    assert [(r.actor, r.kind, r.broker) for r in lost] == [(f"controller-{controller.id}", "response", victim)]
    lab.settle()
    assert victim not in lab.partition("orders", 0).isr


@pytest.mark.parametrize("later", [0.002, 0.004])
def test_who_is_reported_to_lead_waits_for_an_isr_on_its_way(generation: str, later: float) -> None:
    """The answer to an expansion is lost; a second follower waits to join, and meanwhile a reassignment removes it.

    Kafka 2.0.1: cluster/Partition.scala, leaderIsrUpdateLock: first that write ends; then the second follower's fails,
    for the znode has changed, or is not tried, for it is no replica any more.
    """
    with Lab(brokers=4, generation=generation, seed=1, config={"auto.leader.rebalance.enable": False}) as lab:
        leader, late, new = (id for id in (1, 2, 3, 4) if id != lab.controller.id)
        until_quiet(lab.create_topic, "orders", assignment={0: [leader, late]})
        until_quiet(lab.lag, late, "orders", 0)
        lab.reassign({ORDERS: [leader, new]})
        lab.run_for(later)
        lab.catch_up(late)
        until_quiet(lab.lose, leader, "zookeeper", applied=True)
        seen = [r for r in lab.trace if r.broker == leader and r.action in ("expand-isr", "become-leader")]
        assert (seen[-1].action, seen[-1].isr) == ("become-leader", (leader, new))
        assert [r.error for r in seen if r.action == "expand-isr"] in (["BADVERSION"], ["BADVERSION"] * 2)
        assert lab.partition("orders", 0).isr == (leader, new) and not lab.violations
