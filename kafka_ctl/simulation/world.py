"""A world: the three ports (store, network, clock) and the brokers that live in it.

`MemoryWorld` is virtual time and a ZooKeeper in this process. The worlds on real time are in `real_time.py` (ZooKeeper
in this process) and `real_world.py` (a real one: `embedded`, or `host:port/chroot`).
"""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar, Unpack

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.brokers.fetches import FETCH_BACKOFF
from kafka_ctl.brokers.process import Listeners
from kafka_ctl.brokers.states import DOWN, RECOVERING, SHUTTING_DOWN, STARTING
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller.controller import Controller
from kafka_ctl.errors import ConditionNotMet, IdentityError, PluginFailed, UnknownName
from kafka_ctl.generation import Config, Generation
from kafka_ctl.latencies import Costs
from kafka_ctl.plugins import Plugins
from kafka_ctl.ports import LIMIT, Halted
from kafka_ctl.simulation.clock import Clock, VirtualClock
from kafka_ctl.simulation.network import Network
from kafka_ctl.trace.record import Columns, Recorder
from kafka_ctl.zookeeper.memory.server import MemorySession, MemoryStore
from kafka_ctl.zookeeper.store import Session, Stat, Store

if TYPE_CHECKING:
    from kafka_ctl.zookeeper.real.server import EmbeddedServer

T = TypeVar("T")
CLUSTER_ID = "kafka-ctl-teaching-kit"


class WorldOptions(NamedTuple):
    """The arguments of every world; `costs` of None are the usual ones of that world."""

    generation: Generation
    config: Config
    seed: int
    costs: Costs | None
    history: str
    recorder: type[Recorder] = Recorder


