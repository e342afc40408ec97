"""Every step of every golden trace and, by `check`, exhibit: a "why?" that is offered says more than an empty rule."""

from __future__ import annotations

import golden
import pytest
from labs import until_quiet
from prose import Prose

from kafka_ctl import Generation, Lab
from kafka_ctl.invariants import INVARIANTS
from kafka_ctl.trace.catalogue import catalogue
from kafka_ctl.views.explain.rules import SHOULD, decider
from kafka_ctl.views.explain.why import Explainer, Why, is_explained, is_offered, most_relevant, why
from kafka_ctl.views.steps import Step, steps

EMPTY = ("it follows from", "follows from", "it has no cause", "logs:")
"""How a rule begins that says nothing."""


def asked(lab: Lab) -> list[tuple[Step, Why | None]]:
    """Every step of a film of the cluster, with its answer where one is offered."""
    trace, generation = lab.trace, lab.generation
    return [
        (
            step,
            why(trace, most_relevant(trace, step.seqs), generation)
            if is_offered(trace, step.seqs, generation)
            else None,
        )
        for step in steps(trace.records)
    ]


def check(lab: Lab) -> int:
    """Each answer has a rule, a decision and an alternative; those of a controller's steps say where Kafka has them."""
    answers = asked(lab)
    for step, answer in answers:
        if answer is None:
            asking = {(r.kind, r.actor) for r in step.records}
            assert all(kind in ("fault", "event", "request", "response", "broker", "zk") for kind, _ in asking), step
            assert not any(actor.startswith("controller") for _, actor in asking), step
            continue
        record = lab.trace[most_relevant(lab.trace, step.seqs)]
        assert is_explained(lab.trace, record, lab.generation)
        assert len(answer.rule) > 20 and not answer.rule.lower().startswith(EMPTY), (record, answer.rule)
        assert answer.decided and answer.decided != answer.rule, record
        assert answer.inputs, record
        assert "{" not in answer.rule + "".join(map("".join, answer.otherwise)), (record, answer)
        if record.actor.startswith("controller"):
            assert answer.otherwise, record
            assert answer.kafka.startswith("Kafka "), (record, answer.sources)
            assert answer.sources, record
    return sum(answer is not None for _, answer in answers)


@pytest.mark.parametrize("name", [path.stem for path in golden.STORIES])
def test_every_why_of_a_golden_trace_says_something(name: str) -> None:
    with golden.played(name) as lab:
        assert check(lab) > 20


def test_what_should_have_happened_is_known_of_every_invariant() -> None:
    assert SHOULD.keys() == {invariant.id for invariant in INVARIANTS}


def test_reasons_name_functions() -> None:
    """Every rule's functions exist, and it names what would differ."""
    for key, rule in catalogue().rules.items():
        assert rule.by and all(callable(decider(name)) for name in rule.by), key
        assert rule.otherwise and rule.outcome, key


def test_what_is_not_explained_is_not_offered(prose: Prose) -> None:
    """A fault is nobody's decision: its step has no answer in a page, and asked for all the same it says what it is."""
    with Lab(brokers=2, seed=7) as lab:
        until_quiet(lab.kill, 2)
        fault = next(r.seq for r in lab.trace if r.kind == "fault")
        answered = next(r.seq for r in lab.trace if r.kind == "response" and not r.error)
        assert not is_offered(lab.trace, [fault], lab.generation)
        assert Explainer(lab.trace, Generation("2.0")).whys([[fault], []]) == [None, None]
        prose(why(lab.trace, fault).rule, why(lab.trace, answered).rule)
        film = lab.player().film
        kinds = {frame["kind"]: frame["why"] for frame in film["frames"]}
        assert kinds["fault"] is False and kinds["controller"] is True and kinds["start"] is False
