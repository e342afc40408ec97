"""How a follower that copies bytes gets on: how far it is behind, and since when.

Records without a size take no time to copy, so that none of this is asked for them.
Kafka 2.0.1: server/AbstractFetcherThread.scala, FetcherLagStats; cluster/Replica.scala, updateLogReadResult;
server/ReplicaFetcherThread.scala, shouldFollowerThrottle
"""

from __future__ import annotations

import math

from kafka_ctl.brokers.process import BrokerProcess, Fetched
from kafka_ctl.cluster import TopicPartition


class Copying:
    """What one broker copies as a follower."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self._lags: dict[TopicPartition, int] = {}
        """How many records below its leader's high watermark a follower lacked after its last fetch."""
        self._last: dict[TopicPartition, tuple[float, int]] = {}
        """When it fetched last, in seconds, and where the leader's log ended then."""
        self.behind: dict[TopicPartition, float] = {}
        """Partitions of which bytes are being copied, and since when they have not been caught up."""

    def is_throttled(self, tp: TopicPartition) -> bool:
        """Whether the next fetch has to wait: others have used up what may be fetched."""
        return self.process.quotas.follower.stops(tp, in_sync=self._lags.get(tp, 1) <= 0)

    async def transfer(self, tp: TopicPartition, offset: int, answer: Fetched) -> None:
        """An answer is on its way, each byte of its records adding to the time."""
        size = sum(entry.size for entry in answer.entries)
        if size or tp in self.behind:
            self._note(tp, offset, answer.end)
        await self.process.clock.sleep(self.process.costs.request + size * self.process.costs.byte)
        self.process.quotas.follower.record(tp, size)
        self._lags[tp] = max(0, answer.high_watermark - offset - len(answer.entries))

    def _note(self, tp: TopicPartition, offset: int, end: int) -> None:
        """A fetch from `offset`, when the leader's log ended at `end`: we are caught up, or were at the last fetch."""
        now = self.process.clock.now()
        then, last_end = self._last.get(tp, (now, math.inf))
        if offset >= end:
            self.behind.pop(tp, None)
        else:
            self.behind[tp] = then if offset >= last_end else self.behind.get(tp, now)
        self._last[tp] = now, end

    def stop(self, tp: TopicPartition) -> None:
        """Nothing of this partition is copied now."""
        self.behind.pop(tp, None)
        self._last.pop(tp, None)

    def forget(self, tp: TopicPartition) -> None:
        """It is followed no more, or in another way."""
        self.stop(tp)
        self._lags.pop(tp, None)
