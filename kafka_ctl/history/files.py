"""Any file system: this machine's, those pyarrow speaks to (HDFS, S3, GCS), and those of installed fsspec packages."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.fs as pafs

from kafka_ctl.errors import BadInput, KafkaCtlError, Unavailable

SAME = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names of file systems that pyarrow calls otherwise."""


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors that say nothing against the path: the disk is full, or broken."""


def filesystem(path: str | os.PathLike[str]) -> tuple[pafs.FileSystem, str, str]:
    """The file system of a path or URI, the path inside it, and what makes such a path a URI for Spark again.

    Raises Unavailable for a scheme that neither pyarrow nor an installed fsspec package knows, and BadInput for what
    is no path.
    """
    given = path_of(path)
    if "://" not in given:
        return pafs.LocalFileSystem(), os.path.abspath(given), ""
    scheme, _, rest = given.partition("://")
    uri = f"{SAME.get(scheme, scheme)}://{rest}"
    try:
        fs, root = pafs.FileSystem.from_uri(uri)
    except pa.ArrowInvalid:
        fs, root = _fsspec(scheme, uri)
    inside = rest.removesuffix("/")
    return fs, root, given[: len(scheme) + 3 + len(inside) - len(root)] if inside.endswith(root) else ""


def _fsspec(scheme: str, uri: str) -> tuple[pafs.FileSystem, str]:
    try:
        import fsspec

        found, root = fsspec.core.url_to_fs(uri)
    except (ImportError, ValueError) as problem:
        raise Unavailable(
            f"{uri}: no file system for {scheme}:// here; install its fsspec package ({problem})"
        ) from None
    return pafs.PyFileSystem(pafs.FSSpecHandler(found)), root


def path_of(path: object) -> str:
    """A path as text. Raises BadInput for anything that is not a path."""
    given = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(given, str) or not given or "\0" in given:
        raise BadInput(f"{path!r} is not a path: give the name of a file or folder as text")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{printable(given)}: its name is not UTF-8; rename it") from None
    return given


def printable(name: str) -> str:
    """A file's name that any terminal and any table takes: bytes that are not UTF-8 as `\\xff`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def reason(problem: BaseException) -> str:
    """The reason why a file could not be read or written, in a few words."""
    if isinstance(problem, OSError) and problem.errno:
        return os.strerror(problem.errno)
    message = " ".join(str(problem).split())
    return message[:300] or type(problem).__name__


@contextmanager
def naming(path: object, what: str, damaged: str | None = None) -> Iterator[None]:
    """Turn what the file system or Arrow refuses into errors of ours that name the path: `{path}: {what}: {reason}`.

    Unavailable when the disk is full or broken, BadInput otherwise; `damaged` is what is said where the system has
    nothing against the path, but Arrow against what is there.
    """
    try:
        yield
    except KafkaCtlError:
        raise
    except (OSError, pa.ArrowException) as problem:
        kind = Unavailable if isinstance(problem, OSError) and problem.errno in FULL else BadInput
        refused = isinstance(problem, OSError) and problem.errno
        raise kind(f"{printable(str(path))}: {what if refused else damaged or what}: {reason(problem)}") from None
