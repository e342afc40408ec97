"""Invariants, their violations, and the mechanisms by which real Kafka breaks some."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.generation import GENERATIONS, Config, Generation
from kafka_ctl.invariants.facts import Facts
from kafka_ctl.invariants.past import START, Past
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
    """The number of the statement within its invariant, or among several of the same kind."""
    state: LeaderAndIsr | None = None
    """The partition in the memory of the broker or controller, or its state before the write."""
    brokers: tuple[int, ...] = ()
    """Brokers that are able to lead, or are to join, or are concerned together."""

    @property
    def key(self) -> tuple[object, ...]:
        """Violations with the same key are one, as long as they have the same cause."""
        return self[:5]


class Violation(NamedTuple):
    """An invariant that no longer holds: its id, its first record, the defect, and the ticket if it is known."""

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


State = LeaderAndIsr | None
DELETION, MOVE = "deletion", "move"
"""Aspects of I19: a topic that is not deleted, a reassignment that does not end."""
HOOKS = {
    "state_written": "(record, partition, old, new): a partition's state in ZooKeeper",
    "written": "(record): any write to ZooKeeper that succeeded",
    "logged": "(record): a controller's message",
    "moved": "(record): a state machine's move, legal or refused",
    "event": "(record): an event of a controller is queued, started, done or dropped",
    "sent": "(record): a request",
    "answered": "(record): a response",
    "process": "(record): an act of a broker's process, or a fault",
    "elected": "(record): an election",
    "log_changed": "(record, partition): a replica's log",
    "fetched": "(leader, request): a follower's fetch",
    "quiescent": "(world): nothing is under way and nothing is broken",
}
"""The methods that a listener may have, with their arguments; `facts.only` limits one to some actions."""


class Listener:
    """The base of objects that are called with the records of a run.

    A subclass defines only those methods of `HOOKS` that it needs.
    """

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


class Invariant(Listener):
    """One thing that must always be true: the class's docstring, in words a learner understands."""

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
    aspect: ClassVar[str | None] = None
    """The only aspect of those invariants that it breaks; None for all."""

    @classmethod
    def possible(cls, generation: Generation) -> bool:
        """True if this can happen in a generation."""
        return cls.field is None or generation.has(cls.field) is cls.value

    @classmethod
    def generations(cls) -> tuple[str, ...]:
        return tuple(name for name in GENERATIONS if cls.possible(Generation(name)))

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        """True if it has happened to the subject of a violation, so that the violation follows from it."""
        raise NotImplementedError

    def messages(self, message: str) -> Iterator[tuple[Record, dict]]:
        """The acting controller's messages of this kind in its term, with their fields, the newest first."""
        return self.past.logged(message, self.past.term(self.facts.acting), self.facts.acting)

    def last_message(self, message: str, about: Callable[[dict], bool]) -> int:
        """The `seq` of the newest such message whose fields satisfy `about`; START if there is none."""
        return next((record.seq for record, fields in self.messages(message) if about(fields)), START)


class PartitionMechanism(Mechanism):
    """A mechanism that explains violations of partitions that have a state in ZooKeeper."""

    def explains(self, invariant: str, about: Subject, record: Record | None) -> bool:
        tp = about.partition
        state = self.facts.states.get(tp) if tp is not None else None
        return tp is not None and state is not None and self.happened(invariant, about, tp, state)

    def happened(self, invariant: str, about: Subject, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        """True if it has happened to the partition, which has this state."""
        raise NotImplementedError


L = TypeVar("L", bound=Listener)


def defined_in(modules: tuple[ModuleType, ...], kind: type[L], mark: str) -> tuple[type[L], ...]:
    """The classes of a kind in these modules, in their order, that have an attribute `mark` of their own."""
    every = (one for module in modules for one in vars(module).values() if isinstance(one, type))
    return tuple(one for one in every if issubclass(one, kind) and mark in vars(one))
