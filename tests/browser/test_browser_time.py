"""The player's clock, axis and choice of a log on an exported page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
from labs import lab_of, until_quiet

from kafka_ctl import Lab
from kafka_ctl.views.frames import film

pytestmark = browser.needs_chromium
COUNTED = """() => [...document.querySelectorAll('.kc .label')].map((label) => label.textContent)
  .filter((text) => / of \\d+ s$/.test(text))"""


@pytest.fixture(scope="module")
def paused() -> Iterator[Lab]:
    """A request of the controller meets a broker that is paused for four seconds."""
    with lab_of("orders", {0: [2, 1], 1: [1, 2]}, brokers=3, seed=7) as lab:
        lab.pause(1, seconds=4)
        until_quiet(lab.create_topic, "new", assignment={0: [1, 2]})
        yield lab


@pytest.fixture
def opened(paused: Lab, tmp_path: Path) -> Iterator[Any]:
    path = paused.export(tmp_path / "film.html", start=0)
    with browser.page(viewport={"width": 1024, "height": 860}) as page:
        page.goto(path.as_uri())
        page.wait_for_selector(".kc[data-step='0']")
        yield page


def go(page: Any, step: int) -> None:
    """Type the step's number and press Enter."""
    page.fill(".kc .number", str(step))
    page.keyboard.press("Enter")
    page.wait_for_selector(f".kc[data-step='{step}']")


def before_the_pause(lab: Lab) -> int:
    """The step after which nothing happens until the pause is over."""
    made = film(lab.trace)
    return next(f.index for f in made.frames[1:] if made.frames[f.index + 1].time_ms - f.time_ms > 3000)


def test_the_clock_runs_through_a_pause(opened: Any, paused: Lab) -> None:
    """The caption's time and all that counts seconds go on while the player waits for the next step."""
    step = before_the_pause(paused)
    go(opened, step)
    assert "is 4 s later." in opened.inner_text(".kc .caption")
    assert opened.locator(".kc .label:text-matches('^(silent|lag|LeaderAndIsr) 0.0 of')").count() == 3
    begun = float(opened.inner_text(".kc .caption .time").split()[0])
    opened.click(".kc [data-do='play']")
    opened.wait_for_function(
        "begun => parseFloat(document.querySelector('.kc .caption .time').textContent) > begun + 1", arg=begun
    )
    counted = opened.evaluate(COUNTED)
    assert len(counted) == 3 and all(float(text.split()[1]) > 0.5 for text in counted)


def test_the_axis_has_room_for_the_pause_and_says_how_long_it_is(opened: Any, paused: Lab) -> None:
    step = before_the_pause(paused)
    assert "4 s" in [pause.inner_text() for pause in opened.query_selector_all(".kc .pauses > *")]
    go(opened, step)
    before = float(opened.input_value(".kc input[type=range]"))
    go(opened, step + 1)
    pause = float(opened.input_value(".kc input[type=range]")) - before
    go(opened, step - 1)
    assert pause > 3 * (before - float(opened.input_value(".kc input[type=range]")))


def test_the_log_is_the_one_that_has_something_to_say(opened: Any, paused: Lab) -> None:
    """Of an event the controller's, of a move the state changes'; who picks one keeps it, until it is let go."""
    made = film(paused.trace)
    event = next(f.index for f in made.frames if "process the event TopicChange" in f.caption)
    move = next(f.index for f in made.frames if f.index > event and f.kind == "partition")
    shown = "() => document.querySelector('.kc .which [aria-pressed=true]').textContent"
    go(opened, move)
    assert opened.evaluate(shown) == "state-change.log"
    assert "state.change.logger" in opened.inner_text(".kc .log .line.here >> nth=0")
    opened.click(".kc .which [data-log='events']")
    assert opened.evaluate(shown) == "controller.log"
    go(opened, event)
    assert opened.evaluate(shown) == "controller.log"
    go(opened, move)
    assert opened.evaluate(shown) == "controller.log", "picked"
    opened.click(".kc .which [data-log='events']")
    assert opened.evaluate(shown) == "state-change.log", "let go"


def test_step_0_of_a_page_shows_a_cluster(paused: Lab, tmp_path: Path) -> None:
    """Brokers, a controller and its epoch, in the picture and in the gauges above it."""
    path = paused.export(tmp_path / "film.html")
    with browser.page(viewport={"width": 1024, "height": 860}) as page:
        page.goto(path.as_uri())
        page.wait_for_selector(".kc[data-step='0']")
        assert "controller 2 at epoch 1" in page.inner_text(".kc .gauges")
        heads = [page.text_content(f".kc [data-id='head:{broker}']") for broker in (1, 2, 3)]
        assert "controller, epoch 1" in heads[1] and all("up" in heads[n] for n in (0, 2))
        assert page.locator(".kc [data-id='crown']:not(.s-gone)").count() == 1
