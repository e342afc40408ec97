"""A real Kafka broker, for answers that a lab gives as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import cast

from wire_clients import Asking, eventually
from zookeepers import fetched, needed

from kafka_ctl import Lab
from tools.recorder.cluster import Cluster
from tools.recorder.release import RELEASES

SMALL = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
}
"""Internal topics that one broker can have."""


@contextmanager
def asking_kafka(generation: str) -> Iterator[Asking]:
    """A connection to a real broker that is alone and leads `orders-0`; skips the test where there can be none."""
    needed()
    with Cluster(fetched(RELEASES[generation]), [1], SMALL) as cluster:
        cluster.start(1)
        cluster.zk.create("/brokers/topics/orders", b'{"version":1,"partitions":{"0":[1]}}')
        eventually(lambda: cluster.read("/brokers/topics/orders/partitions/0/state") is not None, "a leader")
        servers = str(cluster.brokers[1].properties["listeners"]).rpartition("/")[2]
        real = SimpleNamespace(bootstrap_servers=servers, brokers=[1])
        with Asking(cast(Lab, real), 1) as broker:
            yield broker
