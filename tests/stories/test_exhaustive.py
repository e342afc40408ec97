"""Every order of what is under way: nothing is left out, nothing overtakes on one connection, nothing is done twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labs import process_of, until_quiet
from prose import Prose

from kafka_ctl.cli import commands as cli
from kafka_ctl.errors import BadInput
from kafka_ctl.explore.exhaustive import (
    STARTS,
    Branches,
    Case,
    Round,
    Search,
    SearchCounts,
    Tree,
    digest,
    exhaust,
    scenarios,
    try_all,
)
from kafka_ctl.explore.play import Failure, FirstFailure
from kafka_ctl.explore.search import account, shortest, story_text, write_story
from kafka_ctl.lab.commands import TOOLS
from kafka_ctl.lab.event_order import GivenOrder, connection
from kafka_ctl.lab.lab import Lab
from kafka_ctl.simulation.clock import VirtualClock
from kafka_ctl.simulation.loop import Timer
from kafka_ctl.zookeeper.memory.session import MemorySession
from tests.mutants import mutant


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three commands: six pairs, and one pair of tools."""
    starts = ("kill {other}", "delete_topic t", "add_partitions t {more}")
    monkeypatch.setattr("kafka_ctl.explore.exhaustive.STARTS", starts)


def orders(depth: int, events: int) -> list[str]:
    """The orders in which independent events come, tried as the search does it."""
    found, stack = [], [()]
    while stack:
        path: tuple[int, ...] = stack.pop()
        clock, reported = VirtualClock(), list[str]()
        for n in range(events):
            clock.later(n + 1.0, reported.append, "abcdef"[n])
        clock.later(0.5, reported.append, "!", background=True)
        branches = clock.loop.choose = Branches(clock.loop, path, depth, lambda left: False)
        clock.settle()
        found.append("".join(reported).replace("!", ""))
        taken = tuple(choice.taken for choice in branches.made)
        for place in range(len(taken) - 1, len(path) - 1, -1):
            stack += [(*taken[:place], other) for other in range(branches.made[place].of - 1, 0, -1)]  # type: ignore[misc]
        clock.close()
    return found


def test_every_order_is_tried_once() -> None:
    """Three events in 3! orders; no deeper than asked for; what nobody waits for is no choice."""
    assert sorted(orders(9, 3)) == ["abc", "acb", "bac", "bca", "cab", "cba"]
    assert sorted(orders(1, 3)) == ["abc", "bac", "cab"]


def test_nothing_overtakes_on_one_connection() -> None:
    """Of messages between one client and ZooKeeper only the first is a choice, in each direction."""
    behind = []

    class Last(GivenOrder):
        def __call__(self, pending: list[Timer]) -> Timer | None:
            chosen = super().__call__(pending)
            if chosen is None:  # only where there is no choice, and a periodic check comes first
                assert len(pending) == 1 and (loop.next_time or 0.0) < pending[0].when
                return None
            mine = [timer for timer in pending if connection(timer) == connection(chosen)]
            assert connection(chosen) is None or chosen is mine[0]
            behind.append(len(mine) - 1 if connection(chosen) else 0)
            return chosen

        def number(self, ready: list[Timer]) -> int:
            return len(ready) - 1

    with Lab(brokers=3, settle=False) as lab:
        loop = lab.world.clock.loop
        order = loop.choose = Last(loop, ())
        until_quiet(lab.create_topic, "t", 3, 3)
        assert max(of for _, of in order.made) > 2 and max(behind) > 0 and lab.controller is not None


def test_a_state_is_known_again() -> None:
    """Two runs that are alike have one digest; time that passes does not count, what happens does."""
    with Lab(seed=1) as one, Lab(seed=1) as two:
        assert digest(one) == digest(two)
        one.run_for(0.001)
        assert digest(one) == digest(two)
        one.kill(2)
        assert digest(one) != digest(two)


