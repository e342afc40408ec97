"""What a broker does with each kind of request, and what it answers.

Most are for its replica manager. What asks for a decision is put to the controller of the same process, whether that
is the active one or not.
Kafka 2.0.1: server/KafkaApis.scala, handle; 2.4.1: handleAlterPartitionReassignmentsRequest
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kafka_ctl.brokers import electing
from kafka_ctl.brokers.requests import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    ControlledShutdownRequest,
    ControlRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    LeaderAndIsrRequest,
    ListPartitionReassignmentsRequest,
    ProduceRequest,
    Request,
    Response,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from kafka_ctl.errors import ControllerMoved, KafkaCtlError, Refused, StaleBrokerEpoch

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker


async def answer(broker: Broker, request: Request) -> Response:
    """Handle one request; what the controller refuses becomes an error with Kafka's name."""
    if isinstance(request, LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest):
        await broker.clock.sleep(broker.costs.request_state * len(request.partitions))
        async with broker.replicas.lock:
            return await _obey(broker, request)
    match request:
        case ProduceRequest():
            return await broker.logs.produce(request)
        case AlterReplicaLogDirsRequest(dirs) if broker.world.generation.marks_new_replicas:
            return Response(errors=broker.log_dirs.alter(dirs))
        case DescribeLogDirsRequest(partitions) if broker.world.generation.marks_new_replicas:
            return Response(located=broker.log_dirs.describe(partitions))
        case ElectLeadersRequest() if broker.world.generation.elects_on_request:
            return await electing.elect_leaders(broker, request)
    reply: asyncio.Future = broker.clock.loop.create_future()
    try:
        return await _ask_controller(broker, request, reply)
    except ControllerMoved as error:
        leaving = isinstance(request, ControlledShutdownRequest)
        return Response("STALE_CONTROLLER_EPOCH" if leaving else "NOT_CONTROLLER", text=str(error))
    except Refused as error:
        return Response(error.code, text=str(error))
    except StaleBrokerEpoch as error:
        return Response("STALE_BROKER_EPOCH", text=str(error))
    except KafkaCtlError as error:
        return Response("BROKER_NOT_AVAILABLE", text=str(error))


async def _obey(broker: Broker, request: ControlRequest) -> Response:
    match request:
        case LeaderAndIsrRequest():
            await broker.replication.idle_fetchers_ended()
            await broker.replicas.read_configs(request)
            await broker.replication.isr_written(request.partitions)
            response = broker.replicas.leader_and_isr(request)
            broker.replication.end_idle_fetchers(at_once=True)
            return response
        case UpdateMetadataRequest():
            return broker.replicas.update_metadata(request)
        case StopReplicaRequest():
            await broker.replication.idle_fetchers_ended()
            await broker.replication.isr_written(request.partitions)
            response = broker.replicas.stop_replica(request)
            broker.replication.end_idle_fetchers(broker.world.generation.closes_idle_fetchers)
            return response


async def _ask_controller(broker: Broker, request: Request, reply: asyncio.Future) -> Response:
    from kafka_ctl.controller import events

    hand_over = broker.controller.hand_over
    known = broker.world.generation.incremental_reassignment
    match request:
        case ControlledShutdownRequest(leaving, broker_epoch):
            hand_over(events.ControlledShutdown(leaving, broker_epoch, reply))
            return Response(remaining=await reply)
        case AlterPartitionReassignmentsRequest(targets) if known:
            hand_over(events.ApiPartitionReassignment(dict(targets), reply))
            return Response(refused=await reply)
        case ListPartitionReassignmentsRequest(partitions) if known:
            hand_over(events.ListPartitionReassignments(partitions, reply))
            return Response(moving=await reply)
    return Response("UNSUPPORTED_VERSION", text="The version of API is not supported.")
