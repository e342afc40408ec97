"""Whether a replica that is not in sync may lead: the configuration of the topic, else that of the broker.

Kafka 2.0.1: zk/KafkaZkClient.scala, getLogConfigs
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from kafka_ctl.controller.process import ControllerProcess
from kafka_ctl.zookeeper.json_fields import NotJson
from kafka_ctl.zookeeper.znodes import ConfigEntityZNode

KEY: Final = "unclean.leader.election.enable"


async def allowed(env: ControllerProcess, topics: Iterable[str]) -> dict[str, bool]:
    """`unclean.leader.election.enable` by topic, read from ZooKeeper."""
    names = list(topics)
    answers = await env.zk.read_all(ConfigEntityZNode.path("topics", name) for name in names)
    found = {}
    for topic, answer in zip(names, answers, strict=True):
        own = {}
        if answer.error is None and isinstance(answer.value, bytes):
            with suppress(NotJson):
                own = ConfigEntityZNode.decode(answer.value, "topics", topic)
        found[topic] = own[KEY].lower() == "true" if KEY in own else bool(env.config[KEY])
    return found
