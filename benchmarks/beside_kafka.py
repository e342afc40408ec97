"""Our controller beside Kafka 2.0.1's: the same controlled shutdown and the same failover, one after the other.

Both stand before a real ZooKeeper on this machine. Kafka's times are those of its own log. Needs Java, and Maven for
the first run. Kafka's brokers are three processes with disks and ours are not, so this says that nobody has to wait
for ours, and not that ours would be the better one to have.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from benchmarks.controller import QUIET, TASKS, cost
from benchmarks.figures import Figure
from kafka_ctl.zookeeper.znodes import ControllerZNode
from tests.conformance.cluster import Cluster, wait
from tests.conformance.release import RELEASES

GENERATION, PARTITIONS, BROKERS = "2.0", 1_000, (1, 2, 3)
QUICK = {"PARTITIONS": 6}
RELEASE = RELEASES[GENERATION]._replace(
    logging=Path(__file__).with_name("log4j.properties"), options=("-Xmx1g", "-Xms1g")
)
LEAVES = re.compile(
    r"\[(.*?)\] INFO \[KafkaServer id=\d+\] (Starting controlled shutdown|Controlled shutdown succeeded)"
)
TAKES_OVER = re.compile(r"\[(.*?)\] INFO \[Controller id=\d+\] (\d+ successfully elected|Ready to serve) as the")


def between(pattern: re.Pattern[str], log: str) -> float:
    """Seconds from the last but one to the last line that fits; ValueError when there are none."""
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


def measure() -> Iterator[Figure]:
    try:
        RELEASE.resolve()
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        yield Figure("the controller beside Kafka 2.0.1", "not measured", str(error))
        return
    shutdown = TASKS[2]
    failover = TASKS[1]._replace(begins=lambda r: r.kind == "controller" and r.action == "elected")
    for task, theirs in zip((shutdown, failover), kafka(), strict=True):
        ours = cost(task, GENERATION, PARTITIONS, "embedded").seconds
        beside = f"ours {ours:.2f} s, Kafka 2.0.1 {theirs:.2f} s; aim: below 1"
        yield Figure(f"{task.name}, {PARTITIONS:,} partitions, a real ZooKeeper", f"ratio {ours / theirs:.2f}", beside)
