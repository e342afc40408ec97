"""From a fresh clone and a bare Python to a working environment, with the standard library only.

`.venv` beside the package is made once from `requirements.txt`, which names every file by version and hash.
A stamp in it says what it was made from, so that a second start takes no time, a changed list is noticed, and
a set-up that was interrupted is never taken for a finished one.

    stamp absent        somebody's own environment, or none: install into it
    stamp "unfinished"  interrupted: empty the folder and begin again
    stamp of old list   install what changed
    stamp of this list  ready
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from kafka_ctl.paths import ROOT, import_from_checkout
from kafka_ctl.setup.installer import Installation, SetupFailed

STAMP, LOCK, UNFINISHED = "kafka-ctl.stamp", "kafka-ctl.lock", "unfinished"


def main(argv: Sequence[str]) -> int:
    """Carry out `argv` (`lab`, `test` or any `kafka-ctl` command) in the environment; the exit status."""
    if in_project_environment(ROOT):
        return dispatch(list(argv))
    try:
        python = prepare(ROOT)
    except SetupFailed as failed:
        print(f"kafka_ctl: {failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nkafka_ctl: stopped; the same command begins the set-up again", file=sys.stderr)
        return 130
    return exec_in_venv(python, argv)


def dispatch(argv: list[str]) -> int:
    """Run one command in this very interpreter."""
    command, rest = (argv[0], argv[1:]) if argv else ("", [])
    if command == "lab":
        from kafka_ctl.jupyter import launch

        return launch.main(rest)
    if command == "test":
        return int(import_from_checkout("tools.check").main(rest))
    from kafka_ctl.cli import main as command_line

    return command_line(args=argv, prog_name="kafka-ctl")


def in_project_environment(root: Path) -> bool:
    """Whether this interpreter holds the project: our finished `.venv`, or one of conda or somebody's own."""
    if Path(sys.prefix).resolve() == (root / ".venv").resolve():
        return ready(root)
    try:
        metadata.distribution("kafka-ctl")
    except metadata.PackageNotFoundError:
        return False
    return True


def exec_in_venv(python: Path, argv: Sequence[str]) -> int:
    """Continue inside the environment, in this process where the system can do that."""
    os.environ["VIRTUAL_ENV"] = str(python.parent.parent)
    os.environ["PATH"] = str(python.parent) + os.pathsep + os.environ.get("PATH", "")
    command = [str(python), "-m", "kafka_ctl", *argv]
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)
    return subprocess.call(command)


def prepare(root: Path) -> Path:
    """Make or renew `root/.venv` where needed and return its Python.

    Raises `SetupFailed` with one sentence that names the problem and what to do.
    """
    venv = root / ".venv"
    if ready(root):
        return python_of(venv)
    try:
        venv.mkdir(exist_ok=True)
        with file_lock(venv / LOCK) as lock:
            if not ready(root):
                _set_up(root, venv, lock)
    except OSError as trouble:
        raise SetupFailed(_hint(trouble, venv)) from trouble
    return python_of(venv)


def ready(root: Path) -> bool:
    """Whether `root/.venv` was finished from the present `requirements.txt`, in this place."""
    venv = root / ".venv"
    return read_stamp(venv) == wanted_stamp(root) and python_of(venv).exists()


def wanted_stamp(root: Path) -> str:
    """A finished environment's stamp: the hash of its list, and its place, for it cannot be moved."""
    try:
        listed = (root / "requirements.txt").read_bytes()
    except OSError:
        raise SetupFailed(f"{root} is not a checkout of kafka_ctl: requirements.txt is missing") from None
    return f"{hashlib.sha256(listed).hexdigest()} {root}"


def read_stamp(venv: Path) -> str | None:
    """The stamp of an environment, or None where it has none."""
    with contextlib.suppress(OSError):
        return (venv / STAMP).read_text("utf-8")
    return None


def write_stamp(venv: Path, text: str) -> None:
    """Replace the stamp in one go: a reader sees the old one or the new one."""
    new = venv / f"{STAMP}.new"
    new.write_text(text, "utf-8")
    os.replace(new, venv / STAMP)


def python_of(venv: Path) -> Path:
    """The interpreter of an environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _set_up(root: Path, venv: Path, lock: int) -> None:
    began, stamp = time.monotonic(), read_stamp(venv)
    usable = _works(python_of(venv))
    if stamp is None and not usable and {entry.name for entry in venv.iterdir()} - {LOCK}:
        raise SetupFailed(f"{venv} is no environment with Python 3.11 or newer; remove that folder and start again")
    moved = stamp is not None and not stamp.endswith(f" {root}")
    if moved or not usable:
        empty(venv)
    write_stamp(venv, UNFINISHED)
    print(f"Setting up {venv} (once; about 1.5 GB, most of it Spark)", flush=True)
    Installation(root, venv, python_of(venv), lock).run()
    write_stamp(venv, wanted_stamp(root))
    print(f"Ready after {time.monotonic() - began:.0f} s.", flush=True)


def empty(venv: Path) -> None:
    """Remove everything from an environment but the lock this process holds."""
    for entry in venv.iterdir():
        if entry.name == LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _works(python: Path) -> bool:
    question = [str(python), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    try:
        return subprocess.run(question, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[int]:
    """Hold the lock file at `path`, waiting for whoever has it; yields its descriptor.

    The system lets go of the lock when the last process that holds it ends, however it ends.
    """
    with open(path, "a+b") as file:
        waiting = False
        while not _try_lock(file.fileno()):
            if not waiting:
                print("Another kafka_ctl is setting up this folder; waiting for it.", flush=True)
            waiting = True
            time.sleep(0.2)
        yield file.fileno()


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as busy:
        if busy.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True


def _hint(trouble: OSError, venv: Path) -> str:
    if trouble.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        place = trouble.filename or venv
        return f"cannot write to {place}; clone the project into a folder of your own and start there"
    if trouble.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full; make about 3 GB of room for {venv} and start again"
    return f"cannot set up {venv}: {trouble}"
