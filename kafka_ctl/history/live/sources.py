"""Streams of records: from a folder to which a lab adds files, and from a folder of logs that a broker writes.

A log grows and is rolled: renamed, packed, begun again. So a file of it is known by its folder and its first line,
whatever it is called today, and an offset says how many bytes of each were read, and how many of the same log came
before. Bytes that were written stay what they are, so a batch that is read again after a crash is the same batch.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileType
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from kafka_ctl.errors import BadInput, Unavailable, short
from kafka_ctl.history.files import filesystem, naming, path_of
from kafka_ctl.history.log_chunks import RECORD, Chunk, ImportedRow, read_chunk
from kafka_ctl.history.log_folders import log_files
from kafka_ctl.history.schema import check_trace, spark_schema, to_parquet
from kafka_ctl.history.session import check_session, ship_package
from kafka_ctl.history.unpacking import Unreadable, blocks, packed
from kafka_ctl.trace.record import Recorder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

NAMED_BY = 1024
"""Bytes of a file's first line, at most, that identify it: they hold its time and what happened then."""


def grow(trace: Recorder, folder: str | os.PathLike[str]) -> int:
    """Write the records that `folder` does not hold yet as one more Parquet file, and return how many they were.

    The names of the files say what they hold, `lab-000000000-000000123.parquet`; each appears when it is whole. Raises
    BadInput where nothing can be written, and where the folder holds another run; Unavailable where the disk is full.
    """
    check_trace(trace)
    if "://" in (given := path_of(folder)):
        raise BadInput(f"{given}: give a folder of this machine")
    place = Path(given)
    with naming(folder, "cannot be written"):
        place.mkdir(parents=True, exist_ok=True)
    history = re.sub(r"[^\w.-]", "_", trace.history)  # that of a watched cluster is an address
    form = re.compile(rf"{re.escape(history)}-\d{{9,}}-(\d{{9,}})\.parquet")  # another's name may begin like this one
    there = [(int(found[1]), path) for path in place.iterdir() if (found := form.fullmatch(path.name))]
    last, newest = max(there, default=(-1, None))
    with naming(newest, "cannot be read", "holds no records"):
        same = newest is None or _is_of(trace, last, newest)
    if not same:
        raise BadInput(f"{given} holds another run named {trace.history}: give an empty folder")
    new = trace.slice(start=last + 1)
    if new:
        name = f"{history}-{new[0].seq:09d}-{new[-1].seq:09d}.parquet"
        to_parquet(new, place / name)
    return len(new)


def _is_of(trace: Recorder, seq: int, file: Path) -> bool:
    """True if a file ends with the record that a trace has under this number."""
    names = ("time_ms", "actor", "kind", "action")
    table = pq.read_table(file, columns=[*names])
    rows = table.slice(table.num_rows - 1).to_pylist()
    return [{name: getattr(one, name) for name in names} for one in trace.slice(start=seq, stop=seq + 1)] == rows


def traces(spark: SparkSession, folder: str | os.PathLike[str]) -> DataFrame:
    """A stream of the records in the Parquet files of a folder, and of those that are still to come (see `grow`).

    Raises BadInput for a path where nothing is.
    """
    return _stream(spark, folder).schema(spark_schema()).parquet(path_of(folder))


def _stream(spark: SparkSession, folder: str | os.PathLike[str]) -> DataStreamReader:
    """A reader for a folder that is there."""
    fs, root, _ = filesystem(folder)
    if fs.get_file_info(root).type == FileType.NotFound:
        raise BadInput(f"{path_of(folder)}: no such file or folder")
    return check_session(spark, "a stream needs that of kafka_ctl.history.spark()").readStream


def logs(spark: SparkSession, folder: str | os.PathLike[str], history: str = "logs") -> DataFrame:
    """A stream of what the logs in a folder say, and of what brokers will write to them.

    The folder is one of `import_logs`, of one broker or of several, and its files may be rolled and packed meanwhile. A
    line is read when its line break is there; what is not understood is left out. `seq` rises along each log and says
    nothing about two of them. A file that is removed before it was read stops the query with Unavailable. Raises
    BadInput for a path where nothing is.
    """
    if not isinstance(history, str):
        raise BadInput(f"history={short(history)}: give its name as text")
    stream = _stream(spark, folder)
    ship_package(spark)
    spark.dataSource.register(KafkaLogs)
    return stream.format(KafkaLogs.name()).options(path=path_of(folder), history=history).load()


class KafkaLogs(DataSource):
    """A folder of Kafka's logs, as a source for Structured Streaming."""

    @classmethod
    def name(cls) -> str:
        return "kafka_logs"

    def schema(self) -> StructType:
        return spark_schema()

    def streamReader(self, schema: StructType) -> LogReader:  # noqa: N802
        return LogReader(self.options["path"], self.options["history"])


