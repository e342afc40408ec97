"""The world on real time and a real ZooKeeper: whose chroot it lives in, and what if the server goes away.

Separate from `lab.py` because it needs kazoo and a server, and the memory world neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext, suppress
from typing import TypeVar

from kafka_ctl.errors import BadInput, ConnectionLoss, SessionExpired, Unavailable
from kafka_ctl.simulation.real_time import RealTimeWorld
from kafka_ctl.simulation.world import WorldOptions
from kafka_ctl.zookeeper.real.chroot import LabStore
from kafka_ctl.zookeeper.real.server import EmbeddedServer
from kafka_ctl.zookeeper.real.session import RemoteSession
from kafka_ctl.zookeeper.store import CONNECTED, EMBEDDED, Session
from kafka_ctl.zookeeper.znodes import ClusterIdZNode, malformed

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds without a connection to ZooKeeper after which a call of the lab gives up: a server that a person starts
again takes half a second, and ten on a busy machine."""
CERTAIN = 2.0
"""The same where the lab knows better: it is its own server, and was killed or has ended."""
STEADY = 1.0
"""Seconds for which a connection must have held to count as back: a server on a full disk may answer until the first
write, end, be started again, and so on."""
SHORTEST_SESSION = 1000
"""The shortest session timeout, in milliseconds, that a client which pings once a second can keep alive."""


class Outage:
    """Since when ZooKeeper has not been reached; a connection that holds for less than `STEADY` does not end it."""

    def __init__(self) -> None:
        self._lost: float | None = None
        self._back: float | None = None

    def lasts(self, connected: bool, now: float) -> float:
        """The seconds that it has lasted, 0 where there is none; `now` is in seconds."""
        if not connected:
            self._lost, self._back = now if self._lost is None else self._lost, None
            return now - self._lost
        self._back = now if self._back is None else self._back
        if now - self._back >= STEADY:
            self._lost = None
        return 0.0


class RealWorld(RealTimeWorld):
    """`zookeeper` is `embedded` or `host:port/chroot`; with `join`, that chroot may hold what no lab has made, and with
    `among`, others' brokers may live there. With `fresh`, what other labs have left there is removed first.

    Raises Unavailable when the server does not answer, BadInput for an address that cannot be read or where the
    lab may not live.
    """

    store: LabStore

    def __init__(
        self, zookeeper: str, options: WorldOptions, join: bool = False, among: bool = False, fresh: bool = False
    ) -> None:
        shortest = options.config["zookeeper.session.timeout.ms"]
        if shortest < SHORTEST_SESSION:
            raise BadInput(
                f"configuration key 'zookeeper.session.timeout.ms' cannot be {shortest} on a real ZooKeeper; "
                f"it must be {SHORTEST_SESSION} or more"
            )
        super().__init__(options)
        try:
            if zookeeper == EMBEDDED:
                self.server = EmbeddedServer().start()
            address = self.server.address if self.server else zookeeper
            self.store = LabStore(address, self.clock, self.trace, self.server, shortest / 1000, join, among)
            self.run(self.store.claim(self._workable, fresh))
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
        """Refuse to start brokers on data that a controller cannot use. Take over the id of a cluster that is there."""
        if problems := list(malformed(found)):
            raise BadInput(
                f"ZooKeeper {self.address} holds data that a controller cannot use: {'; '.join(problems[:3])}. "
                "Delete that data (Lab(fresh=True) does so if labs made it), or give the lab a chroot of its own, "
                "such as host:port/kit"
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
        """The result of `coro`. Raises Unavailable if its session ends, or the connection is lost and stays lost."""
        task, check = asyncio.create_task(coro), self._patience()
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=0.1)
                if not task.done():
                    check()
            return task.result()
        except ConnectionLoss as lost:
            raise self._unavailable() from lost
        except SessionExpired as expired:
            raise Unavailable(
                f"ZooKeeper at {self.address} ended the command's session before it had answered; lab.znodes() shows "
                "what of the command is done, and the next command opens another session"
            ) from expired
        finally:
            task.cancel()
            await asyncio.wait({task})

    def _patience(self) -> Callable[[], None]:
        """A check to be repeated: Unavailable when the connection has been lost for too long.

        Also when only some sessions have none: a server that has just started may leave a client waiting. BadInput
        when the chroot is another lab's now: our sessions are abandoned then, and answer no call.
        """
        outage = Outage()

        def check() -> None:
            if self.store.lost:
                raise BadInput(self.store.lost)
            connected = all(session.state == CONNECTED for session in self.store.sessions if not session.over)
            if outage.lasts(connected, self.clock.now()) > self._seconds_of_patience():
                raise self._unavailable()

        return check

    def _seconds_of_patience(self) -> float:
        return PATIENCE if self.server is None or (self.server.wanted and self.server.running) else CERTAIN

    async def dump(self, root: str = "/") -> dict[str, tuple[bytes, int, int]]:
        start = self.clock.now()
        while True:
            try:
                return await self.store.dump(root)
            except (ConnectionLoss, SessionExpired):  # the next attempt opens another session
                if self.clock.now() > start + self._seconds_of_patience():
                    raise

    def _unavailable(self) -> Unavailable:
        if self.server is None:
            return Unavailable(
                f"ZooKeeper at {self.address} does not answer any more; start it again (its log says why it ended: a "
                "full disk, for example), and the lab goes on"
            )
        hint = "start it again with lab.zookeeper_server.restart(), and the lab goes on"
        if self.server.wanted and not self.server.running:
            why = self.server.last_exception()
            return Unavailable(f"ZooKeeper at {self.address} has ended{why and f' ({why})'}; cure that, then {hint}")
        return Unavailable(f"ZooKeeper at {self.address} does not answer any more; {hint}")

    async def _caught_up(self) -> None:
        await asyncio.gather(*(session.caught_up() for session in self.store.sessions))

    def _is_connected(self, session: Session) -> bool:
        return isinstance(session, RemoteSession) and session.state == CONNECTED
