"""The toolbar of the live lab stands still, its menus are in sight, its forms push nothing; it says that time stops."""

from collections.abc import Iterator
from typing import Any

import browser
import pytest
from test_browser_lab import CELL, halt, picture, says

from kafka_ctl.jupyter.launch import Server

pytestmark = browser.needs_chromium

TOP = """() => {
  const top = (name) => document.querySelector(name).getBoundingClientRect().top;
  return top('.kc .stage') - top('.kc');
}"""
PLACES = """() => {
  const bottom = (name) => document.querySelector(name).getBoundingClientRect().bottom;
  const top = document.querySelector('.kc').getBoundingClientRect().top;
  return ['tabs', 'caption', 'gauges', 'stage svg', 'bar', 'actions'].map((name) => bottom(`.kc .${name}`) - top);
}"""
SEEN = """(pixels) => {
  const box = (name) => document.querySelector(name).getBoundingClientRect();
  const [kc, say, stage] = ['.kc', '.kc .say', '.kc .stage'].map(box);
  return say.bottom <= stage.top && stage.bottom - kc.top <= pixels;
}"""
MENU = """() => {
  const menu = document.querySelector('.kc .menu').getBoundingClientRect();
  const last = [...document.querySelectorAll('.kc .menu:not(.form) button')].at(-1), end = last.getBoundingClientRect();
  const panel = document.querySelector('.jp-NotebookPanel-notebook, .jp-WindowedPanel-outer').getBoundingClientRect();
  const front = document.elementFromPoint((end.left + end.right) / 2, (end.top + end.bottom) / 2);
  return [menu.top >= panel.top - 1, menu.bottom <= Math.min(panel.bottom, innerHeight) + 1, front === last];
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("toolbar")
    browser.write(folder / "book.ipynb", CELL)
    with browser.lab(folder) as server:
        yield server


@pytest.fixture(scope="module", params=[1280, 1024])
def opened(request: pytest.FixtureRequest, server: Server) -> Iterator[Any]:
    """A notebook that shows a lab, at two widths of the window, with JupyterLab's file browser beside it."""
    with browser.shown(server, size=(request.param, 800)) as page:
        page.wait_for_selector(".kc .actions")
        page.set_default_timeout(20_000)
        picture(page, f"toolbar-{request.param}")
        yield page


def test_nothing_is_pushed(opened: Any) -> None:
    """Whatever is chosen, asked or answered, the picture stays where it is."""
    top = opened.evaluate(TOP)
    for thing in ("", "zookeeper", "broker:1", "partition:orders-0"):
        opened.select_option(".kc .actions select", thing)
        assert opened.evaluate(TOP) == top, thing
    opened.click(".kc .actions .open")
    opened.click(".kc .menu [data-act='reassign']")
    opened.wait_for_selector(".kc .form:visible")
    assert opened.evaluate(TOP) == top
    picture(opened, f"form-{opened.viewport_size['width']}")
    opened.fill(".kc .form input[name='replicas']", "two")
    opened.press(".kc .form input[name='replicas']", "Enter")
    opened.wait_for_selector(".kc .form .error:visible")
    assert opened.evaluate(TOP) == top
    opened.press(".kc .form input[name='replicas']", "Escape")


def test_all_that_matters_is_on_one_screen(opened: Any) -> None:
    """View tabs, sentence, gauges, picture and transport: 600 pixels for three partitions, 41 more for a fourth."""
    places = opened.evaluate(PLACES)
    assert places == sorted(places), "one below the other"
    assert places[-1] <= 641


CUT = """(width) => {
  const kc = document.querySelector('.kc'), shown = [...kc.querySelectorAll('.tabs button, .gauge')];
  kc.parentElement.style.width = width;
  const cut = shown.filter((one) => {
    const { left, right } = one.getBoundingClientRect(), room = one.parentElement.getBoundingClientRect();
    return left < room.left - 1 || right > room.right + 1 || right - left < 40;
  });
  const found = cut.map((one) => one.textContent);
  kc.parentElement.style.width = '';
  return found;
}"""
"""The tabs and gauges that are not whole, or not in sight, at a width of the widget."""


