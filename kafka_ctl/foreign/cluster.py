"""A cluster of others as its znodes have it: brokers, partitions, settings, requests, and the true controller.

`Cluster.take` takes in one znode after the other. A znode that cannot be understood is left out as a whole and becomes
one sentence in `problems`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from kafka_ctl.cluster import NO_LEADER, Broker, LeaderAndIsr, ReplicaAssignment, TopicPartition, parse_int
from kafka_ctl.errors import BadInput, short
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.json_fields import Fields
from kafka_ctl.zookeeper.store import Stat

K = TypeVar("K")
V = TypeVar("V")

IDS, TOPICS = znodes.BrokerIdsZNode.path(), znodes.TopicsZNode.path()
DELETIONS, MIGRATION, FEATURE = znodes.DeleteTopicsZNode.path(), "/migration", "/feature"
TOPIC_CONFIGS, BROKER_CONFIGS = "/config/topics", "/config/brokers"
CLUSTER_WIDE = f"{BROKER_CONFIGS}/<default>"
CONTROLLER, EPOCH = znodes.ControllerZNode.path(), znodes.ControllerEpochZNode.path()
REASSIGNMENTS = znodes.ReassignPartitionsZNode.path()
PREFERRED = znodes.PreferredReplicaElectionZNode.path()
SINGLE = (CONTROLLER, EPOCH, REASSIGNMENTS, PREFERRED, MIGRATION, FEATURE, znodes.LogDirEventNotificationZNode.path())
"""Znodes at a fixed place that are read, whether they are there or not."""
PARENTS = (IDS, TOPICS, DELETIONS, TOPIC_CONFIGS, BROKER_CONFIGS)
"""Znodes whose children are read, too."""
STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
LEGAL = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""Kafka 2.0.1: internals/Topic.java, containsValidPattern"""


class ZNode(NamedTuple):
    """A znode as it was read."""

    data: bytes
    stat: Stat

    @property
    def text(self) -> str:
        """Its data as text."""
        return self.data.decode("utf-8", "backslashreplace")


class TrueController(NamedTuple):
    """The holder of `/controller`. `since_ms` is the time of its creation by the server's clock, `czxid` its zxid.

    `epoch` is None until it has raised `/controller_epoch`. `doubt` says why the broker that is named there may not be
    the controller; empty if its session holds the znode.
    """

    id: int
    epoch: int | None
    since_ms: int
    czxid: int
    doubt: str = ""


