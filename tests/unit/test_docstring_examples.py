"""The lines at the top of the docstrings of the classes that a reader meets first: pasted, they run and are true."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from prose import refuses

import kafka_ctl
from kafka_ctl import Costs, Generation, Lab, Record, ReplicaAssignment, TimingWheel, Trace, TransitionTable
from kafka_ctl.views.widget.live import Live
from kafka_ctl.views.widget.player import Player

CLASSES: tuple[type, ...] = (Lab, Trace, Record, Generation, TransitionTable, ReplicaAssignment, Costs, TimingWheel)
WIDGETS: tuple[type, ...] = (Live, Player)
"""The answers of `lab.live()` and `lab.player()`."""
MOST_LINES = 4
"""The most lines of an example below its import."""


def example(documented: type) -> list[str]:
    """The indented lines below the first sentence of a class."""
    parts = inspect.cleandoc(documented.__doc__ or "").split("\n\n")
    lines = parts[1].splitlines() if len(parts) > 1 else []
    assert lines and all(line.startswith("    ") for line in lines), f"{documented.__name__} begins without an example"
    return [line.removeprefix("    ") for line in lines]


def check(lines: list[str]) -> None:
    """Run the lines; one that ends with a comment is an expression with that value."""
    names: dict[str, Any] = {}
    assert lines[0].startswith("from kafka_ctl import ") and 2 <= len(lines) - 1 <= MOST_LINES
    try:
        for line in lines:
            code, _, value = line.partition("  # ")
            if value:
                assert repr(eval(code, names)) == value, line
            else:
                exec(code, names)
    finally:
        for made in names.values():
            if isinstance(made, Lab):
                made.close()


@pytest.mark.parametrize("documented", CLASSES + WIDGETS, ids=lambda documented: documented.__name__)
def test_the_example_of_a_class_runs(documented: type) -> None:
    assert documented in WIDGETS or documented.__name__ in kafka_ctl.__all__
    check(example(documented))


def test_a_wrong_example_is_noticed() -> None:
    with pytest.raises(AssertionError, match="epoch"):
        check(["from kafka_ctl import Lab", "lab = Lab(brokers=1)", "lab.controller.epoch  # 2"])
    refuses(AssertionError, "without an example", example, int)
