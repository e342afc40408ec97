"""Folders of log files: those to be read, each once, whatever leads to it; and those that a trace is written as."""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.fs as pafs

from kafka_ctl.errors import BadInput
from kafka_ctl.history.files import filesystem, naming, path_of, printable, reason
from kafka_ctl.history.schema import check_trace
from kafka_ctl.history.unpacking import NAMES
from kafka_ctl.kafka_log.write import kafka_log
from kafka_ctl.trace.record import Recorder

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
"""Kinds of files that are never opened, since reading them may never end."""


class LogFile(NamedTuple):
    """A file: its address, its bytes, when it was changed (in ns); `problem` is why it, or a folder, cannot be read."""

    name: str
    size: int = 0
    changed: int = 0
    problem: str | None = None


def log_files(paths: Paths) -> Iterator[LogFile]:
    """Files as they are, and those of folders that are named like logs, however deep; each with its address.

    A file comes once, by its device and inode (elsewhere its path), also where links form a loop. A file that cannot be
    read comes with its `problem`. Raises BadInput for anything that is not a path, for a path where nothing is, and for
    a folder without such files.
    """
    seen: set[object] = set()
    for path in listed(paths):
        fs, root, prefix = filesystem(path)
        found = _local(root, seen) if fs.type_name == "local" else _remote(fs, root, seen)
        nothing = True
        for file in found:
            nothing = False
            if file is not None:
                yield file._replace(name=prefix + file.name)
        if nothing:
            raise BadInput(f"{path} holds no file named like state-change.log* or controller.log*")


COPIES = "records count twice, unless"
"""Words of every sentence of `copies`."""
BEGINNING = 100
"""Bytes in which different logs differ, as a line begins with its time in milliseconds."""
OPENED = 16
"""Files whose beginnings are looked at side by side: opening a remote one takes longer than all the rest."""


def copies(files: Iterable[LogFile], base: str = "") -> Iterator[str]:
    """One sentence for each file whose bytes another file has, or begins with; names are relative to `base`, if given.

    A file that is shorter than `BEGINNING` is not looked for at the beginning of others.
    """
    alike: dict[bytes, list[LogFile]] = {}
    readable = [file for file in files if file.size and file.problem is None]
    with ThreadPoolExecutor(OPENED) as pool:
        for file, head in zip(readable, pool.map(_beginning, readable), strict=True):
            alike.setdefault(head, []).append(file)
    for group in alike.values():
        firsts: list[LogFile] = []
        for file in sorted(group, key=lambda file: -file.size):
            first = next((first for first in firsts if _begins_with(first.name, file.name)), None)
            if first is None:
                firsts.append(file)
                continue
            one, other = (os.path.relpath(each.name, base) if base else each.name for each in (first, file))
            if first.size == file.size:
                yield f"{one} and {other} are copies: their {COPIES} one of them is left out"
            else:
                yield f"{other} is the beginning of {one}: its {COPIES} it is left out"


def _beginning(file: LogFile) -> bytes:
    """The first bytes of a file; its name where it cannot be read, which is reported where it is read."""
    try:
        with _opened(file.name) as raw:
            return bytes(raw.read(BEGINNING))
    except OSError:
        return file.name.encode()


def _begins_with(longer: str, shorter: str) -> bool:
    with suppress(OSError), _opened(longer) as one, _opened(shorter) as other:
        while block := other.read(1 << 20):
            if one.read(len(block)) != block:
                return False
        return True
    return False


def _opened(name: str) -> pa.NativeFile:
    fs, path, _ = filesystem(name)
    return fs.open_input_stream(path, compression=None)  # a packed copy beside its file does not count twice


