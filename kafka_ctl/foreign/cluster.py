"""A cluster of others as its znodes have it: brokers, partitions, settings, requests, true controller, and release.

`Cluster.take` takes in one znode after the other. A znode that cannot be understood is left out as a whole and becomes
one sentence in `problems`.

No znode holds the release of a cluster, nor `inter.broker.protocol.version`. But a broker writes what that setting
allows, so the newest form that is found says: at least this one. A cluster may be newer than it looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from kafka_ctl.cluster import NO_LEADER, Broker, LeaderAndIsr, ReplicaAssignment, TopicPartition, parse_int
from kafka_ctl.errors import BadInput, short
from kafka_ctl.trace import details
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
        self.epoch: int | None = None
        """The controller epoch; None if no broker ever was controller."""
        self._controller: int | None = None
        """The broker that `/controller` names."""

    def take(self, path: str, node: ZNode | None) -> None:
        """Take in a znode as it is now; None if it is gone."""
        _put(self.znodes, path, node)
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
        elif path == CONTROLLER:
            self._controller = node and znodes.ControllerZNode.decode(node.data)
        elif path == EPOCH:
            self.epoch = node and znodes.ControllerEpochZNode.decode(node.data)

    @property
    def controller(self) -> TrueController | None:
        """The controller that ZooKeeper has; None if there is none."""
        node, id = self.znodes.get(CONTROLLER), self._controller
        if node is None or id is None:
            return None
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
        if node is not None and self._controller is not None and not node.data.isdigit():
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
            value = parse_int(self.configs.get(entity, {}).get("min.insync.replicas", "").strip())
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
                found.append(f"the reassignment of {tp} to {details.listed(target)} waits: {why}")
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
            return f"it has replicas on broker {details.listed(down)}, not registered"
        if moving := [tp for tp in self.moving() if tp.topic == topic]:
            return f"{moving[0]} is being reassigned"
        return ""

    def _reassignment_waits(self, tp: TopicPartition, target: tuple[int, ...]) -> str:
        state = self.states.get(tp)
        if tp.partition not in self.topics.get(tp.topic, {}):
            return "there is no such partition"
        if down := [id for id in target if id not in self.brokers]:
            return f"broker {details.listed(down)} is not registered"
        if state is None or state.leader == NO_LEADER or state.leader not in self.brokers:
            return "the partition has no live leader to copy from"
        behind = [id for id in target if id not in state.isr]
        return f"broker {details.listed(behind)} is not in the ISR yet" if behind else ""


def _topic(name: str, data: bytes) -> dict[int, ReplicaAssignment]:
    if not znodes.TOPIC_NAME.fullmatch(name):
        raise BadInput(f"{TOPICS}: topic {short(name)}; 1 to 249 of a-z A-Z 0-9 . _ - are allowed")
    return znodes.TopicZNode.decode(data, name)


def _put(where: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        where.pop(key, None)
    else:
        where[key] = value


NEWEST = (3, 9)
"""The last release that works with ZooKeeper."""
CHANGES: tuple[tuple[tuple[int, int], str, str], ...] = (
    ((2, 5), "KIP-537", "zookeeper.session.timeout.ms is by default 18 s (before: 6), replica.lag.time.max.ms 30 (10)"),
    (
        (2, 7),
        "KIP-497",
        "a leader asks the controller for a new ISR (AlterIsr, since 3.2 AlterPartition); in the lab "
        "it writes the znode itself and notifies the controller",
    ),
    ((2, 7), "KIP-584", "brokers and controller agree on features (/feature); the lab has none"),
    ((2, 8), "KIP-516", "topics have ids, which requests carry; the lab has names only"),
    ((3, 2), "KIP-704", "a leader from an unclean election is marked as recovering; in the lab it is not"),
)
"""The differences between 2.4 and later releases that work with ZooKeeper, and the first release that has each."""
BETWEEN = (
    "KAFKA-3143, since 2.3: a new controller takes replicas on dead brokers out of ISRs; before, only a leader does, "
    "and only if the partition is written to",
    "KIP-455, since 2.4: a reassignment stands in the topic's znode; before, in /admin/reassign_partitions only",
    "KIP-380, since 2.2: each life of a broker has an epoch; before, a quick restart is not noticed",
)
"""The differences between 2.4, which plays them, and 2.1 to 2.3, to which a cluster may belong."""


class Release(NamedTuple):
    """The oldest and newest release that fit, why, and the generation of the lab that plays it."""

    oldest: tuple[int, int]
    newest: tuple[int, int]
    evidence: str
    generation: str

    @property
    def differences(self) -> tuple[str, ...]:
        """One sentence about each difference between these releases and the lab's generation."""
        if self.newest != NEWEST:
            return BETWEEN if self.oldest == (2, 1) else ()  # one that looks like 2.4 counts as 2.4
        return tuple(f"{ticket}, since {since[0]}.{since[1]}: {text}" for since, ticket, text in CHANGES)

    @property
    def config(self) -> dict[str, object]:
        """The defaults of these releases where they are not those of the generation."""
        later = self.oldest >= (2, 5)
        return {"zookeeper.session.timeout.ms": 18000, "replica.lag.time.max.ms": 30000} if later else {}

    def __str__(self) -> str:
        """The bounds are those of `inter.broker.protocol.version`: a later release may run with an older protocol."""
        old, new = (".".join(map(str, each)) for each in (self.oldest, self.newest))
        return f"protocol {old} to {new} ({self.evidence}), played by generation {self.generation}"


