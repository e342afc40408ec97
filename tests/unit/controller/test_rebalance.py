"""Leadership brought back to the preferred replicas: on request, and automatically above the imbalance threshold.

Elections that an administrator asks the controller of 2.4 for, with an answer for each partition (KIP-460).
Kafka 2.4.1: controller/KafkaController.scala, processReplicaLeaderElection; its tests in
core/src/test/scala/unit/kafka/admin/LeaderElectionCommandTest.scala
"""

import json

import pytest
from labs import QUIET, acting, play, process_of, settled, until_quiet
from prose import Prose, refuses, source

from kafka_ctl import Lab
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import events
from kafka_ctl.election import ElectionType
from kafka_ctl.errors import ApiException, BadInput, Unavailable, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.lab import story
from kafka_ctl.lab.commands import Elections
from kafka_ctl.latencies import Costs
from kafka_ctl.requests import ApiError, ElectLeadersRequest
from kafka_ctl.trace import Trace

ORDERS = TopicPartition("orders", 0)


def drifted(
    generation: str, partitions: int = 1, not_preferred: int = 1, automatic: bool = False, **config: object
) -> Lab:
    """A topic whose partitions broker 3 should lead; so many of them are led by another one since it was away.

    Broker 1 is controller. What is led by its preferred leader was created when 3 was back.
    """
    settings = {"auto.leader.rebalance.enable": automatic} | config
    lab = settled(generation, {"orders": {n: [3, 1, 2] for n in range(not_preferred)}}, 3, settings)
    play(lab, "kill 3; settle; start 3; settle")
    if partitions > not_preferred:
        until_quiet(lab.create_topic, "others", assignment={n: [3, 2, 1] for n in range(partitions - not_preferred)})
    return lab


def logged(trace: Trace, action: str) -> list[dict[str, object]]:
    return [json.loads(r.detail or "{}") for r in trace.slice(kind="controller", action=action)]


# On request


def test_the_preferred_replica_gets_its_partition_back(generation: str) -> None:
    with drifted(generation, 2, 2) as lab:
        before = lab.partition(*ORDERS)
        assert before.leader == 1
        since = len(lab.trace)
        until_quiet(lab.elect_preferred, [ORDERS])
        after = lab.partition(*ORDERS)
        assert (after.leader, after.isr) == (3, before.isr)
        assert after.leader_epoch == before.leader_epoch + 1
        assert [w["partition"] for w in logged(lab.trace.slice(since), "preferred_done")] == ["orders-0"]
        assert lab.partition("orders", 1).leader == 1  # nobody has asked for it
        assert "/admin/preferred_replica_election" not in lab.znodes()
        assert {r.broker for r in lab.trace[since:] if r.action == "LeaderAndIsr" and r.topic} == {1, 2, 3}
        lab.elect_preferred([ORDERS])  # and again: the watch was armed anew
        lab.settle()
        assert "/admin/preferred_replica_election" not in lab.znodes()


@pytest.mark.parametrize(("generation", "fails"), [("0.10", True), ("2.0", False), ("2.4", False)])
def test_a_requested_election_of_what_never_had_a_leader_and_a_failover(generation: str, fails: bool) -> None:
    """0.10 looks at the leader before it has started the state machines: no broker can become controller."""
    with Lab(brokers=3, generation=generation, seed=1, config=QUIET) as lab:
        play(lab, "kill 3; settle")
        until_quiet(lab.create_topic, "orders", assignment={0: [3]})
        until_quiet(lab.elect_preferred, [ORDERS])
        since = len(lab.trace)
        play(lab, "kill 1; start 3")
        lab.run_until(lambda: lab.trace.slice(since, action={"election_failed", "ready"})[2 * fails :], limit=60)
        failed = lab.trace.slice(since, action="election_failed")
        assert all("key not found: orders-0" in (record.detail or "") for record in failed[:2])
        assert (len({record.actor for record in failed}) == 2) == fails
        assert not fails or "/admin/preferred_replica_election" in lab.znodes()


