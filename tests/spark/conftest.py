"""Simulated clusters, for the tests of questions and of plots."""

from __future__ import annotations

import functools

import pytest
from history_plain import BUSY, frames
from pyspark.sql import DataFrame

from kafka_ctl import Trace
from kafka_ctl.history import simulate


@functools.cache
def cluster(seed: int) -> Trace:
    """A cluster to which much happens in 12 hours."""
    return simulate(seed, 12, workload=BUSY)


@pytest.fixture(scope="module")
def clusters(request: pytest.FixtureRequest) -> dict[str, Trace]:
    """Such clusters for each of the module's `SEEDS`, by name."""
    return {f"h{seed}": cluster(seed) for seed in request.module.SEEDS}


@pytest.fixture(scope="module")
def simulated(clusters: dict[str, Trace]) -> DataFrame:
    """The records of these clusters."""
    return frames(clusters)
