"""What the benchmarks claim, at sizes that take no time, and on the virtual clock only."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from runpy import run_module
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command
from benchmarks import against, copies, engines, question_times
from benchmarks.controller import TASKS, cost, trips_a_partition
from benchmarks.figures import Figure, figures
from benchmarks.mutants import PAGE, Cell, caught, cell, figure, page, played
from kafka_ctl import Generation, Unavailable
from kafka_ctl.explore.walk import busy
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.history.layout import DatasetFolder
from kafka_ctl.paths import ROOT
from tests.mutants import IMPOSSIBLE, MUTANTS
from tools import java_classes


@pytest.fixture(autouse=True)
def short_lived_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every JVM here lives for seconds."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", " ".join(["-XX:+UseSerialGC", *java_classes.options()]))


@pytest.mark.parametrize(
    ("generation", "trips"),
    [
        (Generation("0.10"), 2.0),
        (Generation("2.0"), 0.2),
        (Generation("2.4"), 0.2),
        (Generation("2.0").but(pipelined=False), 2.0),  # KAFKA-5642 alone makes the difference
    ],
    ids=str,
)
def test_controlled_shutdown_climbs_the_published_ladder(generation: Generation, trips: float) -> None:
    """One at a time it grows by two round trips a partition, with ten in flight by a fifth of one."""
    assert trips_a_partition(generation, 30, 180) == pytest.approx(trips, abs=0.01)


def test_the_tasks_need_the_operations_that_the_source_says(generation: str) -> None:
    """L partitions led and F followed: 3L + 2F for a failure, 2L + 2F for a shutdown; one read each, at least, for
    a new controller."""
    failure, failover, shutdown = (cost(task, generation, 60).operations for task in TASKS)
    led, followed = 20, 40
    assert 3 * led + 2 * followed <= failure <= 3 * led + 2 * followed + 10
    assert 2 * led + 2 * followed <= shutdown <= 2 * led + 2 * followed + 20
    assert failover >= led + followed + 2 * led


@pytest.mark.parametrize("name", ["sent-is-received", "followers-untold", "newest-first"])
def test_random_walks_notice_a_mutant(name: str) -> None:
    """After the same number of steps each time; and nothing is wrong with the walk itself."""
    generation = MUTANTS[name].generation
    found = caught(name, generation, 3)
    assert found == caught(name, generation, 3)
    assert found[1] > 0
    assert played(busy(generation, 3))[0] is None
    assert figure(cell((name, generation), 2), 2).beside.startswith("noticed with 2 of 2 seeds")


def test_the_page_of_mutants_is_of_those_that_there_are() -> None:
    """A row for each, and in each generation in which it is possible it was noticed with every seed."""
    text = PAGE.read_text("utf-8")
    seeds = int(re.search(r"over (\d+) seeds", text)[1])
    rows = {
        r[0].strip("`"): r[2:-1]
        for r in re.findall(r"^\| (`.+`) \| (.+) \| (.+) \| (.+) \| (.+) \| (.+) \|$", text, re.M)
    }
    assert rows.keys() == MUTANTS.keys() and seeds >= 3
    found = [
        Cell(name, generation, () if steps == "-" else (int(steps.replace(",", "")),) * seeds, ())
        for name, row in rows.items()
        for generation, steps in zip(GENERATIONS, row, strict=True)
    ]
    assert {(c.name, c.generation) for c in found if not c.steps} == IMPOSSIBLE.keys()
    plain = re.sub(r"\| [I\d, ]+ \|$", "|  |", text, flags=re.M)
    assert page(found, seeds) == plain


def quick(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Figure]:
    """A short run of a part, with the sizes of its `QUICK`; skips it where something is missing."""
    part = import_module(f"benchmarks.{name}")
    for size, value in part.QUICK.items():
        assert hasattr(part, size), f"{part.__name__}.{size}"
        monkeypatch.setattr(part, size, value)
    measured = list(figures(part))
    if missing := [figure.beside for figure in measured if figure.result == "not measured"]:
        pytest.skip(missing[0])
    return measured


def lacking(name: str) -> str | None:
    """What a part needs beyond what it says itself."""
    if name == "beside_kafka":
        from benchmarks.beside_kafka import GENERATION, release

        fetched = any(release(GENERATION).jars.glob("kafka_*.jar"))
        return None if fetched else "Kafka 2.0.1 was not fetched yet (by Maven)"
    if name == "fresh_clone":
        return None if shutil.which("git") and (ROOT / ".git").exists() else "this is no clone"
    return None


@pytest.mark.parametrize("name", sorted({*command.ALL} - {"site"}))
def test_every_part_runs(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Shortly; each figure has a name, and a result with a number.

    `site` runs in tests/browser/test_site_browser.py, where a site is built; `history` in tests/spark.
    """
    if reason := lacking(name):
        pytest.skip(reason)
    measured = quick(monkeypatch, name)
    assert measured
    for row in measured:
        assert row.name
        assert re.search(r"\d", row.result), row


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("benchmarks speed", "no benchmark speed"),
        ("benchmarks --rounds 0", "--rounds cannot be 0"),
        ("benchmarks.history x", "invalid int value: 'x'"),
        ("benchmarks.copies x", "invalid float value: 'x'"),
        ("tools.kafka_tables --foo", "unrecognized arguments: --foo"),
    ],
)
def test_a_wrong_call_runs_nothing(
    words: str, refusal: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tool without arguments refuses them, too."""
    module, *rest = words.split()
    monkeypatch.setattr(sys, "argv", [module, *rest])
    with pytest.raises(SystemExit) as ended:
        run_module(module, run_name="__main__", alter_sys=True)
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "") and refusal in err


def test_every_part_is_in_the_table() -> None:
    """Of the command, and of benchmarks/README.md."""
    parts = {
        path.stem for path in (ROOT / "benchmarks").glob("*.py") if "def measure() -> Iterator" in path.read_text()
    }
    assert parts == set(command.ALL)
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "benchmarks/README.md").read_text("utf-8"), re.MULTILINE)
    assert parts == {*listed}


FEW = ("departures", "leader_churn")
"""Questions of these short runs."""


def test_engines_agree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a few records: the same answer by Spark, DuckDB and polars; `tests/spark` asks every question."""
    for name in ("duckdb", "polars"):
        pytest.importorskip(name, reason=f"{name} is in benchmarks/requirements.txt")
    if not Path("/proc/self/stat").exists():
        pytest.skip("memory and processor time are read from /proc")
    monkeypatch.setattr(engines, "QUESTIONS", FEW)
    for module in (copies, engines):
        for size, value in module.QUICK.items():
            monkeypatch.setattr(module, size, value)
    monkeypatch.setattr(copies, "originals", [])
    monkeypatch.setattr(copies, "original_parts", [])
    engines.main(["0.01"])
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[2:]] == [*FEW, "all", "peak"]


