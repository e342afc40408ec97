"""The bytes of a log file as UTF-8 text, whatever it is packed or encoded as.

The first bytes of a file decide its format, never its name: logrotate and people give packed files any name, and plain
ones `.gz`. gzip, bzip2, xz and zip are read by the standard library, Zstandard and LZ4 by pyarrow.
"""

from __future__ import annotations

import codecs
import importlib
import io
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from typing import IO

import pyarrow as pa

from kafka_ctl.errors import BadInput
from kafka_ctl.history.files import filesystem, reason
from kafka_ctl.history.log_files import HEADER

BLOCK = 4 << 20
"""Bytes that are read in one go."""
SMALL = 64 << 10
"""The same where what has been unpacked before a fault would be lost with the block."""
HEAD = 64 << 10
"""Magic bytes at the beginning of a file."""
NAMES = ("state-change", "controller")
"""The names that are read in a folder or an archive: files with one of these in their names."""

MAGIC: dict[str, tuple[bytes, ...]] = {
    "gzip": (b"\x1f\x8b\x08",),
    "bz2": tuple(b"BZh%d" % level for level in range(1, 10)),
    "lzma": (b"\xfd7zXZ\x00", b"]\x00\x00"),
    "zstd": (b"\x28\xb5\x2f\xfd",),
    "lz4": (b"\x04\x22\x4d\x18",),
    "zip": (b"PK\x03\x04", b"PK\x05\x06"),
}
"""The first bytes of packed files, by the module or the codec that reads them."""
FOREIGN = {
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\x1f\x9d": "packed by compress",
    b"PAR1": "a Parquet file",
    b"\x89LZO\x00\r\n\x1a\n": "packed by lzop",
    b"\x7fELF": "a program",
}
"""Formats that are recognised and not read."""
BOMS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""Byte order marks, the longer ones first."""
ODD = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c\x1d\x1f]")
"""Control characters that text does not have; NULs are what a crash or `copytruncate` leaves in a log."""
LOG_HEADER = re.compile(HEADER.pattern.encode())


class Unreadable(BadInput):
    """A file that cannot be read, or not to its end; the text is the reason, without the file's name."""


def blocks(file: str, start: int = 0, size: int = 0) -> Iterator[bytes]:
    """The text of a file from the byte `start` on, in blocks; a packed file's bytes count as if it were unpacked.

    `size` is what the file had when it was listed, if that is known. Raises Unreadable where the file cannot be opened
    or unpacked, is no text, or has become shorter; everything before the fault has come by then.
    """
    with ExitStack() as opened:
        raw, head = _begin(file, opened)
        if form(head) is None:
            yield from _plain(raw, start, size)
            return
        for block in _text(_unpacked(raw, head, opened)):
            yield block[start:]
            start = max(0, start - len(block))


def begins_with(file: str, other: str) -> bool:
    """True if the text of a file begins with the whole text of another; False where one of them cannot be read."""
    try:
        held, more = b"", blocks(file)
        for block in blocks(other):
            while len(held) < len(block) and (read := next(more, None)) is not None:
                held += read
            if not held.startswith(block):
                return False
            held = held[len(block) :]
    except Unreadable:
        return False
    return True


def packed(file: str) -> bool:
    """True if a file can only be read from its beginning; raises Unreadable as `blocks` does."""
    with ExitStack() as opened:
        return form(_begin(file, opened)[1]) is not None


def form(head: bytes) -> str | None:
    """The packing or encoding of a file that begins with `head`; None for plain text. Raises Unreadable for neither."""
    for known, signs in MAGIC.items():
        if head.startswith(signs):
            return known
    if encoding := _encoding(head):
        return encoding
    _check_text(head)
    return None


def _begin(file: str, opened: ExitStack) -> tuple[pa.NativeFile, bytes]:
    """A file that is open at its first byte, and how it begins."""
    try:
        fs, path, _ = filesystem(file)
        raw = opened.enter_context(fs.open_input_file(path))
        head = raw.read(HEAD)
        raw.seek(0)
    except (OSError, pa.ArrowException) as problem:
        raise Unreadable(reason(problem)) from None
    return raw, head


