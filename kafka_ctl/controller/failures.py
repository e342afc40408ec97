"""Kafka's words for what a state machine could not do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_ctl.cluster import LeaderAndIsr, Replica, TopicPartition
from kafka_ctl.errors import StateChangeFailed

if TYPE_CHECKING:
    from kafka_ctl.controller.controller import Controller


def no_live_replica(c: Controller, tp: TopicPartition) -> StateChangeFailed:
    """New -> Online, but no assigned replica is alive."""
    assigned = ",".join(map(str, c.context.assigned(tp)))
    live = ", ".join(map(str, sorted(c.context.live)))
    return StateChangeFailed(
        f"Controller {c.id} epoch {c.context.epoch} encountered error during state change of partition {tp} from New "
        f"to Online, assigned replicas are [{assigned}], live brokers are [Set({live})]. No assigned replica is alive."
    )


def no_state(c: Controller, tp: TopicPartition) -> StateChangeFailed:
    """An election where no leader was ever written."""
    state = c.context.partitions[tp]
    return StateChangeFailed(f"LeaderAndIsr information doesn't exist for partition {tp} in {state} state")


def newer_controller_elected(c: Controller, tp: TopicPartition, state: LeaderAndIsr) -> StateChangeFailed:
    """An election where a newer controller has already elected."""
    return StateChangeFailed(
        f"aborted leader election for partition {tp} since the LeaderAndIsr path was already written by another "
        f"controller. This probably means that the current controller {c.id} went through a soft failure and another "
        f"controller was elected with epoch {state.controller_epoch}."
    )


def newer_controller_wrote(c: Controller, state: LeaderAndIsr) -> StateChangeFailed:
    """A change of what a newer controller has already written."""
    return StateChangeFailed(
        "Leader and isr path written by another controller. This probably means the current controller with epoch "
        f"{c.context.epoch} went through a soft failure and another controller was elected with epoch "
        f"{state.controller_epoch}. Aborting state change by this controller"
    )


def dead_targets(tp: TopicPartition, target: Sequence[int], alive: Sequence[int]) -> StateChangeFailed:
    """A reassignment to brokers that are not all there, before KAFKA-4214."""
    return StateChangeFailed(
        f"Only {','.join(map(str, alive))} replicas out of the new set of replicas {','.join(map(str, target))} for "
        f"partition {tp} to be reassigned are alive. Failing partition reassignment"
    )


def would_lead(replica: Replica) -> StateChangeFailed:
    """A replica to be started as follower leads already."""
    return StateChangeFailed(
        f"Replica {replica.broker} for partition {replica.topic_partition} cannot be moved to NewReplica state as it "
        "is being requested to become leader"
    )


def nothing_stored(replica: Replica) -> StateChangeFailed:
    """A replica goes offline where no leader was ever written."""
    return StateChangeFailed(
        f"Failed to change state of replica {replica.broker} for partition {replica.topic_partition} since the leader "
        "and isr path in zookeeper is empty"
    )
