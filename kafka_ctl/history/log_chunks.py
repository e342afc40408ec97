"""Pieces of log files, read side by side: their lines, and what a piece becomes.

A piece is a range of bytes; a line belongs to the piece in which it begins. The importer and the live reader share it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from kafka_ctl.history.log_files import LONGEST, ParsedLine, read_texts
from kafka_ctl.history.schema import SCHEMA
from kafka_ctl.history.unpacking import LOG_HEADER, Unreadable, blocks
from kafka_ctl.kafka_log.read import LogLine, fits
from kafka_ctl.trace import details

LEAD_IN = 64 << 10
"""Bytes before its piece that a task reads too, to know who was speaking; and where to look for a line after it."""
WHOLE = 1 << 62
"""The unknown end of a packed file."""
KEPT_HEAD, KEPT_TAIL = 4 * LONGEST, 800
"""Bytes of a longer line that are kept: as many as `LONGEST` characters may take, and its end, with the logger."""
BREAK = re.compile(rb"\r\n?|\n")
EMPTY = re.compile(rb"(?<!\r)\n{64,}|(?:\r\n){64,}")
"""Line breaks with nothing between: a gzip of a few kilobytes may hold millions of them."""

RECORD = [field for field in SCHEMA if field.name not in ("history", "seq", "cause")]
"""The columns that a line says, or leaves out."""


class Chunk(NamedTuple):
    """Bytes `start` to `stop` of a file (unpacked, if it is packed), whose first line is number `first`.

    `changed` distinguishes versions of a file: Spark would take what it has read for what it is asked to read. A file
    with a `problem` is not read.
    """

    history: str
    file: str
    start: int
    stop: int
    changed: int = 0
    first: int = 1
    problem: str | None = None


class ImportedRow(NamedTuple):
    """The contents of a line: a record (`what`), or a rejected line with its reason.

    Two records on one line differ in `piece`, those that one record stands for in `part`. At last come `chunk` and
    `continued`, with the number of its lines and of those that only go on, and, where it could not be read to its end,
    `problem`.
    """

    number: int
    piece: int
    part: int
    what: str
    text: str | None = None
    formats: int | None = None
    values: tuple[Any, ...] = (None,) * len(RECORD)


def read_chunk(chunk: Chunk, ahead: int = 2) -> Iterator[ImportedRow]:
    """The contents of the lines of a chunk, then their number and the fault of the chunk, if any.

    `ahead` lines after it may end a record that it began: an exception stands below its error.
    """
    counts = Counts()
    texts = _texts(chunk, ahead, counts)
    continued = 0  # beside the empty lines, which are only counted
    for parsed in read_texts((number, _decoded(line)) for number, line in texts):
        if not chunk.first <= parsed.number < chunk.first + counts.lines:
            continue
        if parsed.line is not None and (records := _records(parsed)):
            yield from records
        elif parsed.line is not None or parsed.rejected:
            why = parsed.rejected or "a number out of range"
            yield ImportedRow(parsed.number, parsed.piece, 0, "rejected", f"{why}: {parsed.text[:2000]}")
        else:
            continued += 1
    yield ImportedRow(counts.lines, 0, 0, "chunk")
    yield ImportedRow(continued + counts.empty, 0, 0, "continued")
    if problem := chunk.problem or counts.problem:
        yield ImportedRow(0, 0, 0, "problem", problem)


class Counts:
    """The number of lines of a chunk so far, and the fault that ended it before its end."""

    lines = 0
    empty = 0
    """Those of them that are empty and came in a run."""
    problem: str | None = None


def _texts(chunk: Chunk, ahead: int, counts: Counts) -> Iterator[tuple[int, bytes]]:
    """The lines of a chunk with their numbers, those before it that name the logger, and some after it."""
    if chunk.problem is not None:
        return
    before: list[bytes] = []
    begun = last = -1
    try:
        for begin, line, run in lines(chunk.file, max(0, chunk.start - LEAD_IN), chunk.stop + LEAD_IN, _listed(chunk)):
            if run is not None:
                inside = run.before(chunk.stop) - run.before(chunk.start)
                if inside and last < 0:
                    yield from enumerate(before, chunk.first - len(before))
                    last = chunk.first - 1
                last, counts.lines, counts.empty = last + inside, counts.lines + inside, counts.empty + inside
                ahead = max(0, ahead - run.lines + run.before(chunk.stop))
                continue
            if begin < chunk.start:
                before.append(line)
                continue
            if begin >= chunk.stop and (ahead == 0 or begin >= chunk.stop + LEAD_IN):
                return
            if last < 0:
                yield from enumerate(before, chunk.first - len(before))
                last = chunk.first - 1
            last += begin != begun
            ahead -= begin >= chunk.stop and begin != begun
            counts.lines += begin < chunk.stop and begin != begun
            begun = begin
            yield last, line
    except Unreadable as problem:
        counts.problem = str(problem)


def count_lines(chunk: Chunk) -> int:
    """The number of lines of a chunk, or of those before a fault."""
    count, begun = 0, -1
    try:
        for begin, _, run in lines(chunk.file, chunk.start, chunk.stop, _listed(chunk)):
            if begin >= chunk.stop:
                break
            count, begun = count + (begin != begun if run is None else run.before(chunk.stop)), begin
    except Unreadable:
        pass  # which is reported where the lines are read
    return count


def _listed(chunk: Chunk) -> int:
    """The bytes that the chunk's file must have, where that is known."""
    return 0 if chunk.stop >= WHOLE else chunk.stop


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace").removeprefix("\ufeff")


