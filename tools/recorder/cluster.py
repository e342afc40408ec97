"""A cluster of real Kafka brokers on this machine: processes on loopback, and a real ZooKeeper beside them.

Everything lives in one temporary folder. Nothing waits for a fixed time: `wait` looks until a condition holds.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from kafka_ctl.zookeeper.real.server import EmbeddedServer
from tools.recorder.proxy import Proxy, owner
from tools.recorder.release import HERE, Release

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
    "replica.high.watermark.checkpoint.interval.ms": 500,
}
"""Small brokers; nothing here changes what a controller does. High watermarks are written soon, as the kit's are."""

ZOOKEEPER = "zookeeper"
"""The other end of a broker's connection that is no broker."""

FATAL = (
    r"^(?:kafka\.common\.|org\.apache\.zookeeper\.KeeperException\$)(\w+)Exception"
    r"|^java\.lang\.RuntimeException: A broker is already registered on the path"
)


class DidNotStart(RuntimeError):
    """A broker has ended while it started; `why` is Kafka's exception."""

    def __init__(self, id: int, why: str, log: str) -> None:
        super().__init__(f"broker {id} did not start: {log}")
        self.id, self.why = id, why


class SessionLost(RuntimeError):
    """A bystander has lost its session, which no story asks for: the recording is worthless."""


SMALL = "4m"
"""The size of a log directory that is to be filled."""
FILLER = "filler"
"""The file that fills it."""

FETCH_WAIT = 5000
"""Milliseconds a follower's fetch waits for messages (by default 500), so that few fall into a controlled shutdown.

Not in 0.10, where a broker that is to stop a replica waits until the fetch has returned.
"""


def wait(holds: Callable[[], bool], what: str, limit: float = LIMIT) -> None:
    """Return when `holds()`; RuntimeError, naming `what`, when it does not within `limit` seconds."""
    deadline = time.monotonic() + limit
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {limit:g} s still no {what}")
        time.sleep(0.05)


