"""200 incidents: each has its symptom, needs its fault, is solved by an operator, and repeats."""

from __future__ import annotations

import pytest

from kafka_ctl.incidents.incident import CAUSES, on_call
from kafka_ctl.incidents.kinds import TABLES, play
from tests.on_call import KINDS, Operator, opened, repair

SEEDS, TOGETHER = 200, 10


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_incidents_are_caused_and_solved(first: int):
    for seed in range(first, first + TOGETHER):
        incident = on_call(seed, logs_only=seed % 2 == 0)
        assert incident.alert, seed
        cause, component = Operator(incident).diagnose()
        score = incident.answer(cause, component)
        assert [part.points for part in score[:2]] == [40, 20], f"{seed}: {incident.page}\n{cause} {component}\n{score}"
        assert incident.solution().is_proven, seed


@pytest.mark.parametrize("name", KINDS)
def test_an_operator_finds_each_cause_and_repairs_what_can_be_repaired(name: str):
    incident = opened(name)
    cause, component = Operator(incident).diagnose()
    assert cause == KINDS[name].cause
    if TABLES.symptoms[KINDS[name].symptom].fixable:
        repair(incident, cause, component)
    score = incident.answer(cause, component)
    assert all(part.points for part in score), str(score)


@pytest.mark.parametrize("seed", range(8))
def test_a_wrong_answer_has_no_points(seed: int):
    incident = on_call(seed, logs_only=True)
    cause, component = Operator(incident).diagnose()
    other = next(name for name in CAUSES if name != cause)
    place = "zookeeper" if component != "zookeeper" else incident.page.split("brokers ")[-1].split(",")[0]
    assert [part.points for part in incident.answer(other, place)[:2]] == [0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_is_the_same_incident_byte_for_byte(seed: int):
    first, second = play(seed), play(seed)
    assert first.lab.story == second.lab.story
    assert first.lab.trace.text("all") == second.lab.trace.text("all")
