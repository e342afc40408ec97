"""Links in the prose lead to steps of the player, and are marked while their step is shown."""

from pathlib import Path
from typing import Any

import browser
from filmed import failover

from kafka_ctl.paths import ROOT
from kafka_ctl.views.export import export

pytestmark = browser.needs_chromium

MARKS = {"kill": "is killed", "elected": "Broker 1 is elected"}
PROSE = "First [a broker dies](#step-kill).\n\nThen [another is elected](#step-elected)."
COLOUR = "(it) => getComputedStyle(it).color.match(/\\d+/g).map(Number)"
CELL = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
from filmed import failover
from kafka_ctl.views.widget.player import player
shown = player(failover(), marks={MARKS!r})
shown
"""


def follows_links(page: Any) -> None:
    """Each link goes to its step; only the link of the step that is shown is marked."""
    marked = "() => [...document.querySelectorAll('a.kc-here')].map((link) => link.textContent)"
    for text, caption in (("a broker dies", MARKS["kill"]), ("another is elected", MARKS["elected"])):
        page.click(f"a:has-text('{text}')")
        page.wait_for_function(f"() => document.querySelector('.kc .caption').innerText.includes({caption!r})")
        assert page.evaluate(marked) == [text]
        assert page.get_attribute(f"a:has-text('{text}')", "aria-current") == "step"
    page.click(".kc [data-do='next']")
    page.wait_for_function("() => !document.querySelector('a.kc-here')")
    page.click(".kc [data-do='back']")
    page.wait_for_function("() => document.querySelector('a.kc-here')")
    assert page.evaluate(marked) == ["another is elected"]
    page.select_option(".kc .kinds", "mark:kill")
    page.click(".kc [data-do='jump']")
    page.wait_for_function("() => document.querySelector('a.kc-here').textContent === 'a broker dies'")


def test_prose_and_player_in_jupyterlab(tmp_path: Path) -> None:
    with browser.ran(tmp_path, CELL, prose=PROSE) as page:
        page.wait_for_selector(".kc [data-view='cluster'] .part")
        page.set_default_timeout(20_000)
        follows_links(page)
        assert "#step" not in page.url


def test_prose_in_an_exported_page(tmp_path: Path) -> None:
    """And the address of a page may name a step."""
    path = export(failover(), tmp_path / "film.html", marks=MARKS, prose=PROSE)
    with browser.page(viewport={"width": 1280, "height": 900}) as page:
        page.goto(path.as_uri())
        page.wait_for_selector(".kc[data-step='0']")
        follows_links(page)
        page.goto("about:blank")
        page.goto(f"{path.as_uri()}#step-elected")
        page.wait_for_selector("a.kc-here:has-text('another is elected')")
        assert MARKS["elected"] in page.inner_text(".kc .caption")


def test_prose_can_be_read_on_a_dark_page(tmp_path: Path) -> None:
    """A link is light where the page is dark."""
    path = export(failover(), tmp_path / "film.html", marks=MARKS, prose=PROSE)
    with browser.page(color_scheme="dark") as page:
        page.goto(path.as_uri())
        page.wait_for_selector(".kc[data-step='0']")
        red, green, blue = page.locator(".prose a").first.evaluate(COLOUR)
        assert 0.2126 * red + 0.7152 * green + 0.0722 * blue > 128
