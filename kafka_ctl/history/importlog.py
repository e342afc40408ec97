"""Reading the logs of real clusters: `state-change.log*` and `controller.log*` of Kafka 0.8 to 3.x.

Files are cut into chunks that Spark's tasks read side by side, so one large file is no slower than many small ones.
What cannot be understood is kept, with its file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_ctl.history.logchunks import PACKED, RECORD, WHOLE, Chunk, Paths, lines, log_files, read_chunk
from kafka_ctl.history.logfile import release
from kafka_ctl.history.schema import SCHEMA
from kafka_ctl.history.workers import ready

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHUNK = 16 << 20
"""Bytes of a file that are read in one go."""
TASK = 4 << 20
"""Bytes that are worth a task."""
PARSED = pa.schema(
    [("history", pa.string()), ("file", pa.string()), ("number", pa.int64()), ("part", pa.int32())]
    + [("what", pa.string()), ("text", pa.string()), ("formats", pa.int64())]
    + [field.with_nullable(True) for field in RECORD]
)
"""What tasks return: where a line stands, and what it says, as `logchunks.Read`."""


class Logs:
    """Imported logs. Whatever a DataFrame can do, this does with its `records`.

    `records` are in the trace schema: `time_ms` counts from 1970 (logs tell no time zone; UTC is assumed), `seq`
    numbers them by time, file and line, `cause` is null. `rejected` has `history`, `file`, `line`, `reason` and
    `text`. `files` has for each file `lines`, `records`, `rejected`, `continued` (lines that only go on with the
    one before), `first_ms`, `last_ms` and `kafka`, the releases that write this format.
    """

    def __init__(self, parsed: DataFrame) -> None:
        self._parsed = parsed

    @cached_property
    def records(self) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as fn

        in_time = Window.partitionBy("history").orderBy("time_ms", "file", "number", "part")
        seq = (fn.row_number().over(in_time) - 1).cast("bigint").alias("seq")
        others = {name: fn.col(name) for name in SCHEMA.names if name not in ("seq", "cause")}
        columns = others | {"seq": seq, "cause": fn.lit(None).cast("bigint").alias("cause")}
        return self._parsed.where("what = 'record'").select(*(columns[name] for name in SCHEMA.names))

    @cached_property
    def rejected(self) -> DataFrame:
        wanted = self._parsed.where("what = 'rejected'")
        return wanted.selectExpr(
            "history", "file", "number AS line", "split(text, ': ', 2)[0] AS reason", "split(text, ': ', 2)[1] AS text"
        )

    @cached_property
    def files(self) -> DataFrame:
        from pyspark.sql import functions as fn

        kafka = fn.udf(release, "string", useArrow=False)
        counted = self._parsed.groupBy("history", "file").agg(
            fn.coalesce(fn.sum(fn.expr("CASE WHEN what = 'chunk' THEN number END")), fn.lit(0)).alias("lines"),
            fn.count_if(fn.expr("what = 'record' AND part = 0")).alias("records"),
            fn.count_if(fn.expr("what = 'rejected'")).alias("rejected"),
            fn.min("time_ms").alias("first_ms"),
            fn.max("time_ms").alias("last_ms"),
            fn.bit_or("formats").alias("formats"),
        )
        continued = (fn.col("lines") - fn.col("records") - fn.col("rejected")).alias("continued")
        return counted.select(
            "history", "file", "lines", "records", "rejected", continued, "first_ms", "last_ms",
            kafka(fn.coalesce("formats", fn.lit(0))).alias("kafka"),
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.records, name)

    def __repr__(self) -> str:
        from pyspark.sql import functions as fn

        parsed = self._parsed.agg(fn.bit_or("formats").alias("formats"), fn.count_distinct("file").alias("files"))
        formats, files = parsed.collect()[0]
        said = self.files.agg(
            fn.sum("lines"), fn.sum("records"), fn.sum("rejected"),
            *(fn.date_format(fn.timestamp_millis(at.cast("bigint")), "yyyy-MM-dd HH:mm:ss")
              for at in (fn.min("first_ms"), fn.max("last_ms"))),
        ).collect()[0]  # fmt: skip
        lines, records, rejected, first, last = said
        when = f"from {first} to {last}, " if first else ""
        return (
            f"{files:,} files with {lines:,} lines, {when}{records:,} of them understood, {rejected:,} rejected; "
            f"the format of Kafka {release(formats or 0)}"
        )


def import_logs(spark: SparkSession, paths: Paths | Mapping[str, Paths], history: str = "logs") -> Logs:
    """Read logs of Kafka's controllers and brokers into the trace schema.

    `paths` are files, or folders of which every file named like `state-change.log*` or `controller.log*` is read,
    however deep: rolled, gzipped, one folder for each broker. All of them are one history, of that name; a mapping
    of names to paths reads several clusters. Files are read once, here; questions then use what was read.
    Raises BadInput for a path where nothing is, and for a folder without such files.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    clusters = paths if isinstance(paths, Mapping) else {history: paths}
    chunks = [chunk for name, some in clusters.items() for chunk in _chunks(name, some)]
    chunks = _numbered(spark, chunks)
    parsed = _tasks(spark, chunks).mapInArrow(_parse, from_arrow_schema(PARSED)).persist()
    parsed.count()
    return Logs(parsed)