@pytest.mark.parametrize(("generation", "leader"), [("0.10", 2), ("2.0", 2), ("2.4", 1)])
def test_a_requested_election_of_what_never_had_a_leader_and_of_others(generation: str, leader: int) -> None:
    """2.4 looks at every leader before it elects.

    Kafka 2.4.1: controller/KafkaController.scala, processReplicaLeaderElection, partitionLeadershipInfo(partition)
    """
    with settled(generation, {"orders": {0: [2, 1]}}, 3, QUIET) as lab:
        play(lab, "kill 2; settle; start 2; settle; kill 3; settle")
        until_quiet(lab.create_topic, "late", assignment={0: [3]})
        until_quiet(lab.elect_preferred, [ORDERS, ("late", 0)])
        assert lab.partition(*ORDERS).leader == leader
        assert "/admin/preferred_replica_election" in lab.znodes()


@pytest.mark.parametrize(("generation", "raised"), [("0.10", 0), ("2.0", 1), ("2.4", 0)])
def test_whoever_leads_already_is_elected_again_by_2_0_only(generation: str, raised: int) -> None:
    with settled(generation, {"orders": {0: [3, 1, 2]}}, 3, QUIET) as lab:
        since = len(lab.trace)
        until_quiet(lab.elect_preferred, [ORDERS])
        assert lab.partition(*ORDERS).leader_epoch == raised
        assert bool([r for r in lab.trace[since:] if r.action == "LeaderAndIsr"]) == bool(raised)
        assert "/admin/preferred_replica_election" not in lab.znodes()


def test_a_dead_preferred_replica_is_not_elected(generation: str) -> None:
    with drifted(generation) as lab:
        until_quiet(lab.kill, 3)
        since, epoch = len(lab.trace), lab.partition(*ORDERS).leader_epoch
        until_quiet(lab.elect_preferred, [ORDERS])
        assert lab.partition(*ORDERS).leader == 1
        assert lab.partition(*ORDERS).leader_epoch == epoch
        (failed,) = logged(lab.trace.slice(since), "preferred_failed")
        assert failed == {"partition": "orders-0", "preferred": 3, "leader": 1}
        assert "/admin/preferred_replica_election" not in lab.znodes()


def test_a_new_controller_runs_the_elections_that_were_requested_for(generation: str) -> None:
    with drifted(generation) as lab:
        lab.kill(1)
        lab.elect_preferred([ORDERS])  # nobody is there to hear it
        news = play(lab, "settle")
        assert lab.partition(*ORDERS).leader == 3
        assert logged(news, "preferred_undergoing")[-1]["partitions"] == ["orders-0"]
        assert "/admin/preferred_replica_election" not in lab.znodes()


# By itself


@pytest.mark.parametrize(
    ("partitions", "not_preferred", "percentage", "elected"), [(10, 1, 10, False), (10, 2, 10, True), (2, 1, 50, False)]
)
def test_the_imbalance_must_exceed_the_percentage(
    generation: str, partitions: int, not_preferred: int, percentage: int, elected: bool
) -> None:
    """One of ten is ten percent, which is not more than ten percent."""
    settings = {"leader.imbalance.per.broker.percentage": percentage}
    with drifted(generation, partitions, not_preferred, automatic=True, **settings) as lab:
        news = play(lab, "run_for 310")
        assert {p.leader for p in lab.partitions() if p.topic == "orders"} == ({3} if elected else {1})
        imbalance = logged(news, "imbalance")
        ratios = {w["broker"]: w["ratio"] for w in imbalance}
        assert ratios[3] == (0.0 if elected and len(imbalance) > 1 else not_preferred / partitions)


def test_a_partition_without_replicas_ends_the_look_at_the_balance(generation: str) -> None:
    """Kafka 0.10.2.2, 2.0.1, 2.4.1: controller/KafkaController.scala, `groupBy { assignedReplicas.head }`."""
    with drifted(generation, automatic=True) as lab:
        lab.write_znode("/brokers/topics/empty", {"version": 1, "partitions": {"0": []}})
        lab.run_for(310)
        assert lab.partition(*ORDERS).leader == 1
        assert "head of empty list" in lab.trace.slice(action="error_processing").text()


