"""What a mutant is, and how it is switched on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kafka_ctl.errors import UnknownName

Function = Callable[..., Any]
Defect = Callable[[Function], Function]
"""Makes the function that is wrong from the one that is right."""


class Mutant(NamedTuple):
    """A defect: the invariant that notices it, what is wrong, which function is replaced, and what makes the new one.

    `generation` is one that is sound in this respect, so that whatever is broken is the defect's doing.
    """

    name: str
    invariant: str
    sentence: str
    place: Any
    function: str
    defect: Defect
    generation: str


MUTANTS: dict[str, Mutant] = {}
"""All mutants by name."""


def seeded(invariant: str, place: Any, function: str, generation: str = "2.4") -> Callable[[Defect], Defect]:
    """Register what is decorated as a mutant that replaces this function of a class or module."""

    def register(defect: Defect) -> Defect:
        name = defect.__name__.replace("_", "-")
        sentence = " ".join((inspect.getdoc(defect) or "").split())
        MUTANTS[name] = Mutant(name, invariant, sentence, place, function, defect, generation)
        return defect

    return register


IMPOSSIBLE: dict[tuple[str, str], str] = {
    ("epochs-unchecked", "0.10"): "a follower truncates to its high watermark, and compares no epochs (KIP-101)",
    ("epoch-inherited", "2.4"): "the transaction that creates /controller raises the epoch (KAFKA-6082)",
    ("fence-dropped", "0.10"): "writes have no fence (KAFKA-6082)",
    ("fence-dropped", "2.0"): "writes have no fence (KAFKA-6082)",
    ("conflict-is-final", "0.10"): "its own write is no conflict (KAFKA-1382); after another's, the leader shrinks",
    ("newest-first", "0.10"): "several threads work on events, in no promised order (KAFKA-5028)",
}
"""Mutants by name, generations in which they would change nothing that was promised, and why."""


@contextmanager
def mutant(name: str) -> Iterator[Mutant]:
    """Switch a defect on for a while, in this process; UnknownName lists those there are."""
    if name not in MUTANTS:
        raise UnknownName("mutant", name, MUTANTS)
    chosen = MUTANTS[name]
    original = getattr(chosen.place, chosen.function)
    setattr(chosen.place, chosen.function, chosen.defect(original))
    try:
        yield chosen
    finally:
        setattr(chosen.place, chosen.function, original)