def test_only_what_counts_is_in_a_digest() -> None:
    """The numbers of records and tasks do not count; whose message is on its way does."""
    with Lab(seed=1) as one, Lab(seed=1) as two:
        for lab in (one, two):
            lab.kill(lab.controller.id)  # type: ignore[union-attr]
        two.trace.add("nobody", "fault", "nothing")
        for moment in range(300):
            assert digest(one) == digest(two), moment
            one.step()
            two.step()
    with Lab(seed=1) as one, Lab(seed=1) as two:
        for lab, broker in ((one, 1), (two, 3)):
            session = process_of(lab, broker).zk.session
            assert isinstance(session, MemorySession)
            session.state_changed("Nothing", None)
        assert digest(one) != digest(two)


def case(generation: str, *names: str) -> Case:
    return next(c for c in scenarios(generation, 2, 1) if tuple(line.name for line in c.commands) == names)


def test_a_pair_of_commands_in_every_order() -> None:
    """States that are met again are not gone into again."""
    pair = case("2.4", "kill", "delete_topic")._replace(depth=3)
    seen = try_all(pair)
    assert seen.finished == 1 and seen.paths > 5 and seen.states > 5 and not [k for k in seen.broken if k[2] is None]
    assert try_all(pair) == seen
    short = try_all(pair._replace(end=0.0))
    assert not short.finished and short.paths == 0


def test_a_path_is_a_story() -> None:
    """Every order can be told: its walk is the same run."""
    reported = []

    class Noted(Lab):
        def close(self) -> None:
            if not self.closed:
                reported.append(self.trace.records[:])
            super().close()

    pair = case("2.0", "bounce", "expire_session")._replace(depth=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafka_ctl.explore.exhaustive.Lab", Noted)
        tree = Tree(pair)
        for path in ((), (1,), (1, 0, 1)):
            made = tree.go(path)
            walk = pair._replace(path=tuple(choice.taken for choice in made)).walk
            with Lab.replay(walk.story) as lab:
                assert lab.story == walk.story
                assert lab.trace.records[: len(reported[-1])] == reported[-1]
    assert len({tuple(records) for records in reported}) == 3


def test_a_defect_is_found_and_reported_as_a_story(few: None, tmp_path: Path) -> None:
    """What is found is minimised and written as a story that breaks the same when it is opened."""
    search = exhaust("2.4", depth=1, jobs=1, mutant="cache-never-updated")
    found = next(f for f in shortest(search) if f.broken.name.startswith("I18 "))
    assert len(found.walk.commands) < len(found.task.walk.commands)
    path = write_story(found, tmp_path)
    assert "first after " in path.read_text("utf-8") and "; with the mutant cache-never-updated\n" in story_text(found)
    with mutant("cache-never-updated"), Lab.replay(path) as lab:
        assert "I18" in [v.invariant for v in lab.violations if not v.known]
    with Lab.replay(path) as lab:
        assert not [v for v in lab.violations if not v.known]


def test_a_defect_that_needs_an_order_is_reported_with_it() -> None:
    """In the order of time that rule holds; the story has the shortest order that shows it."""
    pair = case("2.0", "delete_controller", "delete_topic")
    with mutant("epoch-inherited") as defect:
        seen = try_all(pair._replace(depth=2))
        search = Search("2.0", 2, 1, [Round(2, 1, seen)])
        found = next(f for f in shortest(search) if f.broken.name.startswith(f"{defect.invariant} "))
        orders = [line for line in found.walk.commands if line.name == "order"]
        assert [line.args for line in orders] == [([1],)]
        with Lab.replay(found.walk.story) as lab:
            assert defect.invariant in [v.invariant for v in lab.violations if not v.known]
        with Lab.replay(found.walk.story.replace("order [1]\n", "")) as lab:
            assert defect.invariant not in [v.invariant for v in lab.violations]


def test_a_known_violation_is_one_line() -> None:
    """However many sentences it has: this one breaks I18 with two requests."""
    pairs = (c for c in scenarios("2.0", 2, 1) if [line.name for line in c.commands] == ["kill", "reassign"])
    seen = try_all(next(c for c in pairs if str(c.commands[0]) == "kill 2")._replace(depth=2))
    shown = account(Search("2.0", 2, 1, [Round(2, 1, seen)])).splitlines()
    assert [line.count("I18 all-agree: KAFKA-9212") for line in shown] == [0, 0, 1, 0]


def test_what_was_seen_adds_up(prose: Prose) -> None:
    pair, failure = case("2.4", "kill", "delete_topic"), Failure("I2 y", "of 1")
    total, part = SearchCounts(), SearchCounts(1, 2, 3, 4, {failure.kind: FirstFailure(1, pair, failure)})
    total.add(part)
    total.add(part)
    assert (total.finished, total.paths, total.states, total.again) == (2, 4, 6, 8)
    search = Search("2.4", 2, 1, [Round(1, 2, total), Round(2, 2, part)], seconds=3.0)
    prose(account(search))


def test_a_bounded_search_says_how_deep_every_order_was_tried(few: None) -> None:
    """One choice deep, then two, until the time is over; the deepest round that is complete counts."""
    with pytest.MonkeyPatch.context() as patch:
        clock = iter(range(10**6))
        patch.setattr("time.monotonic", lambda: next(clock))
        search = exhaust("2.4", depth=50, seconds=150, jobs=1)
    assert [r.complete for r in search.rounds] == [True] * (len(search.rounds) - 1) + [False]
    assert search.complete == search.rounds[-2] and search.rounds[-1].depth == len(search.rounds) > 1


def test_every_pair_is_a_scenario(generation: str) -> None:
    listed = list(scenarios(generation, 3, 2))
    tools = [start for start in STARTS if start.split()[0] in TOOLS]
    assert len(listed) == len(STARTS) * (len(STARTS) - 1) + len(tools) * (len(tools) - 1) // 2
    assert len({c.walk.story for c in listed}) == len(listed)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"brokers": 4}, {"brokers": 2.0}, {"partitions": 3}, {"depth": "3"}, {"depth": -1}, {"jobs": -1}),
        *({"seconds": "5"}, {"seconds": float("nan")}),
    ],
    ids=str,
)
def test_what_is_too_large_is_refused(wrong: dict[str, Any], prose: Prose) -> None:
    prose.refuses(BadInput, exhaust, "2.4", **wrong)


