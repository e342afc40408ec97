"""Disks that are full, paths that cannot be, numbers that are none: one error of ours, and nothing that looks whole."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from history_plain import contents
from prose import Prose, source

import kafka_ctl.history.dataset as module
from kafka_ctl import BadInput, Lab, Unavailable
from kafka_ctl.history import Workload, generate, grow, live, load, load_arrow, simulate, write_logs
from kafka_ctl.history.layout import DatasetFolder
from kafka_ctl.history.schema import to_parquet
from kafka_ctl.history.session import spark
from kafka_ctl.history.traces import read_parquet
from kafka_ctl.writing import replacing

SMALL = Workload(brokers=(3, 3), topics=(1, 2), rate=2)
ASKED: dict[str, Any] = {"clusters": 4, "hours": 2, "seed": 5, "workload": SMALL, "buckets": 2}
resource = pytest.importorskip("resource", reason="limits of POSIX")


def write(out: object, **changes: Any) -> module.Dataset:
    return generate(None, **{**ASKED, "out": out, **changes})


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    write(tmp_path / "data")
    return tmp_path / "data"


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Files cannot become larger: what a full disk does, and the same for root."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def full(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """A disk on which so many files can be begun."""
    opened = pq.ParquetWriter.__init__
    left = [after]

    def begin(self: Any, *rest: Any, **options: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        opened(self, *rest, **options)

    monkeypatch.setattr(pq.ParquetWriter, "__init__", begin)


def test_a_disk_that_is_full(prose: Prose, tmp_path: Path) -> None:
    """One sentence; the folder is no dataset, says so, and is finished when there is room."""
    out = tmp_path / "data"
    with largest_file(4000), prose.refused(Unavailable):
        write(out)
    for read in (lambda: load_arrow(out), lambda: load(spark(), out)):
        prose.refuses(BadInput, read)
    assert list((out / "_temporary").iterdir()) == []
    assert write(out, resume=True).histories == 4
    assert len(load_arrow(out)) == module.dataset(DatasetFolder(out)).records


@pytest.mark.parametrize("processes", [1, 2])
def test_a_disk_that_is_full_at_once(prose: Prose, tmp_path: Path, processes: int) -> None:
    """Not even the note that it is unfinished can be written: the folder is as empty as before, and can be used."""
    with largest_file(10), prose.refused(Unavailable):
        write(tmp_path / "data", processes=processes)
    assert list((tmp_path / "data").iterdir()) == []
    assert write(tmp_path / "data").histories == 4


@pytest.mark.parametrize("files", [0, 1, 3, 8, 14])
def test_a_disk_that_fills_up(prose: Prose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    """Wherever it ends, nothing can be loaded; resumed, the dataset is the same."""
    with monkeypatch.context() as patch:
        full(patch, files)
        prose.refuses(Unavailable, write, tmp_path / "data")
    with pytest.raises(BadInput, match="is not complete"):
        load_arrow(tmp_path / "data")
    write(tmp_path / "data", resume=True)
    write(tmp_path / "whole")
    assert contents(tmp_path / "data") == contents(tmp_path / "whole")


def test_a_dataset_is_replaced_wholly_or_not(prose: Prose, dataset: Path) -> None:
    """With no room for a note, the old one stays; later, what is left is no dataset."""
    before = contents(dataset)
    with largest_file(10), pytest.raises(Unavailable, match="File too large"):
        write(dataset, seed=6, overwrite=True)
    assert contents(dataset) == before
    with largest_file(4000), pytest.raises(Unavailable, match="File too large"):
        write(dataset, seed=6, overwrite=True)
    with pytest.raises(BadInput, match="is not complete"):
        load_arrow(dataset)
    prose.refuses(BadInput, write, dataset, resume=True)
    write(dataset, seed=6, resume=True)
    assert load_arrow(dataset).column("history")[0].as_py() >= "cluster-006000000"


def test_tasks_of_spark_that_cannot_write(prose: Prose, tmp_path: Path) -> None:
    """The same sentence, without Java's."""
    out = tmp_path / "data"
    with largest_file(4000), pytest.raises(Unavailable):
        write(out)
    (out / "_temporary").rmdir()
    (out / "_temporary").write_text("in the way")
    prose.refuses(BadInput, generate, spark(), **ASKED, out=out, resume=True)
    with pytest.raises(BadInput, match="is not complete"):
        load(spark(), out)
    (out / "_temporary").unlink()
    assert generate(spark(), **ASKED, out=out, resume=True).histories == 4


