"""Spark elsewhere, for tests: a standalone cluster or a Connect server, from PySpark's own jars, on loopback only."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from kafka_ctl.errors import Unavailable
from kafka_ctl.history.session import JAVA_OPTIONS, SETTINGS
from kafka_ctl.setup.java import java_executable
from tools import java_classes

HOME = Path(pyspark.__file__).parent
LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
PATIENCE = 180
SHORT_LIVED = " ".join(["-XX:+UseSerialGC", *java_classes.options()])


def why_no_cluster() -> str | None:
    """What is missing for executors of their own: Spark starts them with a module that not every Java has."""
    try:
        listed = subprocess.run([java_executable(), "--list-modules"], capture_output=True, text=True).stdout
    except Unavailable as missing:
        return str(missing)
    return None if "jdk.incubator.vector" in listed else "this Java lacks the module jdk.incubator.vector"


@contextmanager
def java(folder: Path, main: str, *arguments: str, options: tuple[str, ...] = ()) -> Iterator[Path]:
    """One of Spark's programs, ended with the block; its log."""
    log = folder / f"{main.rpartition('.')[2]}-{len(list(folder.glob('*.log')))}.log"
    scala = next(HOME.glob("jars/spark-core_*.jar")).name.split("_")[1].split("-")[0]
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MASTER")}
    environment = outside | {
        "SPARK_HOME": str(HOME),
        "SPARK_SCALA_VERSION": scala,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(java_executable().resolve().parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "JDK_JAVA_OPTIONS": SHORT_LIVED,
    }
    command = [str(java_executable()), "-Xmx512m", *options, "-cp", f"{HOME}/jars/*", f"org.apache.spark.{main}"]
    with log.open("wb") as out:
        process = subprocess.Popen([*command, *arguments], stdout=out, stderr=out, env=environment, cwd=folder)
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def reported(log: Path, pattern: str) -> re.Match[str]:
    """Wait until a log says something."""
    deadline = time.monotonic() + PATIENCE
    while not (found := re.search(pattern, log.read_text(errors="replace"))):
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
        time.sleep(0.05)
    return found


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """A master and workers of one core each; the address of the master."""
    here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as running:
        master = running.enter_context(java(folder, "deploy.master.Master", *here))
        url = reported(master, r"Starting Spark master at (spark://\S+)")[1]
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"))
        logs = [running.enter_context(java(folder, "deploy.worker.Worker", *here, *size, url)) for _ in range(workers)]
        for log in logs:
            reported(log, "Successfully registered with master")
        yield url


@contextmanager
def connect(folder: Path) -> Iterator[str]:
    """A Spark Connect server; its address."""
    settings = (
        SETTINGS
        | LOOPBACK
        | {
            "spark.master": "local[2]",
            "spark.app.name": "connect",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
        }
    )
    options = (*JAVA_OPTIONS, *(f"-D{name}={value}" for name, value in settings.items()))
    with java(folder, "sql.connect.service.SparkConnectServer", options=options) as log:
        yield "sc://127.0.0.1:" + reported(log, r"Spark Connect server started at: \S*:(\d+)")[1]