def test_the_command(few: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["explore", "--generation", "2.4", "--exhaustive", "--depth", "1", "--jobs", "1", "--out", str(tmp_path)]
    assert cli.status(words) == 0
    assert "  every order, 1 choice deep: 7 pairs, " in capsys.readouterr().out
    assert cli.status([*words, "--mutant", "cache-never-updated"]) == 1
    out = capsys.readouterr().out
    assert "BROKEN I18 all-agree" in out and "\nlab brokers=[1,2] generation=2.4" in out
    assert [path for path in tmp_path.iterdir() if f"# written to {path}" not in out] == []
    for option, value in (("--steps", "3"), ("--seed", "0"), ("--near", str(tmp_path))):
        assert cli.status([*words, option, value]) == 2
        assert f"{option} does not go with --exhaustive" in capsys.readouterr().err
    for option, value in (("--brokers", "3"), ("--partitions", "1"), ("--depth", "3")):
        assert cli.status(["explore", option, value]) == 2
        assert f"{option} goes with --exhaustive" in capsys.readouterr().err


def test_a_folder_that_refuses_stories_costs_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is printed, and then the refusal."""

    def refuse(found: str, folder: Path) -> None:
        folder.mkdir()

    replaced = {"shortest": lambda *_: ("first", "second"), "story_text": str, "write_story": refuse}
    for name, stand_in in replaced.items():
        monkeypatch.setattr(f"kafka_ctl.explore.search.{name}", stand_in)
    (tmp_path / "file").touch()
    assert cli.status(["explore", "--steps", "1", "--jobs", "1", "--out", str(tmp_path / "file" / "out")]) == 2
    reported = capsys.readouterr()
    assert reported.out.endswith("\nfirst\n\nsecond\n") and reported.err.endswith("out: Not a directory\n")
