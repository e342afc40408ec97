"""Both ways with real Kafka: its brokers obey a controller of the kit, and the kit's takes over from theirs.

Real brokers of 2.0.1 and a lab's broker 9 share one ZooKeeper. The lab's broker holds no partition: it takes part as a
controller, or as one who waits. Kafka's own tools write and read. Needs Java, and Maven once.
"""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from labs import until_quiet
from prose import Prose
from wire_clients import Asking, eventually
from zookeepers import beside_kafka, fetched, needed

from kafka_ctl import BadInput, Lab
from tools.recorder.cluster import Cluster
from tools.recorder.release import RELEASES, Release

LIMIT = 60.0
"""Seconds that a tool may take on a busy machine."""
pytestmark = beside_kafka


@pytest.fixture(autouse=True, scope="module")
def zookeeper() -> None:
    needed()


@pytest.fixture(scope="module")
def release() -> Release:
    """Kafka 2.0.1; skipped where Maven cannot fetch it."""
    return fetched(RELEASES["2.0"])


@contextmanager
def shared(release: Release) -> Iterator[tuple[Cluster, Path]]:
    """ZooKeeper for both, and two real brokers that are not started yet."""
    with Cluster(release, [1, 2], {"auto.leader.rebalance.enable": False}) as cluster:
        yield cluster, cluster.folder


def joined(cluster: Cluster) -> Lab:
    """A lab with one broker, 9, in the same ZooKeeper."""
    return Lab(brokers=[9], generation="2.0", zookeeper=cluster.zookeeper.address, join=True, wire=True)


def port(cluster: Cluster, broker: int) -> str:
    return str(cluster.brokers[broker].properties["listeners"]).rpartition("/")[2]