class Timed:
    """An engine without Java, which `test_engines_agree` starts: the first run takes a second for 10,000 records."""

    peak = 2_000_000_000

    def __init__(self, name: str, path: str, cores: int) -> None:
        assert (name, cores) == ("spark", question_times.CORES)
        self.seconds = DatasetFolder(Path(path)).manifest()["records"] / 10_000

    def run(self, verb: str, question: str) -> tuple[float, float, None]:
        assert (verb, question) == ("ask", "failover_time")
        self.seconds += 1
        return 0.0, self.seconds - 1, None

    def close(self) -> None:
        """There is no process."""


def test_the_time_of_questions_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """At two small sizes: a row for each, on the page too, with the lowest of the runs and the growth."""
    small = {"QUESTIONS": ("failover_time",), "CLUSTERS": 2, "HOURS": 1, "RUNS": 2, "CORES": 1, "Engine": Timed}
    for name, value in (small | {"PAGE": tmp_path / "page.md"}).items():
        monkeypatch.setattr(question_times, name, value)
    question_times.main(["--write", "0.01", "0.02"])
    rows = re.findall(r"^\| .+ \|$", capsys.readouterr().out, re.MULTILINE)
    text = question_times.PAGE.read_text("utf-8")
    assert len(rows) == 2 and text.endswith("\n".join(rows) + "\n")
    assert "--write 0.01 0.02`" in text
    one, two = (int(row.split()[1].replace(",", "")) for row in rows)
    assert rows[0] == f"| {one:,} | {one / 10_000:.1f} | {one / 10_000:.1f} |  | 2.0 GB |"
    assert rows[1].endswith(f" | {two / 10_000:.1f} | {two / one:.1f} ({two / one:.1f}) | 2.0 GB |")