def _plain(raw: pa.NativeFile, start: int, size: int) -> Iterator[bytes]:
    at = min(start, raw.size())
    raw.seek(at)
    while block := _read(raw, BLOCK):
        at += len(block)
        yield block
    if at < size:
        raise Unreadable(f"it had {size:,} bytes when it was listed and {at:,} when it was read")


def _unpacked(raw: pa.NativeFile, head: bytes, opened: ExitStack) -> Iterator[bytes]:
    """The bytes in a packed file; those of an encoded one as they are."""
    kind, stream = form(head), raw
    if kind == "zip":
        yield from _zipped(raw, opened)
        return
    if kind in ("zstd", "lz4"):
        stream = opened.enter_context(pa.CompressedInputStream(raw, kind))
    elif kind in MAGIC:
        try:
            stream = opened.enter_context(importlib.import_module(kind).open(raw))
        except ImportError as missing:  # some Pythons are built without one
            raise Unreadable(f"this Python cannot unpack it: {missing}") from None
    while block := _read(stream, SMALL):
        yield block


def _zipped(raw: pa.NativeFile, opened: ExitStack) -> Iterator[bytes]:
    """The files in an archive, one after the other: those named like logs, or all, if none is."""
    try:
        archive = opened.enter_context(zipfile.ZipFile(raw))
        members = [member for member in archive.infolist() if not member.is_dir()]
    except Exception as damage:  # whatever zipfile makes of foreign bytes
        raise Unreadable(_damage(damage)) from None
    if not members:
        raise Unreadable("an archive without files")
    logs = [member for member in members if any(name in os.path.basename(member.filename) for name in NAMES)]
    for member in logs or members:
        try:
            stream = opened.enter_context(archive.open(member))
        except Exception as damage:  # encrypted, or packed in a way that zipfile does not know
            raise Unreadable(f"{member.filename}: {_damage(damage)}") from None
        last = b"\n"
        while block := _read(stream, SMALL):
            yield (last := block)
        if not last.endswith((b"\n", b"\r")):
            yield b"\n"


def _read(stream: IO[bytes] | pa.NativeFile, size: int) -> bytes:
    """A block, or less: what comes before a fault is not lost with it."""
    try:
        # `read` would gather blocks until one fails; a buffered reader's `read1` returns the first.
        return stream.read1(size) if isinstance(stream, io.BufferedIOBase) else stream.read(size)
    except Exception as damage:  # each decoder has its own errors for foreign bytes
        raise Unreadable(_damage(damage)) from None


def _damage(problem: Exception) -> str:
    return f"damaged, or cut short: {reason(problem)}"


def _text(unpacked: Iterator[bytes]) -> Iterator[bytes]:
    """Bytes that were unpacked, as UTF-8; raises Unreadable where they are no text."""
    head, fault = b"", None
    try:
        while len(head) < HEAD and (block := next(unpacked, b"")):
            head += block
    except Unreadable as early:
        fault = early
    if any(head.startswith(signs) for signs in MAGIC.values()):
        raise Unreadable("packed twice")
    if encoding := _encoding(head):
        yield from _decoded(encoding, chain([head], unpacked))
    else:
        _check_text(head)
        yield from chain([head], unpacked)
    if fault:
        raise fault


def _decoded(encoding: str, text: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in text:
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", True).encode()


def _encoding(head: bytes) -> str | None:
    """The encoding of a text that is not UTF-8, by its first bytes: UTF-16 or UTF-32."""
    for mark, encoding in BOMS.items():
        if head.startswith(mark):
            # Two odd bytes may also stand before plain text.
            return encoding if b"\x00" in head[len(mark) : len(mark) + 64] else None
    first = head[:64]
    even, odd = first[::2].count(0), first[1::2].count(0)
    if len(first) > 8 and max(even, odd) > len(first) // 4 and min(even, odd) == 0:
        return "utf-16-be" if even else "utf-16-le"
    return None


def _check_text(head: bytes) -> None:
    """Raises Unreadable for what no text editor would show, unless there is a line of a log in it."""
    for sign, what in FOREIGN.items():
        if head.startswith(sign):
            raise Unreadable(f"{what}, which is not read; unpack it first")
    if head[257:262] == b"ustar":
        raise Unreadable("a tar archive; unpack it first")
    text = head.replace(b"\x00", b"")
    if len(ODD.findall(text)) > len(text) / 20 and not LOG_HEADER.search(text):
        raise Unreadable("neither text nor packed in a known way")
