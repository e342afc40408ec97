"""A real ZooKeeper 3.9 on this machine, from the jars that PySpark brings: no download, no installation.

`EmbeddedServer` listens on 127.0.0.1 only and keeps its data in a temporary folder. `supervisor.py`, a
process of its own, ends the server and removes the folder with the lab, even if that was killed with kill -9.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path

from kafka_ctl.errors import Unavailable, check_not_in_browser
from kafka_ctl.extras import cure
from kafka_ctl.setup.java import java_executable
from kafka_ctl.writing import in_temporary_folder, temporary_folder

START_SECONDS = 30.0
"""The longest wait for a server's first answer; it takes about half a second."""

JARS = (
    "zookeeper-3*",
    "zookeeper-jute-*",
    "metrics-core-*",
    "snappy-java-*",
    "slf4j-api-*",
    "log4j-slf4j2-impl-*",
    "log4j-api-*",
    "log4j-core-*",
    "netty-common-*",
    "netty-buffer-*",
    "netty-transport-4*",
    "netty-handler-4*",
)
"""The jars a standalone server needs, out of the 300 and more in `pyspark/jars`."""

JAVA_OPTIONS: tuple[str, ...] = (
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dlog4j2.disableJmx=true",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.preAllocSize=1024",
)
"""Small and quick to start. Without forceSync a write survives the server's death, though not a power cut."""

CONFIG = """\
clientPortAddress=127.0.0.1
clientPort={port}
dataDir={data}
tickTime=200
minSessionTimeout=400
maxSessionTimeout=86400000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok,mntr
"""

LOGGING = """\
rootLogger.level=info
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %-5p %c{1} %m%n
"""


class EmbeddedServer:
    """One standalone ZooKeeper server.

    `port` defaults to a free one and stays the same over `kill` and `restart`. `data` is a folder to keep the
    znodes in; without it they live in the temporary folder and go with the server.
    Raises Unavailable, with what to do, when Java or PySpark's jars are missing or the server does not come up.
    """

    def __init__(self, port: int | None = None, data: Path | str | None = None) -> None:
        self.port = port or 0
        self._any_port = not port
        self._data = Path(data).absolute() if data is not None else None
        self.folder: Path | None = None
        """The folder of log, configuration and (unless given) data; None while nothing runs."""
        self.supervisor: subprocess.Popen[str] | None = None
        self._finalizer: weakref.finalize | None = None
        self._ordering = threading.Lock()
        self.wanted = False
        """True if it was started and not stopped since; it may have died."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self.supervisor is not None and self._order("state") == "running"

    def start(self) -> EmbeddedServer:
        """Start and wait until the server answers; does nothing if it already runs."""
        if self.running:
            return self
        first = self.supervisor is None
        self.wanted = True
        if first:
            self._prepare()
        try:
            for _ in range(3):
                if problem := self._try_port():
                    if self._any_port and "Address already in use" in problem:
                        continue  # another program was quicker to take the free port
                    raise Unavailable(f"ZooKeeper did not start on {self.address}: {problem}")
                return self
            raise Unavailable("ZooKeeper did not start: no free port on 127.0.0.1 stayed free")
        except BaseException:
            self.stop() if first else self.kill()  # the data of an earlier life stay: what failed may be cured
            raise

    def kill(self) -> None:
        """End the server as kill -9 does. Its data stays; `start` and `restart` bring it back on the same port."""
        self.wanted, self._any_port = False, not self.port
        if self.supervisor is not None:
            self._order("kill")

    def restart(self) -> None:
        """Kill the server if it runs and start it again: same port, same data, same sessions."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """End the server for good and remove its temporary folder."""
        self.wanted = False
        if self._finalizer is not None:
            self._finalizer()
        self.supervisor = self.folder = self._finalizer = None

    def __enter__(self) -> EmbeddedServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of the server's log."""
        if self.folder is None:
            return ""
        text = (self.folder / "zookeeper.log").read_text(encoding="utf-8", errors="replace")
        lines_kept = [line for line in text.splitlines() if not line.startswith("\t")]  # no Java stack frames
        return "\n".join(lines_kept[-lines:])

    def last_exception(self) -> str:
        """The last exception in the server's log, such as `java.io.IOException: No space left on device`."""
        found = [line for line in self.log_tail(100).splitlines() if re.match(r"[\w.]+(Exception|Error)\b", line)]
        return found[-1] if found else ""

    def _prepare(self) -> None:
        """Make the temporary folder and start the supervisor, which does not start the server yet."""
        java, jars = java_executable(), zookeeper_jars()
        folder = temporary_folder("kafka-ctl-zookeeper-")
        try:
            self._supervise(folder, java, jars)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.folder = folder

    def _supervise(self, folder: Path, java: Path, jars: list[Path]) -> None:
        """Start the supervisor of a server that has this folder."""
        log, logging = folder / "zookeeper.log", folder / "log4j2.properties"
        with in_temporary_folder():
            logging.write_text(LOGGING, encoding="ascii")
            log.touch()
        server = [
            str(java),
            *JAVA_OPTIONS,
            f"-Dlog4j2.configurationFile={logging.as_uri()}",
            "-cp",
            os.pathsep.join(map(str, jars)),
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(folder / "zoo.cfg"),
        ]
        # A session of its own, so that an interrupt meant for a notebook cell does not end the server.
        new_group = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        supervisor = [sys.executable, "-I", str(Path(__file__).with_name("supervisor.py"))]
        with log.open("ab") as errors:
            self.supervisor = subprocess.Popen(
                [*supervisor, str(folder), str(log), *server],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                creationflags=new_group,
            )
        self._finalizer = weakref.finalize(self, _dismiss, self.supervisor)

    def _try_port(self) -> str:
        """Start the server once and wait for it; returns what went wrong, or an empty text."""
        assert self.folder is not None
        try:
            self.port = _bindable(0 if self._any_port else self.port)
        except OSError as error:
            return f"cannot listen on the port: {error.strerror}"
        data = self._data or self.folder / "data"
        config = CONFIG.format(port=self.port, data=data.as_posix())
        with in_temporary_folder():
            (self.folder / "zoo.cfg").write_text(config, encoding="utf-8")
        state, deadline = self._order("start"), time.monotonic() + START_SECONDS
        while state == "running":
            if "Mode: standalone" in four_letter_word(self.port, "srvr"):
                return ""
            if time.monotonic() > deadline:
                self._order("kill")
                return f"no answer within {START_SECONDS:g} s; the end of its log:\n{self.log_tail()}"
            time.sleep(0.02)
            state = self._order("state")
        return f"its process {state}; the end of its log:\n{self.log_tail()}"

    def _order(self, order: str) -> str:
        """Give the supervisor an order and return its answer; one order at a time, from any thread."""
        supervisor = self.supervisor
        assert supervisor is not None and supervisor.stdin and supervisor.stdout
        with self._ordering:
            try:
                supervisor.stdin.write(order + "\n")
                supervisor.stdin.flush()
                answer = supervisor.stdout.readline().strip()
            except (OSError, ValueError):  # it has ended, or another thread has found that out
                answer = ""
        if not answer:
            if self.supervisor is supervisor:
                self.stop()
            raise Unavailable(
                f"the process that looks after ZooKeeper at {self.address} has ended; start ZooKeeper again"
            )
        return answer


