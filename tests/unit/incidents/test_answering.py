"""An incident as a learner uses it: looks, commands, the budget, the answer and what is refused."""

from __future__ import annotations

import io
from datetime import date
from functools import cache

import pytest

from kafka_ctl import BadInput, Unavailable, UnknownName, on_call
from kafka_ctl.cli.commands import status
from kafka_ctl.incidents.incident import BUDGET, LOGS, LOOK_SECONDS, MOST_SEED, Incident
from tests.on_call import opened
from tests.prose import Prose

DOWN = "absent broker-down"


@pytest.fixture
def incident() -> Incident:
    return opened(DOWN)


@cache
def untouched() -> Incident:
    """An incident that is shared by the tests in which all is refused: it stays as it was."""
    return opened(DOWN)


@cache
def right(seed: int) -> tuple[str, str]:
    """The answer, as the construction has it."""
    solved = on_call(seed, logs_only=True)
    solved.answer("acks-1", "zookeeper")
    return solved.solution().cause, solved.solution().components[0]


def test_a_look_takes_time_and_no_command(incident: Incident):
    assert incident.clock == 0
    incident.lab.partitions()
    incident.logs("controller")
    assert (incident.clock, incident.left) == (2 * LOOK_SECONDS, BUDGET)


def test_with_logs_only_the_cluster_stands_still_and_no_command_can_be_given(prose: Prose):
    incident = opened(DOWN, logs_only=True)
    before = len(incident.logs())
    incident.lab.brokers  # noqa: B018
    assert (incident.clock, len(incident.logs())) == (2 * LOOK_SECONDS, before)
    prose.refuses(BadInput, incident.lab.heal)
    assert incident.left == 0


def test_commands_count_and_end_with_the_budget(incident: Incident, prose: Prose):
    incident.lab.heal()
    incident.lab.do("elect_preferred")
    incident.lab.run_for(30)
    assert incident.left == BUDGET - 4
    incident.lab.heal()
    prose.refuses(BadInput, incident.lab.heal)


def test_a_refused_command_costs_nothing(prose: Prose):
    incident = untouched()
    prose.refuses(BadInput, incident.lab.start, 10**6)
    prose.refuses(BadInput, incident.lab.do, 5)
    assert incident.left == BUDGET


@pytest.mark.parametrize("closed", ["trace", "story", "live", "why", "violations", "world", "disconnect", "fork"])
def test_what_would_tell_the_cause_is_closed(closed: str, prose: Prose):
    prose.refuses(BadInput, getattr, untouched().lab, closed)


def test_what_would_tell_the_cause_is_open_after_the_answer():
    incident = opened(DOWN)
    lab = incident.lab
    assert "trace" not in dir(lab)
    incident.answer("acks-1", "zookeeper")
    assert any(record.kind == "fault" for record in lab.trace)
    assert lab.story == incident.solution().story and lab.player() is not None
    assert {"trace", "story", "player"} < {*dir(lab)} and lab.generation.name in ("2.0", "2.4")
    lab.do("pause 13 3")
    lab.run_for(4000)


def test_after_the_answer_logs_alone_have_a_living_cluster_too():
    incident = opened(DOWN, logs_only=True)
    incident.answer("acks-1", "zookeeper")
    incident.lab.settle()
    incident.lab.kill(13)
    assert incident.lab.brokers[13].state == "down"


def test_a_link_opens_the_same_incident_in_the_same_mode():
    incident = opened(DOWN, logs_only=True)
    other = on_call(f"https://example.org/site/{incident.link()}")
    assert (other.seed, other.logs_only, other.page) == (incident.seed, True, incident.page)
    assert on_call(str(incident.seed)).logs_only is False


def test_the_incident_of_the_day_is_that_of_the_date():
    first, second = date(2026, 3, 1), date(2026, 3, 2)
    assert on_call("today", today=first).page == on_call("today", today=first).page
    assert on_call("today", today=first).seed != on_call("today", today=second).seed


def test_without_a_seed_one_is_drawn():
    incident = on_call()
    assert on_call(incident.seed).page == incident.page


@pytest.mark.parametrize("seed", [-1, 1.5, True, "tomorrow", "", "#on-call=", [1], 10**18, "#on-call=1" + 18 * "0"])
def test_a_seed_that_is_none_is_refused(seed: object, prose: Prose):
    with prose.refused(BadInput):
        on_call(seed)  # type: ignore[arg-type]


