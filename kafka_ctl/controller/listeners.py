"""The controller's listeners: a path of ZooKeeper and the event it enqueues when something changes there.

Kafka 2.0.1: controller/KafkaController.scala, BrokerChangeHandler and its neighbours
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller import events
from kafka_ctl.controller.controller import Controller
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.client import Handler
from kafka_ctl.zookeeper.store import CREATED, DATA_CHANGED, DELETED, Delete

CHILDREN: dict[str, Callable[[], events.Event]] = {
    znodes.BrokerIdsZNode.path(): events.BrokerChange,
    znodes.TopicsZNode.path(): events.TopicChange,
    znodes.DeleteTopicsZNode.path(): events.TopicDeletion,
    znodes.LogDirEventNotificationZNode.path(): events.LogDirEventNotification,
    znodes.IsrChangeNotificationZNode.path(): events.IsrChangeNotification,
}
"""Parents whose children are watched, and the event a change of them makes."""
REQUESTS: dict[type[znodes.FixedZNode], Callable[[], events.Event]] = {
    znodes.ReassignPartitionsZNode: events.PartitionReassignment,
    znodes.PreferredReplicaElectionZNode: events.PreferredReplicaLeaderElection,
}
"""Znodes that hold a request of an administrator, and the event that it makes."""


async def watch_controller(env: Controller) -> None:
    """Watch `/controller`: its deletion starts a new race, anything else is a change of controller."""

    def changed(kind: str) -> None:
        env.queue.put(events.Reelect() if kind == DELETED else events.ControllerChange())

    await env.zk.handle_node_and_check(znodes.ControllerZNode.path(), changed)


async def register(env: Controller) -> None:
    """Subscribe a new controller; a watch on children is armed by the first read of them.

    In 0.10 a listener is armed when it is registered, and none listens for log directories.
    """
    if env.generation.zookeeper.watches_before_reading:
        for path in CHILDREN:
            _watch_children(env, path)
        await watch_request(env, znodes.PreferredReplicaElectionZNode)
        await watch_request(env, znodes.ReassignPartitionsZNode)
        return
    await watch_request(env, znodes.ReassignPartitionsZNode)
    await _subscribe_children(env, znodes.IsrChangeNotificationZNode)
    await watch_request(env, znodes.PreferredReplicaElectionZNode)
    for znode in (znodes.TopicsZNode, znodes.DeleteTopicsZNode, znodes.BrokerIdsZNode):
        await _subscribe_children(env, znode)


def _watch_children(env: Controller, path: str) -> None:
    env.zk.handle_children(path, lambda kind: env.queue.put(CHILDREN[path]()))


async def _subscribe_children(env: Controller, znode: type[znodes.FixedZNode]) -> None:
    _watch_children(env, znode.path())
    await env.zk.read_children(znode.path())


def unregister_requests(env: Controller) -> None:
    """Unsubscribe a controller that resigns, first from ISR notifications and administrators' requests."""
    env.zk.forget_children(znodes.IsrChangeNotificationZNode.path())
    env.zk.forget_node(znodes.ReassignPartitionsZNode.path())
    env.zk.forget_node(znodes.PreferredReplicaElectionZNode.path())


def unregister(env: Controller) -> None:
    """Everything else it listened to."""
    for path in CHILDREN:
        env.zk.forget_children(path)
    for tp in env.context.reassigning:
        forget_state(env, tp)
    forget_brokers(env, env.context.brokers)
    for topic in env.context.topics:
        env.zk.forget_node(znodes.TopicZNode.path(topic))


async def end_request(env: Controller, znode: type[znodes.FixedZNode]) -> None:
    """Delete a request that is done."""
    await env.zk.write(Delete(znode.path()))
    if env.generation.reassignment.requests_begin_when_created:
        env.queue.put(REQUESTS[znode]())  # this event checks the znode, which arms the watch again


async def watch_request(env: Controller, znode: type[znodes.FixedZNode]) -> bool:
    """Watch the znode of a request: its creation, in 0.10 also its change and deletion. True if the znode exists."""
    kinds = (CREATED,) if env.generation.reassignment.requests_begin_when_created else (CREATED, DATA_CHANGED, DELETED)
    return await env.zk.handle_node_and_check(znode.path(), _on(env, REQUESTS[znode](), kinds))


def watch_state(env: Controller, tp: TopicPartition) -> None:
    """Listen to the ISR of a partition on the move; the next read of its state arms the watch."""
    event = events.PartitionReassignmentIsrChange(tp)
    env.zk.handle_node(znodes.TopicPartitionStateZNode.path(tp), _on(env, event))


def forget_state(env: Controller, tp: TopicPartition) -> None:
    env.zk.forget_node(znodes.TopicPartitionStateZNode.path(tp))


def watch_topics(env: Controller, topics: Iterable[str]) -> None:
    """Listen to the assignments of these topics; the next read of each arms its watch."""
    for topic in topics:
        env.zk.handle_node(znodes.TopicZNode.path(topic), _on(env, events.PartitionModifications(topic)))


async def subscribe_topics(env: Controller, topics: Iterable[str]) -> None:
    """The same in 0.10, where the watch is armed at once."""
    for topic in topics:
        handler = _on(env, events.PartitionModifications(topic))
        await env.zk.handle_node_and_check(znodes.TopicZNode.path(topic), handler)


async def watch_brokers(env: Controller, brokers: Iterable[int]) -> None:
    """Listen to changes of the endpoints of these brokers."""
    for broker in brokers:
        handler = _on(env, events.BrokerModifications(broker))
        await env.zk.handle_node_and_check(znodes.BrokerIdZNode.path(broker), handler)


def forget_brokers(env: Controller, brokers: Iterable[int]) -> None:
    for broker in brokers:
        env.zk.forget_node(znodes.BrokerIdZNode.path(broker))


def _on(env: Controller, event: events.Event, kinds: Collection[str] = (DATA_CHANGED,)) -> Handler:
    def changed(kind: str) -> None:
        if kind in kinds:
            env.queue.put(event)

    return changed
