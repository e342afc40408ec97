"""Our controller beside Kafka 2.0.1's: the same controlled shutdown, the same failover, and the same client in need.

Both stand before a real ZooKeeper on this machine. Kafka's times are those of its own log. Needs Java, and Maven for
the first run. Kafka's brokers are three processes with disks and ours are not, so this says that nobody has to wait
for ours, and not that ours would be the better one to have. The client is librdkafka's producer; a leader is killed
that is no controller, and what counts is how long it cannot write with acks=all. Most of that is the session's timeout.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from benchmarks.controller import QUIET, TASKS, cost
from benchmarks.figures import Figure
from kafka_ctl import Lab
from kafka_ctl.extras import needed_for
from kafka_ctl.zookeeper.znodes import ControllerZNode
from tools.recorder.cluster import Cluster, wait
from tools.recorder.release import RELEASES

GENERATION, PARTITIONS, BROKERS, TIMES = "2.0", 1_000, (1, 2, 3), 3
QUICK = {"PARTITIONS": 6, "TIMES": 1}
RELEASE = RELEASES[GENERATION]._replace(
    logging=Path(__file__).with_name("log4j.properties"), options=("-Xmx1g", "-Xms1g")
)
LEAVES = re.compile(
    r"\[(.*?)\] INFO \[KafkaServer id=\d+\] (Starting controlled shutdown|Controlled shutdown succeeded)"
)
TAKES_OVER = re.compile(r"\[(.*?)\] INFO \[Controller id=\d+\] (\d+ successfully elected|Ready to serve) as the")


def between(pattern: re.Pattern[str], log: str) -> float:
    """Seconds from the last but one to the last line that fits. Raises ValueError if there are none."""
    begin, end = [datetime.strptime(found[0], "%Y-%m-%d %H:%M:%S,%f") for found in pattern.findall(log)][-2:]
    return (end - begin).total_seconds()


def in_sync(cluster: Cluster) -> bool:
    """Whether every partition has a leader and all its copies."""
    states = (cluster.read(f"/brokers/topics/orders/partitions/{p}/state") for p in range(PARTITIONS))
    return all(state is not None and len(json.loads(state)["isr"]) == len(BROKERS) for state in states)


def kafka() -> tuple[float, float]:
    """Seconds of a controlled shutdown and of a failover of real Kafka."""
    with Cluster(RELEASE, BROKERS, QUIET) as cluster:
        for broker in BROKERS:
            cluster.start(broker)
        shape = ("--topic", "orders", "--partitions", str(PARTITIONS), "--replication-factor", str(len(BROKERS)))
        cluster.tool("kafka.admin.TopicCommand", "--zookeeper", cluster.zookeeper.address, "--create", *shape)
        wait(lambda: in_sync(cluster), "leaders", limit=300)
        old = ControllerZNode.decode(cluster.read("/controller") or b"")
        leaving = next(broker for broker in BROKERS if broker != old)
        cluster.shutdown(leaving)
        shutdown = between(LEAVES, cluster.brokers[leaving].log("server.log"))
        cluster.start(leaving)
        wait(lambda: in_sync(cluster), "the broker that is back", limit=300)
        cluster.kill(old)
        ready = "Ready to serve as the new controller with epoch 2"
        logs = [cluster.brokers[broker] for broker in cluster.up]
        wait(lambda: any(ready in broker.log("control.log") for broker in logs), "a new controller")
        failover = next(between(TAKES_OVER, log) for broker in logs if ready in (log := broker.log("control.log")))
        return shutdown, failover


def cannot_write(servers: str, kill: Callable[[], object]) -> float:
    """Seconds from `kill()` until a producer has written to `orders-0` again."""
    with needed_for("this benchmark"):
        from confluent_kafka import Producer
    written: list[float] = []
    settings = {"bootstrap.servers": servers, "acks": "all", "log_level": 0, "reconnect.backoff.max.ms": 200}
    producer = Producer(settings | {"retry.backoff.max.ms": 200})
    producer.produce("orders", b"before", partition=0)
    producer.flush()
    kill()
    began = time.perf_counter()
    producer.produce("orders", b"after", partition=0, on_delivery=lambda error, _: written.append(time.perf_counter()))
    producer.flush()
    return written[0] - began


def without_a_leader_here() -> float:
    """The same with a lab of Kafka 2.0 that listens, and a real ZooKeeper."""
    with Lab(brokers=3, generation=GENERATION, wire=True, zookeeper="embedded", config=QUIET) as lab:
        assert lab.controller is not None
        leader, other = (broker for broker in BROKERS if broker != lab.controller.id)
        lab.create_topic("orders", assignment={0: [leader, other]})
        lab.run_until(lambda lab: lab.partition("orders", 0).isr == (leader, other))
        return cannot_write(lab.bootstrap_servers, lambda: lab.kill(leader))


def without_a_leader_there() -> float:
    """The same with three processes of Kafka 2.0.1."""
    with Cluster(RELEASE, BROKERS, QUIET) as cluster:
        for broker in BROKERS:
            cluster.start(broker)
        controller = ControllerZNode.decode(cluster.read("/controller") or b"")
        leader, other = (broker for broker in BROKERS if broker != controller)
        shape = ("--topic", "orders", "--replica-assignment", f"{leader}:{other}")
        cluster.tool("kafka.admin.TopicCommand", "--zookeeper", cluster.zookeeper.address, "--create", *shape)
        wait(lambda: cluster.read("/brokers/topics/orders/partitions/0/state") is not None, "a leader")
        servers = ",".join(str(each.properties["listeners"]).rpartition("/")[2] for each in cluster.brokers.values())
        return cannot_write(servers, lambda: cluster.brokers[leader].end())


def measure() -> Iterator[Figure]:
    try:
        RELEASE.resolve()
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        yield Figure("the controller beside Kafka 2.0.1", "not measured", str(error))
        return
    in_turn = [(without_a_leader_here(), without_a_leader_there()) for _ in range(TIMES)]
    ours, theirs = zip(*in_turn, strict=True)
    for name, runs in (("a lab", ours), ("Kafka 2.0.1", theirs)):
        spread = (
            f"median of {TIMES}, {min(runs):.1f} to {max(runs):.1f} s; 6 s of it at least are the session's timeout"
        )
        yield Figure(
            f"a client cannot write after its leader's death: {name}", f"{statistics.median(runs):.1f} s", spread
        )
    shutdown = TASKS[2]
    failover = TASKS[1]._replace(begins=lambda r: r.kind == "controller" and r.action == "elected")
    for task, theirs in zip((shutdown, failover), kafka(), strict=True):
        ours = cost(task, GENERATION, PARTITIONS, "embedded").seconds
        beside = f"ours {ours:.2f} s, Kafka 2.0.1 {theirs:.2f} s; aim: below 1"
        yield Figure(f"{task.name}, {PARTITIONS:,} partitions, a real ZooKeeper", f"ratio {ours / theirs:.2f}", beside)
