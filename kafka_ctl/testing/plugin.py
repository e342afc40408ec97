"""The fixture `kafka` of pytest: a cluster for one test, in a lab of its own.

    def test_nothing_is_lost(kafka):
        kafka.create_topic("orders")
        kafka.kill_leader("orders", after=100)
        kafka.assert_kept("orders", send_200_orders(kafka.bootstrap_servers))

`@pytest.mark.kafka(brokers=5, generation="2.0")` has the arguments of `KafkaCluster`. pytest loads this module wherever
the package is installed, so it imports nothing else before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafka_ctl.testing.cluster import KafkaCluster


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "kafka(brokers, generation, port, story, config): the cluster of `kafka`")


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """A Kafka of three brokers (2.4) that listens on 127.0.0.1, with faults and assertions; stopped after the test."""
    from kafka_ctl.testing.cluster import KafkaCluster

    mark = request.node.get_closest_marker("kafka")
    with KafkaCluster(**(mark.kwargs if mark else {})) as cluster:
        yield cluster
