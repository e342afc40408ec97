"""Any moment of a run can be reached again: replay up to a record, fork, go back, compare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from labs import play, until_quiet
from prose import Prose

from kafka_ctl.errors import ApiException, BadInput, ConditionNotMet, UnknownName
from kafka_ctl.lab import time_travel
from kafka_ctl.lab.comparison import compare
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.recorded_run import undo

STORY = """\
lab brokers=[1,2,3] generation=2.0 seed=7
create_topic orders partitions=4 replication_factor=3
settle
kill 1
run_for 3
shutdown 2
start 1
settle
"""


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab.replay(STORY) as lab:
        yield lab


@pytest.mark.parametrize("share", [0, 0.03, 0.2, 0.4, 0.6, 0.8, 0.99])
def test_a_replay_stops_just_after_a_record_and_goes_on_as_if_it_had_not(lab: Lab, share: float) -> None:
    """Wherever it stops, inside the opening, a settle or a shutdown; and its own story leads to the same point."""
    until = int(share * len(lab.trace))
    with Lab.replay(STORY, until=until) as cut, Lab.replay(cut.story) as again:
        assert until < len(cut.trace) < until + 60
        assert cut.trace.records == lab.trace.records[: len(cut.trace)]
        assert cut.story.endswith(f"\nuntil {len(cut.trace) - 1}\n")
        for other in (cut, again):
            other.settle()
        assert again.trace.records == cut.trace.records
        assert again.now == cut.now


def test_what_was_stopped_goes_on(lab: Lab) -> None:
    """A shutdown that was cut short still ends, though nobody waits for it any more."""
    asked = next(r.seq for r in lab.trace if r.action == "shutdown")
    with Lab.replay(STORY, until=asked) as cut:
        assert cut.brokers[2].state != "down"
        cut.settle()
        assert cut.brokers[2].state == "down"


def test_a_replay_cannot_stop_where_nothing_is(prose: Prose, lab: Lab) -> None:
    prose.refuses(BadInput, Lab.replay, STORY, until=len(lab.trace))


def test_a_story_within_a_story_can_be_cut_again(lab: Lab) -> None:
    with lab.fork(at=400) as cut:
        until_quiet(cut.kill, 3)
        with cut.fork(at=200) as earlier, cut.fork(at=len(cut.trace) - 5) as later:
            assert "kill 3" not in earlier.story and "kill 3" in later.story
            assert later.trace.records == cut.trace.records[: len(later.trace)]


@pytest.mark.parametrize("story", ["until x\n", "until\n", "until 1 2 3\n", "until 1 x\n"])
def test_until_gives_the_number_of_a_record(prose: Prose, story: str) -> None:
    prose.refuses(BadInput, Lab.replay, f"lab\n{story}")


def test_a_fork_without_changes_is_the_same_run(prose: Prose, lab: Lab) -> None:
    with lab.fork() as same:
        assert same.trace.records == lab.trace.records
        prose(compare(lab, same))


def test_a_fork_with_changes_gets_the_same_commands_for_as_long(lab: Lab) -> None:
    at = next(r.seq for r in lab.trace if r.action == "broker_failure") + 1
    with lab.fork(at=at, generation="2.4") as other:
        assert other.generation.name == "2.4"
        given = [str(c) for c in other.commands]
        assert given[:-1] == [str(c) for c in lab.commands[: len(given) - 1]]
        assert other.now * 1000 == pytest.approx(lab.trace[at].time_ms, abs=50)
        with Lab.replay(other.story) as again:
            assert again.trace.records == other.trace.records


@pytest.mark.parametrize("changes", [{"generation": "0.10"}, {"config": {"delete.topic.enable": False}}], ids=str)
def test_a_fork_names_the_command_that_is_refused(prose: Prose, changes: dict[str, Any]) -> None:
    """The topic is deleted in one run and not in the other, as its line of the story says."""
    with Lab(brokers=2) as lab:
        play(lab, "create_topic t; settle; delete_topic t; settle; create_topic t; settle")
        prose.refuses(ApiException, lab.fork, **changes)
        assert lab.story.splitlines()[5] == "create_topic t"


def test_a_fork_of_a_fork_keeps_its_stops(lab: Lab) -> None:
    """Where the records are others, a stop is kept as a time."""
    with lab.fork(at=410) as cut:
        cut.settle()
        with cut.fork(seed=8) as other:
            assert [c.name for c in other.commands] == [c.name for c in cut.commands]


def test_the_settings_of_a_fork_are_added_to_those_given() -> None:
    """Without any, the story is the same; a setting that the lab has already is replaced."""
    given = {"min.insync.replicas": 2, "delete.topic.enable": False}
    with Lab(brokers=1, config=given) as lab, lab.fork(config={"delete.topic.enable": True}) as other:
        assert {key: other.config[key] for key in given} == given | {"delete.topic.enable": True}
    with Lab(brokers=1) as plain, plain.fork(seed=0) as same:
        assert same.story == plain.story


def test_the_same_story_with_unclean_elections(lab: Lab) -> None:
    """What a fork is for: where two runs part, and how they end."""
    story = """lab brokers=[1,2]\ncreate_topic t assignment='{"0":[1,2]}'\nsettle
