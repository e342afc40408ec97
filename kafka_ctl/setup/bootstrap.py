"""From a fresh clone and a bare Python to a working environment, with the standard library only.

`.venv` beside the package is made once from `requirements.txt`, which names every file by version and hash.
A stamp in it says what it was made from and in which place, so that a second start takes no time, a changed list is
noticed, and a set-up that was interrupted is never taken for a finished one.

    no folder, or nothing in it     make the environment
    stamp "unfinished", this place  interrupted: empty the folder and begin again
    stamp of old list, this place   install what changed
    stamp of this list and place    ready
    anything else                   another's: refused, and left as it is

Nothing is deleted, and nothing written, in a folder without this place's stamp or behind a symbolic link.
`--help`, `--version`, an unknown command and a wrong call of `lab` need no environment: `kafka_ctl/cli/help.txt` has
what the command line prints.

Separate from `__main__.py` because that one has to run on any Python and only calls this.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from kafka_ctl.errors import no_command, short
from kafka_ctl.paths import ROOT
from kafka_ctl.setup.installer import Installation, SetupFailed

STAMP, LOCK, UNFINISHED = "kafka-ctl.stamp", "kafka-ctl.lock", "unfinished"
HELP = ROOT / "kafka_ctl/cli/help.txt"
"""The text of `--help` of each command, written by `kafka-ctl docs`; a test compares it with the command line."""


def main(argv: Sequence[str]) -> int:
    """Carry out `argv` (`lab`, `test` or any `kafka-ctl` command) in the environment; the exit status."""
    try:
        if in_project_environment(ROOT):
            from kafka_ctl.cli import main as command_line

            return command_line(argv)
        if asks_for_help(argv) or no_such(argv):
            return print_help(list(argv))
        if argv[0] == "lab":
            from kafka_ctl.jupyter import launch  # a wrong call ends here

            launch.parsed(argv[1:])
        python = prepare(ROOT)
    except SetupFailed as failed:
        print(f"kafka_ctl: {failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nkafka_ctl: stopped; the same command begins the set-up again", file=sys.stderr)
        return 130
    return exec_in_venv(python, argv)


def asks_for_help(argv: Sequence[str]) -> bool:
    """True for no arguments, `--version`, and `--help` or `-h` at the beginning or the end."""
    return not argv or argv[0] == "--version" or bool({"--help", "-h"} & {argv[0], argv[-1]})


def no_such(argv: Sequence[str]) -> str | None:
    """The sentence about a first option that does not exist, or about a first or second word that is no command."""
    lister = "python3 -m kafka_ctl"
    if argv and argv[0].startswith("-") and argv[0] not in ("--help", "-h", "--version", "--"):
        return f"no such option: {short(argv[0])}; `{lister} --help` lists all"
    names = [name.split() for name in _helps()]
    for depth, word in enumerate(argv):
        known = [name[-1] for name in names if len(name) == depth + 1 and name[:-1] == list(argv[:depth])]
        if known and not word.startswith("-") and word not in known:
            return no_command(word, known, f"{' '.join([lister, *argv[:depth]])} --help")
    return None


@functools.cache
def _helps() -> dict[str, str]:
    """The text of `--help` by command, as in `history import `."""
    _, *blocks = HELP.read_text("utf-8").split("$ kafka-ctl")
    return dict(block.lstrip().split("--help\n", 1) for block in blocks)


def print_help(argv: list[str]) -> int:
    """Print the version, or the help of the command that `argv` begins with; the exit status as the command line's."""
    if argv[:1] == ["--version"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        print(f"{project['name']}, version {project['version']}")
        return 0
    if argv[:1] == ["lab"]:
        from kafka_ctl.jupyter import launch  # its help is the standard library's

        return launch.main(argv[1:])
    helps = _helps()
    words = list(itertools.takewhile(lambda word: not word.startswith("-"), argv))
    if problem := no_such(argv):
        print(f"kafka_ctl: {problem}", file=sys.stderr)
        return 2
    names = (f"{' '.join(words[:count])} ".lstrip() for count in range(len(words), -1, -1))
    try:
        print(helps[next(name for name in names if name in helps)].strip(), flush=True)
    except BrokenPipeError:  # what reads it has ended, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if argv else 2


def in_project_environment(root: Path) -> bool:
    """True if this interpreter holds the project: our finished `.venv`, or one of conda or a reader's own."""
    if Path(sys.prefix).resolve() == (root / ".venv").resolve() and read_stamp(root / ".venv") is not None:
        return ready(root)
    try:
        metadata.distribution("kafka-ctl")
    except metadata.PackageNotFoundError:
        return False
    return True


def exec_in_venv(python: Path, argv: Sequence[str]) -> int:
    """Continue inside the environment, in this process if the system can do that."""
    os.environ["VIRTUAL_ENV"] = str(python.parent.parent)
    os.environ["PATH"] = str(python.parent) + os.pathsep + os.environ.get("PATH", "")
    command = [str(python), "-m", "kafka_ctl", *argv]
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)
    return subprocess.call(command)


