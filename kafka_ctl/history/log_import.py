"""Reading the logs of real clusters: `state-change.log*` and `controller.log*` of Kafka 0.8.0 to 3.9.

Files are cut into chunks that Spark's tasks read side by side, so one large file is no slower than many small ones.
Lines that cannot be understood, or read, are kept with their file and line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate, groupby, islice
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kafka_ctl.errors import BadInput
from kafka_ctl.history.log_chunks import RECORD, WHOLE, Chunk, count_lines, read_chunk
from kafka_ctl.history.log_folders import OPENED, LogFile, Paths, copies, log_files
from kafka_ctl.history.schema import SCHEMA
from kafka_ctl.history.session import check_session, failing, ship_package
from kafka_ctl.history.unpacking import Unreadable, begins_with, packed
from kafka_ctl.kafka_log.releases import release

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CHUNK = 16 << 20
"""Bytes of a file that are read in one go."""
TASK = 4 << 20
"""Bytes that are worth a task."""
CHUNKS = pa.schema(
    [(name, pa.string()) for name in ("history", "file")]
    + [(name, pa.int64()) for name in ("start", "stop", "changed", "first")]
    + [("problem", pa.string())]
)
"""The columns of a task's input, as `log_chunks.Chunk`."""
PARSED = pa.schema(
    [("history", pa.string()), ("file", pa.string()), ("number", pa.int64()), ("piece", pa.int32())]
    + [("part", pa.int32()), ("what", pa.string()), ("text", pa.string()), ("formats", pa.int64())]
    + [field.with_nullable(True) for field in RECORD]
)
"""The columns of a task's output: the place of a line and its contents, as `log_chunks.ImportedRow`."""


class Problem(NamedTuple):
    """A file that could not be read, or not to its end, or a folder that could not be listed; and why."""

    history: str
    file: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


class ImportedLogs:
    """Imported logs. Every method of a DataFrame is here, and works on `records`.

    `records` are in the trace schema: `time_ms` counts from 1970 (logs have no time zone; UTC is assumed), `seq`
    numbers them by time, file and line, `cause` is null. `rejected` has `history`, `file`, `line`, `reason` and
    `text`. `files` has for each file `lines`, `records`, `rejected`, `continued` (lines that only go on with the
    one before), `first_ms`, `last_ms`, `kafka`, the releases that write this format, and `problem`: why it was not
    read, or not to its end. Where several records stand on one line, without line breaks, each of them counts.
    `copies` has a sentence for each file that is a copy of another.
    """

    def __init__(self, parsed: DataFrame, copies: Sequence[str] = ()) -> None:
        self.parsed = parsed
        self.copies = copies

    @cached_property
    def records(self) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as fn

        in_time = Window.partitionBy("history").orderBy("time_ms", "file", "number", "piece", "part")
        seq = (fn.row_number().over(in_time) - 1).cast("bigint").alias("seq")
        others = {name: fn.col(name) for name in SCHEMA.names if name not in ("seq", "cause")}
        columns = others | {"seq": seq, "cause": fn.lit(None).cast("bigint").alias("cause")}
        return self.parsed.where("what = 'record'").select(*(columns[name] for name in SCHEMA.names))

    @cached_property
    def rejected(self) -> DataFrame:
        wanted = self.parsed.where("what = 'rejected'")
        return wanted.selectExpr(
            "history", "file", "number AS line", "split(text, ': ', 2)[0] AS reason", "split(text, ': ', 2)[1] AS text"
        )

    @cached_property
    def files(self) -> DataFrame:
        from pyspark.sql import functions as fn

        def total(what: str) -> Column:
            return fn.coalesce(fn.sum(fn.expr(f"CASE WHEN what = '{what}' THEN number END")), fn.lit(0))

        kafka = fn.udf(release, "string", useArrow=False)
        counted = self.parsed.groupBy("history", "file").agg(
            total("chunk").alias("lines"),
            fn.count_if(fn.expr("what = 'record' AND part = 0")).alias("records"),
            fn.count_if(fn.expr("what = 'rejected'")).alias("rejected"),
            total("continued").alias("continued"),
            fn.min("time_ms").alias("first_ms"),
            fn.max("time_ms").alias("last_ms"),
            fn.bit_or("formats").alias("formats"),
            fn.min(fn.expr("CASE WHEN what = 'problem' THEN text END")).alias("problem"),
        )
        names = "history file lines records rejected continued first_ms last_ms".split()
        return counted.select(*names, kafka(fn.coalesce("formats", fn.lit(0))).alias("kafka"), "problem")

    @cached_property
    def problems(self) -> list[Problem]:
        """The files that could not be read, or not to their end, by name."""
        found = self.files.where("problem IS NOT NULL").orderBy("history", "file")
        return [Problem(*row) for row in found.select("history", "file", "problem").collect()]

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.records, name)

    def __repr__(self) -> str:
        from pyspark.sql import functions as fn

        parsed = self.parsed.agg(fn.bit_or("formats").alias("formats"), fn.count_distinct("file").alias("files"))
        formats, files = parsed.collect()[0]
        sums = (fn.sum(name) for name in ("lines", "records", "rejected"))
        totals = self.files.agg(*sums, fn.min("first_ms"), fn.max("last_ms")).collect()[0]
        lines, records, rejected, *ends = totals
        when = f"from {' to '.join(map(clock, ends))}, " if records else ""
        return (
            f"{files:,} files with {lines:,} lines, {when}{records:,} of them understood, {rejected:,} rejected; "
            f"the format of Kafka {release(formats or 0)}" + (f"; {unread(self.problems)}" if self.problems else "")
        )