WRONG: dict[str, list[Any]] = {
    "hours": [math.nan, math.inf, -math.inf, -2, 0, "24", None, True, 1e9, 10**5000, -1],
    "clusters": [0, -1, 2.5, math.nan, "4", True, 10**9],
    "seed": [-1, 10**5000, "five"],
    "buckets": [0, 10**6, "x" * 100, -2],
    "generation": [2.0, None, ["2.0"], "9.9"],
    "workload": ["busy"],
    "processes": [0, "2", True],
    "out": [None, "", 7],
}


@pytest.mark.parametrize(
    "wrong",
    [{name: value} for name, values in WRONG.items() for value in values],
    ids=lambda wrong: next(iter(wrong)),
)
def test_arguments_that_are_neither_numbers_nor_paths(prose: Prose, tmp_path: Path, wrong: dict) -> None:
    """One sentence, and no folder."""
    prose.refuses(BadInput, write, **{"out": tmp_path / "data", **wrong})
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("hours", [math.nan, math.inf, "2", -1])
def test_one_cluster_has_the_same_limits(hours: Any) -> None:
    with pytest.raises(BadInput, match=r"^hours="):
        simulate(1, hours)


def test_a_file_where_the_folder_should_be(prose: Prose, tmp_path: Path, dataset: Path) -> None:
    """Or below one; what is there stays."""
    (tmp_path / "note").write_text("mine")
    prose.refuses(BadInput, write, tmp_path / "note")
    prose.refuses(BadInput, write, tmp_path / "note" / "x")
    for options in ({"overwrite": True}, {"resume": True}):
        with pytest.raises(BadInput, match="is a file"):
            write(tmp_path / "note", **options)
    assert (tmp_path / "note").read_text() == "mine"
    prose.refuses(BadInput, load_arrow, tmp_path / "note")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder that not even root may write")
def test_a_folder_that_cannot_be_written(prose: Prose) -> None:
    """Whoever asks."""
    prose.refuses(BadInput, write, "/proc/kafka_ctl")
    prose.refuses(BadInput, to_parquet, [], "/proc/run.parquet")


# Reading


def damage(dataset: Path, how: Callable[[Path], object]) -> str:
    """Damages one file of a dataset; its name."""
    path = sorted(dataset.glob("kind=*/section=*/*.parquet"))[3]
    how(path)
    return str(path.relative_to(dataset))


@pytest.mark.parametrize(
    ("how", "reported"),
    [
        (Path.unlink, "is not complete: {} is not there any more"),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "is damaged: {} has .* bytes, and had"),
        (lambda path: path.write_bytes(b""), "is damaged: {} has 0 bytes"),
        (lambda path: path.write_bytes(bytes(path.stat().st_size)), "{}: is not a Parquet file: .*magic bytes"),
        (lambda path: (path.unlink(), path.mkdir()), "is not complete: {} is not there any more"),
    ],
    ids=["gone", "cut", "empty", "zeros", "a folder"],
)
def test_a_dataset_that_lost_something(dataset: Path, how: Callable[[Path], object], reported: str) -> None:
    """Told when it is loaded, and not in the middle of an answer."""
    name = damage(dataset, how)
    for read in (lambda: load_arrow(dataset), lambda: load(None, dataset)):
        with pytest.raises(BadInput, match=reported.format(name)):
            read()


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b"{}", b'{"format": 2}', b"\xff\xfe", b"7" * 5000),
        b'{"files": 5, "format": 2, "buckets": 1, "histories": 1, "records": 1}',
    ],
    ids=lambda text: str(text[:9]),
)
def test_a_manifest_that_is_none(prose: Prose, dataset: Path, text: bytes) -> None:
    (dataset / "_manifest.json").write_bytes(text)
    with pytest.raises(BadInput, match=r"_manifest\.json is damaged: "):
        load_arrow(dataset)
    prose.refuses(BadInput, write, dataset, resume=True)
    assert write(dataset, overwrite=True).histories == 4


@pytest.mark.parametrize(
    ("name", "value"), [("buckets", "4"), ("records", None), ("clusters", []), ("hours", {}), ("folders", "all")]
)
def test_a_manifest_with_values_of_other_types(dataset: Path, tmp_path: Path, name: str, value: object) -> None:
    """No function begins with it: a copy would be half done."""
    manifest = json.loads((dataset / "_manifest.json").read_text())
    (dataset / "_manifest.json").write_text(json.dumps(manifest | {name: value}))
    for read in (lambda: load_arrow(dataset), lambda: grow(None, dataset, 2, out=tmp_path / "grown")):
        with pytest.raises(BadInput, match=rf"is damaged: no {name} of"):
            read()
    assert not (tmp_path / "grown").exists()