def _dismiss(supervisor: subprocess.Popen[str]) -> None:
    """Close the pipe, which ends the server, and wait until everything is cleared away."""
    assert supervisor.stdin and supervisor.stdout
    with suppress(OSError):
        supervisor.stdin.close()
    try:
        supervisor.wait(10)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()
    supervisor.stdout.close()


def _bindable(port: int) -> int:
    """The port (a free one for 0) if a server can listen on it now. Raises OSError if another one does."""
    with socket.socket() as probe:
        if os.name != "nt":  # there it would let two servers share the port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])


def four_letter_word(port: int, word: str) -> str:
    """ZooKeeper's answer to `srvr`, `ruok` or `mntr` on 127.0.0.1; an empty text without an answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(word.encode("ascii"))
            return b"".join(iter(lambda: connection.recv(4096), b"")).decode("utf-8", "replace")
    except OSError:
        return ""


def zookeeper_jars() -> list[Path]:
    """The jars of `JARS` inside the installed PySpark. Raises Unavailable if PySpark or one of them is missing."""
    check_not_in_browser("a real ZooKeeper")
    hint = cure("kazoo")  # its extra has the jars, too
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise Unavailable(f"the embedded ZooKeeper needs PySpark, which is not installed; {hint}")
    folder = Path(found.submodule_search_locations[0], "jars")
    jars = [next(iter(sorted(folder.glob(f"{name}.jar"))), None) for name in JARS]
    missing = [name for name, jar in zip(JARS, jars, strict=True) if jar is None]
    if missing:
        raise Unavailable(f"the embedded ZooKeeper needs {', '.join(missing)}, not found in {folder}; {hint}")
    return [jar for jar in jars if jar is not None]


def serve(port: int | None = None, data: Path | str | None = None) -> None:
    """Run a server in the foreground until Ctrl-C or SIGTERM.

    Raises Unavailable if it cannot start or dies by itself.
    """
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # asked for by name: the starting process may have it ignored
        signal.signal(number, lambda *_: stopped.set())
    with EmbeddedServer(port, data) as server:
        kept = f"znodes are kept in {data}" if data is not None else "its znodes go with it"
        print(f"ZooKeeper listens on {server.address}; {kept}; Ctrl-C stops it", flush=True)
        while server.running:
            if stopped.wait(0.3):
                return
        raise Unavailable(f"ZooKeeper at {server.address} ended by itself; its log:\n{server.log_tail()}")
