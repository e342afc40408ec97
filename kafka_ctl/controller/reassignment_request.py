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

Wishes = dict[TopicPartition, tuple[int, ...]]


async def read(c: Environment) -> Wishes:
    """What `/admin/reassign_partitions` asks for; nothing if it is missing or cannot be read."""
    answer = await c.zk.read(ReassignPartitionsZNode.path())
    if not isinstance(answer.value, bytes):
        return {}
    try:
        return ReassignPartitionsZNode.decode(answer.value)
    except BadInput as error:
        c.say("reassignment_ignored", error=str(error))
        return {}


async def write(c: Environment, rest: Wishes) -> None:
    """Write what is left of the wish, or delete the znode when nothing is."""
    path = ReassignPartitionsZNode.path()
    if rest:
        await c.zk.set_or_create(path, ReassignPartitionsZNode.encode(rest))
        return
    c.say("reassignment_done")
    await c.zk.write(Delete(path))
    if c.generation.wishes_begin_when_created:
        c.queue.put(events.PartitionReassignment())  # the watch is armed again by looking


async def forget(c: Environment, partitions: Iterable[TopicPartition]) -> None:
    """Take these partitions out, and stop listening to their states.

    Together, from what the controller remembers; in 0.10 one after the other, and the znode is read again for each.
    """
    gone = list(partitions)
    if c.generation.drops_wishes_together:
        for tp in gone:
            listeners.forget_state(c, tp)
        c.say("reassignment_removed", partitions=[str(tp) for tp in gone])
        await write(c, {tp: target for tp, target in c.context.reassigning.items() if tp not in gone})
        for tp in gone:
            c.context.reassigning.pop(tp, None)
        return
    for tp in gone:
        listeners.forget_state(c, tp)
        await write(c, {other: target for other, target in (await read(c)).items() if other != tp})
        c.context.reassigning.pop(tp, None)
