"""Gauges of a controller for operators: those of `kafka.controller:type=KafkaController`.

Where there is an event queue, Kafka counts them after each event; they keep the values until the next event is done. A
controller that resigns sets them to 0 at once. 0.10 counts when they are read, under the controller's lock. Kafka's
reader waits for that lock; the lab shows the contents of the context at that moment.

Three quirks of Kafka's are kept. In 0.10 `PreferredReplicaImbalanceCount` cannot be read while a partition has never
had a leader: the gauge fails with NoSuchElementException, here None. Since KAFKA-5135 a count that fails leaves itself
and those after it as they were. And 2.4 adds up the numbers of replicas by topic as a set, so that of two topics with
equal numbers one is counted.

Kafka 0.10.2.2: controller/KafkaController.scala, newGauge
Kafka 2.0.1: controller/KafkaController.scala, updateMetrics
Kafka 2.4.1: controller/KafkaController.scala, updateMetrics; controller/ControllerContext.scala,
updatePartitionStateMetrics
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller.context import Context
from kafka_ctl.generation import Generation
from kafka_ctl.partition import OFFLINE
from kafka_ctl.replica import INELIGIBLE, SUCCESSFUL, ReplicaState


def _offline(context: Context, generation: Generation) -> int:
    """Partitions whose leader is not registered, except topics queued for deletion.

    Since KAFKA-6753: partitions in the state Offline, except topics whose deletion has begun.
    """
    if generation.deletion.partitions_leave_first:
        begun = context.deletion_started
        return sum(state is OFFLINE and tp.topic not in begun for tp, state in context.partitions.items())
    registered, queued = context.brokers, context.topics_to_be_deleted
    return sum(s.leader not in registered and tp.topic not in queued for tp, s in context.leadership.items())


def _imbalance(context: Context, generation: Generation) -> int:
    """Partitions not led by their first replica, except topics queued for deletion.

    A first replica that a reassignment is adding counts once it is in the ISR (KIP-455).
    """
    count = 0
    for topic, partitions in context.topics.items():
        queued = topic in context.topics_to_be_deleted
        for number, (replicas, adding, _) in partitions.items():
            state, preferred = context.leadership.get(TopicPartition(topic, number)), replicas[0]
            if state is None and not generation.gauges.counts_partitions_never_led:
                raise KeyError(topic, number)
            if state is not None and not queued:
                count += preferred in state.isr if preferred in adding else state.leader != preferred
    return count


def _replicas(context: Context, counts: Callable[[ReplicaState], bool]) -> int:
    """Replicas of the topics queued for deletion; the numbers of the topics are a set before they are added up."""
    by_topic = map(context.replicas_of_topic, context.topics_to_be_deleted)
    return sum({sum(counts(context.replicas[replica]) for replica in replicas) for replicas in by_topic})


COUNTS: dict[str, Callable[[Context, Generation], int]] = {
    "OfflinePartitionsCount": _offline,
    "PreferredReplicaImbalanceCount": _imbalance,
    "GlobalTopicCount": lambda context, _: len(context.all_topics),
    "GlobalPartitionCount": lambda context, _: len(context.leadership),
    "TopicsToDeleteCount": lambda context, _: len(context.topics_to_be_deleted),
    "ReplicasToDeleteCount": lambda context, _: _replicas(context, lambda state: state is not SUCCESSFUL),
    "TopicsIneligibleToDeleteCount": lambda context, _: len(context.topics_ineligible),
    "ReplicasIneligibleToDeleteCount": lambda context, _: _replicas(context, lambda state: state is INELIGIBLE),
}
"""The gauges in the order in which Kafka counts them; `lab/metrics.py` knows in which generations they exist."""


class Gauges:
    """The gauges of one controller; 0 wherever it does not act."""

    def __init__(self, context: Context, generation: Generation, is_active: Callable[[], bool]) -> None:
        self.context, self.generation, self.is_active = context, generation, is_active
        self.reset()

    def reset(self) -> None:
        """The controller resigns."""
        self._shown: dict[str, int] = dict.fromkeys(COUNTS, 0)

    def update(self) -> None:
        """An event has been processed."""
        if not self.is_active():
            self.reset()
            return
        with suppress(LookupError):
            for name, count in COUNTS.items():
                self._shown[name] = count(self.context, self.generation)

    def read(self) -> dict[str, int | None]:
        """By name; None for a gauge that Kafka fails to count."""
        active = self.is_active()
        shown: dict[str, int | None] = {"ActiveControllerCount": int(active)}
        if self.generation.gauges.counts_after_events or not active:
            return shown | self._shown
        for name, count in COUNTS.items():
            shown[name] = None
            with suppress(LookupError):
                shown[name] = count(self.context, self.generation)
        return shown
