"""`kafka-ctl history`: simulated clusters and real logs become files, and files answer questions."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_ctl import Lab, cli
from kafka_ctl.history import questions, write_logs

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process; its exit status and what it printed."""

    def told(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.status(["history", *map(str, words)])
        return status, *capsys.readouterr()

    return told


@pytest.fixture
def lab() -> Lab:
    """A broker dies."""
    lab = Lab(brokers=3, seed=7)
    lab.create_topic("orders", partitions=2, replication_factor=3)
    lab.settle()
    lab.kill(1)
    lab.settle()
    return lab


def answered(run: Run, tmp_path: Path, question: str, *sources: object) -> list[dict[str, str]]:
    """All rows of an answer, as the command writes them."""
    status, out, err = run("ask", question, *sources, "--csv", tmp_path / "answer.csv")
    assert (status, out, err) == (0, f"{tmp_path / 'answer.csv'}\n", "")
    with (tmp_path / "answer.csv").open() as file:
        return list(csv.DictReader(file))


def test_clusters_are_simulated_and_asked(run: Run, tmp_path: Path) -> None:
    """The seed decides; a dataset that is there is replaced only when that is said."""
    wish = ("generate", "--clusters", 2, "--hours", 2, "--seed", 5, "--out", tmp_path / "many")
    status, out, _ = run(*wish)
    assert status == 0
    assert out.startswith("2 histories with ")
    assert {row["history"] for row in answered(run, tmp_path, "leader_churn", tmp_path / "many")} == {
        "cluster-005000000", "cluster-005000001",
    }  # fmt: skip
    status, _, err = run(*wish)
    assert (status, "many" in err) == (2, True)
    assert run(*wish, "--overwrite")[:2] == (0, out)
    status, out, _ = run("ask", "compare", tmp_path / "many", tmp_path / "many", "--rows", 3)
    assert status == 0
    assert "cause" in out.splitlines()[1]


def test_logs_are_read_kept_and_asked(run: Run, lab: Lab, tmp_path: Path) -> None:
    """What is kept answers as the logs themselves do."""
    write_logs(lab.trace, tmp_path / "logs")
    status, out, err = run("import", tmp_path / "logs", "--out", tmp_path / "mine")
    assert (status, err) == (0, "")
    assert "0 rejected; the format of Kafka" in out
    kept = answered(run, tmp_path, "leader_churn", tmp_path / "mine")
    assert kept == answered(run, tmp_path, "leader_churn", tmp_path / "logs")
    assert {(row["topic"], row["partition"]) for row in kept} == {("orders", "0"), ("orders", "1")}
    status, _, err = run("import", tmp_path / "logs", "--out", tmp_path / "mine")
    assert (status, err) == (2, f"kafka-ctl: {tmp_path / 'mine'} is there already; name a folder that is not\n")
    (tmp_path / "mine/records/_SUCCESS").unlink()
    status, _, err = run("ask", "leader_churn", tmp_path / "mine")
    said = f"{tmp_path / 'mine'}: an import that did not come to its end; remove it and import again"
    assert (status, err) == (2, f"kafka-ctl: {said}\n")


def test_a_trace_in_a_file_is_asked(run: Run, lab: Lab, tmp_path: Path) -> None:
    """A lab's own run needs no folder."""
    lab.trace.to_parquet(tmp_path / "run.parquet")
    status, out, _ = run("ask", "departures", tmp_path / "run.parquet")
    assert status == 0
    assert "|broker crash|" in out


def test_every_question_is_listed(run: Run) -> None:
    status, out, _ = run("questions")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == questions.__all__


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ask", "why", "many"), "no question 'why'; there are: broker_churn, compare"),
        (("ask", "compare", "many"), "compare takes 2 sources, not 1"),
        (("ask", "leader_churn", "a", "b"), "leader_churn takes 1 source, not 2"),
        (("ask", "leader_churn", "none.parquet"), "none.parquet: no such file"),
        (("import", "nowhere"), "nowhere: no such file or folder"),
        (("generate", "--clusters", "0", "--out", "x"), "Invalid value for '--clusters'"),
        (("generate", "--clusters", "1", "--hours", "-1", "--out", "x"), "hours"),
    ],
)
def test_a_wrong_call_is_said(run: Run, words: tuple[str, ...], said: str) -> None:
    """In one sentence, with exit status 2."""
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert said in err
