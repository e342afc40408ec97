"""JupyterLab starts, answers, and is gone afterwards."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from unittest.mock import create_autospec

import nbformat
import pytest
from browser import lab, needs_chromium, page, run_all
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from prose import Prose

from kafka_ctl.errors import BadInput, Unavailable
from kafka_ctl.jupyter import launch
from kafka_ctl.jupyter.websocket import PromptWebsocketConnection
from kafka_ctl.paths import ROOT


def write_notebook(path: Path, *cells: str) -> None:
    """Save a notebook with these code cells."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, path)


def test_check_prints_the_status_and_stops_the_lab(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lab --check` needs no screen. The server wants its token and listens here only; afterwards nobody listens."""
    asked: list[launch.Server] = []
    status = launch.Server.status

    def refused_before(server: launch.Server) -> dict[str, object]:
        asked.append(server)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{server.address}/api/contents")
        return status(server)

    monkeypatch.setattr(launch.Server, "status", refused_before)
    assert launch.main(["--check"]) == 0
    reported = json.loads(capsys.readouterr().out.removeprefix("JupyterLab runs: "))
    assert reported["kernels"] == 0 and "started" in reported
    server = asked[-1]  # it is asked until it answers
    assert server.address.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.URLError):
        status(server)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ending_the_command_ends_the_lab(tmp_path: Path) -> None:
    """The lab prints its address and, when its parent is told to end, does not stay behind."""
    write_notebook(tmp_path / "one.ipynb", "1")
    code = f"from kafka_ctl.jupyter.launch import *; open_lab('one.ipynb', browser=False, root=Path({str(tmp_path)!r}))"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    address = next(line.strip() for line in process.stdout if "http" in line)
    assert "/lab/tree/one.ipynb?token=" in address
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    port = int(address.split(":")[2].split("/")[0])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_lab_that_is_still_starting_ends_too(tmp_path: Path) -> None:
    """Whoever changes their mind before the address is printed leaves no JupyterLab behind."""
    write_notebook(tmp_path / "one.ipynb", "1")
    code = (
        "import signal; from kafka_ctl.jupyter import launch; from pathlib import Path\n"
        "launch._wait_for = lambda server: (print(server.process.pid, flush=True), signal.pause())\n"
        f"launch.open_lab('one.ipynb', browser=False, root=Path({str(tmp_path)!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    started = int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)


def test_what_the_kernel_says_is_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lab's own connection, which the server is told to use, sends small messages at once."""
    monkeypatch.setattr(ZMQChannelsWebsocketConnection, "connect", lambda self: "connected")
    handler = create_autospec(KernelWebsocketHandler, instance=True)
    assert PromptWebsocketConnection(websocket_handler=handler).connect() == "connected"
    handler.set_nodelay.assert_called_once_with(True)


def test_a_missing_notebook_is_reported(prose: Prose, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong call ends with 2 and names the nearest notebooks, also with `--check`; another file is none."""
    (tmp_path / "notebooks/starter").mkdir(parents=True)
    write_notebook(tmp_path / "notebooks/01-one.ipynb", "1")
    write_notebook(tmp_path / "notebooks/starter/02-two.ipynb", "2")
    there = "notebooks/01-one.ipynb, notebooks/starter/02-two.ipynb"
    with pytest.raises(BadInput, match=re.escape(f"unknown notebook '99.ipynb'; known: {there}; ")):
        launch.open_lab("99.ipynb", root=tmp_path)
    for outside in (tmp_path / "notebooks/01-one.ipynb", "../01-one.ipynb"):  # the lab serves its own folder only
        with pytest.raises(BadInput, match="unknown notebook"):
            launch.check_notebook(str(outside), tmp_path / "notebooks/starter")
    for words in (["notebooks/99.ipynb"], ["notebooks/99.ipynb", "--check"], ["README.md"]):
        assert launch.main(words) == 2
        prose(capsys.readouterr().err)


def test_an_address_has_any_name_in_it() -> None:
    server = launch.Server("http://127.0.0.1:1", "TOKEN", create_autospec(subprocess.Popen))
    assert server.url("my/copy #2.ipynb") == "http://127.0.0.1:1/lab/tree/my/copy%20%232.ipynb?token=TOKEN"


def test_a_taken_port_is_reported(
    prose: Prose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A port asked for by number is not exchanged for another; `--check` refuses one that is none."""
    write_notebook(tmp_path / "one.ipynb", "1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        prose.hide[str(port)] = "PORT"
        prose.refuses(BadInput, launch.open_lab, "one.ipynb", port=port, root=tmp_path)
    assert launch.main(["--check", "--port", "99999"]) == 2
    prose(capsys.readouterr().err)
    monkeypatch.setattr(launch, "free_port", lambda preferred=0: 8888)
    prose.refuses(BadInput, launch.open_lab, "one.ipynb", port=80, root=tmp_path)


def test_a_lab_that_cannot_start_says_why(prose: Prose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What JupyterLab printed before it ended is part of the error."""
    (tmp_path / "jupyter_server_config.py").write_text("raise SystemExit('these settings are broken')")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    prose.refuses(Unavailable, launch.check, tmp_path)


@needs_chromium
def test_a_browser_runs_a_notebook(tmp_path: Path) -> None:
    """Chromium opens a notebook in JupyterLab, runs every cell, and reports that one failed."""
    write_notebook(tmp_path / "bad.ipynb", "6 * 7", "1 / 0")
    with lab(tmp_path) as server, page() as tab:
        assert not run_all(tab, server, "bad.ipynb")
        tab.wait_for_selector("text=42")
        assert server.status()["kernels"] >= 1
