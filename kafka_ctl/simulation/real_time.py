"""Worlds on real time: when is it quiet there, and the one whose ZooKeeper is in this process.

On virtual time one knows when nothing is left to happen. Here the lab checks that no broker is busy, lets every
session receive all of ZooKeeper's events, and checks again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from kafka_ctl.brokers.states import DOWN
from kafka_ctl.errors import ConditionNotMet
from kafka_ctl.latencies import Costs
from kafka_ctl.simulation.clock import RealClock
from kafka_ctl.simulation.world import World, WorldOptions
from kafka_ctl.zookeeper.memory.server import MemoryStore
from kafka_ctl.zookeeper.memory.session import MemorySession
from kafka_ctl.zookeeper.store import Session
from kafka_ctl.zookeeper.znodes import BrokerIdsZNode, ControllerZNode, malformed

COSTS = Costs(
    zookeeper_round_trip=0.0,
    request=0.0,
    request_state=0.0,
    deletion=0.0,
    first_deletion=0.0,
    byte=0.0,
    boot=0.0,
    catch_up=0.2,
)
"""On real time the machine itself takes its time."""
LOOK = 0.01
"""Seconds between two looks at a condition."""
SETTLE_SECONDS = 60.0
"""The default wait of `settle` and `run_until`, beside twice Kafka's own longest wait."""
END_SECONDS = 20.0
"""The wait of an ending program for a lab to end."""


class RealTimeWorld(World):
    """A world whose clock is the wall's."""

    clock: RealClock
    watches_configs = True

    def __init__(self, options: WorldOptions) -> None:
        super().__init__(options, RealClock(), COSTS)
        patience = self.config["zookeeper.session.timeout.ms"] + self.config["replica.lag.time.max.ms"]
        self.limit = SETTLE_SECONDS + 2 * patience / 1000
        self._expected: list[Callable[[], bool]] = []
        self._late_since: float | None = None

    def dropped(self, waits: bool) -> None:
        if self.clock.closed:
            return
        self._let_go()
        self.clock.closed = True
        self.clock.loop.call_soon_threadsafe(self._end_here)
        if waits:
            self.clock.thread.join(END_SECONDS)

    def _let_go(self) -> None:
        """Release at once what another lab may be waiting for, such as the lock of a chroot."""

    def _end_here(self) -> None:
        """End in the thread of our loop, which ends with us: who drops a lab may be anywhere."""
        ending = self.clock.loop.create_task(self._end())
        ending.add_done_callback(lambda done: (done.cancelled() or done.exception(), self.clock.loop.stop()))

    def run_until(self, holds: Callable[[], bool], limit: float | None) -> bool:
        check = self._patience()

        def reached() -> bool:
            self.clock.call(check)
            return holds()

        try:
            self.clock.wait(reached, self.limit if limit is None else limit)
        except ConditionNotMet:
            return False
        return True

    def _patience(self) -> Callable[[], None]:
        """A check to be repeated while a caller waits: raises when waiting has become pointless."""
        return lambda: None

    async def _caught_up(self) -> None:
        """Return when each session has received what ZooKeeper had sent until now."""
        raise NotImplementedError

    def settle(self, limit: float | None = None) -> None:
        seconds = self.limit if limit is None else limit
        self._late_since = None
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            left = max(0.0, end - time.monotonic())
            reached = self.run_until(
                lambda: self.clock.call(lambda: self._quiet() or bool(self.election_blocked_by())), left
            )
            why = self.clock.call(self.election_blocked_by)
            if why and any(malformed(self.run(self.dump()))):  # else it has been repaired meanwhile
                raise ConditionNotMet(why)
            if reached and self.run(self._still_quiet()):
                return
        busy = self.clock.call(self.busy) or ["ZooKeeper and the controller disagree about who is alive"]
        raise ConditionNotMet(
            f"the lab is still busy after {seconds:g} s: {'; '.join([*busy, *malformed(self.run(self.dump()))])}"
        )

    # Quiet?

    def _quiet(self) -> bool:
        return not self.busy()

    def busy(self) -> list[str]:
        self._expected = [happened for happened in self._expected if not happened()]
        busy = super().busy()
        if self._expected or self.clock.pending:
            busy.append("operations, requests or waits are under way")
        if not busy and self._expects_a_shrink():
            busy.append("a leader has not yet removed a follower that stopped fetching from the ISR")
        return busy

    def _expects_a_shrink(self) -> bool:
        """True if a leader will soon take a follower out of an ISR; one that has failed to for long is left alone."""
        if not self._has_late_follower():
            self._late_since = None
            return False
        now, patience = self.clock.now(), self.config["replica.lag.time.max.ms"] / 1000
        self._late_since = now if self._late_since is None else self._late_since
        return now - self._late_since <= 2 * patience + 1

    async def _still_quiet(self) -> bool:
        """True if all are quiet also after each session has received what ZooKeeper had sent until now."""
        before = len(self.trace)
        registered, stored = await self.dump(BrokerIdsZNode.path()), await self.dump(ControllerZNode.path())
        await self._caught_up()
        await asyncio.sleep(LOOK)
        ids = (path.rpartition("/")[2] for path in registered if path != BrokerIdsZNode.path())
        alive = [broker for broker in BrokerIdsZNode.ids(ids) if broker in self.brokers]
        up = sorted(broker.id for broker in self.brokers.values() if broker.state != DOWN)
        acting = self.acting()
        named = ControllerZNode.named(stored[ControllerZNode.path()][0]) if stored else None
        if acting is None:  # there is no controller, or all believe an id that was written by hand
            agreed = {broker.controller.active_id for broker in self.brokers.values() if broker.listening} <= {named}
        else:
            agreed = acting.id == named
        return sorted(alive) == up and agreed and self._quiet() and len(self.trace) == before


class MemoryInRealTime(RealTimeWorld):
    """Real time and a ZooKeeper in this process, for clients that come from outside."""

    store: MemoryStore

    def __init__(self, options: WorldOptions) -> None:
        super().__init__(options)
        self.store = self.clock.call(
            lambda: MemoryStore(self.clock, self.trace, self.costs.zookeeper_round_trip, self.costs.zookeeper_tick)
        )

    def expire(self, session: Session) -> None:
        assert isinstance(session, MemorySession)
        self.store.expire(session)

    async def _caught_up(self) -> None:
        await self.clock.sleep(self.costs.zookeeper_round_trip)
