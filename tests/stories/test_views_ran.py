"""Which lines ran? For a rule of each sort the marked lines are compared with what a reader of the source expects."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from labs import eventful_lab, lab_of, play, until_quiet
from prose import Prose

from kafka_ctl import Lab
from kafka_ctl.trace import Record, Trace
from kafka_ctl.views.explain.source import Source, again, lines_of, loops_in
from kafka_ctl.views.explain.why import UNKNOWN, Explainer, Why
from kafka_ctl.views.explain.why import why as explain


def marked(source: Source) -> list[str]:
    """The lines with a mark, without their indentation."""
    return [line.text.strip() for line in source.lines if line.executed]


def ran(answer: Why) -> str:
    """Each function of an answer, with its marked lines."""
    return "\n".join(
        "\n".join([name, *marked(source)]) for name, source in zip(names(answer), answer.sources, strict=True)
    )


def names(answer: Why) -> list[str]:
    return [source.name.split(" in ")[0] for source in answer.sources]


def first(trace: Trace, **columns: object) -> Record:
    return next(iter(trace.slice(**columns)))


@pytest.fixture(scope="module")
def dying() -> Lab:
    """A broker dies, a topic is deleted meanwhile; then nobody is left who may lead; then a partition is moved."""
    lab = Lab(brokers=4, seed=3)
    lab.create_topic("a", partitions=3, replication_factor=3)
    play(lab, """create_topic b assignment='{"0":[1,2]}'; settle; kill 2; settle; delete_topic a; settle""")
    play(lab, """kill 1; settle; elect_preferred partitions='["b-0"]'; settle; start 1; settle""")
    play(lab, """reassign '{"b-0":[3,4]}'; settle""")
    return lab


def test_a_legal_move(prose: Prose, dying: Lab) -> None:
    """Of both machines; below the method that made it stands who wanted it."""
    for kind, action in (("partition", "assign"), ("replica", "join")):
        prose(ran(dying.why(first(dying.trace, kind=kind, action=action).seq)))


def test_an_illegal_move(prose: Prose, dying: Lab) -> None:
    """KAFKA-8001 and its like: a replica that is offline already is asked to be ineligible."""
    answer = dying.why(first(dying.trace, kind="replica", error="InvalidTransition").seq)
    prose(ran(answer))
    assert dict(answer.inputs)["Live"] == "[1, 3, 4]"


def test_an_offline_election_that_fails(prose: Prose, dying: Lab) -> None:
    """The election of a partition whose only member of the ISR is dead, and the refusal that follows from it."""
    for record in (
        first(dying.trace, kind="election", action="offline", error="NoReplicaOnline"),
        first(dying.trace, kind="partition", error="StateChangeFailed"),
    ):
        prose(ran(dying.why(record.seq)))


def test_a_preferred_election_that_is_refused(prose: Prose, dying: Lab) -> None:
    prose(ran(dying.why(first(dying.trace, kind="election", action="preferred", error="NoReplicaOnline").seq)))


def test_a_deletion_that_must_wait(prose: Prose, dying: Lab) -> None:
    """Only the pass through the loop that found it, up to the note."""
    answer = dying.why(first(dying.trace, action="deletion_ineligible").seq)
    prose(ran(answer))
    assert answer.rule.startswith("A deletion waits")
    assert answer.otherwise
    halted = dying.why(first(dying.trace, action="deletion_halted").seq)
    assert "offline replicas" in halted.decided


def test_a_step_of_a_reassignment(prose: Prose, dying: Lab) -> None:
    answer = dying.why(first(dying.trace, action="reassignment_progress").seq)
    prose(ran(answer), answer.decided)
    assert dict(answer.inputs)["ISR"] == "[1]"


def test_a_controlled_shutdown(prose: Prose) -> None:
    with lab_of("a", {0: [1, 2], 1: [2, 1]}, brokers=3, seed=1) as lab:
        lab.shutdown(1)
        prose(ran(lab.why(first(lab.trace, action="shutting_down_broker").seq)))
        stopped = lab.why(first(lab.trace, kind="replica", action="stop").seq)
        assert dict(stopped.inputs)["Shutting down"] == "[1]"


def test_a_write_that_is_fenced_off(prose: Prose) -> None:
    """Somebody deletes /controller while it creates partitions; another is elected before it has heard of that."""
    with Lab(brokers=3, generation="2.4", seed=1, config={"zookeeper.max.in.flight.requests": 1}) as lab:
        lab.create_topic("a", partitions=12, replication_factor=3)
        lab.run_for(0.0035)
        until_quiet(lab.delete_controller)
        fenced = first(lab.trace, kind="zk", action="multi", error="BADVERSION")
        answer = lab.why(fenced.seq)
        assert "KAFKA-6082" in answer.rule
        prose(ran(answer), *map(": ".join, answer.otherwise))


def test_an_election_decided_again_runs_the_same_lines(generation: str) -> None:
    """What is marked without a story is what ran with one; and every function a rule names did run."""
    with eventful_lab(generation) as lab:
        kinds = ("election", "partition", "replica", "broker", "controller", "violation")
        seqs = [r.seq for r in lab.trace if r.kind in kinds]
        reported, plain = (
            Explainer(lab.trace, lab.generation, how).whys([[s] for s in seqs]) for how in (lines_of(lab), None)
        )
    shown = set()
    for seq, executed, static in zip(seqs, reported, plain, strict=True):
        assert bool(executed) == bool(static)
        if not executed:  # no rule: why is not offered
            continue
        shown.add(lab.trace[seq].kind)
        if lab.trace[seq].kind == "election":
            assert static["lines"] or executed["sources"][:2] == static["sources"]
        if lab.trace[seq].kind != "violation":  # of an invariant's checks one has seen it
            named = [source["name"] for source in static["sources"]]
            assert named == [source["name"] for source in executed["sources"]][: len(named)], lab.trace[seq]
        assert all(any(mark for _, _, mark in source["lines"]) for source in executed["sources"])
    assert shown >= {"election", "partition", "replica", "broker", "controller"}


def test_a_trace_without_a_story_says_so(dying: Lab) -> None:
    """Its functions are shown, without a mark; an election's lines are known all the same."""
    record = first(dying.trace, action="deletion_ineligible")
    answer = explain(dying.trace, record.seq, "2.0")
    assert names(answer) == ["check_topics"]
    assert [marked(source) for source in answer.sources] == [[]]
    assert answer.lines == UNKNOWN
    assert UNKNOWN in str(answer) and UNKNOWN in answer._repr_html_()
    assert dying.why(record.seq).lines == ""
    vote = explain(dying.trace, first(dying.trace, kind="election").seq, "2.0")
    assert marked(vote.sources[0]) and not vote.lines


