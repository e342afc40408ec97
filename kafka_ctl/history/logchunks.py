"""Pieces of log files, read side by side: where the files are, their lines, and what a piece becomes.

A piece is a range of bytes; a line belongs to the piece in which it begins. The importer and the live reader share it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import pyarrow.fs as pafs

from kafka_ctl.errors import BadInput
from kafka_ctl.history.files import filesystem
from kafka_ctl.history.logfile import read_texts
from kafka_ctl.history.logline import Line
from kafka_ctl.history.schema import SCHEMA

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

LEAD_IN = 64 << 10
"""Bytes before its piece that a task reads too, to know who was speaking; and where to look for a line after it."""
BLOCK = 4 << 20
PACKED = (".gz", ".bz2", ".zst", ".lz4")
"""Files that can only be read from their beginning, by one task."""
WHOLE = 1 << 62
"""Where a packed file ends: nobody knows."""
NAMES = ("state-change", "controller")
"""What is read in a folder: files with one of these in their names."""

RECORD = [field for field in SCHEMA if field.name not in ("history", "seq", "cause")]
"""The columns that a line says, or leaves out."""


class Chunk(NamedTuple):
    """Bytes `start` to `stop` of a file (unpacked, if it is packed), whose first line is number `first`.

    `changed` tells versions of a file apart: Spark would take what it has read for what it is asked to read.
    """

    history: str
    file: str
    start: int
    stop: int
    changed: int = 0
    first: int = 1


class Read(NamedTuple):
    """What a line says: a record (`what`), or a rejected line with its reason; or how many lines the chunk had."""

    number: int
    part: int
    what: str
    text: str | None = None
    formats: int | None = None
    values: tuple[Any, ...] = (None,) * len(RECORD)


def log_files(paths: Paths) -> Iterator[tuple[str, pafs.FileInfo]]:
    """Files as they are, and those of folders that are named like logs, however deep; each with its address.

    Raises BadInput for a path where nothing is, and for a folder without such files.
    """
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        fs, root, prefix = filesystem(path)
        info = fs.get_file_info(root)
        if info.type == pafs.FileType.NotFound:
            raise BadInput(f"{os.fspath(path)}: no such file or folder")
        found = [info]
        if info.type == pafs.FileType.Directory:
            inside = fs.get_file_info(pafs.FileSelector(root, recursive=True))
            found = [f for f in inside if f.is_file and any(name in f.base_name for name in NAMES)]
            if not found:
                raise BadInput(f"{os.fspath(path)} holds no file named like state-change.log* or controller.log*")
        for file in sorted(found, key=lambda f: f.path):
            yield prefix + file.path, file


def read_chunk(chunk: Chunk, ahead: int = 2) -> Iterator[Read]:
    """What the lines of a chunk say, and last how many there were.

    `ahead` lines after it may end a record that it began: an exception stands below its error.
    """
    before = list(lines(chunk._replace(start=max(0, chunk.start - LEAD_IN), stop=chunk.start)))
    after = islice(
        lines(chunk._replace(start=chunk.stop, stop=chunk.stop + LEAD_IN)), ahead if chunk.stop < WHOLE else 0
    )
    last = chunk.first - 1

    def own() -> Iterator[bytes]:
        nonlocal last
        for line in lines(chunk):
            last += 1
            yield line

    texts = enumerate(chain(before, own(), after), chunk.first - len(before))
    for said in read_texts((number, line.decode("utf-8", "replace").rstrip("\r")) for number, line in texts):
        if not chunk.first <= said.number <= last:
            continue
        if said.rejected:
            yield Read(said.number, 0, "rejected", f"{said.rejected}: {said.text[:2000]}")
        elif said.line is not None:
            for part, line in enumerate(_spread(said.line)):
                yield Read(said.number, part, "record", None, said.formats, _values(line))
    yield Read(last - chunk.first + 1, 0, "chunk")


def _values(line: Line) -> tuple[Any, ...]:
    told = line._asdict() | {"time_ms": float(line.time), "actor": line.actor or "unknown", "path": None}
    if line.kind == "controller" and line.broker is None and (line.actor or "").startswith("controller-"):
        told["broker"] = int(line.actor.removeprefix("controller-"))  # type: ignore[union-attr]
    return tuple(told[field.name] for field in RECORD)


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


def opened(file: str) -> Any:
    """A file's bytes from the beginning, unpacked."""
    fs, path, _ = filesystem(file)
    return fs.open_input_stream(path) if path.endswith(PACKED) else fs.open_input_file(path)


def lines(chunk: Chunk) -> Iterator[bytes]:
    """The lines that begin between `start` and `stop`."""
    if chunk.start >= chunk.stop:
        return
    with opened(chunk.file) as file:
        # What comes before the first line break has begun in the chunk before, however short it is.
        begin = max(0, chunk.start - 1)
        if chunk.file.endswith(PACKED):
            left = begin
            while left and (skipped := file.read(min(BLOCK, left))):
                left -= len(skipped)
        else:
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
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            if offset >= stop:
                return
            yield line
            offset += len(line) + 1
