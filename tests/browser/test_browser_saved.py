"""Still there tomorrow: a notebook that was run, saved and closed plays, without the Python that ran it."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import browser
import nbformat
import pytest
from nbconvert import HTMLExporter
from traitlets.config import Config

from kafka_ctl.jupyter.launch import SETTINGS, Server
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
PICTURES = """() => {
  const found = [...document.querySelectorAll(".jp-OutputArea img[src^='data:image/svg+xml']")];
  return found.length === 2 && found.every((one) => one.complete && one.width > 300 && one.width === one.naturalWidth);
}"""
"""Both pictures are there, and not scaled."""
Saved = tuple[Server, Path]


def alone(page: Any) -> None:
    """Both widgets say that Python has gone and offer no command, and still step through their frames."""
    browser.plays_alone(page, 2)
    assert page.locator(".kc .gone:visible").count() == 2
    page.locator(".kc.live [data-id='head:1']").click()
    assert page.locator(".kc .menu:visible").count() == 0
    for n in (0, 1):
        steps(page.locator(".kc").nth(n))


def steps(player: Any) -> None:
    """The player shows a cluster, and the first step when it is asked for."""
    browser.steps(player)
    assert "start" in player.locator(".caption").inner_text()
    assert player.locator("[data-view='cluster'] svg .part").count() > 10


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Saved]:
    """JupyterLab with `saved.ipynb`, which it has run, and saved before and after the kernel ended."""
    folder = tmp_path_factory.mktemp("saved")
    browser.write(folder / "saved.ipynb", *CELLS)
    with browser.lab(folder) as server:
        with opened() as page:
            assert browser.run_all(page, server, "saved.ipynb")
            page.wait_for_function("() => document.querySelectorAll('.kc .stage svg').length === 2")
            assert page.locator(".kc .gone:visible").count() == 0
            page.evaluate(browser.SAVE)
            page.evaluate(browser.RESTART)
            alone(page)
            page.evaluate(browser.SAVE)
            page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        yield server, folder


def test_a_kernel_that_is_shut_down_is_noticed(tmp_path: Path) -> None:
    browser.write(tmp_path / "ended.ipynb", *CELLS)
    with browser.lab(tmp_path) as server, opened() as page:
        assert browser.run_all(page, server, "ended.ipynb")
        page.wait_for_function("() => document.querySelectorAll('.kc .stage svg').length === 2")
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        page.wait_for_function(
            "() => [...document.querySelectorAll('.kc .gone')].filter((one) => !one.hidden).length === 2"
        )
        alone(page)


def opened() -> Any:
    return browser.page(viewport={"width": 1280, "height": 1600})


def test_jupyterlab_shows_every_picture_and_plays(saved: Saved) -> None:
    """Opened again, and once more after it was saved without being run; the file does not grow."""
    server, folder = saved
    sizes = []
    for _ in range(2):
        with opened() as page:
            page.set_default_timeout(60_000)
            page.goto(f"{server.url('saved.ipynb')}&reset", wait_until="domcontentloaded")
            page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.context")
            page.evaluate(READY)
            alone(page)
            assert page.locator("text=Error displaying widget").count() == 0
            page.evaluate(browser.SAVE)
            sizes.append((folder / "saved.ipynb").stat().st_size)
    assert sizes[0] == sizes[1] > 100_000


@pytest.mark.skipif(find_spec("notebook") is None, reason="notebook is in benchmarks/requirements.txt")
def test_notebook_7_shows_every_picture_and_plays(saved: Saved) -> None:
    server, _ = saved
    with opened() as page:
        page.set_default_timeout(60_000)
        page.goto(server.url("saved.ipynb").replace("/lab/tree/", "/notebooks/"), wait_until="domcontentloaded")
        alone(page)
        assert page.locator("text=Error displaying widget").count() == 0


def test_a_notebook_that_is_not_trusted_shows_every_picture(saved: Saved) -> None:
    """Changed by a stranger: no program of it runs, and the pictures are there."""
    server, folder = saved
    book = nbformat.read(folder / "saved.ipynb", as_version=4)
    book.cells[1].source += "  # changed"
    nbformat.write(book, folder / "strange.ipynb")
    with opened() as page:
        page.set_default_timeout(60_000)
        page.goto(f"{server.url('strange.ipynb')}&reset", wait_until="domcontentloaded")
        page.wait_for_function(PICTURES)
        assert page.locator(".jp-OutputArea .kc").count() == page.locator("text=image/svg+xml").count() == 0


def test_a_page_of_nbconvert_plays_without_a_network(saved: Saved) -> None:
    _, folder = saved
    path = folder / "saved.html"
    made = HTMLExporter(config=Config(json.loads((SETTINGS / "jupyter_nbconvert_config.json").read_text())))
    path.write_text(made.from_filename(str(folder / "saved.ipynb"))[0], encoding="utf-8")
    with opened() as page:
        page.set_default_timeout(60_000)
        page.route("http*://**", lambda route: route.abort())
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        for n in (0, 1):
            player = page.frame_locator("iframe").nth(n).locator(".kc")
            steps(player)
            assert player.evaluate("one => one.ownerDocument.documentElement.scrollHeight - innerHeight") < 40
