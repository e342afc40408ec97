"""Every order of what is under way: nothing is left out, nothing overtakes on one connection, nothing is done twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_ctl import cli
from kafka_ctl.errors import BadInput
from kafka_ctl.explore.exhaustive import STARTS, Chooser, Seen, Task, exhaust, scenarios, try_all
from kafka_ctl.explore.report import account
from kafka_ctl.explore.state import digest
from kafka_ctl.lab.clock import VirtualClock
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.mutants import mutant


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    clock = VirtualClock()
    yield clock
    clock.close()


def orders(depth: int, events: int) -> list[str]:
    """The orders in which independent events come, tried as the search does it."""
    found, stack = [], [()]
    while stack:
        choices: tuple[int, ...] = stack.pop()
        clock, told = VirtualClock(), list[str]()
        for n in range(events):
            clock.later(n + 1.0, told.append, "abcdef"[n])
        clock.later(0.5, told.append, "!", background=True)
        chooser = clock.loop.choose = Chooser(choices, depth, lambda place: False)
        clock.settle()
        found.append("".join(told))
        taken = tuple(choice.taken for choice in chooser.made)
        for place in range(len(chooser.made) - 1, len(choices) - 1, -1):
            stack += [(*taken[:place], other) for other in range(chooser.made[place].of - 1, 0, -1)]  # type: ignore[misc]
        clock.close()
    return found


def test_every_order_is_tried_once() -> None:
    """Three events in 3! orders; no deeper than asked for; what nobody waits for is no choice."""
    assert sorted(orders(9, 3)) == ["abc", "acb", "bac", "bca", "cab", "cba"]
    assert sorted(orders(1, 3)) == ["abc", "bac", "cab"]


def test_nothing_overtakes_on_one_connection() -> None:
    """Of messages between one client and ZooKeeper only the first is a choice, in each direction."""
    with Lab(brokers=2, settle=False) as lab:
        clock = lab._world.clock
        assert isinstance(clock, VirtualClock)
        offered: list[list[str]] = []

        def first(pending: list) -> object:
            names = [getattr(t.callback, "__qualname__", "") for t in pending]
            offered.append(names)
            return Chooser((), 0, lambda place: False)(pending)

        clock.loop.choose = first  # type: ignore[assignment]
        lab.settle()
        assert max(map(len, offered)) > 2 and lab.controller is not None


def test_a_state_is_known_again() -> None:
    """Two runs that are alike have one digest; time that passes does not count, what happens does."""
    with Lab(seed=1) as one, Lab(seed=1) as two:
        assert digest(one) == digest(two)
        one.run_for(0.001)
        assert digest(one) == digest(two)
        one.kill(2)
        assert digest(one) != digest(two)


def test_a_pair_of_commands_in_every_order() -> None:
    """States that are met again are not gone into again."""
    walk = next(w for w in scenarios("2.4", 2, 1) if [c.name for c in w.commands[-2:]] == ["kill", "delete_topic"])
    seen = try_all(Task(walk, 3))
    assert seen.complete and seen.paths > 5 and seen.states > 5 and not [k for k in seen.broken if k[2] is None]
    assert try_all(Task(walk, 3)) == seen
    short = try_all(Task(walk, 3, seconds=0.0))
    assert not short.complete and short.paths == 0


def test_a_defect_is_found_in_any_order() -> None:
    walk = next(w for w in scenarios("2.4", 2, 1) if [c.name for c in w.commands[-2:]] == ["kill", "elect_preferred"])
    with mutant("cache-never-updated"):
        seen = try_all(Task(walk, 1))
    assert any(name.startswith("I18 ") for name, _, known in seen.broken if known is None)


def test_what_was_seen_adds_up() -> None:
    total, part = Seen(), Seen(1, 2, 3, 4, complete=False)
    total.add(part)
    total.add(part)
    assert (total.scenarios, total.paths, total.states, total.again, total.complete) == (2, 4, 6, 8, False)
    assert "not every order, for the time was over: 6 states on 4 paths, 8 met again" in account(total, 3)


@pytest.mark.parametrize("generation", ["0.10", "2.0", "2.4"])
def test_every_pair_is_a_scenario(generation: str) -> None:
    listed = list(scenarios(generation, 3, 2))
    assert len(listed) == len(STARTS) * (len(STARTS) - 1)
    assert len({w.story for w in listed}) == len(listed)


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(BadInput, match="4 brokers and 1 partitions: there can be 2 or 3, and 1 or 2"):
        exhaust("2.4", brokers=4)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explore", "--generation", "2.4", "--exhaustive", "--depth", "1", "--seconds", "2", "--jobs", "1"]
    assert cli.status(words) == 0
    assert "110 pairs of commands, 1 choices deep, " in capsys.readouterr().out
    assert cli.status([*words, "--mutant", "x"]) == 2
    assert "do not go with --exhaustive" in capsys.readouterr().err
