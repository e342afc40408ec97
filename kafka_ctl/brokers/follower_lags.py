"""Which followers a leader takes out of the ISR: those whose fetches have not reached the end of its log for too long.

Kafka 2.0.1: cluster/Partition.scala, getOutOfSyncReplicas; 2.4.1: the same, isFollowerOutOfSync
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kafka_ctl.brokers.process import BrokerProcess, FollowerPeer
from kafka_ctl.cluster import TopicPartition

IsLate = Callable[[TopicPartition, int, FollowerPeer], bool]


class FollowerLags:
    """What one leader knows of its followers; `ends` has where their logs end, by partition and broker."""

    def __init__(self, process: BrokerProcess, ends: dict[TopicPartition, dict[int, int]]) -> None:
        self.process, self._ends = process, ends

    def late_now(self, limit: float) -> dict[TopicPartition, tuple[int, ...]]:
        """By partition, who has to leave the ISR now; `limit` is in seconds. A learner's rule is asked of everybody."""
        if "late" not in self.process.world.plugins.rules:
            return self.late_since(self.process.clock.now() - limit)
        others = {id: other for id, other in self.process.network.followers() if id != self.process.id}
        return self._late(others, lambda tp, id, other: self._is_late_by_rule(tp, id, other, limit))

    def late_since(self, since: float) -> dict[TopicPartition, tuple[int, ...]]:
        """By partition led here: members of the ISR whose fetches have not reached the log's end since then."""
        process = self.process
        suspects = {
            id: other
            for id, other in process.network.followers()
            if id != process.id and (other.is_suspect or not process.reaches(id))
        }
        return self._late(suspects, lambda tp, id, other: self._is_late(tp, id, other, since))

    def _late(self, suspects: dict[int, FollowerPeer], is_late: IsLate) -> dict[TopicPartition, tuple[int, ...]]:
        if not suspects:
            return {}
        process = self.process
        late = {
            tp: tuple(f for f in hosted.state.isr if f in suspects and is_late(tp, f, suspects[f]))
            for tp, hosted in process.hosted.items()
            if hosted.state.leader == process.id and len(hosted.state.isr) > 1
        }
        return {tp: followers for tp, followers in late.items() if followers}

    def _is_late(self, tp: TopicPartition, id: int, follower: FollowerPeer, since: float) -> bool:
        """Whether a follower has not caught up since then: it lags, or, where that counts, it fetches no more."""
        caught_up, is_silent = self._caught_up_until(tp, id, follower)
        if is_silent and not self.process.generation.isr.expels_silent_followers:
            end, leaders_end = self._log_ends(tp, id)
            return end < leaders_end and caught_up <= since
        return caught_up <= since

    def _is_late_by_rule(self, tp: TopicPartition, id: int, follower: FollowerPeer, limit: float) -> bool:
        now, (caught_up, is_silent) = self.process.clock.now(), self._caught_up_until(tp, id, follower)
        end, leaders_end = self._log_ends(tp, id)
        if caught_up < now and not is_silent:  # `lag` and `slow` keep it from the end, also where nothing was written
            end = min(end, leaders_end - 1)
        at, until, most = (round(1000 * seconds, 3) for seconds in (now, min(now, caught_up), limit))
        return self.process.world.plugins.is_late(at, until, end, leaders_end, most)

    def _caught_up_until(self, tp: TopicPartition, id: int, follower: FollowerPeer) -> tuple[float, bool]:
        """When a follower last had everything, infinity if it has now; and whether it fetches no more."""
        silent_since = self.process.network.unreachable_since(id, self.process.id)
        silent_since = min(silent_since, follower.unfetched.get(tp, math.inf))
        if silent_since == math.inf:
            return follower.late_since(tp), False
        return max(silent_since, self.process.hosted[tp].led_since), True

    def _log_ends(self, tp: TopicPartition, id: int) -> tuple[int, int]:
        """Where the logs of a follower and of the leader end, as the leader knows; both at 0 without a log."""
        log = self.process.disk.logs.get(tp)
        return (0, 0) if log is None else (self._ends.get(tp, {}).get(id, -1), log.end)
