"""Followers catch up by leader, not by partition: what a broker's return costs, and who goes ways of their own."""

from __future__ import annotations

from typing import Any

import pytest
from labs import process_of

from kafka_ctl import Lab
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.requests import StopReplicaRequest

CALM = {"auto.leader.rebalance.enable": False, "delete.topic.enable": True}
generations = pytest.mark.parametrize("generation", GENERATIONS)


def returned(generation: str, partitions: int) -> tuple[int, int]:
    """How many callbacks the death of a broker takes, and how many its return."""
    with Lab(brokers=3, generation=generation, seed=7, config=CALM) as lab:
        lab.create_topic("orders", partitions=partitions, replication_factor=3)
        lab.settle()
        assert lab.controller is not None
        victim = next(id for id in lab.brokers if id != lab.controller.id)
        counts, loop = [], lab.world.clock.loop
        for act in (lab.kill, lab.start):
            before = loop.callbacks_run  # type: ignore[attr-defined]
            act(victim)
            lab.settle()
            counts.append(loop.callbacks_run - before)  # type: ignore[attr-defined]
        assert all(sorted(p.isr) == [1, 2, 3] for p in lab.partitions())
        return counts[0], counts[1]


@pytest.mark.parametrize(("generation", "most"), [("0.10", 9.5), ("2.0", 6.5), ("2.4", 6.5)])
def test_what_a_return_costs_for_each_partition(generation: str, most: float) -> None:
    """Each ISR is a write of its own, as in Kafka: some five callbacks; the follower's side is shared by all."""
    few, many = returned(generation, 100), returned(generation, 400)
    assert (many[1] - few[1]) / 300 <= most


def waiting() -> Lab:
    """Broker 3 is back and about to catch up in what 1 and 2 lead."""
    lab = Lab(brokers=3, generation="2.0", seed=1, config=CALM)
    lab.create_topic("orders", assignment={n: [1 + n % 2, 3] for n in range(6)})
    lab.settle()
    lab.kill(3)
    lab.settle()
    lab.start(3)
    lab.run_until(lambda lab: len(fetchers(lab)) == 6, limit=30)
    return lab


def fetchers(lab: Lab) -> dict[TopicPartition, Any]:
    return process_of(lab, 3).as_follower.catching_up


def caught_up(lab: Lab, since: int = 0) -> dict[int, float]:
    """When each partition caught up, in seconds; the last time counts."""
    return {r.partition: r.time_ms / 1000 for r in lab.trace[since:] if r.action == "caught-up"}  # type: ignore[misc]


def test_one_fetcher_for_each_leader() -> None:
    with waiting() as lab:
        lab.run_for(0.01)
        by_leader = {
            fetcher.leader: sorted(tp.partition for tp in fetcher.partitions) for fetcher in fetchers(lab).values()
        }
        assert by_leader == {1: [0, 2, 4], 2: [1, 3, 5]}
        assert len({id(fetcher) for fetcher in fetchers(lab).values()}) == 2
        lab.settle()
        lab.run_for(2)
        assert fetchers(lab) == {}
        assert len(set(caught_up(lab).values())) == 1


def test_a_leader_that_does_not_answer_holds_up_its_own_partitions_only() -> None:
    with waiting() as lab:
        lab.disconnect(2, 3)
        lab.run_for(3)
        assert {tp.partition for tp in fetchers(lab)} == {1, 3, 5}
        assert sorted(caught_up(lab)) == [0, 2, 4]
        lab.heal()
        lab.settle()
        lab.run_for(2)
        assert fetchers(lab) == {}
        assert all(sorted(p.isr) == sorted(p.replicas) for p in lab.partitions())


def test_a_partition_that_is_stopped_leaves_the_others() -> None:
    with waiting() as lab:
        lab.run_for(0.01)
        replication = process_of(lab, 3).as_follower
        lab.world.clock.call(lambda: replication.stop(TopicPartition("orders", 2)))
        assert {tp.partition for tp in fetchers(lab)} == {0, 1, 3, 4, 5}
        lab.run_for(3)
        assert sorted(caught_up(lab)) == [0, 1, 3, 4, 5]
        lab.world.clock.call(lambda: [replication.stop(TopicPartition("orders", n)) for n in range(6)])
        assert fetchers(lab) == {}


def test_a_fetcher_without_partitions_ends() -> None:
    with waiting() as lab:
        replication = process_of(lab, 3).as_follower
        lab.world.clock.call(lambda: [replication.stop(TopicPartition("orders", n)) for n in range(6)])
        lab.settle()
        assert caught_up(lab) == {}


def test_a_partition_with_records_is_copied_by_itself() -> None:
    """Those that had records before get a fetcher at once, those that get some meanwhile when they are seen."""
    with Lab(brokers=3, generation="2.0", seed=1, config=CALM) as lab:
        lab.create_topic("orders", assignment={n: [1, 3] for n in range(4)})
        lab.settle()
        lab.produce("orders", 1, records=2)
        lab.settle()
        lab.kill(3)
        lab.settle()
        lab.start(3)
        lab.run_until(lambda lab: len(fetchers(lab)) == 4, limit=30)
        lab.run_for(0.01)
        groups = {tuple(sorted(tp.partition for tp in fetcher.partitions)) for fetcher in fetchers(lab).values()}
        assert groups == {(1,), (0, 2, 3)}
        lab.produce("orders", 2, records=3, wait=False)
        lab.run_for(0.2)
        groups = {tuple(sorted(tp.partition for tp in fetcher.partitions)) for fetcher in fetchers(lab).values()}
        assert (2,) in groups
        lab.settle()
        lab.run_for(2)
        assert fetchers(lab) == {}
        assert {log.broker: log.end for log in lab.log("orders", 2)} == {1: 3, 3: 3}
        assert all(sorted(p.isr) == [1, 3] for p in lab.partitions())
        assert lab.violations == ()