@pytest.mark.parametrize("width", ["811px", "560px", "390px"])
def test_every_tab_and_every_gauge_is_in_sight(opened: Any, width: str) -> None:
    """Also while partitions without a leader are named."""
    assert opened.evaluate(CUT, width) == []
    names = "offline: orders-337 for 7.7 s, orders-356 for 7.7 s, 1 more"
    opened.evaluate(
        "(names) => { const one = document.querySelector('.kc .gauge'); one.className = 'gauge bad';"
        " one.lastChild.data = ' ' + names; }",
        names,
    )
    assert opened.evaluate(CUT, width) == []
    assert opened.locator(".kc .gauge").all_inner_texts()[-1] == "0 pending requests"


def test_tabs_do_not_move_when_another_is_chosen(opened: Any) -> None:
    places = "() => [...document.querySelectorAll('.kc .tabs button')].map((one) => one.getBoundingClientRect().left)"
    before = opened.evaluate(places)
    opened.click(".kc [data-tab='spacetime']")
    assert opened.evaluate(places) == before
    opened.click(".kc [data-tab='cluster']")


def test_at_150_percent_the_sentence_and_the_picture_are_in_sight(opened: Any) -> None:
    """JupyterLab leaves 412 of 533 pixels to a notebook in a window of 1280 x 800."""
    session, size = opened.context.new_cdp_session(opened), opened.viewport_size
    zoomed = {"width": size["width"] * 2 // 3, "height": 533, "deviceScaleFactor": 1.5, "mobile": False}
    session.send("Emulation.setDeviceMetricsOverride", zoomed)
    opened.wait_for_function("() => innerHeight === 533 && document.querySelector('.kc .say').offsetTop < 20")
    opened.wait_for_function(SEEN, arg=453)  # a fourth partition has 41 pixels
    session.send("Emulation.clearDeviceMetricsOverride")
    opened.wait_for_function("(width) => innerWidth === width", arg=size["width"])


def test_a_menu_is_in_sight(opened: Any) -> None:
    """All of its entries, wherever it is opened."""
    for thing in ("head:1", "head:3", "replica:orders-3@3", "znode:state"):
        opened.eval_on_selector(f".kc [data-id='{thing}']", "one => one.scrollIntoView({ block: 'end' })")
        opened.click(f".kc [data-id='{thing}']")
        opened.wait_for_selector(".kc .menu:visible")
        assert opened.evaluate(MENU) == [True] * 3, thing
        picture(opened, f"menu-{opened.viewport_size['width']}")
        opened.keyboard.press("Escape")


def test_time_that_stands_still_is_offered(opened: Any) -> None:
    """A topic that has been asked for is there when somebody lets time pass; the picture says so."""
    halt(opened)
    assert opened.locator(".kc .reply .waits").count() == 0
    opened.select_option(".kc .actions select", "")
    opened.click(".kc .actions .open")
    opened.click(".kc .menu [data-act='create_topic']")
    assert opened.input_value(".kc .form [name='topic']") == "orders2", "a name that is free"
    opened.fill(".kc .form [name='topic']", "late")
    opened.click(".kc .form .go")
    says(opened, ".kc .reply .waits", "time stands still")
    assert opened.locator(".kc [data-id='replica:late-0@1'] .s-leader").count() == 0
    opened.click(".kc .reply .on")
    says(
        opened,
        ".kc .script pre",
        'lab.settle()\nlab.create_topic("late", partitions=4, replication_factor=3)\nlab.settle()',
    )
    opened.wait_for_function("() => !document.querySelector('.kc .reply .waits')")
    halt(opened)
    opened.wait_for_selector(".kc [data-id^='replica:late-0@'].s-leader")