kill 2\nsettle\nkill 1\nsettle\nstart 2\nsettle\n"""
    with Lab.replay(story) as clean, clean.fork(config={"unclean.leader.election.enable": True}) as unclean:
        difference = compare(clean, unclean)
        assert difference.left is not None and difference.left.kind == "election" and difference.left.error
        assert difference.right is not None and difference.right.target == "unclean"
        rows = {d.what: (d.left, d.right) for d in difference.differences}
        assert rows["t-0 state"] == ("OfflinePartition", "OnlinePartition")
        assert rows["t-0 leader"] == (1, 2)
        assert "t-0 replicas" not in rows
        assert re.search(r"^  t-0 leader +1 +2$", str(difference), re.MULTILINE)
        html = re.sub("<td[^>]*>", "<td>", difference._repr_html_())
        assert "<td>t-0 leader</td><td>1</td><td>2</td>" in html


def test_runs_of_different_lengths_are_compared_at_the_same_time(prose: Prose, lab: Lab) -> None:
    """A fork that stands where it began differs in nothing, however far the first run has gone since."""
    at = next(r.seq for r in lab.trace if r.action == "kill")
    with lab.fork(at=at) as other:
        same = compare(lab, other)
        assert same.differences == () and same.time_ms == pytest.approx(other.now * 1000)
        assert same.parted == len(other.trace) and same.right is None
        other.settle()
        later = compare(lab, other, seconds=other.now)
        assert {d.what for d in compare(lab, other).differences} == {d.what for d in later.differences} != set()
        assert compare(lab, other, seconds=0.0).differences == ()
        with prose.refused(BadInput):
            compare(lab, other, "soon")  # type: ignore[arg-type]


def test_each_violation_of_an_invariant_is_compared() -> None:
    """Two partitions in one run, the second of them in the other: the first one differs."""

    def broken(*partitions: int) -> Lab:
        lab = Lab(brokers=3)
        until_quiet(lab.create_topic, "t", assignment={0: [1, 2], 1: [2, 3]})
        for number in partitions:
            state = {"controller_epoch": 1, "leader": number + 1, "version": 1, "leader_epoch": 0, "isr": [9]}
            lab.write_znode(f"/brokers/topics/t/partitions/{number}/state", state)
        lab.run_for(1)
        return lab

    with broken(0, 1) as left, broken(1) as right:
        differ = {d.what for d in compare(left, right, seconds=max(left.now, right.now)).differences}
    assert differ == {"t-0 ISR", "t-0 zkVersion", "I2 leader-in-isr t-0"}


def test_steps_can_be_taken_back(lab: Lab) -> None:
    """`back` undoes what `step` and other commands did, moment by moment."""
    records, story = list(lab.trace.records), lab.story
    lab.back(3)
    assert lab.trace.records == records[: len(lab.trace)] and len(lab.trace) < len(records)
    lab.step(3)
    assert lab.trace.records == records
    lab.back(100)
    with Lab.replay(lab.story) as again:
        assert again.trace.records == lab.trace.records
    assert len(lab.story) < len(story) + 20


def test_a_command_can_be_undone(lab: Lab) -> None:
    """By the mechanism of `back`: the lab goes on with the run of the story without it, and its old world is closed."""
    story, world, attributes = lab.story, lab.world, set(vars(lab))
    lab.kill(3)
    lab.settle(limit=30)
    assert [str(undo(lab)), str(undo(lab))] == ["settle limit=30", "kill 3"]
    assert lab.story == story and lab.world is not world and set(vars(lab)) == attributes
    assert lab.checker is not None and lab.checker.world is lab.world and not lab.closed
    with Lab.replay(story) as again:
        assert again.trace.records == lab.trace.records
    with Lab() as fresh, pytest.raises(BadInput, match="nothing to undo"):
        undo(fresh)


def test_a_run_keeps_the_name_of_its_history() -> None:
    """In a file of several histories, a run that went back still has its own name."""
    with Lab(brokers=1, history="night") as lab:
        lab.kill(1)
        lab.back()
        with lab.fork() as same, lab.fork(seed=3) as other:
            assert {run.trace.history for run in (lab, same, other)} == {"night"}
        lab.run_for(1)
        undo(lab)
        assert lab.trace.history == "night"


def test_a_command_that_clients_have_seen_cannot_be_undone() -> None:
    """On real time nothing repeats, and a replay would have no listeners: refused, and the lab goes on."""
    with Lab(brokers=1, wire=True) as lab:
        lab.create_topic("t")
        with pytest.raises(BadInput, match=r"^undo needs"):
            undo(lab)
        assert lab.bootstrap_servers and lab.commands[-1].name == "create_topic"


def test_only_what_happened_can_be_taken_back(prose: Prose, lab: Lab) -> None:
    prose.refuses(BadInput, lab.back, 100_000)
    prose.refuses(BadInput, lab.back, 0)


def test_what_was_not_reached_is_not_reached_again() -> None:
    """A settle that gave up is part of its story; the story goes on after it."""
    with Lab() as lab:
        lab.create_topic("t", 3, 3)
        with pytest.raises(ConditionNotMet):
            lab.settle(limit=0.001)
        with pytest.raises(ConditionNotMet):
            Lab.replay(lab.story)
        lab.settle()
        with Lab.replay(lab.story) as again:
            assert again.trace.records == lab.trace.records


def test_a_long_run_is_rewound_by_one_command() -> None:
    """How fast is measured in `benchmarks/`."""
    with Lab(seed=1) as lab:
        until_quiet(lab.create_topic, "orders", 300, 3)
        before = len(lab.trace)
        lab.kill(2)
        assert len(lab.trace) > before > 5_000
        lab.back()
        assert len(lab.trace) <= before


@pytest.mark.parametrize("odd", [-1, 1.5, "3", True, [1], {}, float("nan"), float("inf"), b"a"])
def test_what_is_no_number_of_a_record_is_refused(lab: Lab, odd: Any) -> None:
    """In one sentence that says what was given, whoever is asked."""
    asked: list[Callable[[], object]] = [
        lambda: Lab.replay(lab.story, until=odd),
        lambda: lab.fork(at=odd),
        lambda: lab.back(odd),
        lambda: lab.fork(generation=odd),
        lambda: compare(lab, odd),
        lambda: Lab.replay(odd),
    ]
    for ask in asked:
        with pytest.raises((BadInput, UnknownName)) as refused:
            ask()
        assert repr(odd) in str(refused.value) or str(odd) in str(refused.value)
    if odd != {}:
        with pytest.raises(BadInput, match="a config cannot be"):
            lab.fork(config=odd)
    assert not lab.closed


@pytest.mark.parametrize(
    "story", ["", "lab brokers=3 brokers=4\n", "lab\nuntil -5\n", "lab\nuntil true\n", "lab\nlose 1 1\n", "x" * 5000]
)
def test_a_story_that_is_none(prose: Prose, story: str) -> None:
    prose.refuses(BadInput, Lab.replay, story)


def test_a_long_replay_says_how_far_it_is(
    prose: Prose, lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To whoever asks, or else on standard error; a short one says nothing."""
    with lab.fork():
        assert capsys.readouterr().err == ""
    reported: list[tuple[int, int]] = []
    monkeypatch.setattr(time_travel, "LOOK", 0xF)
    with lab.fork(at=300, progress=lambda there, total: reported.append((there, total))):
        assert len(reported) > 5 and reported == sorted(reported) and {total for _, total in reported} == {301}
    monkeypatch.setattr(time_travel, "LONG", 100)
    monkeypatch.setattr(time_travel, "EVERY", 0.0)
    size = len(lab.trace)
    lab.back(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(re.fullmatch(r"back: record \d+ of \d+ .* left", x) for x in lines)
    assert len(lab.trace) < size and not any(isinstance(x, time_travel.Progress) for x in lab.trace.listeners)
    with prose.refused(BadInput):
        lab.back(1, progress=3)  # type: ignore[arg-type]


def test_a_step_back_that_is_interrupted_undoes_nothing(lab: Lab) -> None:
    """What is told again is another lab until the end."""

    def stop(there: int, total: int) -> None:
        raise KeyboardInterrupt

    records, text = list(lab.trace.records), lab.story
    with pytest.raises(KeyboardInterrupt):
        lab.back(1, progress=stop)
    assert lab.trace.records == records and lab.story == text and not lab.closed
    lab.back(1)
    assert len(lab.trace) < len(records)


def test_moments_are_those_of_step(lab: Lab) -> None:
    """So many steps forward, so many back, over commands and callbacks."""
    with Lab.replay("lab brokers=2\nkill 1\n") as short:
        sizes = [len(short.trace)]
        for _ in range(9):
            short.step()
            sizes.append(len(short.trace))
        for n in (1, 3, 5):
            with short.fork() as one:
                one.back(n)
                assert len(one.trace) == sizes[-1 - n]


def test_a_wait_that_was_not_met_can_be_forked_and_gone_back_from(generation: str) -> None:
    """It is not met again, and raises nothing: also in another generation, with another seed, before its end."""
    with Lab(3, generation=generation) as lab:
        lab.create_topic("t", 3, 2)
        lab.kill(1)
        with pytest.raises(ConditionNotMet):
            lab.settle(0.1)
        with lab.fork() as fork:
            assert fork.story == lab.story and fork.trace.records == lab.trace.records and fork.now == lab.now
            fork.settle()
        for other in (lab.fork(at=len(lab.trace) - 1), lab.fork(generation="2.4"), lab.fork(seed=4), lab.fork(at=5)):
            with other:
                other.settle()
        size = len(lab.trace)
        lab.back()
        assert len(lab.trace) < size
