"""Why? Every election is decided again as it was, every record has an answer, and the lines that ran are marked."""

from collections.abc import Iterable
from typing import Any

import pytest
from filmed import NASTY, every_kind, failover
from labs import eventful, lab_of, play, until_quiet
from prose import Prose, refuses

from kafka_ctl import Generation, Lab
from kafka_ctl.election import Election
from kafka_ctl.errors import BadInput
from kafka_ctl.museum import find
from kafka_ctl.trace import Trace, details
from kafka_ctl.trace.record import Record
from kafka_ctl.views.explain.elections import Inputs, election_text
from kafka_ctl.views.explain.why import Explainer, why

STATE = '{"controller_epoch":1,"leader":3,"version":1,"leader_epoch":1,"isr":[1,2]}'
"""What somebody wrote by hand: the leader is not in the ISR."""


def test_elections_are_decided_again_as_they_were(generation: str) -> None:
    """From what the record says, for every strategy that occurred."""
    trace = eventful(generation)
    votes = [r for r in trace if r.kind == "election"]
    for vote in votes:
        again = Inputs(trace, vote).rule(str(vote.action))()
        assert (again and (again.leader, again.isr, again.unclean)) == (
            (vote.leader, vote.isr, vote.target == "unclean") if vote.leader is not None else None
        ), vote
    assert {str(v.action) for v in votes} == {"offline", "reassign", "preferred", "controlled-shutdown"}
    assert {v.target for v in votes} == {"clean", "unclean", None}


def agrees(lab: Lab) -> int:
    """Each answer about an election decides as the controller did; returns how many there are."""
    votes = [r for r in lab.trace if r.kind == "election"]
    for vote in votes:
        made = None if vote.leader is None else Election(vote.leader, vote.isr or (), vote.target == "unclean")
        assert why(lab.trace, vote.seq, lab.generation).decided == election_text(made)
    return len(votes)


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_replica_whose_log_directory_has_failed_is_not_elected_again(generation: str) -> None:
    """Nor in the answer; when its broker has started again, it may lead."""
    with lab_of("orders", {0: [2, 3, 1], 1: [2, 3, 1]}, brokers=3, generation=generation, seed=1) as lab:
        play(lab, "fail_log_dir 2; settle; bounce 2; settle; run_for 400; kill 3; settle")
        assert agrees(lab) >= 3
        lost = next(r for r in lab.trace if r.kind == "election")
        assert dict(lab.why(lost.seq).inputs)["Log directory failed"] == "[2]"


def test_a_partition_that_gets_no_leader_names_what_made_its_isr_small(prose: Prose) -> None:
    """The chain of causes has the last broker that died; an ISR of one is the other half of the story."""
    with lab_of("orders", {0: [3, 1], 1: [2, 3]}, brokers=3, seed=7) as lab:
        play(lab, "kill 1; settle; kill 3; settle")
        refused = next(r for r in lab.trace if r.action == "refuse")
        prose(str(lab.why(refused.seq)).partition("\n\n")[0])
        elected = [r.seq for r in lab.trace if r.kind == "election" and r.leader is not None]
        assert all("ISR since" not in dict(lab.why(seq).inputs) for seq in elected)


def test_the_elections_of_a_museum_are_decided_as_there() -> None:
    """Before KAFKA-3670 a controlled shutdown went by the ISR."""
    with find("KAFKA-3670").show() as run:
        assert agrees(run.broken) and agrees(run.fixed)


def test_a_dead_leader_is_not_counted_as_live() -> None:
    """Where an answer says what the death of the leader would have changed."""
    trace = eventful("2.0")
    vote = next(r for r in trace if r.kind == "election" and r.action == "preferred" and r.leader is not None)
    leader = int(details.named(vote.detail)["leader_before"])
    isr = tuple(broker for broker in vote.isr or () if broker != leader)
    outcome = dict(why(trace, vote.seq).otherwise)["if the reason were a dead leader"]
    assert leader in (vote.isr or ()) and outcome == election_text(Election(vote.leader or 0, isr))


def test_an_unclean_election_and_what_would_have_been(prose: Prose) -> None:
    trace = eventful("2.0")
    vote = next(r for r in trace if r.kind == "election" and r.target == "unclean")
    answer = why(trace, vote.seq)
    assert dict(answer.inputs)["Unclean election"] == "allowed"
    prose(answer.rule, answer.decided, *(f"{name}: {then}" for name, then in answer.otherwise))
    executed = [line.text.strip() for line in answer.sources[0].lines if line.executed]
    assert "return Election(replica, (replica,), unclean=True)" in executed
    assert "return Election(leader, tuple(replica for replica in in_sync if replica in alive))" not in executed


def test_whole_answers(prose: Prose) -> None:
    """Inputs, alternatives and causes, for the first record of each way to elect, move, refuse and hear."""
    trace, seen = eventful("2.4"), set[tuple[str, str, bool]]()
    for record in trace:
        way = record.kind, str(record.action), bool(record.error)
        if record.kind not in ("election", "partition", "replica", "controller", "broker") or way in seen:
            continue
        seen.add(way)
        answer = why(trace, record.seq, "2.4")
        rows = [*answer.inputs, ("decided", answer.decided), *answer.otherwise]
        if answer.inputs:
            prose(" | ".join([answer.title, *(f"{name}: {text}" for name, text in rows), *answer.causes[-1:]]))


