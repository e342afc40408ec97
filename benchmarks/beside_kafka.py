"""Our controller beside those of Kafka 2.0.1 and 2.4.1: controlled shutdown, failover, and a client without a leader.

Both stand before a real ZooKeeper on this machine. Kafka's times are those of its own log. Needs Java, and Maven for
the first run. One cluster of Kafka does both tasks again and again; its first round warms up its Java and is not
counted. A lab is made anew for each task, in one Python. Kafka's brokers are three processes with disks and ours are
not, so this says that a learner need not wait for ours, and not that ours would be the better one to have. The client
is librdkafka's producer; a leader is killed that is no controller, and what counts is how long it cannot write with
acks=all. Most of that is the session's timeout.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from benchmarks import wire
from benchmarks.controller import QUIET, TASKS, cost
from benchmarks.figures import Figure
from kafka_ctl import Lab
from kafka_ctl.errors import Unavailable
from kafka_ctl.extras import needed_for
from kafka_ctl.zookeeper.znodes import ControllerZNode
from tools.recorder.cluster import Cluster, wait
from tools.recorder.release import RELEASES, Release

GENERATION, BROKERS, TIMES, WARM_UP = "2.0", (1, 2, 3), 3, 1
RATES = tuple(wire.COPIES)
"""The numbers of copies with which records are produced and consumed."""
COMPARED = (("2.0", 1_000, 5), ("2.4", 1_000, 5), ("2.0", 10_000, 2))
"""The generations and numbers of partitions that are compared, and how often each."""
QUICK = {"COMPARED": (("2.0", 6, 1),), "TIMES": 1, "RATES": (), "WARM_UP": 0}
LEAVES = re.compile(
    r"^\[(.{23})\] INFO \[KafkaServer id=\d+\] (?:Starting controlled shutdown|Controlled shutdown succeeded)",
    re.MULTILINE,
)
TAKES_OVER = re.compile(
    r"^\[(.{23})\] INFO \[Controller id=\d+\] (?:\d+ successfully elected|Ready to serve) as the", re.MULTILINE
)


def between(pattern: re.Pattern[str], log: str) -> float:
    """Seconds from the last but one to the last line that fits. Raises ValueError if there are none."""
    begin, end = [datetime.strptime(found, "%Y-%m-%d %H:%M:%S,%f") for found in pattern.findall(log)][-2:]
    return (end - begin).total_seconds()


def release(generation: str) -> Release:
    """A release of Kafka with more memory than small stories need."""
    logging = Path(__file__).with_name("log4j.properties")
    return RELEASES[generation]._replace(logging=logging, options=("-Xmx1g", "-Xms1g"))


@contextmanager
def started(generation: str) -> Iterator[Cluster]:
    """A cluster of real Kafka whose brokers run."""
    with Cluster(release(generation), BROKERS, QUIET) as cluster:
        for broker in BROKERS:
            cluster.start(broker)
        yield cluster


def command_topic(cluster: Cluster, *arguments: str) -> None:
    """Run Kafka's tool for the topic `orders`, as in `command_topic(cluster, "--delete")`."""
    address = cluster.zookeeper.address
    cluster.tool("kafka.admin.TopicCommand", "--zookeeper", address, "--topic", "orders", *arguments)


def create_topic(cluster: Cluster, partitions: int, copies: int) -> None:
    """Create `orders`, and wait until each partition has a leader and all its copies."""
    shape = ("--partitions", str(partitions), "--replication-factor", str(copies))
    command_topic(cluster, "--create", *shape)
    wait(lambda: in_sync(cluster, partitions, copies), "leaders", limit=600)


def in_sync(cluster: Cluster, partitions: int, copies: int) -> bool:
    """True if every partition has a leader and all its copies."""
    states = (cluster.read(f"/brokers/topics/orders/partitions/{p}/state") for p in range(partitions))
    return all(state is not None and len(json.loads(state)["isr"]) == copies for state in states)


