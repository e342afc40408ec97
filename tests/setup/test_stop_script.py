"""KAFKA-4297: the script that stops brokers looks for a name at the end of a long command line."""

import shutil
import signal
import subprocess

import pytest

from kafka_ctl_course import stop_script
from kafka_ctl_course.stop_script import ZOOKEEPER, brokers_found, why_not

needs_ps = pytest.mark.skipif(bool(why_not()), reason=why_not())


@needs_ps
@pytest.mark.parametrize(("shown", "found"), [(4096, {1: True, 200: False}), (150_000, {1: True, 200: True})])
def test_a_long_command_line_hides_the_broker(shown: int, found: dict[int, bool]) -> None:
    """Real processes and the script's own pipe; with 4096 characters, as Linux had them before 4.2, it finds none."""
    assert brokers_found([1, 200], shown) == found


@needs_ps
def test_a_shorter_name_finds_the_broker_and_more() -> None:
    """A class path has `kafka` near its beginning; that of a ZooKeeper from the same folder has it, too."""
    assert brokers_found([200], 4096, name="kafka") == {200: True}
    assert brokers_found([200], 4096, name="kafka", program=ZOOKEEPER) == {200: True}


@needs_ps
def test_the_processes_have_ended_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both stand-ins are killed; the script's pipe ends by itself."""
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **given: started.append(popen(*a, **given)) or started[-1])
    assert brokers_found([1, 2]) == {1: True, 2: True}
    assert [process.returncode for process in started] == [-signal.SIGKILL, -signal.SIGKILL, 0]


def test_where_there_is_no_ps_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    there = shutil.which
    monkeypatch.setattr(stop_script.shutil, "which", lambda name: None if name == "ps" else there(name))
    assert why_not() == "no ps here"
