"""A broker: a process with a ZooKeeper session, a standby controller and a replica manager.

It registers itself under `/brokers/ids` and obeys the active controller. In a controlled shutdown, it first asks that
controller to move its leaderships away. A process that stops closes its connections first, then its logs, then its
session; one that has not closed its logs recovers them at its next start.
Kafka 2.0.1: server/KafkaServer.scala, KafkaServer; server/KafkaApis.scala, KafkaApis
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from kafka_ctl import cluster
from kafka_ctl.brokers import identity
from kafka_ctl.brokers.apis import KafkaApis
from kafka_ctl.brokers.configs import DynamicConfigs, TopicConfigs
from kafka_ctl.brokers.controlled_shutdown import ShutdownReport, ask_to_leave
from kafka_ctl.brokers.follower import FollowerRole
from kafka_ctl.brokers.leader import LeaderRole
from kafka_ctl.brokers.log_dirs import LogDirs
from kafka_ctl.brokers.process import BrokerProcess, World
from kafka_ctl.brokers.replica_manager import ReplicaManager
from kafka_ctl.brokers.states import (
    BROKER_STATES,
    DOWN,
    PENDING_SHUTDOWN,
    RECOVERING,
    RUNNING,
    RUNNING_AS_CONTROLLER,
    SHUTTING_DOWN,
    STARTING,
    BrokerState,
)
from kafka_ctl.controller import failover
from kafka_ctl.controller.controller import Controller
from kafka_ctl.controller.dispatch import PROCEDURES
from kafka_ctl.errors import IdentityError, NodeExists, Unavailable, ZooKeeperError
from kafka_ctl.generation import DEFAULTS, TIMES
from kafka_ctl.ports import PROCESS
from kafka_ctl.requests import UNKNOWN_EPOCH, Request, Response, api_name
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper import store
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient
from kafka_ctl.zookeeper.store import Create, Exists
from kafka_ctl.zookeeper.znodes import PERSISTENT_PATHS, BrokerIdZNode, ClusterIdZNode


class Broker(BrokerProcess):
    """One broker process with all its parts."""

    def __init__(self, id: int, rack: str | None, world: World) -> None:
        super().__init__(id, rack, world)
        self.reset()

    def reset(self) -> None:
        super().reset()
        configs = TopicConfigs(self)
        self.as_leader, self.as_follower = LeaderRole(self, configs), FollowerRole(self, configs)
        self.log_dirs = LogDirs(self)
        self.replicas = ReplicaManager(self, configs, self.as_leader, self.as_follower, self.log_dirs)
        self.apis = KafkaApis(self, self.replicas)
        self.dynamic_configs = DynamicConfigs(self, configs)
        self._epoch_at_start = 0
        """The epoch that its controller had when the start was over."""
        self._make_controller()

    def _make_controller(self) -> None:
        zk, register = KafkaZkClient(self.zk), self.register
        ports, given = (self.network, self.clock, self.trace), (self.generation, self.config, self.world.plugins)
        self.controller = Controller(self.id, zk, *ports, *given, register, PROCEDURES)

    @property
    def acts(self) -> bool:
        """True if this broker acts as controller. `is_active` is also true where its id was written by hand."""
        connected = self.listening or self.state == SHUTTING_DOWN
        return connected and self.controller.is_active and self.controller.context.elected

    @property
    def broker_state(self) -> BrokerState:
        """The value of the gauge `BrokerState`.

        Up to 0.10.0 a broker that becomes controller while it runs is in a state of its own; one that is elected as it
        starts is not, as the end of the start writes over it (KAFKA-3761).
        """
        active = self.state == RUNNING and self.controller.is_active and self.controller.context.elected
        if (
            active
            and self.generation.bugs.has_controller_state
            and self.controller.context.epoch != self._epoch_at_start
        ):
            return RUNNING_AS_CONTROLLER
        return BROKER_STATES[self.state]

    # Life

    def start(self, delay: float) -> None:
        """Start the process; it is up after `delay` seconds."""
        self.reset()
        self.disk.mount()
        self.state = STARTING
        self.spawn(self._start(delay))

    async def _start(self, delay: float) -> None:
        changed = {name: self.config[name] for name in TIMES if self.config[name] != DEFAULTS[name]}
        CAUSE.set(self.record("start", detail=details.write(**changed)))
        await self.clock.sleep(delay)
        try:
            await self._come_up()
        except (IdentityError, Unavailable, ZooKeeperError) as error:  # at the start, that is the end
            if isinstance(error, IdentityError):
                self.record("stopped", error=error.code, detail=str(error))
            else:
                self.record("stopped", error=type(error).__name__)
            self.disk.close()  # Kafka shuts down as usual
            if isinstance(error, IdentityError) and self.zk.session is not None:
                await self.zk.session.close()
            self.kill()
            if isinstance(error, Unavailable):
                raise

    async def _come_up(self) -> None:
        await self._connect()
        self.as_leader.begin()
        await self.zk.send([Create(path) for path in PERSISTENT_PATHS])
        await self.zk.write(Create("/cluster"))
        await self.zk.write(Create(ClusterIdZNode.path(), ClusterIdZNode.encode(self.world.cluster_id)))
        await self._identify()
        await self._load_logs()
        registers_first = self.generation.membership.registers_first or self.id in self.world.expected_brokers
        if registers_first:
            await self.register()
            await self.world.wait_for_registrations(self.id)
        else:
            await self.controller.startup()
            await self.register()
        self.state, self._epoch_at_start = RUNNING, self.controller.context.epoch
        if self.world.listeners is not None:
            await self.world.listeners.open(self)
        self.as_leader.look_for_late_followers()
        if registers_first:
            await self.controller.startup()
        if self.world.watches_configs:
            self.dynamic_configs.begin()

    async def _load_logs(self) -> None:
        """Open the logs; where the last process has not closed them, read again what it had not flushed.

        A new broker has no marker of a clean shutdown either, but no log to recover.
        Kafka 2.0.1: log/LogManager.scala, loadLogs; log/Log.scala, recoverLog
        """
        if unclean := self.disk.unclean():
            self.state = RECOVERING
            logs, size = (sum(each) for each in zip(*unclean, strict=True))
            if logs:
                self.record("recovering", detail=details.write(logs=logs, bytes=size))
            costs = self.costs
            await self.clock.sleep(max(n * costs.recover_log + bytes * costs.recover_byte for n, bytes in unclean))
        self.disk.open()

    async def _identify(self) -> None:
        """Find out who we are, and take that name."""
        cluster_id = self.world.cluster_id
        stored = identity.remembered(self.disk.meta, self.generation)
        found = identity.decide(self.configured, stored, cluster_id, self.config)
        found = await identity.generate(self.zk, self.config) if found is None else found
        if found != self.id:
            self.world.rename(self.id, found)
            self.id, self.actor = found, f"broker-{found}"
            self._make_controller()
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
        listeners = self.world.listeners
        port = cluster.usual_port(self.id) if listeners is None else listeners.port(self)
        me = cluster.Broker(self.id, "127.0.0.1", port, self.rack)
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
        if self.generation.membership.broker_epochs:
            there = (await self.zk.send([Exists(BrokerIdZNode.path(self.id))]))[0]
            self.epoch = there.stat.czxid if there.stat else UNKNOWN_EPOCH
        stored = self.world.cluster_id if self.generation.membership.remembers_cluster else None
        self.disk.checkpoint(identity.BrokerMetadata(self.id, stored), overwrite=stored is not None)
        self.record("registered")

    def _session_state(self, state: str) -> None:
        if state == store.EXPIRED and self.generation.bugs.strands_waiters_at_expiry:
            self.zk.connected.clear()
        else:
            self.zk.state_changed(state)
        if state == store.EXPIRED:
            self.spawn(self._renew_session())

    async def _renew_session(self) -> None:
        """ZooKeeper has expired our session: let the controller stop its work, then open a new session."""
        self.record("session-expired")
        await self.controller.session_expired()
        while True:
            with suppress(Unavailable):  # a running broker does not give up; `connect` has waited a while
                await self._connect()
                break
        self.controller.session_renewed()
        self.dynamic_configs.look()

    def pause(self, seconds: float) -> None:
        """Pause the process for so many seconds, as a garbage collection does."""
        self.paused_since = self.clock.now()
        self.network.wake_leaders()
        self.clock.hold(self.id)
        if self.zk.session is not None:
            self.zk.session.pause()
        self.network.paused(self.id)
        self._pause = self.clock.later(seconds, self.resume, CAUSE.get())

    def resume(self, cause: int | None = None) -> None:
        """End a pause; harmless if there is none."""
        if self.end_pause():
            self.trace.add("fault", "fault", "resume", broker=self.id, cause=cause)
            if self.zk.session is not None:
                self.zk.session.resume()
            self.as_follower.rejoin()

    async def stop(self) -> None:
        """Close the connections, the logs and the session, and end; a process that is killed meanwhile is dead.

        Kafka 2.0.1: server/KafkaServer.scala, shutdown
        """
        try:
            await self.clock.sleep(self.costs.stop_processing)
            self.close_connections()
            self.record("shutting-down")
            self.as_leader.end()
            self.as_follower.end()
            self.log_dirs.end()
            await self.clock.sleep(self.costs.stop)
            self.disk.close()
            if self.controller.is_active:
                await failover.resign(self.controller)
            self.controller.stop()
            if self.zk.session is not None:
                await self.zk.session.close()
        except asyncio.CancelledError:
            if self.state != DOWN:
                self.record("stopped", error="killed")
                self.kill()
            raise
        self.record("stopped")
        self.end()

    def end(self) -> None:
        super().end()
        self.as_follower.end()

    # Requests

    async def receive(self, request: Request, cause: int | None) -> tuple[Response, int]:
        """Handle one request; returns the answer and the `seq` of its record.

        ConnectionError if the connection is closed meanwhile, or the process dies. A request that has arrived is
        handled, also when the sender no longer waits for the answer.
        """
        answered = self.clock.loop.create_future()
        self._asked[answered] = None

        def answer(task: asyncio.Task[tuple[Response, int]]) -> None:
            self._asked.pop(answered, None)
            if answered.done():
                return
            if task.cancelled():
                answered.set_exception(self.closed())
            elif error := task.exception():
                answered.set_exception(error)
            else:
                answered.set_result(task.result())

        self.spawn(self._handle(request, cause)).add_done_callback(answer)
        return await answered

    async def _handle(self, request: Request, cause: int | None) -> tuple[Response, int]:
        CAUSE.set(cause)
        response = await self.apis.answer(request)
        if not self.listening:  # handled, but nothing is sent any more
            return response, -1
        seq = self.trace.add(
            self.actor, "response", api_name(request), broker=self.id, error=response.error, cause=cause
        )
        return response, seq

    # Leaving

    async def controlled_shutdown(self) -> ShutdownReport:
        """Ask the controller to take our leaderships, several times if need be; then stop in any case."""
        report = ShutdownReport(0)
        if not self.listening:  # it has ended before it heard of this
            return report
        if self.config["controlled.shutdown.enable"]:
            self.state = PENDING_SHUTDOWN
            report = await ask_to_leave(self)
        await self.stop()
        return report
