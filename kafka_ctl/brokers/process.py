"""The parts that all modules of a broker process share: its id, the ports, its disks, and its partitions.

Brokers reach each other through the network port only. Beside requests it carries the fetches of followers, which are
values, too; a leader learns from it what the fetches of its followers show. The one object of another broker that a
broker gets is a fetch that waits there (`WaitingFetch`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar, Unpack

from kafka_ctl.brokers import identity
from kafka_ctl.brokers.disk import Disk
from kafka_ctl.brokers.fetches import (
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    FetchResult,
    FollowerLag,
    NextFetch,
    OffsetsForLeaderEpochRequest,
    WaitingFetch,
)
from kafka_ctl.brokers.log import Entry, Log, bytes_of
from kafka_ctl.brokers.replication_quota import ReplicationQuota, ReplicationQuotas
from kafka_ctl.brokers.states import DOWN, PENDING_SHUTDOWN, RUNNING, SHUTTING_DOWN
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.controller.controller import Controller
from kafka_ctl.generation import Config, Generation
from kafka_ctl.latencies import Costs
from kafka_ctl.plugins import Plugins, split
from kafka_ctl.ports import PROCESS, Clock, Network, Timer
from kafka_ctl.requests import NOT_LEADER, STORAGE_ERROR, UNKNOWN_EPOCH, UNKNOWN_PARTITION, PartitionState
from kafka_ctl.trace import details
from kafka_ctl.trace.record import Columns, Recorder
from kafka_ctl.zookeeper.client import ZooKeeperClient
from kafka_ctl.zookeeper.store import Store

T = TypeVar("T")

UNNAMED = "broker-new"
"""The actor of a process that does not know its id yet."""


class Peers(Network, Protocol):
    """The network as one broker uses it."""

    def fetch(self, leader: int, request: FetchRequest) -> FetchResponse | None:
        """Bring a fetch to a leader and the answer back; None where it is not answered."""

    def end_of_epoch(self, leader: int, request: OffsetsForLeaderEpochRequest) -> EpochEndOffset | None:
        """Ask a leader where an epoch ends in its log; None where that is not answered."""

    def hold(self, leader: int, request: FetchRequest, respond: Callable[[bool], object]) -> WaitingFetch | None:
        """Let a fetch wait at a leader, and bring the answer to `respond`: whether it brings something. None without a
        leader."""

    def fetch_result(self, leader: int, tp: TopicPartition, replica: int, leader_epoch: int) -> FetchResult | None:
        """The result of a fetch from a leader that is reached; None where there is no such broker."""

    def connection(self, follower: int, leader: int) -> tuple[int, int]:
        """The number of starts of a leader's process and of cuts of the connection to it; it names a connection."""

    def next_fetch(self, follower: int, fetch: NextFetch) -> None:
        """Let a follower send its next fetch now, if its process runs; where the ISR is concerned, if it is reached."""

    def others(self, leader: int) -> Iterable[int]:
        """All other brokers of the lab, also those that do not run."""

    def suspects(self, leader: int, unasked: bool = True) -> Iterable[int]:
        """Those of them that may be late somewhere; `unasked`: also where no request has named their copy."""

    async def until_suspect(self) -> float:
        """Wait until a broker may be late, and return that time; the present one if one may be late already."""

    def wake_leaders(self) -> None:
        """Have the leaders look again that wait for a time at which a broker may be late."""

    def lag(self, follower: int, leader: int, tp: TopicPartition) -> FollowerLag:
        """Lateness of a follower in a partition of this leader."""

    def paused(self, target: int) -> None:
        """The process of a broker pauses."""

    def unreachable_since(self, follower: int, leader: int) -> float:
        """The time in seconds at which two brokers lost each other; infinity if they reach each other."""


class Listeners(Protocol):
    """The listeners of brokers for connections from outside."""

    def port(self, broker: BrokerProcess) -> int:
        """The port of a broker, the same for all its life."""

    async def open(self, broker: BrokerProcess) -> None:
        """Let the broker answer."""

    def close(self, broker: BrokerProcess) -> None:
        """Let it answer no more, and end its connections."""


