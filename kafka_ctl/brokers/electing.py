"""The request for elections: the controller elects, and the answer waits until its broker knows the new leaders.

Kafka 2.4.1: server/KafkaApis.scala, handleElectReplicaLeader; server/ReplicaManager.scala, electLeaders;
server/DelayedElectLeader.scala
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kafka_ctl.brokers.requests import ApiError, ElectLeadersRequest, Response
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import ControllerMoved

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker

NOT_CONTROLLER = ApiError("NOT_CONTROLLER", "This is not the correct controller for this cluster.")
TIMED_OUT = ApiError("REQUEST_TIMED_OUT", "The request timed out.")


async def elect_leaders(broker: Broker, request: ElectLeadersRequest) -> Response:
    """Ask the controller of this broker; the error of each partition, None where a leader was elected.

    Asked for all partitions, those that this broker knows, it leaves out those that needed no election.
    """
    from kafka_ctl.controller import events

    until = broker.clock.now() + request.timeout
    every = request.partitions is None
    partitions = tuple(broker.replicas.metadata) if request.partitions is None else request.partitions
    reply: asyncio.Future = broker.clock.loop.create_future()
    broker.controller.hand_over(events.ReplicaLeaderElection(request.kind, partitions, reply))
    try:
        results: dict[TopicPartition, ApiError | int] = await reply
    except ControllerMoved:
        results = dict.fromkeys(partitions, NOT_CONTROLLER)
    leaders = {tp: leader for tp, leader in results.items() if isinstance(leader, int)}
    late = await _late(broker, leaders, until)
    answers: dict[TopicPartition, ApiError | None] = {}
    for tp, result in results.items():
        answers[tp] = result if isinstance(result, ApiError) else TIMED_OUT if tp in late else None
    if every:
        answers = {tp: error for tp, error in answers.items() if not error or error.code != "ELECTION_NOT_NEEDED"}
    return Response(elections=answers)


async def _late(broker: Broker, leaders: dict[TopicPartition, int], until: float) -> set[TopicPartition]:
    """Wait until this broker's metadata has these leaders; the partitions where it has not when the time is over."""
    replicas, left = broker.replicas, until - broker.clock.now()

    def unknown() -> set[TopicPartition]:
        led = {tp: state.leader for tp in leaders if (state := replicas.metadata.get(tp)) is not None}
        return {tp for tp, leader in leaders.items() if led.get(tp) != leader}

    if left <= 0:
        return unknown()
    try:
        async with asyncio.timeout(left):
            while unknown():
                replicas.updated.clear()
                await replicas.updated.wait()
    except TimeoutError:
        pass
    return unknown()
