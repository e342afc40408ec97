"""The handlers of a broker for each kind of request, and its answers.

Most are for its replica manager. A request for a decision goes to the controller of the same process, active or not.
Kafka 2.0.1: server/KafkaApis.scala, handle; 2.4.1: handleAlterPartitionReassignmentsRequest,
handleElectReplicaLeader; server/ReplicaManager.scala, electLeaders; server/DelayedElectLeader.scala

Separate from `broker.py` because a process begins and stops there, and this is what it does in between.
"""

from __future__ import annotations

import asyncio

from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.brokers.replica_manager import ReplicaManager
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import events
from kafka_ctl.errors import ApiException, ControllerMoved, KafkaCtlError, StaleBrokerEpoch
from kafka_ctl.requests import (
    NOT_CONTROLLER,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    ApiError,
    ControlledShutdownRequest,
    ControlRequest,
    DeleteRecordsRequest,
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
            case DeleteRecordsRequest():
                return await self.replicas.leader.deletion.delete_records(request)
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
            shutting_down = isinstance(request, ControlledShutdownRequest)
            return Response("STALE_CONTROLLER_EPOCH" if shutting_down else "NOT_CONTROLLER", text=str(error))
        except ApiException as error:
            return Response(error.code, text=str(error))
        except StaleBrokerEpoch as error:
            return Response("STALE_BROKER_EPOCH", text=str(error))
        except KafkaCtlError as error:
            return Response("UNKNOWN_SERVER_ERROR", text=str(error))

    async def _obey(self, request: ControlRequest) -> Response:
        match request:
            case LeaderAndIsrRequest():
                await self.replicas.follower.idle_threads_ended()
                response = await self.replicas.leader_and_isr(request)
                self.replicas.follower.end_idle_threads(at_once=True)
                return response
            case UpdateMetadataRequest():
                return self.replicas.update_metadata(request)
            case StopReplicaRequest():
                await self.replicas.follower.idle_threads_ended()
                await self.replicas.leader.isr_written(request.partitions)
                response = self.replicas.stop_replica(request)
                self.replicas.follower.end_idle_threads(self.process.generation.records.closes_idle_fetchers)
                await self.process.clock.sleep(self.replicas.deletion_seconds())
                return response

    async def _ask_controller(self, request: Request, reply: asyncio.Future) -> Response:
        hand_over = self.process.controller.hand_over
        known = self.process.generation.reassignment.incremental_reassignment
        match request:
            case ControlledShutdownRequest(shutting_down, broker_epoch):
                hand_over(events.ControlledShutdown(shutting_down, broker_epoch, reply))
                return Response(remaining=await reply)
            case AlterPartitionReassignmentsRequest(targets) if known:
                hand_over(events.ApiPartitionReassignment(dict(targets), reply))
                return Response(refused=await reply)
            case ListPartitionReassignmentsRequest(partitions) if known:
                hand_over(events.ListPartitionReassignments(partitions, reply))
                return Response(moving=await reply)
        return Response("UNSUPPORTED_VERSION", text="The version of API is not supported.")


TIMED_OUT = ApiError("REQUEST_TIMED_OUT", "The request timed out.")


async def elect_leaders(process: BrokerProcess, request: ElectLeadersRequest) -> Response:
    """Ask the controller of this broker; the error of each partition, None where a leader was elected.

    If the request is for all partitions that this broker knows, those that needed no election are left out.
    """
    until = process.clock.now() + request.timeout
    every = request.partitions is None
    partitions = tuple(process.metadata) if request.partitions is None else request.partitions
    reply: asyncio.Future = process.clock.loop.create_future()
    process.controller.hand_over(events.ReplicaLeaderElection(request.kind, partitions, reply))
    try:
        results: dict[TopicPartition, ApiError | int] = await reply
    except ControllerMoved:
        results = dict.fromkeys(partitions, NOT_CONTROLLER)
    leaders = {tp: leader for tp, leader in results.items() if isinstance(leader, int)}
    late = await _late(process, leaders, until)
    answers: dict[TopicPartition, ApiError | None] = {}
    for tp, result in results.items():
        answers[tp] = result if isinstance(result, ApiError) else TIMED_OUT if tp in late else None
    if every:
        answers = {tp: error for tp, error in answers.items() if not error or error.code != "ELECTION_NOT_NEEDED"}
    return Response(elections=answers)


async def _late(process: BrokerProcess, leaders: dict[TopicPartition, int], until: float) -> set[TopicPartition]:
    """Wait until this broker's metadata has these leaders. Returns the partitions that lack theirs at the deadline."""

    def unknown() -> set[TopicPartition]:
        led = {tp: state.leader for tp in leaders if (state := process.metadata.get(tp)) is not None}
        return {tp for tp, leader in leaders.items() if led.get(tp) != leader}

    await process.metadata_shows(lambda: not unknown(), until - process.clock.now())
    return unknown()
