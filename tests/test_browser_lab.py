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
from kafka_ctl.views.frames import VIEWS

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
        page.set_default_timeout(15_000)
        page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
        yield page
        assert wrong == []


def says(page: Any, selector: str, text: str) -> None:
    found = f"() => document.querySelector({selector!r})?.textContent.includes({text!r})"
    page.wait_for_function(found)


def halt(page: Any) -> int:
    """Stop what plays and go to the last step; its number."""
    page.focus(".kc")
    if "Pause" in page.get_attribute(".kc [data-do='play']", "aria-label"):
        page.keyboard.press("Space")
    page.keyboard.press("End")
    page.wait_for_selector(".kc [data-do='play'][aria-label^='Play']")
    page.wait_for_selector(".kc [data-do='last']:disabled")
    return int(page.get_attribute(".kc", "data-step"))


def test_a_broker_is_killed_by_clicking_it(opened: Any) -> None:
    """The menu opens on the broker; caption, script and picture follow; one step back it is alive again."""
    opened.click(".kc [data-id='head:1']")
    opened.wait_for_selector(".kc .menu:visible")
    picture(opened, "menu")
    opened.click(".kc .menu [data-act='kill']")
    says(opened, ".kc .script pre", "lab.kill(1)")
    says(opened, ".kc .caption", "Broker 1 is killed")
    says(opened, ".kc [data-id='head:1']", "dead, still registered")
    opened.click(".kc [data-do='back']")
    says(opened, ".kc [data-id='head:1']", "up")
    opened.click(".kc .time [data-act='settle']")
    says(opened, ".kc .script pre", "lab.settle()\nlab.kill(1)\nlab.settle()")
    halt(opened)
    says(opened, ".kc [data-id='head:1']", "down")


def test_what_is_refused_is_said(opened: Any) -> None:
    """The form keeps nobody from asking for nonsense; the lab says what is wrong with it."""
    opened.select_option(".kc .actions select", "partition:orders-0")
    opened.click(".kc .actions [data-act='reassign']")
    opened.fill(".kc .form input[name='replicas']", "two")
    picture(opened, "form")
    opened.press(".kc .form input[name='replicas']", "Enter")
    opened.wait_for_selector(".kc .said.refused")
    assert "reassign" not in opened.inner_text(".kc .script pre")
    picture(opened, "refused")


def test_why_and_the_log_stand_beside_an_election(opened: Any) -> None:
    opened.select_option(".kc .kinds", "election")
    halt(opened)
    opened.focus(".kc")
    opened.keyboard.press("J")
    says(opened, ".kc .caption", "Elections (offline)")
    opened.click(".kc .caption [data-do='why']")
    says(opened, ".kc .why", "first assigned replica that is live and in the ISR")
    assert opened.locator(".kc .why .ran").count() >= 3
    picture(opened, "why")
    opened.keyboard.press("Escape")
    opened.click(".kc .log .line:has-text('from OfflinePartition to OnlinePartition') >> nth=0")
    says(opened, ".kc .caption", "Offline → Online")
    assert "from OfflinePartition to OnlinePartition" in opened.inner_text(".kc .log .line.here >> nth=0")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_of_the_living_cluster(opened: Any, theme: str) -> None:
    """Drawn when they are asked for, at the step that is shown."""
    name = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}[theme]
    opened.evaluate(f"() => window.jupyterapp.commands.execute('apputils:change-theme', {{theme: {name!r}}})")
    opened.wait_for_selector(f".kc[data-theme='{theme}']")
    opened.wait_for_selector("#jupyterlab-splash", state="detached")
    halt(opened)
    for view in VIEWS:
        opened.click(f".kc [data-tab='{view}']")
        opened.wait_for_selector(f".kc [data-view='{view}'] svg .part:visible")
        assert opened.locator(".kc .view:visible").count() == 1
        picture(opened, f"{view}-{theme}")
    opened.click(".kc [data-tab='cluster']")
    opened.wait_for_selector(".kc [data-view='cluster'] svg .part:visible")


def test_a_view_that_is_open_grows_too(opened: Any) -> None:
    """Also one that is drawn anew for every moment."""
    opened.click(".kc [data-tab='spacetime']")
    opened.wait_for_selector(".kc [data-view='spacetime'] svg .part:visible")
    opened.select_option(".kc .actions select", "broker:1")
    opened.click(".kc .actions [data-act='start']")
    says(opened, ".kc .script pre", "lab.start(1)")
    opened.click(".kc .time [data-act='settle']")
    says(opened, ".kc .script pre", "lab.start(1)\nlab.settle()")
    halt(opened)
    assert opened.locator(".kc [data-view='spacetime'] svg").count() == 1
    opened.click(".kc [data-tab='cluster']")
    says(opened, ".kc [data-view='cluster'] [data-id='head:1']", "up")


def test_two_futures_side_by_side_and_undo(opened: Any) -> None:
    halt(opened)
    opened.click(".kc [data-key='fork']")
    opened.wait_for_selector(".kc-fork .kc .actions")
    opened.click(".kc-fork [data-view='cluster'] [data-id='head:3']")
    opened.click(".kc-fork .menu [data-act='expire_session']")
    says(opened, ".kc-fork .script pre", "lab_2.expire_session(3)")
    says(opened, ".kc-fork .compared", "fault")
    picture(opened, "fork")
    opened.click(".kc-fork .shut")
    opened.wait_for_selector(".kc-fork", state="detached")
    opened.click(".kc [data-key='undo']")
    says(opened, ".kc .said", "undone: lab.settle()")
    opened.click(".kc [data-key='undo']")
    says(opened, ".kc .said", "undone: lab.start(1)")
    says(opened, ".kc [data-id='head:1']", "down")


def test_the_keyboard_reaches_everything(opened: Any) -> None:
    """A broker is started without any pointer, and every control has a name."""
    opened.focus(".kc .actions select")
    opened.select_option(".kc .actions select", "broker:1")
    opened.focus(".kc .actions [data-act='start']")
    opened.keyboard.press("Enter")
    says(opened, ".kc .script pre", "lab.start(1)")
    unnamed = opened.evaluate(
        "() => [...document.querySelectorAll('.kc button, .kc input, .kc select')]"
        ".filter((e) => !(e.ariaLabel || e.textContent || e.labels?.length)).length"
    )
    assert unnamed == 0