def run(release: Release, *arguments: str, given: str | None = None) -> str:
    """What one of Kafka's tools prints."""
    done = subprocess.run(release.java(*arguments), input=given, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


class ConsoleProducer:
    """Kafka's console producer with acks=all, which is given one number after the other until `end`."""

    def __init__(self, release: Release, servers: str) -> None:
        command = release.java(
            "kafka.tools.ConsoleProducer", "--broker-list", servers, "--topic", "orders", "--sync", "--timeout", "0",
            "--request-required-acks", "-1", "--message-send-max-retries", "1000", "--request-timeout-ms", "60000",
            "--max-block-ms", "60000",
        )  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.sent = 0
        self._goes_on = True
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while self._goes_on:
            try:
                self._process.stdin.write(f"{self.sent}\n")
                self._process.stdin.flush()
            except BrokenPipeError:  # `end` says what it died of
                return
            self.sent += 1
            time.sleep(0.05)  # a pace, not a wait

    def end(self) -> int:
        """Let it end when everything is acknowledged; how many records that were."""
        self._goes_on = False
        self._thread.join(LIMIT)
        _, logged = self._process.communicate(timeout=LIMIT)
        assert self._process.returncode == 0 and "Error when sending" not in logged, logged[-2000:]
        return self.sent

    def kill(self) -> None:
        self._goes_on = False
        self._process.kill()
        self._process.wait(LIMIT)


def consumed(release: Release, servers: str, number: int) -> list[int]:
    """What Kafka's console consumer finds in `orders-0`."""
    text = run(release, "kafka.tools.ConsoleConsumer", "--bootstrap-server", servers, "--topic", "orders",
               "--partition", "0", "--offset", "earliest", "--max-messages", str(number), "--timeout-ms", "30000",
               "--consumer-property", "enable.auto.commit=false")  # fmt: skip
    return [int(line) for line in text.split()]


def test_real_brokers_obey_a_controller_of_the_kit(release: Release) -> None:
    """A topic is created, a leader dies, another leaves in good order; nothing acknowledged is lost."""
    with shared(release) as (cluster, _), joined(cluster) as lab:
        assert lab.controller is not None and lab.controller.id == 9
        cluster.start(1)
        cluster.start(2)
        lab.create_topic("orders", assignment={0: [1, 2]})
        eventually(lambda: lab.partition("orders", 0).isr == (1, 2), "the leader that the kit has elected")
        servers = f"{port(cluster, 1)},{port(cluster, 2)}"
        producer = ConsoleProducer(release, servers)
        try:
            eventually(lambda: producer.sent > 40)
            cluster.kill(1)
            eventually(lambda: lab.partition("orders", 0).leader == 2, "another leader")
            assert lab.partition("orders", 0).isr == (2,)
            cluster.start(1)
            eventually(lambda: sorted(lab.partition("orders", 0).isr) == [1, 2], "broker 1 to catch up")
            cluster.shutdown(2)
            assert lab.partition("orders", 0).leader == 1
            assert "Controlled shutdown succeeded" in cluster.brokers[2].log("server.log")
            asked = lab.trace.slice(action="ControlledShutdown", kind="response")
            assert [r.error for r in asked][-1] is None
            number = producer.end()
        finally:
            producer.kill()
        last = run(release, "kafka.tools.GetOffsetShell", "--broker-list", port(cluster, 1), "--topic", "orders")
        found = consumed(release, port(cluster, 1), int(last.rpartition(":")[2]))
        assert len(found) >= number  # once or more
        assert [value for place, value in enumerate(found) if value not in found[:place]] == list(range(number))
        assert not [r for r in lab.trace.slice(kind="response") if r.error not in (None, "DISCONNECTED")]


def test_a_controller_of_the_kit_takes_over_a_real_cluster(prose: Prose, release: Release) -> None:
    """It loses the election while the real controller lives, wins the next one, and serves."""
    with shared(release) as (cluster, _):
        cluster.start(1)
        cluster.start(2)
        prose.refuses(BadInput, Lab, brokers=[9], zookeeper=cluster.zookeeper.address, join=True)
        with joined(cluster) as lab:
            assert lab.controller is None
            assert b'"brokerid":1' in (cluster.read("/controller") or b"")
            assert cluster.registered() == [1, 2, 9]
            lab.create_topic("orders", assignment={0: [1, 2]})
            eventually(lambda: cluster.read("/brokers/topics/orders/partitions/0/state") is not None)
            with Asking(lab, 9) as broker:  # it has what the real controller sends: who leads, and where

                def shown() -> tuple[int, list[tuple[int, str]]]:
                    reported = broker.ask("Metadata", 5, topics=[{"name": "orders"}], allow_auto_topic_creation=False)
                    leaders = [p["leader_id"] for topic in reported["topics"] for p in topic["partitions"]]
                    at = [(b["node_id"], f"{b['host']}:{b['port']}") for b in reported["brokers"]]
                    return (leaders[0] if leaders else -1), sorted(at)

                eventually(lambda: shown()[0] == 1, "the metadata of the real controller")
                assert shown()[1][:2] == [(1, port(cluster, 1)), (2, port(cluster, 2))]
            cluster.kill(1, bystanders=[2])
            eventually(lambda: lab.controller is not None and lab.controller.id == 9, "the kit's controller")
            assert lab.controller == (9, 2)
            eventually(lambda: lab.partition("orders", 0).leader == 2, "another leader")
            lab.create_topic("more", assignment={0: [2]})
            eventually(lambda: lab.partition("more", 0).isr == (2,))
            run(release, "kafka.tools.ConsoleProducer", "--broker-list", port(cluster, 2), "--topic", "orders",
                "--sync", "--request-required-acks", "-1", given="0\n1\n2\n")  # fmt: skip
            assert consumed(release, port(cluster, 2), 3) == [0, 1, 2]
            cluster.shutdown(2)
            assert "Controlled shutdown succeeded" not in cluster.brokers[2].log("server.log")  # nobody else can lead


def test_kafkas_own_tools_write_to_a_lab_and_read_it(release: Release) -> None:
    """Which partitions lack a replica, what brokers understand; what 2.0.1 writes, 2.4.1 reads."""
    newer = fetched(RELEASES["2.4"])
    with Lab(brokers=3, generation="2.4", wire=True) as lab:
        lab.create_topic("orders", assignment={0: [1, 2], 1: [3, 1]}, config={"min.insync.replicas": 2})
        until_quiet(lab.create_topic, "bills", assignment={0: [2, 3]})
        servers = lab.bootstrap_servers
        lab.kill(2)
        eventually(lambda: lab.partition("orders", 0).isr == (1,))
        lab.settle()
        topics = ("kafka.admin.TopicCommand", "--bootstrap-server", servers)
        under = run(newer, *topics, "--describe", "--under-replicated-partitions")
        assert [line.split("\t")[1:3] for line in under.splitlines()] == [
            ["Topic: bills", "Partition: 0"],
            ["Topic: orders", "Partition: 0"],
        ]
        versions = run(newer, "kafka.admin.BrokerApiVersionsCommand", "--bootstrap-server", servers)
        assert "AlterPartitionReassignments(45): 0 [usable: 0]" in versions
        run(release, "kafka.tools.ConsoleProducer", "--broker-list", servers, "--topic", "bills", "--sync",
            "--request-required-acks", "-1", given="a\nb\nc\n")  # fmt: skip
        text = run(newer, "kafka.tools.ConsoleConsumer", "--bootstrap-server", servers, "--topic", "bills",
                   "--from-beginning", "--max-messages", "3", "--group", "readers")  # fmt: skip
        assert text.split() == ["a", "b", "c"]
        offsets = run(release, "kafka.tools.GetOffsetShell", "--broker-list", servers, "--topic", "bills")
        assert offsets.split() == ["bills:0:3"]
