"""Reading the logs of real clusters: `state-change.log*` and `controller.log*` of Kafka 0.8 to 3.x.

Files are cut into chunks that Spark's tasks read side by side, so one large file is no slower than many small ones.
What cannot be understood is kept, with its file and line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.fs as pafs

from kafka_ctl.errors import BadInput
from kafka_ctl.history.logfile import read_texts, release
from kafka_ctl.history.logline import Line
from kafka_ctl.history.schema import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

CHUNK = 16 << 20
"""Bytes of a file that are read in one go."""
TASK = 4 << 20
"""Bytes that are worth a task."""
LEAD_IN = 64 << 10
"""Bytes before its chunk that a task reads too, to know who was speaking; and where to look for a line after it."""
BLOCK = 4 << 20
PACKED = (".gz", ".bz2", ".zst", ".lz4")
"""Files that can only be read from their beginning, by one task."""
NAMES = ("state-change", "controller")
"""What is read in a folder: files with one of these in their names."""

_RECORD = [field for field in SCHEMA if field.name not in ("history", "seq", "cause")]
PARSED = pa.schema(
    [("history", pa.string()), ("file", pa.string()), ("number", pa.int64()), ("part", pa.int32())]
    + [("what", pa.string()), ("text", pa.string()), ("formats", pa.int64())]
    + [field.with_nullable(True) for field in _RECORD]
)
"""What tasks return: a record, a rejected line, or the count of a whole chunk (`what`)."""


class Chunk(NamedTuple):
    """Bytes `start` to `stop` of a file, whose first line is number `first`.

    `changed` tells versions of a file apart: Spark would take what it has read for what it is asked to read.
    """

    history: str
    file: str
    start: int
    stop: int
    changed: int = 0
    first: int = 1


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
    rows = spark.createDataFrame(pa.Table.from_pylist([chunk._asdict() for chunk in chunks]))
    size = sum(chunk.stop - chunk.start for chunk in chunks)
    return rows.repartition(max(1, min(len(chunks), size // TASK)))


def _chunks(history: str, paths: Paths) -> Iterator[Chunk]:
    """The chunks of every file, in the order of the files' names."""
    alone = isinstance(paths, (str, os.PathLike))
    for path in [paths] if alone else paths:  # type: ignore[union-attr]
        given = os.fspath(path)  # type: ignore[arg-type]
        uri = given if "://" in given else os.path.abspath(given)
        fs, root = pafs.FileSystem.from_uri(uri)
        info = fs.get_file_info(root)
        if info.type == pafs.FileType.NotFound:
            raise BadInput(f"{given}: no such file or folder")
        found = [info]
        if info.type == pafs.FileType.Directory:
            inside = fs.get_file_info(pafs.FileSelector(root, recursive=True))
            found = [f for f in inside if f.is_file and any(name in f.base_name for name in NAMES)]
            if not found:
                raise BadInput(f"{given} holds no file named like state-change.log* or controller.log*")
        for file in sorted(found, key=lambda f: f.path):
            name = uri[: len(uri) - len(root)] + file.path if uri.endswith(root) else file.path
            step = max(1, file.size) if file.path.endswith(PACKED) else CHUNK
            for start in range(0, max(1, file.size), step):
                yield Chunk(history, name, start, min(start + step, max(1, file.size)), file.mtime_ns or 0)


def _numbered(spark: SparkSession, chunks: list[Chunk]) -> list[Chunk]:
    """The chunks with the number of their first line, which takes a quick pass over files of several chunks."""
    later = {chunk.file for chunk in chunks if chunk.start}
    cut = [chunk for chunk in chunks if chunk.file in later]
    if not cut:
        return chunks
    counts = _tasks(spark, cut).mapInArrow(_count_lines, "file string, start bigint, lines bigint").collect()
    lines = {(row.file, row.start): row.lines for row in counts}
    numbered = []
    for file in dict.fromkeys(chunk.file for chunk in chunks):
        mine = [chunk for chunk in chunks if chunk.file == file]
        firsts = accumulate((lines.get((file, chunk.start), 0) for chunk in mine), initial=1)
        numbered += [chunk._replace(first=first) for chunk, first in zip(mine, firsts, strict=False)]
    return numbered