class World(Protocol):
    """The part of the world that a broker needs."""

    @property
    def clock(self) -> Clock: ...
    @property
    def store(self) -> Store: ...
    @property
    def network(self) -> Peers: ...
    @property
    def trace(self) -> Recorder: ...
    @property
    def costs(self) -> Costs: ...

    generation: Generation
    config: Config
    cluster_id: str
    registration_retry: float
    """Seconds between two attempts to register where an older session's znode still is."""
    listeners: Listeners | None
    """The listeners of the brokers, if programs outside can reach them."""
    plugins: Plugins
    watches_configs: bool
    """True if brokers watch for changes of configurations."""
    expected_brokers: set[int]
    """Brokers that must have registered before any competes to be controller."""

    async def wait_for_registrations(self, broker: int) -> None:
        """This broker has registered: wait until all that are awaited have."""

    def rename(self, broker: int, to: int) -> None:
        """A broker has found out which id it has. Raises IdentityError if that is taken."""


@dataclass(slots=True)
class HostedPartition:
    """A partition that a broker holds a copy of."""

    state: LeaderAndIsr
    replicas: tuple[int, ...]
    state_since: float = 0.0
    """The time of the last LeaderAndIsr that it was taken from, in seconds."""
    is_hashed: bool = False
    """True if the ISR has had more than four members since then: from then on, Scala's set of it is a hash set."""


