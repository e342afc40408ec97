"""Still there tomorrow: a notebook that was run, saved and closed shows its pictures without the Python that ran it."""

from pathlib import Path
from typing import Any

import browser
import nbformat

from kafka_ctl.paths import ROOT

pytestmark = browser.needs_chromium

START = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from kafka_ctl import Lab
lab = Lab(brokers=3, seed=7)
lab.create_topic("orders", partitions=2, replication_factor=3)
lab.settle()
"""
CELLS = (START + "lab", "lab.player()")
READY = """async () => {
    await window.jupyterapp.restored;
    const panel = window.jupyterapp.shell.currentWidget;
    await panel.revealed; await panel.context.ready;
}"""
RESTART = """async () => {
    await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart();
}"""


def alone(page: Any) -> None:
    """Both widgets say that Python has gone and offer no command, and still step through their frames."""
    page.wait_for_function("() => document.querySelectorAll('.kc.stale .gone').length === 2")
    assert page.locator(".kc .gone:visible").count() == 2
    assert page.locator(".kc .actions:visible, .kc [data-do='why']:visible").count() == 0
    page.locator(".kc.live [data-id='head:1']").click()
    assert page.locator(".kc .menu:visible").count() == 0
    for widget in (page.locator(".kc").nth(n) for n in (0, 1)):
        widget.press("Home")
        widget.locator("[data-do='next']").click()
        page.wait_for_function("one => one.dataset.step === '1'", arg=widget.element_handle())
        assert "start" in widget.locator(".caption").inner_text()
        assert widget.locator("[data-view='cluster'] svg .part").count() > 10


def test_a_saved_notebook_shows_every_picture_and_plays(tmp_path: Path) -> None:
    """After a restart of the kernel, and opened again, with a new kernel and with none."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, tmp_path / "saved.ipynb")
    with browser.lab(tmp_path) as server, browser.page(viewport={"width": 1280, "height": 1600}) as page:
        assert browser.run_all(page, server, "saved.ipynb")
        page.wait_for_function("() => document.querySelectorAll('.kc .stage svg').length === 2")
        assert page.locator(".kc .gone:visible").count() == 0
        page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        page.evaluate(RESTART)
        alone(page)
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        page.goto(f"{server.url('saved.ipynb')}&reset", wait_until="domcontentloaded")
        page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.context")
        page.evaluate(READY)
        alone(page)
        assert page.locator("text=Error displaying widget").count() == 0
