"""A broker: a process with a ZooKeeper session, a standby controller and a replica manager.

It registers itself under `/brokers/ids`, obeys the active controller, and before it leaves in good order asks that
controller to move its leaderships away.
Kafka 2.0.1: server/KafkaServer.scala, KafkaServer; server/KafkaApis.scala, KafkaApis
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from kafka_ctl import cluster
from kafka_ctl.brokers import apis, identity
from kafka_ctl.brokers.controlled_shutdown import ShutdownReport, ask_to_leave
from kafka_ctl.brokers.disk import Disk
from kafka_ctl.brokers.log_dirs import LogDirs
from kafka_ctl.brokers.replica_logs import ReplicaLogs
from kafka_ctl.brokers.replica_manager import ReplicaManager
from kafka_ctl.brokers.replication import Replication
from kafka_ctl.brokers.requests import UNKNOWN_EPOCH, Request, Response
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import IdentityError, NodeExists, Unavailable, ZooKeeperError
from kafka_ctl.ports import PROCESS
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper import store
from kafka_ctl.zookeeper.client import ZooKeeperClient
from kafka_ctl.zookeeper.memory.session import MemorySession
from kafka_ctl.zookeeper.store import Create, Exists
from kafka_ctl.zookeeper.znodes import PERSISTENT_PATHS, BrokerIdZNode, ClusterIdZNode

UNNAMED = "broker-new"
"""The actor of a process that does not know its id yet."""
DOWN, STARTING, RUNNING, PENDING_SHUTDOWN = "down", "starting", "running", "pending controlled shutdown"


class Broker:
    """One broker process; `world` gives the ports (store, network, clock, trace) and the settings."""

    def __init__(self, id: int, rack: str | None, world: Any) -> None:
        self.id, self.rack, self.world = id, rack, world  # an id below 0 only keeps a place for one that is generated
        self.clock, self.trace, self.network, self.costs = world.clock, world.trace, world.network, world.costs
        self.config: Mapping[str, Any] = world.config
        generated = identity.is_generated(id, self.config)
        self.configured = identity.NOT_CONFIGURED if generated or id < 0 else id
        """What `broker.id` in our configuration says."""
        self.actor = f"broker-{id}" if id >= 0 else UNNAMED
        self.state = DOWN
        self.down_since, self.paused_since = 0.0, math.inf
        self._tasks: dict[asyncio.Task, None] = {}
        self.disk = Disk()
        if generated:  # in an earlier life
            self.disk.checkpoint(identity.Meta(id), overwrite=True)
        self._reset()

    def _reset(self) -> None:
        """What a process has in memory when it starts."""
        generation = self.world.generation
        window = self.config["zookeeper.max.in.flight.requests"] if generation.pipelined else 1
        self.zk = ZooKeeperClient(window, generation.ends_with_session)
        self.epoch = UNKNOWN_EPOCH
        """The czxid of our znode: tells this life of the broker from earlier ones."""
        self.replicas = ReplicaManager(self)
        self.replication = Replication(self)
        self.logs = ReplicaLogs(self)
        self.log_dirs = LogDirs(self)
        self.controller = self.world.make_controller(self)

    @property
    def _cluster(self) -> str | None:
        """What our disks are to remember of the cluster."""
        return self.world.cluster_id if self.world.generation.remembers_cluster else None

    @property
    def listening(self) -> bool:
        return self.state in (RUNNING, PENDING_SHUTDOWN)

    @property
    def is_leaving(self) -> bool:
        """Whether the process has been told to stop: then it starts no fetcher any more."""
        return self.state == PENDING_SHUTDOWN

    @property
    def acts(self) -> bool:
        """Whether this broker acts as controller. `is_active` is also one whose id somebody has written by hand."""
        return self.listening and self.controller.is_active and self.controller.context.elected

    def record(self, action: str, partition: TopicPartition | None = None, **columns: Any) -> int:
        topic, number = partition or (None, None)
        known = self.id if self.id >= 0 else None
        return self.trace.add(self.actor, "broker", action, topic, number, known, **columns)

    def spawn(self, coro: Coroutine[Any, Any, Any]) -> asyncio.Task:
        """Start a task that stands still and dies with this process."""
        context = copy_context()
        context.run(PROCESS.set, self.id)
        task = self.clock.spawn(coro, context)
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))
        return task

    def adopt(self) -> None:
        """Make the current task one of this process."""
        PROCESS.set(self.id)
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

    # Life

    def start(self, delay: float) -> None:
        """Start the process; it is up after `delay` seconds."""
        self._reset()
        self.disk.mount()
        self.state = STARTING
        self.spawn(self._start(delay))

    async def _start(self, delay: float) -> None:
        CAUSE.set(self.record("start"))
        await self.clock.sleep(delay)
        try:
            await self._come_up()
        except (IdentityError, Unavailable, ZooKeeperError) as error:  # at the start, that is the end
            if isinstance(error, IdentityError):
                self.record("stopped", error=error.code, detail=str(error))
            else:
                self.record("stopped", error=type(error).__name__)
            self.kill()
            if isinstance(error, Unavailable):
                raise

    async def _come_up(self) -> None:
        await self._connect()
        self.replication.begin()
        await self.zk.send([Create(path) for path in PERSISTENT_PATHS])
        await self.zk.write(Create("/cluster"))
        await self.zk.write(Create(ClusterIdZNode.path(), ClusterIdZNode.encode(self.world.cluster_id)))
        await self._identify()
        registers_first = self.world.generation.registers_first or self.id in self.world.awaited
        if registers_first:
            await self.register()
            await self.world.arrived(self.id)
        else:
            await self.controller.startup()
            await self.register()
        self.state = RUNNING
        self.spawn(self.replication.expire_laggards())
        if registers_first:
            await self.controller.startup()

    async def _identify(self) -> None:
        """Find out who we are, and take that name."""
        generation, cluster_id = self.world.generation, self.world.cluster_id
        stored = identity.remembered(self.disk.meta, generation)
        found = identity.decide(self.configured, stored, cluster_id, self.config)
        found = await identity.generate(self.zk, self.config) if found is None else found
        if found != self.id:
            self.world.rename(self, found)
            self.id, self.actor = found, f"broker-{found}"
            self.controller = self.world.make_controller(self)
            PROCESS.set(found)
            assert self.zk.session is not None
            self.zk.session.actor = self.actor
            CAUSE.set(self.record("named"))

    async def _connect(self) -> None:
        timeout = self.config["zookeeper.session.timeout.ms"] / 1000
        session = await self.world.store.connect(self.actor, timeout, self.zk.watched, self._session_state)
        self.zk.session = session
        self.zk.connected.set()

    async def register(self) -> None:
        """Write `/brokers/ids/N`; while an older session's znode is still there, wait for it to go.

        Kafka gives up instead when the znode belongs to a live session of another process; so do we when it
        belongs to no session at all, since it will never go.
        """
        me = cluster.Broker(self.id, "127.0.0.1", 9092 + self.id, self.rack)
        data = BrokerIdZNode.encode(me, int(self.clock.now() * 1000))
        while True:
            try:
                await self.zk.create_ephemeral(BrokerIdZNode.path(self.id), data)
                break
            except NodeExists as error:
                if error.owner == 0:
                    raise
                self.record("waiting", error=error.code, path=error.path)
                await self.clock.sleep(self.world.registration_retry)
        if self.world.generation.broker_epochs:
            there = (await self.zk.send([Exists(BrokerIdZNode.path(self.id))]))[0]
            self.epoch = there.stat.czxid if there.stat else UNKNOWN_EPOCH
        self.disk.checkpoint(identity.Meta(self.id, self._cluster), overwrite=self._cluster is not None)
        self.record("registered")

    def _session_state(self, state: str) -> None:
        fails = self.zk.ends_with_session and self.world.generation.fails_waiters_at_expiry
        if state == store.DISCONNECTED or (state == store.EXPIRED and not fails):
            self.zk.connected.clear()
        else:
            self.zk.connected.set()  # also when expired: who waits for an answer must learn that none will come
        if state == store.EXPIRED:
            self.spawn(self._renew_session())

    async def _renew_session(self) -> None:
        """The server forgot us: let the controller stop what it does, then open a new session."""
        self.record("session-expired")
        await self.controller.session_expired()
        while True:
            with suppress(Unavailable):  # a running broker does not give up; `connect` has waited a while
                await self._connect()
                break
        self.controller.session_renewed()

    def kill(self) -> None:
        """Die at once, without a word to anybody."""
        self._end()
        if self.zk.session is not None:
            self.zk.session.abandon()

    def pause(self, seconds: float) -> None:
        """Stand still for so many seconds, as in a garbage collection, then go on as if nothing had happened."""
        self.paused_since = self.clock.now()
        self.clock.hold(self.id)
        if isinstance(self.zk.session, MemorySession):
            self.zk.session.fall_asleep()
        self._pause = self.clock.later(seconds, self.resume, CAUSE.get())

    def resume(self, cause: int | None = None) -> None:
        """End a pause; harmless if there is none."""
        if self.paused_since != math.inf:
            self.paused_since = math.inf
            self._pause.cancel()
            self.trace.add("fault", "fault", "resume", broker=self.id, cause=cause)
            self.clock.release(self.id)
            if isinstance(self.zk.session, MemorySession):
                self.zk.session.wake()
            self.replication.fetch_again()

    def _end(self) -> None:
        self.state = DOWN
        self.down_since = self.clock.now()
        if self.paused_since != math.inf:
            self.paused_since = math.inf
            self._pause.cancel()
            self.clock.release(self.id)
        self.controller.stop()
        this = asyncio.current_task() if asyncio._get_running_loop() else None
        for task in list(self._tasks):
            if task is not this:
                task.cancel()

    async def stop(self) -> None:
        """Close the session and end; where that takes too long for whoever asked, the process is killed."""
        try:
            if self.controller.is_active:
                await self.controller.resign()
            self.controller.stop()
            if self.zk.session is not None:
                await self.zk.session.close()
        except asyncio.CancelledError:
            if self.state != DOWN:
                self.record("stopped", error="killed")
                self.kill()
            raise
        self.record("stopped")
        self._end()

    # Requests

    async def receive(self, request: Request, cause: int | None) -> tuple[Response, int]:
        """Handle one request; returns the answer and the `seq` of its record. ConnectionError if we die over it.

        What has arrived is handled, also when whoever sent it no longer waits for the answer.
        """
        task = self.spawn(self._handle(request, cause))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if task.cancelled() and not (asking and asking.cancelling()):
                raise ConnectionResetError(f"broker {self.id} closed the connection") from None
            raise

    async def _handle(self, request: Request, cause: int | None) -> tuple[Response, int]:
        CAUSE.set(cause)
        response = await apis.answer(self, request)
        seq = self.trace.add(self.actor, "response", request.name, broker=self.id, error=response.error, cause=cause)
        return response, seq

    # Leaving

    async def controlled_shutdown(self) -> ShutdownReport:
        """Ask the controller to take our leaderships, several times if need be; then stop in any case."""
        report = ShutdownReport(0)
        if self.config["controlled.shutdown.enable"]:
            self.state = PENDING_SHUTDOWN
            report = await ask_to_leave(self)
            await self.clock.sleep(self.costs.stop)
        await self.stop()
        return report
