"""Settings of topics and brokers in ZooKeeper: read, changed, and the change announced to every broker.

Kafka 2.0.1: zk/AdminZkClient.scala, changeEntityConfig
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_ctl.zookeeper.kafka_client import KafkaZkClient
from kafka_ctl.zookeeper.store import Create
from kafka_ctl.zookeeper.znodes import ConfigChangeNotificationSequenceZNode, ConfigEntityZNode


async def read_config(zk: KafkaZkClient, kind: str, name: str) -> dict[str, str]:
    """The settings of `topics/orders` or `brokers/1`; none if none was ever set."""
    answer = await zk.read(ConfigEntityZNode.path(kind, name))
    return ConfigEntityZNode.decode(answer.value, kind, name) if isinstance(answer.value, bytes) else {}


async def change_config(zk: KafkaZkClient, kind: str, name: str, changes: Mapping[str, str | None]) -> None:
    """Set these settings, or remove those that are None, and notify every broker."""
    merged = await read_config(zk, kind, name) | dict(changes)
    kept = {key: value for key, value in merged.items() if value is not None}
    await zk.set_or_create_config(kind, name, ConfigEntityZNode.encode(kept))
    prefix = ConfigChangeNotificationSequenceZNode.PREFIX
    data = ConfigChangeNotificationSequenceZNode.encode(f"{kind}/{name}")
    (await zk.write(Create(prefix, data, sequence=True))).checked()
