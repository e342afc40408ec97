"""What a broker counts of the partitions it holds: the gauges of `kafka.server:type=ReplicaManager`.

They are counted when somebody reads them, from what the broker itself knows: one that has lost its connection to the
controller shows what it was told last.
Kafka 2.0.1: server/ReplicaManager.scala, newGauge; cluster/Partition.scala, isUnderReplicated, isUnderMinIsr
Kafka 2.4.1: cluster/Partition.scala, isAtMinIsr
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker


NAMES = (
    "LeaderCount", "PartitionCount", "OfflineReplicaCount", "UnderReplicatedPartitions", "UnderMinIsrPartitionCount",
    "AtMinIsrPartitionCount",
)  # fmt: skip
"""The gauges in Kafka's order; `lab/metrics.py` knows which of them exist in a generation."""


def gauges(broker: Broker, min_isr: Callable[[str], int]) -> dict[str, int]:
    """By name; `min_isr` gives `min.insync.replicas` of a topic."""
    hosted, offline = broker.replicas.hosted, broker.replicas.offline
    led = {tp: held for tp, held in hosted.items() if held.state.leader == broker.id}
    spare = [len(held.state.isr) - min_isr(tp.topic) for tp, held in led.items()]
    under_replicated = sum(len(held.state.isr) < len(held.replicas) for held in led.values())
    below, at = sum(more < 0 for more in spare), spare.count(0)
    return dict(
        zip(NAMES, (len(led), len(hosted) + len(offline), len(offline), under_replicated, below, at), strict=True)
    )
