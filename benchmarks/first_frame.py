"""From `Lab(...)` to the first drawn picture: in the kernel, and on the screen of a JupyterLab."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, median
from benchmarks.views import notebook
from kafka_ctl.errors import Unavailable
from kafka_ctl.paths import ROOT

TIMES, SCREENS = 7, 3
QUICK = {"TIMES": 1, "SCREENS": 1}
KERNEL = """
import time
from kafka_ctl import Lab
began = time.perf_counter()
Lab(brokers=3).player()._repr_mimebundle_()
print(time.perf_counter() - began)
"""
CELL = "from kafka_ctl import Lab\nLab(brokers=3).player()"
AGAIN = """async () => {
    const app = window.jupyterapp;
    await app.commands.execute('notebook:clear-all-cell-outputs');
    await app.shell.currentWidget.sessionContext.session.kernel.restart();
    window.began = performance.now();
    app.commands.execute('notebook:run-all-cells');
}"""
SHOWN = "() => document.querySelector('.kc .view svg .part')"


def in_the_kernel() -> float:
    """Seconds in a new process, until everything is there that is sent to the browser."""
    run = subprocess.run([sys.executable, "-c", KERNEL], cwd=ROOT, capture_output=True, text=True, check=True)
    return float(run.stdout)


def on_the_screen() -> float:
    """Seconds from running the cell in a new kernel until its picture is in the page."""
    from tests import browser

    with tempfile.TemporaryDirectory() as folder:
        notebook(Path(folder), "first.ipynb", last="", start=CELL)
        with browser.lab(Path(folder)) as server, browser.page(viewport={"width": 1200, "height": 900}) as page:
            browser.run_all(page, server, "first.ipynb")  # once, so that the page is awake
            page.evaluate(AGAIN)
            page.wait_for_function(SHOWN, polling="raf")
            return float(page.evaluate("() => performance.now() - window.began")) / 1000


def measure() -> Iterator[Figure]:
    yield Figure("Lab() to a picture, in a new kernel", f"{median(in_the_kernel, TIMES):.2f} s", "imports not counted")
    from tests.browser import CHROMIUM

    if CHROMIUM is None:
        raise Unavailable("the screen: there is no Chromium on PATH")
    beside = "in a new kernel; imports and browser counted"
    yield Figure("Lab() to a picture, on JupyterLab's screen", f"{median(on_the_screen, SCREENS):.2f} s", beside)