class BrokerProcess:
    """Broker `id` as its parts need it; an id below 0 only keeps a place for one that is generated."""

    controller: Controller
    """Active or not: the controller of this process."""
    _pause: Timer
    """The end of this process's pause."""

    def __init__(self, id: int, rack: str | None, world: World) -> None:
        self.id, self.rack, self.world = id, rack, world
        self.clock, self.trace, self.network, self.costs = world.clock, world.trace, world.network, world.costs
        self.config, self.generation = world.config, world.generation
        self.actor = f"broker-{id}" if id >= 0 else UNNAMED
        self.state = DOWN
        self.down_since, self.paused_since = 0.0, math.inf
        self._tasks: dict[asyncio.Task, None] = {}
        self._asked: dict[asyncio.Future, None] = {}
        """The future answers of requests that are being handled, in the order in which these arrived."""
        self.disk, self.starts = Disk(), 0
        generated = identity.is_generated(id, self.config)
        self.configured = identity.NOT_CONFIGURED if generated or id < 0 else id
        """The `broker.id` of our configuration."""
        if generated:  # in an earlier life
            self.disk.checkpoint(identity.BrokerMetadata(id), overwrite=True)

    def reset(self) -> None:
        """The memory of a process that starts."""
        self.starts += 1
        window = self.config["zookeeper.max.in.flight.requests"] if self.generation.zookeeper.pipelined else 1
        pipeline: Callable[[list[str], int], list[list[str]]] | None = self.world.plugins.rule("pipeline", None)
        trips = None if pipeline is None else partial(split, pipeline)
        self.zk = ZooKeeperClient(window, self.generation.zookeeper.ends_with_session, trips)
        self.zk.reads_over_no_json = self.generation.zookeeper.pipelined
        self.epoch = UNKNOWN_EPOCH
        """The czxid of our znode: tells this life of the broker from earlier ones."""
        self.hosted: dict[TopicPartition, HostedPartition] = {}
        self.offline: set[TopicPartition] = set()
        """Partitions whose copy cannot be used since a log directory failed."""
        self.deletions, self.has_deleted = 0, False
        """Copies whose deletion takes time at the next request; True if this process has deleted a copy before."""
        self.metadata: dict[TopicPartition, LeaderAndIsr] = {}
        """The metadata cache: who leads, and the ISR, of every partition of the cluster."""
        self.assigned: dict[TopicPartition, PartitionState] = {}
        """The same with the replicas, as last received."""
        self.live_brokers: tuple[int, ...] = ()
        self.known_controller = -1
        """The controller that sent the live brokers."""
        self.metadata_updated = asyncio.Event()
        self.quotas = ReplicationQuotas(*(ReplicationQuota(self.clock.now) for _ in range(3)))
        """Bounds in bytes a second: sent to throttled replicas, fetched as one, copied between log directories."""

    @property
    def is_paused(self) -> bool:
        """True while the process stands still."""
        return self.paused_since != math.inf

    def end_pause(self) -> bool:
        """Let the tasks of this process go on; True if they were paused."""
        if not self.is_paused:
            return False
        self.paused_since = math.inf
        self._pause.cancel()
        self.clock.release(self.id)
        return True

    @property
    def listening(self) -> bool:
        """True if the process answers requests."""
        return self.state in (RUNNING, PENDING_SHUTDOWN)

    @property
    def is_leaving(self) -> bool:
        """True if the process has been asked to stop: then it starts no fetcher any more."""
        return self.state in (PENDING_SHUTDOWN, SHUTTING_DOWN)

    def leads(self, tp: TopicPartition) -> bool:
        """True if this broker leads the partition, as far as it knows."""
        hosted = self.hosted.get(tp)
        return hosted is not None and hosted.state.leader == self.id

    def refusal(self, tp: TopicPartition) -> str:
        """The error for a client's request about a partition that this broker does not lead.

        Kafka 2.0.1: server/KafkaApis.scala, handleProduceRequest; server/ReplicaManager.scala,
        getPartitionAndLeaderReplicaIfLocal
        """
        if tp not in self.metadata:
            return UNKNOWN_PARTITION
        if tp in self.offline:
            return STORAGE_ERROR
        is_known = tp in self.hosted or self.generation.requests.explains_absent_copies
        return NOT_LEADER if is_known else UNKNOWN_PARTITION

    def reaches(self, other: int) -> bool:
        """True if the network carries requests to that broker and answers back."""
        return self.network.unreachable_since(other, self.id) == math.inf

    async def metadata_shows(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until what this broker's metadata says holds, for at most so many seconds; True if it does."""
        if seconds <= 0:
            return holds()
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self.metadata_updated.clear()
                    await self.metadata_updated.wait()
        except TimeoutError:
            return holds()
        return True

    def record(self, action: str, about: tuple[str, int | None] | None = None, **columns: Unpack[Columns]) -> int:
        """Record what this broker does, to a partition or to a topic, `(name, None)`; returns the record's `seq`."""
        topic, number = about or (None, None)
        known = self.id if self.id >= 0 else None
        return self.trace.add(self.actor, "broker", action, topic, number, known, **columns)

    def record_offset(
        self, action: str, tp: TopicPartition, entries: Sequence[Entry], offset: int, by: str | None = None
    ) -> int:
        """Record a change of a log: the first offset, the records, their bytes, and the reason `by`."""
        state = self.hosted[tp].state
        values = details.runs([entry.value for entry in entries], [entry.leader_epoch for entry in entries])
        detail = details.write(offset=offset, records=values or None, bytes=bytes_of(entries) or None, by=by)
        return self.record(action, tp, leader=state.leader, leader_epoch=state.leader_epoch, detail=detail)

    def set_high_watermark(self, tp: TopicPartition, log: Log, offset: int) -> None:
        """Set it and record that, unless it is there already."""
        if offset != log.high_watermark:
            log.high_watermark = offset
            self.record_offset("high-watermark", tp, (), offset)

    def raise_log_start(self, tp: TopicPartition, log: Log, offset: int, by: str) -> None:
        """Raise the log start offset and record that, unless it is there already.

        Kafka 2.0.1: log/Log.scala, maybeIncrementLogStartOffset
        """
        if offset > log.start:
            log.start_at(offset)
            self.record_offset("log-start", tp, (), offset, by)

    def spawn(self, coro: Coroutine[object, None, T]) -> asyncio.Task[T]:
        """Start a task that pauses and ends with this process."""
        context = copy_context()
        context.run(PROCESS.set, self.id)
        task = self.clock.spawn(coro, context)
        self._keep(task)
        return task

    def adopt(self) -> None:
        """Make the current task one of this process."""
        PROCESS.set(self.id)
        task = asyncio.current_task()
        assert task is not None
        self._keep(task)

    def _keep(self, task: asyncio.Task) -> None:
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

    def kill(self) -> None:
        """End the process at once; ZooKeeper finds out when the session times out."""
        self.end()
        if self.zk.session is not None:
            self.zk.session.abandon()

    def close_connections(self) -> None:
        """Answer no request any more, also none that has already arrived; session and controller go on.

        Kafka 2.0.1: network/SocketServer.scala, stopProcessingRequests
        """
        self.state, self.down_since = SHUTTING_DOWN, self.clock.now()
        self.network.wake_leaders()
        if self.world.listeners is not None:
            self.world.listeners.close(self)
        for answered in self._asked:
            if not answered.done():
                answered.set_exception(self.closed())

    def closed(self) -> ConnectionResetError:
        """The error of a request whose connection is closed before the answer."""
        return ConnectionResetError(f"broker {self.id} closed the connection")

    def end(self) -> None:
        """Cancel all tasks of this process except the caller."""
        if self.state != SHUTTING_DOWN:
            self.down_since = self.clock.now()
        self.state = DOWN
        self.network.wake_leaders()
        if self.world.listeners is not None:
            self.world.listeners.close(self)
        self.end_pause()
        self.controller.stop()
        try:
            this = asyncio.current_task()
        except RuntimeError:  # called outside of the event loop
            this = None
        for task in list(self._tasks):
            if task is not this:
                task.cancel()
