"""Faults at exact moments, which random walks meet too seldom: an answer lost just there, a record just then.

Every story ends with a sound cluster: no invariant is broken, not even in a way that is declared.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
from labs import acting, process_of, three_brokers, until_quiet

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.invariants import Violation
from kafka_ctl.lab.lab import Lab
from kafka_ctl.latencies import Costs
from kafka_ctl.replica import OFFLINE
from kafka_ctl.zookeeper.znodes import TopicPartitionStateZNode
from tests.mutants import mutant

ORDERS = (2, 3, 1), (1, 2, 3)
"""The replicas of its two partitions."""
OCCASIONS: dict[str, Callable[[Lab], object]] = {
    "a follower dies": lambda lab: lab.kill(3),
    "a leader dies": lambda lab: lab.kill(2),
    "a follower leaves": lambda lab: lab.shutdown(3),
    "a leader leaves": lambda lab: lab.shutdown(2),
    "a topic is created": lambda lab: lab.create_topic("payments", 2, 3),
    "partitions are added": lambda lab: lab.add_partitions("orders", 4),
    "a topic is deleted": lambda lab: lab.delete_topic("orders"),
    "a partition moves": lambda lab: lab.reassign({"orders-0": [1, 3]}),
}


def conflicts(lab: Lab, since: int) -> int:
    return len(lab.trace.slice(since, kind="zk", error="BADVERSION"))


# What the controller writes


@pytest.mark.parametrize("occasion", OCCASIONS)
def test_a_lost_answer_leaves_nothing_half_done(generation: str, occasion: str) -> None:
    """The same partitions, the same states in the controller's machines, and every broker knows."""
    outcomes = []
    for applied in (None, False, True):
        with three_brokers(generation, *ORDERS) as lab:
            if applied is not None:
                lab.lose(1, "zookeeper", applied=applied)
            OCCASIONS[occasion](lab)
            lab.settle()
            assert lab.violations == ()
            assert (applied is not None) == bool(lab.trace.slice(actor="broker-1", kind="zk", action="disconnected"))
            partitions = [(p.topic, p.partition, p.leader, set(p.isr), p.replicas, p.state) for p in lab.partitions()]
            outcomes.append((partitions, lab.replicas()))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_shrink_whose_answer_is_lost_is_tried_again(generation: str) -> None:
    """The second attempt meets the version of the first; then the ISR is read again, and everybody is told of it."""
    with three_brokers(generation, *ORDERS) as lab:
        since = len(lab.trace)
        lab.kill(3)
        until_quiet(lab.lose, 1, "zookeeper", applied=True)
        assert conflicts(lab, since) >= 1
        for view in lab.partitions():
            assert set(view.isr) == {1, 2} and view.leader in (1, 2)
            for broker in (1, 2):
                hosted = process_of(lab, broker).hosted[TopicPartition(view.topic, view.partition)].state
                assert (hosted.leader, hosted.isr, hosted.leader_epoch) == (view.leader, view.isr, view.leader_epoch)
        assert {state for replica, state in acting(lab).context.replicas.items() if replica.broker == 3} == {OFFLINE}
        until_quiet(lab.start, 3)
        assert [set(p.isr) for p in lab.partitions()] == [{1, 2, 3}] * 2
        assert lab.violations == ()


@pytest.mark.parametrize("dead", [2, 3])
def test_somebody_else_writes_between_the_read_and_the_write(generation: str, dead: int) -> None:
    """ZooKeeper is slow for the controller; a foreign write of the same state comes at each of many moments."""
    met = 0
    for quarter in range(1, 13):
        with three_brokers(generation) as lab:
            since = len(lab.trace)
            lab.kill(dead)
            lab.delay(1, "zookeeper", 0.5)
            lab.run_until(lambda now: bool(now.trace.slice(action="expired")))
            lab.run_for(0.25 * quarter + 0.1)
            path = TopicPartitionStateZNode.path(TopicPartition("orders", 0))
            until_quiet(lab.write_znode, path, lab.znodes()[path][0].decode())
            until_quiet(lab.heal)
            met += conflicts(lab, since)
            assert set(lab.partition("orders", 0).isr) == {1, 2, 3} - {dead}
            assert lab.violations == ()
    assert met >= 2