def test_the_page_of_question_times_is_consistent() -> None:
    """The sizes in its command are those of its rows; the last columns follow from the others."""
    text = question_times.PAGE.read_text("utf-8")
    sizes = [float(size) for size in re.search(r"--write ([\d. ]+)`", text)[1].split()]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| \d", line)]
    records = [int(row[0].replace(",", "")) for row in rows]
    assert len(sizes) == len(records) >= 4
    assert all(1 <= found / (size * 1e6) < 1.1 for size, found in zip(sizes, records, strict=True))
    end = 1 + len(question_times.QUESTIONS)
    totals = [float(row[end]) for row in rows]
    for row, total in zip(rows, totals, strict=True):
        assert sum(map(float, row[1:end])) == pytest.approx(total, abs=0.3)
    for n in range(1, len(rows)):
        found = [float(each) for each in re.findall(r"[\d.]+", rows[n][end + 1])]
        wanted = [totals[n] / totals[n - 1], records[n] / records[n - 1]]
        assert found == pytest.approx(wanted, rel=0.05, abs=0.1)


def test_each_figure_is_printed_as_it_comes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not only at the end, which may never come; what is missing is a line as well."""
    before: list[str] = []

    def measure() -> Iterator[Figure]:
        yield Figure("the first", "1 s")
        before.append(capsys.readouterr().out)
        raise Unavailable("no Java here")

    part = SimpleNamespace(__name__="benchmarks.travel", measure=measure, QUICK={"TIMES": 1})
    monkeypatch.setattr(command, "import_module", lambda name: part)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick", "travel"])
    assert command.main() == 0
    assert "the first" in before[0]
    assert re.search(r"travel +not measured", capsys.readouterr().out)
    assert part.TIMES == 1


def test_the_command_runs_what_it_is_reported() -> None:
    """In a process of its own."""
    words = [sys.executable, "-m", "benchmarks", "--quick", "travel"]
    reported = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (reported.returncode, reported.stderr) == (0, "")
    assert "rewind a run of " in reported.stdout


def test_two_checkouts_are_compared_round_by_round() -> None:
    """By name and unit; a figure without a number, or that one of them lacks, has no ratio."""
    line = "  {:60} {:>24}   {}".format
    here = line("a broker fails", "3,000 records/s", "aim: 9") + "\n" + line("lost", "not measured", "no Java")
    there = line("a broker fails", "1,500 records/s", "") + "\n" + line("import", "-1.5 ms", "") + "\nPython 3.11"
    rounds = [(against.numbers(here), against.numbers(there)), (against.numbers(there), against.numbers(there))]
    ratio, alone = against.compared(rounds)
    assert (ratio.name, ratio.result) == ("a broker fails", "1.50") and "1.00 to 2.00 in 2 rounds" in ratio.beside
    assert (alone.name, alone.result) == ("import", "not compared")


def test_an_unknown_commit_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "--against", "no-such-commit", "importing"])
    assert command.main() == 2 and "no commit 'no-such-commit'" in capsys.readouterr().err
