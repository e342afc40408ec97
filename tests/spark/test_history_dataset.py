"""Generated datasets: the seed decides everything, and a half-written one is never taken for a whole."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from history_plain import contents, sorted_rows
from prose import Prose

import kafka_ctl.history.dataset as module
from kafka_ctl import BadInput, Trace
from kafka_ctl.history import Workload, generate, load_arrow, simulate
from kafka_ctl.history.layout import DatasetFolder, bucket_of, murmur3
from kafka_ctl.history.reading import load
from kafka_ctl.history.schema import SCHEMA
from kafka_ctl.history.session import spark
from kafka_ctl.history.traces import from_arrow

SMALL = Workload(brokers=(3, 4), topics=(1, 3), rate=3)
ASKED: dict[str, Any] = {"clusters": 6, "hours": 4, "seed": 5, "workload": SMALL}


def write(out: Path, **changes: Any) -> module.Dataset:
    return generate(None, **{**ASKED, "buckets": 3, "out": out, **changes})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "data"
    write(out)
    return out


@pytest.fixture
def fragile(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A simulator that stops working after so many clusters."""
    left = {"clusters": 0}

    def until_it_breaks(seed: int, *rest: Any) -> Trace:
        if not left["clusters"]:
            raise RuntimeError("the power went")
        left["clusters"] -= 1
        return simulate(seed, *rest)

    monkeypatch.setattr(module, "simulate", until_it_breaks)
    return left


def test_every_cluster_is_there_and_is_its_simulation(whole: Path) -> None:
    """What is on disk is, record for record, what `simulate` gives for that seed."""
    table = load_arrow(whole)
    assert table.schema.equals(SCHEMA)
    names = sorted(table.column("history").unique().to_pylist())
    assert names == [f"cluster-{5_000_000 + n:09d}" for n in range(6)]
    for number, name in enumerate(names):
        assert from_arrow(table, name).records == simulate(5_000_000 + number, 4, "2.0", SMALL).records
    assert repr(module.dataset(DatasetFolder(whole))) == f"6 histories with {len(table):,} records"


def test_tasks_do_not_matter(whole: Path, tmp_path: Path) -> None:
    """More buckets, other processes, Spark: the same records; and with the same buckets the same files."""
    more = load_arrow(write(tmp_path / "more", buckets=7).path)
    assert sorted_rows(more).equals(sorted_rows(load_arrow(whole)))
    write(tmp_path / "processes", processes=2)
    generate(spark(), **ASKED, buckets=3, out=tmp_path / "spark")
    for other in ("processes", "spark"):
        assert contents(tmp_path / other) == contents(whole)


def test_another_seed_is_another_dataset(whole: Path, tmp_path: Path) -> None:
    assert module.dataset(DatasetFolder(whole)).records != write(tmp_path / "other", seed=6).records


def test_spark_reads_what_was_written(whole: Path) -> None:
    """The same table, and which file a record was in."""
    df = load(spark(), whole)
    assert df.columns == [*SCHEMA.names, "section"]
    read = sorted_rows(pa.Table.from_batches(df.drop("section").toArrow().to_batches()).cast(SCHEMA))
    assert read.equals(sorted_rows(load_arrow(whole)))


@pytest.mark.parametrize(
    ("clusters", "hours", "buckets"),
    [(1, 24, 1), (50, 24, 10), (1000, 24, 16), (20_000, 24, 43), (1_000_000, 1e6, 100_000)],
)
def test_the_usual_number_of_buckets(clusters: int, hours: float, buckets: int) -> None:
    """Sixteen are enough for a handful of cores; more than that keep a task's bucket small."""
    assert module.default_buckets(clusters, hours) == buckets


def test_buckets_are_those_of_spark(whole: Path) -> None:
    """Our hash is Spark's, also for names that are no multiple of four bytes and not ASCII."""
    names = ["", "a", "ab", "abc", "abcd", "cluster-000000001", "größe", "日本", "x" * 41]
    rows = spark().createDataFrame([(n,) for n in names], "name string").selectExpr("name", "hash(name) AS h")
    assert {row.name: row.h for row in rows.collect()} == {n: murmur3(n.encode()) for n in names}
    for path in whole.glob("kind=*/section=*/part-*.parquet"):
        bucket = int(path.name.split("_")[1][:5])
        table = pq.ParquetFile(path).read()
        assert {bucket_of(name, 3) for name in table.column("history").to_pylist()} == {bucket}
        keys = zip(*(table.column(c).to_pylist() for c in ("history", "topic", "partition", "seq")), strict=True)
        order = [(h, t or "", -1 if p is None else p, s) for h, t, p, s in keys]
        assert order == sorted(order)