def clock(ms: float) -> str:
    """A moment of the logs, to the second."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def unread(problems: list[Problem], most: int = 5) -> str:
    """The files that were not read to their end and why, the first few by name."""
    more = f"; and {len(problems) - most:,} more" if len(problems) > most else ""
    return f"{len(problems):,} not read, or not to the end: {'; '.join(map(str, problems[:most]))}{more}"


def import_logs(spark: SparkSession, paths: Paths | Mapping[str, Paths], history: str = "logs") -> ImportedLogs:
    """Read logs of Kafka's controllers and brokers into the trace schema.

    `paths` are files, or folders of which every file named like `state-change.log*` or `controller.log*` is read,
    however deep: rolled, one folder for each broker, packed (gzip, bzip2, xz, zip, Zstandard, LZ4: the first bytes of a
    file decide) or not. All of them are one history, of that name; a mapping of names to paths reads several clusters.
    Each file is read once, here, however many paths and links lead to it, and a packed copy beside its file is left
    out; questions then use what was read. The same bytes under another name, also at the beginning of a longer file,
    are read as well, with a warning.

    A file or folder that cannot be read does not stop the others: what came before the fault counts, and a warning,
    `problems` and the column `problem` of `files` say what is missing and why. Raises BadInput for anything that is not
    a path, for a path where nothing is, and for a folder without such files.
    """
    logs = read_logs(lambda: spark, paths, history)
    for warning in [*([unread(logs.problems)] if logs.problems else []), *logs.copies]:
        warnings.warn(warning, stacklevel=2)
    return logs


def read_logs(
    start: Callable[[], SparkSession], paths: Paths | Mapping[str, Paths], history: str = "logs"
) -> ImportedLogs:
    """The same without the warning; a path that is refused is refused before Spark starts."""
    clusters = paths if isinstance(paths, Mapping) else {history: paths}
    if wrong := [name for name in clusters if not isinstance(name, str)]:
        raise BadInput(f"history {wrong[0]!r}: give its name as text")
    if not clusters:
        raise BadInput("no path was given: name at least one log file or folder")
    files = {name: list(log_files(some)) for name, some in clusters.items()}
    chunks = [chunk for name, some in files.items() for chunk in list_chunks(name, some)]
    spark = check_session(start(), "import_logs(kafka_ctl.history.spark(), ...)")
    from pyspark.sql.pandas.types import from_arrow_schema

    with failing("reading the logs"):
        chunks = _numbered(spark, chunks)
        parsed = _tasks(spark, chunks).mapInArrow(parse_chunks, from_arrow_schema(PARSED)).persist()
        parsed.count()
    return ImportedLogs(parsed, [sentence for some in files.values() for sentence in copies(some)])


def _tasks(spark: SparkSession, chunks: list[Chunk]) -> DataFrame:
    """The chunks as rows; a task gets several small ones or a large one."""
    ship_package(spark)
    rows = spark.createDataFrame(pa.Table.from_pylist([chunk._asdict() for chunk in chunks], CHUNKS))
    size = sum(min(CHUNK, chunk.stop - chunk.start) for chunk in chunks)
    return rows.repartition(max(1, min(len(chunks), size // TASK)))


def list_chunks(history: str, files: Sequence[LogFile], cut: bool = True) -> Iterator[Chunk]:
    """The chunks of every file, in the order of the files; each file is one chunk if they are not `cut`."""
    size = CHUNK if cut else WHOLE
    with ThreadPoolExecutor(OPENED) as pool:
        unsplittable = list(pool.map(_unsplittable, files))
    names = {file.name for file in files}
    for file, whole in zip(files, unsplittable, strict=True):
        if isinstance(whole, str):
            yield Chunk(history, file.name, 0, 0, file.changed, problem=whole)
        elif whole:
            if not _is_copy(file, names):
                yield Chunk(history, file.name, 0, WHOLE, file.changed)
        else:
            for start in range(0, max(1, file.size), size):
                yield Chunk(history, file.name, start, min(start + size, file.size), file.changed)


def _is_copy(file: LogFile, names: Set[str]) -> bool:
    """True if a packed file, `x.log.gz`, holds only the beginning of `x.log` beside it."""
    plain = file.name.rpartition(".")[0]
    return plain in names and begins_with(plain, file.name)


def _unsplittable(file: LogFile) -> bool | str:
    """True if a file must be read as a whole; or the reason why it cannot be read."""
    if file.problem is not None:
        return file.problem
    try:
        return packed(file.name)
    except Unreadable as problem:
        return str(problem)


def _numbered(spark: SparkSession, chunks: list[Chunk]) -> list[Chunk]:
    """The chunks with the number of their first line, which takes a quick pass over files of several chunks."""
    later = {chunk[:2] for chunk in chunks if chunk.start}
    cut = [chunk for chunk in chunks if chunk[:2] in later]
    if not cut:
        return chunks
    counts = _tasks(spark, cut).mapInArrow(_count, "history string, file string, start bigint, lines bigint").collect()
    counted = {tuple(row)[:3]: row.lines for row in counts}
    numbered = []
    for _, mine in groupby(chunks, key=lambda chunk: chunk[:2]):
        pieces = list(mine)
        firsts = accumulate((counted.get(chunk[:3], 0) for chunk in pieces), initial=1)
        numbered += [chunk._replace(first=first) for chunk, first in zip(pieces, firsts, strict=False)]
    return numbered


# In Spark's tasks


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for chunk in _of(batches):
        place = {"history": [chunk.history], "file": [chunk.file], "start": [chunk.start]}
        yield pa.RecordBatch.from_pydict(place | {"lines": [count_lines(chunk)]})


def parse_chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn batches of `CHUNKS` into batches of `PARSED` by `read_chunk`; runs in Spark's tasks."""
    for chunk in _of(batches):
        rows = ((chunk.history, chunk.file, *read[:6], *read.values) for read in read_chunk(chunk))
        while some := list(islice(rows, 10_000)):
            columns = zip(*some, strict=True)
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, field.type) for column, field in zip(columns, PARSED, strict=True)], schema=PARSED
            )


def _of(batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    for batch in batches:
        for row in batch.to_pylist():
            yield Chunk(**row)
