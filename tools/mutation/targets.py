"""The parts of the package that are mutated, and the tests that are asked about each of them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kafka_ctl.paths import ROOT


class Target(NamedTuple):
    """Some files of the package, and the tests that concern them.

    `code` are patterns below `kafka_ctl/`; `tests` are names of test files with their folders, without `test_`.
    `left_out` are parts of the names of tests that need other processes or take longer than all others together.
    With `java`, the tests share one Java process of Spark.
    """

    name: str
    code: str
    tests: str
    left_out: str = ""
    java: bool = False

    @property
    def files(self) -> list[str]:
        """The mutated files, as paths from the project's root."""
        found = {path for pattern in self.code.split() for path in (ROOT / "kafka_ctl").glob(pattern)}
        return sorted(path.relative_to(ROOT).as_posix() for path in found)

    @property
    def test_files(self) -> list[Path]:
        """The test files; a name that is a pattern may stand for several."""
        found = set()
        for name in self.tests.split():
            folder, _, file = name.rpartition("/")
            found |= {*(ROOT / "tests").glob(f"{folder or '*'}/test_{file}.py")}
        return sorted(found)


TARGETS = {
    target.name: target
    for target in (
        Target(
            "engine",
            "controller/*.py brokers/*.py zookeeper/kafka_client.py",
            """
            unit/brokers/* unit/controller/* unit/election unit/lab/faults unit/lab/lab unit/lab/producing
            unit/replication_invariants unit/zookeeper/kafka_client stories/directed_stories
            stories/invariants stories/museum stories/mutants stories/rare_paths stories/together stories/traces
            conformance/conformance setup/order
            """,
            "every_process",
        ),
        Target(
            "wire",
            "wire/*.py",
            "unit/wire/* unit/brokers/fetching unit/brokers/record_deletion",
            "bounded_by half_open records_unpack",
        ),
        Target(
            "views",
            "views/captions.py views/legend.py views/explain/*.py",
            """
            unit/course/figures/figures unit/views/captions unit/views/explain/why unit/views/marks unit/views/time/*
            unit/views/widget/* stories/rule_sentences
            stories/views_ran stories/why_everywhere
            """,
            "nbconvert decided_again DISCONNECTED",
        ),
        Target("exercises", "exercises/*.py", "stories/exercises unit/exercises/*"),
        Target(
            "history",
            "history/*.py history/questions/*.py history/plots/*.py",
            """
            spark/history_answers spark/history_cli spark/history_dataset spark/history_disk spark/history_engines
            spark/history_files spark/history_importlog spark/history_lives spark/history_log_answers
            spark/history_plans spark/history_questions spark/history_returns spark/history_schema
            spark/history_workload spark/plots spark/metrics unit/kafka_log/read
            """,
            java=True,
        ),
        Target("streams", "history/live/*.py", "spark/live", java=True),
    )
}
"""By name. Not among their tests: those of `history/session.py`, each of which starts and ends Java, and those of
hostile answers, which need the one alarm clock of a process for themselves."""
