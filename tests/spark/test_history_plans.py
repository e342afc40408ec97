"""How Spark goes about the questions to a dataset: nothing is shuffled that lies well already."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from kafka_ctl.history import Workload, generate, load, questions
from kafka_ctl.history.session import spark

SHUFFLES = {"compare": 1, "transition_counts": 2, "unavailability_by": 1, "preferred_leader_recovery": 1}
"""The questions whose answer is about all histories together: the exchange of their sums (and of these beside the legal
moves); and `preferred_leader_recovery`, which brings together the few records that say that a broker is back.
"""
UNSORTED = ("leader_churn",)
"""Questions that are asked by partition and of one kind of record, which the files have in that order."""
READ = {
    "departures": {("broker", "main"), ("controller", "main"), ("event", "main"), ("fault", "main")},
    "imbalance": {("partition", "main")},
    "isr_states": {("broker", "isr"), ("partition", "main"), ("request", "isr")},
    "reassignments": {("controller", "main")},
    "transition_counts": {("partition", "main"), ("replica", "main")},
}
"""Of some questions, the kinds and sections they read."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("histories") / "data"
    generate(None, 6, 6, 3, out=out, workload=Workload(brokers=(3, 4), topics=(1, 3), rate=3), buckets=3)
    return out


def asked(name: str, path: Path) -> DataFrame:
    records = load(spark(), path)
    return getattr(questions, name)(*[records, records][: 2 if name == "compare" else 1])


@pytest.mark.parametrize("name", questions.__all__)
def test_no_question_shuffles_records(dataset: Path, name: str) -> None:
    """Nor does any collect one side of a join for everybody, which a large history would not bear."""
    plan = asked(name, dataset)._jdf.queryExecution().executedPlan().toString()
    assert len(re.findall(r"- Exchange ", plan)) == SHUFFLES.get(name, 0)
    assert "Broadcast" not in plan
    assert "- Sort " not in plan or name not in UNSORTED


@pytest.mark.parametrize("name", questions.__all__)
def test_subqueries_stand_where_they_are_named(dataset: Path, name: str) -> None:
    """Spark plans those in a `WITH` more slowly."""
    assert "CTE" not in asked(name, dataset)._jdf.queryExecution().logical().toString()


@pytest.mark.parametrize("name", READ)
def test_a_question_reads_what_it_asks_for(dataset: Path, name: str) -> None:
    """The folders of other kinds and sections are not opened."""
    files = " ".join(asked(name, dataset).inputFiles())
    assert set(re.findall(r"kind=(\w+)/section=(\w+)/", files)) == READ[name]
