"""Elections that an administrator asks the controller for (KIP-460), or allows by a topic's configuration (KAFKA-6835).

Every partition gets an answer of its own. A requested unclean election is held if no live broker
leads; it takes the first assigned replica that is live, in sync or not, without asking the configuration.
Kafka 2.4.1: controller/KafkaController.scala, processReplicaLeaderElection, onReplicaElection,
processTopicUncleanLeaderElectionEnable

Separate from `dispatch.py` because each procedure has a file, and that one lists them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kafka_ctl.cluster import NO_LEADER, TopicPartition
from kafka_ctl.controller.controller import Controller
from kafka_ctl.controller.partition_machine import Strategy
from kafka_ctl.election import ElectionType
from kafka_ctl.errors import ControllerMoved, StateChangeFailed
from kafka_ctl.partition import ONLINE
from kafka_ctl.requests import ApiError

UNKNOWN = ApiError("UNKNOWN_TOPIC_OR_PARTITION", "The partition does not exist.")
DELETING = ApiError("INVALID_TOPIC_EXCEPTION", "The topic is being deleted")
NOT_NEEDED = ApiError("ELECTION_NOT_NEEDED", "Leader election not needed for topic partition")
STRATEGIES = {ElectionType.PREFERRED: Strategy.PREFERRED, ElectionType.UNCLEAN: Strategy.UNCLEAN}
UNAVAILABLE = {
    ElectionType.PREFERRED: "PREFERRED_LEADER_NOT_AVAILABLE",
    ElectionType.UNCLEAN: "ELIGIBLE_LEADERS_NOT_AVAILABLE",
}
"""The error where no replica may lead."""


async def elect_leaders(
    env: Controller, kind: ElectionType, partitions: Sequence[TopicPartition], reply: asyncio.Future
) -> None:
    """Elect where it is needed; `reply` gets the new leader of each partition, or why there is none.

    It gets ControllerMoved if this controller does not act. When one of the partitions has never had a leader the
    event fails, as in Kafka, and nothing is answered.
    """
    if not env.is_active:
        reply.set_exception(ControllerMoved("This is not the correct controller for this cluster."))
        return
    answers: dict[TopicPartition, ApiError | int] = {}
    for tp in partitions:
        if not env.context.assigned(tp):
            env.log("election_unknown", partition=str(tp), type=kind)
            answers[tp] = UNKNOWN
        elif tp.topic in env.context.topics_to_be_deleted:
            answers[tp] = DELETING
    if deleting := [str(tp) for tp, answer in answers.items() if answer is DELETING]:
        env.log("election_deleting", partitions=deleting, type=kind)
    wanted = [tp for tp in partitions if tp not in answers]
    electable = [tp for tp in wanted if _needs_election(env, kind, tp)]
    answers |= dict.fromkeys((tp for tp in wanted if tp not in electable), NOT_NEEDED)
    env.log("election_starting", partitions=[str(tp) for tp in electable], type=kind)
    failures = await env.partition_machine.handle(electable, ONLINE, STRATEGIES[kind])
    for tp in electable:
        error = failures.get(tp)
        code = UNAVAILABLE[kind] if isinstance(error, StateChangeFailed) else "UNKNOWN_SERVER_ERROR"
        answers[tp] = ApiError(code, str(error)) if error is not None else env.context.leader_of(tp)
    env.log("election_results", type=kind, results={str(tp): _printed(answer) for tp, answer in answers.items()})
    if not reply.done():
        reply.set_result(answers)


async def unclean_enabled(env: Controller, topic: str) -> None:
    """Look for leaders of the topic's partitions that have none; its configuration is read from ZooKeeper again."""
    env.log("unclean_enabled", topic=topic)
    await env.partition_machine.trigger_online(topic)


def _needs_election(env: Controller, kind: ElectionType, tp: TopicPartition) -> bool:
    """True if the leader is not the wanted one. Raises StateChangeFailed if there has never been one."""
    leader = env.context.leader_of(tp)
    if kind is ElectionType.PREFERRED:
        return leader != env.context.assigned(tp)[0]
    return leader == NO_LEADER or leader not in env.context.live


def _printed(answer: ApiError | int) -> str:
    """An answer as Scala prints it."""
    if isinstance(answer, int):
        return f"Right({answer})"
    return f"Left(ApiError(error={answer.code}, message={answer.text}))"