class Cluster:
    """The znodes that were read, and their meaning."""

    def __init__(self) -> None:
        self.znodes: dict[str, ZNode] = {}
        self.problems: dict[str, str] = {}
        """By path, one sentence about each znode that cannot be read or understood."""
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, dict[int, ReplicaAssignment]] = {}
        self.states: dict[TopicPartition, LeaderAndIsr] = {}
        self.configs: dict[str, dict[str, str]] = {}
        """Settings by entity: `topics/orders`, `brokers/1`, `brokers/<default>`."""
        self.deleting: dict[str, int] = {}
        """Topics whose deletion is asked for, and the server's time of the request in milliseconds."""
        self.reassigning: dict[TopicPartition, tuple[int, ...]] = {}
        """The target replicas of each reassignment."""
        self.preferred: list[TopicPartition] = []

    def take(self, path: str, node: ZNode | None) -> None:
        """Take in a znode as it is now; None if it is gone."""
        if node is None:
            self.znodes.pop(path, None)
        else:
            self.znodes[path] = node
        self.problems.pop(path, None)
        try:
            self._means(path, node)
        except BadInput as error:
            self._means(path, None)
            self.problems[path] = str(error)

    def _means(self, path: str, node: ZNode | None) -> None:
        parent, _, name = path.rpartition("/")
        if found := STATE.fullmatch(path):
            tp = TopicPartition(found[1], int(found[2]))
            _put(self.states, tp, node and znodes.TopicPartitionStateZNode.decode(node.data, node.stat.version, tp))
        elif parent == TOPICS:
            self.topics.pop(name, None)
            _put(self.topics, name, node and _topic(name, node.data))
        elif parent == IDS and (number := parse_int(name)) is not None:
            _put(self.brokers, number, node and znodes.BrokerIdZNode.decode(node.data, number, node.stat.czxid))
        elif parent in (TOPIC_CONFIGS, BROKER_CONFIGS):
            kind = parent.rpartition("/")[2]
            _put(self.configs, f"{kind}/{name}", node and znodes.ConfigEntityZNode.decode(node.data, kind, name))
        elif parent == DELETIONS:
            _put(self.deleting, name, node and node.stat.ctime)
        elif path == REASSIGNMENTS:
            self.reassigning = znodes.ReassignPartitionsZNode.decode(node.data) if node and node.data else {}
        elif path == PREFERRED:
            self.preferred = znodes.PreferredReplicaElectionZNode.decode(node.data) if node and node.data else []
        elif node is not None and path == CONTROLLER:
            znodes.ControllerZNode.decode(node.data)
        elif node is not None and path == EPOCH:
            znodes.ControllerEpochZNode.decode(node.data)

    @property
    def epoch(self) -> int | None:
        """The controller epoch; None if no broker ever was controller."""
        node = self.znodes.get(EPOCH)
        return None if node is None or EPOCH in self.problems else znodes.ControllerEpochZNode.decode(node.data)

    @property
    def controller(self) -> TrueController | None:
        """The controller that ZooKeeper has; None if there is none."""
        node = self.znodes.get(CONTROLLER)
        if node is None or CONTROLLER in self.problems:
            return None
        id = znodes.ControllerZNode.decode(node.data)
        broker, doubt = self.znodes.get(znodes.BrokerIdZNode.path(id)), ""
        if not node.stat.ephemeral_owner:
            doubt = f"/controller names broker {id}, but no session holds it: it was written by hand"
        elif broker is None:
            doubt = f"/controller names broker {id}, which is not registered"
        elif broker.stat.ephemeral_owner != node.stat.ephemeral_owner:
            doubt = f"/controller names broker {id}, but another session than that of broker {id} holds it"
        raised = EPOCH in self.znodes and self.znodes[EPOCH].stat.mzxid >= node.stat.czxid  # 2.4 does both at once
        return TrueController(id, self.epoch if raised else None, node.stat.ctime, node.stat.czxid, doubt)

    @property
    def migrates(self) -> str:
        """The sign of a cluster on its way to KRaft; empty if it is none."""
        if MIGRATION in self.znodes:
            return "/migration exists: this cluster is being migrated to KRaft (KIP-866)"
        node = self.znodes.get(CONTROLLER)
        if node is not None and CONTROLLER not in self.problems and not node.data.isdigit():
            epoch = Fields.read(CONTROLLER, node.data, versions=(1, 2)).get("kraftControllerEpoch")
            if isinstance(epoch, int) and epoch >= 0:
                return "/controller has a kraftControllerEpoch: this cluster is being migrated to KRaft (KIP-866)"
        return ""

    def partitions(self) -> Iterable[tuple[TopicPartition, ReplicaAssignment, LeaderAndIsr | None]]:
        """Every partition that is understood; the state is None if the partition never had a leader."""
        for topic, assignment in sorted(self.topics.items()):
            for number, replicas in assignment.items():
                tp = TopicPartition(topic, number)
                if znodes.TopicPartitionStateZNode.path(tp) not in self.problems:
                    yield tp, replicas, self.states.get(tp)

    def min_isr(self, topic: str) -> int:
        """`min.insync.replicas` of a topic as ZooKeeper has it; what a broker's file says is not there."""
        for entity in (f"topics/{topic}", "brokers/<default>"):
            value = parse_int(self.configs.get(entity, {}).get("min.insync.replicas", ""))
            if value is not None:
                return value
        return 1

    def moving(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The target replicas of everything that is being reassigned, by either way to ask for it."""
        by_topic = {
            TopicPartition(topic, number): replicas.target
            for topic, assignment in self.topics.items()
            for number, replicas in assignment.items()
            if replicas.is_being_reassigned
        }
        return self.reassigning | by_topic

    def stuck(self) -> list[str]:
        """One sentence about each request of an administrator that waits, with the reason."""
        found = []
        idle = "" if self.controller else "there is no controller"
        for topic in sorted(self.deleting):
            if why := idle or self._deletion_waits(topic):
                found.append(f"the deletion of {topic} waits: {why}")
        for tp, target in sorted(self.moving().items()):
            if why := idle or self._reassignment_waits(tp, target):
                found.append(f"the reassignment of {tp} to {_ids(target)} waits: {why}")
        if self.preferred and idle:
            found.append(f"the preferred election of {len(self.preferred)} partitions waits: {idle}")
        return found

    def _deletion_waits(self, topic: str) -> str:
        """Reasons to halt a deletion. Kafka 2.0.1: controller/TopicDeletionManager.scala, isTopicEligibleForDeletion"""
        assignment = self.topics.get(topic)
        if assignment is None:
            return ""
        held = {id for replicas in assignment.values() for id in replicas.replicas}
        if down := sorted(held - self.brokers.keys()):
            return f"it has replicas on broker {_ids(down)}, not registered"
        if moving := [tp for tp in self.moving() if tp.topic == topic]:
            return f"{moving[0]} is being reassigned"
        return ""

    def _reassignment_waits(self, tp: TopicPartition, target: tuple[int, ...]) -> str:
        state = self.states.get(tp)
        if tp.partition not in self.topics.get(tp.topic, {}):
            return "there is no such partition"
        if down := [id for id in target if id not in self.brokers]:
            return f"broker {_ids(down)} is not registered"
        if state is None or state.leader == NO_LEADER or state.leader not in self.brokers:
            return "the partition has no live leader to copy from"
        behind = [id for id in target if id not in state.isr]
        return f"broker {_ids(behind)} is not in the ISR yet" if behind else ""


def _topic(name: str, data: bytes) -> dict[int, ReplicaAssignment]:
    if not LEGAL.fullmatch(name):
        raise BadInput(f"{TOPICS}: topic {short(name)}; 1 to 249 of a-z A-Z 0-9 . _ - are allowed")
    return znodes.TopicZNode.decode(data, name)


def _put(where: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        where.pop(key, None)
    else:
        where[key] = value


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))
