"""Reading a generated dataset, in Spark or as Arrow."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as pads

from kafka_ctl.errors import BadInput
from kafka_ctl.history.dataset import FORMAT
from kafka_ctl.history.layout import Place
from kafka_ctl.history.schema import SCHEMA, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def checked(path: str | os.PathLike[str]) -> Place:
    """The place of a complete dataset; BadInput when it is missing, unfinished or of another format."""
    place = Place(path)
    found = place.manifest()["format"]
    if found != FORMAT:
        raise BadInput(f"{place.path} has format {found}; this version reads {FORMAT}")
    return place


def load(spark: SparkSession, path: str | os.PathLike[str]) -> DataFrame:
    """A dataset that `generate` wrote, as a DataFrame in the trace schema (`docs/trace-format.md`).

    One more column, `section`, tells the files of a kind apart (`layout.section_of`). Spark is told how the files
    are bucketed and sorted, as a table of the session's catalogue, so that questions by history or by partition need
    no shuffle, and those by partition no sort. Raises BadInput when the dataset is missing or incomplete.
    """
    place = checked(path)
    name = "kafka_ctl_" + hashlib.md5(place.path.encode()).hexdigest()[:16]
    columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in spark_schema()) + ", section string"
    where = place.path.replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} ({columns}) USING parquet PARTITIONED BY (kind, section) "
        "CLUSTERED BY (history) SORTED BY (history, topic, partition, seq) "
        f"INTO {place.manifest()['buckets']} BUCKETS LOCATION '{where}'"
    )
    spark.sql(f"ALTER TABLE {name} RECOVER PARTITIONS")
    return spark.table(name).select(*SCHEMA.names, "section")


def load_arrow(path: str | os.PathLike[str]) -> pa.Table:
    """A small dataset as one Arrow table in the trace schema, without Spark."""
    place = checked(path)
    files = pads.dataset(place.files(), SCHEMA, filesystem=place.fs, format="parquet", partitioning="hive")
    return files.to_table(columns=SCHEMA.names)
