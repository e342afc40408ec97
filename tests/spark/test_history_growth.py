"""Grown datasets: copies with other names, in the layout of a generated dataset."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from history_plain import contents, sorted_rows

import kafka_ctl.history.dataset as dataset
import kafka_ctl.history.growth as module
from kafka_ctl import BadInput, Unavailable
from kafka_ctl.history import Workload, generate, grow, load, load_arrow, questions
from kafka_ctl.history.layout import DatasetFolder, bucket_of
from kafka_ctl.history.session import spark

SMALL = Workload(brokers=(3, 4), topics=(1, 3), rate=6)
TIMES = 5


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("source") / "data"
    generate(None, clusters=4, hours=4, seed=5, workload=SMALL, buckets=2, out=out)
    return out


@pytest.fixture(scope="module")
def grown(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("grown") / "data"
    grow(None, source, TIMES, out=out, buckets=3)
    return out


def test_each_history_is_there_so_many_times(source: Path, grown: Path) -> None:
    """The original under its own name, and copies that differ from it in nothing but the name."""
    before, after = load_arrow(source), load_arrow(grown)
    assert len(after) == TIMES * len(before)
    for name in before.column("history").unique().to_pylist():
        original = before.filter(pc.equal(before.column("history"), name)).sort_by("seq").drop_columns(["history"])
        for copy in module.copy_names(name, TIMES):
            found = after.filter(pc.equal(after.column("history"), copy)).sort_by("seq").drop_columns(["history"])
            assert found.equals(original)


def test_the_files_are_sorted_and_bucketed(grown: Path) -> None:
    """Spark is told so, and would give wrong answers otherwise."""
    for file in DatasetFolder(grown).files():
        names = pq.read_table(file, columns=["history"], partitioning=None).column("history").to_pylist()
        assert names == sorted(names)
        assert {bucket_of(name, 3) for name in names} == {int(Path(file).name[5:10])}


def test_many_records_have_more_buckets(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket is the work of a task, which has only so much memory; a small dataset stays as it was."""
    few = grow(None, source, 2, out=tmp_path / "few")
    assert DatasetFolder(few.path).manifest()["buckets"] == 2
    monkeypatch.setattr(dataset, "IN_BUCKET", few.records // 5)
    many = grow(None, source, 2, out=tmp_path / "many")
    assert DatasetFolder(many.path).manifest()["buckets"] == 5
    assert sorted_rows(load_arrow(many.path)).equals(sorted_rows(load_arrow(few.path)))


def test_spark_writes_the_same_files(source: Path, grown: Path, tmp_path: Path) -> None:
    """Whoever writes it, and however many tasks: the same bytes."""
    grow(spark(), source, TIMES, out=tmp_path / "data", buckets=3)
    assert contents(tmp_path / "data", "*.parquet") == contents(grown, "*.parquet")


def test_answers_are_multiplied(source: Path, grown: Path) -> None:
    """The same intervals, each so many times; the median stays."""
    rows = [questions.unavailability(load(spark(), path)).toPandas() for path in (source, grown)]
    assert len(rows[1]) == TIMES * len(rows[0]) > 0
    assert rows[1].outage_ms.median() == rows[0].outage_ms.median()
    assert rows[1].outage_ms.sum() == pytest.approx(TIMES * rows[0].outage_ms.sum())


def test_an_interrupted_run_is_resumed(source: Path, grown: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    work = module.Growth(str(source), module.parameters(DatasetFolder(source).manifest()), TIMES, 3)
    place = DatasetFolder(out)
    dataset.prepare(place, work, overwrite=False, resume=False)
    dataset.write_bucket(str(out), work, 1)
    with pytest.raises(BadInput, match="not complete"):
        load_arrow(out)
    with pytest.raises(BadInput, match="another times"):
        grow(None, source, TIMES + 1, out=out, buckets=3, resume=True)
    grow(None, source, TIMES, out=out, buckets=3, resume=True)
    assert len(load_arrow(out)) == len(load_arrow(grown))


def test_a_disk_without_room_is_noticed_before_anything_is_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(Unavailable, match="GB are needed"):
        grow(None, source, TIMES, out=tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_source_with_a_damaged_page_is_named(source: Path, tmp_path: Path) -> None:
    """And not the folder that the copies were for."""
    damaged = shutil.copytree(source, tmp_path / "damaged")
    file = min(damaged.rglob("*.parquet"))
    text = file.read_bytes()
    file.write_bytes(text[:4] + bytes(100) + text[104:])
    with pytest.raises(BadInput, match=f"^{re.escape(str(file))}: is damaged: "):
        grow(None, damaged, 2, out=tmp_path / "data")


def test_a_copy_of_a_copy_is_refused(grown: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="was grown already"):
        grow(None, grown, 2, out=tmp_path / "data")


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_the_source_is_not_overwritten(source: Path, inside: str) -> None:
    before = len(load_arrow(source))
    with pytest.raises(BadInput, match="is the source or"):
        grow(None, source, 2, out=source / inside, overwrite=True)
    assert len(load_arrow(source)) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"times": 0}, "times=0: give a whole number from 1 to 1,000,000"),
        ({"times": 2.5}, "times=2.5: give a whole number"),
        ({"times": True}, "times=True: give a whole number"),
        ({"times": 2, "buckets": 0}, "buckets=0: give a whole number from 1 to 100,000"),
        ({"times": 2, "processes": 0}, "processes=0: give a whole number from 1 on"),
        ({"times": 2, "processes": True}, "processes=True: give a whole number from 1 on"),
        ({"times": 2, "source": "nowhere"}, "nowhere holds no generated histories"),
    ],
)
def test_bad_input_is_refused(source: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        grow(None, **{"source": source, "out": tmp_path / "data", **changes})
