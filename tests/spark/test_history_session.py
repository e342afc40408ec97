"""A Spark session from PyPI packages: on loopback, quiet, one, and gone with its kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from prose import Prose
from sparkcluster import SHORT_LIVED
from waiting import eventually

from kafka_ctl import BadInput, Unavailable
from kafka_ctl.history import session

PROGRAM = """
import os, sys
from kafka_ctl.history import session
from kafka_ctl.history.session import spark
s = spark("test", cores=1)
assert spark() is s
assert not [name for name in os.environ if "GATEWAY" in name]
row = s.range(3).mapInArrow(lambda batches: batches, "id long").selectExpr("sum(id)").collect()[0][0]
s.range(2).write.saveAsTable("made")
s.sql("DROP TABLE made")
conf = s.sparkContext.getConf()
print(session.java.pid, row, s.sparkContext.master, s.conf.get("spark.sql.session.timeZone"), flush=True)
sys.stdin.read()
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


def listening(pid: int) -> set[str]:
    """The local addresses, as the kernel writes them, of the TCP sockets on which a process listens."""
    inodes = {os.readlink(fd)[8:-1] for fd in Path(f"/proc/{pid}/fd").iterdir() if "socket" in os.readlink(fd)}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_one_session_on_loopback_that_ends_with_its_kernel() -> None:
    """Even when the kernel is killed; Spark's own words stay out of its outputs.

    It also makes a table: Hadoop needs commands of the system for that, which are not on the PATH of this kernel.
    """
    kernel = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PATH": str(Path(sys.executable).parent), "JDK_JAVA_OPTIONS": SHORT_LIVED},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        pid, total, *settings = kernel.stdout.readline().split()
        assert (total, settings) == ("3", ["local[1]", "UTC"])
        loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
        assert listening(int(pid))
        assert listening(int(pid)) <= loopback
        kernel.send_signal(signal.SIGKILL)
        assert eventually(lambda: not alive(int(pid)))
        assert kernel.stderr.read() == ""
    finally:
        kernel.kill()
        kernel.communicate()


TEMPORARY = """
import sys
from kafka_ctl.history.session import spark
if sys.argv[1] == "starting":
    import kafka_ctl.history.session as session
    session._connection = lambda told: (print("here", flush=True), sys.stdin.read())
s = spark("test", cores=2)
s.range(100_000).repartition(4).persist().count()
s.range(9).mapInArrow(lambda batches: batches, "id long").collect()
print("here", flush=True)
if sys.argv[1] == "exit":
    sys.exit()
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at permissions, and at signals")
@pytest.mark.parametrize("ended", ["exit", "SIGTERM", "SIGKILL", "starting"])
def test_nothing_temporary_stays_and_nobody_else_reads_it(tmp_path: Path, ended: str) -> None:
    """Blocks, logs, libraries: all is in folders of this user only, which go with the process, whatever ends it."""
    command = [sys.executable, "-c", TEMPORARY, ended]
    environment = os.environ | {"TMPDIR": str(tmp_path), "JDK_JAVA_OPTIONS": SHORT_LIVED}
    kernel = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert kernel.stdout.readline() == "here\n"
        if ended != "exit":
            assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o700}
            blocks = list(tmp_path.glob("*/**/blockmgr-*/*/*"))
            assert blocks or ended == "starting"
            kernel.send_signal({"starting": signal.SIGTERM}.get(ended) or signal.Signals[ended])
        kernel.wait(60)
        assert eventually(lambda: not list(tmp_path.iterdir())), list(tmp_path.rglob("*"))
    finally:
        kernel.kill()
        kernel.communicate()


def test_a_handler_of_sigterm_is_left_alone() -> None:
    """Ours is there while Java starts, and only where nobody else has one."""
    session.stop()
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with session.ended_in_order():
            seen.append(signal.getsignal(signal.SIGTERM))
        assert seen == [signal.getsignal(signal.SIGTERM)]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert session.spark().range(2).count() == 2
    assert signal.getsignal(signal.SIGTERM) == before


def test_sigterm_ends_this_process_in_order_while_java_starts() -> None:
    """By SystemExit, so that exit handlers run; afterwards, and in other threads, the signal is left as it is."""
    default = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    seen: list[object] = []

    def looked() -> None:
        with session.ended_in_order():
            seen.append(signal.getsignal(signal.SIGTERM))

    try:
        with session.ended_in_order():
            assert callable(signal.getsignal(signal.SIGTERM))
            with pytest.raises(SystemExit, match="143"):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        thread = threading.Thread(target=looked)
        thread.start()
        thread.join()
        assert seen == [signal.SIG_DFL]
    finally:
        signal.signal(signal.SIGTERM, default)


def test_a_stopped_session_starts_again() -> None:
    """With the same Java, or with a new one after `stop` and after a crash of Java."""
    first = session.spark()
    java = session.java
    assert java is not None
    first.stop()
    assert session.spark().range(2).count() == 2
    assert session.java is java
    session.stop()
    assert java.poll() is not None
    assert session.spark().range(2).count() == 2
    session.java.kill()
    session.java.wait()
    assert session.spark().range(4).count() == 4


def test_a_collector_that_the_environment_names_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java does not start with two of them."""
    session.stop()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC")
    assert session.spark().range(2).count() == 2
    assert session.java is not None and "-XX:+UseParallelGC" not in session.java.args
    session.stop()
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    assert session.spark().range(2).count() == 2
    assert "-XX:+UseParallelGC" in session.java.args


def test_java_that_does_not_start_is_reported(prose: Prose, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With its own last words, and the next call may still succeed."""
    session.stop()
    broken = tmp_path / "bin" / "java"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no room for a Java heap\nexit 1\n")
    broken.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr("kafka_ctl.setup.java.java_executable", lambda: broken)
        prose.refuses(Unavailable, session.spark)
    assert session.spark().range(2).count() == 2


@pytest.mark.parametrize("cores", [0, -1, 1.5, "2", True])
def test_what_is_no_number_of_cores(cores: Any) -> None:
    """Also while a session runs, which has its cores already."""
    with pytest.raises(BadInput, match=f"^cores={cores!r}: "):
        session.spark(cores=cores)


def test_a_missing_pyspark_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that brings it."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(Unavailable, match="pip install 'pyspark"):
        session.spark()
