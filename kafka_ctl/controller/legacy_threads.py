"""What 0.10 had instead of a queue: a lock, and threads that take it by turns.

The listeners share one thread; the deletion of topics, the rebalance and every controlled shutdown have their own. A
thread that is asked to end finishes its current work.
Kafka 0.10.2.2: controller/KafkaController.scala, controllerLock; utils/ShutdownableThread.scala, ShutdownableThread
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.errors import KafkaCtlError
from kafka_ctl.ports import Clock


class Waited:
    """How long the work of one event has waited for locks, in seconds."""

    seconds = 0.0


_waited: ContextVar[Waited | None] = ContextVar("waited", default=None)


class Lock(asyncio.Lock):
    """A lock that measures how long the current event waited for it: `async with lock: ...`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    @staticmethod
    def count() -> Waited:
        """Begin to count the waiting of this task."""
        waited = Waited()
        _waited.set(waited)
        return waited

    async def __aenter__(self) -> None:
        asked, waited = self.clock.now(), _waited.get()
        await self.acquire()
        if waited is not None:
            waited.seconds += self.clock.now() - asked


class Thread:
    """Waits for `wait()`, does `work()`, and begins again; an error in its work is its end."""

    def __init__(
        self, process: ControllerProcess, wait: Callable[[], Awaitable[object]], work: Callable[[], Awaitable[object]]
    ) -> None:
        self.process, self.wait, self.work = process, wait, work
        self.busy = self.ending = False
        self.task = process.spawn(self._run())

    async def _run(self) -> None:
        while not self.ending:
            await self.wait()
            self.busy = True
            try:
                await self.work()
            except KafkaCtlError as error:
                self.process.log("thread_died", error=str(error))
                return
            finally:
                self.busy = False

    async def end(self) -> None:
        """Ask it to end, and wait until it has finished its current work."""
        self.ending = True
        if not self.busy:
            self.task.cancel()
        elif self.task is not asyncio.current_task():
            await self.task