def test_a_file_that_was_added(dataset: Path) -> None:
    """Its records would count twice; a hidden file, such as those of file managers, holds none."""
    before, file = len(load_arrow(dataset)), min(dataset.rglob("*.parquet"))
    file.with_name(".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    assert len(load_arrow(dataset)) == before
    shutil.copy(file, file.with_name("copy.parquet"))
    with pytest.raises(BadInput, match=r"is damaged: .*/copy\.parquet was"):
        load_arrow(dataset)


def test_a_dataset_of_an_earlier_version(dataset: Path) -> None:
    """Its manifest lists no files: what is there is read."""
    manifest = json.loads((dataset / "_manifest.json").read_text())
    del manifest["files"]
    (dataset / "_manifest.json").write_text(json.dumps(manifest))
    assert len(load_arrow(dataset)) == manifest["records"]


def test_a_dataset_that_may_not_be_read(prose: Prose, dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is acted."""
    opened = pq.read_schema

    def refused(file: str, **options: Any) -> Any:
        if "kind=broker" in file:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(file, **options)

    monkeypatch.setattr(pq, "read_schema", refused)
    prose.refuses(BadInput, load, None, dataset)


# One trace in a file


def test_a_trace_is_written_wholly_or_not(prose: Prose, tmp_path: Path) -> None:
    """What was there before stays, and no half of a file is left."""
    trace = Lab(brokers=2).trace
    path = tmp_path / "run.parquet"
    trace.to_parquet(path)
    before = path.read_bytes()
    long = simulate(1, 2)
    with largest_file(500), prose.refused(Unavailable):
        long.to_parquet(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.parquet"]
    (tmp_path / "link.parquet").symlink_to(path)
    long.to_parquet(tmp_path / "link.parquet")
    assert (tmp_path / "link.parquet").is_symlink()
    assert read_parquet(path).records == long.records


@pytest.mark.parametrize("path", ["", None, ".", "nowhere/run.parquet", "note/run.parquet", "x" * 300], ids=source)
def test_where_no_trace_can_be_written(
    prose: Prose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note").write_text("mine")
    prose.refuses(BadInput, Lab(brokers=1).trace.to_parquet, path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["note"]


def test_a_permission_that_is_lacking_is_ours(prose: Prose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*rest: Any, **options: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "somewhere else")

    monkeypatch.setattr(pq, "write_table", refused)
    path = tmp_path / "run.parquet"
    prose.refuses(BadInput, Lab(brokers=1).trace.to_parquet, path)


def test_logs_and_streams_that_cannot_be_written(prose: Prose, tmp_path: Path) -> None:
    """With the folder's name; what is full is told as such."""
    trace = simulate(1, 2)
    (tmp_path / "note").write_text("mine")
    for write in (write_logs, live.grow):
        prose.refuses(BadInput, write, trace, tmp_path / "note" / "x")
        prose.refuses(BadInput, write, trace.records, tmp_path)
        with pytest.raises(BadInput, match="None is not a path"):
            write(trace, None)
        with largest_file(100), prose.refused(Unavailable):
            write(trace, tmp_path / write.__name__)
    assert list((tmp_path / "grow").iterdir()) == []
    assert live.grow(trace, tmp_path / "grow") == len(trace)


@pytest.mark.parametrize("given", [None, "local[2]"])
def test_loading_needs_a_session(prose: Prose, dataset: Path, given: Any) -> None:
    prose.refuses(BadInput, load, given, dataset)


def test_generating_needs_a_session_or_none(prose: Prose, tmp_path: Path) -> None:
    """Nothing is begun."""
    prose.refuses(BadInput, generate, "local[2]", **ASKED, out=tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_parquet_is_reported(prose: Prose, tmp_path: Path) -> None:
    (tmp_path / "note.parquet").write_text("mine")
    with pytest.raises(BadInput, match="is not a Parquet file: "):
        read_parquet(tmp_path / "note.parquet")
    prose.refuses(BadInput, read_parquet, tmp_path / "nowhere.parquet")


def test_replacing_is_all_or_nothing(tmp_path: Path) -> None:
    """Whatever ends the writing."""

    def half() -> None:
        with replacing(str(tmp_path / "file")) as name:
            Path(name).write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert list(tmp_path.iterdir()) == []
