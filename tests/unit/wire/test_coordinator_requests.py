"""The requests of a group's members, as their coordinator answers them in every version.

Motive: Kafka 2.4.1, GroupCoordinatorTest.scala
"""

from collections.abc import Iterator
from typing import Any

import pytest
from labs import until_quiet
from wire_clients import Asking, listening

from kafka_ctl import Lab
from kafka_ctl.generation import Generation
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.schema import name_of
from kafka_ctl.wire.versions import announced


@pytest.fixture(scope="module", params=["0.10", "2.0", "2.4"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with listening(request.param, brokers=1) as opened:
        until_quiet(opened.create_topic, "orders", assignment={0: [1]})
        yield opened


@pytest.fixture
def broker(lab: Lab) -> Iterator[Asking]:
    with Asking(lab, 1) as connection:
        yield connection


def versions(lab: Lab, api: str) -> range:
    """The versions in which this generation answers an API."""
    low, high = announced(Generation(lab.generation.name))[api]
    return range(low, high + 1)


def committed(broker: Asking, version: int, group: str, **given: Any) -> str | None:
    """Commit offset 5 of orders-0 outside of a membership; the error."""
    part = {"partition_index": 0, "committed_offset": 5} | given
    topics = [{"name": "orders", "partitions": [part]}]
    (topic,) = broker.ask("OffsetCommit", version, group_id=group, topics=topics)["topics"]
    return name_of(topic["partitions"][0]["error_code"])


def fetched(broker: Asking, version: int, group: str) -> Message:
    """The committed offset of orders-0."""
    topics = [{"name": "orders", "partition_indexes": [0]}]
    (topic,) = broker.ask("OffsetFetch", version, group_id=group, topics=topics)["topics"]
    (part,) = topic["partitions"]
    return part


def test_an_offset_keeps_its_leader_epoch(lab: Lab, broker: Asking) -> None:
    """OffsetCommit has it since version 6, OffsetFetch since version 5; -1 means that it is not known."""
    for version in versions(lab, "OffsetCommit"):
        for epoch in (3, -1):
            known = {"committed_leader_epoch": epoch} if version >= 6 else {}
            assert committed(broker, version, "epochs", committed_metadata=None, **known) is None
            for asked in versions(lab, "OffsetFetch"):
                found = fetched(broker, asked, "epochs")
                assert (found["committed_offset"], found["metadata"]) == (5, "")
                if asked >= 5:
                    assert found["committed_leader_epoch"] == known.get("committed_leader_epoch", -1)