def prepare(root: Path) -> Path:
    """Make or renew `root/.venv` if needed and return its Python.

    Raises `SetupFailed` with one sentence that names the problem and what to do.
    """
    venv = root / ".venv"
    if ready(root):
        return python_of(venv)
    try:
        check_own(root)
        venv.mkdir(exist_ok=True)
        with file_lock(venv / LOCK) as lock:
            if not ready(root):
                check_own(root)
                _set_up(root, venv, lock)
    except OSError as trouble:
        raise SetupFailed(_hint(trouble, venv)) from trouble
    return python_of(venv)


def check_own(root: Path) -> None:
    """Raise `SetupFailed` unless `root/.venv` is absent, empty, or made in this place by this checkout."""
    venv = root / ".venv"
    if _is_link(venv):
        raise SetupFailed(
            f"{venv} is a link to another folder, which is left as it is; remove the link and start again"
        )
    if not os.path.lexists(venv):
        return
    if not venv.is_dir():
        raise SetupFailed(f"{venv} is a file, not a folder; rename it and start again")
    names = {entry.name for entry in venv.iterdir()}
    stamp = read_stamp(venv)  # after the names: a set-up that runs now writes its stamp before anything else
    if stamp is None and names - {LOCK, f"{STAMP}.new"}:
        raise SetupFailed(
            f"{venv} was not made by this command, and is left as it is; rename that folder and start again,"
            f" or install the project into it: {python_of(venv)} -m pip install -e '.[all,dev]'"
        )
    _, _, place = (stamp or f" {root}").partition(" ")
    if place != str(root):
        made = f"for {place}" if place else "by an older version"
        raise SetupFailed(
            f"{venv} was made {made}, and an environment works in its own place only;"
            " remove that folder and start again"
        )
    for name in (STAMP, f"{STAMP}.new", LOCK):
        if _is_link(venv / name):
            raise SetupFailed(f"{venv / name} is a link to another file, which is left as it is; remove the link")


def _is_link(path: Path) -> bool:
    """True for a symbolic link, and for Windows' junction."""
    return path.is_symlink() or getattr(os.path, "isjunction", lambda _: False)(path)


def ready(root: Path) -> bool:
    """True if `root/.venv` was finished from the present `requirements.txt`, in this place."""
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
    """The stamp of an environment, or None if it has none."""
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
    began, unfinished = time.monotonic(), f"{UNFINISHED} {root}"
    interrupted = read_stamp(venv) == unfinished
    write_stamp(venv, unfinished)
    if interrupted or not _works(python_of(venv)):
        empty(venv)
    print(f"Setting up {venv} (once: about 0.8 GB to download, most of it Spark; 1.3 GB on disk)", flush=True)
    Installation(root, venv, python_of(venv), lock).run()
    write_stamp(venv, wanted_stamp(root))
    print(f"Ready after {time.monotonic() - began:.0f} s.", flush=True)


def empty(venv: Path) -> None:
    """Remove everything from an environment but its stamp and the lock this process holds; of a link, the link."""
    for entry in venv.iterdir():
        if entry.name in (LOCK, STAMP):
            continue
        if entry.is_dir() and not _is_link(entry):
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
    """Hold the lock file at `path`, waiting until it is free; yields its descriptor.

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