def test_nothing_is_rebalanced_while_partitions_move(generation: str) -> None:
    settings = {"leader.imbalance.check.interval.seconds": 20}
    with drifted(generation, automatic=True, **settings) as lab:
        until_quiet(lab.create_topic, "moving", assignment={0: [1, 2]})
        until_quiet(lab.kill, 2)
        lab.reassign({("moving", 0): [1, 2, 3]}, through="zookeeper")  # waits for 2
        lab.run_for(60)
        assert lab.partition(*ORDERS).leader == 1
        play(lab, "start 2; run_for 60")
        assert lab.reassignments() == []
        assert lab.partition(*ORDERS).leader == 3


def test_a_broker_that_is_down_gets_nothing(generation: str) -> None:
    settings = {"leader.imbalance.check.interval.seconds": 20}
    with drifted(generation, automatic=True, **settings) as lab:
        until_quiet(lab.kill, 3)
        news = play(lab, "run_for 60")
        assert lab.partition(*ORDERS).leader == 1
        assert logged(news, "checking_balance")
        assert not [r for r in news if r.action == "preferred_done"]


def test_it_can_be_switched_off(generation: str) -> None:
    with drifted(generation) as lab:
        lab.run_for(700)
        assert lab.partition(*ORDERS).leader == 1
        assert not [r for r in lab.trace if r.action == "checking_balance"]


@pytest.mark.parametrize(("generation", "batches"), [("0.10", 4), ("2.0", 1), ("2.4", 1)])
def test_partitions_are_elected_one_by_one_or_together(generation: str, batches: int) -> None:
    """KAFKA-7299: one UpdateMetadata for each batch and broker."""
    with drifted(generation, 4, 4, automatic=True) as lab:
        news = play(lab, "run_for 310")
        assert {p.leader for p in lab.partitions()} == {3}
        sent = [r for r in news if r.action == "UpdateMetadata" and r.target == "sent" and r.broker == 2]
        assert len(sent) == batches


@pytest.mark.parametrize(("generation", "fixed"), [("0.10", True), ("2.0", False), ("2.4", False)])
def test_the_next_look_comes_at_a_fixed_time_or_when_the_last_is_over(generation: str, fixed: bool) -> None:
    """ZooKeeper takes 2 s for everything here, so that the first look, which elects, takes a while."""
    settings = {"auto.leader.rebalance.enable": True, "leader.imbalance.check.interval.seconds": 60}
    with settled(generation, {"orders": {0: [3, 1, 2]}}, 3, settings) as lab:
        play(lab, "kill 3; settle; start 3; settle")
        lab.world.store.half_trip = 1.0
        lab.run_for(200)
        looks = [r for r in lab.trace if r.kind == "event" and r.action == "AutoPreferredReplicaLeaderElection"]
        started = [r.time_ms / 1000 for r in looks if r.target == "started"]
        done = [r.time_ms / 1000 for r in looks if r.target == "done"]
        elected = next(r.time_ms / 1000 for r in lab.trace if r.action == "preferred_done")
        first = max(n for n, time in enumerate(started) if time <= elected)
        assert done[first] - started[first] >= 4.0
        if fixed:
            assert started[first + 1] - started[first] == pytest.approx(60)
        else:
            assert started[first + 1] - done[first] == pytest.approx(60)


def test_the_first_look_comes_after_five_seconds_and_then_one_every_five_minutes(generation: str) -> None:
    with Lab(brokers=1, generation=generation, seed=1, costs=Costs()) as lab:
        ready = next(r.time_ms for r in lab.trace if r.action == "ready")
        lab.run_for(306)
        first, second = (r.time_ms for r in lab.trace if r.action == "checking_balance")
        assert first - ready == pytest.approx(5000, abs=20)
        assert second - first == pytest.approx(300_000, abs=100)


# Asked for by a request (KIP-460), or allowed by a topic's configuration (KAFKA-6835)


def codes(answers: Elections | None) -> dict[str, str | None]:
    """The answer as a test reads it: Kafka's code by partition, None where a leader was elected."""
    return {str(tp): error and error.code for tp, error in (answers or {}).items()}


