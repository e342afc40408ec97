"""`kafka-ctl history`: simulated clusters and real logs become files, and files answer questions."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import create_autospec

import pytest
from labs import play
from prose import Prose
from pyspark import StatusTracker

from kafka_ctl import Lab
from kafka_ctl.cli import commands as cli
from kafka_ctl.cli import history
from kafka_ctl.history import generate, questions, write_logs

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process, without reports of progress; its exit status and what it printed."""
    monkeypatch.setattr(history, "PATIENCE", 1e9)

    def reported(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.status(["history", *map(str, words)])
        return status, *capsys.readouterr()

    return reported


@pytest.fixture
def lab() -> Lab:
    """A broker dies."""
    lab = Lab(brokers=3, seed=7)
    play(lab, "create_topic orders partitions=2 replication_factor=3; settle; kill 1; settle")
    return lab


def answered(run: Run, tmp_path: Path, question: str, *sources: object) -> list[dict[str, str]]:
    """All rows of an answer, as the command writes them."""
    status, out, err = run("ask", question, *sources, "--csv", tmp_path / "answer.csv")
    assert (status, out, err) == (0, f"{tmp_path / 'answer.csv'}\n", "")
    with (tmp_path / "answer.csv").open() as file:
        return list(csv.DictReader(file))


def test_clusters_are_simulated_and_asked(run: Run, tmp_path: Path) -> None:
    """The seed decides; a dataset that is there is replaced only when that is said."""
    request = ("generate", "--clusters", 2, "--hours", 2, "--seed", 5, "--out", tmp_path / "many")
    status, out, _ = run(*request)
    assert status == 0
    assert out.startswith("2 histories with ")
    assert {row["history"] for row in answered(run, tmp_path, "leader_churn", tmp_path / "many")} == {
        "cluster-005000000",
        "cluster-005000001",
    }
    status, _, err = run(*request)
    assert (status, "many" in err) == (2, True)
    assert run(*request, "--overwrite")[:2] == (0, out)
    status, out, err = run("ask", "compare", tmp_path / "many", tmp_path / "many", "--rows", 3)
    assert (status, err) == (0, "")
    assert "cause" in out.splitlines()[1]


def test_logs_are_read_kept_and_asked(prose: Prose, run: Run, lab: Lab, tmp_path: Path) -> None:
    """What is kept answers as the logs themselves do."""
    write_logs(lab.trace, tmp_path / "logs")
    status, out, err = run("import", tmp_path / "logs", "--out", tmp_path / "mine")
    assert (status, err) == (0, "")
    assert "0 rejected" in out
    kept = answered(run, tmp_path, "leader_churn", tmp_path / "mine")
    assert kept == answered(run, tmp_path, "leader_churn", tmp_path / "logs")
    assert {(row["topic"], row["partition"]) for row in kept} == {("orders", "0"), ("orders", "1")}
    status, _, err = run("import", tmp_path / "logs", "--out", tmp_path / "mine")
    assert status == 2
    prose(err)
    (tmp_path / "mine/records/_SUCCESS").unlink()
    status, _, err = run("ask", "leader_churn", tmp_path / "mine")
    assert status == 2
    prose(err)


def test_a_trace_in_a_file_is_asked(run: Run, lab: Lab, tmp_path: Path) -> None:
    """A lab's own run needs no folder."""
    lab.trace.to_parquet(tmp_path / "run.parquet")
    status, out, _ = run("ask", "departures", tmp_path / "run.parquet")
    assert status == 0
    assert "|broker crash|" in out
    rows = answered(run, tmp_path, "unavailability", tmp_path / "run.parquet")
    assert {row["leader"] for row in rows} == {"", "1"}  # and no `1.0`, though some are empty


def test_the_progress_of_a_question(
    prose: Prose, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before Spark has a stage there are no tasks to count."""
    stages, over = iter([[], [1]]), threading.Event()

    def active() -> list[int]:
        found = next(stages, None)
        over.set() if found is None else None
        return found or []

    tracker = create_autospec(StatusTracker, instance=True)
    tracker.getActiveStageIds.side_effect = active
    tracker.getStageInfo.return_value = SimpleNamespace(numCompletedTasks=1, numTasks=4)
    context = SimpleNamespace(statusTracker=lambda: tracker)
    monkeypatch.setattr("kafka_ctl.history.spark", lambda: SimpleNamespace(sparkContext=context))
    monkeypatch.setattr(history, "PATIENCE", 0.001)
    with history.progress("leader_churn", 1):
        assert over.wait(30)
    for line in capsys.readouterr().err.splitlines()[:2]:
        prose(line.partition(" s  ")[2])


def test_every_question_is_listed(run: Run) -> None:
    status, out, _ = run("questions")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == questions.__all__


@pytest.mark.parametrize(
    ("words", "package"),
    [
        ("history import LOGS", "pyarrow"),
        ("history import LOGS", "pandas"),
        ("history import LOGS", "pyspark"),
        ("drill LOGS/brokers.txt --plot LOGS/drill.png", "matplotlib"),
        ("drill LOGS/brokers.txt --plot LOGS/drill.png", "pyspark"),
    ],
)
def test_a_package_that_is_not_there(prose: Prose, lab: Lab, tmp_path: Path, words: str, package: str) -> None:
    """One sentence with the extra that has it, before anything is done."""
    write_logs(lab.trace, tmp_path)
    (tmp_path / "brokers.txt").write_text("Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n")
    program = "\n".join(
        [
            "import sys",
            "from importlib.machinery import PathFinder",
            "from kafka_ctl import extras",
            "from kafka_ctl.cli.commands import status",
            "find = PathFinder.find_spec",
            "def without(name, *more):",
            f"    return None if name.partition('.')[0] == {package!r} else find(name, *more)",
            "PathFinder.find_spec, extras.IN_CHECKOUT = without, False",
            "sys.exit(status(sys.argv[1:]))",
        ]
    )
    command = [sys.executable, "-c", program, *words.replace("LOGS", str(tmp_path)).split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    prose(done.stderr)


@pytest.mark.parametrize(
    ("words", "logged"),
    [
        (("ask", "why", "many"), "no question 'why'; there are: broker_churn, compare"),
        (("ask", "compare", "many"), "compare takes 2 sources, not 1"),
        (("ask", "leader_churn", "a", "b"), "leader_churn takes 1 source, not 2"),
        (("ask", "leader_churn", "none.parquet"), "none.parquet: no such file"),
        (("import", "nowhere"), "nowhere: no such file or folder"),
        (("generate", "--clusters", "0", "--out", "x"), "Invalid value for '--clusters'"),
        (("generate", "--clusters", "1", "--hours", "-1", "--out", "x"), "hours"),
        (("generate", "--hours", "nan", "--out", "x"), "Invalid value for '--hours': 'nan' is not a finite number.\n"),
        (("generate", "--hours", "inf", "--out", "x"), "Invalid value for '--hours': 'inf' is not a finite number.\n"),
        (("generate", "--clusters", "9999999", "--out", "x"), "9999999 is not in the range 1<=x<=1000000"),
        (("generate", "--hours", "100001", "--out", "x"), "100001.0 is not in the range 0<x<=100000"),
        (("generate", "--seed", "1000000001", "--out", "x"), "1000000001 is not in the range 0<=x<=1000000000"),
        (("generate", "--seed", "-1", "--out", "x"), "Invalid value for '--seed': -1 is not in the range"),
        (("generate", "--clusters", "1", "--out", __file__), f"{__file__} is a file; give an empty or new folder\n"),
        (("generate", "--overwrite", "--resume", "--out", "x"), "overwrite and resume do not go together"),
        (("generate", "--out", "."), "is not empty and holds no dataset; give an empty or new folder\n"),
        (("ask", "leader_churn", "nowhere"), "nowhere: no such file or folder"),
        (("ask", "leader_churn", ""), "'' is not a path"),
        (("import", ""), "'' is not a path"),
    ],
)
def test_a_wrong_call_is_reported(
    monkeypatch: pytest.MonkeyPatch, run: Run, words: tuple[str, ...], logged: str
) -> None:
    """In one sentence, with exit status 2, before Spark starts."""
    monkeypatch.setattr("kafka_ctl.history.spark", lambda: pytest.fail("Spark was started"))
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert logged in err


def test_bad_files_are_reported_and_good_ones_kept(prose: Prose, run: Run, lab: Lab, tmp_path: Path) -> None:
    """In the summary and on standard error, with exit status 0: something was understood."""
    write_logs(lab.trace, tmp_path / "logs")
    bad = tmp_path / "logs" / "broker-1" / "state-change.log.2.gz"
    bad.write_bytes(gzip.compress(b"x" * 99)[:-12])
    status, out, err = run("import", tmp_path / "logs", "--out", tmp_path / "mine")
    assert status == 0 and str(bad) in err
    prose(err)
    assert f"; 1 {err.removeprefix('kafka-ctl: ')}" in out
    assert answered(run, tmp_path, "leader_churn", tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.csv", "logs", "mine"]


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        (b"", "there are no lines"),
        (b"hello\nyou\n", "2 of its lines rejected (no header)"),
        (gzip.compress(b"hello\n" * 9)[:-9], "1 not read, or not to the end"),
        (b"[2016-03-01 10:00:00,000] INFO up (kafka.server.KafkaServer)\n", "1 of its lines rejected (another logger)"),
    ],
    ids=["empty", "text", "damaged", "another log"],
)
def test_where_nothing_was_understood(run: Run, tmp_path: Path, text: bytes, logged: str) -> None:
    """Exit status 1 and the reason; nothing is written."""
    (tmp_path / "controller.log").write_bytes(text)
    for words in (("import", tmp_path, "--out", tmp_path / "mine"), ("ask", "leader_churn", tmp_path)):
        status, _, err = run(*words)
        assert (status, f"kafka-ctl: {tmp_path}: nothing was understood: " in err, logged in err) == (1, True, True)
    assert [path.name for path in tmp_path.iterdir()] == ["controller.log"]


def test_what_is_no_parquet_is_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "run.parquet").write_text("nothing")
    status, out, err = run("ask", "leader_churn", tmp_path / "run.parquet")
    assert (status, out) == (2, "")
    assert err.startswith(f"kafka-ctl: {tmp_path / 'run.parquet'}: is not a Parquet file: ")


def test_what_is_damaged_inside_is_reported(run: Run, tmp_path: Path) -> None:
    """Spark finds it when it reads the page: one sentence with the file, and none of Java's stack."""
    generate(None, 1, 1, out=tmp_path / "many")
    (file,) = (tmp_path / "many").glob("kind=partition/section=main/*.parquet")
    text = file.read_bytes()
    file.write_bytes(text[:4] + bytes(100) + text[104:])
    status, out, err = run("ask", "leader_churn", tmp_path / "many")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"kafka-ctl: leader_churn of {tmp_path / 'many'} failed in Spark: ")


def test_where_nothing_can_be_written(prose: Prose, run: Run, lab: Lab, tmp_path: Path) -> None:
    """What was read is lost, and no half of it is left."""
    write_logs(lab.trace, tmp_path / "logs")
    (tmp_path / "note").write_text("mine")
    status, _, err = run("import", tmp_path / "logs", "--out", tmp_path / "note" / "mine")
    assert status == 2
    prose(err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "note"]
    status, out, err = run("ask", "departures", tmp_path / "none.parquet", "--csv", tmp_path / "nowhere" / "answer.csv")
    assert (status, out) == (2, "")
    assert err == f"kafka-ctl: {tmp_path / 'nowhere' / 'answer.csv'}: No such file or directory\n"
