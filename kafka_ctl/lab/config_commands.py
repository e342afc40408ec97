"""Settings of topics and brokers, changed while they are in use: what `kafka-configs --alter` does.

Kafka 2.0.1: admin/ConfigCommand.scala, alterConfig; zk/AdminZkClient.scala, changeTopicConfig, changeBrokerConfig
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafka_ctl.errors import UnknownName, short
from kafka_ctl.lab import menu, validate
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.lab.menu import BROKER, PARTITION, WHEN_UP, Button, Call, Field, Given
from kafka_ctl.lab.settings import MAX_ID
from kafka_ctl.lab.topic_config import CHECKS, OF_BROKERS

TOPICS, BROKERS = "topics", "brokers"


RATE = Field("key", "Rate", "choice", "|".join(OF_BROKERS))
SETTING = Field("key", "Setting", "choice", "|".join(CHECKS))


def _rate(name: str, given: Given) -> Call:
    return (BROKERS, int(name), {RATE.choice(given): menu.text(given, "rate") or None}), {}


def _setting(name: str, given: Given) -> Call:
    return (TOPICS, menu.partition(name)[0], {SETTING.choice(given): menu.text(given, "value") or None}), {}


class ConfigCommands(Commands):
    """The part of a lab that changes settings."""

    @command(
        Button(BROKER, "Throttle…", "a rate in bytes a second for its throttled replicas; empty removes it",
               (RATE, Field("rate", "Bytes/s", "text", "10000000")), WHEN_UP, _rate),
        Button(PARTITION, "Change setting…", "a setting of its topic, on every broker; empty removes it",
               (SETTING, Field("value", "Value", "text", "true")), call=_setting),
    )  # fmt: skip
    def alter_config(self, entity_type: str, entity_name: str | int, config: Mapping[str, Any]) -> None:
        """Set some settings of a topic or a broker, and remove those whose value is None; every broker is notified.

        `alter_config("topics", "orders", {"min.insync.replicas": 2})`, or `"brokers", 1` with
        `leader.replication.throttled.rate` and `follower.replication.throttled.rate` in bytes a second (KIP-73).
        Raises UnknownName for another entity or key, ApiException (INVALID_CONFIG) for a wrong value, BadInput for the
        removal of what is not set.
        """
        changes = validate.mapping("the settings", config)
        if entity_type == TOPICS:
            name = validate.name("a topic", entity_name)
            fields: dict[str, Any] = {"topic": name}
        elif entity_type == BROKERS:
            name = str(validate.integer("a broker id", entity_name, 0, MAX_ID))
            fields = {"broker": name}
        else:
            raise UnknownName("entity type", short(entity_type), (TOPICS, BROKERS))

        async def alter() -> None:
            self._world.watch_configs()
            await self._admin.alter_config(entity_type, name, changes)

        written = json.dumps(dict(changes), separators=(",", ":"), default=str)
        self._ask(alter, "alter_config", **fields, config=written)