def leaderless(assignment: tuple[int, ...] = (2, 3), returns: int = 3, generation: str | Generation = "2.4") -> Lab:
    """The last replica in sync is down, and one that is out of sync is back; broker 1 is controller."""
    lab = settled(generation, {"orders": {0: assignment}}, 3, QUIET)
    last = next(broker for broker in assignment if broker != returns)
    for broker in (returns, last):
        until_quiet(lab.kill, broker)
    until_quiet(lab.start, returns)
    assert lab.partition(*ORDERS).leader == -1
    return lab


def test_an_unclean_election_gives_a_leader_that_is_not_in_sync() -> None:
    """Although the configuration forbids it; the answer comes when the controller's broker knows the leader."""
    with leaderless() as lab:
        assert lab.partition(*ORDERS).isr == (2,)
        assert lab.elect_leaders("unclean", [ORDERS]) == {ORDERS: None}
        assert lab.brokers[1].metadata[ORDERS].leader == 3
        lab.settle()
        assert (lab.partition(*ORDERS).leader, lab.partition(*ORDERS).isr) == (3, (3,))
        vote = [r for r in lab.trace if r.kind == "election"][-1]
        assert (vote.action, vote.target, vote.leader, vote.isr) == ("unclean", "unclean", 3, (3,))
        assert lab.metrics(1)["UncleanLeaderElectionsPerSec"].number == 1
        assert "for an unclean election" in str(lab.why(vote.seq))


def test_without_the_command_it_stays_leaderless() -> None:
    with leaderless() as lab:
        lab.run_for(700)
        assert lab.partition(*ORDERS).leader == -1


def test_a_replica_in_sync_is_preferred_to_one_that_is_not() -> None:
    """Partition 0 has a leader already; of 1, the replica in sync returns and leads by itself, cleanly."""
    with leaderless(assignment=(3, 2)) as lab:
        until_quiet(lab.start, 2)
        assert (lab.partition(*ORDERS).leader, lab.partition(*ORDERS).isr) == (2, (2, 3))
        assert codes(lab.elect_leaders("unclean", [ORDERS])) == {"orders-0": "ELECTION_NOT_NEEDED"}


NAMES = {
    "fine": {0: (1, 2)},
    "lost": {0: (2,)},
    "drifted": {0: (3, 1)},
    "straying": {0: (2, 1)},
}


def mixed() -> Lab:
    """Brokers 2 and 4 are down: `lost` has no live replica, `waiting` cannot be deleted, 3 is preferred for `drifted`.

    `straying` is led by 1, as its preferred replica 2 is down.
    """
    lab = settled("2.4", NAMES, 4, QUIET)
    play(lab, "kill 3; settle; start 3; kill 2; settle")
    until_quiet(lab.create_topic, "waiting", assignment={0: (1, 4)})
    play(lab, "kill 4; delete_topic waiting; settle")
    return lab


