"""What a broker counts of the partitions it holds: the gauges of `kafka.server:type=ReplicaManager`.

They are counted when somebody reads them, from what the broker itself knows: one that has lost its connection to the
controller shows its last values.
Kafka 2.0.1: server/ReplicaManager.scala, newGauge; cluster/Partition.scala, isUnderReplicated, isUnderMinIsr
Kafka 2.4.1: cluster/Partition.scala, isAtMinIsr
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_ctl.brokers.process import BrokerProcess

NAMES = (
    "LeaderCount", "PartitionCount", "OfflineReplicaCount", "UnderReplicatedPartitions", "UnderMinIsrPartitionCount",
    "AtMinIsrPartitionCount",
)  # fmt: skip
"""The gauges in Kafka's order; `lab/metrics.py` knows which of them exist in a generation."""


def gauges(process: BrokerProcess, min_isr: Callable[[str], int]) -> dict[str, int]:
    """By name; `min_isr` gives `min.insync.replicas` of a topic."""
    hosted, offline = process.hosted, process.offline
    led = {tp: held for tp, held in hosted.items() if held.state.leader == process.id}
    spare = [len(held.state.isr) - min_isr(tp.topic) for tp, held in led.items()]
    under_replicated = sum(len(held.state.isr) < len(held.replicas) for held in led.values())
    below, at = sum(more < 0 for more in spare), spare.count(0)
    return dict(
        zip(NAMES, (len(led), len(hosted) + len(offline), len(offline), under_replicated, below, at), strict=True)
    )
