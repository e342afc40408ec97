"""What simulated clusters are like: drawn from the seed, within bounds, at the given rates."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from labs import until_quiet
from prose import Prose, source

from kafka_ctl import BadInput, Lab, UnknownName
from kafka_ctl.history import generate
from kafka_ctl.history.workload import INCIDENTS, Plan, Topic, Workload, plan, play, simulate

NOTHING = dict.fromkeys(INCIDENTS, 0.0)


def test_a_seed_is_a_cluster() -> None:
    """Drawn the same way every time, and another one for another seed."""
    assert plan(7) == plan(7)
    assert len({plan(seed) for seed in range(50)}) == 50


def test_sizes_stay_within_the_workload() -> None:
    """Every size that is allowed comes up, and no other."""
    workload = Workload(brokers=(2, 5), topics=(1, 3), partitions={1: 1, 4: 1}, replication={1: 1, 3: 1})
    drawn = [plan(seed, 1, workload) for seed in range(300)]
    assert {len(p.brokers) for p in drawn} == {2, 3, 4, 5}
    assert {rack for p in drawn for _, rack in p.brokers} == {"rack-0", "rack-1", "rack-2"}
    assert {rack for _, rack in plan(1, 1, Workload(racks=1)).brokers} == {None}
    assert {len(p.topics) for p in drawn} == {1, 2, 3}
    assert {t.partitions for p in drawn for t in p.topics} == {1, 4}
    assert {t.replication_factor for p in drawn for t in p.topics if len(p.brokers) > 2} == {1, 3}
    assert {t.replication_factor for p in drawn for t in p.topics if len(p.brokers) == 2} == {1, 2}


def test_troubles_come_at_their_rates() -> None:
    """So many a day and, where the table says so, for each broker."""
    workload = Workload(brokers=(4, 4), per_day={"crash": 0.5}, rate=2)
    drawn = [plan(seed, 48, workload) for seed in range(400)]
    for name, trouble in INCIDENTS.items():
        per_day = 0.5 if name == "crash" else trouble.per_day
        expected = per_day * 2 * 2 * (4 if trouble.each_broker else 1)
        seen = mean(sum(other == name for _, other in p.incidents) for p in drawn)
        assert seen == pytest.approx(expected, rel=0.15)
    assert all(0 <= at < 48 * 3600 for p in drawn for at, _ in p.incidents)


def test_some_clusters_are_luckier() -> None:
    """Within the spread, around the rate; without one all are alike, and everything else is drawn as before."""
    workload = Workload(brokers=(4, 4), spread=4)
    counts = sorted(len(plan(seed, 240, workload).incidents) for seed in range(200))
    alike = sorted(len(plan(seed, 240, Workload(brokers=(4, 4))).incidents) for seed in range(200))
    assert alike[0] / 5 < counts[0] < alike[0] / 2 and alike[-1] * 2 < counts[-1] < alike[-1] * 5
    assert plan(3, 1, workload)[:2] == plan(3, 1, Workload(brokers=(4, 4)))[:2]


WRONG: dict[str, list[Any]] = {
    "per_day": [{"meteor": 1.0}, {"crash": math.nan}, ["crash"], None],
    "config": [3],
    "brokers": [(0, 3), 3, (1, 2, 3), (True, 3), ("3", 4)],
    "topics": [(5, 2), ("a", "b")],
    "rate": [-1.0, "x", "2", math.nan],
    "partitions": [{}, [1, 2], {"a": 1}, {1.5: 1}],
    "replication": [{0: 1.0}, {1: "a"}, {1: math.inf}, {1: 1e300}],
    "racks": [0, 1.5],
    "spread": [0.5, math.inf],
    "unclean": [1.5, True],
}


@pytest.mark.parametrize("wrong", [{name: value} for name, values in WRONG.items() for value in values], ids=source)
def test_a_workload_that_cannot_be(prose: Prose, wrong: dict) -> None:
    """One clear error."""
    prose.refuses(BadInput, Workload, **wrong)
    with pytest.raises(BadInput, match=r"workload=.*: give a Workload"):
        simulate(1, 1, workload=wrong)


MARKS = {
    "rolling_restart": ("controlled-shutdown", {1, 2, 3, 4, 5, 6}),
    "restart": ("controlled-shutdown", 1),
    "quick_restart": ("bounce", 1),
    "crash": ("kill", 1),
    "controller_crash": ("kill", 1),
    "rack_failure": ("kill", 2),
    "session_expiry": ("expire_session", 1),
    "slow_follower": ("shrink-isr", 1),
    "gc_pause": ("pause", 1),
}
"""What a trouble leaves in the trace, and on which brokers or how many."""


def one(name: str, at: float = 60.0) -> Plan:
    """Six brokers on three racks, two topics, and a single trouble."""
    brokers = tuple((id, f"rack-{id % 3}") for id in range(1, 7))
    return Plan(brokers, (Topic("orders", 4, 3), Topic("users", 2, 3)), ((at, name),))


@pytest.mark.parametrize("name", MARKS)
def test_every_trouble_does_what_it_says(name: str) -> None:
    """Each leaves its mark on the right brokers, and in the end every broker is back and every ISR whole."""
    with Lab(brokers=dict(one(name).brokers), seed=3) as lab:
        controller = lab.controller
        play(lab, one(name), seed=3, hours=4)
        action, who = MARKS[name]
        hit = {r.broker for r in lab.trace if r.broker and r.action == action and r.time_ms >= 60_000}
        assert hit == who if isinstance(who, set) else len(hit) == who
        if name == "controller_crash":
            assert hit == {controller.id}
        if name == "rack_failure":
            assert len({id % 3 for id in hit if id}) == 1
        assert lab.now == pytest.approx(4 * 3600)
        assert all(broker.state == "running" for broker in lab.brokers.values())
        assert all(sorted(p.isr) == sorted(p.replicas) for p in lab.partitions())


def test_administrators_change_topics() -> None:
    """A new one, one with more partitions, one less, and other replicas."""
    with Lab(brokers=6) as lab:
        until_quiet(lab.create_topic, "orders", 4, 3)

        def after(name: str) -> dict[tuple[str, int], tuple[int, ...]]:
            play(lab, Plan(one(name).brokers, (), ((lab.now + 1, name),)), 1, lab.now / 3600 + 1)
            return {(p.topic, p.partition): p.replicas for p in lab.partitions()}

        before = after("new_topic")
        assert len({topic for topic, _ in before}) == 2
        grown = after("more_partitions")
        assert before.items() < grown.items()
        moved = after("reassignment")
        assert moved.keys() == grown.keys()
        assert moved != grown
        assert len({topic for topic, _ in after("deletion")}) == 1


def test_every_trouble_is_tried_here() -> None:
    """A new row in the table needs a test."""
    assert {*MARKS, "new_topic", "more_partitions", "reassignment", "deletion"} == set(INCIDENTS)


def test_the_last_broker_is_left_alone() -> None:
    """Only a rolling restart takes it; what finds nothing to act on does nothing."""
    with Lab(brokers=1) as lab:
        for name in INCIDENTS:
            play(lab, Plan(((1, None),), (), ((lab.now + 1, name),)), 1, lab.now / 3600 + 1)
        faults = [r.action for r in lab.trace if r.kind == "fault"]
        assert faults == ["start"]
        assert lab.brokers[1].state == "running"


def test_nothing_happens_to_a_cluster_without_a_running_broker() -> None:
    with Lab(brokers=1) as lab:
        lab.kill(1)
        for name in INCIDENTS:
            play(lab, Plan(((1, None),), (), ((lab.now + 1, name),)), 1, lab.now / 3600 + 1)
        assert [r.action for r in lab.trace if r.kind == "fault"] == ["kill"]


def test_topics_may_allow_unclean_elections() -> None:
    """The share that the workload says; the lab is told."""
    topics = [t for seed in range(300) for t in plan(seed, 1, Workload(unclean=0.25)).topics]
    assert mean(t.unclean for t in topics) == pytest.approx(0.25, abs=0.03)
    with Lab(brokers=1) as lab:
        play(lab, Plan(((1, None),), (Topic("orders", 1, 1, unclean=True),), ()), 1, 0.1)
        assert b"unclean.leader.election.enable" in lab.znodes()["/config/topics/orders"][0]


def test_a_quiet_day_is_quiet() -> None:
    """Without troubles, topics are made and nobody leaves."""
    trace = simulate(1, hours=24, workload=Workload(per_day=NOTHING))
    assert not [r for r in trace if r.kind == "fault"]
    created = {r.topic for r in trace if (r.actor, r.action) == ("admin", "create_topic")}
    assert created == {topic.name for topic in plan(1, 24, Workload(per_day=NOTHING)).topics}


def test_a_simulation_is_its_seed() -> None:
    """Record for record."""
    busy = Workload(topics=(2, 4), rate=4)
    first, second = simulate(11, 12, workload=busy), simulate(11, 12, workload=busy)
    assert first.records == second.records
    assert simulate(12, 12, workload=busy).records != first.records


def test_an_unknown_generation_is_named() -> None:
    with pytest.raises(UnknownName, match="generation"):
        simulate(1, generation="3.7")


@pytest.mark.parametrize("timeout", [2000, 18_000])
def test_a_workload_configures_its_brokers(timeout: int) -> None:
    """A crash is noticed between two thirds of the session timeout and a tick of 2 s after it."""
    crashing = Workload(
        brokers=(3, 3), per_day=NOTHING | {"crash": 2}, config={"zookeeper.session.timeout.ms": timeout}
    )
    trace = simulate(1, hours=24, workload=crashing)
    expired = trace.slice(kind="zk", action="expired")
    assert expired
    for each in expired:
        killed = trace.slice(stop=each.seq, action="kill")[-1]
        assert timeout * 2 / 3 <= each.time_ms - killed.time_ms <= timeout + 2000


def test_a_dataset_refuses_a_configuration_that_there_is_not(prose: Prose, tmp_path: Path) -> None:
    prose.refuses(UnknownName, generate, None, 1, 1, out=tmp_path / "out", workload=Workload(config={"colour": 1}))
    assert not (tmp_path / "out").exists()
