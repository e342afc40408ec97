"""Log files as they lie about: packed, misnamed, damaged, linked, gone; good ones are read, others are told."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import socket
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from history_logs import OLD, STATE, lay
from prose import Prose

from kafka_ctl import BadInput, Unavailable
from kafka_ctl.history import import_logs, log_chunks, log_folders, log_import, unpacking
from kafka_ctl.history.log_chunks import Chunk, read_chunk
from kafka_ctl.history.session import spark

LINES = [*OLD[:2], *OLD[3:6]]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
RECORDS, CONTINUED = 3, 2
LONG = b"".join(TEXT.replace(b"page", random.Random(n).randbytes(30).hex().encode()) for n in range(1000))
"""Hard to pack, so that half of it is there in half of a packed file."""


def arrow(codec: str, text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as packed:
        packed.write(text)
    return sink.getvalue().to_pybytes()


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda text: lzma.compress(text, lzma.FORMAT_ALONE),
    "zst": lambda text: arrow("zstd", text),
    "lz4": lambda text: arrow("lz4", text),
    "zip": lambda text: zipped(log=text),
}


def chunks_of(*paths: Path) -> list[Chunk]:
    """What tasks get of these paths."""
    return list(log_import.list_chunks("logs", [*log_folders.log_files(paths)]))


def read(*paths: Path) -> dict[str, Counter[str]]:
    """What tasks make of these paths, by file: how many records, lines of each kind, and what was wrong."""
    found: dict[str, Counter[str]] = {}
    for chunk in chunks_of(*paths):
        counted = found.setdefault(os.path.basename(chunk.file), Counter())
        for read in read_chunk(chunk):
            if read.what in ("chunk", "continued"):
                counted["lines" if read.what == "chunk" else read.what] += read.number
            elif read.what == "record":
                counted["records"] += read.part == 0
            else:
                assert read.text is not None
                counted[f"{read.what}: {read.text}" if read.what == "problem" else "rejected"] += 1
    return found


def one(path: Path) -> dict[str, int]:
    """The same of one file, without zeros."""
    (counted,) = read(path).values()
    return {what: number for what, number in counted.items() if number}


WHOLE = {"records": RECORDS, "lines": len(LINES), "continued": CONTINUED}


def problem(path: Path) -> str:
    """What was wrong with one file."""
    (reported,) = [what for what in one(path) if what.startswith("problem: ")]
    return reported.removeprefix("problem: ")


# What a file is


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_is_what_its_first_bytes_say(tmp_path: Path, suffix: str) -> None:
    """Whatever it is named: packed under a plain name, plain under a packed one, packed otherwise than named."""
    packed = PACKERS[suffix](TEXT)
    for name in ("state-change.log", f"state-change.log.{suffix}", "state-change.log.gz", "state-change.log.zst"):
        assert one(lay(tmp_path, name, packed)) == WHOLE
    assert one(lay(tmp_path, f"controller.log.{suffix}", TEXT)) == WHOLE


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "ascii"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(tmp_path: Path, encoding: str, ending: str) -> None:
    """As editors and other systems leave them, packed or not."""
    text = TEXT.decode().replace("\n", ending).encode(encoding)
    assert one(lay(tmp_path, "plain", text)) == WHOLE
    assert one(lay(tmp_path, "packed", gzip.compress(text))) == WHOLE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", {}),
        (b"\n\n", {"lines": 2, "continued": 2}),
        (TEXT.removesuffix(b"\n"), WHOLE),
        (TEXT.replace(b"\n", b"\r", 1).replace(b"\n", b"\r\n", 1), WHOLE),
        (b"\xef\xbb\xbf" + TEXT + b"\xef\xbb\xbf" + TEXT, {what: 2 * n for what, n in WHOLE.items()}),
        (bytes(200_000) + TEXT, WHOLE),
        (
            TEXT[: len(LINES[0])] + bytes(9_000_000) + TEXT[len(LINES[0]) :] + TEXT,
            {what: 2 * n for what, n in WHOLE.items()},
        ),
        (b"\xff\xfe\xfa" + TEXT, WHOLE),
    ],
    ids=["empty", "blank", "no last break", "mixed", "marks", "emptied while written", "torn", "no encoding"],
)
def test_plain_files_as_they_are_left(tmp_path: Path, text: bytes, expected: dict[str, int]) -> None:
    assert one(lay(tmp_path, "state-change.log", text)) == expected


def test_records_without_a_line_break_between(tmp_path: Path) -> None:
    """Each is read, whatever stands before it; what a torn write left of one is rejected, not lost."""
    first, second = LINES[:2]
    for glue in ("", " ", "\x00\x00"):
        assert one(lay(tmp_path, "glued", f"{first}{glue}{second}\n".encode())) == {"records": 2, "lines": 1}
    torn = one(lay(tmp_path, "torn", f"{first[:60]}{second}{first[:21]}{second}\n".encode()))
    assert torn == {"records": 2, "rejected": 1, "lines": 1} | {"rejected": torn["rejected"]}
    tail = f"leader 5 {STATE}{second}"
    assert one(lay(tmp_path, "tail", tail.encode())) == {"records": 1, "rejected": 1, "lines": 1}
    late = "x" * 700 + first
    assert one(lay(tmp_path, "late", late.encode())) == {"records": 1, "rejected": 1, "lines": 1}
    trace = f"{first}\n\tat kafka.Some.thing(Some.scala:7){second}"
    assert one(lay(tmp_path, "trace", trace.encode())) == {"records": 2, "continued": 1, "lines": 2}
    assert one(lay(tmp_path, "prefixed", f"kafka-1  | {first}\n".encode())) == {"records": 1, "lines": 1}


def test_a_file_without_any_line_break(tmp_path: Path) -> None:
    """Thousands of records on one line of megabytes; its number is theirs."""
    records = " ".join(LINES[:2]) * 4000
    path = lay(tmp_path, "glued", records.encode())
    assert one(path) == {"records": 8000, "lines": 1}
    (chunk,) = chunks_of(path)
    places = [(r.number, r.piece) for r in read_chunk(chunk) if r.what == "record"]
    assert places == [(1, piece) for piece in range(8000)]


def test_a_line_of_a_gigabyte_is_never_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beginning and its end are; the records around it are read, and a task that gets its middle reads its own."""
    blocks, held, asked, step = 64, [], Counter[int](), 1 << 20
    block = b"x" * (step // 4)
    head = f"{LINES[0]}\n[2016-03-01 10:00:00,050] DEBUG [Controller 3]: preferred replicas by broker Map(".encode()
    tail = f") (kafka.controller.KafkaController)\n{LINES[1]}\n".encode()
    size = len(head) + blocks * len(block) + len(tail)

    def text(file: str, start: int = 0, size: int = 0) -> Iterator[bytes]:
        asked[start] = 0
        at = 0
        for part in (head, *[block] * blocks, tail):
            if at + len(part) > start:
                asked[start] += 1
                yield part[max(0, start - at) :]
            at += len(part)

    def kept(line: bytes) -> Iterator[bytes]:
        held.append(len(line))
        return shortened(line)

    shortened = log_chunks.shortened
    monkeypatch.setattr(log_chunks, "blocks", text)
    monkeypatch.setattr(log_chunks, "shortened", kept)
    spans = [(start, min(start + step, size)) for start in range(0, size, step)]
    found = [list(read_chunk(Chunk("logs", "huge", *span))) for span in spans]
    assert [sum(read.what == "record" for read in reads) for reads in found] == [2, *[0] * (len(spans) - 2), 1]
    assert max(held) <= len(block) + 2 * log_chunks.KEPT_HEAD
    middle = [count for start, count in asked.items() if step <= start < size - 2 * step]
    assert max(middle) <= step // len(block) + 2


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_millions_of_empty_lines_are_counted_at_once(tmp_path: Path, ending: bytes) -> None:
    """A gzip of 32 kB with 32 MB of line breaks; what stands around them keeps its lines' numbers."""
    count = (32 << 20) // len(ending)
    text = LINES[0].encode() + ending * count + LINES[0].encode() + ending
    path = tmp_path / "controller.log.gz"
    path.write_bytes(gzip.compress(text, 1))
    began = time.monotonic()
    found = list(read_chunk(Chunk("logs", str(path), 0, log_chunks.WHOLE)))
    assert time.monotonic() - began < 10
    assert [read.number for read in found if read.what == "record"] == [1, count + 1]
    assert {read.what: read.number for read in found if read.what in ("chunk", "continued")} == {
        "chunk": count + 1,
        "continued": count - 1,
    }


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("step", [70, 100, 333, 1000])
def test_runs_of_empty_lines_are_cut_anywhere(tmp_path: Path, ending: bytes, step: int) -> None:
    """Pieces of a file give the same records with the same numbers, and count the same lines, as the whole."""
    text = ending.join([LINES[0].encode(), b"", *[b""] * 150, LINES[0].encode(), *[b""] * 300, b"", b"at x", b""])
    path = lay(tmp_path, "controller.log", text)
    whole = list(read_chunk(Chunk("logs", str(path), 0, len(text))))
    first, found = 1, []
    for start in range(0, len(text), step):
        piece = Chunk("logs", str(path), start, min(start + step, len(text)), first=first)
        found += read_chunk(piece)
        first += log_chunks.count_lines(piece)
    for what in ("record", "rejected"):
        assert [(r.number, r.values) for r in found if r.what == what] == [
            (r.number, r.values) for r in whole if r.what == what
        ]
    for what in ("chunk", "continued"):
        assert sum(r.number for r in found if r.what == what) == sum(r.number for r in whole if r.what == what)
    lines = len(text.decode().splitlines())
    assert sum(r.number for r in whole if r.what == "chunk") == lines == first - 1


# journald


def test_entries_of_journald(tmp_path: Path) -> None:
    """A message with or without time and level, as text, as bytes, several to an entry; what goes on goes on."""
    stamp = {"__REALTIME_TIMESTAMP": "1456826400100000", "PRIORITY": "6", "_SYSTEMD_UNIT": "kafka.service"}

    def entries(*messages: Any) -> bytes:
        return "".join(json.dumps({"MESSAGE": message} | stamp) + "\n" for message in messages).encode()

    assert one(lay(tmp_path, "text", entries(*LINES))) == WHOLE
    assert one(lay(tmp_path, "bytes", entries(*(list(line.encode()) for line in LINES)))) == WHOLE
    assert one(lay(tmp_path, "once", entries("\n".join(LINES)))) == WHOLE | {"lines": 1}
    assert one(lay(tmp_path, "seq", b"\x1e" + entries(*LINES).replace(b"\n{", b"\n\x1e{"))) == WHOLE
    bare = [line.split("] ", 1)[1] if line.startswith("[2") else line for line in LINES]
    assert one(lay(tmp_path, "bare", entries(*bare))) == WHOLE
    path = lay(tmp_path, "level", entries(LINES[1].split(" TRACE ", 1)[1]))
    (chunk,) = chunks_of(path)
    (record,) = (dict(zip(NAMES, r.values, strict=True)) for r in read_chunk(chunk) if r.what == "record")
    assert (record["time_ms"], record["action"], record["leader"]) == (1456826400100.0, "initialize", 3)
    odd = entries(None, [], [300], [[]], 7, {"a": 1}, "another service", "\ud800")
    assert one(lay(tmp_path, "odd", odd)) == {"lines": 8, "rejected": 8}


NAMES = [field.name for field in log_chunks.RECORD]


# Damage


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_packed_file_that_ends_too_early(tmp_path: Path, suffix: str) -> None:
    """What is before the end counts, and the file is told."""
    packed = PACKERS[suffix](LONG)
    for cut in (len(packed) // 2, len(packed) - 7, 30):
        path = lay(tmp_path, "state-change.log.gz", packed[:cut])
        assert problem(path)
        assert one(path).get("records", 0) <= RECORDS * 1000
    if suffix not in ("zip", "bz2"):  # which know what they hold at their end, or in large blocks
        assert one(lay(tmp_path, "half", packed[: len(packed) * 2 // 3]))["records"] > RECORDS * 300


def test_a_python_that_cannot_unpack_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are built without a library; the file is reported, and nothing is raised."""
    packed = tmp_path / "controller.log.bz2"
    packed.write_bytes(bz2.compress(b"[2016-03-01 10:00:00,000] INFO\n"))
    monkeypatch.setitem(sys.modules, "bz2", None)
    (*_, problem) = read_chunk(Chunk("h", str(packed), 0, log_chunks.WHOLE))
    assert problem.what == "problem" and "bz2" in str(problem.text)


def test_what_follows_a_packed_file(tmp_path: Path) -> None:
    """Another one belongs to it, and so do zeros; the rest is told, after all that was good."""
    packed = gzip.compress(TEXT)
    assert one(lay(tmp_path, "two", packed * 2)) == {what: 2 * n for what, n in WHOLE.items()}
    assert one(lay(tmp_path, "padded", packed + bytes(100))) == WHOLE
    path = lay(tmp_path, "junk", packed + b"no gzip")
    assert one(path) == WHOLE | {f"problem: {problem(path)}": 1}
    wrong = lay(tmp_path, "checksum", packed[:-8] + b"\1\2\3\4" + packed[-4:])
    assert "CRC" in problem(wrong)


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        (random.Random(1).randbytes(50_000), "neither text nor packed in a known way"),
        (b"\x1f\x8b", "neither text nor packed in a known way"),
        (gzip.compress(random.Random(1).randbytes(50_000)), "neither text nor packed in a known way"),
        (gzip.compress(gzip.compress(TEXT)), "packed twice"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(90), "a 7z archive"),
        (gzip.compress(b"state-change.log" + bytes(241) + b"ustar" + bytes(250)), "a tar archive; unpack it first"),
        (zipped(), "damaged|archive"),
        (zipped(log=TEXT).replace(b"\x08\x00", b"\x63\x00"), "compression|not supported|damaged"),
    ],
    ids=["random", "two bytes", "random, packed", "twice", "7z", "tar", "empty zip", "unknown zip"],
)
def test_what_is_no_log_is_reported(tmp_path: Path, text: bytes, logged: str) -> None:
    """Once for a file, and not once a line."""
    path = lay(tmp_path, "state-change.log", text)
    assert re.search(logged, problem(path))
    assert not one(path).get("rejected")


def test_a_good_log_after_damage_is_no_binary(tmp_path: Path) -> None:
    garbage = random.Random(2).randbytes(3000)
    assert one(lay(tmp_path, "state-change.log", garbage + b"\n" + TEXT))["records"] == RECORDS


def mutations(seed: int) -> Iterator[tuple[str, bytes]]:
    """Files of every kind, with bytes changed, cut out, doubled, or put in."""
    rng = random.Random(seed)
    wrapped = b"".join(json.dumps({"MESSAGE": line, "log": line}).encode() + b"\n" for line in LINES)
    sources = [TEXT, TEXT.replace(b"\n", b"\r\n"), TEXT.replace(b"\n", b"\r"), wrapped, TEXT.decode().encode("utf-16")]
    sources += [pack(TEXT * 3) for pack in PACKERS.values()]
    while True:
        data = bytearray(rng.choice(sources))
        for _ in range(rng.choice((1, 1, 2, 5, 20))):
            at, size = rng.randrange(len(data) + 1), rng.choice((1, 1, 4, 40))
            kind = rng.randrange(5)
            if kind == 0:
                data[at : at + size] = rng.randbytes(size)
            elif kind == 1:
                del data[at : at + size]
            elif kind == 2:
                data[at:at] = data[: rng.randrange(len(data) + 1)]
            elif kind == 3:
                data[at:at] = rng.choice(
                    (b"\n", b"\r", b"\0", b"9" * 12, b"9" * 5000, b"-", b"{", b'"', b"\xef\xbb\xbf")
                )
            else:
                data = data[:at]
        yield rng.choice(("state-change.log", "a.gz", "b.zip")), bytes(data)


def test_damaged_at_random(tmp_path: Path) -> None:
    """3,000 files: nothing stops the import, all that is read fits its columns, no line is lost unsaid, and a good file
    beside them is read whole."""
    good = lay(tmp_path, "good.log", TEXT)
    for number, (name, data) in zip(range(3000), mutations(8), strict=False):
        bad = lay(tmp_path, name, data)
        chunks = chunks_of(bad, good)
        rows = pa.Table.from_pylist([chunk._asdict() for chunk in chunks], log_import.CHUNKS)
        reported = pa.Table.from_batches(
            list(log_import.parse_chunks(iter(rows.to_batches()))), log_import.PARSED
        ).to_pylist()
        assert {row["what"] for row in reported} <= {"record", "rejected", "chunk", "continued", "problem"}
        beside = [row for row in reported if row["file"] == str(good)]
        assert sum(row["what"] == "record" for row in beside) == RECORDS, number
        assert not [row for row in beside if row["what"] in ("rejected", "problem")], number
        mine = [row for row in reported if row["file"] == str(bad)]
        lines = sum(row["number"] for row in mine if row["what"] == "chunk")
        accounted = {row["number"] for row in mine if row["what"] in ("record", "rejected")}
        assert lines <= len(accounted) + sum(row["number"] for row in mine if row["what"] == "continued"), number


def test_chunks_of_damaged_files_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, and whatever ends the lines: what is read, and the numbers of the lines, are the same."""
    plain = (data for _, data in mutations(9) if len(data) > 20 and b"2016" in data and not data.startswith(b"{"))
    for number, data in zip(range(24), plain, strict=False):
        path = lay(tmp_path, "state-change.log", data)
        chunks = chunks_of(path)
        if len(chunks) != 1 or chunks[0].stop == log_chunks.WHOLE or chunks[0].problem:
            continue
        whole = [read for read in read_chunk(chunks[0]) if read.what in ("record", "rejected")]
        for size in (9, 64, 333):
            monkeypatch.setattr(log_import, "CHUNK", size)
            pieces, first, found = chunks_of(path), 1, []
            for piece in pieces:
                found += list(read_chunk(piece._replace(first=first)))
                assert found[-2].number >= 0
                first += log_chunks.count_lines(piece)
            again = [read for read in found if read.what in ("record", "rejected")]
            assert [r._replace(formats=None) for r in again] == [r._replace(formats=None) for r in whole], (
                number,
                size,
            )
        monkeypatch.undo()


# Which files


def test_each_file_once(tmp_path: Path) -> None:
    """A folder and a file in it, the same path twice, links and hard links, a loop of links."""
    logs = tmp_path / "logs"
    state, controller = lay(logs, "b1/state-change.log", TEXT), lay(logs, "b1/controller.log", TEXT)
    (logs / "b1" / "loop").symlink_to(logs, target_is_directory=True)
    (logs / "a").symlink_to(logs / "b1", target_is_directory=True)
    (logs / "b1" / "controller.log.today").symlink_to(controller)
    (logs / "b1" / "state-change.log.1").hardlink_to(state)
    found = list(log_folders.log_files([logs, state, str(state), logs / "b1", logs / "a" / "controller.log", logs]))
    assert [file.name for file in found] == [str(controller), str(state)]
    assert [file.size for file in found] == [len(TEXT)] * 2
    assert [f.name for f in log_folders.log_files([logs / "a" / "controller.log"])] == [str(logs / "a/controller.log")]


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.filterwarnings("error:.*count twice")
def test_a_packed_copy_beside_its_file_counts_once(tmp_path: Path, suffix: str) -> None:
    """As long as the file begins with it; one that says something else is another log."""
    plain, pack = lay(tmp_path, "state-change.log", LONG), PACKERS[suffix]
    lay(tmp_path, f"state-change.log.{suffix}", pack(LONG))
    alone = import_logs(spark(), plain).files.collect()
    assert import_logs(spark(), tmp_path).files.collect() == alone
    lay(tmp_path, f"state-change.log.{suffix}", pack(LONG[: LONG.index(b"\n", len(LONG) // 2) + 1]))
    assert import_logs(spark(), tmp_path).files.collect() == alone
    for other in (TEXT, LONG + TEXT):
        lay(tmp_path, f"state-change.log.{suffix}", pack(other))
        assert {Path(row.file).name for row in import_logs(spark(), tmp_path).files.collect()} == {
            "state-change.log",
            f"state-change.log.{suffix}",
        }
    lay(tmp_path, f"state-change.log.{suffix}", pack(LONG)[:200])
    with pytest.warns(UserWarning, match="not read"):
        assert len(import_logs(spark(), tmp_path).problems) == 1


def test_a_copy_under_another_name_is_reported(prose: Prose, tmp_path: Path) -> None:
    """Also packed and in another folder; it is read, as a text may be written twice."""
    for name in ("a/state-change.log", "b/state-change.log.copy"):
        lay(tmp_path, name, TEXT)
    for name in ("a/controller.log.1.gz", "c/controller.log.gz"):
        lay(tmp_path, name, gzip.compress(LONG, mtime=0))
    lay(tmp_path, "b/state-change.log", TEXT.replace(b"page", b"site"))
    for name in ("a/controller.log", "b/controller.log"):
        lay(tmp_path, name, b"")
    with pytest.warns(UserWarning, match="are copies") as warned:
        logs = import_logs(spark(), iter([tmp_path / "a", tmp_path]))
    assert [str(warning.message) for warning in warned] == logs.copies
    prose("\n".join(logs.copies))
    assert logs.where("topic = 'page.views-eu'").count() == 2 * RECORDS
    assert list(log_folders.copies(log_folders.log_files([tmp_path / "b", tmp_path / "c"]))) == []


def test_the_beginning_of_another_file_is_reported(prose: Prose, tmp_path: Path) -> None:
    """Each once; files that begin alike and go on otherwise are different logs."""
    names = {"": LONG, ".1": LONG[:-9], ".2": LONG[:200], ".3": LONG[:200] + TEXT, ".4": LONG[:99]}
    for name, text in names.items():
        lay(tmp_path, f"state-change.log{name}", text)
    prose("\n".join(log_folders.copies(log_folders.log_files(tmp_path), str(tmp_path))))


def test_two_clusters_may_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts once in each, with its own numbers of lines."""
    path = lay(tmp_path, "state-change.log", TEXT * 40)
    monkeypatch.setattr(log_import, "CHUNK", 500)
    monkeypatch.setattr(log_import, "TASK", 500 * 40)
    logs = import_logs(spark(), {"a": path, "b": [path, path]})
    last = logs.parsed.where("what = 'record'").groupBy("history").agg({"number": "max", "*": "count"}).collect()
    assert sorted(tuple(row) for row in last) == [("a", 198, 120), ("b", 198, 120)]


def test_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    """Reading a FIFO would wait for ever; in a folder or by name, each is told."""
    os.mkfifo(tmp_path / "state-change.log.fifo")
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(tmp_path)
        server.bind("controller.log.socket")
        (tmp_path / "controller.log.gone").symlink_to(tmp_path / "nowhere")
        (tmp_path / "controller.log.self").symlink_to(tmp_path / "controller.log.self")
        (tmp_path / "other").symlink_to(tmp_path / "other")
        os.mkfifo(tmp_path / "other.fifo")
        lay(tmp_path, "state-change.log", TEXT)
        reported = {Path(file.name).name: file.problem for file in log_folders.log_files([tmp_path, "/dev/null"])}
    assert reported.pop("state-change.log") is None
    assert reported.pop("controller.log.self")
    assert reported == {
        "state-change.log.fifo": "a FIFO, not a file",
        "controller.log.socket": "a socket, not a file",
        "controller.log.gone": "No such file or directory",
        "null": "a device, not a file",
    }


def test_files_that_change_before_they_are_read(prose: Prose, tmp_path: Path) -> None:
    """Gone, shorter, or a folder by now: told; longer: read as far as it was listed."""
    for name in ("gone", "shorter", "folder", "longer", "emptied"):
        lay(tmp_path, name, TEXT * 3)
    chunks = {Path(c.file).name: c for c in chunks_of(*tmp_path.iterdir())}
    (tmp_path / "gone").unlink()
    (tmp_path / "folder").unlink()
    (tmp_path / "folder").mkdir()
    lay(tmp_path, "shorter", TEXT)
    lay(tmp_path, "emptied", b"")
    lay(tmp_path, "longer", TEXT * 5)
    reported = {name: list(read_chunk(chunk)) for name, chunk in chunks.items()}
    problems = {name: [r.text for r in reads if r.what == "problem"] for name, reads in reported.items()}
    assert problems["gone"] == ["No such file or directory"]
    assert problems["folder"]
    prose(*problems["shorter"], *problems["emptied"])
    assert problems["longer"] == []
    records = {name: sum(r.what == "record" for r in reads) for name, reads in reported.items()}
    assert records == {"gone": 0, "folder": 0, "shorter": RECORDS, "emptied": 0, "longer": 3 * RECORDS}


def test_files_and_folders_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the system's own word for it; root may read everything, so the refusal is acted."""
    lay(tmp_path, "state-change.log", TEXT)
    lay(tmp_path, "closed/state-change.log", TEXT)
    secret = lay(tmp_path, "controller.log", TEXT)
    scandir = os.scandir

    def refused(path: str) -> Any:
        if path == str(tmp_path / "closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    def filesystem(path: str) -> Any:
        if path == str(secret):
            raise PermissionError(13, "Permission denied", path)
        return pafs.LocalFileSystem(), path, ""

    monkeypatch.setattr(os, "scandir", refused)
    monkeypatch.setattr(unpacking, "filesystem", filesystem)
    found = read(tmp_path)
    assert found.pop("state-change.log")["records"] == RECORDS
    denied = Counter({"problem: Permission denied": 1, "lines": 0, "continued": 0})
    assert found == {"controller.log": denied, "closed": denied}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_permissions_of_the_system(tmp_path: Path) -> None:
    """The same without acting."""
    lay(tmp_path, "state-change.log", TEXT)
    lay(tmp_path, "controller.log", TEXT).chmod(0)
    (tmp_path / "closed").mkdir(0)
    found = read(tmp_path)
    (tmp_path / "closed").chmod(0o700)
    assert found["state-change.log"]["records"] == RECORDS
    assert found["controller.log"]["problem: Permission denied"] == 1
    assert found["closed"]["problem: Permission denied"] == 1


@pytest.mark.skipif(os.name == "nt", reason="names are bytes on POSIX only")
def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    """No column can hold them, so they are told."""
    lay(tmp_path, "state-change.log", TEXT)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/controller.log.\xff")).write_bytes(TEXT)
    found = read(tmp_path)
    assert found["state-change.log"]["records"] == RECORDS
    assert [what for what in found["controller.log.\\xff"] if what.endswith("not UTF-8")]


@pytest.mark.parametrize(
    "paths",
    [[], (), {}, {"prod": []}, None, [None], {"prod": None}, 7, "", b"logs", "a\0b", ["\udcff"], {7: "logs"}],
    ids=str,
)
def test_arguments_that_are_not_paths(prose: Prose, paths: Any) -> None:
    """An error of ours, before Spark is asked."""
    from kafka_ctl.errors import KafkaCtlError

    prose.refuses(KafkaCtlError, import_logs, None, paths)


def test_an_address_that_no_package_here_can_read() -> None:
    """How the sentence ends depends on what is installed."""
    with pytest.raises(Unavailable, match="gopher://"):
        import_logs(None, "gopher://host/logs")


def test_a_session_is_needed(prose: Prose, tmp_path: Path) -> None:
    for given in (None, "local[2]"):
        prose.refuses(BadInput, import_logs, given, lay(tmp_path, "state-change.log", TEXT))


# The whole import


def test_bad_files_do_not_cost_good_ones(prose: Prose, tmp_path: Path) -> None:
    """They are in the warning, in the summary, and in the table of files; questions get the rest."""
    lay(tmp_path, "a/state-change.log", TEXT)
    lay(tmp_path, "b/state-change.log.1.gz", gzip.compress(LONG)[:-20])
    lay(tmp_path, "b/state-change.log.2.gz", TEXT)
    lay(tmp_path, "b/controller.log.gz", random.Random(1).randbytes(999))
    os.mkfifo(tmp_path / "b" / "controller.log")
    with pytest.warns(UserWarning, match=r"^3 not read.*controller\.log: a FIFO"):
        logs = import_logs(spark(), tmp_path)
    files = {Path(row.file).name: row for row in logs.files.collect()}
    assert {name: (row.records, row.problem is None) for name, row in files.items() if row.records < 9} == {
        "state-change.log": (RECORDS, True),
        "state-change.log.2.gz": (RECORDS, True),
        "controller.log": (0, False),
        "controller.log.gz": (0, False),
    }
    cut = files["state-change.log.1.gz"]
    prose(cut.problem)
    assert logs.count() == cut.records + 2 * RECORDS > 1000
    assert [Path(problem.file).name for problem in logs.problems] == [
        "controller.log",
        "controller.log.gz",
        "state-change.log.1.gz",
    ]
    assert f"{tmp_path}/b/controller.log.gz: neither text nor packed" in repr(logs)


def test_only_bad_files(tmp_path: Path) -> None:
    """An empty answer that says why."""
    with pytest.warns(UserWarning, match="neither text nor packed"):
        logs = import_logs(spark(), lay(tmp_path, "controller.log", bytes(range(1, 32)) * 99))
    assert logs.count() == logs.rejected.count() == 0
    assert repr(logs).startswith("1 files with 0 lines")


def test_a_good_import_warns_of_nothing(tmp_path: Path) -> None:
    lay(tmp_path, "state-change.log", TEXT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = import_logs(spark(), tmp_path)
    assert logs.problems == []
