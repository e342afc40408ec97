"""What an invariant is, and what breaking one is."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.generation import Generation
from kafka_ctl.trace import Record

if TYPE_CHECKING:
    from kafka_ctl.lab.invariants.checker import Checker
    from kafka_ctl.lab.world import World


class Breakable(NamedTuple):
    """Real Kafka breaks the invariant where this field of its generation has this value, as the ticket tells.

    `field` may also be a configuration key, `any` for every generation there is here, or what happened: `acks=1` where
    a producer asked for no more, `unclean election` where somebody led who was not in sync, `cancelled reassignment`
    where that made a replica in sync be deleted, `smaller assignment` where an ISR is not as small yet, `overwritten
    assignment` where a tool has undone what the controller wrote, and the like. Where the ticket explains only some of
    the violations, `part` is a part of their texts.
    """

    field: str
    value: bool
    ticket: str
    part: str = ""


SUPERSET = Breakable("smaller assignment", True, "KAFKA-9672")
"""A reassignment ends in two steps: first the assignment gets smaller, then the ISR."""
OVERWRITTEN = Breakable("overwritten assignment", True, "KAFKA-9038")
"""A tool that adds partitions writes back what it had read of the others; the controller may have moved them since."""


class Violation(NamedTuple):
    """An invariant that no longer holds: which, since which record, what is wrong, and the ticket if it is known."""

    invariant: str
    name: str
    seq: int
    text: str
    known: str | None = None

    def __str__(self) -> str:
        return f"{self.invariant} {self.name}: {self.text}" + (f" (known: {self.known})" if self.known else "")


class Invariant:
    """One thing that must always be true. Subclasses have the methods that they need of those below.

    `motive` names what showed that it matters; `breakable` where real Kafka breaks it.
    """

    id: ClassVar[str]
    name: ClassVar[str]
    motive: ClassVar[str]
    sentence: ClassVar[str]
    """What must be true, in words a learner understands: the class's docstring."""
    breakable: ClassVar[tuple[Breakable, ...]] = ()
    follows: ClassVar[tuple[str, ...]] = ()
    """Invariants by id: once one of them is broken in a way that is known, so is this, for it follows from that."""
    needs: ClassVar[str | None] = None
    """The field of a generation without which the invariant means nothing."""

    def __init_subclass__(cls) -> None:
        cls.sentence = inspect.getdoc(cls) or ""

    def __init__(self, checker: Checker) -> None:
        self.checker, self.facts = checker, checker.facts
        self.generation: Generation = checker.generation

    @classmethod
    def applies(cls, generation: Generation) -> bool:
        return cls.needs is None or bool(getattr(generation, cls.needs))

    @classmethod
    def known(cls, generation: Generation, config: Any, text: str = "") -> str | None:
        """The ticket that tells why this generation can break the invariant in this way; None if it must not."""
        for field, value, ticket, part in cls.breakable:
            if part in text and (field == "any" or getattr(generation, field, config.get(field)) is value):
                return ticket
        return None

    def broken(self, record: Record | None, text: str, *subject: Any, because: str | None = None) -> None:
        """Report it, once for each subject; `because` is the ticket, if it is known from more than the settings."""
        self.checker.report(self, record, text, subject, because)

    # What a subclass can listen to. `rest` is called when nothing is under way and nothing is broken.

    def state_written(
        self, record: Record, tp: TopicPartition, old: LeaderAndIsr | None, new: LeaderAndIsr | None
    ) -> None: ...

    def written(self, record: Record) -> None: ...

    def said(self, record: Record) -> None: ...

    def moved(self, record: Record) -> None: ...

    def event(self, record: Record) -> None: ...

    def told(self, record: Record) -> None: ...

    def answered(self, record: Record) -> None: ...

    def process(self, record: Record) -> None: ...

    def log_changed(self, record: Record, tp: TopicPartition) -> None: ...

    def rest(self, world: World) -> None: ...