class Known(NamedTuple):
    """A file of a log: its address, which log it is part of, how it begins, and its bytes up to the last line break."""

    file: str
    log: str
    begin: bytes
    size: int
    packed: bool

    @property
    def identity(self) -> str:
        return f"{self.log} {hashlib.sha256(self.begin).hexdigest()[:16]}"


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says how far the logs of a folder have grown, and reads what is between two such states."""

    def __init__(self, folder: str, history: str) -> None:
        self.folder, self.history = folder, history
        self._seen: dict[tuple[str, int, int], Known | None] = {}
        self._now: list[Known] | None = None

    def initialOffset(self) -> dict:  # noqa: N802
        return {}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._now = self._files()

    def latestOffset(self, start: dict, limit: ReadLimit) -> dict:  # noqa: N802
        """Of every file `size`, its bytes, and `at`, those of its log before it, also of files that are gone by now."""
        end = dict(start)
        for known in self._files() if self._now is None else self._now:
            mine = (now["at"] + now["size"] for name, now in end.items() if name.startswith(f"{known.log} "))
            before = end.get(known.identity) or {"at": max(mine, default=0), "size": 0}
            end[known.identity] = before | {"size": max(before["size"], known.size)}
        return end

    def partitions(self, start: dict, end: dict) -> list[InputPartition]:
        """One chunk for each file that has grown."""
        grown = {name: (start.get(name, {"size": 0})["size"], now["size"]) for name, now in end.items()}
        grown = {name: span for name, span in grown.items() if span[1] > span[0]}
        files = {known.identity: known.file for known in self._files()} if grown else {}
        if lost := sorted(grown.keys() - files.keys()):
            raise Unavailable(f"{self.folder}: {', '.join(lost)} was removed before it was read")
        return [
            InputPartition(Chunk(self.history, files[name], *span, first=end[name]["at"] + span[0]))
            for name, span in sorted(grown.items())
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a chunk, the value of a partition."""
        parsed = self._records(partition.value)
        names, schema = [field.name for field in RECORD], to_arrow_schema(spark_schema())
        while some := list(islice(parsed, 10_000)):
            columns = dict(zip(names, zip(*(read.values for read in some), strict=True), strict=True))
            columns |= {"history": [self.history] * len(some), "seq": [read.number for read in some]}
            yield pa.RecordBatch.from_pydict(columns | {"cause": [None] * len(some)}, schema)

    def _records(self, chunk: Chunk) -> Iterator[ImportedRow]:
        for read in read_chunk(chunk, ahead=0):
            if read.what == "problem":
                raise Unavailable(f"{chunk.file}: {read.text}")
            if read.what == "record":
                yield read

    def _files(self) -> list[Known]:
        """The files that can be read, in the order of their logs; one that is just being packed is there twice."""
        listed = []
        with suppress(BadInput):  # no log has been written yet
            listed = [file[:3] for file in log_files(self.folder) if file.problem is None]
        self._seen = {key: self._seen[key] if key in self._seen else _known(self.folder, key[0]) for key in listed}
        found = (known for known in self._seen.values() if known is not None)
        return sorted(found, key=lambda known: (known.log, known.begin, not known.packed))


def _known(folder: str, name: str) -> Known | None:
    """The identity of a file, by the beginning of its first line; None until that is there."""
    try:
        whole = packed(name)
        begin = next(blocks(name), b"")[:NAMED_BY]
        size = _to_last_break(blocks(name)) if whole else last_break(name)
    except (OSError, Unreadable):
        return None  # a packed file that is still being written
    first, found, _ = begin.partition(b"\n")
    if not found and len(begin) < NAMED_BY:
        return None
    place = os.path.relpath(name, folder if "://" in folder else os.path.abspath(folder))
    log = os.path.join(os.path.dirname(place), os.path.basename(place).partition(".")[0])
    return Known(name, log, first, size, whole)


def _to_last_break(text: Iterator[bytes]) -> int:
    """The number of bytes of a text up to its last line break."""
    size = offset = 0
    for block in text:
        size = offset + block.rfind(b"\n") + 1 if b"\n" in block else size
        offset += len(block)
    return size


def last_break(name: str) -> int:
    """The same for a file in which one can go back."""
    fs, path, _ = filesystem(name)
    with fs.open_input_file(path) as file:
        end = file.size()
        while end > 0:
            begin = max(0, end - NAMED_BY)
            file.seek(begin)
            if found := file.read(end - begin).rfind(b"\n") + 1:
                return begin + found
            end = begin
    return 0
