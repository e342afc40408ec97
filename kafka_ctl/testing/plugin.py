"""The fixture `kafka` of pytest: a cluster for one test, in a lab of its own.

    def test_nothing_is_lost(kafka):
        kafka.create_topic("orders")
        kafka.kill_leader("orders", after=100)
        kafka.assert_kept("orders", send_200_orders(kafka.bootstrap_servers))

`@pytest.mark.kafka(brokers=5, generation="2.0")` has the arguments of `KafkaCluster`. pytest loads this module wherever
the package is installed, so it imports nothing else before a test asks for the fixture.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
    mark = request.node.get_closest_marker("kafka")
    with _without(request.config.pluginmanager.rewrite_hook):
        from kafka_ctl.testing.cluster import KafkaCluster

        started = KafkaCluster(*mark.args, **mark.kwargs) if mark else KafkaCluster()
    with started as cluster:
        yield cluster


@contextmanager
def _without(rewriting: object) -> Iterator[None]:
    """Import modules without pytest's rewriting of assertions.

    pytest rewrites every module of a distribution that has a plugin. For this package that takes four times as long as
    the start of a cluster.
    """
    found = [finder for finder in sys.meta_path if finder is rewriting]
    for finder in found:
        sys.meta_path.remove(finder)
    try:
        yield
    finally:
        sys.meta_path[:0] = found  # where pytest had put it
