"""The topics' own settings, as a broker knows them: read from ZooKeeper when a copy is made, else the broker's own.

Kafka 2.0.1: cluster/Partition.scala, getOrCreateReplica; 2.4.1: createLog
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.zookeeper.znodes import ConfigEntityZNode

SESSION_BACKOFF = 0.1
"""Seconds until a read whose session has expired is repeated."""
MIN_ISR: Final = "min.insync.replicas"


class TopicConfigs:
    """By partition: the topic's settings as they were when the copy was made in this process, or changed since."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self._of: dict[TopicPartition, dict[str, str]] = {}

    async def load(self, topic: str, partitions: Iterable[TopicPartition]) -> None:
        """Read how the logs of new copies are to be kept; without ZooKeeper, this waits."""
        self._of |= dict.fromkeys(partitions, await self._read(topic))

    def change(self, topic: str, settings: dict[str, str]) -> None:
        """The topic's settings are others now."""
        self._of |= {tp: settings for tp in self.process.hosted if tp.topic == topic}

    def min_isr(self, tp: TopicPartition) -> int:
        """`min.insync.replicas` of the partition."""
        own = self._of.get(tp, {}).get(MIN_ISR)
        return self.process.config[MIN_ISR] if own is None else int(own)

    async def read(self, topic: str, key: str) -> str:
        """A setting as ZooKeeper has it now, else the broker's."""
        usual: Mapping[str, object] = self.process.config
        return (await self._read(topic)).get(key, str(usual[key]))

    async def _read(self, topic: str) -> dict[str, str]:
        """The topic's own settings, none where nobody can read them; repeated until there is an answer."""
        while True:
            answer = await self.process.zk.read(ConfigEntityZNode.path("topics", topic))
            if answer.error != "SESSIONEXPIRED":
                break
            await self.process.clock.sleep(SESSION_BACKOFF)
        with suppress(BadInput):  # as Kafka takes what is no JSON for empty
            return ConfigEntityZNode.decode(answer.value, "topics", topic) if isinstance(answer.value, bytes) else {}
        return {}
