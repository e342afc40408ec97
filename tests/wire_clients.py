"""Labs whose brokers listen, for tests with clients that nobody here wrote."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_ctl import Lab

QUICK = {"zookeeper.session.timeout.ms": 1000, "replica.lag.time.max.ms": 2000}
"""So that a broker's death is noticed within a second."""
PATIENCE = 60.0
"""Seconds that a busy machine is given."""


@contextmanager
def listening(generation: str = "2.0", **options: Any) -> Iterator[Lab]:
    """A lab of three brokers that real clients can reach."""
    config = QUICK | options.pop("config", {})
    costs = {"zookeeper_round_trip": 0.0, "zookeeper_tick": 0.0, "request": 0.0, "boot": 0.0, "request_state": 0.0}
    if options.get("zookeeper", "memory") != "memory":
        config, costs = {}, costs
    with Lab(brokers=3, generation=generation, wire=True, config=config, costs=costs, **options) as lab:
        yield lab


def eventually(holds: Callable[[], bool], what: str = "") -> None:
    """Wait for a condition, as long as a busy machine may need."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what or holds}"
        time.sleep(0.02)


def kcat(lab: Lab, *arguments: str, given: str | None = None) -> str:
    """What kcat prints; the test is skipped where there is none."""
    program = shutil.which("kcat") or shutil.which("kafkacat")
    if program is None:
        pytest.skip("kcat is not installed: apt-get install kcat")
    done = subprocess.run(
        [program, "-b", lab.bootstrap_servers, *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def closed_connections(lab: Lab) -> list[tuple[str | None, str | None]]:
    """Why brokers closed connections: Kafka's error, and what it was about."""
    return [(record.error, record.detail) for record in lab.trace.slice(action="closed-connection")]
