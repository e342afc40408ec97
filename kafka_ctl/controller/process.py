"""What all parts of a controller share: whose it is, the ports, what it believes, and its log."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TypeVar

from kafka_ctl.controller.context import Context
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
        self.context = Context(in_tables=not self.generation.zookeeper.pipelined)
        self._tasks: dict[asyncio.Task[object], None] = {}

    def spawn(self, coro: Coroutine[object, None, T]) -> asyncio.Task[T]:
        """Start a task that ends with this controller's process."""
        task = self.clock.spawn(coro)
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))
        return task

    def log(self, message: str, **fields: object) -> None:
        """Write a line into the controller's own log; `kafka_log/write.py` knows the texts."""
        self.trace.add(
            self.actor,
            "controller",
            message,
            broker=self.id,
            controller_epoch=self.context.epoch,
            detail=details.write_fields(fields),
        )
