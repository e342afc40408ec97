"""Finds malformed znodes under the lab's chroot that would make every controller fail.

Where Kafka reads something malformed it mostly fails, and its brokers elect one controller after the other. What is
it often treats data that is not JSON as empty: such a znode is not malformed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kafka_ctl.errors import BadInput
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.json_fields import NotJson, number

SINGLE: dict[str, Callable[[bytes], object]] = {
    znodes.ControllerEpochZNode.path(): znodes.ControllerEpochZNode.decode,
    znodes.PreferredReplicaElectionZNode.path(): znodes.PreferredReplicaElectionZNode.decode,
}
"""Znodes at a fixed place, and how they are read."""


def malformed(found: Mapping[str, tuple[bytes, int, int]]) -> Iterator[str]:
    """The faults in `{path: (data, version, ephemeral owner)}`: the path, its data, the expected data."""
    for path, (data, _, owner) in found.items():
        try:
            _check(path, data, owner)
        except NotJson:
            continue
        except BadInput as error:
            yield str(error)


def _check(path: str, data: bytes, owner: int) -> None:
    match path.split("/")[1:]:
        case ["controller"] | ["brokers", "ids", _] if not owner:
            if path != znodes.ControllerZNode.path():
                number(znodes.BrokerIdsZNode.path(), path.rpartition("/")[2])
            there = data[:60].decode("utf-8", "backslashreplace")
            raise BadInput(f"{path}: {there!r} is not an ephemeral znode, so no broker can replace it")
        case ["brokers", "topics", topic]:
            znodes.TopicZNode.decode(data, topic)
        case ["brokers", "topics", topic, "partitions", partition, "state"]:
            where = topic, number(znodes.TopicPartitionsZNode.path(topic), partition)
            znodes.TopicPartitionStateZNode.decode(data, 0, where)
        case ["config", "topics", topic]:
            znodes.ConfigEntityZNode.decode(data, "topics", topic)
        case _ if path in SINGLE:
            SINGLE[path](data)
