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
from kafka_ctl.zookeeper.store import CREATED, DATA_CHANGED, DELETED

CHILDREN: tuple[tuple[str, Callable[[], events.Event]], ...] = (
    (znodes.BrokerIdsZNode.path(), events.BrokerChange),
    (znodes.TopicsZNode.path(), events.TopicChange),
    (znodes.DeleteTopicsZNode.path(), events.TopicDeletion),
    (znodes.LogDirEventNotificationZNode.path(), events.LogDirEventNotification),
    (znodes.IsrChangeNotificationZNode.path(), events.IsrChangeNotification),
)
"""Parents whose children are watched, and the event a change of them makes."""
EVENTS = dict(CHILDREN)


async def watch_controller(env: Controller) -> None:
    """Watch `/controller`: its deletion starts a new race, anything else is a change of controller."""

    def changed(kind: str) -> None:
        env.queue.put(events.Reelect() if kind == DELETED else events.ControllerChange())

    await env.zk.handle_node_and_check(znodes.ControllerZNode.path(), changed)


async def register(env: Controller) -> None:
    """Subscribe a new controller; a watch on children is armed by the first read of them."""
    if not env.generation.zookeeper.watches_before_reading:
        await _subscribe(env)
        return
    for path, event in CHILDREN:
        env.zk.handle_children(path, _enqueue(env, event))
    await watch_preferred(env)
    await watch_reassignment(env)


async def _subscribe(env: Controller) -> None:
    """The same in 0.10: there a listener is armed when it is registered, and none listens for log directories."""
    await watch_reassignment(env)
    await _subscribe_children(env, znodes.IsrChangeNotificationZNode.path())
    await watch_preferred(env)
    await _subscribe_children(env, znodes.TopicsZNode.path())
    await _subscribe_children(env, znodes.DeleteTopicsZNode.path())
    await _subscribe_children(env, znodes.BrokerIdsZNode.path())


async def _subscribe_children(env: Controller, path: str) -> None:
    env.zk.handle_children(path, _enqueue(env, EVENTS[path]))
    await env.zk.read_children(path)


def unregister_requests(env: Controller) -> None:
    """Unsubscribe a controller that resigns, first from ISR notifications and administrators' requests."""
    env.zk.forget_children(znodes.IsrChangeNotificationZNode.path())
    env.zk.forget_node(znodes.ReassignPartitionsZNode.path())
    env.zk.forget_node(znodes.PreferredReplicaElectionZNode.path())


def unregister(env: Controller) -> None:
    """Everything else it listened to."""
    for path, _ in CHILDREN:
        env.zk.forget_children(path)
    for tp in env.context.reassigning:
        forget_state(env, tp)
    forget_brokers(env, env.context.brokers)
    forget_topics(env, env.context.topics)


async def watch_reassignment(env: Controller) -> bool:
    """Watch for `/admin/reassign_partitions` to be created; whether it is there."""
    return await _watch_request(env, znodes.ReassignPartitionsZNode.path(), events.PartitionReassignment())


async def watch_preferred(env: Controller) -> bool:
    """Watch for `/admin/preferred_replica_election` to be created; whether it is there."""
    return await _watch_request(
        env, znodes.PreferredReplicaElectionZNode.path(), events.PreferredReplicaLeaderElection()
    )


async def _watch_request(env: Controller, path: str, event: events.Event) -> bool:
    """A request is noticed when it is created; in 0.10 at every change, and its end, which arms the watch again."""
    kinds = (CREATED,) if env.generation.reassignment.requests_begin_when_created else (CREATED, DATA_CHANGED, DELETED)
    return await env.zk.handle_node_and_check(path, _on(env, kinds, event))


def watch_state(env: Controller, tp: TopicPartition) -> None:
    """Listen to the ISR of a partition on the move; the next read of its state arms the watch."""
    event = events.PartitionReassignmentIsrChange(tp)
    env.zk.handle_node(znodes.TopicPartitionStateZNode.path(tp), _on(env, (DATA_CHANGED,), event))


def forget_state(env: Controller, tp: TopicPartition) -> None:
    env.zk.forget_node(znodes.TopicPartitionStateZNode.path(tp))


def watch_topics(env: Controller, topics: Iterable[str]) -> None:
    """Listen to the assignments of these topics; the next read of each arms its watch."""
    for topic in topics:
        env.zk.handle_node(
            znodes.TopicZNode.path(topic), _on(env, (DATA_CHANGED,), events.PartitionModifications(topic))
        )


async def subscribe_topics(env: Controller, topics: Iterable[str]) -> None:
    """The same in 0.10, where the watch is armed at once."""
    for topic in topics:
        event = events.PartitionModifications(topic)
        await env.zk.handle_node_and_check(znodes.TopicZNode.path(topic), _on(env, (DATA_CHANGED,), event))


def forget_topics(env: Controller, topics: Iterable[str]) -> None:
    for topic in topics:
        env.zk.forget_node(znodes.TopicZNode.path(topic))


async def watch_brokers(env: Controller, brokers: Iterable[int]) -> None:
    """Listen to changes of the endpoints of these brokers."""
    for broker in brokers:
        path = znodes.BrokerIdZNode.path(broker)
        await env.zk.handle_node_and_check(path, _on(env, (DATA_CHANGED,), events.BrokerModifications(broker)))


def forget_brokers(env: Controller, brokers: Iterable[int]) -> None:
    for broker in brokers:
        env.zk.forget_node(znodes.BrokerIdZNode.path(broker))


def _enqueue(env: Controller, event: Callable[[], events.Event]) -> Handler:
    return lambda kind: env.queue.put(event())


def _on(env: Controller, kinds: Collection[str], event: events.Event) -> Handler:
    def changed(kind: str) -> None:
        if kind in kinds:
            env.queue.put(event)

    return changed
