"""Quotas of throttled replicas: the bytes a second that a broker may send to them, or fetch as one (KIP-73).

A broker has one quota for what it sends as leader and one for what it fetches as follower. All bytes of throttled
partitions count. While their rate is above the bound, throttled partitions whose replica is not in sync are not sent or
fetched. A third quota is for copies between its log directories, of any partition (KIP-113).
Kafka 2.0.1: server/ReplicationQuotaManager.scala, ReplicationQuotaManager; clients
common/metrics/stats/SimpleRate.java, SampledStat.java
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from kafka_ctl.cluster import TopicPartition

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
"""Settings of a broker: bytes a second."""
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
"""The same for copies between the log directories of the broker (Kafka 1.1)."""
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
"""Settings of a topic: which replicas the rates are for, `0:1,0:2` (partition:broker) or `*` for all."""
REPLICAS_FORM = re.compile(r"([0-9]+:[0-9]+)?")
SAMPLES, WINDOW = 11, 1000
"""Ten whole samples and the current one, of so many milliseconds each."""
ALL: frozenset[int] = frozenset({-1})
"""Every partition of a topic."""


class Sample:
    """The bytes recorded since some moment."""

    def __init__(self, since: int) -> None:
        self.since, self.value = since, 0


class SimpleRate:
    """Something a second, measured over the last ten seconds or so; times are milliseconds."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._current = 0

    def record(self, value: int, now: int) -> None:
        """Count so much, now."""
        if not self.samples:
            self.samples.append(Sample(now))
        if now - self.samples[self._current].since >= WINDOW:
            self._current = (self._current + 1) % SAMPLES
            del self.samples[self._current : self._current + 1]  # the oldest, once there are enough
            self.samples.insert(self._current, Sample(now))
        self.samples[self._current].value += value

    def measure(self, now: int) -> float:
        """The rate a second: all that the samples have, by the time since the oldest began, a second at least."""
        kept = [Sample(now) if now - sample.since >= SAMPLES * WINDOW else sample for sample in self.samples]
        self.samples = kept or [Sample(now)]
        oldest = min(sample.since for sample in self.samples)
        return sum(sample.value for sample in self.samples) / (max(now - oldest, WINDOW) / 1000)


class ReplicationQuota:
    """The quota of one broker, for sending or fetching; `now` gives seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._rate = now, SimpleRate()
        self.bound: int | None = None
        """Bytes a second; None for as many as there are."""
        self.throttled: dict[str, frozenset[int]] = {}
        """By topic the partitions whose replica on this broker is throttled, or `ALL`."""

    def is_throttled(self, tp: TopicPartition) -> bool:
        """True if the bytes of this partition count."""
        partitions = self.throttled.get(tp.topic, frozenset())
        return partitions is ALL or tp.partition in partitions

    def record(self, tp: TopicPartition, bytes: int) -> None:
        """Count what was sent or fetched of a partition, if that is throttled."""
        if self.is_throttled(tp):
            self.count(bytes)

    def count(self, bytes: int) -> None:
        """Count what was copied."""
        if bytes:
            self._rate.record(bytes, self._milliseconds())

    @property
    def is_exceeded(self) -> bool:
        """True if the rate is above the bound."""
        return self.bound is not None and self.rate > self.bound

    @property
    def rate(self) -> float:
        """Bytes a second, lately."""
        return self._rate.measure(self._milliseconds())

    def stops(self, tp: TopicPartition, in_sync: bool) -> bool:
        """True if this partition stands still for now."""
        return not in_sync and self.is_throttled(tp) and self.is_exceeded

    def _milliseconds(self) -> int:
        return int(self._now() * 1000)


class ReplicationQuotas(NamedTuple):
    """The quotas of a broker."""

    leader: ReplicationQuota
    follower: ReplicationQuota
    alter_log_dirs: ReplicationQuota


def throttled_partitions(value: str, broker: int) -> frozenset[int]:
    """The partitions of a topic whose replica on this broker a list of throttled replicas names.

    Kafka 2.0.1: server/ConfigHandler.scala, TopicConfigHandler.parseThrottledPartitions
    """
    if value.strip() == "*":
        return ALL
    pairs = (pair.split(":") for pair in value.strip().split(",") if pair)
    return frozenset(int(partition) for partition, replica in pairs if int(replica) == broker)
