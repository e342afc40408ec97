"""The controller's listeners: a path of ZooKeeper and the event it enqueues when something changes there.

Kafka 2.0.1: controller/KafkaController.scala, BrokerChangeHandler and its neighbours
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import events
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.client import Handler
from kafka_ctl.zookeeper.store import CREATED, DATA_CHANGED, DELETED

if TYPE_CHECKING:
    from kafka_ctl.controller.controller import Controller

CHILDREN: tuple[tuple[str, Callable[[], events.Event]], ...] = (
    (znodes.BrokerIdsZNode.path(), events.BrokerChange),
    (znodes.TopicsZNode.path(), events.TopicChange),
    (znodes.DeleteTopicsZNode.path(), events.TopicDeletion),
    (znodes.LogDirEventNotificationZNode.path(), events.LogDirEventNotification),
    (znodes.IsrChangeNotificationZNode.path(), events.IsrChangeNotification),
)
"""Parents whose children are watched, and the event a change of them makes."""


async def watch_controller(c: Controller) -> None:
    """Watch `/controller`: its deletion starts a new race, anything else is a change of controller."""

    def changed(kind: str) -> None:
        c.queue.put(events.Reelect() if kind == DELETED else events.ControllerChange())

    await c.zk.handle_node_and_check(znodes.ControllerZNode.path(), changed)


async def register(c: Controller) -> None:
    """What a new controller listens to; a watch on children is armed by the first read of them."""
    for path, event in CHILDREN:
        c.zk.handle_children(path, _enqueue(c, event))
    await watch_preferred(c)
    await watch_reassignment(c)


def unregister(c: Controller) -> None:
    """What a controller that resigns no longer listens to; that of brokers and topics is forgotten one by one."""
    for path, _ in CHILDREN:
        c.zk.forget_children(path)
    c.zk.forget_node(znodes.ReassignPartitionsZNode.path())
    c.zk.forget_node(znodes.PreferredReplicaElectionZNode.path())
    for tp in c.context.reassigning:
        forget_state(c, tp)


async def watch_reassignment(c: Controller) -> bool:
    """Watch for `/admin/reassign_partitions` to be created; whether it is there."""
    return await c.zk.handle_node_and_check(
        znodes.ReassignPartitionsZNode.path(), _on(c, CREATED, events.PartitionReassignment())
    )


async def watch_preferred(c: Controller) -> bool:
    """Watch for `/admin/preferred_replica_election` to be created; whether it is there."""
    event = events.PreferredReplicaLeaderElection()
    return await c.zk.handle_node_and_check(znodes.PreferredReplicaElectionZNode.path(), _on(c, CREATED, event))


def watch_state(c: Controller, tp: TopicPartition) -> None:
    """Listen to the ISR of a partition on the move; the next read of its state arms the watch."""
    event = events.PartitionReassignmentIsrChange(tp)
    c.zk.handle_node(znodes.TopicPartitionStateZNode.path(tp), _on(c, DATA_CHANGED, event))


def forget_state(c: Controller, tp: TopicPartition) -> None:
    c.zk.forget_node(znodes.TopicPartitionStateZNode.path(tp))


def watch_topics(c: Controller, topics: Iterable[str]) -> None:
    """Listen to the assignments of these topics; the next read of each arms its watch."""
    for topic in topics:
        c.zk.handle_node(znodes.TopicZNode.path(topic), _on(c, DATA_CHANGED, events.PartitionModifications(topic)))


def forget_topics(c: Controller, topics: Iterable[str]) -> None:
    for topic in topics:
        c.zk.forget_node(znodes.TopicZNode.path(topic))


async def watch_brokers(c: Controller, brokers: Iterable[int]) -> None:
    """Listen to changes of the endpoints of these brokers."""
    for broker in brokers:
        path = znodes.BrokerIdZNode.path(broker)
        await c.zk.handle_node_and_check(path, _on(c, DATA_CHANGED, events.BrokerModifications(broker)))


def forget_brokers(c: Controller, brokers: Iterable[int]) -> None:
    for broker in brokers:
        c.zk.forget_node(znodes.BrokerIdZNode.path(broker))


def _enqueue(c: Controller, event: Callable[[], events.Event]) -> Handler:
    return lambda kind: c.queue.put(event())


def _on(c: Controller, wanted: str, event: events.Event) -> Handler:
    def changed(kind: str) -> None:
        if kind == wanted:
            c.queue.put(event)

    return changed
