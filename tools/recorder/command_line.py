"""Kafka's command line tools, played against real Kafka or a lab: `python -m tools.recorder.command_line`.

It records what the tools of `TOOLS` print when they speak with three brokers of a generation's release, into
`tests/conformance/tools/<generation>/<version of the tools>.txt`. `tests/zookeeper/test_wire_tools.py` plays the same
against a lab and compares the two texts. One JVM runs all tools of a release.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.recorder.cluster import SETTINGS, Cluster, wait
from tools.recorder.release import HERE, RECORDINGS, RELEASES, TOOLS, Release

RECORDED = RECORDINGS / "tools"
LIMIT = 90.0
"""Seconds that a tool may take on a busy machine."""
CLASSES = {
    "topics": ("kafka.admin.TopicCommand", "org.apache.kafka.tools.TopicCommand"),
    "groups": ("kafka.admin.ConsumerGroupCommand", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"),
    "configs": ("kafka.admin.ConfigCommand", "kafka.admin.ConfigCommand"),
    "reassign": (
        "kafka.admin.ReassignPartitionsCommand",
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    ),
    "election": ("kafka.admin.LeaderElectionCommand", "org.apache.kafka.tools.LeaderElectionCommand"),
    "log-dirs": ("kafka.admin.LogDirsCommand", "org.apache.kafka.tools.LogDirsCommand"),
    "delete-records": ("kafka.admin.DeleteRecordsCommand", "org.apache.kafka.tools.DeleteRecordsCommand"),
}
"""The class behind each tool, up to 2.8 and in 3.9."""
WRITE, JOIN, LEAVE = "(five records)", "(a consumer joins)", "(the consumer leaves)"
STEPS = f"""
topics --create --topic orders --replica-assignment 1:2:3,2:3:1
topics --list
topics --create --topic new --replica-assignment 2:3,3:1 --config segment.bytes=1048576
topics --create --topic wrong --partitions 1 --replication-factor 1 --config segment.bytes=1
topics --describe --topic new
topics --describe --topic orders
{WRITE}
{JOIN}
groups --list
groups --describe --group readers
groups --describe --group readers --state
groups --describe --group readers --members --verbose
groups --delete --group readers
groups --delete-offsets --group readers --topic orders
{LEAVE}
groups --reset-offsets --group readers --topic orders --to-earliest --execute
groups --describe --group readers
groups --delete-offsets --group readers --topic orders
groups --delete --group readers
groups --describe --group nobody
configs --alter --entity-type topics --entity-name new --add-config max.message.bytes=2000000
configs --describe --entity-type topics --entity-name new --all
configs --alter --entity-type topics --entity-name new --add-config segment.bytes=1
configs --alter --entity-type topics --entity-name new --add-config nonsense=1
configs --alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=2
configs --alter --entity-type brokers --entity-default --add-config background.threads=2
configs --alter --entity-type brokers --entity-name 1 --add-config broker.id=7
configs --describe --entity-type brokers --entity-name 1
configs --describe --entity-type brokers --entity-name 1 --all
configs --alter --entity-type brokers --entity-name 1 --delete-config log.cleaner.threads
configs --alter --entity-type brokers --entity-default --delete-config background.threads
configs --alter --entity-type broker-loggers --entity-name 1 --add-config kafka.controller=DEBUG
reassign --verify --reassignment-json-file PLAN
election --election-type preferred --topic orders --partition 0
election --election-type preferred --all-topic-partitions
log-dirs --describe --topic-list orders
delete-records --offset-json-file OFFSETS
topics --alter --topic new --partitions 3
topics --delete --topic new
topics --delete --topic orders
"""
"""The steps, in this order: tools with their options, and the acts of a client meanwhile."""
BY_ZOOKEEPER = ("reassign",)
"""Tools of 2.4.1 that reach their cluster by ZooKeeper; its kafka-configs does so for topics only."""
PLANS = {
    "PLAN": {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]},
    "OFFSETS": {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 2}]},
}
"""The files that steps name."""


class Tools:
    """The command line tools of one release, in a JVM of their own; a context manager."""

    def __init__(self, release: Release, folder: Path) -> None:
        self.release, self.folder = release, folder
        self.is_new = release.kafka.startswith("3.")
        for name, plan in PLANS.items():
            (folder / name).write_text(json.dumps(plan), encoding="utf-8")

    def __enter__(self) -> Tools:
        self._log = (self.folder / "tools.err").open("wb")
        self._jvm = subprocess.Popen(
            self.release.java(str(HERE / "kafka" / "Tools.java"), logs=self.folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        try:
            self._jvm.wait(10)
        except subprocess.TimeoutExpired:
            self._jvm.kill()
        self._log.close()

    def run(self, step: str, servers: str, zookeeper: str) -> str:
        """The output of a tool; a last line with the exit status where that is not 0."""
        name, *options = step.split()
        options = [str(self.folder / option) if option in PLANS else option for option in options]
        by_zookeeper = name in BY_ZOOKEEPER or (name == "configs" and options[2] == "topics")
        way = ["--zookeeper", zookeeper] if by_zookeeper and self.release.kafka == "2.4.1" else []
        words = [CLASSES[name][self.is_new], *(way or ["--bootstrap-server", servers]), *options]
        if way and "--all" in words:
            words.remove("--all")
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        self._jvm.stdin.write("\t".join(words) + "\n")
        self._jvm.stdin.flush()
        printed: list[str] = []
        for line in self._jvm.stdout:
            if line.startswith("\0"):
                status = int(line[1:])
                return "".join(printed).strip("\n") + (f"\nexit status {status}" if status else "")
            printed.append(line)
        raise RuntimeError(f"the tools of {self.release.kafka} have ended: {''.join(printed)}")


class Readers:
    """A client between the tools: it writes five records, and is the only member of a group."""

    def __init__(self, servers: str) -> None:
        import kafka

        self._kafka, self.servers = kafka, servers
        self._consumer: Any = None

    def write(self) -> None:
        producer = self._kafka.KafkaProducer(bootstrap_servers=self.servers, acks="all")
        for number in range(5):
            producer.send("orders", str(number).encode(), partition=0).get(timeout=LIMIT)
        producer.close()

    def join(self) -> None:
        """Read all of it, and commit."""
        consumer = self._kafka.KafkaConsumer(
            "orders",
            bootstrap_servers=self.servers,
            group_id="readers",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            client_id="reader",
            metadata_max_age_ms=1000,
        )
        self._consumer, got, end = consumer, 0, time.monotonic() + LIMIT
        while got < 5:
            assert time.monotonic() < end, "the consumer got no records"
            got += sum(map(len, consumer.poll(500).values()))
        consumer.commit()

    def leave(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def played(tools: Tools, servers: str, zookeeper: str) -> Iterator[tuple[str, list[str]]]:
    """Each step that a tool does with the lines that it printed, normalised."""
    client = Readers(servers)
    between = {WRITE: client.write, JOIN: client.join, LEAVE: client.leave}
    try:
        for step in STEPS.strip().splitlines():
            if step in between:
                between[step]()
            else:
                yield step, normal(step, tools.run(step, servers, zookeeper))
    finally:
        client.leave()


STATIC = {
    *SETTINGS, "broker.id", "listeners", "zookeeper.connect", "log.dir", "log.dirs", "replica.fetch.wait.max.ms",
    "offsets.topic.num.partitions", "offsets.topic.replication.factor", "delete.topic.enable",
    "group.initial.rebalance.delay.ms", "zookeeper.session.timeout.ms", "replica.lag.time.max.ms",
}  # fmt: skip
"""The keys that a recorded broker's file sets, and those of a lab's."""
SUBSTITUTES: Sequence[tuple[str, str | Callable[[re.Match[str]], str]]] = (
    (r"127\.0\.0\.1:\d+(?:,127\.0\.0\.1:\d+)*", "HOST"),
    (r"HOST +\(\d\)", "HOST (COORDINATOR)"),
    (r"\b(?:kafka-python|reader)-[\w.-]+", "MEMBER"),
    (r"/[\w/.-]*/(PLAN|OFFSETS)", r"\1"),
    (r'"logDir":"[^"]*"', '"logDir":"DIR"'),
    (r'"size":\d+', '"size":SIZE'),
    (r"TopicId: \S+\s*", ""),
    (r"  +", "  "),
    (r"\bSet\(([\w., ]+)\)", lambda found: f"Set({', '.join(sorted(found[1].split(', ')))})"),
)
"""Parts that differ from run to run: ports, ids of members, folders, sizes; and widths of columns."""
NOISE = re.compile(
    r"^\s*(?:at |\.\.\. \d+|log4j:|SLF4J|WARNING: |Suppressed|Note: |\[\d{4}-)"
    r"|__consumer_offsets|^$|deprecated|^\(kafka\."
)
"""Stack traces, warnings of loggers, and the topic in which real brokers keep groups."""


def normal(step: str, text: str) -> list[str]:
    """The lines of one step without what differs from run to run; sorted, as most tools print sets."""
    for pattern, by in SUBSTITUTES:
        text = re.sub(pattern, by, text)
    lines = [line.rstrip() for line in text.splitlines() if not NOISE.search(line)]
    if step.startswith("log-dirs"):
        lines = [_described(line) if line.startswith("{") else line for line in lines]
    return _comparable(step, sorted(line.strip() for line in lines))


def _comparable(step: str, lines: list[str]) -> list[str]:
    """The lines without settings that are in the file of one broker or the other."""
    is_file = "brokers" in step and "--all" in step
    return [line for line in lines if not is_file or line.split("=")[0] not in STATIC]


def _described(line: str) -> str:
    """The JSON of kafka-log-dirs: the copies of each broker, whatever its directories are."""
    found = json.loads(line.replace(":SIZE", ":0"))
    copies = {
        broker["broker"]: sorted(json.dumps(one) for log_dir in broker["logDirs"] for one in log_dir["partitions"])
        for broker in found["brokers"]
    }
    return json.dumps({str(id): copies[id] for id in sorted(copies)})


def path(generation: str, tools: str) -> Path:
    return RECORDED / generation / f"{tools}.txt"


def read(file: Path) -> list[tuple[str, list[str]]]:
    """The steps of a recording and the lines of each."""
    steps: list[tuple[str, list[str]]] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif line:
            steps[-1][1].append(line.strip())
    return [(step, _comparable(step, lines)) for step, lines in steps]


@contextmanager
def brokers(generation: str) -> Iterator[Cluster]:
    """Three real brokers with one partition for all groups."""
    config = {
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "delete.topic.enable": True,
        "group.initial.rebalance.delay.ms": 0,
    }
    with Cluster(RELEASES[generation], [1, 2, 3], config, directories=1, records=True) as cluster:
        for id, broker in cluster.brokers.items():
            del broker.properties["log.index.size.max.bytes"]  # it would be a setting of every topic
            cluster.start(id)
        yield cluster


def record(generation: str, folder: Path) -> None:
    """Play everything against real Kafka, with the tools of each release, and write the files."""
    with brokers(generation) as cluster:
        for version, release in TOOLS.items():
            with Tools(release, folder) as tools:
                blocks = [
                    f"$ {step}\n" + "".join(f"  {line}\n" for line in lines)
                    for step, lines in played(tools, cluster.bootstrap, cluster.zookeeper.address)
                ]
            file = path(generation, version)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(blocks), encoding="utf-8")
            wait(lambda: not set(cluster.zk.get_children("/brokers/topics")) - {"__consumer_offsets"}, "the deletion")


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generation", choices=list(RELEASES), action="append")
    for generation in parser.parse_args().generation or RELEASES:
        with tempfile.TemporaryDirectory() as folder:
            record(generation, Path(folder))


if __name__ == "__main__":
    main()
