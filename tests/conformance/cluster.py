"""A cluster of real Kafka brokers on this machine: processes on loopback, and a real ZooKeeper beside them.

Everything lives in one temporary folder. Nothing waits for a fixed time: `wait` looks until a condition holds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka_ctl.zookeeper.server import EmbeddedServer
from tests.conformance.release import HERE, Release

SESSION_SECONDS = 6.0
"""Kafka's default for `zookeeper.session.timeout.ms`."""

LIMIT = 120.0
"""Seconds that any condition may take to hold."""

SETTINGS = {
    "num.network.threads": 1,
    "num.io.threads": 2,
    "background.threads": 1,
    "num.recovery.threads.per.data.dir": 1,
    "log.cleaner.enable": "false",
    "log.index.size.max.bytes": 65536,
    "auto.create.topics.enable": "false",
    "zookeeper.connection.timeout.ms": 30000,
}
"""Small brokers; nothing here changes what a controller does."""

FETCH_WAIT = 5000
"""Milliseconds a follower's fetch waits for messages (by default 500), so that few fall into a controlled shutdown.

Not in 0.10, where a broker that is to stop a replica waits until the fetch has returned.
"""


def wait(holds: Callable[[], bool], what: str, limit: float = LIMIT) -> None:
    """Return when `holds()`; RuntimeError, naming `what`, when it does not within `limit` seconds."""
    deadline = time.monotonic() + limit
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {limit:g} s in vain for {what}")
        time.sleep(0.05)


