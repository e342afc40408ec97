"""Kafka's error messages for failed state changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_ctl.cluster import LeaderAndIsr, Replica, TopicPartition
from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.errors import NoReplicaOnline, StateChangeFailed


def _named(env: ControllerProcess, tp: TopicPartition) -> str:
    """A partition as the generation prints it."""
    return str(tp) if env.generation.log.names_election_strategies else f"[{tp.topic},{tp.partition}]"


def no_live_replica(env: ControllerProcess, tp: TopicPartition) -> StateChangeFailed:
    """New -> Online, but no assigned replica is alive. 2.0 and 2.4 name the live ones of them: none."""
    texts = f"Controller {env.id} epoch {env.context.epoch} encountered error during state change of partition {tp}", ""
    if not env.generation.log.names_election_strategies:
        assigned = ",".join(map(str, env.context.assigned(tp)))
        texts = f"encountered error during state change of partition [{tp.topic},{tp.partition}]", assigned
    live = ", ".join(map(str, sorted(env.context.live)))
    return StateChangeFailed(
        f"{texts[0]} from New to Online, assigned replicas are [{texts[1]}], live brokers are [Set({live})]. "
        "No assigned replica is alive."
    )


def no_state(env: ControllerProcess, tp: TopicPartition) -> StateChangeFailed:
    """An election where no leader was ever written."""
    named = _named(env, tp)
    why = f"LeaderAndIsr information doesn't exist for partition {named} in {env.context.partitions[tp]} state"
    if env.generation.log.names_election_strategies:
        return StateChangeFailed(why)
    return StateChangeFailed(f"encountered error while electing leader for partition {named} due to: {why}.")


def no_leader(
    env: ControllerProcess, tp: TopicPartition, strategy: str, state: LeaderAndIsr, unclean: Mapping[str, bool]
) -> StateChangeFailed:
    """An election that nobody may win; before KAFKA-5642 each selector had words of its own.

    Kafka 0.10.2.2: controller/PartitionLeaderSelector.scala; PartitionStateMachine.scala, electLeaderForPartition
    """
    if env.generation.log.names_election_strategies:
        prefix = {"preferred": "PreferredReplica", "unclean": "Offline"}.get(
            strategy, strategy.title().replace("-", "")
        )
        name = f"{prefix}PartitionLeaderElectionStrategy"
        if env.generation.election.elects_on_request and prefix == "Offline":
            name += f"({str(strategy == 'unclean').lower()})"
        return StateChangeFailed(f"Failed to elect leader for partition {tp} under strategy {name}")
    assigned, pair, isr = env.context.assigned(tp), f"[{tp.topic},{tp.partition}]", ",".join(map(str, state.isr))
    now = f'[{{"leader":{state.leader},"leader_epoch":{state.leader_epoch},"isr":[{isr}]}}]'
    live = f"Live brokers are: [Set({', '.join(map(str, sorted(env.context.live)))})]"
    if strategy == "offline":
        if not unclean.get(tp.topic):
            return NoReplicaOnline(f"No broker in ISR for partition {pair} is alive. {live}, ISR brokers are: [{isr}]")
        listed = ", ".join(map(str, assigned))
        return NoReplicaOnline(
            f"No replica for partition {pair} is alive. {live}, Assigned replicas are: [List({listed})]"
        )
    if strategy == "reassign":
        return NoReplicaOnline(
            f"None of the reassigned replicas for partition {pair} are in-sync with the leader. "
            f"Current leader and ISR: {now}"
        )
    why = (
        f"Preferred replica {assigned[0]} for partition {pair} is either not alive or not in the isr. "
        f"Current leader and ISR: {now}"
    )
    if strategy == "controlled-shutdown":
        shutting_down = ",".join(map(str, sorted(env.context.shutting_down)))
        why = f"No other replicas in ISR {isr} for {pair} besides shutting down brokers {shutting_down}"
    return StateChangeFailed(f"encountered error while electing leader for partition {pair} due to: {why}.")


def newer_controller_elected(env: ControllerProcess, tp: TopicPartition, state: LeaderAndIsr) -> StateChangeFailed:
    """An election where a newer controller has already elected."""
    return StateChangeFailed(
        f"aborted leader election for partition {tp} since the LeaderAndIsr path was already written by another "
        f"controller. This probably means that the current controller {env.id} went through a soft failure and another "
        f"controller was elected with epoch {state.controller_epoch}."
    )


def newer_controller_wrote(env: ControllerProcess, state: LeaderAndIsr) -> StateChangeFailed:
    """A change of what a newer controller has already written."""
    return StateChangeFailed(
        "Leader and isr path written by another controller. This probably means the current controller with epoch "
        f"{env.context.epoch} went through a soft failure and another controller was elected with epoch "
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


def nothing_stored(env: ControllerProcess, replica: Replica) -> StateChangeFailed:
    """A replica goes offline where no leader was ever written."""
    named = _named(env, replica.topic_partition)
    return StateChangeFailed(
        f"Failed to change state of replica {replica.broker} for partition {named} since the leader and isr path in "
        "zookeeper is empty"
    )
