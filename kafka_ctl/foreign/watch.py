"""A watched cluster: read once, kept current by watches, and recorded; nothing is ever written.

Every watch that fires makes a znode stale. The stale ones are read again together through the window, and each read
arms its watch anew, so that no change after it is missed; the version of a znode tells how many came between two reads.
A lost connection is waited for: ZooKeeper then fires what has changed. When the session has expired, another one is
opened and everything is read again; the time between is a gap, and a record says so.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kafka_ctl.cluster import NO_LEADER, Broker, LeaderAndIsr, TopicPartition
from kafka_ctl.display import Bundle, KeyedRows, Rows, Table, display_bundle, table
from kafka_ctl.errors import (
    MOST_NAMES,
    BadInput,
    ConditionNotMet,
    ConnectionLoss,
    KafkaCtlError,
    SessionExpired,
    Unavailable,
)
from kafka_ctl.extras import needed_for
from kafka_ctl.foreign.cluster import PARENTS, Cluster, Release, TrueController, release_of
from kafka_ctl.foreign.read_only import Auth, ReadOnlySession, ReadOnlyStore, remote
from kafka_ctl.foreign.reading import Progress, Reader
from kafka_ctl.foreign.recording import Recording
from kafka_ctl.simulation.clock import Clock, RealClock
from kafka_ctl.trace import Record, Trace
from kafka_ctl.zookeeper import store as zk
from kafka_ctl.zookeeper.store import WatchedEvent

if TYPE_CHECKING:
    from kafka_ctl.views.widget.live_film import Watching

SESSION_SECONDS = 18.0
"""The timeout of the session."""
LIMIT = 60.0
"""Seconds that `settle` waits at most."""
REFRESH_SECONDS = 1.0
"""Seconds between two looks of the picture at the trace."""
MOST_DRAWN = 20_000
"""The most records of which a notebook draws a picture unasked."""
AGAIN_SECONDS = 1.0
"""Seconds until another attempt to open a session."""
POLL_SECONDS = 0.01
"""Seconds after which `settle` looks again."""
MINUTE_MS = 60_000.0
OFFLINE = "offline: no live leader"
T = TypeVar("T")


class PartitionRow(NamedTuple):
    """A partition as ZooKeeper has it. `risk` is empty, also while its topic is deleted, or what is wrong with it."""

    topic: str
    partition: int
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    """The replicas after its reassignment; empty if there is none."""
    leader_epoch: int
    controller_epoch: int
    zk_version: int
    risk: str


class BrokerTable(KeyedRows[int, Broker]):
    """Registered brokers by id, shown as a table."""

    key = "broker"

    def table(self) -> Table:
        """A row for each broker."""
        return table(Broker._fields, self.values(), len(self))


class Summary(NamedTuple):
    """A watched cluster in numbers."""

    controller: int | None
    epoch: int | None
    brokers: int
    partitions: int
    offline: int
    under_replicated: int
    at_risk: int
    """Partitions with as many in-sync replicas as `min.insync.replicas`, or fewer, and those with one of several."""
    preferred_imbalance: int
    """Partitions that are not led by their first replica.

    Like Kafka's gauges, the partitions offline, at risk and here leave out topics whose deletion is asked for. Kafka
    2.0.1: controller/KafkaController.scala, updateMetrics.
    """
    deletions: int
    reassignments: int
    isr_changes_a_minute: int


class Watch:
    """A Kafka cluster of others, watched through ZooKeeper; `kafka_ctl.watch` opens it.

    Its session can only read. `trace` grows while the cluster changes.
    """

    def __init__(
        self,
        store: ReadOnlyStore,
        clock: Clock,
        address: str,
        progress: Progress | None = None,
        seconds: float = SESSION_SECONDS,
    ) -> None:
        self.address, self.closed, self.lost = address, False, False
        self._store, self._clock, self._seconds = store, clock, seconds
        self._reader = Reader(address, watches=True, progress=progress)
        self._session: ReadOnlySession | None = None
        self._stale: dict[str, None] = {}
        self._stale_parents: dict[str, None] = {}
        self._live: Watching | None = None
        self._task: asyncio.Task[None] | None = None
        self._reading = self._expired = False
        self._lost_at = 0.0
        self._wake = asyncio.Event()
        self._isr_changes: deque[float] = deque()
        self.failed: KafkaCtlError | None = None
        """The error that ended the watch; None while it goes on."""
        self.trace = Trace(clock.now, history=address)
        self._recording = Recording(self.trace, self._reader.cluster)
        self.opened = 0
        """The number of records about the cluster as it was found."""
        try:
            clock.run(self._open())
        except BaseException:
            self.close()
            raise
        self.trace.generation = self.release.generation
        self.opened = len(self.trace)
        self.trace.listeners.append(self._count)
        self._task = clock.call(lambda: clock.spawn(self._keep_current(), Context()))

    # The contents

    @property
    def cluster(self) -> Cluster:
        """Everything that was read, decoded."""
        return self._reader.cluster

    @property
    def release(self) -> Release:
        """The releases of Kafka that fit what is found."""
        return release_of(self.cluster)

    @property
    def controller(self) -> TrueController | None:
        """The holder of `/controller`, its epoch, since when, and any doubt about it; None if there is none."""
        return self._look(lambda: self.cluster.controller)

    @property
    def brokers(self) -> BrokerTable:
        """The registered brokers by id."""
        return self._look(lambda: BrokerTable(sorted(self.cluster.brokers.items())))

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence about each znode that cannot be read or understood, and so is not shown."""
        return self._look(lambda: tuple(self.cluster.problems.values()))

    @property
    def migrates(self) -> str:
        """The reason why nothing is predicted for a cluster on its way to KRaft; empty if it is none."""
        return self._look(lambda: self.cluster.migrates)

    def stuck(self) -> list[str]:
        """One sentence about each request of an administrator that waits, with the reason."""
        return self._look(self.cluster.stuck)

    def partitions(self, at_risk: bool = False) -> Rows[PartitionRow]:
        """All partitions, or those at risk: `risk` says why."""
        return self._look(lambda: Rows(row for row in self._rows() if row.risk or not at_risk))

    def _rows(self) -> list[PartitionRow]:
        cluster, moving, rows = self.cluster, self.cluster.moving(), []
        for tp, replicas, found in cluster.partitions():
            state = found or LeaderAndIsr(NO_LEADER, (), -1, -1, -1)
            deleting = tp.topic in cluster.deleting
            risk = "" if deleting else _risk(tp, state.leader, state.isr, replicas.replicas, cluster)
            epochs = state.leader_epoch, state.controller_epoch, state.zk_version
            target = moving.get(tp, ())
            rows.append(PartitionRow(*tp, state.leader, state.isr, replicas.replicas, target, *epochs, risk))
        return rows

    @property
    def summary(self) -> Summary:
        """The cluster in numbers, at this moment."""
        return self._look(self._summary)

    def _summary(self) -> Summary:
        rows, cluster, controller = self._rows(), self.cluster, self.cluster.controller
        since = self._clock.now() * 1000 - MINUTE_MS
        while self._isr_changes and self._isr_changes[0] < since:
            self._isr_changes.popleft()
        return Summary(
            controller.id if controller else None,
            cluster.epoch,
            len(cluster.brokers),
            len(rows),
            sum(row.risk == OFFLINE for row in rows),
            sum(len(row.isr) < len(row.replicas) for row in rows),
            sum(bool(row.risk) for row in rows),
            sum(row.leader != row.replicas[0] for row in rows if row.replicas and row.topic not in cluster.deleting),
            len(cluster.deleting),
            len(cluster.moving()),
            len(self._isr_changes),
        )

    def _look(self, at: Callable[[], T]) -> T:
        """Look at the cluster while nothing is taken in."""
        return at() if self.closed else self._clock.call(at)

    # Pictures

    def live(self, *views: str) -> Watching:
        """The living cluster as a notebook widget, the same every time: steps to look at, nothing to click.

        `views` are the views to choose from at its first call: `cluster` by default.
        """
        with needed_for("a picture"):
            from kafka_ctl.views.widget.live_film import Watching

        if self._live is None:
            self._live = Watching(self.trace, self.opened, views or ("cluster",))
            if isinstance(self._clock, RealClock) and not self.closed:
                Thread(target=self._draw, args=(self._live,), name="kafka-ctl-picture", daemon=True).start()
        self._live.refresh()
        return self._live

    def _draw(self, live: Watching) -> None:
        """Let the picture grow, beside the loop that reads; a large one is drawn seldom."""
        took = 0.0
        while not self.closed and self.failed is None:
            time.sleep(max(REFRESH_SECONDS, 4 * took))
            began = time.monotonic()
            live.refresh()
            took = time.monotonic() - began

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        """In a notebook: the living cluster, or words where it is too large to draw or no widget can run."""
        words = {"text/plain": repr(self)}
        if len(self.trace) > MOST_DRAWN:
            return words, {}
        try:
            return display_bundle(self.live()._repr_mimebundle_(), words)
        except Unavailable:
            return words, {}

    def __repr__(self) -> str:
        if self.failed is not None:
            return f"Watch of {self.address}, ended: {self.failed}"
        lost = ", connection lost" if self.lost else ""
        return f"Watch of {self.address}{lost}: {self.release}; {self.summary}"

    # Time

    def settle(self, limit: float = LIMIT) -> None:
        """Wait until all that has changed by now is recorded.

        Raises ConditionNotMet after `limit` seconds, and the error that ended the watch.
        """
        if self.closed:
            raise BadInput(f"the watch of {self.address} is closed; only its trace can still be read")
        self._clock.run(self._caught_up(limit))

    async def _caught_up(self, limit: float) -> None:
        end = self._clock.now() + limit
        while self.failed is None:
            with suppress(ConnectionLoss, SessionExpired):
                assert self._session is not None
                await self._session.exists("/")  # before any answer comes what the server had to tell
                if not (self._stale or self._stale_parents or self._reading or self.lost):
                    return
            if self._clock.now() > end:
                raise ConditionNotMet(
                    f"the watch of {self.address} has not caught up within {limit:g} s: {self._waits_for()}"
                )
            await self._clock.sleep(POLL_SECONDS)
        raise self.failed

    def _waits_for(self) -> str:
        if self.lost:
            return "the connection to ZooKeeper is lost"
        unread = [*self._stale_parents, *self._stale]
        more = f" and {len(unread) - MOST_NAMES} more" if len(unread) > MOST_NAMES else ""
        return f"still to be read: {', '.join(unread[:MOST_NAMES])}{more}" if unread else "znodes are being read"

    def close(self) -> None:
        """End the session; closing twice is harmless, and the trace stays."""
        if not self.closed:
            self.closed = True
            self._clock.run(self._end())
            if isinstance(self._clock, RealClock):
                self._clock.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The session

    async def _open(self) -> None:
        self._session = await self._connect()
        await self._reader.read(self._session)
        self._recording.begin(self._reader.take_changes())

    async def _connect(self) -> ReadOnlySession:
        session = await self._store.connect("watcher", self._seconds, self._fired, self._state)
        self._note("connect", f"session={session.id:#x} timeout={self._seconds:g}s")
        return session

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._session is not None:
            await self._session.close()

    def _fired(self, event: WatchedEvent) -> None:
        if event.path in PARENTS and event.type != zk.DATA_CHANGED:
            self._stale_parents[event.path] = None
        elif event.type != zk.CHILDREN_CHANGED:
            self._stale[event.path] = None
            if event.type == zk.CREATED:
                self._reader.created.add(event.path)
        self._wake.set()

    def _state(self, state: str) -> None:
        self._note({zk.CONNECTED: "reconnected", zk.DISCONNECTED: "disconnected", zk.EXPIRED: "expired"}[state])
        if not self.lost:
            self._lost_at = self._clock.now()
        self.lost, self._expired = state != zk.CONNECTED, state == zk.EXPIRED
        self._wake.set()

    def _note(self, action: str, detail: str | None = None) -> None:
        """Record the state of the session; the records of a lab that plays the cluster are no causes of ours."""
        Context().run(self.trace.add, "watcher", "zk", action, detail=detail)

    async def _keep_current(self) -> None:
        """Read what is stale, whenever something is."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                try:
                    await self._catch_up()
                except (ConnectionLoss, SessionExpired, Unavailable) as error:
                    if isinstance(error, Unavailable) and not self._expired:
                        raise
                    await self._clock.sleep(AGAIN_SECONDS, background=True)
                    self._wake.set()
        except KafkaCtlError as error:
            self.failed = error

    async def _catch_up(self) -> None:
        if self._expired:
            self._session = await self._connect()
            self._all_stale()
            self._recording.gap(self._clock.now() - self._lost_at)
            self.lost = self._expired = False
        nodes, parents = list(self._stale), list(self._stale_parents)
        self._stale.clear()
        self._stale_parents.clear()
        self._reading = True
        try:
            assert self._session is not None
            await self._reader.read(self._session, nodes, parents)
        except (ConnectionLoss, SessionExpired):
            self._all_stale()
            raise
        finally:
            self._recording.add(self._reader.take_changes(current=not (self._stale or self._stale_parents)))
            self._reading = False

    def _all_stale(self) -> None:
        self._stale |= dict.fromkeys(self._reader.everything())
        self._stale_parents |= dict.fromkeys(PARENTS)

    def _count(self, record: Record) -> None:
        if record.kind == "broker" and record.action in ("shrink-isr", "expand-isr"):
            self._isr_changes.append(record.time_ms)


def _risk(tp: TopicPartition, leader: int, isr: Sequence[int], replicas: Sequence[int], cluster: Cluster) -> str:
    """The worst that is wrong with a partition, in a few words."""
    least = cluster.min_isr(tp.topic)
    if leader not in cluster.brokers:
        return OFFLINE
    if len(isr) < least:
        return f"{len(isr)} in sync, below min.insync.replicas={least}"
    if len(isr) == 1 and len(replicas) > 1:
        return "one in-sync replica left"
    return f"at min.insync.replicas={least}" if len(isr) == least and len(replicas) > least else ""


def watch(address: str, progress: Progress | None = None, auth: Auth | None = None) -> Watch:
    """Watch the Kafka cluster (0.10 to 3.9) whose znodes are at `host:port,host:port/chroot`; nothing is written there.

    Returns when all is read; `progress(done, known)` counts the reads. `auth=("digest", "user:password")` reads what an
    ACL gives to this user only; no record has it. Raises BadInput for an address or `auth` that cannot be read,
    Unavailable where no ZooKeeper answers, where no Kafka is found, or where an ACL forbids to read it.
    """
    clock = RealClock()
    try:
        return Watch(remote(address, clock, auth), clock, address, progress)
    except BaseException:
        if not clock.closed:
            clock.close()
        raise