def _records(parsed: ParsedLine) -> list[ImportedRow]:
    """The records of a line; none if a number in its detail is too large for a column."""
    assert parsed.line is not None
    first, *more = _spread(parsed.line)
    if not all(map(fits, more)):
        return []
    return [
        ImportedRow(parsed.number, parsed.piece, part, "record", None, parsed.formats, values_of(line))
        for part, line in enumerate((first, *more))
    ]


def values_of(line: LogLine) -> tuple[object, ...]:
    """The values of a line's record, in the order of the trace's columns."""
    columns = line._asdict() | {"time_ms": float(line.time), "actor": line.actor or "unknown", "path": None}
    actor = line.actor or ""
    if line.kind == "controller" and line.broker is None and actor.startswith("controller-"):
        columns["broker"] = int(actor.removeprefix("controller-"))
    return tuple(columns[field.name] for field in RECORD)


def _spread(line: LogLine) -> Iterator[LogLine]:
    """One record for each partition that a line is about, and one for each broker that it says has left."""
    if line.partitions:
        yield from (line._replace(topic=topic, partition=number) for topic, number in line.partitions)
        return
    yield line
    if line.action in ("brokers_changed", "shutting_down_broker") and line.detail:
        fields = details.json_object(line.detail)
        for broker in fields.get("dead", ()):
            yield line._replace(kind="broker", action="lost", broker=broker, detail=None)
        if "broker" in fields:
            yield line._replace(kind="broker", action="controlled-shutdown", broker=fields["broker"], detail=None)


class EmptyLines(NamedTuple):
    """Empty lines that follow each other: where the first begins, how many, and the bytes of each."""

    begin: int
    lines: int
    width: int

    def before(self, at: int) -> int:
        """The number of them that begin before this byte."""
        return min(self.lines, max(0, -((self.begin - at) // self.width)))


FoundLine = tuple[int, bytes, EmptyLines | None]
"""The beginning of a line and its text; or a run of empty ones in its place."""


def lines(file: str, start: int, stop: int, size: int = 0) -> Iterator[FoundLine]:
    """The lines of a file that begin at `start` or later, and where each begins; `stop` is where looking may end.

    A line ends with a line feed, a carriage return, or both. A line of many records that lack line breaks may come in
    several pieces, all with the line's beginning; many empty lines come as one. Raises Unreadable as `blocks` does.
    """
    # Text before the first line break belongs to a line that began earlier, however short it is.
    offset = max(0, start - 1)
    found = _whole_breaks(blocks(file, offset, size))
    if start:
        for block in found:
            if ended := BREAK.search(block):
                offset += ended.end()
                found = chain([block[ended.end() :]], found)
                break
            offset += len(block)
            if offset >= stop:
                return
        else:
            return
    yield from _split(found, offset)


def _whole_breaks(found: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of which none ends within a line break of two bytes."""
    held = b""
    for block in found:
        block = held + block
        held = b"\r" if block.endswith(b"\r") else b""
        yield block[:-1] if held else block
    yield held


def _split(found: Iterable[bytes], offset: int) -> Iterator[FoundLine]:
    """The lines in blocks of which the first is at `offset`, however long they are."""
    begin, size, line = offset, 0, b""
    for block in found:
        for text, more in _broken(block):
            if more:
                run = EmptyLines(begin, more // len(text), len(text))
                yield begin, b"", run
                begin += more
                continue
            size += len(text)
            line = line + text if line else text
            if len(line) > KEPT_HEAD * 2:
                *records, line = shortened(line)
                yield from ((begin, record, None) for record in records)
            # A crash, or a log that is emptied while it is written to, leaves NULs before a line.
            if text.endswith((b"\n", b"\r")):
                yield begin, line.rstrip(b"\r\n").strip(b"\0"), None
                begin, size, line = begin + size, 0, b""
            elif line.startswith(b"\0"):
                line = line.lstrip(b"\0")
    if size:
        yield begin, line.strip(b"\0"), None


def _broken(block: bytes) -> Iterator[tuple[bytes, int]]:
    """A block at its line breaks, which stay; of a run of them the first, then again with the bytes of the others."""
    at = 0
    for run in EMPTY.finditer(block):
        yield from ((text, 0) for text in block[at : run.start()].splitlines(keepends=True))
        first = run[0][: 1 + run[0].startswith(b"\r")]
        yield first, 0  # it may end a line that has begun
        yield first, len(run[0]) - len(first)
        at = run.end()
    yield from ((text, 0) for text in block[at:].splitlines(keepends=True))


def shortened(line: bytes) -> Iterator[bytes]:
    """A long line that may go on: whole records, if there are several on it, and what is kept of the last."""
    starts = [found.start() - (line[found.start() - 1] == ord("[")) for found in LOG_HEADER.finditer(line, 1)]
    cut = max(starts, default=0)
    if cut:
        yield line[:cut]
    last = line[cut:]
    yield last if len(last) <= KEPT_HEAD * 2 else last[:KEPT_HEAD] + last[-KEPT_TAIL:]
