"""Every picture is whole at three widths: nothing that a step marks is cut off, no text leaves its box, none is small,
and what travels lies on nothing else that does.

Measured in a real Chromium, in every view, for three and five brokers and for some of the golden stories.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import browser
import pytest
from golden import played
from labs import play, until_quiet
from tables import text

from kafka_ctl import Lab
from kafka_ctl.trace import Trace
from kafka_ctl.views.frames import VIEWS, film, relevant_to

pytestmark = [browser.needs_chromium, browser.needs_helvetica]

WIDTHS = (560, 811, 1280)
"""Pixels of the player: two labs side by side, JupyterLab at 1280 with its file browser, a wide window."""
REPORTED = ("controller_failure", "network_two_sites", "reassignment", "topic_deletion", "unclean_election")
"""The golden stories that are looked at, at the smallest width."""
WRONG = text("browser_fitting_wrong.js")
EACH = f"""async ([steps, asked]) => {{
  const wrong = {WRONG.strip()}, found = [];
  const drawn = () => new Promise((done) => requestAnimationFrame(done));
  await drawn(); await drawn();  // the second, after a new width was observed
  for (const step of steps) {{
    model.set('index', step);
    await drawn();
    if (+document.querySelector('.kc').dataset.step !== step) throw new Error(`step ${{step}} is not shown`);
    found.push(...wrong(asked));
  }}
  return found;
}}"""
"""What is wrong at each of the steps."""

COVERED = text("browser_fitting_covered.js")
"""The words of sessions that lie on what is counted."""


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    """One window for all tests; each opens a page of its own in it."""
    with browser.page(viewport={"width": 1320, "height": 800}) as opened:
        yield opened


@lru_cache
def failing(brokers: int) -> Trace:
    """A topic is made; the controller dies, and comes back; replicas move; a broker shuts down."""
    with Lab(brokers=brokers, seed=7, generation="2.4") as lab:
        until_quiet(lab.create_topic, "orders", partitions=4, replication_factor=3)
        first = lab.controller
        until_quiet(lab.kill, first.id)
        until_quiet(lab.start, first.id)
        until_quiet(lab.shutdown, first.id)
        return lab.trace


@lru_cache
def reported(name: str) -> Trace:
    """The trace of a golden story."""
    with played(name) as lab:
        return lab.trace


def widen(page: Any, width: int) -> None:
    """Give the player this width."""
    page.evaluate("width => { document.querySelector('main').style.width = width + 'px'; }", width)
    assert page.evaluate("() => document.querySelector('.kc').offsetWidth") == width


def wrong(
    page: Any, whole: bool, every: int, widths: Sequence[int] = WIDTHS, views: Sequence[str] = tuple(VIEWS)
) -> list[str]:
    """What does not fit, over some steps of all views, at each of the widths."""
    found: dict[str, None] = {}
    last = page.evaluate("() => +document.querySelector('.kc').dataset.last")
    for width in widths:
        widen(page, width)
        for view in views:
            if len(views) > 1:
                page.click(f".kc [data-tab='{view}']")
            steps = [*range(0, last, every), last]
            found |= dict.fromkeys(f"{width}: {text}" for text in page.evaluate(EACH, [steps, [view, whole]]))
    return list(found)


def shown(opened: Any, trace: Trace, path: Path) -> None:
    """All views in one page, without motion."""
    browser.play(opened, path, *(film(trace, view, is_relevant=relevant_to(list(VIEWS))) for view in VIEWS))


@pytest.mark.parametrize("brokers", [3, 5])
def test_every_view_is_whole(brokers: int, opened: Any, tmp_path: Path) -> None:
    shown(opened, failing(brokers), tmp_path / "film.html")
    assert wrong(opened, whole=True, every=9) == []


def test_the_controller_epoch_znode_keeps_its_name(opened: Any, tmp_path: Path) -> None:
    """Its row wraps where one line has no room for it."""
    name = (
        "() => document.querySelector(\"[data-view='cluster'] [data-id='znode:/controller_epoch'] .label\").textContent"
    )
    shown(opened, failing(3), tmp_path / "film.html")
    for width in (400, 480, 520, *WIDTHS):
        widen(opened, width)
        opened.evaluate(browser.DRAWN)
        assert opened.evaluate(name) == "/controller_epoch", width


@pytest.mark.parametrize("name", REPORTED)
def test_every_view_of_a_story_is_whole(name: str, opened: Any, tmp_path: Path) -> None:
    shown(opened, reported(name), tmp_path / "film.html")
    assert wrong(opened, whole=True, every=12, widths=WIDTHS[:1]) == []


def test_hours_are_whole_in_the_time_column(opened: Any, tmp_path: Path) -> None:
    """Five digits before the point."""
    with Lab(seed=7) as lab:
        lab.run_for(72_000)
        until_quiet(lab.kill, 1)
        browser.play(opened, tmp_path / "film.html", film(lab.trace, "spacetime"))
    assert wrong(opened, whole=True, every=9, widths=WIDTHS[:1], views=["spacetime"]) == []


def test_what_leaves_its_box_is_found(opened: Any, tmp_path: Path) -> None:
    """The measure itself: a text that has grown, a marked thing pushed out, and too little room are each named."""
    shown(opened, failing(3), tmp_path / "film.html")
    assert wrong(opened, whole=True, every=500, widths=[560]) == []
    opened.click(".kc [data-tab='cluster']")
    opened.evaluate(
        "() => { document.querySelector('[data-id=\"znode:/controller\"] text').textContent = 'x'.repeat(40); }"
    )
    opened.evaluate("() => { document.querySelector('[data-id=\"head:2\"]').classList.add('s-hot'); }")
    opened.evaluate("() => { document.querySelector('[data-id=\"head:2\"]').style.transform = 'translate(900px)'; }")
    found = "; ".join(opened.evaluate(WRONG, ["cluster", True]))
    assert "leaves its box: xxx" in found and "cut off: head:2" in found and "leaves the picture: Broker 2" in found


def test_a_large_cluster_is_an_overview_that_opens(opened: Any, tmp_path: Path) -> None:
    """20 brokers and 500 partitions are whole at each width; a click on a broker shows its replicas one by one."""
    with Lab(brokers=20, seed=7) as lab:
        play(lab, "create_topic orders partitions=500 replication_factor=3; settle; kill 5; run_for 20")
        made = film(lab.trace, limit=60)
        held = {f"{p.topic}-{p.partition}" for p in lab.partitions() if 3 in p.replicas}
        led = {f"{p.topic}-{p.partition}" for p in lab.partitions() if p.leader == 3}
    browser.play(opened, tmp_path / "film.html", made)
    assert wrong(opened, whole=True, every=30, views=["cluster"]) == []
    for width in WIDTHS:
        widen(opened, width)
        opened.evaluate(browser.DRAWN)
        assert opened.evaluate(COVERED) == []
    opened.click(".kc [data-id='head:3']")
    names = "() => [...document.querySelectorAll('.kc .detail .chip')].map((chip) => chip.textContent)"
    assert set(opened.evaluate(names)) == held
    opened.click(".kc [data-id='count:3:leader']")
    assert set(opened.evaluate(names)) == led
    opened.click(".kc .detail .shut")
    opened.wait_for_selector(".kc .detail", state="hidden")
