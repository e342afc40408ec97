"""Large histories: many simulated clusters, written as one dataset by Spark's tasks.

One cluster is one seed, so the dataset depends on nothing but the arguments: not on the number of tasks,
their order, or whether the run was interrupted. Each task runs the simulator and writes its own files; only
counts travel back.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Protocol

from kafka_ctl.errors import BadInput, Unavailable, UnknownName, short
from kafka_ctl.history.files import naming
from kafka_ctl.history.layout import (
    DONE,
    FORMAT,
    MANIFEST,
    TEMPORARY,
    UNFINISHED,
    BucketWriter,
    DatasetFolder,
    Json,
    bucket_of,
)
from kafka_ctl.history.limits import MOST, check_whole
from kafka_ctl.history.schema import to_arrow
from kafka_ctl.history.session import check_session, in_tasks
from kafka_ctl.history.workload import Workload, check_hours, simulate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_BUCKET = 10_000_000
"""The records of a large dataset's bucket, about. A task holds what it joins of its bucket in memory: questions to a
billion records in 2 buckets ended for lack of it."""
AN_HOUR = 900
"""The records that a cluster of the default workload leaves in an hour, about."""


@dataclass(frozen=True)
class Job:
    """Everything a task needs to know."""

    clusters: int
    hours: float
    seed: int
    generation: str
    buckets: int = 1
    workload: Workload = field(default_factory=Workload)

    def __post_init__(self) -> None:
        from kafka_ctl.generation import GENERATIONS, Generation
        from kafka_ctl.lab.validate import parse_config

        for name, most in MOST.items():
            check_whole(name, getattr(self, name), 0 if name == "seed" else 1, most)
        check_hours(self.hours)
        if not isinstance(self.generation, str) or self.generation not in GENERATIONS:
            raise UnknownName("generation", self.generation, GENERATIONS)
        if not isinstance(self.workload, Workload):
            raise BadInput(f"workload={short(self.workload)}: give a Workload")
        parse_config(Generation(self.generation), self.workload.config)

    def seed_of(self, cluster: int) -> int:
        """The seed of one cluster: `simulate(seed)` runs it again, alone."""
        return self.seed * 1_000_000 + cluster

    def names(self) -> dict[str, int]:
        """Every history and its seed; the names sort in the order of the seeds."""
        return {f"cluster-{self.seed_of(n):09d}": self.seed_of(n) for n in range(self.clusters)}

    def described(self) -> Json:
        return {"format": FORMAT, **asdict(self)}

    def fill(self, writer: BucketWriter) -> None:
        """Simulate the clusters of a bucket."""
        for name, seed in self.names().items():
            if bucket_of(name, self.buckets) == writer.bucket:
                writer.add(to_arrow(simulate(seed, self.hours, self.generation, self.workload), name))


class DatasetJob(Protocol):
    """A dataset that tasks can write, each of them a bucket."""

    @property
    def buckets(self) -> int: ...

    def described(self) -> Json:
        """The arguments, for the manifest."""

    def fill(self, writer: BucketWriter) -> None:
        """Give a bucket its histories, in the order of their names."""


@dataclass(frozen=True)
class Dataset:
    """The result of `generate` and `grow`."""

    path: str
    histories: int
    records: int

    def __repr__(self) -> str:
        return f"{self.histories:,} histories with {self.records:,} records"


def generate(
    spark: SparkSession | None,
    clusters: int = 1000,
    hours: float = 24,
    seed: int = 0,
    *,
    out: str | os.PathLike[str],
    generation: str = "2.0",
    workload: Workload | None = None,
    buckets: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    processes: int = 1,
) -> Dataset:
    """Simulate `clusters` clusters for `hours` of their time and write their traces to the folder `out`.

    The clusters are drawn from `workload`, and `seed` decides the draw. With `spark` the work is done in its
    tasks; with None in this process, or in `processes` of them. `buckets` is the number of files of each kind, and so
    the most tasks that can work at once: by default at most 16, or about one for every ten million records where that
    is more, so give more to many cores. `progress` shows a bar on stderr; by default only on a terminal.

    A folder that holds a dataset already is refused unless `overwrite` is set. An interrupted run leaves a
    folder that `load` refuses, and that `resume` finishes; so does a full disk, which raises Unavailable. Where
    another run has begun in the same folder, the earlier one ends. Raises BadInput for these, for `overwrite` with
    `resume`, for bad numbers, and for a folder that cannot be written.
    """
    job = job_of(clusters, hours, seed, generation, workload, buckets)
    check_whole("processes", processes, 1)
    if spark is not None:
        check_session(spark, "generate(kafka_ctl.history.spark(), ...), or None to work without Spark")
    return write_dataset(spark, DatasetFolder(out), job, overwrite, resume, progress, processes)


def job_of(
    clusters: int,
    hours: float,
    seed: int,
    generation: str,
    workload: Workload | None = None,
    buckets: int | None = None,
) -> Job:
    """The job of these arguments of `generate`. Raises BadInput for those that cannot be."""
    job = Job(clusters, hours, seed, generation, workload=Workload() if workload is None else workload)
    return replace(job, buckets=default_buckets(clusters, hours) if buckets is None else buckets)


def write_dataset(
    spark: SparkSession | None,
    place: DatasetFolder,
    work: DatasetJob,
    overwrite: bool,
    resume: bool,
    progress: bool | None,
    processes: int,
) -> Dataset:
    """Write the buckets that are not there yet, and the manifest; what `generate` says of its arguments holds."""
    with naming(place.path, "cannot be written"):
        if not prepare(place, work, overwrite, resume):
            return dataset(place)
        done = {int(name.split(".")[0]) for name in place.names(DONE) if name.endswith(".json")}
        todo = [bucket for bucket in range(work.buckets) if bucket not in done]
        with progress_bar(place, work.buckets, progress):
            if spark is not None:
                _in_spark(spark, place, work, todo)
            else:
                _here(place, work, todo, processes)
        finish(place, work)
        return dataset(place)


def default_buckets(clusters: int, hours: float) -> int:
    """Enough for a handful of cores, and few enough that no file is tiny; on 2 cores, 64 are a fifth slower."""
    return max(1, min(16, clusters // 5), large_buckets(round(clusters * hours * AN_HOUR)))


def large_buckets(records: int) -> int:
    """The buckets that so many records need at least."""
    return min(records // IN_BUCKET, MOST["buckets"])


def dataset(place: DatasetFolder) -> Dataset:
    manifest = place.manifest()
    return Dataset(place.path, manifest["histories"], manifest["records"])


def prepare(place: DatasetFolder, work: DatasetJob, overwrite: bool, resume: bool) -> bool:
    """Make the folder ready; False when a resumed run turns out to be finished."""
    before = noted_in(place, work, overwrite, resume)
    if before == MANIFEST and resume:
        return False
    place.begin(work.described())  # first, so that what is half removed is never taken for whole
    if before and overwrite:
        place.clear()
    return True


def noted_in(place: DatasetFolder, work: DatasetJob, overwrite: bool, resume: bool) -> str | None:
    """The note that a dataset in the folder has of itself; None if there is none. Raises BadInput as `generate`."""
    if place.fs.get_file_info(place.root).is_file:
        raise BadInput(f"{place.path} is a file; give an empty or new folder")
    if overwrite and resume:
        raise BadInput("overwrite and resume do not go together: one replaces a dataset, the other finishes it")
    before = MANIFEST if place.has(MANIFEST) else UNFINISHED if place.has(UNFINISHED) else None
    if before and not overwrite and not resume:
        state = "a dataset" if before == MANIFEST else "an unfinished dataset"
        hint = "" if before == MANIFEST else "`resume` finishes it, "
        raise BadInput(f"{place.path} holds {state} already; {hint}`overwrite` replaces it")
    if before and resume:
        asked, noted = json.loads(json.dumps(work.described())), place.read_json(before)
        if different := [name for name in asked if asked[name] != noted.get(name)]:
            raise BadInput(f"cannot resume {place.path}: it was begun with another {', '.join(different)}")
    if not before and place.names():
        raise BadInput(f"{place.path} is not empty and holds no dataset; give an empty or new folder")
    return before


def finish(place: DatasetFolder, work: DatasetJob) -> None:
    """Write the manifest, as the last file, after all buckets are written.

    Raises Unavailable if one was not written, and BadInput if another run has taken the folder.
    """
    place.check_run()
    noted = [place.read_json(DONE, name) for name in place.names(DONE) if name.endswith(".json")]
    if len(noted) != work.buckets:
        raise Unavailable(f"{place.path}: {work.buckets - len(noted)} of {work.buckets} buckets were not written")
    manifest = work.described() | {
        "histories": sum(n["histories"] for n in noted),
        "records": sum(n["records"] for n in noted),
        "folders": sorted({folder for n in noted for folder in n["folders"]}),
        "files": place.sizes(),
    }
    place.write_json(manifest, MANIFEST)
    for name in (TEMPORARY, DONE):
        if place.has(name):
            place.fs.delete_dir(place.at(name))
    place.fs.delete_file(place.at(UNFINISHED))


def write_bucket(path: str, work: DatasetJob, bucket: int, run: str | None = None) -> Json:
    """Write the files of one bucket; what one task of a run does.

    Raises BadInput or Unavailable where they cannot be written, BadInput if another run has taken the folder.
    """
    with naming(path, "cannot be written"):
        place = DatasetFolder(path, run)
        writer = BucketWriter(place, bucket)
        try:
            work.fill(writer)
            place.check_run()
            return writer.commit()
        except BaseException as problem:
            writer.abandon()
            if isinstance(problem, OSError):  # another run may have removed the files that were begun
                place.check_run()
            raise


def _in_spark(spark: SparkSession, place: DatasetFolder, work: DatasetJob, buckets: Sequence[int]) -> None:
    path, run, number = place.path, place.run, len(buckets)
    if buckets:
        in_tasks(spark, f"{path}: writing it", lambda n: write_bucket(path, work, buckets[n], run), number, number)


def _here(place: DatasetFolder, work: DatasetJob, buckets: Sequence[int], processes: int) -> None:
    if processes == 1 or not buckets:
        for bucket in buckets:
            write_bucket(place.path, work, bucket, place.run)
        return
    with ProcessPoolExecutor(min(processes, len(buckets)), mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(write_bucket, place.path, work, b, place.run) for b in buckets]):
            future.result()


@contextmanager
def progress_bar(place: DatasetFolder, buckets: int, wanted: bool | None) -> Iterator[None]:
    """A progress bar on stderr while the buckets appear in the folder."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    over = threading.Event()

    def follow() -> None:
        last = False
        while not last:
            last = over.wait(0.5)
            with suppress(OSError):  # the writer reports it
                bar.update(task, completed=sum(name.endswith(".json") for name in place.names(DONE)))

    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("writing", total=buckets)
        watcher = threading.Thread(target=follow)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
