"""Logs of a real cluster as a trace for every view, each record with the line that it was read from.

Reads what `import_logs` reads, without Spark. A value that the logs do not have is unknown: nothing is guessed.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from operator import itemgetter
from pathlib import PurePath
from typing import NamedTuple

from kafka_ctl.errors import BadInput, short
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.history.lives import begun, elections, terms
from kafka_ctl.history.log_chunks import RECORD, WHOLE, lines, read_chunk
from kafka_ctl.history.log_folders import Paths, copies, log_files
from kafka_ctl.history.log_import import clock, list_chunks
from kafka_ctl.history.unpacking import NAMES, Unreadable
from kafka_ctl.kafka_log.releases import release
from kafka_ctl.trace import Record, Trace
from kafka_ctl.trace.model import number_of

COLUMNS = [field.name for field in RECORD]
ACTOR = COLUMNS.index("actor")
WIPED = "ZooKeeper was wiped, or these are the logs of two clusters"
MANY = 100_000
"""The most records of a replay: the pictures of more take minutes, and gigabytes."""
FORM = "2024-05-31 13:00, as the logs have it"
Moment = str | datetime


class SourceLine(NamedTuple):
    """A line of a log file; numbers begin with 1."""

    file: str
    number: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.text}"


class Replay(Trace):
    """The trace of log files; `time_ms` counts from the first line, which is at `began_ms` since 1970.

    `lines[seq]` is the line of a record, `at(file, line)` the records of a line. `missing` says in sentences what the
    files do not have: epochs without a controller's log, brokers without files, lines and files that were not read; and
    which files are copies.
    """

    def __init__(
        self, records: Sequence[Record], places: Sequence[SourceLine], missing: Sequence[str], kafka: str
    ) -> None:
        super().__init__(history="logs", generation=_generation(kafka))
        self.began_ms = records[0].time_ms
        self.records = [record._replace(time_ms=record.time_ms - self.began_ms) for record in records]
        self.lines, self.missing, self.kafka = tuple(places), tuple(missing), kafka
        text = cache(SourceLine.__str__)  # a line may have been read as many records
        self.logged = {
            name: [(n, text(p)) for n, p in enumerate(places) if (log_of(p.file) or NAMES[0]) == name] for name in NAMES
        }

    def at(self, file: str, number: int) -> list[int]:
        """The `seq` of each record of a line. Raises BadInput where the line is no record."""
        found = [seq for seq, place in enumerate(self.lines) if place[:2] == (file, number)]
        if not found:
            last = max((place.number for place in self.lines if place.file == file), default=None)
            known = f"the last one is line {last}" if last else f"files: {', '.join(self.files)}"
            raise BadInput(f"{file}:{number} is not a line that was understood; {known}")
        return found

    @property
    def files(self) -> list[str]:
        """The files with lines that were understood, by name."""
        return sorted({place.file for place in self.lines})


def log_of(file: str) -> str:
    """The log that a file is of: `controller` or `state-change`; nothing for a file that may be of both."""
    return next((name for name in NAMES if name in PurePath(file).name), "")


def _generation(kafka: str) -> str:
    """The newest generation that is not newer than the last of these releases: `1.1 to 2.0` is played by 2.0.

    2.0, a lab's own, where no release is known.
    """
    last = [int(number) for number in re.findall(r"\d+", kafka)[-2:] or (2, 0)]
    older = [name for name in GENERATIONS if [int(number) for number in name.split(".")] <= last]
    return older[-1] if older else next(iter(GENERATIONS))


def replay(logs: Paths, begin: Moment | None = None, end: Moment | None = None) -> Replay:
    """The trace of `state-change.log*` and `controller.log*`: files, or folders with one for each broker.

    Only the lines from `begin` on and before `end` count: texts like `2024-05-31 13:00`, or datetimes, without a time
    zone, as the logs have none. Nothing but the files is read. Raises BadInput for a path where nothing is, for a
    folder without such files, where no line is understood, and for more than `MANY` records.
    """
    span = Span(begin, end)
    files = list(log_files(logs))
    chunks = {chunk.file: chunk for chunk in list_chunks("logs", files, cut=False)}
    base = _base(chunks)
    found: list[tuple[tuple[object, ...], tuple[object, ...]]] = []
    missing: list[str] = []
    texts: dict[str, dict[int, str]] = {}
    written: set[tuple[str, str]] = set()
    formats = 0
    for file, chunk in sorted(chunks.items()):
        name, rejected = os.path.relpath(file, base) if base else file, 0
        numbers: set[int] = set()
        for row in read_chunk(chunk):
            formats |= row.formats or 0  # also outside of the span: only the first line that shows one has it
            if row.what == "record":
                written.add((name, str(row.values[ACTOR])))
                if span.has(row.values[0]) and span.count <= MANY:
                    found.append(((row.values[0], name, row.number, row.piece, row.part), row.values))
                    numbers.add(row.number)
                elif span.count > MANY:
                    found.clear()  # only their number and times are of interest from now on
            elif row.what == "problem":
                missing.append(f"The file {name} was not read to its end: {row.text}")
            rejected += row.what == "rejected"
        if rejected:
            missing.append(f"Of {name}, {rejected:,} line{'s were' if rejected > 1 else ' was'} not understood")
        texts[name] = _texts(file, numbers) if found and numbers else {}  # others may be no files
    span.check([*missing, *(f"{file.name} is empty" for file in files if not file.size and not file.problem)])
    found.sort(key=itemgetter(0))
    places = [SourceLine(str(n), int(str(at)), texts[str(n)].get(int(str(at)), "")) for (_, n, at, *_), _ in found]
    records = [Record(seq=seq, **dict(zip(COLUMNS, values, strict=True))) for seq, (_, values) in enumerate(found)]
    return Replay(
        records, places, [*copies(files, base), *missing, *gaps(records, written, begin is None)], release(formats)
    )


def _base(files: Iterable[str]) -> str:
    """The folder that all files are in; nothing if there are no files, or paths beside addresses."""
    with suppress(ValueError):
        return os.path.commonpath([os.path.dirname(file) for file in files])
    return ""


class Span:
    """The time span of a replay, and the records in it: how many, the first and the last.

    Raises BadInput for a moment that cannot be read.
    """

    def __init__(self, begin: Moment | None, end: Moment | None) -> None:
        self.begin, self.end = _moment(begin, -math.inf), _moment(end, math.inf)
        if self.begin >= self.end:
            raise BadInput(f"a time span cannot begin at {begin} and end at {end}")
        self.count, self.first, self.last = 0, math.inf, -math.inf
        self.outside = 0

    def has(self, ms: float) -> bool:
        """Count a record; False if it is outside."""
        if not self.begin <= ms < self.end:
            self.outside += 1
            return False
        self.count += 1
        self.first, self.last = min(self.first, ms), max(self.last, ms)
        return True

    def check(self, missing: Sequence[str]) -> None:
        """Raise BadInput for no records, and for more than a replay can have."""
        if not self.count and self.outside:
            raise BadInput(f"none of the {self.outside:,} records of these logs is in this time span")
        if not self.count:
            raise BadInput(". ".join(["no line of these logs was understood", *missing]))
        if self.count > MANY:
            raise BadInput(
                f"{self.count:,} records, from {clock(self.first)} to {clock(self.last)}; a replay has {MANY:,} at "
                "most: choose a time span (`--from` and `--to`, begin= and end=), or `kafka-ctl history import` for all"
            )


def _moment(given: Moment | None, without: float) -> float:
    """A moment in milliseconds since 1970, by the clock of the logs. Raises BadInput for what is none."""
    if given is None:
        return without
    try:
        moment = datetime.fromisoformat(given) if isinstance(given, str) else given
        zone = moment.tzinfo
    except (ValueError, AttributeError):
        raise BadInput(f"a moment cannot be {short(given)}; it must be like {FORM}") from None
    if zone is not None:
        raise BadInput(f"a moment cannot have a time zone: {short(given)}; it must be like {FORM}")
    return moment.replace(tzinfo=UTC).timestamp() * 1000


def _texts(file: str, kept: set[int]) -> dict[int, str]:
    """The lines of a file that have these numbers, as far as it can be read."""
    texts: dict[int, str] = {}
    number, begun = 0, -1
    try:
        for begin, line, run in lines(file, 0, WHOLE):
            number += run.lines if run is not None else begin != begun
            begun = begin
            if number in kept:
                texts[number] = texts.get(number, "") + line.decode("utf-8", "replace")
    except Unreadable:
        pass  # which `read_chunk` reports
    return texts


def gaps(
    records: Sequence[Record], written: Collection[tuple[str, str]], from_the_beginning: bool = True
) -> Iterator[str]:
    """One sentence for each log, epoch and broker that is missing.

    `written` are the files, each with an actor of its lines, also those outside of a time span.
    """
    for name in NAMES:
        if not any(log_of(file) in (name, "") for file, _ in written):
            yield f"There is no {name}.log"
    firsts = begun(records)
    lives: list[list[tuple[Record, int | None]]] = [[]]
    for record, epoch in terms(elections(records)):
        if record.seq in firsts:
            lives.append([])
        lives[-1].append((record, epoch))
    for number, life in enumerate(lives):
        if number:
            actor = life[0][0].actor
            yield f"The controller epoch begins again at {actor}: {WIPED}"
        epochs = [epoch for _, epoch in life if epoch is not None]
        if epochs and min(epochs) > 1 and not firsts and from_the_beginning:
            yield f"The first election in these logs is that of epoch {min(epochs)}"
        for epoch, following in pairwise(sorted({*epochs})):  # a broker whose clock is ahead announces its own late
            if following > epoch + 1:
                yield f"No log says who was controller in {_epochs(epoch + 1, following - 1)}"
    receivers = {record.broker for record in records if record.kind == "request" and record.broker is not None}
    wrote = {number_of(actor) for _, actor in written}
    if silent := sorted(receivers - wrote):
        them, they = ("it", "it") if len(silent) == 1 else ("them", "they")
        yield f"No log of {_brokers(silent)}: requests to {them} are known, and not what {they} did"


def _epochs(first: int, last: int) -> str:
    return f"epoch {first}" if first == last else f"epochs {first} to {last}"


def _brokers(ids: Iterable[int]) -> str:
    listed = [str(id) for id in ids]
    return f"broker {listed[0]}" if len(listed) == 1 else f"brokers {', '.join(listed)}"
