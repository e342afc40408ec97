"""The world on real time and a real ZooKeeper: whose chroot it lives in, and what if the server goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext, suppress
from typing import TypeVar

from kafka_ctl.errors import BadInput, ConnectionLoss, Unavailable
from kafka_ctl.simulation.real_time import RealTimeWorld
from kafka_ctl.simulation.world import EMBEDDED, WorldOptions
from kafka_ctl.zookeeper.malformed import malformed
from kafka_ctl.zookeeper.real.chroot import LabStore
from kafka_ctl.zookeeper.real.server import EmbeddedServer
from kafka_ctl.zookeeper.real.session import RemoteSession
from kafka_ctl.zookeeper.store import CONNECTED, Session
from kafka_ctl.zookeeper.znodes import ClusterIdZNode

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds without a connection to ZooKeeper after which a call of the lab gives up: a server that somebody starts
again takes half a second, and ten on a busy machine."""
CERTAIN = 2.0
"""The same where the lab knows better: it is its own server, and was killed."""
SHORTEST_SESSION = 1000
"""The shortest session timeout, in milliseconds, that a client which pings once a second can keep alive."""


class RealWorld(RealTimeWorld):
    """`zookeeper` is `embedded` or `host:port/chroot`; with `join`, that chroot may hold what no lab has made, and with
    `among`, others' brokers may live there.

    Raises Unavailable when the server does not answer, BadInput for an address that cannot be read or where the
    lab may not live.
    """

    store: LabStore

    def __init__(self, zookeeper: str, options: WorldOptions, join: bool = False, among: bool = False) -> None:
        shortest = options.config["zookeeper.session.timeout.ms"]
        if shortest < SHORTEST_SESSION:
            raise BadInput(
                f"configuration key 'zookeeper.session.timeout.ms' cannot be {shortest} on a real ZooKeeper; "
                f"it is {SHORTEST_SESSION} or more"
            )
        super().__init__(options)
        try:
            if zookeeper == EMBEDDED:
                self.server = EmbeddedServer().start()
            address = self.server.address if self.server else zookeeper
            self.store = LabStore(address, self.clock, self.trace, self.server, shortest / 1000, join, among)
            self.run(self.store.claim(self._workable))
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Undo what a constructor that failed had begun."""
        try:
            if hasattr(self, "store"):
                self.clock.run(self.store.close())
            elif self.server is not None:
                self.server.stop()
        finally:
            self.clock.close()

    def _workable(self, found: Mapping[str, tuple[bytes, int, int]]) -> None:
        """Refuse to start brokers on somebody's garbage; whose cluster we join, its name is ours."""
        if problems := list(malformed(found)):
            raise BadInput(
                f"ZooKeeper {self.address} holds what no controller can work with: {'; '.join(problems[:3])}. "
                "Delete it, or give the lab a chroot of its own, such as host:port/kit"
            )
        if (there := found.get(ClusterIdZNode.path())) is not None:
            with suppress(BadInput):
                self.cluster_id = ClusterIdZNode.decode(there[0])

    @property
    def address(self) -> str:
        return self.store.address

    def close(self) -> None:
        with suppress(BadInput) if self.store.lost else nullcontext():  # that has been said
            super().close()

    def _let_go(self) -> None:
        self.store.lock.release()

    def expire(self, session: Session) -> None:
        assert isinstance(session, RemoteSession)
        self.store.expire(session)
        self._expected.append(lambda: session.over)

    # Waiting

    def run(self, coro: Coroutine[object, None, T]) -> T:
        if self.clock.closed:
            coro.close()
        return self.clock.run(self._while_connected(coro))

    async def _while_connected(self, coro: Coroutine[object, None, T]) -> T:
        """The result of `coro`; Unavailable when the connection is lost meanwhile, and stays lost."""
        task, check = asyncio.create_task(coro), self._patience()
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=0.1)
                if not task.done():
                    check()
            return task.result()
        except ConnectionLoss as lost:
            raise self._unavailable() from lost
        finally:
            task.cancel()
            await asyncio.wait({task})

    def _patience(self) -> Callable[[], None]:
        """A check to be repeated: Unavailable when the connection has been lost for too long.

        Also when only some sessions have none: a server that has just started may leave a client waiting. BadInput
        when the chroot is another lab's now: our sessions are abandoned then, and answer nobody.
        """
        lost: float | None = None

        def check() -> None:
            nonlocal lost
            if self.store.lost:
                raise BadInput(self.store.lost)
            states = {session.state == CONNECTED for session in self.store.sessions if not session.over}
            if False not in states:
                lost = None
                return
            lost = self.clock.now() if lost is None else lost
            if self.clock.now() - lost > self._seconds_of_patience():
                raise self._unavailable()

        return check

    def _seconds_of_patience(self) -> float:
        return PATIENCE if self.server is None or self.server.wanted else CERTAIN

    async def dump(self) -> dict[str, tuple[bytes, int, int]]:
        start = self.clock.now()
        while True:
            try:
                return await self.store.dump()
            except ConnectionLoss:
                if self.clock.now() > start + self._seconds_of_patience():
                    raise

    def _unavailable(self) -> Unavailable:
        hint = "start it again with lab.zookeeper_server.restart()" if self.server else "start it again"
        return Unavailable(f"ZooKeeper at {self.address} does not answer any more; {hint}, and the lab goes on")

    async def _caught_up(self) -> None:
        await asyncio.gather(*(session.caught_up() for session in self.store.sessions))

    def _is_connected(self, session: Session) -> bool:
        return isinstance(session, RemoteSession) and session.state == CONNECTED