class Process:
    """One broker: its configuration, its folder, and its process while it runs."""

    def __init__(self, id: int, folder: Path, properties: Mapping[str, Any]) -> None:
        self.id, self.folder = id, folder
        self.running = self.paused = False
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        lines = [f"{key}={value}\n" for key, value in sorted(properties.items())]
        (folder / "server.properties").write_text("".join(lines), encoding="ascii")

    def start(self, release: Release) -> None:
        command = release.java("kafka.Kafka", str(self.folder / "server.properties"), logs=self.folder)
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.running = True

    def send(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def end(self, number: int = signal.SIGKILL) -> None:
        """Send a signal that ends the process, and wait until it has ended."""
        if self._process is not None and self._process.poll() is None:
            if self.paused:
                self.send(signal.SIGCONT)
            self.send(number)
            self._process.wait(LIMIT)
        self.running = self.paused = False

    @property
    def died(self) -> bool:
        """Whether it ended without having been asked to."""
        return self.running and self._process is not None and self._process.poll() is not None

    def log(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def times_ready(self) -> int:
        """How often its log says that it has started."""
        return self.log("server.log").count(" started (kafka.server.KafkaServer)")


class Cluster:
    """ZooKeeper and the brokers of one story; a context manager that leaves nothing behind."""

    def __init__(self, release: Release, brokers: Sequence[int], config: Mapping[str, Any]) -> None:
        self.release = release
        self.folder = Path(tempfile.mkdtemp(prefix="kafka-ctl-conformance-"))
        self.zookeeper = EmbeddedServer()
        self._ids, self._config = list(brokers), config
        self.brokers: dict[int, Process] = {}

    def __enter__(self) -> Cluster:
        from kazoo.client import KazooClient

        try:
            self.zookeeper.start()
            self.zk = KazooClient(self.zookeeper.address)
            self.zk.start(timeout=30)
            for id, port in zip(self._ids, _free_ports(len(self._ids)), strict=True):
                self.brokers[id] = Process(id, self.folder / str(id), self._properties(id, port))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers.values():
            broker.end()
        if hasattr(self, "zk"):
            self.zk.stop()
            self.zk.close()
        self.zookeeper.stop()
        if os.environ.get("KEEP_LOGS"):
            print(f"logs are in {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _properties(self, id: int, port: int) -> dict[str, Any]:
        told = {k: str(v).lower() if isinstance(v, bool) else v for k, v in self._config.items()}
        longest = min(FETCH_WAIT, self._config.get("replica.lag.time.max.ms", 2 * FETCH_WAIT) // 2)
        longest = 500 if self.release.generation == "0.10" else longest
        return (
            SETTINGS
            | told
            | {
                "broker.id": id,
                "replica.fetch.wait.max.ms": longest,
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "zookeeper.connect": self.zookeeper.address,
                "log.dirs": str(self.folder / str(id) / "data"),
            }
        )

    @property
    def up(self) -> list[int]:
        """The brokers whose processes run and are not paused."""
        return [id for id, b in self.brokers.items() if b.running and not b.paused]

    # Brokers

    def start(self, id: int) -> None:
        """Start a broker and wait until it says that it has started."""
        broker = self.brokers[id]
        before = broker.times_ready()
        broker.start(self.release)
        wait(lambda: broker.died or broker.times_ready() > before, f"broker {id} to start")
        if broker.died:
            raise RuntimeError(
                f"broker {id} did not start: {broker.log('server.log')[-2000:]}{broker.log('output')[-2000:]}"
            )

    def kill(self, id: int, bystanders: Sequence[int] = ()) -> None:
        """kill -9, then wait until its session is over; `bystanders` stand still in the moment when it is."""
        self.brokers[id].end(signal.SIGKILL)
        if bystanders:
            half = time.monotonic() + SESSION_SECONDS / 2
            wait(lambda: time.monotonic() > half, "half a session")
            for other in bystanders:
                self.pause(other)
            wait(lambda: id not in self.registered() and self.read("/controller") is not None, "a new controller")
            for other in bystanders:
                self.resume(other)
        self._wait_unregistered(id)

    def shutdown(self, id: int) -> None:
        """SIGTERM: the broker leaves by controlled shutdown."""
        self.brokers[id].end(signal.SIGTERM)
        self._wait_unregistered(id)

    def _wait_unregistered(self, id: int) -> None:
        wait(lambda: id not in self.registered(), f"broker {id} to leave /brokers/ids")

    def pause(self, id: int) -> None:
        self.brokers[id].send(signal.SIGSTOP)
        self.brokers[id].paused = True

    def resume(self, id: int) -> None:
        self.brokers[id].send(signal.SIGCONT)
        self.brokers[id].paused = False

    def registered(self) -> list[int]:
        """The brokers under `/brokers/ids`."""
        return sorted(map(int, self.children("/brokers/ids")))

    # ZooKeeper

    def read(self, path: str) -> bytes | None:
        """The data of a znode; None when there is none."""
        from kazoo.exceptions import NoNodeError

        try:
            return self.zk.get(path)[0]
        except NoNodeError:
            return None

    def children(self, path: str) -> list[str]:
        from kazoo.exceptions import NoNodeError

        try:
            return sorted(self.zk.get_children(path))
        except NoNodeError:
            return []

    def tree(self, path: str = "") -> dict[str, tuple[bytes, int]]:
        """{path: (data, version)} of everything below `path`."""
        from kazoo.exceptions import NoNodeError

        found: dict[str, tuple[bytes, int]] = {}
        for name in self.children(path or "/"):
            child = f"{path}/{name}"
            try:
                data, stat = self.zk.get(child)
            except NoNodeError:
                continue
            found |= {child: (data or b"", stat.version), **self.tree(child)}
        return found

    # Tools

    def tool(self, main: str, *arguments: str, stdin: str = "") -> str:
        """Run one of Kafka's own tools by the name of its main class; what it printed."""
        return self._run(self.release.java(main, *arguments, logs=self.folder), stdin)

    def source(self, name: str, *arguments: str) -> str:
        """Run a Java source file of ours against the release's classes; what it printed."""
        return self._run(self.release.java(str(HERE / "kafka" / name), *arguments, logs=self.folder))

    def _run(self, command: list[str], stdin: str = "") -> str:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def write_json(self, name: str, content: Any) -> str:
        """A file for a tool; its path."""
        path = self.folder / name
        path.write_text(json.dumps(content), encoding="ascii")
        return str(path)

    @property
    def bootstrap(self) -> str:
        """Where the running brokers listen."""
        from kafka_ctl.zookeeper.znodes import BrokerIdZNode

        found = [BrokerIdZNode.decode(self.read(BrokerIdZNode.path(id)) or b"", id) for id in self.up]
        return ",".join(f"{b.host}:{b.port}" for b in found)


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
