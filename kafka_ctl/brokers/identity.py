"""The id of a broker: from its configuration, from its disks, or drawn from ZooKeeper.

A `meta.properties` file in every log directory remembers the id; it is written once the broker has registered itself.
An id that is not configured is the next number of `/brokers/seqid` above `reserved.broker.max.id`: 1001, 1002 ...
Kafka 2.0.1: server/KafkaServer.scala, getBrokerIdAndOfflineDirs, generateBrokerId, checkpointBrokerId
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.errors import BadInput, IdentityError, ZooKeeperError
from kafka_ctl.generation import Config, Generation
from kafka_ctl.zookeeper.store import Create, Set
from kafka_ctl.zookeeper.znodes import BrokerSequenceIdZNode

if TYPE_CHECKING:
    from kafka_ctl.zookeeper.client import ZooKeeperClient

NOT_CONFIGURED = -1
"""`broker.id` when the configuration does not say."""


class BrokerMetadata(NamedTuple):
    """The contents of `meta.properties` in a log directory; the cluster id since 2.4."""

    broker: int
    cluster: str | None = None

    def __str__(self) -> str:
        return f"BrokerMetadata(brokerId={self.broker}, clusterId={self.cluster})"

    @property
    def text(self) -> str:
        """The file as Kafka writes it, without the comment with the date.

        Kafka 2.4.1: server/BrokerMetadataCheckpoint.scala, write
        """
        cluster = "" if self.cluster is None else f"cluster.id={self.cluster}\n"
        return f"{cluster}version=0\nbroker.id={self.broker}\n"


def check_configured(broker: int, config: Config) -> int:
    """An id that a configuration may have; BadInput in Kafka's words.

    Kafka 2.0.1: server/KafkaConfig.scala, validateValues
    """
    if not config["broker.id.generation.enable"]:
        if broker < 0:
            raise BadInput("requirement failed: broker.id must be equal or greater than 0")
    elif not NOT_CONFIGURED <= broker <= config["reserved.broker.max.id"]:
        raise BadInput(
            "requirement failed: broker.id must be equal or greater than -1 and not greater than reserved.broker.max.id"
        )
    return broker


def is_generated(broker: int, config: Config) -> bool:
    """True if only ZooKeeper can have given out this id: it is above the reserved ones."""
    return bool(config["broker.id.generation.enable"]) and broker > config["reserved.broker.max.id"]


def remembered(files: Mapping[str, BrokerMetadata | None], generation: Generation) -> BrokerMetadata | None:
    """The id on which the log directories agree, None if none has one. Raises IdentityError if they do not agree.

    Before KAFKA-7335 only the id is read, also where a newer Kafka has written a cluster beside it.
    """
    found = {path: meta for path, meta in files.items() if meta is not None}
    if generation.membership.remembers_cluster and len(set(found.values())) > 1:
        listed = "".join(f"- {path} -> {meta}\n" for path, meta in sorted(found.items()))
        raise IdentityError(
            "InconsistentBrokerMetadata",
            "BrokerMetadata is not consistent across log.dirs. This could happen if multiple brokers shared a log "
            f"directory (log.dirs) or partial data was manually copied from another broker. Found:\n{listed}",
        )
    if not generation.membership.remembers_cluster:
        found = {path: BrokerMetadata(meta.broker) for path, meta in found.items()}
    if len(ids := {meta.broker for meta in found.values()}) > 1:
        raise IdentityError(
            "InconsistentBrokerId",
            "Failed to match broker.id across log.dirs. This could happen if multiple brokers shared a log directory "
            "(log.dirs) or partial data was manually copied from another broker. "
            f"Found Set({', '.join(map(str, sorted(ids)))})",
        )
    return next(iter(found.values()), None)


def decide(configured: int, stored: BrokerMetadata | None, cluster: str, config: Config) -> int | None:
    """The id, or None where one must be generated. Raises IdentityError if configuration and disks disagree."""
    if stored is not None and stored.cluster not in (None, cluster):
        raise IdentityError(
            "InconsistentClusterId",
            f"The Cluster ID {cluster} doesn't match stored clusterId Some({stored.cluster}) in meta.properties. The "
            "broker is trying to join the wrong cluster. Configured zookeeper.connect may be wrong.",
        )
    if configured >= 0 and stored is not None and stored.broker != configured:
        raise IdentityError(
            "InconsistentBrokerId",
            f"Configured broker.id {configured} doesn't match stored broker.id {stored.broker} in meta.properties. If "
            "you moved your data, make sure your configured broker.id matches. If you intend to create a new broker, "
            "you should remove all data in your data directories (log.dirs).",
        )
    if stored is not None:
        return stored.broker
    return None if configured < 0 and config["broker.id.generation.enable"] else configured


async def generate(zk: ZooKeeperClient, config: Config) -> int:
    """The next id from ZooKeeper. Raises IdentityError if that fails."""
    path = BrokerSequenceIdZNode.path()
    try:
        answer = await zk.write(Set(path, b""))
        if answer.error == "NONODE":
            await zk.write(Create(path))
            answer = await zk.write(Set(path, b""))
        answer.checked()
    except ZooKeeperError as error:
        raise IdentityError("GenerateBrokerId", "Failed to generate broker.id") from error
    assert answer.stat is not None
    return answer.stat.version + int(config["reserved.broker.max.id"])
