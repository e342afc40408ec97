"""Why? Every election is decided again as it was, every record has an answer, and the lines that ran are marked."""

from __future__ import annotations

import pytest
from filmed import NASTY, every_kind, failover
from labs import eventful
from prose import Prose

from kafka_ctl import Generation, Lab
from kafka_ctl.errors import BadInput
from kafka_ctl.trace import Trace
from kafka_ctl.views.explain.elections import Inputs
from kafka_ctl.views.explain.why import explanations, why

STATE = '{"controller_epoch":1,"leader":3,"version":1,"leader_epoch":1,"isr":[1,2]}'
"""What somebody wrote by hand: the leader is not in the ISR."""


@pytest.mark.parametrize("generation", ["0.10", "2.0", "2.4"])
def test_elections_are_decided_again_as_they_were(generation: str) -> None:
    """From what the record says, for every strategy that occurred."""
    trace = eventful(generation)
    votes = [r for r in trace if r.kind == "election"]
    for vote in votes:
        again = Inputs(trace, vote).decide(str(vote.action))
        assert (again and (again.leader, again.isr, again.unclean)) == (
            (vote.leader, vote.isr, vote.target == "unclean") if vote.leader is not None else None
        ), vote
    assert {str(v.action) for v in votes} == {"offline", "reassign", "preferred", "controlled-shutdown"}
    assert {v.target for v in votes} == {"clean", "unclean", None}


def test_an_unclean_election_and_what_would_have_been(prose: Prose) -> None:
    trace = eventful("2.0")
    vote = next(r for r in trace if r.kind == "election" and r.target == "unclean")
    answer = why(trace, vote.seq)
    assert dict(answer.inputs)["Unclean"] == "allowed"
    prose(answer.rule, answer.decided, *(f"{name}: {then}" for name, then in answer.otherwise))
    executed = [line.text.strip() for line in answer.sources[0].lines if line.executed]
    assert "return Election(replica, (replica,), unclean=True)" in executed
    assert "return Election(leader, tuple(replica for replica in in_sync if replica in alive))" not in executed


def test_a_refusal_names_what_would_have_helped(prose: Prose) -> None:
    trace = eventful("2.0")
    failed = next(r for r in trace if r.kind == "partition" and r.error == "StateChangeFailed")
    answer = why(trace, failed.seq)
    prose(answer.rule, answer.decided, *(f"{name}: {then}" for name, then in answer.otherwise))


def test_a_broken_rule_says_what_must_be_true(prose: Prose) -> None:
    """With the ticket, the field that would have prevented it, and the check that saw it."""
    with Lab(brokers=3, generation=Generation("2.0", resets_dead_leader=False), seed=1) as lab:
        lab.create_topic("orders", assignment={0: [1, 2, 3]})
        lab.settle()
        lab.write_znode("/brokers/topics/orders/partitions/0/state", STATE)
        broken = next(r for r in lab.trace if r.kind == "violation" and r.action == "leader-in-isr")
        answer = lab.why(broken.seq)
    assert dict(answer.inputs)["Known as"] == "KAFKA-708"
    prose(answer.rule, *(f"{name}: {then}" for name, then in answer.otherwise))
    assert "write" in answer.causes[-1]
    assert any(line.executed and "self.broken(" in line.text for source in answer.sources for line in source.lines)


def test_every_record_has_an_answer() -> None:
    """Also in a trace that nobody's controller would make."""
    for trace in (failover(), eventful("2.4")):
        for record in trace:
            answer = why(trace, record.seq, "2.4")
            assert answer.title and answer.rule and answer.decided
            assert str(answer) and answer._repr_html_()
    nasty = Trace(records=every_kind(NASTY))
    for seq in range(len(nasty)):
        assert "<script>" not in why(nasty, seq)._repr_html_()
        assert next(explanations(nasty, [seq], Generation("2.0"), None))["title"]


def test_the_chain_leads_from_the_first_cause() -> None:
    trace = failover()
    vote = next(r for r in trace if r.kind == "election")
    answer = why(trace, vote.seq)
    assert "killed" in answer.causes[0]


def test_the_lab_answers_and_refuses() -> None:
    with Lab(brokers=1) as lab:
        assert "controller" in str(lab.why(len(lab.trace) - 1)).lower()
        with pytest.raises(BadInput, match="records 0 to"):
            lab.why(10**6)


def test_lines_of_late_records_are_marked_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer itself comes at once, whatever the length of the story; it says how to get the lines."""
    monkeypatch.setattr("kafka_ctl.views.explain.why.MOST_REPLAYED", 10)
    with Lab(brokers=2, seed=3) as lab:
        lab.create_topic("t", 1, 2)
        lab.settle()
        seq = next(record.seq for record in lab.trace if record.kind == "partition")
        late, asked, never = lab.why(seq), lab.why(seq, lines=True), lab.why(seq, lines=False)
        assert f"lab.why({seq}, lines=True) waits for that" in late.lines == never.lines
        assert not asked.lines and asked.rule == late.rule and asked.sources
