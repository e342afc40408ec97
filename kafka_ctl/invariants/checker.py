"""Checks every invariant after every record, and keeps the violations."""

from __future__ import annotations

from collections.abc import Callable

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.invariants import controller, data, quiescent
from kafka_ctl.invariants.base import Invariant, Listener, Subject, Violation
from kafka_ctl.invariants.facts import Facts
from kafka_ctl.invariants.logs import CHANGES
from kafka_ctl.invariants.mechanisms import MECHANISMS
from kafka_ctl.invariants.past import Past
from kafka_ctl.simulation.world import MemoryWorld, World
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Record

INVARIANTS: tuple[type[Invariant], ...] = tuple(
    sorted(
        (*controller.INVARIANTS, *data.INVARIANTS, *quiescent.INVARIANTS), key=lambda invariant: int(invariant.id[1:])
    )
)
"""All invariants, by number."""


class Checker:
    """Listens to a trace; `violations` are what has been broken so far."""

    def __init__(self, world: MemoryWorld) -> None:
        self.world: World = world
        self.generation, self.config = world.generation, world.config
        self.trace = world.trace
        self.facts, self.past = Facts(world.trace.records), Past(world.trace.records)
        self.violations: list[Violation] = []
        self._reported: set[tuple[object, ...]] = set()
        self.mechanisms = [mechanism(self) for mechanism in MECHANISMS if mechanism.possible(self.generation)]
        invariants = [invariant(self) for invariant in INVARIANTS if invariant.applies(self.generation)]
        all_of_them: list[Listener] = [*self.mechanisms, *invariants]

        def listeners(hook: str) -> list[Callable[..., None]]:
            return [getattr(i, hook) for i in all_of_them if getattr(type(i), hook) is not getattr(Listener, hook)]

        self._states, self._writes, self._quiescent = (
            listeners("state_written"),
            listeners("written"),
            listeners("quiescent"),
        )
        self._logs = listeners("log_changed")
        logged, moved, event, sent = listeners("logged"), listeners("moved"), listeners("event"), listeners("sent")
        answered = listeners("answered")
        process: list[Callable[[Record], None]] = [self.facts.process, *listeners("process")]
        self._by_kind: dict[str, list[Callable[[Record], None]]] = {
            "zk": [self._zk],
            "controller": [self.facts.logged, *logged],
            "partition": moved,
            "replica": moved,
            "event": [*event, self.facts.process],
            "request": sent,
            "response": [self._answered, *answered],
            "broker": [self._log, *process],
            "fault": process,
            "election": listeners("elected"),
        }
        self.trace.listeners.append(self.check)
        world.network.fetch_listeners += listeners("fetched")
        world.at_rest.append(self.quiescent)

    def check(self, record: Record) -> None:
        """Take one record into the facts and see what it breaks."""
        for listener in self._by_kind.get(record.kind, ()):
            listener(record)

    def _zk(self, record: Record) -> None:
        if record.error is not None or record.action not in ("create", "set", "delete"):
            return
        self.facts.authored(record)
        state = self.facts.state(record)
        if state is not None:
            for check in self._states:
                check(record, *state)
        for check in self._writes:
            check(record)
        if state is None:
            self.facts.written(record)

    def _log(self, record: Record) -> None:
        if record.action in CHANGES and record.topic is not None and record.partition is not None:
            tp = TopicPartition(record.topic, record.partition)
            self.facts.logs.changed(record, tp)
            for check in self._logs:
                check(record, tp)
        elif record.action == "stop-replica" and record.error is None and "delete" in details.flags(record.detail):
            self.facts.logs.deleted(record, TopicPartition(record.topic or "", record.partition or 0))

    def _answered(self, record: Record) -> None:
        if record.actor == "producer" and record.topic is not None and record.partition is not None:
            self.facts.logs.answered(record, TopicPartition(record.topic, record.partition))

    def quiescent(self) -> None:
        """Nothing is under way: check what must then be true, unless something is still broken."""
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
        able = (m for m in self.mechanisms if invariant in m.breaks)
        return next((m.ticket for m in able if m.explains(invariant, about, record)), None)
