"""Reading a generated dataset, in Spark or as Arrow."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from kafka_ctl.errors import BadInput
from kafka_ctl.history.files import filesystem, naming, path_of
from kafka_ctl.history.layout import DatasetFolder
from kafka_ctl.history.schema import SCHEMA, spark_schema
from kafka_ctl.history.session import check_session, failing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def checked(path: str | os.PathLike[str]) -> DatasetFolder:
    """The place of a complete dataset that can be read.

    Raises BadInput when it is missing, unfinished, of another format, or lacks a file; and, with the file's name, when
    one was added, cannot be opened, has another size than when it was written, or does not end as Parquet does.
    """
    place = DatasetFolder(path)
    with naming(place.path, "cannot be read"):
        manifest = place.manifest()
        sizes = place.sizes()
    noted = manifest["files"] or sizes  # an earlier version did not list them
    for name, size in noted.items():
        if name not in sizes:
            raise BadInput(f"{place.path} is not complete: {name} is not there any more")
        if sizes[name] != size:
            raise BadInput(f"{place.path} is damaged: {name} has {sizes[name]:,} bytes, and had {size:,}")
    if others := sizes.keys() - noted.keys():
        raise BadInput(f"{place.path} is damaged: {min(others)} was not written with it; remove this file")
    check_parquet(place.fs, [place.at(name) for name in sizes])
    return place


def check_parquet(fs: pafs.FileSystem, files: Sequence[str]) -> list[pa.Schema]:
    """The schemas of Parquet files. Raises BadInput for the first that cannot be opened or is not Parquet."""

    def schema(file: str) -> pa.Schema:
        with naming(file, "cannot be read", "is not a Parquet file"):
            return pq.read_schema(file, filesystem=fs)

    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(schema, files))


def checked_parquet(path: str | os.PathLike[str]) -> str:
    """A Parquet file, or a folder of such files, that holds a trace. Raises BadInput for anything else."""
    given = path_of(path)
    fs, root, _ = filesystem(given)
    with naming(given, "cannot be read"):
        info = fs.get_file_info(root)
        if info.type == pafs.FileType.NotFound:
            raise BadInput(f"{given}: no such file")
        inside = [info] if info.is_file else fs.get_file_info(pafs.FileSelector(root))
    files = [file.path for file in inside if info.is_file or file.base_name.endswith(".parquet")]
    for schema in check_parquet(fs, files):
        if missing := [field.name for field in SCHEMA if not field.nullable and field.name not in schema.names]:
            raise BadInput(f"{given}: not a trace table: no column {', '.join(missing)}")
    return given


def load(spark: SparkSession, path: str | os.PathLike[str]) -> DataFrame:
    """A dataset that `generate` wrote, as a DataFrame in the trace schema (`docs/trace-format.md`).

    One more column, `section`, names the file of its kind (`layout.section_of`). Spark is given how the files
    are bucketed and sorted, as a table of the session's catalogue, so that questions by history or by partition need
    no shuffle, and those by partition no sort. Raises BadInput when the dataset is missing, incomplete or damaged.
    """
    place = checked(path)
    check_session(spark, "load(kafka_ctl.history.spark(), ...); load_arrow needs none")
    name = "kafka_ctl_" + hashlib.md5(place.path.encode()).hexdigest()[:16]
    columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in spark_schema()) + ", section string"
    where = place.path.replace("\\", "\\\\").replace("'", "\\'")
    with failing(f"{place.path}: loading it"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(
            f"CREATE TABLE {name} ({columns}) USING parquet PARTITIONED BY (kind, section) "
            "CLUSTERED BY (history) SORTED BY (history, topic, partition, seq) "
            f"INTO {place.manifest()['buckets']} BUCKETS LOCATION '{where}'"
        )
        spark.sql(f"ALTER TABLE {name} RECOVER PARTITIONS")
        return spark.table(name).select(*SCHEMA.names, "section")


def load_arrow(path: str | os.PathLike[str]) -> pa.Table:
    """A small dataset as one Arrow table in the trace schema, without Spark; BadInput as `load`."""
    place = checked(path)
    with naming(place.path, "cannot be read", "is damaged"):
        files = pads.dataset(place.files(), SCHEMA, filesystem=place.fs, format="parquet", partitioning="hive")
        return files.to_table(columns=SCHEMA.names)
