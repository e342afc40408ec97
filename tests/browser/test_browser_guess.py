"""A guess in the picture in JupyterLab: by click and by key, at two widths; then the run, and no second guess."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest

from kafka_ctl.jupyter.launch import Server
from kafka_ctl.paths import ROOT

pytestmark = browser.needs_chromium
CELL = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from kafka_ctl_course.widgets import GuessWidget
"""
WORK = """
import ipywidgets, pathlib, time

def work(_):
    end = time.monotonic() + 60
    while not pathlib.Path("done").exists() and time.monotonic() < end:
        time.sleep(0.01)

busy = ipywidgets.Button(description="Work")
busy.on_click(work)
busy
"""
"""A button that keeps the kernel busy until there is a file."""
PRESSED = """([place, names]) => {
  const guess = document.querySelectorAll(".kc.guess")[place];
  const pressed = [...guess.querySelectorAll("[data-guess][aria-pressed=true]")].map((part) => part.dataset.guess);
  return JSON.stringify(pressed) === JSON.stringify(names);
}"""
"""Whether these things, and no others, are chosen in the first or second question."""
MARKED = """([place, ...both]) => {
  const guess = document.querySelectorAll(".kc.guess")[place];
  const marked = (name) => [...guess.querySelectorAll(`.part.${name}[data-guess]`)].map((part) => part.dataset.guess);
  return JSON.stringify(["right", "wrong"].map(marked)) === JSON.stringify(both);
}"""
"""Whether these things are marked as right and those as wrong."""
ALONE = """() => {
  const lost = [...document.querySelectorAll(".jupyter-widgets-disconnected")];
  const shown = lost.filter((one) => getComputedStyle(one, "::before").content !== "none");
  return shown.length === 2 && shown.every((one) => getComputedStyle(one, "::before").content.includes("Run the cell"));
}"""
"""Whether each question says that Python has gone, and no part of one has Jupyter's icon for it."""
FRAMED = """() => [...document.querySelectorAll('.kc.guess :is(.right, .wrong):is(.s-bare, .s-sent) > .body')]
  .filter((body) => getComputedStyle(body).stroke !== 'none').length"""
"""How many texts below what is marked have a frame of their own."""


def inside(page: Any, part: Any) -> bool:
    """Whether nothing of a part is cut off at the sides of its picture."""
    box, around = part.bounding_box(), page.query_selector(".kc.guess").bounding_box()
    return bool(around["x"] - 1 <= box["x"] and box["x"] + box["width"] <= around["x"] + around["width"] + 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guess")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    browser.write(folder / "book.ipynb", CELL, 'GuessWidget("05.a")', 'GuessWidget("07.a")')
    browser.write(folder / "busy.ipynb", CELL, WORK, 'GuessWidget("07.a")')
    with browser.lab(folder) as server:
        yield server


@pytest.mark.parametrize("width", [1280, 1024])
def test_a_learner_guesses_in_the_picture(server: Server, width: int) -> None:
    with browser.shown(server, size=(width, 900), seconds=180) as page:
        page.wait_for_selector(".kc.guess [data-guess='partition:orders-0']")
        first, second = page.query_selector_all(".kc.guess")
        brokers = [part.get_attribute("data-guess") for part in first.query_selector_all("[data-guess]")]
        assert brokers == [f"broker:{n}" for n in (1, 2, 3, 4)]
        assert all(inside(page, part) for part in first.query_selector_all("[data-guess]"))
        assert not first.query_selector(".caption").is_visible() and not first.query_selector(".logs").is_visible()
        # With the keyboard: Tab from broker to broker, Enter commits. No key reaches JupyterLab.
        cells = len(page.query_selector_all(".jp-Cell"))
        first.query_selector("[data-guess='broker:1']").focus()
        for key in ("Tab", "b", "Enter"):
            page.keyboard.press(key)
        page.wait_for_selector("text=You say: broker 2")
        page.wait_for_selector("text=Right: in the run")
        page.wait_for_function(PRESSED, arg=[0, ["broker:2"]])
        page.wait_for_function(MARKED, arg=[0, ["broker:2"], []])
        assert len(page.query_selector_all(".jp-Cell")) == cells
        page.wait_for_selector(".kc:not(.guess) .caption")
        # Once is enough.
        first.query_selector("[data-guess='broker:3']").click(force=True)
        # With the mouse: several partitions, one of them taken back.
        for name in ("orders-0", "orders-1", "orders-3", "orders-1"):
            second.query_selector(f"[data-guess='partition:{name}']").click()
        page.wait_for_function(PRESSED, arg=[1, ["partition:orders-0", "partition:orders-3"]])
        page.wait_for_function(PRESSED, arg=[0, ["broker:2"]])  # the late click has changed nothing
        page.click("button:has-text('Commit')")
        page.wait_for_selector("text=You say: orders-0 and orders-3")
        assert second.query_selector(".s-sent.right") and page.evaluate(FRAMED) == 0
        page.screenshot(path=browser.ARTIFACTS / "views" / f"guess-{width}.png")
        assert page.locator("text=Right: in the run").count() == 2
        lines = page.evaluate(
            "getComputedStyle(document.querySelector('.kc-question .widget-html-content')).lineHeight"
        )
        assert float(lines.removesuffix("px")) < 24
        page.evaluate(browser.RESTART)
        page.wait_for_function(ALONE)
        page.screenshot(path=browser.ARTIFACTS / "views" / f"guess-alone-{width}.png")


def test_a_busy_kernel_gets_the_whole_guess(server: Server, folder: Path) -> None:
    """What was clicked before Commit counts, also what the kernel has not yet got as a trait."""
    (folder / "done").unlink(missing_ok=True)
    with browser.page(viewport={"width": 1280, "height": 900}) as page:
        assert browser.run_all(page, server, "busy.ipynb", 180)
        page.click("button:has-text('Work')")
        for name in ("orders-0", "orders-1", "orders-3", "orders-1"):
            page.click(f".kc.guess [data-guess='partition:{name}']")
        page.wait_for_function(PRESSED, arg=[0, ["partition:orders-0", "partition:orders-3"]])
        page.click("button:has-text('Commit')")
        (folder / "done").touch()
        page.wait_for_selector("text=You say: orders-0 and orders-3")
