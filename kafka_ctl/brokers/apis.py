"""What a broker does with each kind of request, and what it answers.

Most are for its replica manager. What asks for a decision is put to the controller of the same process, whether that
is the active one or not.
Kafka 2.0.1: server/KafkaApis.scala, handle; 2.4.1: handleAlterPartitionReassignmentsRequest
"""

from __future__ import annotations

import asyncio

from kafka_ctl.brokers.electing import elect_leaders
from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.brokers.replica_manager import ReplicaManager
from kafka_ctl.controller import events
from kafka_ctl.errors import ApiException, ControllerMoved, KafkaCtlError, StaleBrokerEpoch
from kafka_ctl.requests import (
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


class KafkaApis:
    """Answers the requests to one broker process."""

    def __init__(self, process: BrokerProcess, replicas: ReplicaManager) -> None:
        self.process, self.replicas = process, replicas

    async def answer(self, request: Request) -> Response:
        """Handle one request; what the controller refuses becomes an error with Kafka's name."""
        if isinstance(request, LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest):
            await self.process.clock.sleep(self.process.costs.request_state * len(request.partitions))
            async with self.replicas.lock:
                return await self._obey(request)
        match request:
            case ProduceRequest():
                return await self.replicas.leader.produce(request)
            case AlterReplicaLogDirsRequest(dirs) if self.process.generation.log_dirs.moves_between_log_dirs:
                return Response(errors=self.replicas.log_dirs.alter(dirs))
            case DescribeLogDirsRequest(partitions) if self.process.generation.log_dirs.moves_between_log_dirs:
                return Response(log_dirs_described=self.replicas.log_dirs.describe(partitions))
            case ElectLeadersRequest() if self.process.generation.election.elects_on_request:
                return await elect_leaders(self.process, request)
        reply: asyncio.Future = self.process.clock.loop.create_future()
        try:
            return await self._ask_controller(request, reply)
        except ControllerMoved as error:
            leaving = isinstance(request, ControlledShutdownRequest)
            return Response("STALE_CONTROLLER_EPOCH" if leaving else "NOT_CONTROLLER", text=str(error))
        except ApiException as error:
            return Response(error.code, text=str(error))
        except StaleBrokerEpoch as error:
            return Response("STALE_BROKER_EPOCH", text=str(error))
        except KafkaCtlError as error:
            return Response("BROKER_NOT_AVAILABLE", text=str(error))

    async def _obey(self, request: ControlRequest) -> Response:
        match request:
            case LeaderAndIsrRequest():
                await self.replicas.follower.threads.idle_ended()
                response = await self.replicas.leader_and_isr(request)
                self.replicas.follower.threads.end_idle(at_once=True)
                return response
            case UpdateMetadataRequest():
                return self.replicas.update_metadata(request)
            case StopReplicaRequest():
                await self.replicas.follower.threads.idle_ended()
                await self.replicas.leader.isr_written(request.partitions)
                response = self.replicas.stop_replica(request)
                self.replicas.follower.threads.end_idle(self.process.generation.records.closes_idle_fetchers)
                return response

    async def _ask_controller(self, request: Request, reply: asyncio.Future) -> Response:
        hand_over = self.process.controller.hand_over
        known = self.process.generation.reassignment.incremental_reassignment
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