def test_the_link_of_the_greatest_seed_opens_its_incident():
    incident = on_call(MOST_SEED)
    assert on_call(incident.link()).page == incident.page


def test_a_day_is_a_date(prose: Prose):
    with prose.refused(BadInput):
        on_call("today", today="2026-03-02")  # type: ignore[arg-type]


def test_a_look_that_is_refused_takes_no_time(prose: Prose):
    incident = untouched()
    for look, *given in [("partitions", 5), ("log",), ("partition", "no", 0), ("metrics", 10**6), ("metrics",)]:
        prose.refuses(BadInput, getattr(incident.lab, look), *given)
    assert incident.clock == 0


def test_lines_in_the_terminal(
    incident: Incident, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], prose: Prose
):
    """`logs NAME` is `log NAME`, `page` is the page; what is refused is refused in one sentence, and takes no time."""
    lines = ["page", "logs server", "log", "log users 0", "metrics", "partitions 5", "run_for 1e3", "run_for soon"]
    lines += ["run_for", "partitons", "halp", "elect_prefered", "xyzzy 3"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*lines, "quit"])))
    assert status(["on-call", str(incident.seed)]) == 1
    out, err = capsys.readouterr()
    assert out.count(incident.page) == 2 and str(incident.logs()).strip() in out
    assert f"{LOOK_SECONDS:g} s, {BUDGET} commands> kafka-ctl" not in out and out.count(f"{LOOK_SECONDS:g} s, ") == 12
    prose(err)


def test_an_answer_names_known_things(prose: Prose):
    incident = untouched()
    prose.refuses(UnknownName, incident.answer, "gremlins", 1)
    prose.refuses(UnknownName, incident.answer, "broker-down", "broker 999")
    for component in (None, True, 1.0, [1]):
        prose.refuses(UnknownName, incident.answer, "broker-down", component)
    with prose.refused(UnknownName):
        incident.answer(["broker-down"], 1)  # type: ignore[arg-type]
    prose.refuses(BadInput, incident.solution)
    assert incident.score is None


def test_one_answer_closes_the_incident(incident: Incident, prose: Prose):
    cause, component = right(incident.seed)
    score = incident.answer(cause, f"broker {component}")
    assert [part.points for part in score[:2]] == [40, 20] and incident.score is score
    prose.refuses(BadInput, incident.answer, cause, component)


def test_logs_are_named_and_filtered(prose: Prose):
    incident = opened(DOWN, logs_only=True)
    assert all(incident.logs(name) for name in LOGS)
    assert all(" INFO starting" in line for line in incident.logs(contains="INFO starting").splitlines())
    prose.refuses(UnknownName, incident.logs, "syslog")
    for broker in (10**6, "1", [1]):
        with prose.refused(UnknownName):
            incident.logs("server", broker)  # type: ignore[arg-type]
    for contains in ("(", b"x"):
        with prose.refused(BadInput):
            incident.logs(contains=contains)  # type: ignore[arg-type]


def test_a_process_that_stands_still_answers_no_question_for_metrics(prose: Prose):
    incident = opened("absent long-pause")
    (broker,) = [id for id in incident.lab.brokers if f"Broker {id} is missing" in incident.page]
    prose.refuses(Unavailable, incident.lab.metrics, broker)
    prose.refuses(UnknownName, incident.lab.metrics, 10**6)


def test_a_process_that_stands_still_is_named_after_the_answer():
    incident = opened("absent long-pause")
    assert {broker.paused for broker in incident.lab.brokers.values()} == {None}
    incident.answer("acks-1", "zookeeper")
    assert {broker.paused for broker in incident.lab.brokers.values()} == {True, False}


def test_late_answers_have_fewer_points(incident: Incident):
    incident.lab.run_for(3600)
    assert {part.part: part.points for part in incident.answer(*right(incident.seed))}["time"] == 0


def test_leaderless_partitions_since_the_page_cost_points():
    incident = opened("offline broker-down")
    incident.lab.run_for(3000)
    lost = {part.part: part for part in incident.answer(*right(incident.seed))}["lost since the page"]
    assert lost.points == 0 and "partition-seconds" in lost.reason