ANSWERS = {
    # partition: the answer to a preferred election, to an unclean one
    "fine-0": ("ELECTION_NOT_NEEDED", "ELECTION_NOT_NEEDED"),
    "lost-0": ("PREFERRED_LEADER_NOT_AVAILABLE", "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
    "drifted-0": (None, "ELECTION_NOT_NEEDED"),
    "straying-0": ("PREFERRED_LEADER_NOT_AVAILABLE", "ELECTION_NOT_NEEDED"),
    "waiting-0": ("INVALID_TOPIC_EXCEPTION", "INVALID_TOPIC_EXCEPTION"),
    "fine-7": ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"),
    "nope-0": ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"),
}
TEXTS = {
    "fine-0": "Leader election not needed for topic partition",
    "waiting-0": "The topic is being deleted",
    "nope-0": "The partition does not exist.",
    "lost-0": "Failed to elect leader for partition lost-0 under strategy OfflinePartitionLeaderElectionStrategy(true)",
}


@pytest.mark.parametrize("kind", [0, 1], ids=["preferred", "unclean"])
def test_every_partition_has_an_answer_of_its_own(kind: int) -> None:
    with mixed() as lab:
        name = ("preferred", "unclean")[kind]
        answers = lab.elect_leaders(name, list(ANSWERS))
        assert codes(answers) == {tp: both[kind] for tp, both in ANSWERS.items()}
        if kind:
            texts = {str(tp): error.text for tp, error in answers.items() if error}
            assert {tp: texts[tp] for tp in TEXTS} == TEXTS
        else:
            refused = answers[TopicPartition("lost", 0)]
            assert refused is not None
            strategy = "PreferredReplicaPartitionLeaderElectionStrategy"
            assert refused.text == f"Failed to elect leader for partition lost-0 under strategy {strategy}"
        assert lab.partition("drifted", 0).leader == (3 if not kind else 1)


def test_asked_for_all_it_leaves_out_what_needed_no_election() -> None:
    with mixed() as lab:
        assert codes(lab.elect_leaders("unclean")) == {"lost-0": "ELIGIBLE_LEADERS_NOT_AVAILABLE"}
        preferred = codes(lab.elect_leaders("preferred"))
        assert preferred["drifted-0"] is None
        assert "fine-0" not in preferred
        assert codes(lab.elect_leaders("PREFERRED", [("drifted", 0)])) == {"drifted-0": "ELECTION_NOT_NEEDED"}


def test_a_broker_that_leaves_counts_as_gone() -> None:
    """liveBrokerIds has no broker that is shutting down."""
    with Lab(brokers=2, generation="2.4", seed=1, config=QUIET) as lab:
        leader = next(id for id in lab.brokers if id != lab.controller.id)
        until_quiet(lab.create_topic, "orders", assignment={0: [leader]})
        assert codes(lab.elect_leaders("unclean", [ORDERS])) == {"orders-0": "ELECTION_NOT_NEEDED"}
        acting(lab).context.shutting_down.add(leader)
        assert codes(lab.elect_leaders("unclean", [ORDERS])) == {"orders-0": "ELIGIBLE_LEADERS_NOT_AVAILABLE"}


def test_a_partition_that_never_had_a_leader_leaves_everybody_without_an_answer(prose: Prose) -> None:
    """`partitionLeadershipInfo(partition)` throws NoSuchElementException; the event fails and the client times out."""
    with Lab(brokers=3, generation="2.4", seed=1, config=QUIET) as lab:
        dead = next(id for id in lab.brokers if id != lab.controller.id)
        until_quiet(lab.kill, dead)
        lab.create_topic("orders", assignment={0: [dead]})
        until_quiet(lab.create_topic, "fine", assignment={0: [lab.controller.id]})
        assert "orders-0" not in [f"{p.topic}-{p.partition}" for p in lab.partitions() if p.leader >= 0]
        since, now = len(lab.trace), lab.now
        prose.refuses(Unavailable, lab.elect_leaders, "unclean", ["fine-0", "orders-0"])
        assert lab.now - now == pytest.approx(30, abs=0.1)
        failed = [r for r in lab.trace[since:] if r.action == "error_processing"]
        assert [json.loads(r.detail or "")["error"] for r in failed] == ["key not found: orders-0"]
        assert codes(lab.elect_leaders("unclean", ["fine-0"])) == {"fine-0": "ELECTION_NOT_NEEDED"}
        with Lab.replay(lab.story) as again:
            assert list(again.trace) == list(lab.trace)


def test_whoever_is_no_controller_any_more_says_so_for_each_partition() -> None:
    """2.4.1's AdminClient does not look for another controller then."""
    with leaderless() as lab:
        controller = acting(lab)
        controller.active_id = 2
        assert codes(lab.elect_leaders("unclean", [ORDERS])) == {"orders-0": "NOT_CONTROLLER"}
        assert codes(lab.elect_leaders("unclean")) == {"orders-0": "NOT_CONTROLLER"}


def test_what_is_dropped_from_the_queue_is_answered() -> None:
    """preemptReplicaLeaderElection: at the end of a session the queue is emptied."""
    with leaderless() as lab:
        controller = process_of(lab, 1).controller
        lab.create_topic("many", partitions=300, replication_factor=1)
        lab.run_until(lambda: controller.state == "TopicChange", limit=10)

        async def ask() -> Elections:
            request = ElectLeadersRequest(ElectionType.UNCLEAN, (ORDERS,), 30.0)
            asked = lab.world.clock.spawn(lab.world.network.call(-1, 1, request))
            await lab.world.clock.sleep(0.001)
            assert len(controller.queue) == 1
            controller.queue.clear_and_put(events.ControllerChange())
            return dict((await asked)[0].elections)

        assert codes(lab.world.run(ask())) == {"orders-0": "NOT_CONTROLLER"}


def test_who_is_not_reported_in_time_has_timed_out(prose: Prose) -> None:
    """The controller's own broker does not hear of the leader: the request times out, or before that the client."""
    with leaderless() as lab:
        network = lab.world.network
        lab.world.clock.call(lambda: network.cut(1, 1))
        request = ElectLeadersRequest(ElectionType.UNCLEAN, (ORDERS,), 1.0)
        response, _ = lab.world.run(network.call(-1, 1, request))
        assert codes(dict(response.elections)) == {"orders-0": "REQUEST_TIMED_OUT"}
        lab.world.clock.call(network.heal)
        lab.settle()
        assert lab.partition(*ORDERS).leader == 3
    with leaderless() as lab:
        lab.world.clock.call(lambda: lab.world.network.cut(1, 1))
        prose.refuses(Unavailable, lab.elect_leaders, "unclean", [ORDERS])


def test_an_answer_that_comes_after_the_client_has_given_up_harms_nobody() -> None:
    """The controller hears of the request when its session is back, and then nobody waits any more."""
    opening = "lab brokers=[1,2] generation=2.4 seed=0\ncreate_topic c partitions=1 replication_factor=1\n"
    lines = "disconnect zookeeper 2\nrefused elect_leaders preferred\nrun_for 0.002\nheal\nsettle\n"
    with Lab.replay(opening + lines) as lab:
        assert lab.partition("c", 0).leader > 0 and not lab.violations


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
def test_older_generations_have_no_such_request(generation: str) -> None:
    with Lab(brokers=1, generation=generation, seed=1) as lab:
        until_quiet(lab.create_topic, "orders")
        before = lab.story
        for ask in (
            lambda: lab.elect_leaders("unclean", [ORDERS]),
            lambda: lab.elect_leaders("preferred"),
            lambda: lab.elect_preferred([ORDERS], through="controller"),
        ):
            refused = refuses(ApiException, r"does not support ELECT_LEADERS.*2\.4 \(KIP-460\)", ask)
            assert refused.code == "UNSUPPORTED_VERSION"
        assert lab.story == before


def test_a_preferred_election_through_the_controller_answers() -> None:
    with mixed() as lab:
        answers = lab.elect_preferred(["drifted-0", "fine-0", "straying-0"], through="controller")
        assert codes(answers) == {
            "drifted-0": None,
            "fine-0": "ELECTION_NOT_NEEDED",
            "straying-0": "PREFERRED_LEADER_NOT_AVAILABLE",
        }
        assert "/admin/preferred_replica_election" not in lab.znodes()
        lab.elect_preferred(["fine-0"], through="zookeeper")
        assert "/admin/preferred_replica_election" in lab.znodes()


@pytest.mark.parametrize(
    ("given", "error"),
    [(("sideways",), UnknownName), ((5,), BadInput), (("unclean", 5), BadInput), (("unclean", ["orders"]), BadInput)],
    ids=source,
)
def test_what_cannot_be_asked_for(prose: Prose, given: tuple, error: type[Exception]) -> None:
    with Lab(brokers=1, generation="2.4", seed=1) as lab:
        prose.refuses(error, lab.elect_leaders, *given)
        refuses(BadInput, "through 'pigeon'", lab.elect_preferred, through="pigeon")


def test_it_is_a_command_of_stories() -> None:
    with leaderless() as lab:
        until_quiet(lab.elect_leaders, ElectionType.UNCLEAN, [ORDERS, ORDERS])
        assert "elect_leaders UNCLEAN" in lab.story
        with Lab.replay(lab.story) as again:
            assert list(again.trace) == list(lab.trace)
    with leaderless() as lab:
        for line in story.parse("""elect_leaders unclean '["orders-0"]'"""):
            lab.do(line)
        lab.settle()
        assert lab.partition(*ORDERS).leader == 3


def test_a_hybrid_can_have_it() -> None:
    hybrid = Generation("2.0").but(elects_on_request=True)
    with leaderless(generation=hybrid) as lab:
        assert lab.elect_leaders("unclean", [ORDERS]) == {ORDERS: None}
    with Lab(brokers=1, generation=Generation("2.4").but(elects_on_request=False)) as lab, pytest.raises(ApiException):
        lab.elect_leaders("unclean")


@pytest.mark.parametrize(("kind", "error"), [("preferred", "head of empty list"), ("unclean", "key not found: void-0")])
def test_a_partition_without_replicas_exists(kind: str, error: str) -> None:
    """So the event fails at it, and nothing is answered.

    Kafka 2.4.1: controller/KafkaController.scala, processReplicaLeaderElection (allPartitions, assignedReplicas.head)
    """
    with drifted("2.4") as lab:
        until_quiet(lab.write_znode, "/brokers/topics/void", {"version": 1, "partitions": {"0": []}})
        since = len(lab.trace)
        with pytest.raises(Unavailable):
            lab.elect_leaders(kind, ["void-0"])
        assert [failed["error"] for failed in logged(lab.trace.slice(since), "error_processing")] == [error]


def test_the_log_of_the_controller() -> None:
    with mixed() as lab:
        lab.elect_leaders("unclean", ["lost-0", "nope-0", "waiting-0"])
        log = lab.trace.kafka_log("controller")
    for line in (
        "Skipping replica leader election (UNCLEAN) for partition nope-0 by AdminClientTriggered since it doesn't "
        "exist.",
        "Skipping replica leader election (UNCLEAN) for partitions Set(waiting-0) by AdminClientTriggered since the "
        "respective topics are being deleted",
        "Starting replica leader election (UNCLEAN) for partitions lost-0 triggered by AdminClientTriggered",
    ):
        assert line in log


def test_the_log_of_a_request_through_zookeeper() -> None:
    """Kafka 2.4.1: controller/KafkaController.scala, processReplicaLeaderElection: unknown partitions come first."""
    with mixed() as lab:
        named = [("drifted", 0), ("waiting", 0), ("nope", 0), ("fine", 7)]
        request = {"version": 1, "partitions": [{"topic": topic, "partition": n} for topic, n in named]}
        until_quiet(lab.write_znode, "/admin/preferred_replica_election", request)
        lines = [line.partition("] ")[2] for line in lab.trace.kafka_log("controller").splitlines()]
    log = [line.partition(" (kafka.")[0] for line in lines if "ZkTriggered" in line and "partitions  " not in line]
    skipping = "[Controller id=1] Skipping replica leader election (PREFERRED) for partition"
    answer = "Left(ApiError(error="
    unknown = f"{answer}UNKNOWN_TOPIC_OR_PARTITION, message=The partition does not exist.))"
    assert log == [
        f"INFO {skipping} nope-0 by ZkTriggered since it doesn't exist.",
        f"INFO {skipping} fine-7 by ZkTriggered since it doesn't exist.",
        f"WARN {skipping}s Set(waiting-0) by ZkTriggered since the respective topics are being deleted",
        "INFO [Controller id=1] Starting replica leader election (PREFERRED) for partitions drifted-0 triggered by "
        "ZkTriggered",
        "DEBUG [Controller id=1] Waiting for any successful result for election type (PREFERRED) by ZkTriggered for "
        f"partitions: Map(drifted-0 -> Right(3), waiting-0 -> {answer}INVALID_TOPIC_EXCEPTION, message=The topic is "
        f"being deleted)), nope-0 -> {unknown}, fine-7 -> {unknown})",
    ]


@pytest.mark.parametrize(
    ("path", "written"),
    [
        (
            "/admin/preferred_replica_election",
            "WARN [Controller id=1] Partition drifted-0 failed to complete preferred",
        ),
        ("/admin/reassign_partitions", "INFO [Controller id=1] Failed completing reassignment of partition drifted-0 "),
    ],
)
def test_the_log_of_a_request_when_another_controller_is_there(path: str, written: str) -> None:
    """Kafka 2.4.1: controller/KafkaController.scala, onReplicaElection, maybeTriggerPartitionReassignment."""
    with mixed() as lab:
        lab.write_znode("/controller_epoch", "7")
        request = {"topic": "drifted", "partition": 0}
        more = {"replicas": [1, 3]} if "reassign" in path else {}
        until_quiet(lab.write_znode, path, {"version": 1, "partitions": [request | more]})
        log = lab.trace.kafka_log("controller")
    assert written in log.replace(" (kafka.controller", "\n(")
    assert "Controller moved to another broker when processing" in log
    assert "Waiting for any successful result" not in log


def test_an_answer_prints_as_kafka_names_it() -> None:
    assert str(ApiError("ELECTION_NOT_NEEDED", "Leader election not needed for topic partition")).startswith("ELECTION")


# A topic whose configuration is changed (KAFKA-6835)

UNCLEAN = "unclean.leader.election.enable"


def test_a_topic_that_allows_unclean_elections_gets_its_leader_at_once() -> None:
    """Only the active controller's broker does something of it; what may lead is read from ZooKeeper."""
    with leaderless() as lab:
        before = len(lab.trace)
        until_quiet(lab.alter_config, "topics", "orders", {UNCLEAN: True})
        assert (lab.partition(*ORDERS).leader, lab.partition(*ORDERS).isr) == (3, (3,))
        news = lab.trace.slice(before)
        events = [(r.actor, r.topic, r.target) for r in news if r.action == "TopicUncleanLeaderElectionEnable"]
        assert events == [("controller-1", "orders", step) for step in ("queued", "started", "done")]
        vote = next(r for r in news if r.kind == "election")
        assert (vote.action, vote.target, vote.leader) == ("offline", "unclean", 3)
        chain = {r.action for r in lab.trace.causes(vote.seq)}
        assert {"TopicUncleanLeaderElectionEnable", "config-changed", "alter_config"} <= chain
        (done,) = news.slice(action="TopicUncleanLeaderElectionEnable", target="done")
        assert "KAFKA-6835" in str(lab.why(done.seq))
        assert "Unclean leader election has been enabled for topic orders" in lab.trace.kafka_log("controller")
        with Lab.replay(lab.story) as again:
            assert again.trace.text() == lab.trace.text()


@pytest.mark.parametrize(
    ("generation", "config"),
    [
        ("2.0", {UNCLEAN: True}),
        (Generation("2.4").but(elects_once_unclean_is_allowed=False), {UNCLEAN: True}),
        ("2.4", {UNCLEAN: False}),
        ("2.4", {"min.insync.replicas": 1}),
    ],
)
def test_otherwise_it_waits_for_a_broker_or_a_controller(generation: str | Generation, config: dict) -> None:
    with leaderless(generation=generation) as lab:
        lab.alter_config("topics", "orders", config)
        lab.run_for(600)
        assert lab.partition(*ORDERS).leader == -1
        assert not lab.trace.slice(action="TopicUncleanLeaderElectionEnable")
        until_quiet(lab.add_broker, 4)
        assert lab.partition(*ORDERS).leader == (3 if config.get(UNCLEAN) else -1)


def test_another_topic_and_one_to_be_deleted_are_left_alone() -> None:
    with leaderless() as lab:
        until_quiet(lab.create_topic, "calm", assignment={0: [1]})
        until_quiet(lab.delete_topic, "orders")
        before = len(lab.trace)
        for topic in ("calm", "orders"):
            lab.alter_config("topics", topic, {UNCLEAN: True})
        lab.settle()
        news = lab.trace.slice(before)
        assert [r.topic for r in news if r.action == "unclean_enabled"] == [None, None]
        assert not [r for r in news if r.kind == "election"]
