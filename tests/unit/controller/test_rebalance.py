"""Leadership brought back to the preferred replicas: on request, and by itself when too much has drifted."""

import json

import pytest
from labs import play, until_quiet

from kafka_ctl import Lab
from kafka_ctl.latencies import Costs

ORDERS = ("orders", 0)
generations = pytest.mark.parametrize("generation", ["0.10", "2.0", "2.4"])


def drifted(
    generation: str, partitions: int = 1, not_preferred: int = 1, automatic: bool = False, **config: object
) -> Lab:
    """A topic whose partitions broker 3 should lead; so many of them are led by another one since it was away.

    Broker 1 is controller. What is led by its preferred leader was created when 3 was back.
    """
    settings = {"auto.leader.rebalance.enable": automatic} | config
    lab = Lab(brokers=3, generation=generation, seed=1, config=settings)
    until_quiet(lab.create_topic, "orders", assignment={n: [3, 1, 2] for n in range(not_preferred)})
    play(lab, "kill 3; settle; start 3; settle")
    if partitions > not_preferred:
        until_quiet(lab.create_topic, "others", assignment={n: [3, 2, 1] for n in range(partitions - not_preferred)})
    return lab


def logged(lab: Lab, since: int, action: str) -> list[dict[str, object]]:
    return [json.loads(r.detail or "{}") for r in lab.trace[since:] if r.kind == "controller" and r.action == action]


# On request


@generations
def test_the_preferred_replica_gets_its_partition_back(generation: str) -> None:
    with drifted(generation) as lab:
        before = lab.partition(*ORDERS)
        assert before.leader == 1
        since = len(lab.trace)
        until_quiet(lab.elect_preferred, [ORDERS])
        after = lab.partition(*ORDERS)
        assert (after.leader, after.isr) == (3, before.isr)
        assert after.leader_epoch == before.leader_epoch + 1
        assert logged(lab, since, "preferred_done")[0]["partition"] == "orders-0"
        assert "/admin/preferred_replica_election" not in lab.znodes()
        reported = {r.broker for r in lab.trace[since:] if r.action == "LeaderAndIsr" and r.topic}
        assert reported == {1, 2, 3}
        lab.elect_preferred([ORDERS])  # and again: the watch was armed anew
        lab.settle()
        assert "/admin/preferred_replica_election" not in lab.znodes()


@pytest.mark.parametrize(("generation", "raised"), [("0.10", 0), ("2.0", 1), ("2.4", 0)])
def test_whoever_leads_already_is_elected_again_by_2_0_only(generation: str, raised: int) -> None:
    with Lab(brokers=3, generation=generation, seed=1, config={"auto.leader.rebalance.enable": False}) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [3, 1, 2]})
        since = len(lab.trace)
        until_quiet(lab.elect_preferred, [ORDERS])
        assert lab.partition(*ORDERS).leader_epoch == raised
        assert bool([r for r in lab.trace[since:] if r.action == "LeaderAndIsr"]) == bool(raised)
        assert "/admin/preferred_replica_election" not in lab.znodes()


@generations
def test_a_dead_preferred_replica_is_not_elected(generation: str) -> None:
    with drifted(generation) as lab:
        until_quiet(lab.kill, 3)
        since, epoch = len(lab.trace), lab.partition(*ORDERS).leader_epoch
        until_quiet(lab.elect_preferred, [ORDERS])
        assert lab.partition(*ORDERS).leader == 1
        assert lab.partition(*ORDERS).leader_epoch == epoch
        assert [w["leader"] for w in logged(lab, since, "preferred_failed")] == [1]
        assert "/admin/preferred_replica_election" not in lab.znodes()


@generations
def test_a_new_controller_runs_the_elections_that_were_requested_for(generation: str) -> None:
    with drifted(generation) as lab:
        lab.kill(1)
        lab.elect_preferred([ORDERS])  # nobody is there to hear it
        since = len(lab.trace)
        lab.settle()
        assert lab.partition(*ORDERS).leader == 3
        assert logged(lab, since, "preferred_undergoing")[-1]["partitions"] == ["orders-0"]
        assert "/admin/preferred_replica_election" not in lab.znodes()


