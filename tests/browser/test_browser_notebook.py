"""The first notebook as a learner meets it: in JupyterLab, in a real Chromium, run and then played with.

A picture of every player goes to `artifacts/notebook/`, for people to look at.
"""

import shutil
from pathlib import Path
from typing import Any

import browser
import nbformat

from kafka_ctl.paths import ROOT

pytestmark = browser.needs_chromium

FIRST = "notebooks/01-electing-a-controller.ipynb"


def cell(page: Any, index: int) -> Any:
    """The cell of this number, scrolled to the top: JupyterLab draws only what is near the window."""
    page.evaluate("n => window.jupyterapp.shell.currentWidget.content.scrollToItem(n, 'start')", index)
    found = page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{index}']")
    found.wait_for()
    return found


def picture(player: Any) -> str:
    """The drawing of a player as it is now."""
    return str(player.locator(".view svg").first.inner_html())


def at(player: Any, step: int) -> None:
    """Wait until a player shows this step."""
    player.page.wait_for_function("([e, n]) => e.dataset.step === n", arg=[player.element_handle(), str(step)])


def test_a_learner_runs_the_notebook_and_plays(tmp_path: Path) -> None:
    """Run all; in every player, next shows other pictures and captions, and back shows the first ones again."""
    shutil.copy(ROOT / FIRST, tmp_path / "first.ipynb")  # JupyterLab saves what it has run
    cells = nbformat.read(ROOT / FIRST, as_version=4).cells
    players = [n for n, each in enumerate(cells) if each.cell_type == "code" and ".player(" in each.source]
    with browser.lab(tmp_path) as server, browser.page(viewport={"width": 1280, "height": 1000}) as page:
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        assert browser.run_all(page, server, "first.ipynb", seconds=240), "a cell failed"
        for number in players:
            player = cell(page, number).locator(".kc")
            player.wait_for()
            player.press("Home")  # one begins where its prose is
            at(player, 0)
            first, reported = picture(player), player.locator(".caption").inner_text()
            player.locator("[data-do='next']").click()
            at(player, 1)
            assert player.locator(".caption").inner_text() != reported
            player.locator("[data-do='next']").click()
            at(player, 2)
            assert picture(player) != first
            page.screenshot(path=browser.ARTIFACTS / "notebook" / f"{number:02}-{cells[number].id}.png")
            player.locator("[data-do='back']").click()
            player.locator("[data-do='back']").click()
            at(player, 0)
            assert player.locator(".caption").inner_text() == reported
        assert players and wrong == []
