"""200 incidents: each has its symptom, needs its fault, is solved by an operator, and repeats."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_ctl.incidents.incident import CAUSES, LATE_SECONDS, PROMPT_SECONDS, on_call
from kafka_ctl.incidents.kinds import TABLES, play
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course import GUESSES
from tests.on_call import KINDS, Operator, opened, repair

SEEDS, TOGETHER = 200, 10
DATA = Path(__file__).parents[1] / "data"
PLACE = re.compile(r"(\{\w+\}|\.\.\.)")
"""A place in a text, and what the lab does not know."""


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_incidents_are_caused_and_solved(first: int):
    for seed in range(first, first + TOGETHER):
        incident = on_call(seed, logs_only=seed % 2 == 0)
        assert incident.alert, seed
        cause, component = Operator(incident).diagnose()
        score = incident.answer(cause, component)
        assert [part.points for part in score[:2]] == [40, 20], f"{seed}: {incident.page}\n{cause} {component}\n{score}"
        assert incident.solution().is_proven, seed
        incident.score = None
        other = next(name for name in CAUSES if name != cause)
        place = "zookeeper" if component != "zookeeper" else incident.page.split("brokers ")[-1].split(",")[0]
        wrong = incident.answer(other, place)
        if sum(part.points for part in wrong[:2]) == 0:  # of two brokers that do not reach each other both are right
            assert wrong.percent == 0, f"{seed}: {wrong}"


@pytest.mark.parametrize("name", KINDS)
def test_an_operator_finds_each_cause_and_repairs_what_can_be_repaired(name: str):
    """The page and the link name neither cause nor kind."""
    incident = opened(name)
    shown = f"{incident.page} {incident.link()} {incident!r}"
    assert len(incident.page.splitlines()) == 3
    assert not any(each in shown for each in CAUSES)
    cause, component = Operator(incident).diagnose()
    assert cause == KINDS[name].cause
    if TABLES.symptoms[KINDS[name].symptom].fixable:
        repair(incident, cause, component)
    score = incident.answer(cause, component)
    assert all(part.points for part in score), str(score)


FIXABLE = [name for name, kind in KINDS.items() if TABLES.symptoms[kind.symptom].fixable]


@pytest.mark.parametrize("name", FIXABLE)
def test_no_incident_repairs_itself(name: str):
    """The symptom stays until a command is given, for as long as an answer has points for its time."""
    incident = opened(name)
    for seconds in (PROMPT_SECONDS, LATE_SECONDS - PROMPT_SECONDS):
        incident.lab.run_for(seconds)
        assert incident.alert


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("refused min-isr", "delete_topic {t}"),
        ("refused slow-follower", "kill {l}"),
        ("moving throttle", "delete_topic {t}"),
        ("offline long-pause", "delete_topic {t}"),
        ("idle preferred-order", "kill {l}"),
        ("stale cut-connection", "kill {x}"),
        ("deleting broker-down", "delete_znode /admin/delete_topics/{t}"),
        ("absent broker-down", "write_znode /brokers/ids/{l} '{{}}'"),
    ],
)
def test_a_symptom_without_its_subject_is_not_gone(name: str, command: str):
    incident = opened(name)
    same = play(incident.seed)
    names, (right, *_) = same.names, same.components
    incident.lab.do(command.format(**names))
    incident.lab.run_for(60)
    _, _, _, repaired, lost = incident.answer(name.split()[1], right)
    assert incident.alert and not repaired.points
    assert (lost.points == 0) == command.startswith("delete_topic"), lost


def test_a_repair_without_a_diagnosis_has_few_points():
    """Heal, and name the most frequent cause and the first broker: once for each kind of incident."""
    scores = []
    for name in KINDS:
        incident = opened(name)
        incident.lab.heal()
        incident.lab.run_for(90)
        scores.append(incident.answer("broker-down", min(incident.lab.brokers)).percent)
    assert sum(scores) / len(scores) < 20 and scores.count(0) > len(scores) / 2, scores


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_lines_of_the_server_log_are_those_of_kafka(generation: str):
    """Each text of an incident's `server.log` fits Kafka's own line."""
    own = {}
    for row in (DATA / "server_log.txt").read_text("utf-8").splitlines():
        if not row.startswith("#"):
            key, generations, line = row.split(" | ")
            own.update({(*key.split(), each): line for each in generations.split()})
    for (kind, action, *only), (file, text) in TABLES.lines.items():
        if file == "server" and only in ([], [generation]):
            form = "".join(".*" if n % 2 else re.escape(part) for n, part in enumerate(PLACE.split(text)))
            assert re.fullmatch(form, own.pop((kind, action, generation))), text
    assert {key for key in own if key[-1] == generation} == set()


def test_each_symptom_has_several_causes():
    for symptom in TABLES.symptoms:
        assert len({kind.cause for kind in TABLES.kinds if kind.symptom == symptom}) > 1, symptom


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_is_the_same_incident_byte_for_byte(seed: int):
    first, second = play(seed), play(seed)
    assert first.lab.story == second.lab.story
    assert first.lab.trace.text("all") == second.lab.trace.text("all")


def test_the_pause_of_guess_27_c_ends_no_session():
    """A client's last ping is up to a third of the timeout old, so in this cluster a pause of 5 s is long enough."""
    timeout, pause = map(int, re.findall(r"(\d+) s\b", GUESSES["27.c"].text)[:2])
    incident = on_call(30)
    incident.answer("long-pause", 12)
    until, _, _ = incident.solution().story.partition("pause 12")
    for seconds, ends in ((pause, 0), (5, 1)):
        with Lab.replay(until) as lab:
            assert lab.config["zookeeper.session.timeout.ms"] == 1000 * timeout
            since = len(lab.trace)
            lab.pause(12, seconds)
            lab.run_for(30)
            assert len(lab.trace.slice(since, kind="zk", action="expired")) == ends