def listed(paths: Paths) -> list[str]:
    """The paths one by one, as text. Raises BadInput for anything else, and for none at all."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        return [path_of(paths)]
    try:
        given = [path_of(path) for path in paths]
    except TypeError:
        raise BadInput(f"{paths!r} is not a path: give the name of a log file or folder, or a list of them") from None
    if not given:
        raise BadInput("no path was given: name at least one log file or folder")
    return given


def _local(root: str, seen: set[object]) -> Iterator[LogFile | None]:
    """The contents of a path of this machine; None for a file or folder that another path has named before."""
    try:
        os.lstat(root)
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{root}: no such file or folder") from None
    except OSError:
        pass  # it is there and cannot be read, which is reported below
    waiting, before = [root], frozenset(seen)
    while waiting:
        path = waiting.pop()
        try:
            status = os.stat(path)
            kind, identity = stat.S_IFMT(status.st_mode), (status.st_dev, status.st_ino)
            if identity in seen:
                if kind != stat.S_IFDIR or identity in before:
                    yield None
            elif kind == stat.S_IFDIR:
                seen.add(identity)
                # Links last, so that a file goes by its own name; the last is taken first.
                inside = sorted(os.scandir(path), key=lambda entry: (entry.is_symlink(), entry.name), reverse=True)
                waiting += [entry.path for entry in inside if _wanted(entry)]
            elif kind in SPECIAL:
                yield LogFile(printable(path), problem=f"{SPECIAL[kind]}, not a file")
            else:
                seen.add(identity)
                yield LogFile(path_of(path), status.st_size, status.st_mtime_ns)
        except (OSError, BadInput) as problem:
            why = reason(problem) if isinstance(problem, OSError) else "its name is not UTF-8"
            yield LogFile(printable(path), problem=why)


def _wanted(entry: os.DirEntry[str]) -> bool:
    """True if an entry of a folder is a folder, or is named like a log."""
    if any(name in entry.name for name in NAMES):
        return True
    try:
        return entry.is_dir()
    except OSError:  # a loop of links with another name is no log
        return False


def _remote(fs: pafs.FileSystem, root: str, seen: set[object]) -> Iterator[LogFile | None]:
    """The contents of a path of another file system, which has no links."""
    try:
        info = fs.get_file_info(root)
        if info.type == pafs.FileType.NotFound:
            raise BadInput(f"{root}: no such file or folder")
        found = [info]
        if info.type == pafs.FileType.Directory:
            inside = fs.get_file_info(pafs.FileSelector(root, recursive=True))
            found = [f for f in inside if f.is_file and any(name in f.base_name for name in NAMES)]
    except OSError as problem:
        yield LogFile(root, problem=reason(problem))
        return
    for file in sorted(found, key=lambda f: f.path):
        yield None if file.path in seen else LogFile(file.path, file.size or 0, file.mtime_ns or 0)
        seen.add(file.path)


HOUR = len("[2018-10-25 00")
"""The end of the hour in a line."""


def write_logs(trace: Recorder, folder: str | os.PathLike[str], packed: bool = True) -> int:
    """Write each broker's `state-change.log` and `controller.log` and return how many files they are.

    There is one folder for each broker, `broker-1` and so on. As Kafka's own settings say, a log is rolled every hour:
    a finished one has the hour in its name, `state-change.log.2018-10-25-00`. With `packed` those are gzipped, as
    operators do. Files that are there already are replaced. Raises BadInput where nothing can be written, Unavailable
    where the disk is full.
    Kafka 2.0.1: config/log4j.properties
    """
    check_trace(trace)
    with naming(folder, "cannot be written"):
        return _write(trace, Path(path_of(folder)), packed)


def _write(trace: Recorder, folder: Path, packed: bool) -> int:
    written, hour = 0, ""
    for broker in sorted({int(r.actor.removeprefix("broker-")) for r in trace if r.actor.startswith("broker-")}):
        place = folder / f"broker-{broker}"
        place.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            hours: dict[str, list[str]] = {}
            for line in kafka_log(trace, name, trace.generation, broker).splitlines(keepends=True):
                hour = line[1:HOUR].replace(" ", "-") if line.startswith("[") else hour  # an exception has no time
                hours.setdefault(hour, []).append(line)
            for hour, lines in hours.items():
                last = hour == max(hours)
                rolled = f"{name}.log" if last else f"{name}.log.{hour}"
                data = "".join(lines).encode()
                if packed and not last:
                    rolled, data = f"{rolled}.gz", gzip.compress(data, mtime=0)
                (place / rolled).write_bytes(data)
                written += 1
    return written
