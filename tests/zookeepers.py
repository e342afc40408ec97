"""The worlds a store lives in, for tests: in memory on virtual time, and a real server on real time.

A test is written once, as a coroutine that takes a `World`; `story` makes it a plain test.
"""

from __future__ import annotations

import asyncio
import functools
import shutil
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_ctl.errors import Unavailable
from kafka_ctl.setup.java import java_executable
from kafka_ctl.simulation.clock import Clock, RealClock, VirtualClock
from kafka_ctl.trace import Trace
from kafka_ctl.zookeeper.memory.server import MemoryStore
from kafka_ctl.zookeeper.real.server import EmbeddedServer, zookeeper_jars
from kafka_ctl.zookeeper.real.store import RemoteStore
from kafka_ctl.zookeeper.store import (
    ANY_VERSION,
    Children,
    Create,
    Delete,
    Get,
    Op,
    Result,
    Session,
    Set,
    Stat,
    Store,
    WatchedEvent,
)
from tools.recorder.release import Release

SHORT = {
    "zookeeper.session.timeout.ms": 1500,
    "replica.lag.time.max.ms": 2500,
    "auto.leader.rebalance.enable": False,
}
"""Settings where real time is short. What a controller does by the clock alone is not wanted."""


class Client:
    """A session and all it was told."""

    session: Session

    def __init__(self) -> None:
        self.events: list[WatchedEvent] = []
        self.states: list[str] = []

    @property
    def fired(self) -> list[tuple[str, str]]:
        return [tuple(event) for event in self.events]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    async def caught_up(self) -> None:
        """After any answer, everything the server sent before it has been heard."""
        await self.session.exists("/")

    async def ask(self, op: Op) -> Result:
        """Send one operation and raise its error, if any."""
        return (await self.session.send((op,)))[0].checked()

    async def get(self, path: str, watch: bool = False) -> tuple[bytes, Stat]:
        answer = await self.ask(Get(path, watch))
        return answer.data, answer.found

    async def children(self, path: str, watch: bool = False) -> list[str]:
        answer = await self.ask(Children(path, watch))
        assert isinstance(answer.value, list)
        return answer.value

    async def create(self, path: str, data: bytes = b"", ephemeral: bool = False, sequence: bool = False) -> str:
        answer = await self.ask(Create(path, data, ephemeral, sequence))
        assert isinstance(answer.value, str)
        return answer.value

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        return (await self.ask(Set(path, data, version))).found

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.ask(Delete(path, version))


class World:
    """A clock, a trace and one or more stores; closes them all."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.trace, self.stores = clock, Trace(clock.now), []
        self.store: Store = self.add_store()

    def add_store(self) -> Store:
        raise NotImplementedError

    def run(self, coro: Coroutine[Any, Any, Any]) -> Any:
        return self.clock.run(asyncio.wait_for(coro, 60) if isinstance(self.clock, RealClock) else coro)

    async def connect(self, actor: str = "admin", timeout: float = 6, store: Any = None) -> Client:
        client = Client()
        client.session = await (store or self.store).connect(actor, timeout, client.events.append, client.states.append)
        return client

    async def until(self, holds: Callable[[], Any], limit: float = 60) -> None:
        """Wait until something holds; fails after `limit` seconds of this world's time."""
        end = self.clock.now() + limit
        while not holds():
            assert self.clock.now() < end, "what was waited for did not come"
            await self.clock.sleep(0.01)

    def close(self) -> None:
        for store in self.stores:
            self.run(store.close())
        self.clock.close()


class MemoryWorld(World):
    def __init__(self) -> None:
        super().__init__(VirtualClock())

    def add_store(self) -> Store:
        store = MemoryStore(self.clock, self.trace)
        self.stores.append(store)
        return store


class RealWorld(World):
    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(RealClock())

    def add_store(self, address: str | None = None) -> RemoteStore:
        store = RemoteStore(address or self.address, self.clock, self.trace)
        self.stores.append(store)
        return store


def needed() -> None:
    """Skip the test where there can be no server: without Java, or without the jars of PySpark."""
    try:
        java_executable()
        zookeeper_jars()
    except Unavailable as reason:
        pytest.skip(str(reason))


def started() -> Iterator[EmbeddedServer]:
    """A server for a fixture; the test is skipped where there can be none."""
    needed()
    with EmbeddedServer() as server:
        yield server


@contextmanager
def kazoo_at(address: str) -> Iterator[KazooClient]:
    """Somebody else's client, which knows nothing of us."""
    client = KazooClient(address)
    client.start(10)
    try:
        yield client
    finally:
        client.stop()
        client.close()


NEEDS = [program for program in ("java", "mvn") if shutil.which(program) is None]
beside_kafka = pytest.mark.skipif(bool(NEEDS), reason=f"real Kafka needs {' and '.join(NEEDS)}")


def fetched(release: Release) -> Release:
    """A release of Kafka; the test is skipped where Maven cannot fetch it."""
    try:
        release.resolve()
    except (subprocess.CalledProcessError, SystemExit) as error:
        pytest.skip(f"Kafka {release.kafka} cannot be fetched: {error}")
    return release


def story(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a test of a coroutine that takes a world, and the values of a case."""

    @functools.wraps(test)
    def run(world: World, **case: Any) -> None:
        world.run(test(world, **case))

    return run
