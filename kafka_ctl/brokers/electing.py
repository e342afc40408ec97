"""The request for elections: the controller elects, and the answer waits until its broker knows the new leaders.

Kafka 2.4.1: server/KafkaApis.scala, handleElectReplicaLeader; server/ReplicaManager.scala, electLeaders;
server/DelayedElectLeader.scala
"""

from __future__ import annotations

import asyncio

from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import events
from kafka_ctl.errors import ControllerMoved
from kafka_ctl.requests import ApiError, ElectLeadersRequest, Response

NOT_CONTROLLER = ApiError("NOT_CONTROLLER", "This is not the correct controller for this cluster.")
TIMED_OUT = ApiError("REQUEST_TIMED_OUT", "The request timed out.")


async def elect_leaders(process: BrokerProcess, request: ElectLeadersRequest) -> Response:
    """Ask the controller of this broker; the error of each partition, None where a leader was elected.

    Asked for all partitions, those that this broker knows, it leaves out those that needed no election.
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
    """Wait until this broker's metadata has these leaders; the partitions where it has not when the time is over."""

    def unknown() -> set[TopicPartition]:
        led = {tp: state.leader for tp in leaders if (state := process.metadata.get(tp)) is not None}
        return {tp for tp, leader in leaders.items() if led.get(tp) != leader}

    await process.metadata_shows(lambda: not unknown(), until - process.clock.now())
    return unknown()