@generations
def test_it_repeats(generation: str) -> None:
    runs = []
    for _ in range(2):
        with Lab(brokers=3, generation=generation, seed=3, config=CALM) as lab:
            lab.create_topic("orders", partitions=5, replication_factor=3)
            lab.settle()
            lab.produce("orders", 3, records=2)
            for broker in (1, 2, 3):
                lab.bounce(broker)
                lab.pause(1 + broker % 3, 1.5)
                lab.settle()
            lab.lag(1, "orders", 2)
            lab.run_for(40)
            lab.heal()
            lab.settle()
            runs.append(list(lab.trace))
    assert runs[0] == runs[1]


# When a fetcher is started anew


@pytest.mark.parametrize(
    ("generation", "fetchers"),
    [
        ("0.10", ["started", "kept", "kept", "started"]),
        ("2.0", ["started", "kept", "started", "started"]),
        ("2.4", ["started", "started", "started", "started"]),
    ],
)
def test_what_becomes_of_a_fetcher(generation: str, fetchers: list[str]) -> None:
    """Kafka: cluster/Partition.scala, makeFollower, at each tag: first told, next epoch, a gap, another leader."""
    with Lab(brokers=3, generation=generation, seed=1, config=CALM) as lab:
        lab.settle()
        followed = process_of(lab, 3).as_follower
        known = LeaderAndIsr(1, (1, 3), leader_epoch=4)
        reported = [(None, 4, 1), (known, 5, 1), (known, 6, 1), (known, 5, 2)]
        assert [
            followed.fetcher_of(before, known._replace(leader=leader, leader_epoch=epoch))
            for before, epoch, leader in reported
        ] == fetchers


@generations
def test_the_next_epoch_of_one_leader(generation: str) -> None:
    """A follower dies: the others learn of the next epoch. 2.4 asks where the log of the leader's epoch ends."""
    with Lab(brokers=3, generation=generation, seed=1, config=CALM) as lab:
        lab.create_topic("orders", assignment={0: [1, 2, 3]})
        lab.settle()
        lab.produce("orders", 0)
        lab.settle()
        since = len(lab.trace)
        lab.elect_preferred()
        lab.reassign({("orders", 0): [1, 3, 2]}, "zookeeper")
        lab.settle()
        reported = [r.detail for r in lab.trace[since:] if r.action == "become-follower" and r.broker == 3]
        assert reported and set(reported) == ({None} if generation == "2.4" else {"fetcher=kept"})
        assert lab.produce("orders", 0).acknowledged
        assert {log.broker: log.high_watermark for log in lab.log("orders", 0)}[1] == 2


@pytest.mark.parametrize(
    ("generation", "restarts", "isr"),
    [("0.10", False, (1, 2, 3)), ("2.0", False, (1, 2, 3)), ("2.4", False, (1, 2, 3)), ("2.4", True, (1, 2))],
)
def test_a_follower_that_missed_a_leader_epoch(generation: str, restarts: bool, isr: tuple[int, ...]) -> None:
    """It fetches on, and is answered and counted in.

    In 2.4 the first fetch of a session names the epoch (KAFKA-9338; the recordings of `cut_from_zookeeper`): so not
    where the connection to the leader breaks, too.
    """
    with Lab(brokers=3, generation=generation, seed=18883, config=CALM) as lab:
        lab.create_topic("orders", assignment={0: [1, 2, 3]})
        lab.settle()
        lab.produce("orders", 0)
        lab.settle()
        lab.disconnect(3, "zookeeper")
        if restarts:
            lab.disconnect(3, 1)
            lab.run_for(9)
            lab.world.network.heal()
        lab.settle()
        lab.produce("orders", 0)
        lab.settle()
        assert (lab.partition("orders", 0).isr, lab.partition("orders", 0).leader_epoch) == (isr, 1)
        assert {log.broker: log.end for log in lab.log("orders", 0)}[3] == (2 if 3 in isr else 1)
        lab.heal()
        lab.settle()
        assert lab.partition("orders", 0).isr == (1, 2, 3)
        assert {log.end for log in lab.log("orders", 0)} == {2}


def test_a_stopped_copy_is_not_fetched_again_by_0_10_until_the_leader_is_another_one() -> None:
    """StopReplica without deletion removes the fetcher; `makeFollower` is false for the same leader."""
    with Lab(brokers=3, generation="0.10", seed=1, config=CALM) as lab:
        lab.create_topic("orders", assignment={0: [2, 3, 1]})
        lab.settle()
        tp, broker = TopicPartition("orders", 0), process_of(lab, 3)
        stop = StopReplicaRequest(1, broker.replicas.controller_epoch, (tp,))
        lab.world.run(lab.world.network.call(1, 3, stop))
        lab.run_for(16)
        assert lab.partition("orders", 0).isr == (2, 1)
        lab.kill(2)
        lab.settle()
        assert lab.partition("orders", 0).leader == 1
        assert lab.partition("orders", 0).isr == (1, 3)
