"""The world on real time and a real ZooKeeper: when is it quiet there, and what if the server goes away.

In memory one knows when nothing is left to happen. Here the lab asks: nobody is busy, and after every session
has heard all that ZooKeeper had to say, still nobody is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

from kafka_ctl.brokers.broker import DOWN, STARTING, Broker
from kafka_ctl.errors import BadInput, ConnectionLoss, NotReached, Unavailable
from kafka_ctl.generation import Generation
from kafka_ctl.simulation.clock import RealClock
from kafka_ctl.simulation.latencies import Costs
from kafka_ctl.simulation.world import EMBEDDED, World, named_controller
from kafka_ctl.trace.record import Recorder
from kafka_ctl.zookeeper.malformed import malformed
from kafka_ctl.zookeeper.real.chroot import LabStore
from kafka_ctl.zookeeper.real.server import EmbeddedServer
from kafka_ctl.zookeeper.real.session import RemoteSession
from kafka_ctl.zookeeper.store import CONNECTED, Session
from kafka_ctl.zookeeper.znodes import BrokerIdsZNode, ClusterIdZNode, ControllerZNode

T = TypeVar("T")

COSTS = Costs(zookeeper_round_trip=0.0, request=0.0, request_state=0.0, boot=0.0, catch_up=0.2)
"""On real time the machine itself takes its time."""
LOOK = 0.01
"""Seconds between two looks at a condition."""
PATIENCE = 20.0
"""Seconds without a connection to ZooKeeper after which a call of the lab gives up: a server that somebody starts
again takes half a second, and ten on a busy machine."""
CERTAIN = 2.0
"""The same where the lab knows better: it is its own server, and was killed."""
SETTLE_SECONDS = 60.0
"""How long `settle` and `run_until` wait, beside twice what Kafka itself waits, unless told otherwise."""
END_SECONDS = 20.0
"""How long a program that ends waits for a lab to end."""
SHORTEST_SESSION = 1000
"""The shortest session timeout, in milliseconds, that a client which pings once a second can keep alive."""


class RealWorld(World):
    """`zookeeper` is `embedded` or `host:port/chroot`; with `join`, that chroot may hold what no lab has made.

    Raises Unavailable when the server does not answer, BadInput for an address that cannot be read or where the
    lab may not live.
    """

    clock: RealClock
    store: LabStore

    def __init__(
        self,
        zookeeper: str,
        generation: Generation,
        config: Mapping[str, Any],
        seed: int,
        costs: Costs | None,
        history: str,
        recorder: type[Recorder] = Recorder,
        join: bool = False,
    ) -> None:
        shortest = config["zookeeper.session.timeout.ms"]
        if shortest < SHORTEST_SESSION:
            raise BadInput(
                f"configuration key 'zookeeper.session.timeout.ms' cannot be {shortest} on a real ZooKeeper; "
                f"it is {SHORTEST_SESSION} or more"
            )
        super().__init__(generation, config, seed, RealClock(), costs or COSTS, history, recorder)
        self.limit = SETTLE_SECONDS + 2 * (shortest + config["replica.lag.time.max.ms"]) / 1000
        self._expected: list[Callable[[], bool]] = []
        self._late_since: float | None = None
        try:
            if zookeeper == EMBEDDED:
                self.server = EmbeddedServer().start()
            address = self.server.address if self.server else zookeeper
            self.store = LabStore(address, self.clock, self.trace, self.server, shortest / 1000, join)
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

    def dropped(self, waits: bool) -> None:
        if self.clock.closed:
            return
        self.store.lock.release()
        self.clock.closed = True
        self.clock.loop.call_soon_threadsafe(self._end_here)
        if waits:
            self.clock.thread.join(END_SECONDS)

    def _end_here(self) -> None:
        """End in the thread of our loop, which ends with us: who drops a lab may be anywhere."""
        ending = self.clock.loop.create_task(self._end())
        ending.add_done_callback(lambda done: (done.cancelled() or done.exception(), self.clock.loop.stop()))

    def expire(self, session: Session) -> None:
        assert isinstance(session, RemoteSession)
        self.store.expire(session)
        self._expected.append(lambda: session.over)

    # Waiting

    def run(self, coro: Coroutine[Any, Any, T]) -> T:
        if self.clock.closed:
            coro.close()
        return self.clock.run(self._while_connected(coro))

    async def _while_connected(self, coro: Coroutine[Any, Any, T]) -> T:
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
        cure = "start it again with lab.zookeeper_server.restart()" if self.server else "start it again"
        return Unavailable(f"ZooKeeper at {self.address} does not answer any more; {cure}, and the lab goes on")

    def run_until(self, holds: Callable[[], bool], limit: float | None) -> bool:
        check = self._patience()

        def reached() -> bool:
            self.clock.call(check)
            return holds()

        try:
            self.clock.wait(reached, self.limit if limit is None else limit)
        except NotReached:
            return False
        return True

    def settle(self, limit: float | None = None) -> None:
        seconds = self.limit if limit is None else limit
        self._late_since = None
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            left = max(0.0, end - time.monotonic())
            reached = self.run_until(lambda: self.clock.call(lambda: self._quiet() or bool(self.hopeless())), left)
            why = self.clock.call(self.hopeless)
            if why and any(malformed(self.run(self.dump()))):  # else it has been repaired meanwhile
                raise NotReached(why)
            if reached and self.run(self._still_quiet()):
                return
        busy = self.clock.call(self._busy) or "ZooKeeper and the controller disagree about who is alive"
        busy = "; ".join([busy, *malformed(self.run(self.dump()))])
        raise NotReached(f"the lab is still busy after {seconds:g} s: {busy}")

    # Quiet?

    def _quiet(self) -> bool:
        return not self._busy()

    def _busy(self) -> str:
        """Who still has something to do; empty when nobody has."""
        self._expected = [happened for happened in self._expected if not happened()]
        up = [broker for broker in self.brokers.values() if broker.state != DOWN]
        busy = [f"broker {broker.id} {what}" for broker in up if (what := _does(broker))]
        if self._expected or self.clock.pending:
            busy.append("operations, requests or waits are under way")
        acting = self.acting()
        if acting is None and any(broker.controller.active_id == -1 for broker in up):
            busy.append("there is no controller")
        elif acting is not None and acting.context.brokers.keys() != {broker.id for broker in up}:
            busy.append(f"controller {acting.id} believes that brokers {sorted(acting.context.brokers)} are alive")
        if not busy and self._expects_a_shrink():
            busy.append("a leader still counts a silent follower as in sync")
        return "; ".join(busy)

    def _expects_a_shrink(self) -> bool:
        """Whether a leader will soon take a follower out of an ISR; one that has failed to for long is left alone."""
        if not self._somebody_is_late():
            self._late_since = None
            return False
        now, patience = self.clock.now(), self.config["replica.lag.time.max.ms"] / 1000
        self._late_since = now if self._late_since is None else self._late_since
        return now - self._late_since <= 2 * patience + 1

    async def _still_quiet(self) -> bool:
        """Whether all are quiet also after each session has heard what ZooKeeper had to tell it until now."""
        before = len(self.trace)
        znodes = await self.dump()
        await asyncio.gather(*(session.caught_up() for session in self.store.sessions))
        await asyncio.sleep(LOOK)
        alive = BrokerIdsZNode.ids(
            path.rpartition("/")[2] for path in znodes if path.startswith(BrokerIdsZNode.path() + "/")
        )
        up = sorted(broker.id for broker in self.brokers.values() if broker.state != DOWN)
        stored = znodes.get(ControllerZNode.path())
        acting = self.acting()
        named = named_controller(stored[0]) if stored else None
        if acting is None:  # nobody is there, or all believe what somebody has written by hand
            agreed = {broker.controller.active_id for broker in self.brokers.values() if broker.listening} <= {named}
        else:
            agreed = acting.id == named
        return sorted(alive) == up and agreed and self._quiet() and len(self.trace) == before


def _does(broker: Broker) -> str:
    """What keeps a broker from being quiet; empty when nothing does."""
    controller, session = broker.controller, broker.zk.session
    if broker.state == STARTING:
        return "is starting"
    if session is None or not isinstance(session, RemoteSession) or session.state != CONNECTED:
        return "has no connection to ZooKeeper"
    if len(controller.queue) or controller.state != "Idle":
        return f"works on {controller.state}"
    return "has requests to send" if controller.channels.waiting else ""