def release_of(cluster: Cluster) -> Release:
    """The releases that fit what is found."""
    for found, oldest, evidence in _signs(cluster):
        if found:
            newest = {(2, 4): (2, 6), (2, 1): (2, 6), (1, 0): (2, 0) if CONTROLLER in cluster.znodes else (2, 6)}.get(
                oldest, NEWEST
            )
            return Release(oldest, newest, evidence, "2.0" if oldest == (1, 0) else "2.4")
    return Release((0, 10), (0, 11), f"no {znodes.LogDirEventNotificationZNode.path()}", "0.10")


def _signs(cluster: Cluster) -> tuple[tuple[bool, tuple[int, int], str], ...]:
    """The signs of releases, newest first. Kafka 3.8.0: zk/ZkData.scala has each with the version that writes it."""
    states = (node.data for path, node in cluster.znodes.items() if STATE.fullmatch(path))
    topics = {_version(cluster, f"{TOPICS}/{topic}") for topic in cluster.topics}
    brokers = {_version(cluster, f"{IDS}/{broker}") for broker in cluster.brokers}
    log_dirs = znodes.LogDirEventNotificationZNode.path()
    return (
        (_version(cluster, CONTROLLER) >= 2, (3, 4), "/controller has version 2"),
        (_version(cluster, FEATURE) >= 2, (3, 3), "/feature has version 2"),
        (any(b"leader_recovery_state" in data for data in states), (3, 2), "a state has leader_recovery_state"),
        (3 in topics, (2, 8), "a topic has version 3, with its id"),
        (5 in brokers, (2, 7), "a broker is registered with version 5"),
        (FEATURE in cluster.znodes, (2, 7), "/feature exists"),
        (2 in topics, (2, 4), "a topic has version 2"),
        (_elected_at_once(cluster), (2, 1), f"{CONTROLLER} and {EPOCH} are of one transaction, no topic has version 2"),
        (log_dirs in cluster.znodes, (1, 0), f"{log_dirs} exists, and no topic has version 2"),
    )


def _elected_at_once(cluster: Cluster) -> bool:
    """True if `/controller` was made and `/controller_epoch` raised together. Kafka 2.1.0: KAFKA-6082"""
    controller, epoch = cluster.znodes.get(CONTROLLER), cluster.znodes.get(EPOCH)
    return controller is not None and epoch is not None and controller.stat.czxid == epoch.stat.mzxid


def _version(cluster: Cluster, path: str) -> int:
    """The version in the JSON of a znode; 0 where there is none."""
    node = cluster.znodes.get(path)
    version = None if node is None else details.json_object(node.text).get("version")
    return version if isinstance(version, int) else 0