class Process:
    """One broker: its configuration, its folder, and its process while it runs."""

    def __init__(self, id: int, folder: Path, properties: Mapping[str, Any]) -> None:
        self.id, self.folder, self.properties = id, folder, dict(properties)
        self.running = self.paused = False
        self.failed: set[Path] = set()
        """The log directories that have failed."""
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()

    @property
    def directories(self) -> list[Path]:
        """The log directories; one that has failed is full, or it is a file now and its content lies beside it."""
        return [Path(name) for name in self.properties["log.dirs"].split(",")]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def fail_directory(self) -> None:
        """Let the first log directory that works fail: it is filled if it is a file system of its own; otherwise a file
        stands in its place. In both cases Kafka's next write fails."""
        directory = next(each for each in self.directories if each not in self.failed)
        self.failed.add(directory)
        if not directory.is_mount():
            directory.rename(_aside(directory))
            directory.touch()
            return
        with (directory / FILLER).open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(bytes(512))

    def content(self, directory: Path) -> Path:
        """The place of the content of a log directory, also when it has failed."""
        return _aside(directory) if directory.is_file() else directory

    def repair(self) -> None:
        """Let all directories work again, as at the next start."""
        for directory in self.failed:
            if directory.is_file():
                directory.unlink()
                _aside(directory).rename(directory)
            (directory / FILLER).unlink(missing_ok=True)
        self.failed.clear()

    def start(self, release: Release) -> None:
        self.repair()
        lines = [f"{key}={value}\n" for key, value in sorted(self.properties.items())]
        (self.folder / "server.properties").write_text("".join(lines), encoding="utf-8")
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
        """True if it ended without having been asked to."""
        return self.running and self._process is not None and self._process.poll() is not None

    def log(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def why_ended(self) -> str:
        """The exception that its log last names as fatal, without `Exception`; 0.10 has only a text for a taken id."""
        fatal = re.findall(FATAL, self.log("server.log"), re.MULTILINE)
        return next((word or "NodeExists" for word in reversed(fatal)), "")

    def times_ready(self) -> int:
        """The number of times that its log says that it has started."""
        return self.log("server.log").count(" started (kafka.server.KafkaServer)")


class Cluster:
    """ZooKeeper and the brokers of one story; a context manager that leaves nothing behind."""

    def __init__(
        self,
        release: Release,
        brokers: Sequence[int] | Mapping[int, str | None],
        config: Mapping[str, Any],
        *,
        directories: int = 1,
        cuts: bool = False,
        records: bool = False,
        small: bool = False,
    ) -> None:
        """`directories`: how many log directories a broker has; `cuts`: whether its connections can be cut; `records`:
        whether followers are to hear soon of records and high watermarks; `small`: whether log directories can be
        filled, as each is a file system of its own (which only root can make)."""
        self.release = release
        self.folder = Path(tempfile.mkdtemp(prefix="kafka-ctl-conformance-"))
        self.zookeeper = EmbeddedServer()
        self._racks: dict[int, str | None] = dict(brokers if isinstance(brokers, Mapping) else dict.fromkeys(brokers))
        self.config, self._directories, self._cuts, self.records = config, directories, cuts, records
        self._small = small
        self.brokers: dict[int, Process] = {}
        self._proxies: dict[Any, Proxy] = {}
        """By broker the one before its port, and by (broker, ZOOKEEPER) the one on its way to ZooKeeper."""
        self.zookeeper_up = True
        self.cut_off: set[int] = set()
        """Brokers that are cut from ZooKeeper: they are not registered, and may go on as followers or not."""
        self.apart: set[tuple[int, int]] = set()
        """Pairs of brokers that are cut from each other, in both orders: neither follows the other for long."""
        self.stood: dict[int, tuple[int, int | None]] = {}
        """The process and session of each bystander before it stood still."""
        self.pauses: dict[int, float] = {}
        """The times at which brokers go on that stand still for a while."""

    def __enter__(self) -> Cluster:
        from kazoo.client import KazooClient

        try:
            self.zookeeper.start()
            self.zk = KazooClient(self.zookeeper.address)
            self.zk.start(timeout=30)
            for id, port in zip(self._racks, _free_ports(len(self._racks)), strict=True):
                self._add(id, port, self._racks[id])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers.values():
            broker.end()
            for directory in broker.directories:
                if directory.is_mount():
                    subprocess.run(["umount", str(directory)], check=False)
        for proxy in self._proxies.values():
            proxy.close()
        if hasattr(self, "zk"):
            self.zk.stop()
            self.zk.close()
        self.zookeeper.stop()
        if os.environ.get("KEEP_LOGS"):
            print(f"logs are in {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def properties(self, id: int, port: int, rack: str | None, folder: Path) -> dict[str, Any]:
        reported = {k: str(v).lower() if isinstance(v, bool) else v for k, v in self.config.items()}
        longest = min(FETCH_WAIT, self.config.get("replica.lag.time.max.ms", 2 * FETCH_WAIT) // 2)
        longest = 500 if self.release.generation == "0.10" or self.records else longest
        names = ["data"] if self._directories == 1 else [f"d{number}" for number in range(self._directories)]
        own: dict[str, Any] = {"broker.id": id} if id >= 0 else {}
        own |= {"broker.rack": rack} if rack else {}
        zookeeper = self.zookeeper.address
        if self._cuts:
            self._proxies[id] = Proxy(port, self._whose)
            self._proxies[id, ZOOKEEPER] = way = Proxy(self.zookeeper.port, lambda *_: id)
            own["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{self._proxies[id].port}"
            zookeeper = f"127.0.0.1:{way.port}"
        return (
            SETTINGS
            | reported
            | {
                "replica.fetch.wait.max.ms": longest,
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "zookeeper.connect": zookeeper,
                "log.dirs": ",".join(str(folder / name) for name in names),
            }
            | own
        )

    def _whose(self, near: int, far: int) -> Any:
        return owner(near, far, {id: broker.pid for id, broker in self.brokers.items() if broker.running})

    def add(self, id: int, rack: str | None = None) -> None:
        """One more broker, not started yet; an id below 0 keeps the place of one that ZooKeeper gives out."""
        self._add(id, _free_ports(1)[0], rack)

    def _add(self, id: int, port: int, rack: str | None) -> None:
        folder = self.folder / (str(id) if id >= 0 else f"unnamed{len(self.brokers)}")
        self.brokers[id] = broker = Process(id, folder, self.properties(id, port, rack, folder))
        for directory in broker.directories if self._small else ():
            directory.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(directory)], check=True)

    def rename(self, id: int) -> int:
        """Call a broker by the id that it has found for itself; returns it."""
        broker = self.brokers[id]
        logged = broker.directories[0] / "meta.properties"
        found = dict(line.partition("=")[::2] for line in logged.read_text(encoding="utf-8").splitlines())["broker.id"]
        broker.id = int(found)
        self.brokers = {each.id: each for each in self.brokers.values()}
        return broker.id

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
            broker.end()
            raise DidNotStart(id, broker.why_ended(), broker.log("server.log")[-2000:] + broker.log("output")[-2000:])

    def kill(self, id: int, bystanders: Sequence[int] = ()) -> None:
        """kill -9, then wait until its session is over; `bystanders` stand still in the moment when it is."""
        self.brokers[id].end(signal.SIGKILL)
        self.outlive(id, bystanders)

    def outlive(self, id: int, bystanders: Sequence[int]) -> None:
        """Wait until a session is over; `bystanders` stand still in the moment when it is."""
        if bystanders:
            time.sleep(self.session_seconds / 2)
            with self.paused(bystanders):
                wait(lambda: id not in self.registered() and self.read("/controller") is not None, "a new controller")
        self._wait_unregistered(id)

    @contextmanager
    def paused(self, brokers: Sequence[int]) -> Iterator[None]:
        """Let processes stand still for a moment; `check_bystanders` says whether that was too long."""
        still = [id for id in brokers if not self.brokers[id].paused]
        for id in still:
            self.stood[id] = self.brokers[id].pid, self.session(id)
            self.pause(id)
        try:
            yield
        finally:
            for id in still:
                self.resume(id)

    def check_bystanders(self) -> None:
        """SessionLost where a process that has stood still since the last call has lost its session by that."""
        stood, self.stood = self.stood, {}
        lost = [
            id
            for id, (pid, session) in stood.items()
            if self.brokers[id].running and self.brokers[id].pid == pid and self.session(id) != session
        ]
        if lost:
            raise SessionLost(f"the sessions of the brokers {lost} have ended because these stood still")

    def session(self, id: int) -> int | None:
        """The session to which a broker's registration belongs, if it is registered."""
        stat = self.zk.exists(f"/brokers/ids/{id}")
        return None if stat is None else int(stat.ephemeralOwner)

    @property
    def session_seconds(self) -> float:
        return float(self.config.get("zookeeper.session.timeout.ms", SESSION_SECONDS * 1000)) / 1000

    def close_session(self, id: int) -> None:
        """End a broker's session with ZooKeeper, by its id, as if it had timed out."""
        from kazoo.client import KazooClient

        stat = self.zk.exists(f"/brokers/ids/{id}")
        other = KazooClient(self.zookeeper.address, client_id=(stat.ephemeralOwner, _password(stat.ephemeralOwner)))
        other.start(timeout=30)
        other.stop()
        other.close()

    def cut(self, one: Any, other: Any) -> None:
        """Break the connections between two brokers, or between a broker and ZooKeeper, until `heal`."""
        if ZOOKEEPER in (one, other):
            self.cut_off |= {one, other} - {ZOOKEEPER}
        else:
            self.apart |= {(one, other), (other, one)}
        for source, target in ((one, other), (other, one)):
            if source != ZOOKEEPER:
                self._proxies[(source, ZOOKEEPER) if target == ZOOKEEPER else target].cut(source)

    def heal(self) -> None:
        self.cut_off.clear()
        self.apart.clear()
        for proxy in self._proxies.values():
            proxy.heal()

    def stop_zookeeper(self) -> None:
        """Kill the server; its data stays."""
        self.zookeeper.kill()
        self.zookeeper_up = False

    def start_zookeeper(self) -> None:
        """The same server again, on the same port: sessions go on, with a full timeout from now."""
        self.zookeeper.restart()
        wait(lambda: bool(self.zk.connected), "our own session with ZooKeeper")
        self.zookeeper_up = True

    def shutdown(self, id: int) -> None:
        """SIGTERM: the broker leaves by controlled shutdown."""
        self.brokers[id].end(signal.SIGTERM)
        self._wait_unregistered(id)

    def ask_to_leave(self, id: int) -> None:
        """SIGTERM, without waiting for what comes of it."""
        self.brokers[id].send(signal.SIGTERM)

    def _wait_unregistered(self, id: int) -> None:
        wait(lambda: id not in self.registered(), f"broker {id} to leave /brokers/ids")

    def pause(self, id: int) -> None:
        self.brokers[id].send(signal.SIGSTOP)
        self.brokers[id].paused = True

    def resume(self, id: int) -> None:
        self.brokers[id].send(signal.SIGCONT)
        self.brokers[id].paused = False

    def pause_for(self, id: int, seconds: float, bystanders: Sequence[int]) -> None:
        """Let a broker stand still for so long, see `resume_due`; others do so in the moment its session is over."""
        self.pause(id)
        self.pauses[id] = time.monotonic() + seconds
        if bystanders and seconds > self.session_seconds:
            self.outlive(id, bystanders)

    def resume_due(self) -> bool:
        """Let those go on whose time has come; whether there were any."""
        due = [id for id, until in self.pauses.items() if until <= time.monotonic()]
        for id in due:
            del self.pauses[id]
            if self.brokers[id].running:
                self.resume(id)
        return bool(due)

    def registered(self) -> list[int]:
        """The brokers under `/brokers/ids`."""
        return sorted(map(int, self.children("/brokers/ids")))

    def failed(self, topic: str, number: int) -> set[int]:
        """The brokers whose copy of a partition lies in a log directory that has failed."""
        return {
            id
            for id, broker in self.brokers.items()
            for directory in broker.directories
            if directory in broker.failed and (broker.content(directory) / f"{topic}-{number}").exists()
        }

    # ZooKeeper

    def read(self, path: str) -> bytes | None:
        """The data of a znode; None when there is none."""
        from kazoo.exceptions import NoNodeError

        with suppress(NoNodeError):
            return self.zk.get(path)[0]
        return None

    def children(self, path: str) -> list[str]:
        from kazoo.exceptions import NoNodeError

        with suppress(NoNodeError):
            return sorted(self.zk.get_children(path))
        return []

    def tree(self, path: str = "") -> dict[str, tuple[bytes, int]]:
        """{path: (data, version)} of everything below `path`."""
        from kazoo.exceptions import NoNodeError

        found: dict[str, tuple[bytes, int]] = {}
        for name in self.children(path or "/"):
            child = f"{path}/{name}"
            with suppress(NoNodeError):
                data, stat = self.zk.get(child)
                found |= {child: (data or b"", stat.version), **self.tree(child)}
        return found

    # Tools

    def tool(self, main: str, *arguments: str, stdin: str = "", may_fail: bool = False) -> str:
        """Run one of Kafka's own tools by the name of its main class; what it printed."""
        return self._run(self.release.java(main, *arguments, logs=self.folder), stdin, may_fail)

    def source(self, name: str, *arguments: str) -> str:
        """Run a Java source file of ours against the release's classes; what it printed."""
        return self._run(self.release.java(str(HERE / "kafka" / name), *arguments, logs=self.folder))

    def _run(self, command: list[str], stdin: str = "", may_fail: bool = False) -> str:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode != 0 and not may_fail:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def write_json(self, name: str, content: Any) -> str:
        """A file for a tool, which no other tool is given; its path."""
        handle, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".json", dir=self.folder, text=True)
        with open(handle, "w", encoding="ascii") as file:
            json.dump(content, file)
        return path

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self.port(id)}" for id in self.up)

    def port(self, id: int) -> int:
        """The address of a broker, without a proxy."""
        return int(self.brokers[id].properties["listeners"].rpartition(":")[2])


def _aside(directory: Path) -> Path:
    return directory.with_suffix(".failed")


def _free_ports(count: int) -> list[int]:
    """Ports that no client is given meanwhile, as one could be while a broker is down: Linux draws from 32768 on."""
    ports: list[int] = []
    with ExitStack() as probes:
        while len(ports) < count:
            probe = probes.enter_context(socket.socket())
            with suppress(OSError):  # taken
                probe.bind(("127.0.0.1", random.randrange(12000, 32000)))
                ports.append(probe.getsockname()[1])
    return ports


def _password(session: int) -> bytes:
    """The password with which a client goes on with a session: drawn by java.util.Random, seeded by the session's id.

    ZooKeeper 3.9: server/ZooKeeperServer.java, generatePasswd
    """
    drawn, state = b"", (session ^ 0xB3415C00 ^ 0x5DEECE66D) & (2**48 - 1)
    while len(drawn) < 16:
        state = (state * 0x5DEECE66D + 0xB) & (2**48 - 1)
        drawn += (state >> 16).to_bytes(4, "little")
    return drawn
