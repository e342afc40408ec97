"""Invariants, their violations, and the mechanisms by which real Kafka breaks some."""

from __future__ import annotations

import inspect
from typing import ClassVar, NamedTuple, Protocol

from kafka_ctl.brokers.fetches import FetchRequest
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.generation import GENERATIONS, Config, Generation
from kafka_ctl.invariants.facts import Facts
from kafka_ctl.invariants.past import Past
from kafka_ctl.simulation.world import World
from kafka_ctl.trace.record import Record


class Subject(NamedTuple):
    """The subject of a violation; fields that do not apply are left out."""

    partition: TopicPartition | None = None
    broker: int | None = None
    topic: str | None = None
    controller: str | None = None
    """The actor of a controller whose own picture is wrong."""
    aspect: str = ""
    """Which of the things that one invariant says, or which of several of the same kind."""
    state: LeaderAndIsr | None = None
    """The partition in the memory of the broker or controller, or its state before the write."""
    brokers: tuple[int, ...] = ()
    """Brokers that are able to lead, or are to join, or are concerned together."""

    @property
    def key(self) -> tuple[object, ...]:
        """Violations with the same key are one, as long as they have the same cause."""
        return self[:5]


class Violation(NamedTuple):
    """An invariant that no longer holds: which, since which record, what is wrong, and the ticket if it is known."""

    invariant: str
    name: str
    seq: int
    text: str
    known: str | None = None

    def __str__(self) -> str:
        return f"{self.invariant} {self.name}: {self.text}" + (f" (known: {self.known})" if self.known else "")


class Reports(Protocol):
    """The input of an invariant or a mechanism: the world, the facts about it, and a report."""

    world: World
    generation: Generation
    config: Config
    facts: Facts
    past: Past

    def report(self, invariant: Invariant, record: Record | None, text: str, about: Subject) -> None:
        """Keep a violation and record it, unless one of the same subject and cause has been."""


class Listener:
    """Called with the records of a run; subclasses have the methods that they need of those below."""

    sentence: ClassVar[str]
    """The class's docstring."""

    def __init_subclass__(cls) -> None:
        cls.sentence = inspect.getdoc(cls) or ""

    def __init__(self, checker: Reports) -> None:
        self.checker = checker
        self.facts: Facts = checker.facts
        self.past: Past = checker.past
        self.generation: Generation = checker.generation
        self.config = checker.config

    def state_written(
        self, record: Record, tp: TopicPartition, old: LeaderAndIsr | None, new: LeaderAndIsr | None
    ) -> None: ...

    def written(self, record: Record) -> None: ...

    def logged(self, record: Record) -> None: ...

    def moved(self, record: Record) -> None: ...

    def event(self, record: Record) -> None: ...

    def sent(self, record: Record) -> None: ...

    def answered(self, record: Record) -> None: ...

    def process(self, record: Record) -> None: ...

    def elected(self, record: Record) -> None: ...

    def log_changed(self, record: Record, tp: TopicPartition) -> None: ...

    def fetched(self, leader: int, request: FetchRequest) -> None: ...

    def quiescent(self, world: World) -> None: ...


class Invariant(Listener):
    """One thing that must always be true: the class's docstring, in words a learner understands.

    `rest` is called when nothing is under way and nothing is broken.
    """

    id: ClassVar[str]
    name: ClassVar[str]
    motive: ClassVar[str]
    """The evidence that it matters."""
    needs: ClassVar[str | None] = None
    """The field of a generation without which the invariant means nothing."""

    @classmethod
    def applies(cls, generation: Generation) -> bool:
        return cls.needs is None or generation.has(cls.needs)

    def broken(self, record: Record | None, text: str, about: Subject) -> None:
        """Report it, once for each subject and cause."""
        self.checker.report(self, record, text, about)


class Mechanism(Listener):
    """A mechanism by which real Kafka breaks invariants: its conditions, and its partition, broker or topic.

    The first paragraph of a subclass's docstring says what happens, the rest where Kafka's source says so.
    """

    ticket: ClassVar[str]
    """The ticket; where there is none, the place in Kafka's source."""
    breaks: ClassVar[tuple[str, ...]]
    """Invariants, by id."""
    field: ClassVar[str | None] = None
    value: ClassVar[bool] = False
    """It can only happen where this field of the generation has this value."""

    @classmethod
    def possible(cls, generation: Generation) -> bool:
        """True if this can happen in a generation."""
        return cls.field is None or generation.has(cls.field) is cls.value

    @classmethod
    def generations(cls) -> tuple[str, ...]:
        """The generations in which it can."""
        return tuple(name for name in GENERATIONS if cls.possible(Generation(name)))

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        """True if it has happened to the subject of a violation, so that the violation follows from it."""
        raise NotImplementedError
