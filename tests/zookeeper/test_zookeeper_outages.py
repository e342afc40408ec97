"""A ZooKeeper that stands still for longer than a session, or whose disk is full: a command ends with one sentence."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from labs import play, until_quiet
from prose import Prose
from waiting import eventually
from zookeepers import SHORT, started

from kafka_ctl import Lab, Unavailable
from kafka_ctl.errors import ApiException, SessionExpired
from kafka_ctl.simulation import real_world
from kafka_ctl.simulation.real_world import PATIENCE, STEADY, Outage
from kafka_ctl.zookeeper.client import ZooKeeperClient
from kafka_ctl.zookeeper.real.server import EmbeddedServer
from kafka_ctl.zookeeper.store import DISCONNECTED, EXPIRED, Get, Op, Result

server = pytest.fixture(started)


def java(server: EmbeddedServer) -> int:
    """The process of a server: the only child of its supervisor."""
    pid = server.supervisor.pid
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if not children.exists():
        pytest.skip("this system does not list the children of a process")
    return int(children.read_text().split()[0])


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of three megabytes."""
    folder = Path(tempfile.mkdtemp(prefix="small-"))
    mount = shutil.which("mount")
    tried = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=3m", "none", folder], capture_output=True)
    if not tried or tried.returncode:
        folder.rmdir()
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def fill(folder: Path) -> Path:
    """Write a file that takes all the room there is."""
    path = folder / "full"
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(file, bytes(4096))
    except OSError:
        return path
    finally:
        os.close(file)


def many_topics(lab: Lab) -> None:
    """Create more than fits on a small disk."""
    for number in range(100):
        lab.create_topic(f"t{number}", partitions=50)


# A standstill


@pytest.mark.parametrize("fails", [True, False])
def test_who_waits_for_a_connection_learns_that_the_session_has_expired(fails: bool) -> None:
    """Or waits for the next session, where operations are for that (before Kafka 1.1)."""

    async def expired(ops: Sequence[Op], window: int = 1) -> list[Result]:
        raise SessionExpired(ops[0].path)

    async def wait() -> str | None:
        client = ZooKeeperClient(1, ends_with_session=fails)
        session: Any = SimpleNamespace(send=expired)
        client.session = session
        client.state_changed(DISCONNECTED)
        waiting = asyncio.create_task(client.send([Get("/controller")]))
        await asyncio.sleep(0)
        client.state_changed(EXPIRED)
        done, _ = await asyncio.wait({waiting}, timeout=5 if fails else 0.05)
        waiting.cancel()
        return done.pop().result()[0].error if done else None

    assert asyncio.run(wait()) == ("SESSIONEXPIRED" if fails else None)


def test_a_command_whose_session_ends_says_so(prose: Prose, server: EmbeddedServer) -> None:
    async def asked() -> None:
        raise SessionExpired("/brokers/topics")

    with Lab(brokers=1, zookeeper=f"{server.address}/kit", config=SHORT) as lab, prose.refused(Unavailable):
        lab.world.run(asked())


@pytest.mark.parametrize("generation", ["0.10", "2.4"])
def test_a_command_ends_though_the_server_stood_still(server: EmbeddedServer, generation: str) -> None:
    """The server is stopped with SIGSTOP for twice the timeout of the session, and goes on.

    What it does first then, answer the command, end its session or those of the brokers, depends on its timers.
    """
    with Lab(brokers=2, generation=generation, zookeeper=f"{server.address}/kit", config=SHORT) as lab:
        lab.create_topic("orders")  # the administrator has a session by now
        lab.settle()
        process = java(server)
        os.kill(process, signal.SIGSTOP)
        awake = threading.Timer(3, os.kill, (process, signal.SIGCONT))
        awake.start()
        started = time.monotonic()
        try:
            lab.create_topic("late")
        except Unavailable:
            pass  # its session has ended
        except ApiException as refused:
            if refused.code != "INVALID_REPLICATION_FACTOR":  # the sessions of the brokers have
                raise
        awake.join()
        assert time.monotonic() - started < PATIENCE
        assert eventually(lambda: {"/brokers/ids/1", "/brokers/ids/2"} <= set(lab.znodes()))
        play(lab, "settle; create_topic later; settle")
        assert {p.topic for p in lab.partitions() if p.leader != -1} >= {"orders", "later"}


# A full disk


def test_a_full_disk_is_named(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's transaction log cannot be written: it ends. With room again, its data are there."""
    monkeypatch.setattr(real_world, "CERTAIN", 0.5)
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    with Lab(brokers=2, zookeeper="embedded", config=SHORT) as lab:
        server = lab.zookeeper_server
        until_quiet(lab.create_topic, "orders")
        full = fill(small_disk)
        with pytest.raises(Unavailable) as caught:
            many_topics(lab)
        text = str(caught.value)
        assert text.startswith(f"ZooKeeper at {server.address} has ended")
        assert "lab.zookeeper_server.restart()" in text
        with pytest.raises(Unavailable, match="did not start"):
            server.restart()
        full.unlink()
        server.restart()
        lab.settle()
        assert lab.partition("orders", 0).leader in (1, 2)
        until_quiet(lab.create_topic, "later")
        assert lab.partition("later", 0).leader in (1, 2)


def test_a_full_disk_of_somebodys_server(prose: Prose, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lab cannot see why that server is gone; it names the address and the cure."""
    monkeypatch.setattr(real_world, "PATIENCE", 2.0)
    with (
        EmbeddedServer(data=small_disk / "data") as theirs,
        Lab(brokers=2, zookeeper=f"{theirs.address}/kit", config=SHORT) as lab,
    ):
        full = fill(small_disk)
        prose.refuses(Unavailable, many_topics, lab)
        assert eventually(lambda: not theirs.running)
        assert "No space left on device" in theirs.last_exception()
        full.unlink()
        theirs.restart()
        play(lab, "settle; create_topic later; settle")
        assert lab.partition("later", 0).leader in (1, 2)


@pytest.mark.parametrize(("up", "given_up"), [(STEADY / 2, True), (STEADY * 2, False)])
def test_a_server_that_comes_and_goes_does_not_answer(up: float, given_up: bool) -> None:
    """Connections that hold for less than `STEADY` seconds do not end the wait for a server."""
    outage, longest, now = Outage(), 0.0, 0.0
    for _ in range(40):
        for connected, lasts in ((False, 1.0), (True, up)):
            for _ in range(round(lasts / 0.1)):
                now += 0.1
                longest = max(longest, outage.lasts(connected, now))
    assert (longest > PATIENCE) is given_up
