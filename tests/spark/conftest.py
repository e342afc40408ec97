"""Simulated clusters, for the tests of questions and of plots."""

from __future__ import annotations

import pytest
from history_plain import BUSY, frames
from pyspark.sql import DataFrame

from kafka_ctl import Trace
from kafka_ctl.history import simulate


@pytest.fixture(scope="module")
def clusters(request: pytest.FixtureRequest) -> dict[str, Trace]:
    """Clusters to which much happens, for each of the module's `SEEDS`, by name; 12 hours, or its `HOURS`."""
    hours = getattr(request.module, "HOURS", 12)
    return {f"h{seed}": simulate(seed, hours, workload=BUSY) for seed in request.module.SEEDS}


@pytest.fixture(scope="module")
def simulated(clusters: dict[str, Trace]) -> DataFrame:
    """The records of these clusters."""
    return frames(clusters)
