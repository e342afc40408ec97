"""The threads with which a broker fetches: one for each leader, for as long as it has partitions there.

Kafka 2.0.1: server/AbstractFetcherManager.scala, addFetcherForPartitions, removeFetcherForPartitions,
shutdownIdleFetcherThreads
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_ctl.brokers.leader import FETCH_WAIT
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import TopicPartition


@dataclass
class FetcherThread:
    """Kafka's thread that fetches from one leader: since when, in seconds, and for how many partitions."""

    since: float
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
        self._threads.setdefault(leader, FetcherThread(self.process.clock.now())).partitions += 1

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
            there = self.process.network.leader(leader) is not None and self.process.reaches(leader)
            if there and not at_once:
                self._idle_until = max(self._idle_until, now + FETCH_WAIT - (now - since) % FETCH_WAIT)

    async def idle_ended(self) -> None:
        """Return when no fetcher is being ended any more."""
        if (wait := self._idle_until - self.process.clock.now()) > 0:
            await self.process.clock.sleep(wait)
