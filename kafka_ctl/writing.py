"""Files for a person: written whole or not at all, and what cannot be written is told by its path and the reason."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from kafka_ctl.errors import BadInput, Unavailable, short

ELSEWHERE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Reasons that lie with the machine, not with the path that was asked for."""


def write_file(path: str | os.PathLike[str], content: bytes | memoryview | str) -> Path:
    """Write a file and return its path; a file that is there keeps its content until the new one is complete.

    Raises BadInput, naming the path and the reason, for one that cannot be written (no such folder, a folder, not
    allowed), and Unavailable where the disk is full or fails.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK)):
            target.write_bytes(data)  # a device, say, or a file in a folder of somebody else's
        else:
            _replace(target, data)
        return Path(path)
    except OSError as error:
        kind = Unavailable if error.errno in ELSEWHERE else BadInput
        raise kind(f"{os.fspath(path)}: {error.strerror or error}") from None
    except (TypeError, ValueError) as error:  # no path at all, or a null character in it
        raise BadInput(f"{short(path)} cannot be written: {error}") from None


def _replace(target: Path, data: bytes | memoryview) -> None:
    """Write a file beside the target, which then takes its place."""
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    new = target.parent / f".{secrets.token_hex(8)}.part"
    try:
        new.write_bytes(data)
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
