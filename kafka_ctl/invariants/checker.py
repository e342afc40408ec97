"""Checks every invariant after every record, and keeps the violations."""

from __future__ import annotations

from collections.abc import Callable

from kafka_ctl.invariants import controller, data, quiescent
from kafka_ctl.invariants.base import HOOKS, Invariant, Listener, Subject, Violation, defined_in
from kafka_ctl.invariants.facts import Facts, only
from kafka_ctl.invariants.mechanisms import MECHANISMS
from kafka_ctl.invariants.past import Past
from kafka_ctl.simulation.world import MemoryWorld, World
from kafka_ctl.trace.record import Record

INVARIANTS = tuple(
    sorted(defined_in((controller, data, quiescent), Invariant, "id"), key=lambda invariant: int(invariant.id[1:]))
)
"""All invariants, by number."""
CACHED = "cached"
"""The action that no listener looks at: a broker's copy of a partition's metadata. In a large run these are many."""


class Checker:
    """A listener to a trace; `violations` has the violations so far."""

    def __init__(self, world: MemoryWorld) -> None:
        self.world: World = world
        self.generation, self.config = world.generation, world.config
        self.trace = world.trace
        self.facts, self.past = Facts(world.trace.records), Past(world.trace.records)
        self.violations: list[Violation] = []
        self._reported: set[tuple[object, ...]] = set()
        self.mechanisms = [mechanism(self) for mechanism in MECHANISMS if mechanism.possible(self.generation)]
        invariants = [invariant(self) for invariant in INVARIANTS if invariant.applies(self.generation)]
        every: list[Listener] = [*self.mechanisms, *invariants]
        hooks = {hook: [getattr(one, hook) for one in every if hasattr(one, hook)] for hook in HOOKS}
        self._states, self._writes, self._logs = hooks["state_written"], hooks["written"], hooks["log_changed"]
        self._quiescent, process = hooks["quiescent"], hooks["process"]
        self._by_kind: dict[str, list[Callable[[Record], None]]] = {
            "zk": [self._zk],
            "controller": [self.facts.logged, *hooks["logged"]],
            "partition": hooks["moved"],
            "replica": hooks["moved"],
            "event": [*hooks["event"], self.facts.process],
            "request": hooks["sent"],
            "response": [self._answered, *hooks["answered"]],
            "broker": [self._log, self.facts.process, *process],
            "fault": [self.facts.process, *process],
            "election": hooks["elected"],
        }
        self._listening: dict[tuple[str, str], list[Callable[[Record], None]]] = {}
        """The answers of `_interested`."""
        self.trace.listeners.append(self.check)
        world.network.fetch_listeners += hooks["fetched"]
        world.at_rest.append(self.quiescent)

    def check(self, record: Record) -> None:
        """Take one record into the facts and see what it breaks."""
        kind_and_action = record.kind, record.action
        listeners = self._listening.get(kind_and_action)
        if listeners is None:
            listeners = self._listening[kind_and_action] = self._interested(*kind_and_action)
        for listener in listeners:
            listener(record)

    def _interested(self, kind: str, action: str) -> list[Callable[[Record], None]]:
        """The listeners to records of this kind and action."""
        every = self._by_kind.get(kind, ()) if action != CACHED else ()
        return [listener for listener in every if action in getattr(listener, "actions", (action,))]

    @only("create", "set", "delete")
    def _zk(self, record: Record) -> None:
        if record.error is not None:
            return
        self.facts.note_author(record)
        state = self.facts.state(record)
        if state is not None:
            for check in self._states:
                check(record, *state)
        for check in self._writes:
            check(record)
        if state is None:
            self.facts.written(record)

    def _log(self, record: Record) -> None:
        if self.facts.logs.take(record):
            for check in self._logs:
                check(record, record.tp)

    def _answered(self, record: Record) -> None:
        if record.actor == "producer":
            self.facts.logs.answered(record)

    def quiescent(self) -> None:
        """Check the invariants of a cluster with nothing under way, unless a fault still lasts."""
        if self.world.is_healthy:
            for check in self._quiescent:
                check(self.world)

    def report(self, invariant: Invariant, record: Record | None, text: str, about: Subject) -> None:
        """Keep a violation and record it, unless one of the same subject and cause has been."""
        known = self._cause(invariant.id, about, record)
        key = (invariant.id, *about.key, known)
        if key in self._reported:
            return
        self._reported.add(key)
        topic, number = about.partition or (about.topic, None)
        seq = self.trace.add(
            "invariants",
            "violation",
            invariant.name,
            topic,
            number,
            about.broker,
            cause=record.seq if record else None,
            error=known,
            detail=f"{invariant.id}: {text}",
        )
        self.violations.append(Violation(invariant.id, invariant.name, seq, text, known))

    def _cause(self, invariant: str, about: Subject, record: Record | None) -> str | None:
        """The ticket of the first mechanism that has happened to the subject; None if none has."""
        able = (m for m in self.mechanisms if invariant in m.breaks and m.aspect in (None, about.aspect))
        return next((m.ticket for m in able if m.explains(invariant, about, record)), None)
