"""The seven states of a replica and the moves between them.

A replica is created (`create`), sent its leader (`tell`), stopped (`stop`), and deleted with its topic or after a
reassignment (`delete`, `confirm`, `give_up`, `forget`). The machine is `controller/replica_machine.py`.
Kafka 2.0.1: controller/ReplicaStateMachine.scala, ReplicaState
"""

from __future__ import annotations

from enum import StrEnum

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.table import Move, Tables, TransitionTable


class ReplicaState(StrEnum):
    """The states of a replica in the controller's context; the names are Kafka's."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


NON_EXISTENT, NEW, ONLINE, OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE = ReplicaState

ROWS = (
    #    source        target        action     effect
    Move(NON_EXISTENT, NEW, "create", "its broker is to hold a copy; it gets LeaderAndIsr if one leads"),
    Move(NEW, ONLINE, "join", "it counts as assigned; an earlier move sends LeaderAndIsr"),
    Move(ONLINE, ONLINE, "tell", "its broker gets LeaderAndIsr again"),
    Move(OFFLINE, ONLINE, "tell", "its broker is back and gets LeaderAndIsr"),
    Move(INELIGIBLE, ONLINE, "tell", "its broker is back and gets LeaderAndIsr"),
    Move(NEW, OFFLINE, "stop", "its broker gets StopReplica, and it leaves the ISR"),
    Move(ONLINE, OFFLINE, "stop", "its broker gets StopReplica, and it leaves the ISR"),
    Move(OFFLINE, OFFLINE, "stop", "it stays stopped"),
    Move(INELIGIBLE, OFFLINE, "stop", "its broker is not live, or its deletion is tried again"),
    Move(OFFLINE, STARTED, "delete", "its broker gets StopReplica with the order to delete"),
    Move(STARTED, SUCCESSFUL, "confirm", "its broker has deleted the copy; a reassignment does not wait for that"),
    Move(STARTED, INELIGIBLE, "give_up", "its broker could not delete the copy"),
    Move(SUCCESSFUL, NON_EXISTENT, "forget", "the controller forgets it"),
)

REFUSALS = (*ROWS, Move(OFFLINE, INELIGIBLE, "give_up", "it cannot be deleted while its broker is dead"))
"""The rows since 2.3 (KAFKA-8237): a replica on a dead broker may be given up without being asked first."""

REPLICA = Tables(
    {
        name: TransitionTable(
            "replica",
            NON_EXISTENT,
            f"{release}: controller/ReplicaStateMachine.scala",
            REFUSALS if name == "2.4" else ROWS,
        )
        for name, release in GENERATIONS.items()
    }
)
"""The replica table of each generation."""


def without_replica(leader: int, isr: tuple[int, ...], gone: int) -> tuple[int, tuple[int, ...]]:
    """Leader and ISR of a partition once its replica on broker `gone` is Offline.

    If the leader is gone, the leader is -1; the last member stays in the ISR, so that it can lead when it returns.
    Kafka 2.0.1: controller/ReplicaStateMachine.scala, doRemoveReplicasFromIsr
    """
    staying = isr if len(isr) == 1 else tuple(r for r in isr if r != gone)
    return NO_LEADER if leader == gone else leader, staying


def without_isr_member(leader: int, isr: tuple[int, ...], gone: int) -> tuple[int, tuple[int, ...]]:
    """The same before KAFKA-708."""
    return leader, tuple(r for r in isr if r != gone)
