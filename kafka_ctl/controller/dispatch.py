"""The events of a controller, and the procedure that each of them starts.

Kafka 2.0.1: controller/KafkaController.scala, process

Separate from `broker.py` because it belongs to the controller, and knows every procedure of it.
"""

from __future__ import annotations

from typing import Final

from kafka_ctl.controller import (
    deletion,
    events,
    failover,
    membership,
    reassignment,
    reassignment_incremental,
    rebalance,
    shutdown,
    topics,
)
from kafka_ctl.controller.controller import Controller, Procedures
from kafka_ctl.errors import ControllerMoved
from kafka_ctl.requests import NOT_CONTROLLER


async def process(env: Controller, event: events.Event) -> None:
    """Process an event."""
    match event:
        case events.Startup():
            await failover.startup(env)
        case events.ControllerChange():
            await failover.noticed_change(env)
        case events.Reelect():
            await failover.reelect(env)
        case events.RegisterBrokerAndReelect() if env.generation.membership.registers_first:
            await env.register()
            await failover.new_session(env)
        case events.RegisterBrokerAndReelect():
            try:  # two listeners: an error of the first does not stop the second
                await failover.new_session(env)
            finally:
                await env.register()
        case events.Expire(started):
            started.set()
            env.active_id = -1
            await failover.resign(env)
        case events.ControlledShutdown(broker, broker_epoch, reply):
            await shutdown.controlled_shutdown(env, broker, broker_epoch, reply)
        case (
            events.ApiPartitionReassignment() | events.ListPartitionReassignments() | events.ReplicaLeaderElection()
        ) if not env.is_active:
            event.reply.set_exception(ControllerMoved(NOT_CONTROLLER.text))
        case events.ApiPartitionReassignment(targets, reply):
            await reassignment_incremental.api_partition_reassignment(env, targets, reply)
        case events.ListPartitionReassignments(partitions, reply):
            reassignment_incremental.list_partition_reassignments(env, partitions, reply)
        case events.ReplicaLeaderElection(kind, partitions, reply):
            await rebalance.elect_leaders(env, kind, partitions, reply)
        case _ if await _acts(env):
            await _process_active(env, event)


async def _acts(env: Controller) -> bool:
    """`is_active`, once the lock is free: events that arrive while 0.10 takes over wait, and are not lost."""
    async with env.locked():
        return env.is_active


async def _process_active(env: Controller, event: events.Event) -> None:
    """Process an event of the acting controller; any other controller drops it."""
    moving = reassignment_incremental if env.generation.reassignment.incremental_reassignment else reassignment
    match event:
        case events.BrokerChange():
            await membership.broker_change(env)
        case events.BrokerModifications(broker):
            await membership.broker_modifications(env, broker)
        case events.TopicChange():
            await topics.topic_change(env)
        case events.PartitionModifications(topic):
            await topics.partition_modifications(env, topic)
        case events.TopicDeletion():
            await deletion.topic_deletion(env)
        case events.TopicDeletionStopReplicaResponseReceived(broker, failed, errors):
            await deletion.stop_replica_response(env, broker, failed, errors)
        case events.PartitionReassignment():
            await moving.partition_reassignment(env)
        case events.PartitionReassignmentIsrChange(tp):
            await moving.isr_change(env, tp)
        case events.PreferredReplicaLeaderElection():
            await rebalance.preferred_election(env)
        case events.TopicUncleanLeaderElectionEnable(topic):
            await rebalance.unclean_enabled(env, topic)
        case events.AutoPreferredReplicaLeaderElection():
            await rebalance.auto_rebalance(env)
        case events.LogDirEventNotification():
            await membership.log_dir_event_notification(env)
        case events.IsrChangeNotification():
            await membership.isr_change_notification(env)
        case events.LeaderAndIsrResponseReceived(broker, failed, errors):
            await membership.leader_and_isr_response(env, broker, failed, errors)


PROCEDURES: Final = Procedures(process, failover.controller_change, failover.trigger_move)
