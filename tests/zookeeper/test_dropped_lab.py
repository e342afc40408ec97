"""Labs that nobody closes: they end when they are dropped or the program ends, and leave nothing, also no warning."""

import gc
import os
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from labs import until_quiet
from waiting import eventually
from zookeepers import SHORT, kazoo_at, started

from kafka_ctl import Lab
from kafka_ctl.paths import ROOT
from kafka_ctl.zookeeper.real.server import EmbeddedServer, four_letter_word

server = pytest.fixture(scope="module")(started)


@pytest.fixture
def outsider(server: EmbeddedServer) -> Iterator[KazooClient]:
    with kazoo_at(server.address) as client:
        yield client


# In memory


def test_unclosed_labs_are_silent(generation: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Wherever they stand: with tasks that have not begun, in the middle of anything, with a broker that is paused."""
    with Lab(generation=generation, seed=1) as lab:
        until_quiet(lab.create_topic, "orders", partitions=2, replication_factor=2)
        until_quiet(lab.kill, lab.controller.id)
        lab.pause(lab.controller.id, 5)
        story, size = lab.story, len(lab.trace)
    gc.collect()  # labs that other tests have dropped
    capfd.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for at in range(0, size, 3):
            Lab.replay(story, until=at)
        gc.collect()
    assert capfd.readouterr().err == ""


def test_a_program_that_ends_with_unclosed_labs_is_silent() -> None:
    code = (
        "from kafka_ctl import Lab\n"
        "labs = [Lab(generation=g, seed=s, settle=False) for g in ('0.10', '2.0', '2.4') for s in range(8)]\n"
        "for n, lab in enumerate(labs): lab.run_for(n * 0.013)\n"
    )
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], cwd=ROOT, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_dropped_lab_is_collected_and_its_trace_stays_as_it_was() -> None:
    """Nothing keeps it alive; who kept the trace finds in it what happened, and no more."""
    lab = Lab(seed=3, settle=False)
    lab.run_for(0.2)
    trace, there, world = lab.trace, weakref.ref(lab), weakref.ref(lab.world)
    before = trace.text("all")
    del lab
    assert there() is None
    gc.collect()
    assert trace.text("all") == before
    del trace
    gc.collect()
    assert world() is None


def test_a_lab_that_has_taken_over_another_run_goes_on() -> None:
    """`back` and undo in the live widget put another lab's world into this one, and drop that lab."""
    with Lab(seed=3) as lab:
        until_quiet(lab.create_topic, "orders", partitions=2)
        lab.back(3)
        gc.collect()
        lab.settle()
        assert {p.state for p in lab.partitions()} == {"OnlinePartition"}


# On a real ZooKeeper


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


def test_a_dropped_lab_leaves_no_thread_and_no_server(server: EmbeddedServer) -> None:
    before = threads()
    lab = Lab(zookeeper="embedded", config=SHORT, brokers=2)
    own = lab.zookeeper_server
    assert own is not None and own.folder is not None and threads() > before
    folder, port, there = own.folder, own.port, weakref.ref(lab)
    del own, lab
    assert there() is None
    assert eventually(lambda: threads() <= before), threads() - before
    assert eventually(lambda: not folder.exists())
    assert four_letter_word(port, "ruok") == ""


def test_a_dropped_lab_removes_what_it_made(server: EmbeddedServer, outsider: KazooClient) -> None:
    """And makes room at once for the next in the same chroot."""
    lab = Lab(zookeeper=f"{server.address}/dropped", config=SHORT, brokers=2)
    lab.create_topic("orders", partitions=2)
    before = threads()
    lab.settle()
    del lab
    with Lab(zookeeper=f"{server.address}/dropped", config=SHORT, brokers=1) as lab:
        assert lab.partitions() == [] and lab.controller == (1, 1)
    assert not outsider.exists("/dropped")
    assert eventually(lambda: not threads() & {t for t in before if t.name == "kafka-ctl-lab"})


def test_a_dropped_lab_whose_server_is_dead_ends_too(server: EmbeddedServer) -> None:
    before = threads()
    lab = Lab(zookeeper="embedded", config=SHORT, brokers=1)
    lab.zookeeper_server.kill()
    del lab
    assert eventually(lambda: threads() <= before), threads() - before


PROGRAM = """
import os, signal, sys, threading
from kafka_ctl import Lab
embedded = Lab(zookeeper="embedded", brokers=1)
theirs = Lab(zookeeper={address!r}, brokers=1)
theirs.create_topic("orders")
theirs.settle()
print(embedded.zookeeper_server.port, embedded.zookeeper_server.folder, flush=True)
{end}
"""
ENDS = {
    "it ends": ("", 0),
    "an error": ("1 / 0", 1),
    "sys.exit": ("sys.exit(3)", 3),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); threading.Event().wait()", -signal.SIGTERM),
    "SIGTERM while a lab is busy": (
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start(); theirs.run_for(600)",
        -signal.SIGTERM,
    ),
    "a fork": ("pid = os.fork()\nif pid: os.waitpid(pid, 0); theirs.create_topic('more'); theirs.settle()", 0),
}


@pytest.mark.skipif(os.name == "nt", reason="no such signals there")
@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_ends_leaves_nothing(end: str, server: EmbeddedServer, outsider: KazooClient) -> None:
    """Neither a server nor, in somebody's ZooKeeper, a znode, whichever way it ends."""
    how, status = ENDS[end]
    code = PROGRAM.format(address=f"{server.address}/program", end=how)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr or end == "an error"
    port, folder = done.stdout.split()
    assert not outsider.exists("/program")
    assert eventually(lambda: not Path(folder).exists())
    assert four_letter_word(int(port), "ruok") == ""


@pytest.mark.skipif(os.name == "nt", reason="no such signals there")
def test_whoever_has_an_answer_to_sigterm_keeps_it(server: EmbeddedServer) -> None:
    mine = lambda number, frame: None  # noqa: E731
    before = signal.signal(signal.SIGTERM, mine)
    try:
        with Lab(zookeeper=f"{server.address}/signals", config=SHORT, brokers=1):
            assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
