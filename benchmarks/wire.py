"""Records a second through a lab's broker with real clients, and damaged requests that brokers survive.

Needs kafka-python and kcat; `FUZZ` is in seconds for each generation.
"""

from __future__ import annotations

import multiprocessing
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator

from benchmarks.figures import Figure
from kafka_ctl import Lab
from kafka_ctl.errors import Unavailable
from kafka_ctl.extras import needed_for
from kafka_ctl.generation import GENERATIONS
from tests.wire_fuzz import crashes, fuzz

RECORDS, TIMES, FUZZ, SIZE = 100_000, 3, 60.0, 100
COPIES = {1: "1 copy", 3: "3 copies"}
"""The numbers of brokers, each of which has a copy, in words."""
QUICK = {"RECORDS": 500, "TIMES": 1, "FUZZ": 1.0}


def lab_with_topic(brokers: int) -> Lab:
    """A lab that listens, with a topic of one partition on all brokers."""
    lab = Lab(brokers=brokers, wire=True)
    lab.create_topic("orders", partitions=1, replication_factor=brokers)
    lab.settle()
    return lab


def with_kafka_python(servers: str, records: int | None = None) -> tuple[float, float]:
    """Records a second that kafka-python produces to an empty `orders-0` with acks=all, and then consumes."""
    records = records or RECORDS  # given to a Python of its own, which does not know what `--quick` changes here
    with needed_for("this benchmark"):
        from kafka import KafkaConsumer, KafkaProducer
    producer = KafkaProducer(bootstrap_servers=servers.split(","), acks="all", linger_ms=5)
    producer.partitions_for("orders")
    began = time.perf_counter()
    for _ in range(records):
        producer.send("orders", bytes(SIZE))
    producer.flush()
    produced = records / (time.perf_counter() - began)
    producer.close()
    # Metadata often: kafka-python 3.0.12 loses a topic that it is given while it asks for metadata the first time.
    begin = {"auto_offset_reset": "earliest", "metadata_max_age_ms": 1000}
    consumer = KafkaConsumer("orders", bootstrap_servers=servers.split(","), **begin)
    left, began = records, time.perf_counter()
    while left > 0:
        left -= sum(map(len, consumer.poll(1000).values()))
    consumed = records / (time.perf_counter() - began)
    consumer.close()
    return produced, consumed


def with_kafka_python_beside(servers: str) -> tuple[float, float]:
    """The same from a Python of its own, as a program beside a notebook does: a Python runs one thread at a time."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(with_kafka_python, (servers, RECORDS))


def with_kcat(servers: str) -> tuple[float, float]:
    """The same with kcat, its start and end included. Raises Unavailable if kcat is not installed."""
    program = shutil.which("kcat")
    if program is None:
        raise Unavailable("kcat is not installed")
    command = [program, "-b", servers, "-t", "orders", "-X", "acks=all"]
    lines = ("x" * SIZE + "\n") * RECORDS
    began = time.perf_counter()
    subprocess.run([*command, "-P"], input=lines, text=True, check=True, capture_output=True)
    produced = RECORDS / (time.perf_counter() - began)
    began = time.perf_counter()
    at_once = ["-X", "fetch.wait.max.ms=10"]  # or its last fetch, which finds nothing, waits for half a second
    found = subprocess.run([*command, *at_once, "-C", "-e", "-q"], check=True, capture_output=True).stdout
    assert len(found) == len(lines)
    return produced, RECORDS / (time.perf_counter() - began)


CLIENTS = {
    "kafka-python": with_kafka_python_beside,
    "kafka-python in the lab's own Python": with_kafka_python,
    "kcat": with_kcat,
}


def through_a_lab(client: str, brokers: int) -> tuple[float, float]:
    """Records a second produced and consumed through a new lab of so many brokers."""
    with lab_with_topic(brokers) as lab:
        return CLIENTS[client](lab.bootstrap_servers)


def failover() -> tuple[float, float]:
    """Seconds from an election until a client knows the new leader, and from the kill until it has written again."""
    with needed_for("this benchmark"):
        from confluent_kafka import Producer
    with Lab(brokers=3, wire=True) as lab:
        controller = lab.controller
        assert controller is not None
        lab.create_topic("orders", assignment={0: [broker for broker in (1, 2, 3) if broker != controller.id]})
        lab.settle()
        settings = {"bootstrap.servers": lab.bootstrap_servers, "acks": "all", "log_level": 0}
        producer = Producer(settings | {"reconnect.backoff.max.ms": 200, "retry.backoff.max.ms": 200})
        written: list[float] = []
        producer.produce("orders", b"x")
        producer.flush()
        before, after = lab.partition("orders", 0).replicas
        size, began = len(lab.trace), time.perf_counter()
        lab.kill(before)
        producer.produce("orders", b"x", on_delivery=lambda *_: written.append(time.perf_counter()))
        watching = Producer(settings)
        while watching.list_topics("orders", timeout=10).topics["orders"].partitions[0].leader != after:
            time.sleep(0.005)
        seen = lab.now * 1000
        elected = lab.trace.slice(size, kind="election", topic="orders")[0].time_ms
        producer.flush()
        return (seen - elected) / 1000, written[0] - began


def survive(generation: str) -> int:
    """Send damaged requests to a lab; returns how many. ConditionNotMet where the lab is not sound afterwards."""
    with Lab(brokers=3, generation=generation, wire=True) as lab:
        lab.create_topic("orders", partitions=2, replication_factor=3)
        lab.settle()
        sent = fuzz(lab, FUZZ, seed=14)
        lab.settle()
        assert not crashes(lab), crashes(lab)[0]
        return sent


def measure() -> Iterator[Figure]:
    for brokers, copies in COPIES.items():
        for name in CLIENTS:
            try:
                runs = [through_a_lab(name, brokers) for _ in range(TIMES)]
            except Unavailable as missing:
                yield Figure(f"records a second with {name}", "not measured", str(missing))
                continue
            for what, rates in zip(("produced", "consumed"), zip(*runs, strict=True), strict=True):
                rate = f"{statistics.median(rates):,.0f} a second"
                yield Figure(f"records of {SIZE} bytes {what} with {name}", rate, f"{copies}, acks=all")
    runs = [failover() for _ in range(TIMES)]
    seen, written = map(statistics.median, zip(*runs, strict=True))
    yield Figure("from an election until a client knows the new leader", f"{seen * 1000:.0f} ms", "aim: under 1 s")
    session = "of it up to 8 s until ZooKeeper gives the session up"
    yield Figure("from a leader's death until a client has written again", f"{written:.1f} s", session)
    for generation in GENERATIONS:
        yield Figure(f"damaged requests in {FUZZ:g} s, Kafka {generation}", f"{survive(generation):,}", "crashes: none")
