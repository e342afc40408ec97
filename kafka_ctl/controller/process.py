"""A controller as a process: its broker, the ports, its context, its log, its tasks; and the threads of 0.10.

0.10 had no queue: a lock, and threads that take it by turns. The listeners share one thread; the deletion of topics,
the rebalance and every controlled shutdown have their own. A thread that is asked to end finishes its current work.
Kafka 0.10.2.2: controller/KafkaController.scala, controllerLock; utils/ShutdownableThread.scala, ShutdownableThread
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kafka_ctl.controller.context import Context
from kafka_ctl.errors import KafkaCtlError
from kafka_ctl.generation import Config, Generation
from kafka_ctl.plugins import Plugins
from kafka_ctl.ports import Clock, Network
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Recorder
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class ControllerProcess:
    """The controller module of broker `id`, as far as request batches, channels and state machines need it.

    `zk` is the broker's ZooKeeper client, `network` and `clock` are the other two ports.
    """

    id: int
    zk: KafkaZkClient
    network: Network
    clock: Clock
    trace: Recorder
    generation: Generation
    config: Config
    plugins: Plugins

    def __post_init__(self) -> None:
        self.actor = f"controller-{self.id}"
        self.record, self.record_about = partial(self.trace.add, self.actor), partial(self.trace.about, self.actor)
        self.context = Context(not self.generation.zookeeper.pipelined)
        self._tasks: dict[asyncio.Task[object], None] = {}

    def spawn(self, coro: Coroutine[object, None, T]) -> asyncio.Task[T]:
        """Start a task that ends with this controller's process."""
        task = self.clock.spawn(coro)
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))
        return task

    def log(self, message: str, **fields: object) -> None:
        """Write a line into the controller's own log; `kafka_log/write.py` knows the texts."""
        detail, epoch = details.write_fields(fields), self.context.epoch
        self.record("controller", message, broker=self.id, controller_epoch=epoch, detail=detail)


class Lock(asyncio.Lock):
    """A lock that measures how long the current event waited for it: `async with lock: ...`."""

    _waited: ContextVar[list[float]] = ContextVar("waited")
    holder: asyncio.Task[object] | None = None  # the last task that got it

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    @classmethod
    def count(cls) -> list[float]:
        """Begin to count the waiting of this task: the seconds of each wait are added to the list."""
        waited: list[float] = []
        cls._waited.set(waited)
        return waited

    async def __aenter__(self) -> None:
        asked = self.clock.now()
        await self.acquire()
        self.holder = asyncio.current_task()
        self._waited.get([]).append(self.clock.now() - asked)


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
