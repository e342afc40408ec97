"""The golden stories in `tests/traces`: what is printed today is what was recorded and read."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import golden
import pytest
from prose import Prose

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.paths import ROOT

WANTED = """
    all_replicas_dead_clean bounce broker_failure controlled_shutdown controlled_shutdown_refused controller_failure
    delete_controller election isr_shrink_and_growth partitions_added preferred_election reassignment
    replication_factor_1 session_expiry topic_deletion
    topic_with_dead_replica unclean_election
""".split()


@pytest.mark.parametrize("path", golden.STORIES, ids=lambda path: path.stem)
def test_a_story_runs_as_it_was_recorded(path: Path, pytestconfig: pytest.Config) -> None:
    """Differences are either a mistake or a decision: then `pytest --rewrite`, and say why in the commit."""
    reported = path.read_text("utf-8")
    now = golden.record(reported)
    if pytestconfig.getoption("--rewrite"):
        path.write_text(now, "utf-8")
    else:
        assert now.splitlines() == reported.splitlines()


def test_the_stories_are_there() -> None:
    """Each is named for its event and opens with its aim and the place in Kafka's source that it is about."""
    assert set(WANTED) <= {path.stem for path in golden.STORIES}
    for path in golden.STORIES:
        opening = path.read_text("utf-8").split("\n\n")[0]
        assert re.search(r"^# Kafka \d[\d.]+: \w+/\w+\.scala, \w+", opening, re.MULTILINE), f"{path.name} cites nothing"


def test_ci_never_rewrites(pytestconfig: pytest.Config) -> None:
    assert not (os.environ.get("CI") and pytestconfig.getoption("--rewrite"))


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_a_story_is_the_same_in_every_process(python: str, seed: str) -> None:
    """Whatever the hash seed and the version of Python are, the bytes are the same."""
    path = ROOT / "tests" / "traces" / "controller_failure.txt"
    environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    reported = subprocess.run(
        [python, ROOT / "tests" / "golden.py", path], env=environment, capture_output=True, text=True, check=True
    )
    assert reported.stdout == golden.record(path.read_text("utf-8"))


# The runner itself


def test_blocks_keep_prose_commands_and_outputs_apart() -> None:
    reported = "# Aim.\n\nlab brokers=1\n----\nold\noutput\n\n# Prose.\n\nsettle\n\n# The end.\n"
    assert [(b.prose, b.command, b.output, b.line) for b in golden.blocks(reported)] == [
        ("# Aim.", "lab brokers=1", "old\noutput", 3),
        ("# Prose.", "settle", "", 10),
        ("# The end.", "", "", 0),
    ]


def test_what_is_recorded_is_stable() -> None:
    """Recording what was just recorded changes nothing."""
    once = golden.record("# Aim.\n\nquiet lab brokers=1 seed=1\n\ncreate_topic t\n\nsettle\n\n# The end.\n")
    assert golden.record(once) == once
    assert once.startswith("# Aim.\n\nquiet lab brokers=1 seed=1\n----\nok\n\ncreate_topic t\n----\nt=")
    assert once.endswith("\n\n# The end.\n")


def test_refusals_are_outputs(prose: Prose) -> None:
    reported = golden.record("quiet lab brokers=2\n\nstart 1\n\nkill 9\n\nshow partitions\n")
    prose(reported)


def test_an_unknown_command_names_the_known_ones(prose: Prose) -> None:
    prose.refuses(UnknownName, golden.record, "quiet lab brokers=1\n\nquiet destroy 1\n")
    prose.refuses(BadInput, golden.record, "quiet settle\n")


def test_a_check_that_does_not_hold_is_not_recorded() -> None:
    with pytest.raises(AssertionError, match="t-0 has leader=1, not 2"):
        golden.record("quiet lab brokers=1\n\nquiet create_topic t\n\nquiet settle\n\ncheck t 0 leader=2\n")
