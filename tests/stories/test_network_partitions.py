"""Six network partitions with a producer that goes on all the time, and what others say of real clusters.

The scenarios are those of the public project Dabz/kafka-boom-boom that one ZooKeeper allows: 1, 2, 4, 5, 6 and
`zookeeper-disconnect`; 3 rebuilds a quorum. There a console producer stands beside each broker; here one producer asks
the first broker that answers, so brokers are numbered such that it looks at both sides. The same runs are golden
stories (`traces/network_*.txt`).
"""

from __future__ import annotations

from collections import Counter

from labs import process_of, until_quiet

from kafka_ctl import Lab

CLEAN = {"unclean.leader.election.enable": False, "auto.leader.rebalance.enable": False}
TIMED_OUT, TOO_FEW = "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS"


def cluster(generation: str, assignment: dict[int, list[int]], min_isr: int) -> Lab:
    lab = Lab(brokers=len(assignment[0]), generation=generation, seed=7, config=CLEAN)
    until_quiet(lab.create_topic, "test", assignment=assignment, config={"min.insync.replicas": min_isr})
    stream(lab, 3)
    return lab


def stream(lab: Lab, seconds: int, partition: int = 0) -> Counter[tuple[int | None, str | None]]:
    """Produce a record a second, waiting for every in-sync replica; what became of which broker's records so far."""
    since = len(lab.trace)
    for _ in range(seconds):
        lab.produce("test", partition, wait=False)
        lab.run_for(1)
    answers = [r for r in lab.trace[since:] if r.actor == "producer" and r.kind == "response"]
    return Counter((r.broker, r.error) for r in answers)


def cut(lab: Lab, *pairs: tuple[int, int | str]) -> None:
    for one, other in pairs:
        lab.disconnect(one, other)


def state(lab: Lab, partition: int = 0) -> tuple[int, tuple[int, ...]]:
    view = lab.partition("test", partition)
    return view.leader, view.isr


def whole_again(lab: Lab) -> None:
    """Every replica is in sync, has the same records, all that were acknowledged among them, and takes new ones."""
    lab.heal()
    lab.run_for(45)
    assert {error for _, error in stream(lab, 5)} <= {None, "NOT_LEADER_FOR_PARTITION"}
    assert lab.produce("test", 0).acknowledged
    lab.settle()
    assert {tuple(sorted(p.isr)) for p in lab.partitions()} == {tuple(lab.brokers)}
    logs = {tuple(log.entries) for log in lab.log("test", 0)}
    assert len(logs) == 1
    assert lab.violations == ()


def test_the_first_record_needs_no_zookeeper(generation: str) -> None:
    """Brokers serve without ZooKeeper as long as no ISR must change; `min.insync.replicas` is known, too."""
    with Lab(brokers=3, generation=generation, seed=7, config=CLEAN) as lab:
        lab.create_topic("test", assignment={0: [1, 2, 3]}, config={"min.insync.replicas": 2})
        until_quiet(lab.create_topic, "strict", assignment={0: [1, 2]}, config={"min.insync.replicas": 3})
        lab.stop_zookeeper()
        start = lab.now
        assert lab.produce("test", 0).acknowledged
        assert lab.produce("strict", 0).error == TOO_FEW
        assert lab.now - start < 0.1
        assert stream(lab, 60) == {(1, None): 60}
        until_quiet(lab.start_zookeeper)
        assert state(lab) == (1, (1, 2, 3))


def test_a_new_copy_waits_for_zookeeper(generation: str) -> None:
    """A broker that is cut off reads no configuration: it makes no copy until it can, and then all goes on."""
    with Lab(brokers=2, generation=generation, seed=7, config=CLEAN) as lab:
        lab.settle()
        other = 3 - lab.controller.id
        lab.disconnect(other, "zookeeper")
        lab.create_topic("test", assignment={0: [other, lab.controller.id]})
        lab.run_for(1)
        assert not process_of(lab, other).hosted
        until_quiet(lab.heal)
        assert state(lab) == (other, (other, lab.controller.id))
        assert lab.produce("test", 0).acknowledged


def test_the_leader_is_isolated(generation: str) -> None:
    """Scenario 1: the invalid leader acknowledges nothing with acks=all, the valid one does."""
    with cluster(generation, {0: [3, 2, 1]}, min_isr=1) as lab:
        cut(lab, (3, 1), (3, 2), (3, "zookeeper"))
        assert stream(lab, 50) == {(3, TIMED_OUT): 20, (2, None): 19}
        assert state(lab) == (2, (2, 1))
        whole_again(lab)


def test_most_brokers_lose_zookeeper(generation: str) -> None:
    """Scenario 2: three brokers without ZooKeeper cannot change the ISR, the one that has it is too few."""
    with cluster(generation, {0: [4, 3, 2, 1]}, min_isr=3) as lab:
        cut(lab, *((one, other) for one in (2, 3, 4) for other in (1, "zookeeper")))
        seen = stream(lab, 50)
        assert set(seen) == {(4, TIMED_OUT), (1, TOO_FEW)}
        assert state(lab) == (1, (1,))
        whole_again(lab)


def test_a_complete_outage(generation: str) -> None:
    """Scenario 4: nobody reaches anybody, and the quorum is lost; afterwards the cluster is healthy."""
    with cluster(generation, {0: [1, 2, 3, 4]}, min_isr=3) as lab:
        lab.stop_zookeeper()
        cut(lab, (1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4))
        assert set(stream(lab, 45)) == {(1, TIMED_OUT)}
        whole_again(lab)


def test_two_sites(generation: str) -> None:
    """Scenario 5: the site with ZooKeeper keeps the leader, but two replicas are fewer than three."""
    with cluster(generation, {0: [1, 2, 3, 4]}, min_isr=3) as lab:
        cut(lab, *((one, other) for one in (3, 4) for other in (1, 2, "zookeeper")))
        assert {error for _, error in stream(lab, 45)} == {TOO_FEW, f"{TOO_FEW}_AFTER_APPEND"}
        assert state(lab) == (1, (1, 2))
        whole_again(lab)


def test_a_leader_cut_from_its_followers(generation: str) -> None:
    """Scenario 6: where nothing is written, the ISR does not shrink since KAFKA-7152, and another can lead."""
    with cluster(generation, {0: [1, 2, 3], 1: [3, 1, 2]}, min_isr=2) as lab:
        cut(lab, (3, 1), (3, 2))
        lab.run_for(45)
        shrinks = generation != "2.4"
        assert state(lab, 1) == ((3, (3,)) if shrinks else (3, (3, 1, 2)))
        assert stream(lab, 45)[1, None] >= 30
        assert state(lab) == (1, (1, 2))
        until_quiet(lab.shutdown, 3)
        assert state(lab, 1) == ((-1, (3,)) if shrinks else (1, (1, 2)))
        assert stream(lab, 5, partition=1) == ({(-1, "LEADER_NOT_AVAILABLE"): 5} if shrinks else {(1, None): 5})
        lab.start(3)
        whole_again(lab)


def test_the_leader_loses_zookeeper(generation: str) -> None:
    """`zookeeper-disconnect`: another leader is elected, the old one's records time out and are not kept."""
    with cluster(generation, {0: [4, 1, 2, 3]}, min_isr=3) as lab:
        cut(lab, (4, "zookeeper"))
        seen = stream(lab, 50)
        assert set(seen) <= {(4, None), (4, TIMED_OUT), (1, None)} and seen[1, None] >= 10
        assert state(lab) == (1, (1, 2, 3))
        whole_again(lab)
