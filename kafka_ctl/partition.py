"""The four states of a partition and the moves between them.

A partition is made (`assign`), gets its first leader (`initialize`), changes leaders (`elect`), and loses them
or goes away (`mark`). The machine that performs the moves is `controller/partition_machine.py`.
Kafka 2.0.1: controller/PartitionStateMachine.scala, PartitionState
"""

from __future__ import annotations

from enum import StrEnum

from kafka_ctl.generation import GENERATIONS
from kafka_ctl.table import Move, Tables, TransitionTable


class PartitionState(StrEnum):
    """The states of a partition in the controller's context; the names are Kafka's."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


NON_EXISTENT, NEW, ONLINE, OFFLINE = PartitionState

ROWS = (
    #    source        target        action        effect
    Move(NON_EXISTENT, NEW, "assign", "its replicas are known, its leader is not"),
    Move(NEW, ONLINE, "initialize", "the first live replica leads, the live replicas are the ISR"),
    Move(ONLINE, ONLINE, "elect", "the leader moves while the partition serves"),
    Move(OFFLINE, ONLINE, "elect", "an election names a new leader and ISR"),
    Move(NEW, OFFLINE, "mark", "it never had a leader"),
    Move(ONLINE, OFFLINE, "mark", "its leader is gone, or its topic is deleted"),
    Move(OFFLINE, OFFLINE, "mark", "it stays without a leader"),
    Move(OFFLINE, NON_EXISTENT, "mark", "its topic is deleted"),
)

PARTITION = Tables(
    {
        name: TransitionTable("partition", NON_EXISTENT, f"{tag}: controller/PartitionStateMachine.scala", ROWS)
        for name, tag in GENERATIONS.items()
    }
)
"""The partition table of each generation: the same in all of them."""
