"""Elections: the cases of `data/elections.txt`, and what holds for every input."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import Prose

from kafka_ctl import election
from kafka_ctl.election import Election
from kafka_ctl.errors import BadInput

TABLES = Path(__file__).parents[1] / "data" / "elections.txt"
FUNCTIONS = {
    "offline": election.offline_leader,
    "reassigned": election.reassigned_leader,
    "preferred": election.preferred_leader,
    "controlled_shutdown": election.controlled_shutdown_leader,
    "head_of_isr": election.head_of_isr,
}


class Case(NamedTuple):
    kind: str
    arguments: tuple
    expected: Election | None


def values(word: str) -> list:
    """The values a word of a table stands for: two of them when it must not matter."""
    if word in ("yes", "no", "_"):
        return [True, False] if word == "_" else [word == "yes"]
    return [()] if word == "-" else [tuple(int(number) for number in word.split(","))]


def cases() -> Iterator:
    """A block is a name, a line of column names and one line per case, its outcome behind the bar."""
    for block in TABLES.read_text().split("\n\n")[1:]:
        kind, _, *rows = block.strip().splitlines()
        for row in rows:
            given_words, outcome = (half.split() for half in row.split("#")[0].split("|"))
            expected = None
            if outcome != ["none"]:
                leader, isr, *unclean = outcome
                expected = Election(int(leader), values(isr)[0], unclean == ["yes"])
            *sure, last = given_words
            for value in values(last):
                arguments = (*(values(word)[0] for word in sure), value)
                yield pytest.param(Case(kind, arguments, expected), id=f"{kind} {' '.join(row.split())}")


@pytest.mark.parametrize("case", list(cases()))
def test_table(case: Case) -> None:
    """Every line of the table."""
    assert FUNCTIONS[case.kind](*case.arguments) == case.expected


def test_the_table_covers_every_election() -> None:
    """No public function that returns an election is without cases."""
    functions = [function for _, function in inspect.getmembers(election, inspect.isfunction)]
    assert set(FUNCTIONS.values()) == {
        f for f in functions if str(f.__annotations__.get("return")).startswith("Election")
    }
    assert {case.values[0].kind for case in cases()} == set(FUNCTIONS)


brokers = st.lists(st.integers(1, 6), unique=True, max_size=5)


@given(brokers, brokers, brokers, st.booleans())
def test_offline(assignment: list, isr: list, live: list, unclean: bool) -> None:
    """A leader is live and assigned; only an unclean one comes from outside the ISR, and then it is alone."""
    result = election.offline_leader(assignment, isr, live, unclean)
    assert (result is None) == (not [b for b in assignment if b in live and (b in isr or unclean)])
    if result:
        assert result.leader in assignment
        assert result.leader in live
        assert result.leader in result.isr
        assert result.unclean == (result.leader not in isr)
        assert result.isr == ((result.leader,) if result.unclean else tuple(b for b in isr if b in live))
        assert unclean or not result.unclean


@given(brokers, brokers, brokers)
def test_reassigned_and_preferred(assignment: list, isr: list, live: list) -> None:
    """Neither touches the ISR; the preferred one is a reassigned one that considers one candidate."""
    moved = election.reassigned_leader(assignment, isr, live)
    fit = [b for b in assignment if b in live and b in isr]
    assert moved == (Election(fit[0], tuple(isr)) if fit else None)
    preferred = election.preferred_leader(assignment, isr, live)
    assert preferred == election.reassigned_leader(assignment[:1], isr, live)


@given(brokers, brokers, brokers, brokers)
def test_controlled_shutdown(assignment: list, isr: list, live: list, leaving: list) -> None:
    """Nobody who leaves leads or stays in the ISR; without anybody leaving it elects like a reassignment."""
    result = election.controlled_shutdown_leader(assignment, isr, live, leaving)
    assert result == election.reassigned_leader(assignment, [b for b in isr if b not in leaving], live)
    assert result is None or not set(result.isr) & set(leaving)


@given(brokers, brokers, brokers)
def test_any_iterable_will_do(assignment: list, isr: list, live: list) -> None:
    """Iterators, sets and tuples give what lists give."""
    assert election.offline_leader(iter(assignment), iter(isr), iter(live), True) == election.offline_leader(
        tuple(assignment), tuple(isr), set(live), True
    )
    assert election.controlled_shutdown_leader(iter(assignment), iter(isr), iter(live), iter(live[:1])) == (
        election.controlled_shutdown_leader(assignment, isr, live, live[:1])
    )


def test_the_brokers_are_several(prose: Prose) -> None:
    """Not a single id, and no text."""
    several = [1, 2, 3]
    for elect, *asked in (
        (election.offline_leader, 1, several, several),
        (election.offline_leader, several, "1", several),
        (election.reassigned_leader, several, None, several),
        (election.preferred_leader, several, several, 1),
        (election.controlled_shutdown_leader, 1, several, several, []),
        (election.controlled_shutdown_leader, several, several, several, 1),
        (election.head_of_isr, several, several, several, 1),
    ):
        prose.refuses(BadInput, elect, *asked)


@given(brokers, brokers, brokers)
def test_the_order_of_the_isr_never_decides(assignment: list, isr: list, live: list) -> None:
    """Any order of the ISR elects the same leader."""
    for elect in (election.offline_leader, election.reassigned_leader, election.preferred_leader):
        one, other = elect(assignment, isr, live), elect(assignment, sorted(isr), live)
        assert (one and one.leader) == (other and other.leader)
