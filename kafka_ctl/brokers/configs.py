"""The settings of topics and brokers, as a broker process knows them, and how they change while it runs.

A topic's own settings are read from ZooKeeper when a copy is made. From then on a broker watches `/config/changes`, and
reads whatever is said to have changed. After each look every broker deletes the notifications that are older than 15
minutes. In a lab on virtual time brokers begin to watch with the first change that the lab knows of, where Kafka's do
at their start; so a run without changes is the same with and without this.
Kafka 2.0.1: cluster/Partition.scala, getOrCreateReplica; server/DynamicConfigManager.scala, DynamicConfigManager;
server/ConfigHandler.scala, TopicConfigHandler, BrokerConfigHandler; common/ZkNodeChangeNotificationListener.scala
Kafka 2.4.1: cluster/Partition.scala, createLog; server/ConfigHandler.scala, TopicConfigHandler.processConfigChanges
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from kafka_ctl.brokers.process import BrokerProcess
from kafka_ctl.brokers.replication_quota import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIRS_RATE,
    throttled_partitions,
)
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.controller.events import TopicUncleanLeaderElectionEnable
from kafka_ctl.errors import BadInput, ZooKeeperError
from kafka_ctl.generation import UNCLEAN
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.kafka_client import config_of
from kafka_ctl.zookeeper.store import Delete
from kafka_ctl.zookeeper.znodes import BROKERS, TOPICS, ConfigChangeNotificationSequenceZNode, ConfigEntityZNode

SESSION_BACKOFF = 0.1
"""Seconds until a read whose session has expired is repeated."""
MIN_ISR: Final = "min.insync.replicas"
CHANGES = ConfigChangeNotificationSequenceZNode.PARENT
EXPIRATION = 15 * 60 * 1000
"""Milliseconds after which a notification may be deleted (Kafka's changeExpirationMs)."""


class TopicConfigs:
    """By partition: the topic's settings as they were when the copy was made in this process, or changed since."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self._of: dict[TopicPartition, dict[str, str]] = {}

    async def load(self, topic: str, partitions: Iterable[TopicPartition]) -> None:
        """Read how the logs of new copies are to be kept; without ZooKeeper, this waits."""
        self._of |= dict.fromkeys(partitions, await self._read(topic))

    def change(self, topic: str, settings: dict[str, str]) -> None:
        """Replace the settings of a topic by new ones."""
        self._of |= {tp: settings for tp in self.process.hosted if tp.topic == topic}

    def min_isr(self, tp: TopicPartition) -> int:
        with suppress(KeyError, ValueError):  # not set, or text that is no number
            return int(self._of.get(tp, {})[MIN_ISR])
        return self.process.config[MIN_ISR]

    def cleanup_policy(self, tp: TopicPartition) -> list[str]:
        return [part.strip().lower() for part in self._of.get(tp, {}).get("cleanup.policy", "delete").split(",")]

    async def read(self, topic: str, key: str) -> str:
        """A setting as ZooKeeper has it now, else the broker's."""
        usual: Mapping[str, object] = self.process.config
        return (await self._read(topic)).get(key, str(usual[key]))

    async def _read(self, topic: str) -> dict[str, str]:
        """The topic's own settings, none where they cannot be read; repeated until there is an answer."""
        while True:
            answer = await self.process.zk.read(ConfigEntityZNode.path("topics", topic))
            if answer.error != "SESSIONEXPIRED":
                break
            await self.process.clock.sleep(SESSION_BACKOFF)
        with suppress(BadInput):  # Kafka treats data that is not JSON as empty
            return config_of(answer, "topics", topic)
        return {}


class DynamicConfigs:
    """The reaction of one broker process to changed settings of topics, or of its own."""

    def __init__(self, process: BrokerProcess, topics: TopicConfigs) -> None:
        self.process, self.topics = process, topics
        self.is_watching = False
        self._last = -1
        """The number of the last notification that was carried out."""
        self._lock = asyncio.Lock()

    def begin(self) -> None:
        """Start to watch, and read the current settings. Idempotent."""
        if not self.is_watching:
            self.is_watching = True
            self.process.zk.handle_children(CHANGES, lambda _: self.look())
            self.process.spawn(self._begin())

    def look(self) -> None:
        """Read what is new; also after a new session, which has no watch yet."""
        if self.is_watching:
            self.process.spawn(self._read_changes())

    async def _begin(self) -> None:
        await self._read_changes()
        for kind in (TOPICS, BROKERS):
            with suppress(ZooKeeperError):
                for name in sorted(await self.process.zk.read_children(f"/config/{kind}")):
                    await self._read(kind, name, is_new=False)

    async def _read_changes(self) -> None:
        """Read the changes; after an error, which Kafka logs, wait for the next one."""
        async with self._lock:
            with suppress(ZooKeeperError):
                names, now = sorted(await self.process.zk.read_children(CHANGES)), self.process.clock.wall()
                for name in names:
                    number = int(name[-10:]) if name[-10:].isdecimal() else -1
                    if number > self._last:
                        await self._carry_out(f"{CHANGES}/{name}")
                        self._last = number
                await self._purge(names, now - EXPIRATION)

    async def _purge(self, names: list[str], before: int) -> None:
        """Delete the notifications that were made before this; another broker may have been faster.

        Kafka 2.0.1: common/ZkNodeChangeNotificationListener.scala, purgeObsoleteNotifications
        """
        for name in names:
            stat = (await self.process.zk.read(f"{CHANGES}/{name}")).stat
            if stat is not None and stat.ctime < before:
                await self.process.zk.write(Delete(f"{CHANGES}/{name}"))

    async def _carry_out(self, path: str) -> None:
        answer = await self.process.zk.read(path)
        with suppress(BadInput):
            data = answer.value if isinstance(answer.value, bytes) else b""
            kind, _, name = ConfigChangeNotificationSequenceZNode.decode(data).partition("/")
            if kind in (TOPICS, BROKERS):
                await self._read(kind, name, is_new=True)

    async def _read(self, kind: str, name: str, is_new: bool) -> None:
        """Read the settings of `topics/orders` or `brokers/1`, and go by them from now on."""
        answer = await self.process.zk.read(ConfigEntityZNode.path(kind, name))
        settings: dict[str, str] = {}
        with suppress(BadInput):
            settings = config_of(answer, kind, name)
        mine = kind == TOPICS or name == str(self.process.id)
        if is_new and mine:
            topic = (name, None) if kind == TOPICS else None
            written = json.dumps(settings, separators=(",", ":"), sort_keys=True)
            CAUSE.set(self.process.record("config-changed", topic, detail=details.write(config=written)))
        if kind == TOPICS:
            self._set_topic(name, settings)
            if is_new:
                self._enable_unclean(name, settings)
        elif mine:
            self._set_rates(settings)

    def _set_topic(self, topic: str, settings: dict[str, str]) -> None:
        self.topics.change(topic, settings)
        quotas, me = self.process.quotas, self.process.id
        for quota, key in ((quotas.leader, LEADER_REPLICAS), (quotas.follower, FOLLOWER_REPLICAS)):
            with suppress(ValueError):
                quota.throttled[topic] = throttled_partitions(settings.get(key, ""), me)

    def _enable_unclean(self, topic: str, settings: dict[str, str]) -> None:
        """Look for leaders at once where unclean elections of a topic are allowed now and our controller acts."""
        controller = self.process.controller
        knows = self.process.generation.election.elects_once_unclean_is_allowed
        if knows and settings.get(UNCLEAN, "").lower() == "true" and controller.is_active:
            controller.hand_over(TopicUncleanLeaderElectionEnable(topic))

    def _set_rates(self, settings: dict[str, str]) -> None:
        quotas = self.process.quotas
        rates = (quotas.leader, LEADER_RATE), (quotas.follower, FOLLOWER_RATE), (quotas.alter_log_dirs, LOG_DIRS_RATE)
        for quota, key in rates:
            with suppress(ValueError):
                quota.bound = int(settings[key]) if key in settings else None
