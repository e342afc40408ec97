"""The threads with which a broker fetches: one for each leader, for as long as it has partitions there.

Kafka 2.0.1: server/AbstractFetcherManager.scala, addFetcherForPartitions, removeFetcherForPartitions,
shutdownIdleFetcherThreads
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_ctl.brokers.fetches import FETCH_WAIT
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import TopicPartition


@dataclass
class FetcherThread:
    """Kafka's thread that fetches from one leader: since when, in seconds, and for how many partitions.

    Its first fetch begins a fetch session (KIP-227), which ends with the leader's process or the connection.
    Kafka 2.4.1: server/ReplicaFetcherThread.scala, fetchSessionHandler, fetchFromLeader
    """

    since: float
    session: tuple[int, int]
    """The connection of its fetch session."""
    session_since: float
    """When the first fetch of the session was sent, in seconds."""
    partitions: int = 0


class FetcherThreads:
    """Which partition is fetched from whom, and when threads without partitions end."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self._fetched: dict[TopicPartition, int] = {}
        """Partitions with a fetcher, and the leader it fetches from."""
        self._threads: dict[int, FetcherThread] = {}
        """By leader."""
        self._idle_until = 0.0
        """When the last fetch for no partition returns."""

    def add(self, tp: TopicPartition, leader: int) -> None:
        """Fetch a partition from this leader."""
        self._fetched[tp] = leader
        if leader not in self._threads:
            now = self.process.clock.now()
            self._threads[leader] = FetcherThread(now, self._connection(leader), now)
        self._threads[leader].partitions += 1

    def _connection(self, leader: int) -> tuple[int, int]:
        return self.process.network.connection(self.process.id, leader)

    def in_session(self, leader: int) -> bool:
        """Whether the next fetch from this leader belongs to a fetch session that another one has begun."""
        thread = self._threads.get(leader)
        if thread is None or thread.session != self._connection(leader) or not self.process.reaches(leader):
            return False
        return self.process.clock.now() - thread.session_since > 2 * self.process.costs.request

    def fetched(self, leader: int) -> None:
        """A fetch was answered: if it belongs to no session, it has begun one."""
        thread = self._threads.get(leader)
        if thread is not None and thread.session != self._connection(leader) and self.process.reaches(leader):
            thread.session, thread.session_since = self._connection(leader), self.process.clock.now()

    def remove(self, tp: TopicPartition) -> None:
        """Fetch it no more; harmless where nobody does."""
        leader = self._fetched.pop(tp, None)
        if leader is not None:
            self._threads[leader].partitions -= 1

    def end_idle(self, at_once: bool) -> None:
        """End the fetchers that have no partition left, at once or when the fetch that is under way has returned.

        Kafka 0.10.2.2: server/AbstractFetcherManager.scala, shutdownIdleFetcherThreads
        """
        now = self.process.clock.now()
        for leader in [leader for leader, thread in self._threads.items() if not thread.partitions]:
            since = self._threads.pop(leader).since
            if not at_once and self._connection(leader)[0] and self.process.reaches(leader):
                self._idle_until = max(self._idle_until, now + FETCH_WAIT - (now - since) % FETCH_WAIT)

    async def idle_ended(self) -> None:
        """Return when no fetcher is being ended any more."""
        if (wait := self._idle_until - self.process.clock.now()) > 0:
            await self.process.clock.sleep(wait)