class World:
    """Everything the brokers of one lab share."""

    clock: Clock
    store: Store
    costs: Costs
    is_memory = False
    server: EmbeddedServer | None = None
    """A real ZooKeeper that was started for this world and is stopped with it."""
    listeners: Listeners | None = None
    """The listeners of the brokers, if programs outside can reach them."""
    watches_configs = False
    """True if brokers watch for changes of configurations: on virtual time from the first change on."""
    registration_retry = 0.5
    """Seconds a broker waits before it tries again to register where an older session's znode still is."""

    def __init__(self, options: WorldOptions, clock: Clock, usual: Costs) -> None:
        self.generation, self.config, self.cluster_id = options.generation, options.config, CLUSTER_ID
        self.random = random.Random(options.seed)
        self.clock, self.costs = clock, options.costs or usual
        self.trace = options.recorder(clock.now, history=options.history, generation=self.generation.name)
        answer, connect = (self.config[key] / 1000 for key in ("request.timeout.ms", "controller.socket.timeout.ms"))
        self.network = Network(clock, self.costs.request, answer, connect)
        self.brokers: dict[int, Broker] = self.network.brokers
        self.last_value: dict[TopicPartition, int] = {}
        """The value of the newest record that was given to a leader, by partition: values count up."""
        self.plugins = Plugins()
        self.expected_brokers: set[int] = set()
        """Brokers that must be there before any competes to be controller; none but in a described cluster."""
        self._all_there = asyncio.Event()

    async def wait_for_registrations(self, broker: int) -> None:
        """Wait until every broker of the described cluster has registered; `broker` now has."""
        self.expected_brokers.discard(broker)
        if not self.expected_brokers:
            self._all_there.set()
        await self._all_there.wait()

    def add_broker(self, id: int, rack: str | None) -> Broker:
        """A broker that is not started yet."""
        broker = self.brokers[id] = self.clock.call(lambda: Broker(id, rack, self))
        self.clock.call(self.network.wake_leaders)  # an ISR may have it already
        return broker

    def broker(self, id: int) -> Broker:
        """The broker with this id, up or down. Raises UnknownName, which lists those that there are."""
        if id not in self.brokers:
            raise UnknownName("broker", id, sorted(self.brokers))
        return self.brokers[id]

    def rename(self, broker: int, to: int) -> None:
        """A broker has found out that its id is another one. Raises IdentityError if that is taken."""
        if to in self.brokers:
            raise IdentityError("NodeExists", f"broker {to} of this lab is {self.brokers[to].state}, and keeps its id")
        self.brokers[to] = self.brokers.pop(broker)

    def plug(self, plugins: Plugins) -> None:
        """Let these functions take part; an error in one of them ends what the lab is doing."""
        self.plugins = plugins
        plugins.failed, plugins.interrupted = self.clock.failed, self.clock.interrupted
        plugins.interruptible = self.clock.interruptible

    def watch_configs(self) -> None:
        """A configuration is about to be changed: let every broker watch for that, from now on."""
        if not self.watches_configs:
            self.watches_configs = True
            for broker in self.brokers.values():
                if broker.listening:
                    broker.dynamic_configs.begin()

    def record_fault(
        self,
        name: str,
        broker: int | None,
        topic: str | None = None,
        partition: int | None = None,
        **columns: Unpack[Columns],
    ) -> int:
        """Record that this fault begins or ends; returns the record's `seq`."""
        return self.trace.add("fault", "fault", name, topic, partition, broker, **columns)

    def boot_delay(self) -> float:
        """The start time of the next broker: the seed decides which one is first."""
        return self.costs.boot * (1 + self.random.random())

    def acting(self) -> Controller | None:
        """The controller that acts in a running process; the newest epoch if several do."""
        active = [broker.controller for broker in self.brokers.values() if broker.acts]
        return max(active, key=lambda c: c.context.epoch, default=None)

    def election_blocked_by(self) -> str:
        """The reason why no broker can become controller: the znode on which the last election failed, or empty.

        As in Kafka, the brokers go on trying without end.
        """
        up = [broker.controller for broker in self.brokers.values() if broker.state != DOWN]
        _, why = max((controller.last_election for controller in up), default=(0, ""))
        return f"no broker can become controller: {why}" if why else ""

    def stalled(self) -> str:
        """The reason why waiting longer is of no use; empty when there is none."""
        return self.election_blocked_by()

    def busy(self) -> list[str]:
        """The busy actors and their work, and what the controller does not know yet; called in the clock's thread."""
        up = [broker for broker in self.brokers.values() if broker.state != DOWN]
        busy = [f"broker {broker.id} {what}" for broker in up if (what := self._does(broker))]
        acting = self.acting()
        if acting is None and any(broker.controller.active_id == -1 for broker in up):
            busy.append("there is no controller")
        elif acting is not None and acting.context.brokers.keys() & self.brokers.keys() != {broker.id for broker in up}:
            busy.append(f"controller {acting.id} believes that brokers {sorted(acting.context.brokers)} are alive")
        return busy

    def _does(self, broker: Broker) -> str:
        """The reason why a broker is not quiet; empty when there is none."""
        controller, session = broker.controller, broker.zk.session
        if broker.state in (STARTING, RECOVERING, SHUTTING_DOWN):
            return f"is {broker.state}"
        if session is None or not self._is_connected(session):
            return "has no connection to ZooKeeper"
        if len(controller.queue) or controller.state != "Idle":
            return f"works on {controller.state}"
        return "has requests to send" if controller.channels.waiting else ""

    def _is_connected(self, session: Session) -> bool:
        """True if a session has a connection, and waits for nothing."""
        return isinstance(session, MemorySession) and session.connected and not session.waiting

    @property
    def is_healthy(self) -> bool:
        """True if nothing is broken but processes that are down."""
        paused = any(broker.is_paused for broker in self.brokers.values())
        return not paused and not self.network.links

    def _has_late_follower(self) -> bool:
        """True if an ISR still contains a lagging follower that its leader will remove."""
        now = self.clock.now()
        return any(broker.listening and broker.as_leader.late_since(now) for broker in self.brokers.values())

    def _has_retrying_follower(self) -> bool:
        """True if a follower that waits for its next attempt will succeed then."""
        return any(broker.listening and broker.as_follower.will_fetch() for broker in self.brokers.values())

    # The lab's questions to its world.

    @property
    def idle(self) -> bool | None:
        """True if nothing is under way; None on real time, where only `settle` finds out."""
        return None

    @property
    def callbacks_run(self) -> int | None:
        """The number of callbacks so far, which identifies a point of a run; None where no run comes to it again."""
        return None

    def look(self, at: Callable[[dict[str, tuple[bytes, int, int]]], T]) -> T:
        """Look at the znodes, and at the actors while none of them moves."""

        async def look() -> T:
            return at(await self.dump())

        return self.run(look())

    @property
    def address(self) -> str | None:
        """The address of the ZooKeeper, as `host:port/chroot`; None where no other program can reach it."""
        return None

    def run(self, coro: Coroutine[object, None, T]) -> T:
        """Run one coroutine among the actors, to its end."""
        return self.clock.run(coro)

    async def dump(self, root: str = "/") -> dict[str, tuple[bytes, int, int]]:
        """The znodes from `root` down: path -> (data, version, ephemeral owner)."""
        return await self.store.dump(root)

    def stat(self, path: str) -> Stat | None:
        """The Stat of a znode; None where there is none."""
        return self.run(self.store.stat(path))

    def expire(self, session: Session) -> None:
        """Make ZooKeeper expire a session whose client is alive."""
        raise NotImplementedError

    def settle(self, limit: float | None = None) -> None:
        """Let time pass until nothing is under way; ConditionNotMet after `limit` seconds."""
        raise NotImplementedError

    def run_until(self, holds: Callable[[], bool], limit: float | None) -> bool:
        """Let time pass until `holds()`; False when it did not come to that."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop every process and let go of ZooKeeper."""
        try:
            with suppress(PluginFailed):  # of a function that failed more than once in the last command
                self.clock.run(self._end())
        finally:
            self.clock.close()

    async def _end(self) -> None:
        for broker in self.brokers.values():
            broker.end()
        await self.clock.end_tasks()
        self.network.close()
        await self.store.close()

    def dropped(self, waits: bool) -> None:
        """End a world whose lab is gone without having closed it: in the background or, with `waits`, now."""
        raise NotImplementedError


