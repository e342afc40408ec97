"""JupyterLab: opened for a person in the course's folder, checked without a screen, or run for a browser test.

The server listens on 127.0.0.1 only, wants the token that is part of the printed address, and asks no
other server for news or updates. From a wheel, a person gets a copy of the course: the folder `kafka-ctl-course`,
which a newer wheel renews. Files that the learner has changed are never touched. A list in the folder says which
version each file came from, by its hash:

    file is not there, or as it was given   the newer one takes its place
    file was changed, the course was not    nothing to do
    both were changed                       the newer one is put beside it, with its version in the name
    as it was given, gone from the course   it is deleted, so that a renamed lesson is there once

In a checkout there is no copy: `tools/editions.py` makes the starters in it, by the same rule, but puts nothing beside
them.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import quote

from kafka_ctl.errors import BadInput, Unavailable, UnknownName, short
from kafka_ctl.paths import COURSE_LIST, IN_CHECKOUT, ROOT, import_from_checkout
from kafka_ctl.writing import write_file

FIRST = "notebooks/00-start-here.ipynb"
USUAL_PORT = 8888
SETTINGS = Path(__file__).with_name("config")
"""JupyterLab's settings of every lab: it does not ask whether it may show news."""


class Server(NamedTuple):
    """A running JupyterLab."""

    address: str
    """`http://127.0.0.1:port`, without a final slash."""
    token: str
    process: subprocess.Popen[bytes]

    def url(self, notebook: str) -> str:
        """The address that opens `notebook` (a path below the served folder)."""
        return f"{self.address}/lab/tree/{quote(notebook)}?token={self.token}"

    def status(self) -> dict[str, object]:
        """The server's own account of itself: when it started, its kernels and connections."""
        request = urllib.request.Request(f"{self.address}/api/status", headers={"Authorization": f"token {self.token}"})
        # A proxy that is set for the outside world has no business with 127.0.0.1.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=5) as answer:
            found: dict[str, object] = json.load(answer)
        return found


