"""Lines touch no text: random stories with 3 to 9 brokers, measured at every step, in a wide and in a narrow page.

Requests, sessions, writes and watches run in lanes; no line crosses a label, no pill covers another.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import browser
import pytest
from tables import text

from kafka_ctl import Lab
from kafka_ctl.errors import KafkaCtlError
from kafka_ctl.explore.walk import menu
from kafka_ctl.lab.menu import Draw
from kafka_ctl.lab.story import Command
from kafka_ctl.trace import Trace
from kafka_ctl.views.frames import film

pytestmark = [browser.needs_chromium, browser.needs_helvetica]

LANES = text("browser_lanes.js")


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    """One window for all tests; each opens a page of its own in it."""
    with browser.page() as opened:
        yield opened


def wandering(brokers: int) -> Trace:
    """The trace of random commands and faults; what cannot be done is left out."""
    rng = Random(brokers)
    drawn = [(name, d) for name, d in menu("2.0") if name != "at_once"]
    draw = Draw(rng, brokers)
    with Lab(brokers=brokers, seed=brokers) as lab:
        lab.create_topic("a", partitions=3, replication_factor=3)
        lab.settle()
        for name, d in rng.choices(drawn, [d.weight for _, d in drawn], k=16):
            try:
                lab.do(Command(name, *d.arguments(draw)))
            except KafkaCtlError:
                continue
            lab.run_for(draw.seconds(12))
        return lab.trace


def measured(opened: Any, width: int) -> list[str]:
    """The lines that cross words, and the pills that lie on others, in a page of this width."""
    opened.set_viewport_size({"width": width, "height": 800})
    opened.evaluate(browser.DRAWN)
    found: list[str] = opened.evaluate(LANES)[0]
    return found


@pytest.mark.parametrize("brokers", range(3, 10))
def test_no_line_crosses_a_label(brokers: int, opened: Any, tmp_path: Path) -> None:
    browser.play(opened, tmp_path / "film.html", film(wandering(brokers), limit=120))
    for width in (811, 390):
        assert measured(opened, width) == []


def test_a_line_across_a_label_is_found(opened: Any, tmp_path: Path) -> None:
    """The measure itself: a session that is bent through the brokers' names is named."""
    browser.play(opened, tmp_path / "film.html", film(wandering(3), limit=120))
    assert measured(opened, 811) == []
    opened.evaluate("() => document.querySelector('[data-id=\"session:1\"] .body').setAttribute('d', 'M0,155H200')")
    assert "head:1" in "; ".join(measured(opened, 811))
