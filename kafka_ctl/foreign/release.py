"""The release of a cluster of others, as far as its znodes tell, the generation that plays it, and what differs.

No znode holds a release, nor `inter.broker.protocol.version`. But a broker writes what that setting allows, so the
newest form that is found says: at least this one. A cluster may be newer than it looks.

Separate from `cluster.py` because it compares releases, and a cluster only holds what was read.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_ctl.foreign.cluster import CONTROLLER, EPOCH, FEATURE, IDS, STATE, TOPICS, Cluster
from kafka_ctl.trace import details
from kafka_ctl.zookeeper.znodes import LogDirEventNotificationZNode

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
    "KAFKA-3143, since 2.4: a new controller takes replicas on dead brokers out of ISRs; before, only leaders do, of "
    "partitions that are written to",
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
    return Release((0, 10), (0, 11), f"no {LogDirEventNotificationZNode.path()}", "0.10")


def _signs(cluster: Cluster) -> tuple[tuple[bool, tuple[int, int], str], ...]:
    """The signs of releases, newest first. Kafka 3.8.0: zk/ZkData.scala has each with the version that writes it."""
    states = (node.data for path, node in cluster.znodes.items() if STATE.fullmatch(path))
    topics = {_version(cluster, f"{TOPICS}/{topic}") for topic in cluster.topics}
    brokers = {_version(cluster, f"{IDS}/{broker}") for broker in cluster.brokers}
    log_dirs = LogDirEventNotificationZNode.path()
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
