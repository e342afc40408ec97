"""The network port: requests from one broker to another, what they cost, and what can happen to them.

A request to a broker whose process is not running is refused; one under way when it dies is lost. Each direction
of the link between two brokers can be slow, lose a message, or be cut: TCP sends what was lost again, so a message on a
cut link waits until it heals. A process that is paused does not answer, but what it is sent waits there.

A sender waits for an answer for `timeout` seconds (`request.timeout.ms`). Then it gives the request up and closes the
connection, though the request may still arrive. It tries to connect again, for `connect` seconds each time
(`controller.socket.timeout.ms`).

Kafka 2.0.1: clients/NetworkClient.java, handleTimedOutRequests; controller/ControllerChannelManager.scala, brokerReady
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass, field

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.brokers.fetches import (
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    FetchResult,
    Finds,
    FollowerLag,
    NextFetch,
    OffsetsForLeaderEpochRequest,
    WaitingFetch,
)
from kafka_ctl.brokers.leader import LeaderRole
from kafka_ctl.brokers.process import Peers
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.ports import PROCESS, Clock
from kafka_ctl.requests import ControlRequest, Request, Response
from kafka_ctl.trace.record import CAUSE


@dataclass
class Link:
    """The faults of the link from one broker to another, in that direction."""

    cut_since: float = math.inf
    delay: float = 0.0
    loses: str | None = None
    """The next loss: of the `request` sent over it, or of the `answer`."""
    waiting: list[asyncio.Future] = field(default_factory=list)
    closed: bool = False
    """True if the sender has given up the connection; it makes no other while the link is too slow for an answer."""


class Network(Peers):
    """Connects the brokers of one lab; `delay` is the seconds one way takes, the others those a sender waits."""

    def __init__(self, clock: Clock, delay: float, timeout: float, connect: float) -> None:
        self.clock, self.delay, self.timeout, self.connect = clock, delay, timeout, connect
        self.brokers: dict[int, Broker] = {}
        self.links: dict[tuple[int, int], Link] = {}
        """By source and target: the links that something is wrong with."""
        self.cuts: Counter[tuple[int, int]] = Counter()
        """By source and target: how often the link was cut."""
        self.fetch_listeners: list[Callable[[int, FetchRequest], None]] = []
        """Called with the leader and the request whenever a follower fetches, reached or not."""
        self.unanswered: defaultdict[int, dict[asyncio.Timeout, float]] = defaultdict(dict)
        """By target: what a controller was not answered, with the time at which it was sent."""
        self._waiting_leaders: list[asyncio.Future[float]] = []

    def close(self) -> None:
        """Close what is open between brokers: nothing within one process."""

    async def call(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        await self.clock.sleep(self.delay)
        if self.links:
            await self._traverse(source, target, "request")
            if sum(self.links[ends].delay for ends in self._faulty(source, target)) >= self.timeout:
                return await self._in_time(source, target, request)
        return await self._exchange(source, target, request)

    async def _exchange(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        """Deliver what has left, and bring the answer."""
        slow = self.links.get((source, target))
        if slow is not None and slow.delay:
            answer = await self._detached(self._deliver_late(slow.delay, source, target, request))
        elif isinstance(request, ControlRequest):
            answer = await self._answered(source, target, request)
        else:
            answer = await self._deliver(source, target, request)
        await self.clock.sleep(self.delay)
        if self.links:
            await self._traverse(target, source, "answer")
            slow = self.links.get((target, source))
            if slow is not None:
                await self.clock.sleep(slow.delay)
        return answer

    async def _answered(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        """Deliver what has left; a process that pauses for too long gets it, but the controller has stopped waiting.

        Kafka 2.0.1: controller/ControllerChannelManager.scala, addNewBroker (`request.timeout.ms`)
        """
        unanswered, broker, limit = self.unanswered[target], self.brokers.get(target), asyncio.timeout(None)
        try:
            async with limit:
                unanswered[limit] = self.clock.now() - self.delay
                if broker is not None and broker.is_paused:
                    self._limit(target, limit)
                return await self._deliver(source, target, request)
        except TimeoutError:
            raise ConnectionAbortedError(f"no answer came from broker {target} to broker {source} in time") from None
        finally:
            unanswered.pop(limit, None)  # a Ctrl-C may come before it is put there

    def paused(self, target: int) -> None:
        """The process of a broker pauses: what it does not answer in time is given up."""
        for limit in self.unanswered[target]:
            self._limit(target, limit)

    def _limit(self, target: int, limit: asyncio.Timeout) -> None:
        seconds = self.unanswered[target][limit] + self.timeout - self.clock.now()
        self.clock.later(seconds, self._give_up, target, limit, background=True)

    def _give_up(self, target: int, limit: asyncio.Timeout) -> None:
        if limit in self.unanswered[target] and not limit.expired():
            limit.reschedule(self.clock.loop.time())

    async def _deliver(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        broker = self.brokers.get(target)
        if broker is None or not broker.listening:
            raise ConnectionRefusedError(f"broker {target} refused the connection of broker {source}")
        return await broker.receive(request, CAUSE.get())

    async def _deliver_late(self, delay: float, source: int, target: int, request: Request) -> tuple[Response, int]:
        await self.clock.sleep(delay)
        return await self._deliver(source, target, request)

    async def _in_time(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        """The answer, if the link gets fast enough for it before the sender gives up the connection."""
        link = self.link(source, target)
        if link.closed:
            await self._healed(link, self.connect, f"no connection to broker {target} came to broker {source} in time")
            return await self._exchange(source, target, request)
        answered = self._detached(self._exchange(source, target, request))
        late = ConnectionAbortedError(f"no answer came from broker {target} to broker {source} in time")
        self.clock.later(self.timeout, _finish, answered, late, background=True)
        try:
            return await answered
        except ConnectionAbortedError:
            link.closed = True
            raise

    def _detached(self, coro: Coroutine[object, None, tuple[Response, int]]) -> asyncio.Future:
        """A message on its way arrives even if its sender has died or given up."""
        answered = self.clock.loop.create_future()

        async def carry() -> None:
            try:
                answer = await coro
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
            await self._healed(link, self.timeout, f"no {what} came from broker {source} to broker {target} in time")

    async def _healed(self, link: Link, seconds: float, late: str) -> None:
        passed = self.clock.loop.create_future()
        link.waiting.append(passed)
        self.clock.later(seconds, _finish, passed, False, background=True)
        if not await passed:
            raise ConnectionAbortedError(late)

    def link(self, source: int, target: int) -> Link:
        return self.links.setdefault((source, target), Link())

    def cut(self, source: int, target: int) -> None:
        link = self.link(source, target)
        link.cut_since = min(link.cut_since, self.clock.now())
        self.cuts[source, target] += 1
        self.wake_leaders()

    def heal(self) -> None:
        """Nothing is wrong any more; what waited goes on."""
        links, self.links = self.links, {}
        for link in links.values():
            for passed in link.waiting:
                _finish(passed, True)

    def _faulty(self, one: int, other: int) -> list[tuple[int, int]]:
        """The directions between two brokers in which something is wrong."""
        return [ends for ends in ((one, other), (other, one)) if ends in self.links]

    # Fetches

    def fetch(self, leader: int, request: FetchRequest) -> FetchResponse | None:
        self._heed(leader, request)
        there = self._reached(request.replica, leader)
        return there.fetch(request) if there else None

    def end_of_epoch(self, leader: int, request: OffsetsForLeaderEpochRequest) -> EpochEndOffset | None:
        there = self._reached(request.replica, leader)
        return there.end_of_epoch(request) if there else None

    def _heed(self, leader: int, request: FetchRequest) -> None:
        for listener in self.fetch_listeners:
            listener(leader, request)

    def _reached(self, follower: int, leader: int) -> LeaderRole | None:
        there = self.brokers.get(leader)
        return there.as_leader if there and self.unreachable_since(leader, follower) == math.inf else None

    def hold(self, leader: int, request: FetchRequest, respond: Callable[[bool], object]) -> WaitingFetch | None:
        self._heed(leader, request)
        there = self.brokers.get(leader)
        return there.as_leader.hold(request, respond) if there else None

    def fetch_result(self, leader: int, tp: TopicPartition, replica: int, leader_epoch: int) -> FetchResult | None:
        there = self.brokers.get(leader)
        return there.as_leader.fetch_result(tp, replica, leader_epoch) if there else None

    def connection(self, follower: int, leader: int) -> tuple[int, int]:
        there, cuts = self.brokers.get(leader), self.cuts
        return there.starts if there else 0, cuts[follower, leader] + cuts[leader, follower] if cuts else 0

    def next_fetch(self, follower: int, fetch: NextFetch) -> None:
        """Let a follower send its next fetch now, if its process runs; where the ISR is concerned, if it is reached."""
        there = self.brokers.get(follower)
        if there is None or not there.listening:
            return
        needs_way = fetch.finds in (Finds.NEW_LEADER, Finds.EXPELLED)
        if not needs_way or self.unreachable_since(follower, fetch.leader) == math.inf:
            there.as_follower.next_fetch(fetch)

    def others(self, leader: int) -> set[int]:
        return self.brokers.keys() - {leader}

    def suspects(self, leader: int, unasked: bool = True) -> set[int]:
        return {
            id
            for id, broker in self.brokers.items()
            if id != leader
            and (
                broker.as_follower.is_suspect
                or self.unreachable_since(id, leader) != math.inf
                or (unasked and self._misses(leader, broker))
            )
        }

    def _misses(self, leader: int, follower: Broker) -> bool:
        """True if a leader has a broker in the ISR of a partition that no LeaderAndIsr has named to it."""
        process = self.brokers[leader]
        found = filter(process.leads, follower.as_follower.unasked())
        return any(process.as_leader.is_in_isr(tp, follower.id) for tp in found)

    async def until_suspect(self) -> float:
        """Wait until a broker may be late, and return that time; the present one if one may be late already.

        A leader does not wait where events do not come in the order of their times, nor longer than a pause of its own
        process: when that goes on, it looks once. All wait and go on together, in the order of their last looks.
        """
        since = self.clock.now()
        while self.clock.in_order and since == self.clock.now() and not any(map(self.suspects, self.brokers)):
            woken = self.clock.loop.create_future()
            self._waiting_leaders.append(woken)
            since = await woken
        return since

    def wake_leaders(self) -> None:
        """From now on a broker may be late: the leaders that wait for that look again."""
        waiting, self._waiting_leaders = self._waiting_leaders, []
        for woken in waiting:
            if not woken.done():
                woken.set_result(self.clock.now())

    def lag(self, follower: int, leader: int, tp: TopicPartition) -> FollowerLag:
        late_since, stopped_since = self.brokers[follower].as_follower.lag(tp)
        return FollowerLag(late_since, min(stopped_since, self.unreachable_since(follower, leader)))

    def unreachable_since(self, follower: int, leader: int) -> float:
        """Time in seconds since which the two brokers cannot reach each other; infinity if they can.

        A broker of others, which may lead a partition in ZooKeeper, exchanges no records with one of this lab.
        """
        if (other := self.brokers.get(follower)) is None:
            return 0.0
        if not self.links and other.listening:
            return other.paused_since
        cuts = [self.links[ends].cut_since for ends in self._faulty(follower, leader)]
        return min([other.paused_since, math.inf if other.listening else other.down_since, *cuts])


def _finish(future: asyncio.Future, result: object) -> None:
    if future.done():
        return
    if isinstance(result, ConnectionError):
        future.set_exception(result)
    else:
        future.set_result(result)
