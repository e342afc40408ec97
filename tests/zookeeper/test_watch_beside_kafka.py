"""A watch of real Kafka 2.4.1 while its controller dies: its elections are those of Kafka's own log.

A lab that begins as this cluster and loses the same broker has the same leaders. Needs Java, and Maven once.
"""

import shutil
import subprocess

import pytest
from wire_clients import eventually
from zookeepers import missing

import kafka_ctl
from kafka_ctl import Lab
from kafka_ctl.foreign.watch import Watch
from kafka_ctl.kafka_log.read import parse_lines
from tools.recorder.cluster import Cluster
from tools.recorder.release import RELEASES

NEEDS = [program for program in ("java", "mvn") if shutil.which(program) is None]
pytestmark = [
    pytest.mark.skipif(bool(NEEDS), reason=f"real Kafka needs {' and '.join(NEEDS)}"),
    pytest.mark.skipif(bool(missing()), reason=str(missing())),
]
ASSIGNMENT = b'{"version":1,"partitions":{"0":[1,2],"1":[2,1],"2":[1,2],"3":[2,1]}}'


def leaders(watched: Watch | Lab) -> list[tuple[str, int, int]]:
    """The leader of each partition."""
    return [(row.topic, row.partition, row.leader) for row in watched.partitions()]


def logged(cluster: Cluster) -> set[tuple[object, ...]]:
    """The elections in the brokers' own log."""
    texts = (broker.log("control.log").splitlines() for broker in cluster.brokers.values())
    lines = [
        line for text in texts for line in parse_lines(text) if line.kind == "partition" and line.leader is not None
    ]
    return {
        (line.topic, line.partition, line.leader, line.isr, line.leader_epoch)
        for line in lines
        if line.target == "OnlinePartition" and line.source != "NewPartition"
    }


def test_a_failover_of_real_kafka_is_watched_and_predicted() -> None:
    release = RELEASES["2.4"]
    try:
        release.resolve()
    except (subprocess.CalledProcessError, SystemExit) as error:
        pytest.skip(f"Kafka {release.kafka} cannot be fetched: {error}")
    with Cluster(release, [1, 2], {"auto.leader.rebalance.enable": False}) as cluster:
        for broker in (1, 2):
            cluster.start(broker)
        cluster.zk.create("/brokers/topics/orders", ASSIGNMENT)  # as Kafka's tool does
        with kafka_ctl.watch(cluster.zookeeper.address) as watch:
            eventually(lambda: watch.summary.partitions == 4 and not watch.summary.under_replicated, "four leaders")
            first = watch.controller
            assert first is not None and not first.doubt
            with Lab.from_zookeeper(cluster.zookeeper.address) as lab:
                assert leaders(lab) == leaders(watch)
                assert lab.controller == first[:2]
                lab.kill(first.id)
                lab.settle()
                cluster.kill(first.id)
                eventually(lambda: leaders(watch) == leaders(lab), "the leaders that the lab has")
            watch.settle()
            assert watch.controller is not None and watch.controller.epoch == 2
            elected = watch.trace[watch.opened :].slice(kind="partition", action="elect")
            found = {(r.topic, r.partition, r.leader, r.isr, r.leader_epoch) for r in elected}
            eventually(lambda: found == logged(cluster), "the elections in Kafka's log")