def kafka(generation: str, partitions: int, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of each controlled shutdown and of each failover of real Kafka."""
    shutdowns, failovers = [], []
    with started(generation) as cluster:
        create_topic(cluster, partitions, len(BROKERS))
        for left in reversed(range(WARM_UP + rounds)):
            controller = ControllerZNode.decode(cluster.read("/controller") or b"")
            leaving = next(broker for broker in BROKERS if broker != controller)
            cluster.shutdown(leaving)
            shutdowns.append(between(LEAVES, cluster.brokers[leaving].log("server.log")))
            cluster.start(leaving)
            wait(lambda: in_sync(cluster, partitions, len(BROKERS)), "the broker that is back", limit=600)
            failovers.append(failover(cluster, controller))
            if left:
                cluster.start(controller)
                wait(lambda: in_sync(cluster, partitions, len(BROKERS)), "the old controller that is back", limit=600)
    return shutdowns[WARM_UP:], failovers[WARM_UP:]


def failover(cluster: Cluster, controller: int) -> float:
    """Kill the controller; the seconds that the next one needs from its election until it is ready."""
    ready = f"Ready to serve as the new controller with epoch {int(cluster.read('/controller_epoch') or 0) + 1}"
    cluster.kill(controller)
    logs = [cluster.brokers[broker] for broker in cluster.up]
    wait(lambda: any(ready in broker.log("control.log") for broker in logs), "a new controller", limit=600)
    return next(between(TAKES_OVER, log) for broker in logs if ready in (log := broker.log("control.log")))


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
    with started(GENERATION) as cluster:
        controller = ControllerZNode.decode(cluster.read("/controller") or b"")
        leader, other = (broker for broker in BROKERS if broker != controller)
        command_topic(cluster, "--create", "--replica-assignment", f"{leader}:{other}")
        wait(lambda: cluster.read("/brokers/topics/orders/partitions/0/state") is not None, "a leader")
        return cannot_write(cluster.bootstrap, lambda: cluster.brokers[leader].end())


def measure() -> Iterator[Figure]:
    try:
        for generation in {GENERATION, *(each for each, *_ in COMPARED)}:
            release(generation).resolve()
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        yield Figure("the controller beside Kafka", "not measured", str(error))
        return
    in_turn = [(without_a_leader_here(), without_a_leader_there()) for _ in range(TIMES)]
    ours, theirs = zip(*in_turn, strict=True)
    for name, runs in (("a lab", ours), ("Kafka 2.0.1", theirs)):
        beside = f"median of {TIMES}, {spread(list(runs))}; 6 s of it at least are the session's timeout"
        yield Figure(
            f"a client cannot write after its leader's death: {name}", f"{statistics.median(runs):.1f} s", beside
        )
    for copies in RATES:
        yield from rates(copies)
    for generation, partitions, rounds in COMPARED:
        yield from compared(generation, partitions, rounds)


def through_kafka(client: str, copies: int) -> list[tuple[float, float]]:
    """Records a second produced and consumed through Kafka, after one turn that warms up its Java."""
    runs = []
    with started(GENERATION) as cluster:
        for _ in range(1 + TIMES):
            create_topic(cluster, 1, copies)
            runs.append(wire.CLIENTS[client](cluster.bootstrap))
            command_topic(cluster, "--delete")
            wait(lambda: cluster.read("/brokers/topics/orders") is None, "deletion")
    return runs[1:]


def rates(copies: int) -> Iterator[Figure]:
    """Records a second through a lab, as a multiple of those through Kafka 2.0.1."""
    for client in wire.CLIENTS:
        try:
            here = [wire.through_a_lab(client, copies) for _ in range(TIMES)]
        except Unavailable as missing:
            yield Figure(f"records a second with {client}", "not measured", str(missing))
            continue
        there = through_kafka(client, copies)
        for place, (what, aim) in enumerate((("produced", 1.0), ("consumed", 1.2))):
            ours, theirs = (statistics.median(run[place] for run in runs) for runs in (here, there))
            name = f"records {what} with {client}, {wire.COPIES[copies]}, beside Kafka 2.0.1"
            yield Figure(
                name, f"ratio {ours / theirs:.2f}", f"ours {ours:,.0f}, Kafka {theirs:,.0f} a second; aim: {aim}"
            )


def compared(generation: str, partitions: int, rounds: int) -> Iterator[Figure]:
    """The ratios of the medians, with medians and spread of both."""
    takeover = TASKS[1]._replace(begins=lambda r: r.kind == "controller" and r.action == "elected")
    runs = kafka(generation, partitions, rounds)
    for (task, aim), theirs in zip(((TASKS[2], 0.5), (takeover, 0.8)), runs, strict=True):
        ours = [cost(task, generation, partitions, "embedded", QUIET).seconds for _ in range(rounds)]
        version = release(generation).kafka
        name = f"{task.name}, {partitions:,} partitions, beside Kafka {version} on a real ZooKeeper"
        ratio = statistics.median(ours) / statistics.median(theirs)
        yield Figure(name, f"ratio {ratio:.2f}", f"ours {spread(ours)}, Kafka {spread(theirs)}; aim: {aim}")


def spread(runs: list[float]) -> str:
    return f"{statistics.median(runs):.2f} s ({min(runs):.2f} to {max(runs):.2f})"
