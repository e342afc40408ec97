"""What simulated clusters are like: drawn from the seed, within bounds, at the given rates."""

from __future__ import annotations

from statistics import mean

import pytest

from kafka_ctl import BadInput, Lab, UnknownName
from kafka_ctl.history.workload import TROUBLES, Plan, Topic, Workload, plan, play, simulate

NOTHING = dict.fromkeys(TROUBLES, 0.0)


def test_a_seed_is_a_cluster() -> None:
    """Drawn the same way every time, and another one for another seed."""
    assert plan(7) == plan(7)
    assert len({plan(seed) for seed in range(50)}) == 50


def test_sizes_stay_within_the_workload() -> None:
    """Every size that is allowed comes up, and no other."""
    workload = Workload(brokers=(2, 5), topics=(1, 3), partitions={1: 1, 4: 1}, replication={1: 1, 3: 1})
    drawn = [plan(seed, 1, workload) for seed in range(300)]
    assert {p.brokers for p in drawn} == {2, 3, 4, 5}
    assert {len(p.topics) for p in drawn} == {1, 2, 3}
    assert {t.partitions for p in drawn for t in p.topics} == {1, 4}
    assert {t.replication_factor for p in drawn for t in p.topics if p.brokers > 2} == {1, 3}
    assert {t.replication_factor for p in drawn for t in p.topics if p.brokers == 2} == {1, 2}


def test_troubles_come_at_their_rates() -> None:
    """So many a day and, where the table says so, for each broker."""
    workload = Workload(brokers=(4, 4), per_day={"crash": 0.5}, rate=2)
    drawn = [plan(seed, 48, workload) for seed in range(400)]
    for name, trouble in TROUBLES.items():
        per_day = 0.5 if name == "crash" else trouble.per_day
        expected = per_day * 2 * 2 * (4 if trouble.each_broker else 1)
        seen = mean(sum(other == name for _, other in p.troubles) for p in drawn)
        assert seen == pytest.approx(expected, rel=0.15)
    assert all(0 <= at < 48 * 3600 for p in drawn for at, _ in p.troubles)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"per_day": {"meteor": 1.0}}, "unknown trouble 'meteor'; known: rolling_restart"),
        ({"brokers": (0, 3)}, r"brokers=\(0, 3\)"),
        ({"topics": (5, 2)}, r"topics=\(5, 2\)"),
        ({"rate": -1.0}, "rates cannot be negative"),
        ({"partitions": {}}, "partitions"),
        ({"replication": {0: 1.0}}, "replication"),
    ],
)
def test_a_workload_that_cannot_be(wrong: dict, says: str) -> None:
    """One clear error."""
    with pytest.raises(BadInput, match=says):
        Workload(**wrong)


@pytest.mark.parametrize("name", TROUBLES)
def test_every_trouble_does_what_it_says(name: str) -> None:
    """Each leaves its mark in the trace, and in the end every broker is back."""
    marks = {
        "rolling_restart": ("controlled-shutdown", {1, 2, 3}),
        "restart": ("controlled-shutdown", 1),
        "crash": ("kill", 1),
        "controller_crash": ("kill", 1),
        "session_expiry": ("expire_session", 1),
    }
    with Lab(brokers=3, seed=3) as lab:
        controller = lab.controller
        play(lab, Plan(3, (Topic("orders", 2, 3),), ((60.0, name),)), seed=3, hours=4)
        assert all(broker.state == "running" for broker in lab.brokers.values())
        assert lab.now == pytest.approx(4 * 3600)
        action, who = marks[name]
        hit = {r.broker for r in lab.trace if r.broker and r.action == action and r.time_ms >= 60_000}
        assert hit == who if isinstance(who, set) else len(hit) == who
        if name == "controller_crash":
            assert controller is not None
            assert hit == {controller.id}


def test_a_quiet_day_is_quiet() -> None:
    """Without troubles, topics are made and nobody leaves."""
    trace = simulate(1, hours=24, workload=Workload(per_day=NOTHING))
    assert not [r for r in trace if r.kind == "fault"]
    created = {r.topic for r in trace if (r.actor, r.action) == ("admin", "create_topic")}
    assert created == {topic.name for topic in plan(1, 24, Workload(per_day=NOTHING)).topics}


def test_a_simulation_is_its_seed() -> None:
    """Record for record; and no invariant of the machines breaks: nothing is refused as illegal."""
    busy = Workload(topics=(2, 4), rate=4)
    first, second = simulate(11, 12, workload=busy), simulate(11, 12, workload=busy)
    assert first.records == second.records
    assert not [r for r in first if r.error == "InvalidTransition"]
    assert simulate(12, 12, workload=busy).records != first.records


def test_an_unknown_generation_is_named() -> None:
    with pytest.raises(UnknownName, match="generation"):
        simulate(1, generation="3.7")