def _tasks(spark: SparkSession, chunks: list[Chunk]) -> DataFrame:
    """The chunks as rows; a task gets several small ones or a large one."""
    ready(spark)
    rows = spark.createDataFrame(pa.Table.from_pylist([chunk._asdict() for chunk in chunks]))
    size = sum(min(CHUNK, chunk.stop - chunk.start) for chunk in chunks)
    return rows.repartition(max(1, min(len(chunks), size // TASK)))


def _chunks(history: str, paths: Paths) -> Iterator[Chunk]:
    """The chunks of every file, in the order of the files' names."""
    for name, file in log_files(paths):
        size = max(1, file.size)
        step = WHOLE if name.endswith(PACKED) else CHUNK
        for start in range(0, size, step):
            stop = WHOLE if step == WHOLE else min(start + step, size)
            yield Chunk(history, name, start, stop, file.mtime_ns or 0)


def _numbered(spark: SparkSession, chunks: list[Chunk]) -> list[Chunk]:
    """The chunks with the number of their first line, which takes a quick pass over files of several chunks."""
    later = {chunk.file for chunk in chunks if chunk.start}
    cut = [chunk for chunk in chunks if chunk.file in later]
    if not cut:
        return chunks
    counts = _tasks(spark, cut).mapInArrow(_count_lines, "file string, start bigint, lines bigint").collect()
    counted = {(row.file, row.start): row.lines for row in counts}
    numbered = []
    for file in dict.fromkeys(chunk.file for chunk in chunks):
        mine = [chunk for chunk in chunks if chunk.file == file]
        firsts = accumulate((counted.get((file, chunk.start), 0) for chunk in mine), initial=1)
        numbered += [chunk._replace(first=first) for chunk, first in zip(mine, firsts, strict=False)]
    return numbered


# In Spark's tasks


def _count_lines(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for chunk in _of(batches):
        count = sum(1 for _ in lines(chunk))
        yield pa.RecordBatch.from_pydict({"file": [chunk.file], "start": [chunk.start], "lines": [count]})


def _parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for chunk in _of(batches):
        rows = ((chunk.history, chunk.file, *read[:5], *read.values) for read in read_chunk(chunk))
        while some := list(islice(rows, 10_000)):
            columns = zip(*some, strict=True)
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, field.type) for column, field in zip(columns, PARSED, strict=True)], schema=PARSED
            )


def _of(batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    for batch in batches:
        for row in batch.to_pylist():
            yield Chunk(**row)
