"""The live lab in a real JupyterLab in a real Chromium: a broker is killed by clicking it.

The pictures it takes of every view in both themes go to `artifacts/`, for people to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import browser
import nbformat
import pytest

from kafka_ctl.bootstrap import ROOT

pytestmark = browser.needs_chromium

ARTIFACTS = ROOT / "artifacts" / "lab"
CELL = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from kafka_ctl import Lab
lab = Lab(brokers=3, seed=7)
lab.create_topic("orders", partitions=4, replication_factor=3)
lab.settle()
lab
"""


def picture(page: Any, name: str) -> None:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A notebook that shows a lab."""
    folder = tmp_path_factory.mktemp("lab")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, folder / "live.ipynb")
    with browser.lab(folder) as server, browser.page(viewport={"width": 1500, "height": 1250}) as page:
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        assert browser.run_all(page, server, "live.ipynb")
        page.wait_for_selector(".kc .actions")
        page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
        yield page
        assert wrong == []


def says(page: Any, selector: str, text: str) -> None:
    found = f"() => document.querySelector({selector!r})?.textContent.includes({text!r})"
    page.wait_for_function(found, timeout=20_000)


def test_a_broker_is_killed_by_clicking_it(opened: Any) -> None:
    """The menu opens on the broker; caption, script and picture follow; what is refused is said; undo takes it back."""
    opened.click(".kc [data-id='head:1']")
    opened.wait_for_selector(".kc .menu:visible")
    picture(opened, "menu")
    opened.click(".kc .menu [data-act='kill']")
    says(opened, ".kc .script pre", "lab.kill(1)")
    says(opened, ".kc .caption", "Broker 1 is killed")
    says(opened, ".kc [data-id='head:1']", "dead, still registered")
    opened.click(".kc .time [data-act='settle']")
    says(opened, ".kc .script pre", "lab.settle()\nlab.kill(1)\nlab.settle()")
    picture(opened, "settling")
    opened.click(".kc [data-do='last']")
    opened.click(".kc [data-do='back']")
    picture(opened, "settled")
    opened.click(".kc [data-key='undo']")
    opened.click(".kc [data-key='undo']")
    says(opened, ".kc .said", "undone: lab.kill(1)")
    assert "kill" not in opened.inner_text(".kc .script pre")
