"""The fetch of a follower of the lab that waits in its leader's purgatory: what releases it, and when its time is up.

Kafka's fetchers ask again every half second. Here a fetch that found nothing stays where it is: an expiry would only
bring the same fetch again. Only where it would bring something, its half second begins: a newer high watermark, which
before KAFKA-8443 releases nobody, or records that are held back by a throttle.
Kafka 2.0.1: server/ReplicaManager.scala, fetchMessages; server/DelayedFetch.scala, DelayedFetch
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kafka_ctl.brokers.fetches import FETCH_WAIT, FetchRequest, FetchState
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.brokers.purgatory import NEVER, DelayedOperation
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.ports import Timer


class Leading(Protocol):
    """What a fetch that waits here asks of our side as leader."""

    def fetch_state(self, tp: TopicPartition, replica: int, leader_epoch: int) -> FetchState:
        """What it would find."""

    def throttles(self, tp: TopicPartition, follower: int) -> bool:
        """Whether this follower may not be sent more of the partition now."""


class FollowerFetch(DelayedOperation):
    """A fetch of one partition from the end of a follower's log; `answered` is called with what it is worth.

    That is its result, too: whether it brings something. The rule is that of `DelayedFetch`, for one partition.
    """

    def __init__(
        self, role: Leading, process: BrokerProcess, request: FetchRequest, answered: Callable[[bool], object]
    ) -> None:
        super().__init__(NEVER, "fetch")
        assert request.offset is not None
        self.role, self.process, self.request, self.answered = role, process, request, answered
        self.replica = request.replica
        self.known = (request.high_watermark, request.offset)
        self._end: Timer | None = None

    @property
    def _found(self) -> FetchState:
        tp, replica, epoch, *_ = self.request
        return self.role.fetch_state(tp, replica, epoch)

    def try_complete(self) -> bool:
        """Records that are not held back, a leader that leads no more, or, since KAFKA-8443, a high watermark."""
        found = self._found
        if found.answered and not self._brings(*(found.offsets or (0, 0))):
            return False
        return self.force_complete()

    def _brings(self, high_watermark: int, end: int) -> bool:
        known_high_watermark, known_end = self.known
        if high_watermark > known_high_watermark and self.process.generation.records.passes_on_high_watermark:
            return True
        return end > known_end and not self.role.throttles(self.request.partition, self.request.replica)

    def _is_news(self, found: FetchState) -> bool:
        """Whether the leader has records or a high watermark that the follower has not."""
        return (found.offsets or (0, 0)) != self.known

    def looked_at(self) -> None:
        """Begin its half second, if what it would bring then is news."""
        if self._end is None and self._is_news(self._found):
            self._end = self.process.clock.later(FETCH_WAIT, self.expire)

    def cancel(self) -> None:
        super().cancel()
        if self._end is not None:
            self._end.cancel()

    def on_complete(self) -> Any:
        """Nothing where it is refused; records are read when the answer has arrived."""
        self.result = self._found.answered
        self.answered(self.result)
        return self.result
