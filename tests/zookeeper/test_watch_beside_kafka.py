"""Real Kafka, watched while it fails over, is killed, shut down, drained and deleted from; a lab predicts each outcome.

3.9.0 by default; KAFKA_CTL_KAFKAS="2.0.1 2.4.1 3.9.0" names others. Needs Java, and Maven once.
"""

import json
import os
from contextlib import suppress

import pytest
from wire_clients import eventually
from zookeepers import beside_kafka, fetched, needed

import kafka_ctl
from kafka_ctl import Lab
from kafka_ctl.foreign.watch import Watch
from kafka_ctl.kafka_log.read import parse_lines
from tools.recorder.cluster import Cluster
from tools.recorder.release import RELEASES, TOOLS

pytestmark = beside_kafka
KAFKAS = {release.kafka: release for release in (*RELEASES.values(), *TOOLS.values())}
FILES = {
    "auto.leader.rebalance.enable": False,
    "zookeeper.session.timeout.ms": 9000,
    "replica.lag.time.max.ms": 20_000,
}
"""Settings of the brokers' files. The lab is given them: a leader of 2.0.1 takes a dead follower out of an ISR itself
if its session outlives `replica.lag.time.max.ms`, and the leader epoch stays as it is."""
BROKERS = (1, 2, 3)
PAIRS = [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2]]
TOPICS = {"orders": 70, "old": 30}
Row = tuple[int, tuple[int, ...], int, int, int]


def rows(cluster: Watch | Lab) -> dict[tuple[str, int], Row]:
    """Leader, ISR, leader epoch, version and controller epoch of each partition."""
    return {
        (p.topic, p.partition): (p.leader, tuple(sorted(p.isr)), p.leader_epoch, p.zk_version, p.controller_epoch)
        for p in cluster.partitions()
    }


def plan(partitions: dict[tuple[str, int], list[int]], drained: int) -> dict[tuple[str, int], list[int]]:
    """New replicas for every partition on a broker: another one in its place."""
    return {
        tp: [next(b for b in BROKERS if b not in now) if id == drained else id for id in now]
        for tp, now in partitions.items()
        if drained in now
    }


class Both:
    """A real cluster and its watch; each change is played by a lab that begins as the cluster is then."""

    def __init__(self, cluster: Cluster, watch: Watch) -> None:
        self.cluster, self.watch = cluster, watch

    def healthy(self) -> bool:
        """True if all brokers are there and in sync, and no request waits."""
        self.watch.settle()
        now = self.watch.summary
        wrong = now.under_replicated, now.offline, now.reassignments, now.deletions
        return now.brokers == len(BROKERS) and not any(wrong) and now.partitions > 0

    def compare(self, name: str, *arguments: object) -> None:
        """Do the same in both, and wait until the cluster is as the lab says."""
        eventually(self.healthy, f"a healthy cluster before {name}")
        with Lab.from_zookeeper(self.cluster.zookeeper.address, config=FILES) as lab:
            assert rows(lab) == rows(self.watch)
            assert lab.controller == self.watch.controller[:2]
            getattr(lab, name)(*arguments)
            lab.settle()
            predicted = rows(lab)
        getattr(self, name)(*arguments)
        with suppress(AssertionError):
            eventually(lambda: not self.differing(predicted))
        assert self.differing(predicted) == []

    def differing(self, predicted: dict[tuple[str, int], Row]) -> list[object]:
        self.watch.settle()
        now = rows(self.watch)
        return [(tp, predicted.get(tp), now.get(tp)) for tp in predicted | now if predicted.get(tp) != now.get(tp)]

    def kill(self, broker: int) -> None:
        self.cluster.brokers[broker].end()

    def shutdown(self, broker: int) -> None:
        self.cluster.shutdown(broker)

    def reassign(self, moved: dict[tuple[str, int], list[int]]) -> None:
        entries = [{"topic": t, "partition": n, "replicas": replicas} for (t, n), replicas in moved.items()]
        content = json.dumps({"version": 1, "partitions": entries})
        self.cluster.zk.create("/admin/reassign_partitions", content.encode())

    def delete_topic(self, topic: str) -> None:
        self.cluster.zk.create(f"/admin/delete_topics/{topic}", b"")

    def logged(self) -> set[tuple[object, ...]]:
        """The elections in the brokers' own logs."""
        logs = (broker.log("control.log").splitlines() for broker in self.cluster.brokers.values())
        return {
            (line.topic, line.partition, line.leader, line.isr, line.leader_epoch)
            for log in logs
            for line in parse_lines(log)
            if line.kind == "partition" and line.leader is not None
            if line.target == "OnlinePartition" and line.source != "NewPartition"
        }

    def watched(self) -> tuple[set[tuple[object, ...]], set[str]]:
        """The elections that the watch has inferred, and the states of which it has missed a version."""
        seen = self.watch.trace[self.watch.opened :]
        elected = seen.slice(kind="partition", action="elect")
        found = {(r.topic, r.partition, r.leader, r.isr, r.leader_epoch) for r in elected}
        return found, {r.path for r in seen.slice(action="gap")}


@pytest.mark.parametrize("kafka", os.environ.get("KAFKA_CTL_KAFKAS", "3.9.0").split())
def test_real_kafka_is_watched_and_predicted(kafka: str) -> None:
    needed()
    release = fetched(KAFKAS[kafka])
    with Cluster(release, BROKERS, FILES, records=release.generation != "2.0") as cluster:
        for broker in BROKERS:
            cluster.start(broker)
        with kafka_ctl.watch(cluster.zookeeper.address) as watch:
            for topic, count in TOPICS.items():
                partitions = {str(n): PAIRS[n % len(PAIRS)] for n in range(count)}
                content = json.dumps({"version": 1, "partitions": partitions})
                cluster.zk.create(f"/brokers/topics/{topic}", content.encode())
            eventually(lambda: watch.summary.partitions == sum(TOPICS.values()), "all partitions")
            both = Both(cluster, watch)
            eventually(both.healthy, "a healthy cluster")
            first = watch.controller
            assert not first.doubt
            both.compare("kill", first.id)
            cluster.start(first.id)
            second = watch.controller
            assert second.epoch == first.epoch + 1
            for how in ("kill", "shutdown"):
                both.compare(how, first.id)
                cluster.start(first.id)
            eventually(both.healthy, "a healthy cluster")
            replicas = {(p.topic, p.partition): list(p.replicas) for p in watch.partitions()}
            both.compare("reassign", plan(replicas, first.id))
            both.compare("delete_topic", "old")
            ways = [(r.broker, r.action) for r in watch.trace.slice(action={"lost", "controlled-shutdown"})]
            assert ways == [(first.id, "lost"), (first.id, "lost"), (first.id, "controlled-shutdown")]
            found, gaps = both.watched()
            logged = both.logged()
            assert found <= logged
            missed = {f"/brokers/topics/{topic}/partitions/{number}/state" for topic, number, *_ in logged - found}
            assert missed <= gaps
            assert len(found) > 30
