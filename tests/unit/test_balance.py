"""The automatic rebalance as pure functions, beside what a controller does."""

from typing import Any

import pytest
from labs import play, until_quiet

from kafka_ctl import Costs, Lab
from kafka_ctl.balance import Candidate, balance, candidates
from kafka_ctl_course.figures.teaching import shares
from kafka_ctl_course.lesson_15 import BACK, CHECK, STORIES

LIVE = frozenset({1, 2, 3})
THREE = (1, 2, 3)


def misplaced(number: int, of: int, **changes: Any) -> list[Candidate]:
    """Partitions that prefer broker 1, the first of them led by broker 2."""
    found = [Candidate("orders", n, THREE, THREE, 2 if n < number else 1) for n in range(of)]
    return [each._replace(**changes) if each.leader == 2 else each for each in found]


@pytest.mark.parametrize(
    ("number", "of", "percentage", "elected"),
    [(1, 10, 10, 0), (2, 20, 10, 0), (3, 20, 10, 3), (1, 9, 10, 1), (0, 5, 0, 0), (1, 100, 0, 1), (10, 20, 50, 0)],
)
def test_more_than_a_percentage(number: int, of: int, percentage: int, elected: int) -> None:
    assert len(candidates(misplaced(number, of), LIVE, (), percentage)) == elected


def test_a_partition_that_never_had_a_leader_counts_and_is_not_misplaced() -> None:
    """One of ten that prefer broker 1 is led by another: no more than a tenth, as the controller finds too."""
    never = [Candidate("new", n, THREE, (), None) for n in range(5)]
    (row, *_) = balance([*misplaced(1, 5), *never], LIVE, (), 10)
    assert (row.broker, row.prefers, row.leads, row.misplaced, row.ratio) == (1, 10, 4, 1, 0.1)
    assert row.verdict.startswith("nothing")
    assert candidates([*misplaced(1, 5), *never], LIVE, (), 10, in_sync=False) == []


@pytest.mark.parametrize(
    ("changes", "live", "moving", "verdict"),
    [
        ({}, LIVE, (), "elects 4"),
        ({}, {2, 3}, (), "leaves out 4: the broker is dead"),
        ({"isr": (2, 3)}, LIVE, (), "leaves out 4: the preferred replica is not in the ISR"),
        ({}, LIVE, {("audit", 0)}, "leaves out 4: a reassignment is running"),
        ({"deleting": True}, LIVE, (), "not asked"),
    ],
)
def test_a_verdict_names_who_is_left_out(changes: Any, live: Any, moving: Any, verdict: str) -> None:
    given = misplaced(4, 4, **changes), live, moving, 10
    assert (len(candidates(*given)) == 4) == (verdict == "elects 4")
    assert next(row.verdict for row in balance(*given) if row.broker == 1) == verdict
    if "isr" in changes:
        assert len(candidates(*given, in_sync=False)) == 4


def test_what_is_not_above_or_not_asked_says_so() -> None:
    rows = balance(misplaced(1, 10), {*LIVE, 4}, (), 10)
    assert [row.verdict for row in rows] == ["nothing: 0.1 is not above 0.1", "not asked", "not asked", "not asked"]
    assert [(row.prefers, row.leads) for row in rows] == [(10, 9), (0, 1), (0, 0), (0, 0)]


@pytest.mark.parametrize("story", [name for name in STORIES if name != "broker 1 is back, and not in sync"])
def test_a_lab_foretells_its_next_check(generation: str, story: str) -> None:
    """Of each broker, as many elections as `lab.balance()` says; as a plug-in, the pure function does the same."""
    text = STORIES[story].removesuffix(CHECK)
    with Lab.replay(text) as given, given.fork(generation=generation) as lab:
        foretold = sum(int(row.verdict.split()[1]) for row in lab.balance() if row.verdict.startswith("elects"))
        assert len(play(lab, "run_for 310").slice(kind="election")) == foretold
        with lab.fork(rules={"rebalance": candidates}) as mine:
            assert [p.leader for p in mine.partitions()] == [p.leader for p in lab.partitions()]


def test_a_rule_of_ones_own_may_ignore_a_running_move() -> None:
    def heedless(partitions: list, live: frozenset, moving: frozenset, percentage: int) -> list:
        return candidates(partitions, live, (), percentage)

    text = STORIES["a move hangs"]
    with Lab.replay(text) as lab, lab.fork(rules={"rebalance": heedless}) as mine:
        numbers = [[sum(p.leader == id for p in each.partitions()) for id in (1, 2, 3)] for each in (lab, mine)]
        assert numbers == [[0, 9, 4], [4, 5, 4]] and not mine.violations


def test_shares_are_drawn_with_their_verdicts() -> None:
    with Lab(seed=7, costs=Costs(boot=0.0005)) as lab:
        until_quiet(lab.create_topic, "orders", partitions=12, replication_factor=3)
        for line in BACK.splitlines():
            lab.do(line)
        drawing = shares(lab.balance())
        assert repr(drawing).splitlines()[0] == "broker 1: prefers 4, leads 0, ratio 1: elects 4"
        assert drawing.svg.count("<rect") == 1 + 2 * 3 and "elects 4" in drawing.svg
        for broker in lab.brokers:
            lab.kill(broker)
        assert lab.balance() == []
    assert shares([]).text == ""
