"""Kafka's client of ZooKeeper: handlers by path, pipelining, and the questions a controller asks.

A handler stays registered; ZooKeeper's watches are one-shot. Every read of a path with a handler arms the watch
again, so a change that comes between two reads is noticed by the second. A broken connection is waited for and
what was under way is sent again, though the server may have done it already.
Kafka 2.0.1: zk/KafkaZkClient.scala, KafkaZkClient; zookeeper/ZooKeeperClient.scala, ZooKeeperClient
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_ctl.cluster import Broker, LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.errors import BadInput, ConnectionLoss, NodeExists, SessionExpired, ZooKeeperError
from kafka_ctl.zookeeper import store, znodes
from kafka_ctl.zookeeper.store import Children, Create, Delete, Exists, Get, Op, Result, Session, Set, WatchedEvent

Handler = Callable[[str], None]
"""Called with the type of a fired watch."""


class Updated(NamedTuple):
    """What became of a pipelined update of `state` znodes."""

    done: dict[TopicPartition, LeaderAndIsr]
    """Written, with their new zk_version."""
    retry: list[TopicPartition]
    """Somebody else wrote meanwhile (BADVERSION)."""
    failed: dict[TopicPartition, Exception]


class ZkClient:
    """One broker's way to ZooKeeper, shared by its controller and its replica manager.

    `window` operations are in flight at most.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self.session: Session | None = None
        self.connected = asyncio.Event()
        self._nodes: dict[str, Handler] = {}
        self._children: dict[str, Handler] = {}

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
        return (await self.send([Exists(path, watch=True)]))[0].error is None

    def forget_node(self, path: str) -> None:
        self._nodes.pop(path, None)

    def forget_children(self, path: str) -> None:
        self._children.pop(path, None)

    async def send(self, ops: Sequence[Op]) -> list[Result]:
        """Send all operations through the window; an expired session answers SESSIONEXPIRED to each."""
        while ops:
            await self.connected.wait()
            assert self.session is not None
            try:
                return await self.session.send(ops, self.window)
            except ConnectionLoss:
                self.connected.clear()
            except SessionExpired:
                return [Result(op, "SESSIONEXPIRED") for op in ops]
        return []

    async def read(self, path: str) -> Result:
        """Read a znode, arming its watch if there is a handler for it."""
        return (await self.send([Get(path, path in self._nodes)]))[0]

    async def read_children(self, path: str) -> list[str]:
        """The names of the children, arming the watch if there is a handler; none if the znode is missing."""
        answer = (await self.send([Children(path, path in self._children)]))[0]
        return [] if answer.error == "NONODE" else list(answer.checked().value)  # type: ignore[arg-type]

    async def read_all(self, paths: Iterable[str]) -> list[Result]:
        return await self.send([Get(path, path in self._nodes) for path in paths])

    async def write(self, op: Create | Set | Delete) -> Result:
        return (await self.send([op]))[0]

    async def create_ephemeral(self, path: str, data: bytes) -> None:
        """Create a znode that lives as long as our session; NodeExists if another session's is there.

        One of our own session counts as made by this call: the answer to an earlier attempt was lost.
        """
        answer = await self.write(Create(path, data, ephemeral=True))
        if answer.error == "NODEEXISTS":
            there = await self.read(path)
            owner = there.stat.ephemeral_owner if there.stat else 0
            if self.session is None or owner != self.session.id:
                raise NodeExists(path)
        else:
            answer.checked()

    # What a controller asks.

    async def controller_id(self) -> int:
        """The broker named in `/controller`, -1 if there is none."""
        answer = await self.read(znodes.ControllerZNode.path())
        if answer.error == "NONODE":
            return -1
        assert isinstance(answer.checked().value, bytes)
        return znodes.ControllerZNode.decode(answer.value)  # type: ignore[arg-type]

    async def brokers(self) -> dict[int, Broker]:
        """Every registered broker; one that vanished between the two reads is left out."""
        ids = znodes.BrokerIdsZNode.ids(await self.read_children(znodes.BrokerIdsZNode.path()))
        answers = await self.read_all(znodes.BrokerIdZNode.path(b) for b in ids)
        return {
            b: znodes.BrokerIdZNode.decode(a.value, b, a.stat.czxid)  # type: ignore[arg-type, union-attr]
            for b, a in zip(ids, answers, strict=True)
            if a.error is None
        }

    async def assignments(self, topics: Iterable[str]) -> dict[str, dict[int, ReplicaAssignment]]:
        """The replica assignment of each topic that exists."""
        names = list(topics)
        answers = await self.read_all(znodes.TopicZNode.path(t) for t in names)
        return {
            t: znodes.TopicZNode.decode(a.value, t)  # type: ignore[arg-type]
            for t, a in zip(names, answers, strict=True)
            if a.error is None
        }

    async def states(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LeaderAndIsr | Exception]:
        """Leader and ISR of each partition as ZooKeeper has them; a NoNode or another error where it has none."""
        wanted = list(partitions)
        answers = await self.read_all(map(znodes.TopicPartitionStateZNode.path, wanted))
        found: dict[TopicPartition, LeaderAndIsr | Exception] = {}
        for tp, answer in zip(wanted, answers, strict=True):
            try:
                answer.checked()
                found[tp] = znodes.TopicPartitionStateZNode.decode(answer.value, answer.stat.version, tp)  # type: ignore
            except (ZooKeeperError, BadInput) as error:
                found[tp] = error
        return found

    async def update_states(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> Updated:
        """Write each state on condition of the zk_version it carries."""
        path, encode = znodes.TopicPartitionStateZNode.path, znodes.TopicPartitionStateZNode.encode
        answers = await self.send([Set(path(tp), encode(state), state.zk_version) for tp, state in states.items()])
        updated = Updated({}, [], {})
        for (tp, state), answer in zip(states.items(), answers, strict=True):
            if answer.error is None:
                assert answer.stat is not None
                updated.done[tp] = state._replace(zk_version=answer.stat.version)
            elif answer.error == "BADVERSION":
                updated.retry.append(tp)
            else:
                updated.failed[tp] = _error(answer)
        return updated

    async def create_states(self, states: Mapping[TopicPartition, LeaderAndIsr]) -> dict[TopicPartition, Exception]:
        """Create the `state` znodes and the znodes above them; returns the errors of those that failed."""
        parents = [znodes.TopicPartitionsZNode.path(t) for t in dict.fromkeys(tp.topic for tp in states)]
        await self.send([Create(p) for p in parents])
        await self.send([Create(znodes.TopicPartitionZNode.path(tp)) for tp in states])
        path, encode = znodes.TopicPartitionStateZNode.path, znodes.TopicPartitionStateZNode.encode
        answers = await self.send([Create(path(tp), encode(state)) for tp, state in states.items()])
        return {tp: _error(a) for tp, a in zip(states, answers, strict=True) if a.error is not None}

    async def delete_children(self, path: str, names: Iterable[str]) -> None:
        await self.send([Delete(f"{path}/{name}") for name in names])


def _error(answer: Result) -> Exception:
    try:
        answer.checked()
    except ZooKeeperError as error:
        return error
    raise AssertionError("the answer has no error")
