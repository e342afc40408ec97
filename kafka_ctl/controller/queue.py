"""The event queue: one consumer, first in, first out, no priorities.

Watches and responses only enqueue; the controller's single thread does the work. When the session expires the
queue is cleared, and what waited in it is dropped without a word.
Kafka 2.0.1: controller/ControllerEventManager.scala, ControllerEventManager
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from kafka_ctl.controller.events import Event, subject
from kafka_ctl.errors import ControllerMoved
from kafka_ctl.trace.record import Recorder


class EventQueue:
    """Events with the records that say when they were queued."""

    def __init__(self, actor: str, trace: Recorder, preempts: bool = False) -> None:
        self.actor, self.trace, self.preempts = actor, trace, preempts
        self._items: deque[tuple[Event, int]] = deque()
        self._arrived = asyncio.Event()
        self.closed = False

    def put(self, event: Event) -> None:
        if not self.closed:
            self._items.append((event, self.record(event)))
            self._arrived.set()

    def record(self, event: Event) -> int:
        """Record that an event has arrived, and waits for somebody to process it."""
        return self.trace.add(self.actor, "event", event.name, target="queued", **subject(event))

    def clear_and_put(self, event: Event) -> None:
        """Drop everything that waits, then put; since 2.2 those who wait for a reply get an error."""
        for dropped, seq in self._items:
            if self.preempts and (reply := getattr(dropped, "reply", None)) is not None and not reply.done():
                reply.set_exception(ControllerMoved("Controller moved to another broker"))
            self.trace.add(self.actor, "event", dropped.name, source="queued", target="dropped", cause=seq)
        self._items.clear()
        self.put(event)

    async def get(self) -> tuple[Event, int]:
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Event]:
        return (event for event, _ in self._items)

    def close(self) -> None:
        self.closed = True
        self._items.clear()
