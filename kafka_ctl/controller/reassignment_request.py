"""The request in `/admin/reassign_partitions`: read it, remove finished partitions, delete it when it is empty.

The administrator's tool writes it; the controller takes out what is done or cannot be. While it is there, no other
reassignment can be asked for.
Kafka 2.0.1: controller/KafkaController.scala, removePartitionsFromReassignedPartitions
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import events, listeners
from kafka_ctl.controller.environment import Environment
from kafka_ctl.errors import BadInput
from kafka_ctl.zookeeper.store import Delete
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode

Requests = dict[TopicPartition, tuple[int, ...]]


async def read(env: Environment) -> Requests:
    """What `/admin/reassign_partitions` asks for; nothing if it is missing or cannot be read."""
    answer = await env.zk.read(ReassignPartitionsZNode.path())
    if not isinstance(answer.value, bytes):
        return {}
    try:
        return ReassignPartitionsZNode.decode(answer.value)
    except BadInput as error:
        env.log("reassignment_ignored", error=str(error))
        return {}


async def write(env: Environment, rest: Requests) -> None:
    """Write what is left of the request, or delete the znode when nothing is."""
    path = ReassignPartitionsZNode.path()
    if rest:
        await env.zk.set_or_create(path, ReassignPartitionsZNode.encode(rest))
        return
    env.log("reassignment_done")
    await env.zk.write(Delete(path))
    if env.generation.reassignment.requests_begin_when_created:
        env.queue.put(events.PartitionReassignment())  # the watch is armed again by looking


async def forget(env: Environment, partitions: Iterable[TopicPartition]) -> None:
    """Take these partitions out, and stop listening to their states.

    Together, from the controller's context; in 0.10 one after the other, and the znode is read again for each.
    """
    gone = list(partitions)
    if env.generation.reassignment.drops_requests_together:
        for tp in gone:
            listeners.forget_state(env, tp)
        env.log("reassignment_removed", partitions=[str(tp) for tp in gone])
        await write(env, {tp: target for tp, target in env.context.reassigning.items() if tp not in gone})
        for tp in gone:
            env.context.reassigning.pop(tp, None)
        return
    for tp in gone:
        listeners.forget_state(env, tp)
        await write(env, {other: target for other, target in (await read(env)).items() if other != tp})
        env.context.reassigning.pop(tp, None)