def test_a_dataset_is_not_overwritten_by_accident(prose: Prose, whole: Path) -> None:
    """Told what is there and what to say; what is there stays."""
    before = (whole / "_manifest.json").read_bytes()
    prose.refuses(BadInput, write, whole)
    assert (whole / "_manifest.json").read_bytes() == before


def test_overwriting_replaces_all_and_only_the_dataset(prose: Prose, tmp_path: Path) -> None:
    """Files of others in the folder are left alone; a folder of others is not taken."""
    write(tmp_path / "data")
    (tmp_path / "data" / "notes.txt").write_text("mine")
    again = write(tmp_path / "data", clusters=2, buckets=1, overwrite=True)
    assert again.histories == 2
    assert len(load_arrow(tmp_path / "data")) == again.records
    assert (tmp_path / "data" / "notes.txt").read_text() == "mine"
    prose.refuses(BadInput, write, tmp_path)


def test_an_interrupted_run_is_seen_and_resumed(
    prose: Prose, whole: Path, tmp_path: Path, fragile: dict[str, int]
) -> None:
    """It is not readable, not begun anew by accident, and finished without doing the work twice."""
    out = tmp_path / "data"
    first = sum(bucket_of(f"cluster-{5_000_000 + n:09d}", 3) == 0 for n in range(6))
    fragile["clusters"] = first + 1
    with pytest.raises(RuntimeError, match="the power went"):
        write(out)
    prose.refuses(BadInput, load_arrow, out)
    prose.refuses(BadInput, write, out)
    prose.refuses(BadInput, write, out, hours=5, workload=Workload(), resume=True)
    with pytest.raises(BadInput, match="overwrite and resume"):
        write(out, overwrite=True, resume=True)
    done = [json.loads(path.read_text())["histories"] for path in (out / "_buckets").glob("*.json")]
    assert 0 < sum(done) < 6
    fragile["clusters"] = 6 - sum(done)
    write(out, resume=True)
    assert fragile["clusters"] == 0
    assert contents(out) == contents(whole)
    assert write(out, resume=True) == module.dataset(DatasetFolder(out))


@pytest.mark.parametrize("buckets", [2, 3])
@pytest.mark.parametrize("ends", [True, False])
def test_a_folder_that_another_run_took_is_not_finished(
    prose: Prose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buckets: int, ends: bool
) -> None:
    """The second run begins while the first one writes; the folder holds the records of the second alone."""
    out, later = tmp_path / "data", {"clusters": 4, "seed": 6, "buckets": buckets, "overwrite": True}
    left = [1]

    def interrupted(seed: int, *rest: Any) -> Trace:
        if left and not left.pop():
            write(out, **later) if ends else module.prepare(DatasetFolder(out), job(**later), True, False)
        return simulate(seed, *rest)

    monkeypatch.setattr(module, "simulate", interrupted)
    for before in (0, 1):  # in the first bucket, and after it
        left[:] = [0] if not before else [0, 1, 1, 1]
        prose.refuses(BadInput, write, out, overwrite=True)
        if ends:
            assert len(load_arrow(out)) == write(tmp_path / f"alone{before}", **later).records
            assert not (out / "_temporary").exists()
        else:
            assert json.loads((out / "_unfinished.json").read_text())["clusters"] == 4
            assert not [*out.glob("kind=*")]


def job(**changes: Any) -> module.Job:
    asked = {**ASKED, **changes, "generation": "2.0"}
    return module.Job(**{name: value for name, value in asked.items() if name != "overwrite"})


def test_missing_and_foreign_datasets(prose: Prose, whole: Path, tmp_path: Path) -> None:
    """Loading says what is wrong with the folder."""
    prose.refuses(BadInput, load, spark(), tmp_path / "nowhere")
    manifest = json.loads((whole / "_manifest.json").read_text())
    (tmp_path / "_manifest.json").write_text(json.dumps(manifest | {"format": 99, "folders": None}))
    prose.refuses(BadInput, load_arrow, tmp_path)


def test_odd_names_of_folders(tmp_path: Path) -> None:
    """Spaces, quotes and per cents are only characters."""
    out = tmp_path / "it's 100% odd \\ here"
    written = write(out, clusters=1, buckets=1)
    assert load(spark(), out).count() == len(load_arrow(out)) == written.records
    os.chdir(tmp_path)
    assert load(spark(), out.name).count() == written.records


def test_progress_goes_to_stderr_when_wanted(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    """By default only a terminal sees it."""
    write(tmp_path / "quiet", clusters=2)
    assert capfd.readouterr() == ("", "")
    write(tmp_path / "reported", clusters=2, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "writing" in err
    assert "3/3" in err
