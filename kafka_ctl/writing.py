"""Files for a person: written whole or not at all; a failure names the path and the reason."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kafka_ctl.errors import BadInput, KafkaCtlError, Unavailable, short

ELSEWHERE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Reasons that lie with the machine, not with the path that was asked for."""


def write_file(path: str | os.PathLike[str], content: bytes | memoryview | str) -> Path:
    """Write a file and return its path; a file that is there keeps its content until the new one is complete.

    Raises BadInput, naming the path and the reason, for one that cannot be written (no such folder, a folder, not
    allowed), and Unavailable where the disk is full or fails.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        with replacing(path) as unfinished:
            Path(unfinished).write_bytes(data)
        return Path(path)
    except OSError as error:
        raise _refused(path, error) from None
    except (TypeError, ValueError) as error:  # no path at all, or a null character in it
        raise BadInput(f"{short(path)} cannot be written: {error}") from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise what `write_file` would for a file that cannot be written, before the work that is to be written there."""
    target = os.path.realpath(path)
    there = os.path.exists(target)
    if there and not (os.path.isfile(target) or os.path.isdir(target)):
        return  # a device
    try:
        with open(target, "ab"):
            pass
        if not there:
            os.remove(target)
    except OSError as error:
        raise _refused(path, error) from None


def _refused(path: str | os.PathLike[str], error: OSError) -> KafkaCtlError:
    kind = Unavailable if error.errno in ELSEWHERE else BadInput
    return kind(f"{os.fspath(path)}: {error.strerror or error}")


@contextmanager
def in_temporary_folder() -> Iterator[None]:
    """Work in the system's temporary folder inside; Unavailable, with what to do, where that is full or not there."""
    try:
        yield
    except OSError as error:
        place, why = tempfile.tempdir or os.environ.get("TMPDIR") or "the temporary folder", error.strerror or error
        hint = "make room there, or name another folder in TMPDIR"
        raise Unavailable(f"nothing can be written to {place}: {why}; {hint}") from error


def temporary_folder(prefix: str) -> Path:
    """A new folder in the system's temporary folder. Raises Unavailable if it cannot be made."""
    with in_temporary_folder():
        return Path(tempfile.mkdtemp(prefix=prefix))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """The name under which to write a file that appears at `path` when it is whole, or not at all.

    The file that was there before stays until then. Something that is not a file (a device, say) or lies in another
    user's folder is written where it is. Raises OSError.
    """
    target = os.path.realpath(path)
    there, folder = os.path.exists(target), os.path.dirname(target)
    if there and not (os.path.isfile(target) and os.access(folder, os.W_OK)):
        yield target
        return
    if there and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    unfinished = os.path.join(folder, f".{secrets.token_hex(8)}.part")
    try:
        yield unfinished
        if there:
            shutil.copymode(target, unfinished)
        os.replace(unfinished, target)
    finally:
        with suppress(OSError):
            os.remove(unfinished)