@pytest.mark.parametrize("applied", [False, True])
def test_an_election_whose_answer_is_lost(generation: str, applied: bool) -> None:
    """Whoever has won finds itself in `/controller`, or the next one wins; the epoch is that of who acts."""
    with three_brokers(generation, *ORDERS) as lab:
        since = len(lab.trace)
        lab.kill(1)
        lab.lose(2, "zookeeper", applied=applied)
        until_quiet(lab.lose, 3, "zookeeper", applied=applied)
        assert lab.controller is not None and acting(lab).id == lab.controller.id
        assert acting(lab).context.epoch == int(lab.znodes()["/controller_epoch"][0])
        elected = lab.trace.slice(since, kind="controller", action="elected")
        assert len(elected) == 1 or generation != "2.4"
        assert {p.leader for p in lab.partitions()} == {2} and lab.violations == ()


def test_an_election_whose_transaction_went_through_though_its_answer_is_lost() -> None:
    """Since 2.4 `/controller` and the epoch are written together: whoever finds both to be its own has won."""
    with three_brokers("2.4", *ORDERS) as lab:
        since = len(lab.trace)
        lab.kill(1)
        begun = {"kind": "zk", "action": "get", "path": "/controller_epoch"}
        lab.run_until(lambda now: {"broker-2", "broker-3"} <= {r.actor for r in now.trace.slice(since, **begun)})
        lab.lose(2, "zookeeper", applied=True)
        until_quiet(lab.lose, 3, "zookeeper", applied=True)
        elected = lab.trace.slice(since, kind="controller", action="elected")
        assert lab.controller is not None and [r.actor for r in elected] == [f"controller-{lab.controller.id}"]
        assert not lab.trace.slice(since, action={"election_failed", "elected_and_resigned"})
        assert acting(lab).context.epoch == int(lab.znodes()["/controller_epoch"][0]) == 2
        assert lab.violations == ()


# Who joins the ISR


def joined(generation: str, back: str, moment: float) -> tuple[Violation, ...]:
    """What is broken when a record comes `moment` seconds after a follower has begun to catch up."""
    with three_brokers(generation, (1, 2)) as lab:
        lab.produce("orders", 0)
        if back == "catches up":
            lab.lag(2, "orders", 0)
        else:
            lab.kill(2)
        lab.settle()
        lab.produce("orders", 0)
        since = len(lab.trace)
        if back == "catches up":
            lab.catch_up(2)
        else:
            lab.start(2)
            lab.run_until(lambda now: bool(now.trace.slice(since, action="become-follower", broker=2)))
        lab.run_for(Costs().catch_up + moment)
        until_quiet(lab.produce, "orders", 0, wait=False)
        assert set(lab.partition("orders", 0).isr) == {1, 2}
        assert {log.end for log in lab.logs()} == {3}
        return lab.violations


@pytest.mark.parametrize("back", ["catches up", "starts again"])
def test_a_record_that_comes_as_a_follower_joins(generation: str, back: str) -> None:
    """At every fifth of a millisecond; a leader that does not look at a follower's log fails in half a millisecond."""
    moments = [tenth / 10_000 for tenth in range(10, 32, 2)]
    for defect in (None, "joins-at-once"):
        with mutant(defect) if defect else nullcontext():
            broken = [moment for moment in moments if joined(generation, back, moment)]
        assert (len(broken) >= 2) == bool(defect)
    with mutant("joins-at-once"):
        assert ("I22", None) in {(v.invariant, v.known) for v in joined(generation, back, broken[1])}