def test_what_no_command_did_is_not_known() -> None:
    """A record that does not come about again has no lines, and neither has one on real time."""
    with Lab(brokers=1) as lab:
        strange = lab.trace.add("somebody", "controller", "elected", broker=1)
        assert again(lab, [strange]) == {}
        assert lab.why(strange).lines == UNKNOWN
        lab.zookeeper = "127.0.0.1:2181"
        assert lines_of(lab) is None


def test_the_answer_comes_at_once_and_then_with_the_lines(dying: Lab) -> None:
    seq = first(dying.trace, action="deletion_ineligible").seq
    soon, later = Explainer(dying.trace, dying.generation, lines_of(dying)).explanations([seq])
    assert "Replaying" in soon["lines"] and later["lines"] == ""
    assert not any(mark for _, _, mark in soon["sources"][0]["lines"])
    assert any(mark for _, _, mark in later["sources"][0]["lines"])
    assert len(list(Explainer(dying.trace, dying.generation).explanations([seq]))) == 1


def test_watching_changes_nothing(dying: Lab) -> None:
    """The same answer every time, and whoever else was tracing goes on doing so."""
    before, story = sys.gettrace(), dying.story
    seqs = range(0, len(dying.trace), 97)
    runs = [again(dying, seqs) for _ in range(2)]
    assert runs[0] == runs[1] and set(runs[0]) == set(seqs)
    assert sys.gettrace() is before
    assert dying.story == story


def test_of_a_loop_under_way_the_present_pass_counts() -> None:
    """The second partition's replica is refused; of the first one's nothing is marked that only it did."""
    with lab_of("a", {0: [1, 2], 1: [3, 2]}, brokers=3, seed=1) as lab:
        lab.kill(2)
        until_quiet(lab.kill, 3)
        refused = first(lab.trace, kind="partition", error="StateChangeFailed")
        run = again(lab, [refused.seq])[refused.seq]
        once = next(call for call in run.stack if call.code.co_name == "_elect_once")
        loop = next(one for one in loops_in(once.code.co_filename).values() if one.first in once.executed)
    lines = Path(once.code.co_filename).read_text("utf-8").splitlines()
    executed = [lines[n - 1].strip() for n in sorted(once.executed) if loop.body <= n <= loop.last]
    assert executed[-1].startswith("self.failed(tp, ONLINE, no_leader(")
    assert not any(line.startswith("updates[tp] =") for line in executed)
