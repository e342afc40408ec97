"""The layout of a dataset: a folder that Spark, DuckDB, polars and pyarrow all read.

    kind=partition/section=main/part-00003_00003.c000.zstd.parquet   the partition records of bucket 3
    _manifest.json                                                   written last: without it nothing is complete

A bucket holds the histories whose name Spark hashes to its number, and is sorted by history, topic, partition
and seq. So a question about one kind of record reads nothing else, and a question by history or by partition
moves and sorts nothing: Spark's bucketed tables know files by such names (`load` relies on it). Inside a kind, the few
records that most questions look for lie apart from the many that few ask for (`section_of`).
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from kafka_ctl.errors import BadInput
from kafka_ctl.history.files import filesystem
from kafka_ctl.history.schema import SCHEMA
from kafka_ctl.trace.catalogue import rows

Json = dict[str, Any]
"""The contents of a JSON file."""
FORMAT = 2
"""The format of a dataset's folder; `load` refuses any other."""
MANIFEST, UNFINISHED, TEMPORARY, DONE = "_manifest.json", "_unfinished.json", "_temporary", "_buckets"
NOTED: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("format", "clusters", "seed", "buckets", "histories", "records"), int),
    "hours": (int, float),
    "generation": str,
    "folders": list,
    "files": dict,
}
"""The types of what a manifest holds, except for the workload."""
ROW_GROUP = 500_000
"""Records in a row group, at most; also what a writer keeps in memory for each folder."""
IN_FILES = pa.schema([field for field in SCHEMA if field.name != "kind"])
"""The columns of a file: `kind` is in the name of its folder."""
RISING = ("seq", "time_ms", "cause")
"""Columns with hardly two values alike, for which a dictionary is a waste."""
HIGH_VOLUME = tuple(name for (kind, name), row in rows().items() if row.bulk)
"""The messages that controllers log in masses, and no question needs."""


def bucket_of(history: str, buckets: int) -> int:
    """The bucket of a history: Spark's hash of its name, modulo the number of buckets."""
    return murmur3(history.encode()) % buckets


def file_of(bucket: int) -> str:
    """The name of a bucket's file in each folder."""
    return f"part-{bucket:05d}_{bucket:05d}.c000.zstd.parquet"


