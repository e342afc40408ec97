"""Values of a topic's configuration: what Kafka takes, and its words for the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prose import Prose

from kafka_ctl import BadInput, Lab, UnknownName
from kafka_ctl.errors import ApiException

REFUSED: list[tuple[str, Any, str]] = [
    ("min.insync.replicas", 0, "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1"),
    (
        "min.insync.replicas",
        "two",
        "Invalid value two for configuration min.insync.replicas: Not a number of type INT",
    ),
    ("min.insync.replicas", 2**31, "2147483648 for configuration min.insync.replicas: Not a number of type INT"),
    ("min.insync.replicas", True, "Invalid value true for configuration min.insync.replicas: Not a number of type INT"),
    ("retention.ms", 1.5, "Invalid value 1.5 for configuration retention.ms: Not a number of type LONG"),
    ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
    ("retention.ms", -2, "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
    (
        "unclean.leader.election.enable",
        "yes",
        "Invalid value yes for configuration unclean.leader.election.enable: Expected value to be either true or false",
    ),
    (
        "cleanup.policy",
        "compact,shred",
        "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete",
    ),
]


@pytest.mark.parametrize(("key", "value", "logged"), REFUSED)
def test_a_wrong_value_is_refused_in_kafkas_words(key: str, value: Any, logged: str) -> None:
    """And nothing is written of it."""
    with Lab() as lab:
        with pytest.raises(ApiException) as reported:
            lab.create_topic("orders", config={key: value})
        assert reported.value.code == "INVALID_CONFIG" and logged in str(reported.value)
        assert "/config/topics/orders" not in lab.znodes()


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
    ],
)
def test_what_kafka_takes_is_stored(given: dict[str, Any], stored: dict[str, str]) -> None:
    """As text, as it was given."""
    with Lab() as lab:
        lab.create_topic("orders", config=given)
        assert json.loads(lab.znodes()["/config/topics/orders"][0])["config"] == stored


def test_a_described_topic_is_checked_too(prose: Prose) -> None:
    """A key the lab does not know is kept, a wrong value of one it knows is refused."""
    text = "Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: {}\n"
    text += "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    with Lab.from_description(text.format("segment.bytes=7")) as lab:
        assert json.loads(lab.znodes()["/config/topics/t"][0])["config"] == {"segment.bytes": "7"}
    with prose.refused(BadInput):
        Lab.from_description(text.format("min.insync.replicas=-3"))