def test_no_lines_of_an_election_that_the_record_does_not_determine() -> None:
    """Without a live replica nothing says whether an unclean election was allowed, so either lines may have run."""
    trace = eventful("2.4")
    offline = [vote for vote in trace if vote.kind == "election" and vote.action == "offline"]
    blocked = {vote.seq: Inputs(trace, vote).election_blocked_by for vote in offline}
    assert {*blocked.values()} == {True, False}
    for seq, is_blocked in blocked.items():
        answer = why(trace, seq, "2.4")
        assert any(line.executed for one in answer.sources for line in one.lines) is not is_blocked
        assert bool(answer.lines) is is_blocked


def test_the_target_of_a_move_is_that_of_the_last_request() -> None:
    """The topic's znode has it where the controller was asked; an older request through ZooKeeper is over."""
    with lab_of("a", {0: [1, 2]}, brokers=4, seed=3, generation="2.4") as lab:
        until_quiet(lab.reassign, {("a", 0): [3, 4]}, through="zookeeper")
        until_quiet(lab.reassign, {("a", 0): [1, 2]})
        votes = [record for record in lab.trace if record.kind == "election" and record.action == "reassign"]
        assert [Inputs(lab.trace, vote).target for vote in votes] == [(3, 4), (1, 2)]


def test_lines_are_looked_for_up_to_the_last_record_replayed_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """First an answer that says so, then one with the lines; of a later record there is one answer at once."""
    trace = failover()
    monkeypatch.setattr("kafka_ctl.views.explain.why.MOST_REPLAYED", 20)

    def nothing(seqs: Iterable[int], functions: Iterable[object]) -> dict[int, Any]:
        return {}

    for seq, answers in ((20, 2), (21, 1)):
        assert len(list(Explainer(trace, Generation("2.0"), nothing).explanations([seq]))) == answers


def test_a_conditional_write_of_the_epoch_is_no_fence() -> None:
    """A broker that is being elected writes /controller_epoch by itself; a controller's writes carry a check of it."""
    refused = {"actor": "controller-1", "kind": "zk", "path": "/controller_epoch", "error": "BADVERSION"}
    plain, fenced = (
        why(Trace(records=[Record(seq=0, time_ms=0.0, action=action, **refused)]), 0) for action in ("set", "multi")
    )
    assert "version" in plain.rule and "KAFKA-6082" not in plain.rule
    assert "KAFKA-6082" in fenced.rule


def test_an_illegal_move_names_the_ways_there_and_on(prose: Prose) -> None:
    for kind, source, target in (
        ("partition", "OnlinePartition", "NewPartition"),
        ("replica", "NewReplica", "ReplicaDeletionStarted"),
    ):
        ends = {"source": source, "target": target, "error": "InvalidTransition"}
        moved = Record(0, 0.0, "controller-1", kind, "move", "a", 0, broker=1, **ends)
        answer = why(Trace(records=[moved]), 0)
        prose(answer.rule, answer.decided, *(f"{name}: {then}" for name, then in answer.otherwise))


def test_a_refusal_names_what_would_have_helped(prose: Prose) -> None:
    trace = eventful("2.0")
    failed = next(r for r in trace if r.kind == "partition" and r.error == "StateChangeFailed")
    answer = why(trace, failed.seq)
    prose(answer.rule, answer.decided, *(f"{name}: {then}" for name, then in answer.otherwise))


def test_a_broken_rule_says_what_must_be_true(prose: Prose) -> None:
    """With the ticket, the field that would have prevented it, and the check that saw it."""
    with Lab(brokers=3, generation=Generation("2.0", resets_dead_leader=False), seed=1) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3]})
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
        assert next(Explainer(nasty, Generation("2.0")).explanations([seq]))["title"]


def test_the_chain_leads_from_the_first_cause() -> None:
    trace = failover()
    vote = next(r for r in trace if r.kind == "election")
    assert "killed" in why(trace, vote.seq).causes[0]


def test_the_lab_answers_and_refuses() -> None:
    with Lab(brokers=1) as lab:
        assert "controller" in str(lab.why(len(lab.trace) - 1)).lower()
        refuses(BadInput, "records 0 to", lab.why, 10**6)


def test_lines_of_late_records_are_marked_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer itself comes at once, whatever the length of the story; it says how to get the lines."""
    monkeypatch.setattr("kafka_ctl.views.explain.why.MOST_REPLAYED", 10)
    with Lab(brokers=2, seed=3) as lab:
        until_quiet(lab.create_topic, "t", 1, 2)
        seq = next(record.seq for record in lab.trace if record.kind == "partition")
        late, asked, never = lab.why(seq), lab.why(seq, lines=True), lab.why(seq, lines=False)
        assert f"lab.why({seq}, lines=True) waits for that" in late.lines == never.lines
        assert not asked.lines and asked.rule == late.rule and asked.sources
