"""The network port: requests from one broker to another, what they cost, and what can happen to them.

A request to a broker whose process is not running is refused; one under way when it dies is lost. Each of the two ways
between two brokers can be slow, lose a message, or be cut: TCP sends what was lost again, so what meets a cut waits for
it to heal, but not longer than `timeout` seconds.
"""

from __future__ import annotations

import asyncio
import math
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka_ctl.brokers.requests import Request, Response
from kafka_ctl.ports import PROCESS
from kafka_ctl.trace.record import CAUSE

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker


@dataclass
class Way:
    """What is wrong with the way from one broker to another."""

    cut_since: float = math.inf
    delay: float = 0.0
    loses: str | None = None
    """What is lost next: the `request` sent this way, or the `answer` to it."""
    waiting: list[asyncio.Future] = field(default_factory=list)


class Network:
    """Connects the brokers of one lab; `delay` is the seconds one way takes."""

    def __init__(self, clock: Any, delay: float, timeout: float = 30.0) -> None:
        self.clock, self.delay, self.timeout = clock, delay, timeout
        self.brokers: dict[int, Broker] = {}
        self.ways: dict[tuple[int, int], Way] = {}
        """The ways that something is wrong with."""

    async def call(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        """Deliver a request and bring the answer, with the `seq` of its record.

        Raises ConnectionError if the target is not there or goes away before it answers.
        """
        await self.clock.sleep(self.delay)
        if self.ways:
            await self._cross(source, target, "request")
        slow = self.ways.get((source, target))
        if slow is not None and slow.delay:
            answer = await self._carried(slow.delay, source, target, request)
        else:
            answer = await self._arrived(source, target, request)
        await self.clock.sleep(self.delay)
        if self.ways:
            await self._cross(target, source, "answer")
            slow = self.ways.get((target, source))
            if slow is not None:
                await self.clock.sleep(slow.delay)
        return answer

    async def _arrived(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        broker = self.brokers.get(target)
        if broker is None or not broker.listening:
            raise ConnectionRefusedError(f"broker {target} refused the connection of broker {source}")
        return await broker.receive(request, CAUSE.get())

    def _carried(self, delay: float, source: int, target: int, request: Request) -> asyncio.Future:
        """A delayed request is delivered even if its sender has died or timed out."""
        answered = self.clock.loop.create_future()

        async def carry() -> None:
            await self.clock.sleep(delay)
            try:
                answer = await self._arrived(source, target, request)
            except ConnectionError as error:
                _finish(answered, error)
            else:
                _finish(answered, answer)

        context = copy_context()
        context.run(PROCESS.set, None)
        self.clock.spawn(carry(), context)
        return answered

    async def _cross(self, source: int, target: int, what: str) -> None:
        """Take a message over a way with which something may be wrong."""
        asked = self.ways.get((source, target) if what == "request" else (target, source))
        if asked is not None and asked.loses == what:
            asked.loses = None
            raise ConnectionResetError(f"the {what} was lost between broker {source} and broker {target}")
        way = self.ways.get((source, target))
        if way is not None and way.cut_since != math.inf:
            passed = self.clock.loop.create_future()
            way.waiting.append(passed)
            self.clock.later(self.timeout, _finish, passed, False, background=True)
            if not await passed:
                raise ConnectionAbortedError(f"no {what} came from broker {source} to broker {target} in time")

    def way(self, source: int, target: int) -> Way:
        return self.ways.setdefault((source, target), Way())

    def cut(self, source: int, target: int) -> None:
        way = self.way(source, target)
        way.cut_since = min(way.cut_since, self.clock.now())

    def heal(self) -> None:
        """Nothing is wrong any more; what waited goes on."""
        ways, self.ways = self.ways, {}
        for way in ways.values():
            for passed in way.waiting:
                _finish(passed, True)

    def silence(self, follower: int, leader: int) -> float:
        """Time in seconds since which the two brokers cannot reach each other; infinity if they can."""
        other = self.brokers[follower]
        if not self.ways and other.listening:  # asked so often that it must be quick
            return other.paused_since
        cuts = [self.ways[way].cut_since for way in ((follower, leader), (leader, follower)) if way in self.ways]
        return min([other.paused_since, math.inf if other.listening else other.down_since, *cuts])


def _finish(future: asyncio.Future, result: object) -> None:
    if future.done():
        return
    if isinstance(result, ConnectionError):
        future.set_exception(result)
    else:
        future.set_result(result)
