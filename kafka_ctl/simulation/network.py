"""The network port: requests from one broker to another, what they cost, and what can happen to them.

A request to a broker whose process is not running is refused; one under way when it dies is lost. Each direction
of the link between two brokers can be slow, lose a message, or be cut: TCP sends what was lost again, so a message on a
cut link waits until it heals, but not longer than `timeout` seconds.
"""

from __future__ import annotations

import asyncio
import math
from contextvars import copy_context
from dataclasses import dataclass, field

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.brokers.process import FollowerPeer, LeaderPeer
from kafka_ctl.ports import PROCESS, Clock
from kafka_ctl.requests import Request, Response
from kafka_ctl.trace.record import CAUSE


@dataclass
class Link:
    """What is wrong with the link from one broker to another, in that direction."""

    cut_since: float = math.inf
    delay: float = 0.0
    loses: str | None = None
    """What is lost next: the `request` sent over it, or the `answer` to that."""
    waiting: list[asyncio.Future] = field(default_factory=list)


class Network:
    """Connects the brokers of one lab; `delay` is the seconds one way takes."""

    def __init__(self, clock: Clock, delay: float, timeout: float = 30.0) -> None:
        self.clock, self.delay, self.timeout = clock, delay, timeout
        self.brokers: dict[int, Broker] = {}
        self.links: dict[tuple[int, int], Link] = {}
        """By source and target: the links that something is wrong with."""

    async def call(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        """Deliver a request and bring the answer, with the `seq` of its record.

        Raises ConnectionError if the target is not there or goes away before it answers.
        """
        await self.clock.sleep(self.delay)
        if self.links:
            await self._traverse(source, target, "request")
        slow = self.links.get((source, target))
        if slow is not None and slow.delay:
            answer = await self._deliver_late(slow.delay, source, target, request)
        else:
            answer = await self._deliver(source, target, request)
        await self.clock.sleep(self.delay)
        if self.links:
            await self._traverse(target, source, "answer")
            slow = self.links.get((target, source))
            if slow is not None:
                await self.clock.sleep(slow.delay)
        return answer

    async def _deliver(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        broker = self.brokers.get(target)
        if broker is None or not broker.listening:
            raise ConnectionRefusedError(f"broker {target} refused the connection of broker {source}")
        return await broker.receive(request, CAUSE.get())

    def _deliver_late(self, delay: float, source: int, target: int, request: Request) -> asyncio.Future:
        """A delayed request is delivered even if its sender has died or timed out."""
        answered = self.clock.loop.create_future()

        async def carry() -> None:
            await self.clock.sleep(delay)
            try:
                answer = await self._deliver(source, target, request)
            except ConnectionError as error:
                _finish(answered, error)
            else:
                _finish(answered, answer)

        context = copy_context()
        context.run(PROCESS.set, None)
        self.clock.spawn(carry(), context)
        return answered

    async def _traverse(self, source: int, target: int, what: str) -> None:
        """Send a message over a link that may lose it or be cut."""
        asked = self.links.get((source, target) if what == "request" else (target, source))
        if asked is not None and asked.loses == what:
            asked.loses = None
            raise ConnectionResetError(f"the {what} was lost between broker {source} and broker {target}")
        link = self.links.get((source, target))
        if link is not None and link.cut_since != math.inf:
            passed = self.clock.loop.create_future()
            link.waiting.append(passed)
            self.clock.later(self.timeout, _finish, passed, False, background=True)
            if not await passed:
                raise ConnectionAbortedError(f"no {what} came from broker {source} to broker {target} in time")

    def link(self, source: int, target: int) -> Link:
        return self.links.setdefault((source, target), Link())

    def cut(self, source: int, target: int) -> None:
        link = self.link(source, target)
        link.cut_since = min(link.cut_since, self.clock.now())

    def heal(self) -> None:
        """Nothing is wrong any more; what waited goes on."""
        links, self.links = self.links, {}
        for link in links.values():
            for passed in link.waiting:
                _finish(passed, True)

    # Fetches

    def leader(self, broker: int) -> LeaderPeer | None:
        """Who answers fetches on that broker; None where there is no such broker."""
        there = self.brokers.get(broker)
        return there.as_leader if there else None

    def follower(self, broker: int) -> FollowerPeer | None:
        """Who fetches on that broker; None where its process does not run."""
        there = self.brokers.get(broker)
        return there.as_follower if there and there.listening else None

    def followers(self) -> list[tuple[int, FollowerPeer]]:
        """Every broker's, also of those whose process does not run."""
        return [(id, broker.as_follower) for id, broker in self.brokers.items()]

    def unreachable_since(self, follower: int, leader: int) -> float:
        """Time in seconds since which the two brokers cannot reach each other; infinity if they can."""
        other = self.brokers[follower]
        if not self.links and other.listening:  # asked so often that it must be quick
            return other.paused_since
        directions = (follower, leader), (leader, follower)
        cuts = [self.links[direction].cut_since for direction in directions if direction in self.links]
        return min([other.paused_since, math.inf if other.listening else other.down_since, *cuts])


def _finish(future: asyncio.Future, result: object) -> None:
    if future.done():
        return
    if isinstance(result, ConnectionError):
        future.set_exception(result)
    else:
        future.set_result(result)
