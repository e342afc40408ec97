"""Keys pressed inside the player and the live lab stay there: JupyterLab runs no command of them."""

from collections.abc import Iterator
from typing import Any

import browser
import pytest
from test_browser_lab import CELL, halt, says

pytestmark = browser.needs_chromium

KEYS = (
    "a b c d d m r x y z 1 l + - Enter Escape Space ArrowDown ArrowUp ArrowLeft ArrowRight Home End PageDown PageUp Tab"
    " Shift+Enter Control+Enter Alt+Enter Shift+ArrowDown Shift+M Control+z Control+Shift+- Control+b Control+s 0 0 i i"
).split()
"""What JupyterLab has commands for, among others."""
STATE = """() => {
  const book = window.jupyterapp.shell.currentWidget.content;
  const cells = book.widgets.map((cell) => cell.model.type + ":" + cell.model.sharedModel.getSource());
  return [book.activeCellIndex, book.mode, ...cells];
}"""
WATCH = """() => {
  window.ran = [];
  window.jupyterapp.commands.commandExecuted.connect((_, { id }) => window.ran.push(id));
}"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A notebook of three cells; the second shows a lab."""
    with browser.ran(tmp_path_factory.mktemp("keys"), "one = 1", CELL, "two = 2", size=(1280, 1000)) as page:
        page.wait_for_selector(".kc .actions")
        page.evaluate(WATCH)
        page.set_default_timeout(20_000)
        yield page


CONTROLS = {
    "the player": ".kc",
    "a tab": ".kc [data-tab='cluster']",
    "the thing": ".kc .actions select",
    "a button": ".kc .actions [data-act='settle']",
    "the kind": ".kc .kinds",
    "the speed": ".kc .speed",
    "the scrubber": ".kc .scrub",
    "the number": ".kc .number",
    "the log": ".kc .log .line >> nth=-1",
    "the script": ".kc .script pre",
}


@pytest.mark.parametrize("control", CONTROLS)
def test_no_key_reaches_jupyterlab(opened: Any, control: str) -> None:
    """With the focus on every kind of control: no command runs, no cell changes, and the widget stays."""
    opened.focus(CONTROLS[control])
    before = opened.evaluate(STATE)
    opened.evaluate("() => { window.ran.length = 0; }")
    for key in KEYS:
        opened.focus(CONTROLS[control])
        opened.keyboard.press(key)
    assert opened.evaluate("() => window.ran") == []
    assert opened.evaluate(STATE) == before
    assert opened.locator(".kc .actions").count() == 1
    opened.keyboard.press("Escape")


def test_the_focus_stays_when_what_had_it_goes(opened: Any) -> None:
    """A button that acts may be drawn anew, switched off or taken away; the next key is still the player's."""
    halt(opened)
    opened.select_option(".kc .actions select", "broker:1")
    opened.evaluate("() => { window.ran.length = 0; }")
    before = opened.evaluate(STATE)
    for action in ("kill", "start"):
        opened.focus(".kc .actions .open")
        opened.keyboard.press("Enter")
        opened.focus(f".kc .menu [data-act='{action}']")
        opened.keyboard.press("Enter")
        says(opened, ".kc .script pre", f"lab.{action}(1)")
        opened.wait_for_selector(".kc .menu", state="hidden")
        assert opened.evaluate("() => !!document.activeElement.closest('.kc')")
        opened.keyboard.press("b")
    halt(opened)
    opened.focus(".kc [data-do='back']")
    opened.keyboard.press("Home")
    opened.wait_for_selector(".kc[data-step='0']")
    assert opened.evaluate("() => !!document.activeElement.closest('.kc')")
    opened.keyboard.press("b")
    assert opened.evaluate("() => window.ran") == []
    assert opened.evaluate(STATE) == before


def test_tab_goes_from_top_to_bottom(opened: Any) -> None:
    """The focus meets the parts of the widget in the order in which they stand below one another."""
    halt(opened)
    opened.focus(".kc")
    places: list[list[Any]] = []
    for _ in range(60):
        opened.keyboard.press("Tab")
        place = opened.evaluate(
            "() => { const one = document.activeElement.closest("
            "'.tabs, .say, .strip, .bar, .actions, .reply, .logs, .below');"
            " return one && [one.className, one.offsetTop]; }"
        )
        if place is None:
            break
        places += [place] if [place] != places[-1:] else []
    assert {"tabs", "strip", "bar", "actions", "logs", "below"} <= {name for name, _ in places}
    assert [top for _, top in places] == sorted(top for _, top in places)


def test_a_menu_gives_the_focus_back(opened: Any) -> None:
    """Escape leads back to the button that opened a menu or a form, and the broker stays chosen; Tab closes a menu."""
    halt(opened)
    opened.select_option(".kc .actions select", "broker:2")
    focused = "() => document.activeElement.className"
    opened.focus(".kc .actions .open")
    opened.keyboard.press("Enter")
    opened.wait_for_function("() => document.activeElement.dataset.act === 'kill'")
    opened.keyboard.press("ArrowRight")
    assert opened.evaluate("() => document.activeElement.dataset.act") == "shutdown"
    opened.keyboard.press("Escape")
    assert opened.evaluate(focused) == "open"
    assert opened.input_value(".kc .actions select") == "broker:2"
    opened.keyboard.press("Enter")
    opened.focus(".kc .menu [data-act='pause']")
    opened.keyboard.press("Enter")
    opened.wait_for_function("() => document.activeElement.name === 'seconds'")
    opened.keyboard.press("Escape")
    assert opened.evaluate(focused) == "open"
    opened.keyboard.press("Enter")
    opened.focus(".kc .menu:not(.form) button >> nth=-1")
    opened.keyboard.press("Tab")
    opened.wait_for_selector(".kc .menu:not(.form)", state="hidden")


def test_a_step_number_and_enter_jump(opened: Any) -> None:
    """What is typed replaces the number; without Enter it does not take the first click elsewhere."""
    opened.focus(".kc .number")
    opened.keyboard.type("7")
    opened.keyboard.press("Enter")
    opened.wait_for_selector(".kc[data-step='7']")
    opened.click(".kc .number")
    opened.keyboard.type("3")
    opened.click(".kc [data-do='next']")
    opened.wait_for_selector(".kc[data-step='8']")
    assert opened.input_value(".kc .number") == "8"


def test_the_lines_of_the_log_are_one_tab_stop(opened: Any) -> None:
    """Arrows go from line to line, Enter to the step of a line."""
    halt(opened)
    assert opened.locator(".kc .log .line").count() > 3
    assert opened.locator(".kc .log[tabindex='0'], .kc .log .line:not([tabindex='-1'])").count() == 1
    opened.focus(".kc .log .line[tabindex='0']")
    opened.keyboard.press("Home")
    first = opened.evaluate("() => document.activeElement.title")
    opened.keyboard.press("ArrowDown")
    assert opened.evaluate("() => document.activeElement === document.querySelectorAll('.kc .log .line')[1]")
    opened.keyboard.press("ArrowUp")
    opened.keyboard.press("Enter")
    opened.wait_for_selector(f".kc[data-step='{first.removeprefix('step ')}']")
    assert opened.evaluate("() => !!document.activeElement.closest('.kc .log')")
