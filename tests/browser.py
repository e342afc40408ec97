"""A private JupyterLab on 127.0.0.1 and a real Chromium that drives it; for the tests that need to see.

with browser.ran(tmp_path, "1 + 1") as page:
    page.wait_for_selector("text=2")
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from kafka_ctl.jupyter.launch import Server, running
from kafka_ctl.paths import ROOT
from kafka_ctl.views import export
from kafka_ctl.views.frames import Film
from kafka_ctl.views.widget.payload import payload

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium; `apt-get install chromium` or put `google-chrome` on PATH"
)


def _helvetica() -> bool:
    """True if a font as wide as Helvetica stands in for it; a system without fontconfig (macOS, Windows) has one."""
    if shutil.which("fc-match") is None:
        return True
    found = subprocess.run(["fc-match", "Helvetica"], capture_output=True, text=True, check=False).stdout.lower()
    return any(name in found for name in ("liberation", "helvetica", "nimbus", "arimo", "heros", "arial"))


needs_helvetica = pytest.mark.skipif(
    not _helvetica(), reason="no font as wide as Helvetica; `apt-get install fonts-liberation`"
)
"""The pictures are laid out for Helvetica; DejaVu Sans alone is 15 % wider."""

ARTIFACTS = ROOT / "artifacts"
"""Pictures for people to look at."""
SPLASH = "@jupyterlab/apputils-extension:splash"
"""Its moons move while JupyterLab loads: a tenth of the processor time of a page."""
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"
RESTART = "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
"""What a page of JupyterLab evaluates to save its notebook, and to restart its kernel."""
MODEL = "render({ model, el: ", "window.model = model; render({ model, el: "
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""What a page evaluates to wait until it is drawn."""
ALONE = """(players) => document.querySelectorAll('.kc.stale .stage svg .part').length
  && document.querySelectorAll('.kc.stale .gone').length === players"""
"""Whether so many players say that Python has gone, and show a picture."""
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-dev-shm-usage"
).split()


@contextlib.contextmanager
def lab(root: Path) -> Iterator[Server]:
    """JupyterLab serving `root`; it neither reads nor writes the settings of whoever runs the tests."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "settings", "@jupyterlab", "apputils-extension")
        settings.mkdir(parents=True)
        quiet = json.dumps({"fetchNews": "false", "checkForUpdates": False})
        (settings / "notification.jupyterlab-settings").write_text(quiet)
        still = Path(folder, "config", "labconfig", "page_config.json")
        still.parent.mkdir(parents=True)
        still.write_text(json.dumps({"disabledExtensions": {SPLASH: True}}))
        # As in tools/__init__.py; a Python that starts imports it.
        Path(folder, "sitecustomize.py").write_text("import sys; sys.modules['rfc3987_syntax'] = None\n")
        environ = {
            "PYTHONPATH": os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")])),
            "JUPYTER_CONFIG_DIR": f"{folder}/config",
            "JUPYTER_DATA_DIR": f"{folder}/data",
            "JUPYTER_RUNTIME_DIR": f"{folder}/run",
            "JUPYTERLAB_SETTINGS_DIR": f"{folder}/settings",
            "JUPYTERLAB_WORKSPACES_DIR": f"{folder}/workspaces",
            "IPYTHONDIR": f"{folder}/ipython",
        }
        arguments = ["--no-browser", "--LabApp.expose_app_in_browser=True"]
        with (
            open(Path(folder, "lab.log"), "wb") as log,
            running(root, arguments=arguments, environ=environ, log=log) as server,
        ):
            yield server


@contextlib.contextmanager
def page(**options: Any) -> Iterator[Any]:
    """A page of a headless Chromium; `options` go to Playwright's `new_page`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield chromium.new_page(**options)
        finally:
            chromium.close()


def write(path: Path, *sources: str, prose: str = "") -> None:
    """Save a notebook with these code cells, and with prose above them."""
    cells = [nbformat.v4.new_markdown_cell(prose)] if prose else []
    book = nbformat.v4.new_notebook(cells=[*cells, *map(nbformat.v4.new_code_cell, sources)])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, path)


@contextlib.contextmanager
def ran(
    folder: Path,
    *sources: str,
    prose: str = "",
    size: tuple[int, int] = (1280, 900),
    seconds: float = 60,
    errors: list[str] | None = None,
) -> Iterator[Any]:
    """A page of a JupyterLab of its own with a notebook that has run; `errors` gets those of the page."""
    write(folder / "book.ipynb", *sources, prose=prose)
    with lab(folder) as server, shown(server, size, seconds, errors) as opened:
        yield opened


@contextlib.contextmanager
def shown(server: Server, size: tuple[int, int], seconds: float = 60, errors: list[str] | None = None) -> Iterator[Any]:
    """A page with the server's `book.ipynb`, which has run."""
    with page(viewport={"width": size[0], "height": size[1]}) as opened:
        if errors is not None:
            opened.on("pageerror", lambda error: errors.append(str(error)))
        assert run_all(opened, server, "book.ipynb", seconds)
        yield opened


def run_all(page: Any, server: Server, notebook: str, seconds: float = 60) -> bool:
    """Open a notebook, wait until its kernel answers, and run every cell; whether none of them failed."""
    page.set_default_timeout(seconds * 1000)
    page.goto(f"{server.url(notebook)}&reset", wait_until="domcontentloaded")
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.sessionContext")
    # Lab calls a kernel idle before it takes work, and a "Run All" given then is lost without a word.
    page.evaluate(
        """async () => {
            await window.jupyterapp.restored;
            const panel = window.jupyterapp.shell.currentWidget;
            await panel.revealed; await panel.context.ready; await panel.sessionContext.ready;
            await panel.sessionContext.session.kernel.info;
        }"""
    )
    return bool(page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')"))


def steps(player: Any) -> None:
    """A player shows the first step when it is asked for."""
    player.press("Home")
    player.locator("[data-do='next']").click()
    player.and_(player.page.locator("[data-step='1']")).wait_for()
    assert player.locator(".stage svg .part").count() > 5


def plays_alone(page: Any, players: int) -> None:
    """So many players say that Python has gone, offer no command, and step through the frames in the page."""
    page.wait_for_function(ALONE, arg=players)
    assert page.locator(".kc .actions:visible, .kc [data-do='why']:visible").count() == 0
    for player in page.locator(".kc").all():
        steps(player)


def play(page: Any, path: Path, *films: Film) -> None:
    """Open a page of films, without motion; its `model` lets a test set the step."""
    path.write_text(export.page_of(payload(films)).replace(*MODEL), encoding="utf-8")
    page.emulate_media(reduced_motion="reduce")
    page.goto(path.as_uri())
    page.wait_for_selector(".kc[data-step='0']")