# In Spark's tasks


def _count_lines(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for chunk in _of(batches):
        lines = sum(1 for _ in _lines(chunk))
        yield pa.RecordBatch.from_pydict({"file": [chunk.file], "start": [chunk.start], "lines": [lines]})


def _parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for chunk in _of(batches):
        rows = _rows(chunk)
        while some := list(islice(rows, 10_000)):
            columns = zip(*some, strict=True)
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, field.type) for column, field in zip(columns, PARSED, strict=True)], schema=PARSED
            )


def _of(batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    for batch in batches:
        for row in batch.to_pylist():
            yield Chunk(**row)


def _rows(chunk: Chunk) -> Iterator[tuple]:
    """What one chunk becomes, as rows of `PARSED`; last its count of lines."""
    before = list(_lines(chunk._replace(start=max(0, chunk.start - LEAD_IN), stop=chunk.start)))
    after = islice(_lines(chunk._replace(start=chunk.stop, stop=chunk.stop + LEAD_IN)), 2)
    last = chunk.first - 1

    def own() -> Iterator[bytes]:
        nonlocal last
        for line in _lines(chunk):
            last += 1
            yield line

    lines = enumerate(chain(before, own(), after), chunk.first - len(before))
    nothing = (None,) * len(_RECORD)
    for said in read_texts((number, line.decode("utf-8", "replace").rstrip("\r")) for number, line in lines):
        base = (chunk.history, chunk.file, said.number)
        if not chunk.first <= said.number <= last:
            continue
        if said.rejected:
            yield (*base, 0, "rejected", f"{said.rejected}: {said.text[:2000]}", None, *nothing)
        elif said.line is not None:
            for part, line in enumerate(_spread(said.line)):
                values = line._asdict() | {"time_ms": float(line.time), "actor": line.actor or "unknown", "path": None}
                yield (*base, part, "record", None, said.formats, *(values[field.name] for field in _RECORD))
    yield (chunk.history, chunk.file, last - chunk.first + 1, 0, "chunk", None, None, *nothing)


def _lines(chunk: Chunk) -> Iterator[bytes]:
    """The lines that begin between `start` and `stop`."""
    fs, path = pafs.FileSystem.from_uri(chunk.file)
    if chunk.start >= chunk.stop or (path.endswith(PACKED) and chunk.start):
        return
    if path.endswith(PACKED):
        with fs.open_input_stream(path) as stream:
            yield from _split(stream, 0, 1 << 62)
    else:
        with fs.open_input_file(path) as file:
            # What comes before the first line break has begun in the chunk before, however short it is.
            begin = max(0, chunk.start - 1)
            file.seek(begin)
            yield from islice(_split(file, begin, chunk.stop), 1 if chunk.start else 0, None)


def _split(stream: Any, offset: int, stop: int) -> Iterator[bytes]:
    """Lines from a stream that is at `offset`, as long as they begin before `stop`."""
    rest = b""
    while offset < stop:
        block = stream.read(BLOCK)
        if not block:
            if rest:
                yield rest
            return
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if offset >= stop:
                return
            yield line
            offset += len(line) + 1


def _spread(line: Line) -> Iterator[Line]:
    """One record for each partition that a line is about, and one for each broker that it says has left."""
    if line.partitions:
        yield from (line._replace(topic=topic, partition=number) for topic, number in line.partitions)
        return
    yield line
    if line.action in ("brokers_changed", "shutting_down_broker") and line.detail:
        words = json.loads(line.detail)
        for broker in words.get("dead", ()):
            yield line._replace(kind="broker", action="lost", broker=broker, detail=None)
        if "broker" in words:
            yield line._replace(kind="broker", action="controlled-shutdown", broker=words["broker"], detail=None)
