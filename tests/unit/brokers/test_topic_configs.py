"""Values of a topic's configuration: what Kafka takes, and its words for the rest."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from labs import by_hand, until_quiet
from prose import Prose
from tables import tabled

from kafka_ctl import BadInput, Lab, UnknownName
from kafka_ctl.brokers.config_keys import BROKER, TOPIC, dynamic_keys, keys
from kafka_ctl.errors import ApiException
from kafka_ctl.zookeeper.store import Set


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@tabled
def test_a_wrong_value_is_refused_in_kafkas_words(lab: Lab, key: str, value: Any, logged: str) -> None:
    """And nothing is written of it."""
    with pytest.raises(ApiException) as reported:
        lab.create_topic("orders", config={key: value})
    assert reported.value.code == "INVALID_CONFIG" and logged in str(reported.value)
    assert "/config/topics/orders" not in lab.znodes()


@tabled
def test_each_release_has_checks_of_its_own(key: str, value: Any, answers: dict[str, str]) -> None:
    for generation, text in answers.items():
        with Lab(generation=generation) as lab:
            if text:
                with pytest.raises(ApiException) as reported:
                    lab.create_topic("orders", config={key: value})
                assert str(reported.value).endswith(text)
            else:
                lab.create_topic("orders", config={key: value})


def test_two_settings_that_contradict_each_other() -> None:
    """Kafka 2.4.1: log/LogConfig.scala, validateValues (KIP-354)"""
    given = {"min.compaction.lag.ms": 2, "max.compaction.lag.ms": 1}
    with Lab(generation="2.4") as lab, pytest.raises(ApiException) as reported:
        lab.create_topic("orders", config=given)
    text = "conflict topic config setting min.compaction.lag.ms (2) > max.compaction.lag.ms (1)"
    assert str(reported.value) == text
    with Lab(generation="2.0") as lab, pytest.raises(UnknownName):
        lab.create_topic("orders", config=given)


@pytest.mark.parametrize(("generation", "topic", "broker"), [("0.10", 24, 141), ("2.0", 25, 181), ("2.4", 26, 192)])
def test_every_default_is_a_value_of_its_key(generation: str, topic: int, broker: int) -> None:
    found = {scope: keys(scope, generation) for scope in (TOPIC, BROKER)}
    assert (len(found[TOPIC]), len(found[BROKER])) == (topic, broker)
    for key in (*found[TOPIC].values(), *found[BROKER].values(), *dynamic_keys(generation).values()):
        if key.default is not None and key.type != "CLASS":
            key.parse(key.default, generation)


def test_an_unknown_key_is_refused(prose: Prose) -> None:
    with Lab() as lab, prose.refused(UnknownName):
        lab.create_topic("orders", config={"retention": 1})


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"min.insync.replicas": 2, "retention.ms": "-1"}, {"min.insync.replicas": "2", "retention.ms": "-1"}),
        ({"unclean.leader.election.enable": True}, {"unclean.leader.election.enable": "true"}),
        ({"unclean.leader.election.enable": "False"}, {"unclean.leader.election.enable": "False"}),
        ({"cleanup.policy": "compact, delete"}, {"cleanup.policy": "compact, delete"}),
        ({"retention.ms": str(2**63 - 1)}, {"retention.ms": str(2**63 - 1)}),
        ({"segment.bytes": 1 << 20, "max.message.bytes": "7"}, {"segment.bytes": "1048576", "max.message.bytes": "7"}),
        (
            {"min.cleanable.dirty.ratio": 0.25, "preallocate": True},
            {"min.cleanable.dirty.ratio": "0.25", "preallocate": "true"},
        ),
        ({"message.format.version": "0.10.2"}, {"message.format.version": "0.10.2"}),
        ({"compression.type": "gzip", "flush.ms": "+1"}, {"compression.type": "gzip", "flush.ms": "+1"}),
    ],
)
def test_what_kafka_takes_is_stored(given: dict[str, Any], stored: dict[str, str]) -> None:
    """As text, as it was given."""
    with Lab() as lab:
        lab.create_topic("orders", config=given)
        assert json.loads(lab.znodes()["/config/topics/orders"][0])["config"] == stored


def test_a_described_topic_is_checked_too(prose: Prose) -> None:
    """A key that this release does not know is kept, a wrong value of one it knows is refused."""
    text = "Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: {}\n"
    text += "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    with Lab.from_description(text.format("remote.storage.enable=7")) as lab:
        assert json.loads(lab.znodes()["/config/topics/t"][0])["config"] == {"remote.storage.enable": "7"}
    prose.refuses(BadInput, Lab.from_description, text.format("min.insync.replicas=-3"))


def test_a_value_that_is_no_number_counts_as_not_set() -> None:
    """Somebody may have written it into the znode."""
    with Lab(brokers=2, config={"min.insync.replicas": 2}) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2]}, config={"min.insync.replicas": 1})
        by_hand(lab, Set("/config/topics/orders", b'{"version":1,"config":{"min.insync.replicas":"x"}}'))
        for broker in (1, 2):
            until_quiet(lab.bounce, broker)
        assert lab.produce("orders", 0).error is None
        until_quiet(lab.kill, 2)
        assert lab.produce("orders", 0).error == "NOT_ENOUGH_REPLICAS"
