"""Large datasets from generated ones: each history is written many times, under other names."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from kafka_ctl.errors import BadInput, KafkaCtlError, Unavailable
from kafka_ctl.history.dataset import Dataset, Job, large_buckets, write_dataset
from kafka_ctl.history.files import naming
from kafka_ctl.history.layout import IN_FILES, MANIFEST, BucketWriter, DatasetFolder, Json, bucket_of, file_of
from kafka_ctl.history.limits import MOST, check_whole
from kafka_ctl.history.reading import checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_TIMES = 1_000_000
"""The digits of a copy's number have room for so many."""


@dataclass(frozen=True)
class Growth:
    """Everything that a task needs to know."""

    source: str
    manifest: Json
    times: int
    buckets: int

    def described(self) -> Json:
        return self.manifest | {"buckets": self.buckets, "times": self.times}

    def job(self) -> Job:
        """The job that wrote the source. Raises BadInput if there can be no such job."""
        return Job(*(self.manifest[name] for name in ("clusters", "hours", "seed", "generation")))

    def fill(self, writer: BucketWriter) -> None:
        """Write the copies that belong to a bucket; one history of the source is in memory at a time."""
        place = DatasetFolder(self.source)
        for name in sorted(self.job().names()):
            copies = [copy for copy in copy_names(name, self.times) if bucket_of(copy, self.buckets) == writer.bucket]
            if not copies:
                continue
            writer.histories += len(copies)
            file = file_of(bucket_of(name, self.manifest["buckets"]))
            for folder in self.manifest["folders"]:
                if not place.has(folder, file):
                    continue
                with naming(place.at(folder, file), "cannot be read", "is damaged"):
                    read = pads.dataset(place.at(folder, file), IN_FILES, filesystem=place.fs, format="parquet")
                    part = read.to_table(filter=pads.field("history") == name).combine_chunks()
                for copy in copies if len(part) else ():
                    writer.put(folder, part.set_column(0, IN_FILES.field("history"), pa.repeat(copy, len(part))))


def copy_names(name: str, times: int) -> list[str]:
    """The names of a history and its copies, sorted."""
    return [name, *(f"{name}-copy-{n:06d}" for n in range(1, times))]


def grow(
    spark: SparkSession | None,
    source: str | os.PathLike[str],
    times: int,
    *,
    out: str | os.PathLike[str],
    buckets: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    processes: int = 1,
) -> Dataset:
    """Write each history of the dataset `source`, made by `generate`, `times` times to the folder `out`.

    **The copies are equal except for their names**: `cluster-000000007`, `cluster-000000007-copy-000001` and so on. So
    medians and shares stay as they are and counts are multiplied, but the number of different runs is that of the
    source. Grow a dataset to measure how long questions take; do not use the copies to make a number more certain.

    `buckets` is by default as many as the source has, or one for every ten million records where that is more. Each
    task keeps one history of the source and a row group of each file in memory. The other arguments, and what an
    interrupted run leaves, are as with `generate`. Raises BadInput for a source that `generate` did not write or did
    not finish, for an `out` that is the source or inside it, and for bad numbers. Raises Unavailable before it writes
    anything if the disk has too little room.
    """
    check_whole("times", times, 1, MOST_TIMES)
    check_whole("processes", processes, 1)
    origin, place = checked(source), DatasetFolder(out)
    whole = origin.manifest()
    manifest = parameters(whole)
    if "times" in manifest:
        raise BadInput(f"{origin.path} was grown already; grow the dataset that it was made from")
    if f"{place.root}/".startswith(f"{origin.root}/"):
        raise BadInput(f"{place.path} is the source or inside it; give another folder")
    usual = max(manifest["buckets"], large_buckets(whole["records"] * times))
    work = Growth(origin.path, manifest, times, usual if buckets is None else buckets)
    check_whole("buckets", work.buckets, 1, MOST["buckets"])
    try:
        work.job()
    except KafkaCtlError as error:
        raise BadInput(f"{origin.at(MANIFEST)} is damaged: {error}") from None
    with naming(place.path, "cannot be written"):
        if isinstance(place.fs, pafs.LocalFileSystem):
            check_room(Path(place.root), times * sum(origin.sizes().values()))
        return write_dataset(spark, place, work, overwrite, resume, progress, processes)


def parameters(manifest: Json) -> Json:
    """The manifest of a dataset without what was counted."""
    return {name: value for name, value in manifest.items() if name not in ("histories", "records", "files")}


def check_room(folder: Path, needed: int) -> None:
    """Raise Unavailable if so many bytes do not fit on the disk of a folder, which need not exist yet."""
    free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
    if needed > free:
        raise Unavailable(f"{folder}: {needed / 1e9:.1f} GB are needed, and the disk has {free / 1e9:.1f} GB left")