def murmur3(data: bytes) -> int:
    """Murmur3 as Spark hashes strings, signed: the last bytes go in one by one, not together.

    Spark 4.3: unsafe/hash/Murmur3_x86_32.java, hashUnsafeBytes
    """

    def rotate(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & 0xFFFFFFFF

    h = 42  # the seed of Spark
    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, whole, 4)]
    words += [(byte - 256 if byte > 127 else byte) & 0xFFFFFFFF for byte in data[whole:]]
    for word in words:
        mixed = rotate(word * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
        h = (rotate(h ^ mixed, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= len(data)
    h = (h ^ (h >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


class DatasetFolder:
    """The folder of one dataset, here or on any file system pyarrow knows (`hdfs://`, `s3://` ...).

    `run` is the id of the run that writes to it, as in `UNFINISHED`; None for a reader.
    """

    def __init__(self, path: str | os.PathLike[str], run: str | None = None) -> None:
        self.fs, self.root, before = filesystem(path)
        self.path = os.fspath(path) if before else self.root
        self.run = run

    def at(self, *names: str) -> str:
        return "/".join((self.root, *names))

    def has(self, *names: str) -> bool:
        return self.fs.get_file_info(self.at(*names)).type != pafs.FileType.NotFound

    def names(self, *folder: str) -> list[str]:
        """The sorted entries of a folder; none when there is no such folder."""
        selector = pafs.FileSelector(self.at(*folder) if folder else self.root, allow_not_found=True)
        return sorted(info.base_name for info in self.fs.get_file_info(selector))

    def read_json(self, *names: str) -> Json:
        """A file of JSON that was written here. Raises BadInput if it is no longer that."""
        with self.fs.open_input_stream(self.at(*names)) as file:
            text = file.read()
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise BadInput(f"{self.at(*names)} is damaged: not the JSON that was written there")
        return found

    def write_json(self, value: Json, *names: str) -> None:
        """Write under another name first, so that no reader sees half a file."""
        folder = self.at(*names[:-1]) if names[:-1] else self.root
        self.fs.create_dir(folder)
        unfinished = f"{folder}/.{names[-1]}"
        try:
            with self.fs.open_output_stream(unfinished) as file:
                file.write(json.dumps(value, indent=1).encode() + b"\n")
            self.fs.move(unfinished, f"{folder}/{names[-1]}")
        except OSError:
            with suppress(OSError):
                self.fs.delete_file(unfinished)
            raise

    def files(self) -> list[str]:
        """The files that hold records, sorted."""
        return [self.at(name) for name in self.sizes()]

    def sizes(self) -> dict[str, int]:
        """The files that hold records, by their names in the folder, sorted, and their bytes. No hidden file does."""
        selector = pafs.FileSelector(self.root, allow_not_found=True, recursive=True)
        found = {info.path[len(self.root) + 1 :]: info.size for info in self.fs.get_file_info(selector) if info.is_file}
        return {name: found[name] for name in sorted(found) if re.match(r"kind=[^/]+(/[^._/][^/]*)+$", name)}

    def manifest(self) -> Json:
        """The description that a dataset holds of itself.

        Raises BadInput if there is none, one of another format, or only a part of one.
        """
        if self.has(MANIFEST):
            found: Json = {"files": {}} | self.read_json(MANIFEST)
            if isinstance(found.get("format"), int) and found["format"] != FORMAT:
                raise BadInput(f"{self.path} has format {found['format']}; this version reads {FORMAT}")
            if wrong := [name for name, kind in NOTED.items() if not isinstance(found.get(name), kind)]:
                raise BadInput(f"{self.at(MANIFEST)} is damaged: no {', '.join(wrong)} of the right type")
            return found
        if self.has(UNFINISHED):
            raise BadInput(f"{self.path} is not complete; generate(..., resume=True) finishes it")
        raise BadInput(f"{self.path} holds no generated histories (no {MANIFEST} there)")

    def begin(self, arguments: Json) -> None:
        """Note that a new run writes a dataset with these arguments, so that an earlier run ends (`check_run`)."""
        self.run = uuid4().hex
        self.write_json(arguments | {"run": self.run}, UNFINISHED)

    def check_run(self) -> None:
        """Raise BadInput if another run has begun to write here since this one did."""
        newest = self.read_json(UNFINISHED).get("run") if self.has(UNFINISHED) else None
        if self.run not in (None, newest):
            raise BadInput(f"{self.path}: another run has taken this folder; give each run a folder of its own")

    def clear(self) -> None:
        """Remove a dataset, finished or not; nothing else in the folder, nor the note that it is unfinished."""
        if self.has(MANIFEST):
            self.fs.delete_file(self.at(MANIFEST))
        for name in self.names():
            if name in (TEMPORARY, DONE) or name.startswith("kind="):
                self.fs.delete_dir(self.at(name))


class BucketWriter:
    """Writes the files of one bucket: all of them appear at the end, or none.

    `add` takes the histories in the order of their names. A bucket written twice, by a task that ran again,
    is the same files again.
    """

    def __init__(self, place: DatasetFolder, bucket: int) -> None:
        self.place, self.bucket = place, bucket
        self.folder = place.at(TEMPORARY, f"{bucket:05d}-{uuid4().hex[:8]}")
        self.file = file_of(bucket)
        place.fs.create_dir(self.folder)
        self.histories = self.records = 0
        self._waiting: dict[str, list[pa.Table]] = {}
        self._rows: Counter[str] = Counter()
        self._writers: dict[str, pq.ParquetWriter] = {}

    def add(self, history: pa.Table) -> None:
        """Take the records of one history, a table of the trace schema."""
        self.histories += 1
        for folder, part in parts(history):
            self.put(folder, part)

    def put(self, folder: str, part: pa.Table) -> None:
        """Take records of one folder, in the order of its file."""
        self.records += len(part)
        waiting = self._waiting.setdefault(folder, [])
        waiting.append(part)
        self._rows[folder] += len(part)
        if self._rows[folder] >= ROW_GROUP:
            self._flush(folder)

    def _flush(self, folder: str) -> None:
        if folder not in self._writers:
            self.place.fs.create_dir(f"{self.folder}/{folder}")
            self._writers[folder] = pq.ParquetWriter(
                f"{self.folder}/{folder}/{self.file}",
                IN_FILES,
                filesystem=self.place.fs,
                compression="zstd",
                compression_level=1,
                use_dictionary=[f.name for f in IN_FILES if f.name not in RISING],
                column_encoding=dict.fromkeys(["seq", "cause"], "DELTA_BINARY_PACKED"),
            )
        del self._rows[folder]
        self._writers[folder].write_table(pa.concat_tables(self._waiting.pop(folder)), row_group_size=ROW_GROUP)

    def abandon(self) -> None:
        """Leave nothing of the bucket, as far as that is possible, so that a full disk is less full."""
        for writer in self._writers.values():
            with suppress(OSError, pa.ArrowException):
                writer.close()
        with suppress(OSError):
            self.place.fs.delete_dir(self.folder)

    def commit(self) -> Json:
        """Close the files, move them to their places, and note what the bucket holds."""
        for folder in list(self._waiting):
            self._flush(folder)
        for folder, writer in sorted(self._writers.items()):
            writer.close()
            self.place.fs.create_dir(self.place.at(folder))
            self.place.fs.move(f"{self.folder}/{folder}/{self.file}", self.place.at(folder, self.file))
        noted: Json = {"bucket": self.bucket, "histories": self.histories, "records": self.records}
        noted["folders"] = sorted(self._writers)
        self.place.write_json(noted, DONE, f"{self.bucket:05d}.json")
        self.place.fs.delete_dir(self.folder)
        return noted


def section_of(records: pa.Table) -> pa.Array:
    """The section of each record inside its kind: `isr` (who is in sync), `bulk` or `main`.

    `bulk` is what comes in masses: what brokers do with requests, the events that a controller works on,
    its `HIGH_VOLUME`. Questions name the section as well as the kinds, so that they read less.
    """
    kind, action = records.column("kind"), records.column("action")
    about_partition = pc.is_valid(records.column("topic"))

    def one_of(column: pa.ChunkedArray, *values: str) -> pa.ChunkedArray:
        return pc.is_in(column, pa.array(values))

    sent = pc.and_(pc.and_(one_of(kind, "request"), one_of(action, "LeaderAndIsr")), about_partition)
    isr = pc.or_(sent, one_of(action, "shrink-isr", "expand-isr"))
    done = pc.and_(one_of(kind, "broker"), about_partition)
    worked_on = pc.and_(one_of(kind, "event"), pc.invert(one_of(records.column("actor"), "admin")))
    high_volume = pc.and_(one_of(kind, "controller"), one_of(action, *HIGH_VOLUME))
    bulk = pc.or_(pc.or_(done, worked_on), high_volume)
    return pc.if_else(isr, "isr", pc.if_else(bulk, "bulk", "main"))


def parts(history: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The records of one history by folder, each in the order of its file: topic, partition, seq."""
    folders = pc.binary_join_element_wise("kind=", history.column("kind"), "/section=", section_of(history), "")
    for folder in sorted(folders.unique().to_pylist()):
        part = history.filter(pc.equal(folders, folder)).drop_columns(["kind"])
        # Spark sorts nulls first, Arrow last; no topic is "", and no partition is -1.
        topic, partition = pc.fill_null(part.column("topic"), ""), pc.fill_null(part.column("partition"), -1)
        keys = pa.table({"topic": topic, "partition": partition, "seq": part.column("seq")})
        yield folder, part.take(pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names]))
