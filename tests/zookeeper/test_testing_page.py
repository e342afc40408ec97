"""The three worked examples of docs/testing.md run as they stand there, where their languages are present."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_ctl.jupyter.launch import free_port
from kafka_ctl.paths import ROOT
from kafka_ctl.testing.cluster import KafkaCluster
from kafka_ctl.testing.control import Server
from tools.recorder.release import RELEASES

ALL = [f"order-{number}" for number in range(200)]


def example(language: str) -> str:
    """The only program of the page in this language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs/testing.md").read_text("utf-8"), re.M | re.S)
    return str(found)


def run(*command: object, folder: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def served() -> Iterator[tuple[KafkaCluster, str]]:
    """A cluster and the address of its control endpoint."""
    server = Server(free_port())
    with KafkaCluster() as cluster:
        yield cluster, server.begin(cluster)
        server.shutdown()
        server.server_close()


def test_python(tmp_path: Path) -> None:
    """The fixture comes with pytest's plug-in alone."""
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")
    (tmp_path / "test_orders.py").write_text(example("python"), "utf-8")
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "kafka_ctl.testing.plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_kit_is_imported_as_it_is_installed(tmp_path: Path) -> None:
    """pytest would rewrite the modules of a distribution with a plug-in, and compile them all again."""
    code = "def test_it(kafka):\n    from kafka_ctl.lab import lab\n    assert {!r} == type(lab.__loader__).__name__\n"
    (tmp_path / "test_loader.py").write_text(code.format("SourceFileLoader"), "utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_java(served: tuple[KafkaCluster, str], tmp_path: Path) -> None:
    if shutil.which("javac") is None or shutil.which("mvn") is None:
        pytest.skip("the example in Java needs a JDK and Maven")
    try:
        jars = RELEASES["2.4"].resolve()
    except subprocess.CalledProcessError:
        pytest.skip("the example in Java needs kafka-clients, which Maven cannot fetch here")
    (tmp_path / "Orders.java").write_text(example("java"), "utf-8")
    cluster, control = served
    printed = run("java", "-cp", f"{jars}/*", "Orders.java", cluster.bootstrap_servers, control, folder=tmp_path)
    assert printed == "200 acknowledged\n"
    cluster.assert_kept("orders", ALL)
    assert "\nkill " in cluster.lab.story


def test_go(served: tuple[KafkaCluster, str], tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("the example in Go needs Go: apt-get install golang")
    for name in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "tests/zookeeper/goclient" / name, tmp_path)
    (tmp_path / "main.go").write_text(example("go"), "utf-8")
    downloaded = subprocess.run(["go", "mod", "download"], cwd=tmp_path, capture_output=True, text=True)
    if downloaded.returncode:
        pytest.skip(f"the modules of the Go client cannot be downloaded: {downloaded.stderr[-300:]}")
    cluster, control = served
    command = ["go", "run", ".", cluster.bootstrap_servers, control]
    assert run(*command, folder=tmp_path) == "200 acknowledged\n"
    cluster.assert_kept("orders", ALL)
    assert "\nkill " in cluster.lab.story
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode and "Topic 'orders' already exists" in again.stderr