class MemoryWorld(World):
    """Virtual time and a ZooKeeper in this process: the same run for the same seed and commands."""

    clock: VirtualClock
    is_memory = True

    def __init__(self, options: WorldOptions) -> None:
        super().__init__(options, VirtualClock(), Costs())
        own = random.Random(f"zookeeper {options.seed}")  # draws nothing from the stream that the actors share
        self.store: MemoryStore = MemoryStore(
            self.clock, self.trace, self.costs.zookeeper_round_trip, self.costs.zookeeper_tick, own.random
        )
        self.callbacks_at_record = array("Q")
        """By record: how many callbacks had begun when it was made; those of one callback belong together."""
        self.trace.listeners.append(lambda record: self.callbacks_at_record.append(self.clock.loop.callbacks_run))
        self.at_rest: list[Callable[[], None]] = []
        """Called whenever nothing is under way."""

    def close(self) -> None:
        self.clock.loop.ends = None  # a lab can be closed also after it has run for as long as it may
        super().close()

    @property
    def is_healthy(self) -> bool:
        return super().is_healthy and self.store.is_healthy

    @property
    def idle(self) -> bool:
        return self.clock.loop.idle

    @property
    def callbacks_run(self) -> int:
        return self.clock.loop.callbacks_run

    def dropped(self, waits: bool) -> None:
        """Nothing here runs by itself; whatever is under way is given up, without leaving another record."""
        for task in asyncio.all_tasks(self.clock.loop):
            with suppress(RuntimeError):  # it was in the middle of something that is always done in the end
                task.get_coro().close()

    def look(self, at: Callable[[dict[str, tuple[bytes, int, int]]], T]) -> T:
        return self.clock.call(lambda: at(dict(self.store.snapshot())))

    def stat(self, path: str) -> Stat | None:
        return self.store.stat_now(path)

    def expire(self, session: Session) -> None:
        assert isinstance(session, MemorySession)
        self.store.expire(session)

    def settle(self, limit: float | None = None) -> None:
        limit = LIMIT if limit is None else limit
        self._settle(limit)
        patience = self.config["replica.lag.time.max.ms"] / 1000
        for _ in range(4):  # leaders look every half of that time whether a follower is late
            late = self._has_late_follower()
            if not late and not self._has_retrying_follower():
                break
            self.clock.drive(lambda: False, self.clock.now() + (patience / 2 if late else FETCH_BACKOFF))
            self._settle(limit)
        for check in self.at_rest:
            check()

    def _settle(self, limit: float) -> None:
        began = self.clock.now()
        self.drive(lambda: self.clock.loop.idle, limit)
        if (why := self.election_blocked_by()) and not self.clock.loop.idle:
            raise ConditionNotMet(why)
        with self._telling_why():
            self.clock.settle(limit, began)

    def run(self, coro: Coroutine[object, None, T]) -> T:
        with self._telling_why():
            return super().run(coro)

    @contextmanager
    def _telling_why(self) -> Iterator[None]:
        """Add to an error about the time limit what has not come to an end."""
        try:
            yield
        except Halted:
            raise
        except ConditionNotMet as error:
            raise ConditionNotMet(f"{error}: {self.waits_for()}") from None

    def waits_for(self) -> str:
        """The work that is still under way, as one sentence."""
        if not self.store.up:
            return "ZooKeeper is down; start_zookeeper or heal lets it answer again"
        pending = self.clock.loop.pending
        until = f"; the next event is at {pending[0].when:.6g} s" if pending else ""
        believed = {broker.controller.active_id for broker in self.brokers.values() if broker.state != DOWN}
        if self.acting() is None and len(believed) == 1:
            return f"brokers take broker {believed.pop()} for the controller, and it does not act{until}"
        return ("; ".join(self.busy()) or "requests or waits are under way") + until

    def stalled(self) -> str:
        return super().stalled() or ("no event is pending" if self.clock.loop.next_time is None else "")

    def drive(self, until: Callable[[], bool], limit: float) -> None:
        """Run until `until()` holds, for at most so many seconds, and not forever where every election is blocked."""
        loop, end = self.clock.loop, self.clock.now() + limit
        while not until() and (when := loop.next_time) is not None and when <= end:
            self.clock.drive(until, min(end, when + 0.25))
            if self.election_blocked_by():
                return

    def run_until(self, holds: Callable[[], bool], limit: float | None) -> bool:
        seconds = LIMIT if limit is None else limit
        end = self.clock.now() + seconds
        self.drive(holds, seconds)
        if holds():
            return True
        if self.stalled():
            return False
        self.clock.run_to(end)  # the next event comes later
        return holds()
