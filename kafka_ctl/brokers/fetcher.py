"""A follower's fetcher: the partitions that it follows of one leader, on their way to being in step.

Kafka's replica fetcher threads ask a leader for all partitions at once, and so does this; a partition whose log has
records to be copied is asked for by itself.
Kafka 2.0.1: server/AbstractFetcherThread.scala, AbstractFetcherThread; server/ReplicaFetcherManager.scala
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

from kafka_ctl.cluster import LeaderAndIsr, TopicPartition

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker

STARTED, KEPT, SKIPPED = "started", "kept", "skipped"
"""What becomes of the fetcher of a partition whose broker is made follower."""
FETCH_WAIT, FETCH_BACKOFF = 0.5, 1.0
"""Seconds that a fetch waits for news (`replica.fetch.wait.max.ms`), and a follower whose leader does not answer."""


class Fetcher:
    """Catches up with one leader in some partitions, until the leader counts us in everywhere."""

    def __init__(self, broker: Broker, leader: int) -> None:
        self.broker, self.leader = broker, leader
        self.partitions: dict[TopicPartition, LeaderAndIsr] = {}
        self._said: set[TopicPartition] = set()
        self.forming = True
        """Whether more partitions can still be added."""
        self._task: asyncio.Task | None = None

    def add(self, tp: TopicPartition, state: LeaderAndIsr, at_once: bool = False, said: bool = False) -> None:
        """One more partition; with the first the fetcher starts, after the time of catching up or at once."""
        self.partitions[tp] = state
        if said:
            self._said.add(tp)
        if self._task is None:
            self._task = self.broker.spawn(self._run(at_once))

    def drop(self, tp: TopicPartition) -> None:
        """Fetch this partition no more."""
        del self.partitions[tp]
        if not self.partitions:
            self.forming = False
            assert self._task is not None
            self._task.cancel()

    async def _run(self, at_once: bool) -> None:
        """Copy what is missing, then tell the leader by fetching from its log's end."""
        broker, self.forming = self.broker, False
        if not at_once:
            await broker.clock.sleep(broker.costs.catch_up + broker.replication.slow)
        while True:
            await self._copy()
            leader = broker.network.brokers.get(self.leader)
            await broker.clock.sleep(broker.costs.request)
            if leader is not None and broker.network.silence(leader.id, broker.id) == math.inf:
                for tp in list(self.partitions):
                    self._fetch(leader, tp)
            if not self.partitions:
                return
            await broker.clock.sleep(FETCH_BACKOFF, background=True)

    async def _copy(self) -> None:
        """Records are copied partition by partition: whoever has some gets a fetcher of its own."""
        logs = self.broker.logs
        for tp, state in list(self.partitions.items()):
            if len(self.partitions) > 1 and logs.has_records(tp, state):
                self.broker.replication.fetch_alone(tp, state, tp in self._said)
        if len(self.partitions) == 1:
            await logs.copy(*next(iter(self.partitions.items())))

    def _fetch(self, leader: Broker, tp: TopicPartition) -> None:
        """Tell the leader that we have all that it has, until it counts us in."""
        me, state = self.broker, self.broker.replicas.hosted[tp].state
        if not leader.replication.fetched(tp, me.id, state.leader_epoch):
            return
        if tp not in self._said:
            me.record("caught-up", tp, leader=state.leader, leader_epoch=state.leader_epoch)
            self._said.add(tp)
        if leader.replication.counts_in(tp, me.id):
            del self.partitions[tp]
            me.replication.counted_in(tp)