@contextlib.contextmanager
def running(
    root: Path,
    *,
    port: int | None = None,
    arguments: Sequence[str] = ("--no-browser",),
    environ: Mapping[str, str] | None = None,
    log: IO[bytes] | None = None,
) -> Iterator[Server]:
    """A JupyterLab that serves the folder `root` on `port` (default: a free one) and is stopped at the end.

    `arguments` go to JupyterLab, `environ` is added to its environment, and what it prints goes to `log`
    (default: to where this process prints). Raises `Unavailable` when it does not come up in 120 seconds.
    """
    token = secrets.token_hex(24)
    port = port or free_port()
    command = [
        *(sys.executable, "-m", "jupyterlab", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"),
        *(f"--ServerApp.root_dir={root}", "--LabApp.news_url=None", "--log-level=WARN"),
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--ServerApp.kernel_websocket_connection_class=kafka_ctl.jupyter.websocket.PromptWebsocketConnection",
        *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
        *arguments,
    ]
    # The token travels in the environment because a command line can be read by every user of the machine.
    surroundings = {**os.environ, "JUPYTER_PREFER_ENV_PATH": "1", **(environ or {}), "JUPYTER_TOKEN": token}
    listed = filter(None, [str(SETTINGS), surroundings.get("JUPYTER_CONFIG_PATH")])
    surroundings["JUPYTER_CONFIG_PATH"] = os.pathsep.join(listed)
    process = subprocess.Popen(command, cwd=root, env=surroundings, stdout=log, stderr=log)
    try:
        server = Server(f"http://127.0.0.1:{port}", token, process)
        _wait_for(server)
        yield server
    finally:
        _stop(process)


def free_port(preferred: int = 0) -> int:
    """A free port: `preferred` or one of the nine after it if one of them is free, else any."""
    for port in [*range(preferred, min(preferred + 10, 65536)), 0] if preferred else [0]:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise Unavailable("no free port on 127.0.0.1")


def _wait_for(server: Server, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            server.status()
            return
        except (OSError, ValueError):
            if server.process.poll() is not None:
                raise Unavailable(f"JupyterLab ended at once with status {server.process.returncode}") from None
            if time.monotonic() > end:
                raise Unavailable(f"JupyterLab did not answer at {server.address} within {seconds:.0f} s") from None
            time.sleep(0.1)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask JupyterLab to stop its kernels and end; after 15 seconds stop asking."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# The learner's copy of the course

NAME = "kafka-ctl-course"
SHIPPED = ROOT / "kafka_ctl_course" / "folder"
"""The files of the wheel."""


def course_folder(here: Path, shipped: Path = SHIPPED) -> Path:
    """The course's folder, made or renewed: the one that `here` is or is in, else `kafka-ctl-course` in `here`.

    BadInput where something else has that name, Unavailable where the installation has no lessons.
    """
    if not shipped.is_dir():
        raise Unavailable(f"{shipped} is missing: this installation has no lessons; install the wheel of kafka-ctl")
    around = (folder for folder in (here, *here.parents) if os.path.isfile(folder / COURSE_LIST))
    folder = next(around, here / NAME)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput(f"{folder} is not a folder; rename it, or start the lab in another folder")
    known = _known(folder / COURSE_LIST)
    if known is None and folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not a copy of the course; rename it, or start the lab in another folder")
    paths = sorted(path for path in shipped.rglob("*") if path.is_file())
    files = {path.relative_to(shipped).as_posix(): path.read_bytes() for path in paths}
    for name in renewed(folder, files, COURSE_LIST):
        print(f"kafka-ctl: you have changed this lesson, so the newer one is beside it: {name}", flush=True)
    return folder


def _known(listed: Path) -> dict[str, str] | None:
    """The hash of each file as it was given; None if there is no list."""
    try:
        files = json.loads(listed.read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {str(name): str(sha) for name, sha in files.items()} if isinstance(files, dict) else None


def renewed(folder: Path, files: Mapping[str, bytes], listed: str, *, beside: bool = True) -> list[str]:
    """Write new files into `folder`, their hashes into its file `listed`, and delete those that the course has no more.

    Files that a learner has changed stay. The next call finishes what was interrupted.

    Returns the names of the newer files that were put beside these or, without `beside`, of those that stay.
    """
    known, reported = _known(folder / listed) or {}, []
    given = {name: _sha(new) for name, new in files.items()}
    text = json.dumps({"version": version("kafka-ctl"), "files": given}, indent=1) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    if not known:  # without a list a folder is no copy of the course, even if it is half of one
        write_file(folder / listed, text)
    for name in known.keys() - files.keys():
        old = folder / name
        if old.is_file() and folder.resolve() in old.resolve().parents and _sha(old.read_bytes()) == known[name]:
            old.unlink()
    for name, new in files.items():
        target = folder / name
        if target.is_file() and _sha(target.read_bytes()) not in (known.get(name), given[name]):
            if known.get(name) == given[name]:
                continue
            if beside:
                target = _beside(target, new)
            reported.append(target.relative_to(folder).as_posix())
            if not beside:
                continue
        if not target.is_file() or target.read_bytes() != new:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_file(target, new)
    write_file(folder / listed, text)
    return reported


def _beside(changed: Path, new: bytes) -> Path:
    """The place for a newer file beside a changed one: named by the version, and numbered where that file differs."""
    stem = f"{changed.stem}-{version('kafka-ctl')}"
    places = (changed.with_stem(stem if number == 1 else f"{stem}-{number}") for number in count(1))
    return next(place for place in places if not place.exists() or place.read_bytes() == new)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def served_folder() -> Path:
    """The folder that JupyterLab serves: the checkout, with its starters made, or the learner's copy of the course."""
    if IN_CHECKOUT:
        for name in import_from_checkout("tools.editions").give_starters():
            print(
                f"kafka-ctl: you have changed this lesson, so it stays; rename it to get the newer one: {name}",
                flush=True,
            )
        return ROOT
    return course_folder(Path.cwd())


def check(root: Path = ROOT, port: int | None = None) -> dict[str, object]:
    """Start JupyterLab without a browser, ask for its status, stop it, and return the answer."""
    with tempfile.TemporaryFile() as log:
        try:
            with running(root, port=port, log=log) as server:
                return server.status()
        except Unavailable as trouble:
            log.seek(0)
            output = log.read().decode("utf-8", "replace").strip()
            raise Unavailable(f"{trouble}; it said: {output[-1000:] or 'nothing'}") from None


def check_notebook(notebook: str, root: Path) -> None:
    """Raise `BadInput` when `notebook` (a path below `root`) is no notebook."""
    if not notebook.endswith(".ipynb"):
        raise BadInput(f"lab: the notebook cannot be {short(notebook)}; its name must end in .ipynb")
    path = Path(notebook)
    if path.is_absolute() or ".." in path.parts or not (root / path).is_file():
        found = [*root.glob("notebooks/*.ipynb"), *root.glob("notebooks/starter/*.ipynb")]
        there = sorted(path.relative_to(root).as_posix() for path in found)
        raise BadInput(f"{UnknownName('notebook', notebook, there)}; notebooks/README.md lists all")


def check_port(port: int | None) -> None:
    """Raise `BadInput` if `port` is no port, or is taken."""
    if port is not None and not 0 < port < 65536:
        raise BadInput(f"lab: --port cannot be {short(port)}; it must be 1 to 65535, or none to have a free one chosen")
    if port and free_port(port) != port:
        why = "is taken on 127.0.0.1" + " or needs an administrator's rights" * (port < 1024)
        raise BadInput(f"port {port} {why}; give another port, or none to use a free one")


def open_lab(notebook: str = FIRST, *, port: int | None = None, browser: bool = True, root: Path = ROOT) -> int:
    """Open JupyterLab on `notebook`, print the address, and stay until it ends; its exit status.

    Raises `BadInput` when there is no such notebook, or `port` is none or taken.
    """
    check_notebook(notebook, root)
    check_port(port)
    arguments = [notebook] if browser else ["--no-browser"]
    # From here on, before the address can be read, a signal that ends this process ends JupyterLab as well.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with running(root, port=port or free_port(USUAL_PORT), arguments=arguments) as server:
        # JupyterLab handles Ctrl-C itself and asks before it ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(f"\nThe lab is open at\n\n    {server.url(notebook)}\n\nCtrl-C ends it.\n", flush=True)
        return server.process.wait()


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of the command `lab`; a wrong call ends the process with status 2."""
    parser = argparse.ArgumentParser(prog="kafka-ctl lab", description="Open JupyterLab on the first lesson.")
    parser.add_argument("notebook", nargs="?", default=FIRST, help=f"which notebook to open (default: {FIRST})")
    parser.add_argument("--check", action="store_true", help="start the lab, print its status, stop it")
    parser.add_argument("--no-browser", action="store_true", help="print the address, open no browser")
    parser.add_argument("--port", type=int, help=f"listen here (default: {USUAL_PORT}, or the next that is free)")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """The command `lab`: the exit status is 0 when the lab ran, 1 when it could not, 2 for a wrong call."""
    chosen = parsed(argv)
    try:
        root = served_folder()
        if chosen.check:
            check_notebook(chosen.notebook, root)
            check_port(chosen.port)
            print(f"JupyterLab runs: {json.dumps(check(root, chosen.port), sort_keys=True)}")
            return 0
        return open_lab(chosen.notebook, port=chosen.port, browser=not chosen.no_browser, root=root)
    except (BadInput, Unavailable) as trouble:
        print(f"kafka-ctl: {trouble}", file=sys.stderr)
        return 2 if isinstance(trouble, BadInput) else 1
