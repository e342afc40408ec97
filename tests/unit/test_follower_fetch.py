"""The fetches of the lab's followers wait in their leader's purgatory: what puts them there, and what releases them."""

from __future__ import annotations

import pytest
from labs import process_of

from kafka_ctl import Lab, TopicPartition
from kafka_ctl.brokers.follower_fetch import FollowerFetch
from kafka_ctl.generation import GENERATIONS

ORDERS = TopicPartition("orders", 0)
CALM = {"auto.leader.rebalance.enable": False}
generations = pytest.mark.parametrize("generation", GENERATIONS)


def lab_with(records: int, generation: str = "2.0", partitions: int = 1) -> Lab:
    """Three replicas of each partition; broker 1 leads partition 0."""
    lab = Lab(brokers=3, generation=generation, seed=7, config=CALM)
    lab.create_topic("orders", assignment={n: [n % 3 + 1, (n + 1) % 3 + 1, (n + 2) % 3 + 1] for n in range(partitions)})
    lab.settle()
    for _ in range(records):
        lab.produce("orders", 0)
        lab.settle()
    return lab


def gauges(lab: Lab, broker: int) -> tuple[object, object]:
    """NumDelayedOperations and PurgatorySize of fetches."""
    shown = lab.metrics(broker)
    names = (f"{name},delayedOperation=Fetch" for name in ("NumDelayedOperations", "PurgatorySize"))
    return tuple(shown[name] for name in names)  # type: ignore[return-value]


def waiting(lab: Lab, leader: int) -> list[tuple[int, int]]:
    """Which followers' fetches wait at a leader, and from which offset each is."""
    lists = process_of(lab, leader).as_leader.fetch_purgatory.watchers.values()
    found = [op for watchers in lists for op in watchers if not op.is_completed]
    assert all(isinstance(op, FollowerFetch) for op in found)
    return sorted((op.request.replica, op.request.offset) for op in found)  # type: ignore[attr-defined]


@generations
def test_an_idle_leader_has_a_fetch_of_each_follower(generation: str) -> None:
    """Each record releases them; each comes back from the new end of the log.

    Those whose half second was over are on the list until somebody looks, as in Kafka.
    """
    listed = 2 if generation == "2.4" else 4
    with lab_with(1, generation) as lab:
        for end in (1, 2, 3):
            assert waiting(lab, 1) == [(2, end), (3, end)]
            assert gauges(lab, 1) == (2, listed)
            lab.produce("orders", 0)
            lab.settle()
        copied = [r for r in lab.trace.slice(action="copy") if r.broker == 2]
        assert len(copied) == 4
        lab.run_for(3600)  # a fetch that would bring nothing is not sent anew
        assert gauges(lab, 1) == (2, listed) and gauges(lab, 2) == (0, 0)


def test_where_nothing_was_written_nothing_waits() -> None:
    with lab_with(0, partitions=30) as lab:
        assert [gauges(lab, broker) for broker in lab.brokers] == [(0, 0)] * 3
        lab.produce("orders", 0)
        lab.settle()
        assert [gauges(lab, broker) for broker in lab.brokers] == [(2, 4), (0, 0), (0, 0)]


@pytest.mark.parametrize(("generation", "least", "most"), [("0.10", 500, 510), ("2.0", 500, 510), ("2.4", 0, 5)])
def test_a_high_watermark_releases_followers_since_2_4(generation: str, least: float, most: float) -> None:
    """Before KAFKA-8443 they hear of it when their fetch has waited for half a second."""
    with lab_with(1, generation) as lab:
        since = len(lab.trace)
        lab.produce("orders", 0)
        lab.settle()
        raised = {r.broker: r.time_ms for r in lab.trace[since:] if r.action == "high-watermark"}
        assert all(least <= raised[follower] - raised[1] <= most for follower in (2, 3))


def test_a_record_ends_the_half_second_of_a_high_watermark() -> None:
    """The fetch is completed once: by the record, not by its time as well."""
    with lab_with(1) as lab:
        since = len(lab.trace)
        for _ in range(3):
            lab.produce("orders", 0)
            lab.run_for(0.1)
        lab.settle()
        copied = [r for r in lab.trace[since:] if r.action == "copy"]
        assert sorted(r.broker or 0 for r in copied) == [2, 2, 2, 3, 3, 3]
        assert waiting(lab, 1) == [(2, 4), (3, 4)]


@generations
def test_a_leader_that_leads_no_more_lets_them_go(generation: str) -> None:
    """They wait at the next one then, the old leader among them."""
    with lab_with(2, generation) as lab:
        lab.kill(1)
        lab.settle()
        assert lab.partition(*ORDERS).leader == 2
        assert waiting(lab, 2) == [(3, 2)]
        lab.start(1)
        lab.settle()
        assert waiting(lab, 1) == [] and waiting(lab, 2) == [(1, 2), (3, 2)]
        lab.elect_preferred()
        lab.settle()
        assert lab.partition(*ORDERS).leader == 1
        assert waiting(lab, 1) == [(2, 2), (3, 2)] and waiting(lab, 2) == []


@generations
def test_who_fetches_no_more_has_none(generation: str) -> None:
    """A follower that lags, and one whose process has ended; both have one again afterwards."""
    with lab_with(1, generation) as lab:
        lab.lag(2, "orders", 0)
        assert waiting(lab, 1) == [(3, 1)]
        lab.kill(3)
        assert waiting(lab, 1) == []
        lab.settle()
        lab.catch_up(2)
        lab.start(3)
        lab.settle()
        assert waiting(lab, 1) == [(2, 1), (3, 1)]
        lab.delete_topic("orders")
        lab.settle()
        assert waiting(lab, 1) == ([] if generation != "0.10" else [(2, 1), (3, 1)])  # 0.10 does not delete by default


def test_completed_ones_are_purged() -> None:
    """Followers that come and go leave theirs on the list of a partition in which nothing happens."""
    with lab_with(1) as lab:
        purgatory = process_of(lab, 1).as_leader.fetch_purgatory
        purgatory.purge_interval = 3
        for _ in range(3):
            lab.lag(2, "orders", 0)
            lab.catch_up(2)
            lab.settle()
        lab.run_for(1)
        assert purgatory.watched <= purgatory.delayed + 3
        assert waiting(lab, 1) == [(2, 1), (3, 1)]
