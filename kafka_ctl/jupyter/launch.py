"""JupyterLab: opened for a person, checked without a screen, or run for a browser test.

The server listens on 127.0.0.1 only, wants the token that is part of the printed address, and asks no
other server for news or updates.
"""

from __future__ import annotations

import argparse
import contextlib
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
from pathlib import Path
from typing import IO, NamedTuple

from kafka_ctl.errors import BadInput, Unavailable, short
from kafka_ctl.paths import IN_CHECKOUT, ROOT, import_from_checkout

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
        return f"{self.address}/lab/tree/{notebook}?token={self.token}"

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
        *(
            sys.executable,
            "-m",
            "jupyterlab",
            "--ip=127.0.0.1",
            f"--port={port}",
            "--ServerApp.port_retries=0",
        ),
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


def served_folder() -> Path:
    """The folder that JupyterLab serves: the checkout, with its starters made, or the learner's copy of the course."""
    if IN_CHECKOUT:
        for name in import_from_checkout("tools.editions").give_starters():
            print(
                f"kafka_ctl: you have changed this lesson, so it stays; rename it to get the newer one: {name}",
                flush=True,
            )
        return ROOT
    from kafka_ctl.jupyter.course_folder import course_folder

    return course_folder(Path.cwd())


def check(root: Path = ROOT) -> dict[str, object]:
    """Start JupyterLab without a browser, ask for its status, stop it, and return the answer."""
    with tempfile.TemporaryFile() as log:
        try:
            with running(root, log=log) as server:
                return server.status()
        except Unavailable as trouble:
            log.seek(0)
            output = log.read().decode("utf-8", "replace").strip()
            raise Unavailable(f"{trouble}; it said: {output[-1000:] or 'nothing'}") from None


def open_lab(notebook: str = FIRST, *, port: int | None = None, browser: bool = True, root: Path = ROOT) -> int:
    """Open JupyterLab on `notebook`, print the address, and stay until it ends; its exit status.

    Raises `BadInput` when there is no such notebook, or `port` is none or taken.
    """
    if not (root / notebook).is_file():
        there = sorted(path.relative_to(root).as_posix() for path in root.glob("notebooks/*.ipynb"))
        raise BadInput(f"no notebook {notebook}; there are: {', '.join(there) or 'none'}")
    if port is not None and not 0 < port < 65536:
        raise BadInput(f"lab: --port cannot be {short(port)}; it must be 1 to 65535, or none to have a free one chosen")
    if port and free_port(port) != port:
        raise BadInput(f"port {port} is taken on 127.0.0.1; give another port, or none to use a free one")
    arguments = [notebook] if browser else ["--no-browser"]
    # From here on, before the address can be read, a signal that ends this process ends JupyterLab as well.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with running(root, port=port or free_port(USUAL_PORT), arguments=arguments) as server:
        # JupyterLab handles Ctrl-C itself and asks before it ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(f"\nThe lab is open at\n\n    {server.url(notebook)}\n\nCtrl-C ends it.\n", flush=True)
        return server.process.wait()


def main(argv: Sequence[str]) -> int:
    """The command `lab`: the exit status is 0 when the lab ran, 1 when it could not, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="kafka-ctl lab", description="Open JupyterLab on the first lesson.")
    parser.add_argument("notebook", nargs="?", default=FIRST, help=f"which notebook to open (default: {FIRST})")
    parser.add_argument("--check", action="store_true", help="start the lab, print its status, stop it")
    parser.add_argument("--no-browser", action="store_true", help="print the address, open no browser")
    parser.add_argument("--port", type=int, help=f"listen here (default: {USUAL_PORT}, or the next that is free)")
    chosen = parser.parse_args(argv)
    try:
        root = served_folder()
        if chosen.check:
            print(f"JupyterLab runs: {json.dumps(check(root), sort_keys=True)}")
            return 0
        return open_lab(chosen.notebook, port=chosen.port, browser=not chosen.no_browser, root=root)
    except (BadInput, Unavailable) as trouble:
        print(f"kafka_ctl: {trouble}", file=sys.stderr)
        return 2 if isinstance(trouble, BadInput) else 1