# By itself


@generations
@pytest.mark.parametrize(("not_preferred", "elected"), [(1, False), (2, True)])
def test_the_imbalance_must_exceed_the_percentage(generation: str, not_preferred: int, elected: bool) -> None:
    """One of ten is ten percent, which is not more than ten percent."""
    with drifted(generation, 10, not_preferred, automatic=True) as lab:
        since = len(lab.trace)
        lab.run_for(310)
        leaders = {p.leader for p in lab.partitions() if p.topic == "orders"}
        assert leaders == ({3} if elected else {1})
        ratios = {w["broker"]: w["ratio"] for w in logged(lab, since, "imbalance")}
        assert ratios[3] == (0.0 if elected and len(logged(lab, since, "imbalance")) > 1 else not_preferred / 10)


@generations
def test_nothing_is_rebalanced_while_partitions_move(generation: str) -> None:
    settings = {"leader.imbalance.check.interval.seconds": 20}
    with drifted(generation, automatic=True, **settings) as lab:
        until_quiet(lab.create_topic, "moving", assignment={0: [1, 2]})
        until_quiet(lab.kill, 2)
        lab.reassign({("moving", 0): [1, 2, 3]}, through="zookeeper")  # waits for 2
        lab.run_for(60)
        assert lab.partition(*ORDERS).leader == 1
        lab.start(2)
        lab.run_for(60)
        assert lab.reassignments() == []
        assert lab.partition(*ORDERS).leader == 3


@generations
def test_a_broker_that_is_down_gets_nothing(generation: str) -> None:
    settings = {"leader.imbalance.check.interval.seconds": 20}
    with drifted(generation, automatic=True, **settings) as lab:
        until_quiet(lab.kill, 3)
        since = len(lab.trace)
        lab.run_for(60)
        assert lab.partition(*ORDERS).leader == 1
        assert logged(lab, since, "checking_balance")
        assert not [r for r in lab.trace[since:] if r.action == "preferred_done"]


@generations
def test_it_can_be_switched_off(generation: str) -> None:
    with drifted(generation) as lab:
        lab.run_for(700)
        assert lab.partition(*ORDERS).leader == 1
        assert not [r for r in lab.trace if r.action == "checking_balance"]


@pytest.mark.parametrize(("generation", "batches"), [("0.10", 4), ("2.0", 1), ("2.4", 1)])
def test_partitions_are_elected_one_by_one_or_together(generation: str, batches: int) -> None:
    """KAFKA-7299: one UpdateMetadata for each batch and broker."""
    with drifted(generation, 4, 4, automatic=True) as lab:
        since = len(lab.trace)
        lab.run_for(310)
        assert {p.leader for p in lab.partitions()} == {3}
        sent = [r for r in lab.trace[since:] if r.action == "UpdateMetadata" and r.target == "sent" and r.broker == 2]
        assert len(sent) == batches


@pytest.mark.parametrize(("generation", "fixed"), [("0.10", True), ("2.0", False), ("2.4", False)])
def test_the_next_look_comes_at_a_fixed_time_or_when_the_last_is_over(generation: str, fixed: bool) -> None:
    """ZooKeeper takes 2 s for everything here, so that the first look, which elects, takes a while."""
    settings = {"auto.leader.rebalance.enable": True, "leader.imbalance.check.interval.seconds": 60}
    with Lab(brokers=3, generation=generation, seed=1, config=settings) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [3, 1, 2]})
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


def test_the_first_look_comes_after_five_seconds() -> None:
    for generation in ("0.10", "2.0", "2.4"):
        with Lab(brokers=1, generation=generation, seed=1, costs=Costs()) as lab:
            ready = next(r.time_ms for r in lab.trace if r.action == "ready")
            lab.run_for(6)
            look = next(r.time_ms for r in lab.trace if r.action == "checking_balance")
            assert look - ready == pytest.approx(5000, abs=20)
