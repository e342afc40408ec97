"""Kafka's client of ZooKeeper: handlers by path, pipelining, waiting for a lost connection.

A handler stays registered; ZooKeeper's watches are one-shot. Every read of a path with a handler arms the watch
again, so a change that comes between two reads is noticed by the second. A broken connection is waited for and
what was under way is sent again, though the server may have done it already.
Kafka 2.0.1: zookeeper/ZooKeeperClient.scala, ZooKeeperClient; zk/KafkaZkClient.scala, retryRequestsUntilConnected
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kafka_ctl.errors import ConnectionLoss, NodeExists, SessionExpired
from kafka_ctl.zookeeper import store
from kafka_ctl.zookeeper.json_fields import NotJson
from kafka_ctl.zookeeper.store import (
    Children,
    Create,
    Exists,
    Get,
    Multi,
    Op,
    Result,
    Session,
    WatchedEvent,
    Write,
)
from kafka_ctl.zookeeper.znodes import ControllerZNode

T = TypeVar("T")
Handler = Callable[[str], None]
"""Called with the type of a fired watch."""
Trips = Callable[[Sequence[Op], int], list[Sequence[Op]]]
"""Cuts operations into those that are in flight together, in the place of a window."""


class ZooKeeperClient:
    """One broker's way to ZooKeeper, shared by its controller and its replica manager.

    `window` operations are in flight at most. Those that meet an expired session fail; before Kafka 1.1 they waited
    for the next session and were done in it, as if nothing had happened (`ends_with_session=False`). `trips` may cut
    the operations otherwise.
    """

    def __init__(self, window: int, ends_with_session: bool = True, trips: Trips | None = None) -> None:
        self.window, self.ends_with_session, self.trips = window, ends_with_session, trips
        self.reads_over_no_json = True
        """True if `/controller` and a request for elections that are no JSON count as missing (since 1.1)."""
        self.session: Session | None = None
        self.connected = asyncio.Event()
        self._nodes: dict[str, Handler] = {}
        self._children: dict[str, Handler] = {}

    def state_changed(self, state: str) -> None:
        """Note the new state of the session: Connected, Disconnected or Expired.

        Without a connection operations wait. When the session has expired, waiting operations fail; without
        `ends_with_session` they wait for the next session.
        """
        if state == store.DISCONNECTED or (state == store.EXPIRED and not self.ends_with_session):
            self.connected.clear()
        else:
            self.connected.set()

    def watched(self, event: WatchedEvent) -> None:
        """Hand a fired watch to its handler, if there still is one."""
        children = event.type == store.CHILDREN_CHANGED
        handler = (self._children if children else self._nodes).get(event.path)
        if handler is not None:
            handler(event.type)

    def handle_node(self, path: str, handler: Handler) -> None:
        self._nodes[path] = handler

    def handle_children(self, path: str, handler: Handler) -> None:
        self._children[path] = handler

    async def handle_node_and_check(self, path: str, handler: Handler) -> bool:
        """Register a handler, arm the watch, and say whether the znode is there."""
        self._nodes[path] = handler
        return await self.exists(path, watch=True)

    async def exists(self, path: str, watch: bool = False) -> bool:
        """True if a znode exists. Raises every error but NONODE."""
        answer = (await self.send([Exists(path, watch)]))[0]
        return answer.error != "NONODE" and answer.checked().error is None

    def forget_node(self, path: str) -> bool:
        """Stop listening to a znode; True if there was a handler."""
        return self._nodes.pop(path, None) is not None

    def forget_children(self, path: str) -> None:
        self._children.pop(path, None)

    async def send(self, ops: Sequence[Op]) -> list[Result]:
        """Send all operations, at most `window` of them in flight.

        When the session expires, operations without an answer get SESSIONEXPIRED, or, without `ends_with_session`, are
        sent again in the next session.
        """
        answers: list[Result] = []
        while len(answers) < len(ops):
            await self.connected.wait()
            assert self.session is not None
            session = self.session
            left = ops[len(answers) :]
            try:
                for trip in [left] if self.trips is None else self.trips(left, self.window):
                    answers += await session.send(trip, len(trip) if self.trips else self.window)
            except ConnectionLoss as lost:
                answers += lost.answers
                await asyncio.sleep(0)  # the session's owner clears `connected` while there is no connection
            except SessionExpired as lost:
                answers += lost.answers
                if self.ends_with_session:
                    return answers + [Result(op, "SESSIONEXPIRED") for op in ops[len(answers) :]]
                if self.session is session:
                    self.connected.clear()
                await asyncio.sleep(0)
        return answers

    async def read(self, path: str) -> Result:
        """Read a znode, arming its watch if there is a handler for it."""
        return (await self.send([Get(path, path in self._nodes)]))[0]

    async def read_children(self, path: str) -> list[str]:
        """The names of the children, arming the watch if there is a handler; none if the znode is missing."""
        answer = (await self.send([Children(path, path in self._children)]))[0]
        if answer.error == "NONODE":
            return []
        names = answer.checked().value
        assert isinstance(names, list)
        return list(names)

    async def read_all(self, paths: Iterable[str]) -> list[Result]:
        return await self.send([Get(path, path in self._nodes) for path in paths])

    async def write(self, op: Write | Multi) -> Result:
        return (await self.send([op]))[0]

    async def create_ephemeral(self, path: str, data: bytes) -> None:
        """Create a znode that lives as long as our session; NodeExists if another session's is there.

        One of our own session counts as made by this call: the answer to an earlier attempt was lost.
        """
        answer = await self.write(Create(path, data, ephemeral=True))
        if answer.error == "NODEEXISTS":
            there = await self.read(path)
            taken = NodeExists(path)
            taken.owner = there.stat.ephemeral_owner if there.stat else None
            if self.session is None or taken.owner != self.session.id:
                raise taken
        else:
            answer.checked()

    async def controller_id(self) -> int:
        """The broker named in `/controller`, -1 if there is none. Raises BadInput if it names none."""
        return await self.read_json(ControllerZNode.path(), ControllerZNode.decode, -1)

    async def read_json(self, path: str, decode: Callable[[bytes], T], missing: T) -> T:
        """The contents of a znode; `missing` where there is none, with `reads_over_no_json` also if it is no JSON."""
        data = (await self.read(path)).data_if_any
        try:
            return missing if data is None else decode(data)
        except NotJson:
            if not self.reads_over_no_json:
                raise
            return missing
