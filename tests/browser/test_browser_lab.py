"""The live lab in a real JupyterLab in a real Chromium: a broker is killed by clicking it.

Each test shows a lab of its own: it may be run again, or alone.
The pictures it takes of every view in both themes go to `artifacts/`, for people to look at.
"""

from collections.abc import Iterator
from typing import Any

import browser
import pytest

from kafka_ctl import Generation, Lab
from kafka_ctl.paths import ROOT
from kafka_ctl.views.frames import VIEWS
from kafka_ctl.views.widget.live import script as live_script

pytestmark = browser.needs_chromium

SETUP = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from kafka_ctl import Generation, Lab
lab = Lab(brokers=3, seed=7)
lab.create_topic("orders", partitions=4, replication_factor=3)
lab.settle()
"""
CELL = SETUP + "lab"
KILLED = SETUP + "lab.kill(1)\nlab.settle()\n"
MOVED = SETUP + 'lab.reassign({"orders-0": [1, 2]})\nlab.settle()\n'
ORDERS_0 = "partition:orders-0"
RETURNED = KILLED + "lab.start(1)\nlab.settle()\n"
OBEDIENT = """
lab = Lab(brokers=4, generation=Generation("2.0", checks_controller_epoch=False), seed=1, costs={"zookeeper_tick": 0})
lab.create_topic("orders", assignment={0: [1, 2, 3]})
lab.settle()
"""
"""A cluster whose brokers obey a controller that has been replaced: a slow message of it will do harm."""


SAME = r"""() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const first = (selector, time) => all(selector).map((one) => time.exec(one.textContent)?.[1]).find(Boolean);
  const gauge = first('.kc .gauge.bad', /for (\d+\.\d) s/);
  return gauge > 0 && gauge === first('.kc .label', /no leader (\d+\.\d) s/);
}"""
"""The time without a leader runs on, and is the same in the picture and above it."""


def picture(page: Any, name: str) -> None:
    page.screenshot(path=browser.ARTIFACTS / "lab" / f"{name}.png")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A notebook that shows a lab."""
    wrong: list[str] = []
    with browser.ran(tmp_path_factory.mktemp("lab"), CELL, size=(1500, 1250), errors=wrong) as page:
        page.wait_for_selector(".kc .actions")
        page.set_default_timeout(60_000)
        page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
        yield page
        assert wrong == []


def shows(page: Any, source: str) -> None:
    """Run another cell in the place of the notebook's only one, and show its lab."""
    page.evaluate(
        """async (source) => {
            document.querySelectorAll('.kc').forEach((old) => old.classList.add('old'));
            const panel = window.jupyterapp.shell.currentWidget;
            panel.content.widgets[0].model.sharedModel.setSource(source);
            await window.jupyterapp.commands.execute('notebook:run-all-cells');
        }""",
        source + "lab",
    )
    page.wait_for_selector(".kc.old", state="detached")
    page.wait_for_selector(".kc .actions")
    says(page, ".kc .script pre", source.strip().rpartition("\n")[2])
    halt(page)


def does(page: Any, thing: str, action: str, **given: str) -> None:
    """At the end, choose a thing, click a button, fill in the form if one is shown; the call must be in the script."""
    halt(page)
    count = f"document.querySelector('.kc .script pre').textContent.split('lab.{action}(').length"
    before = page.evaluate(f"() => {count}")
    if page.locator(f".kc .time [data-act='{action}']").count() and not thing:
        page.click(f".kc .time [data-act='{action}']")
    else:
        page.select_option(".kc .actions select", thing if thing != "tool" else "")
        page.focus(".kc .actions .open")  # a click is lost where the picture above it grows at that moment
        page.keyboard.press("Enter")
        page.click(f".kc .menu [data-act='{action}']")
    for name, value in given.items():
        field = page.locator(f".kc .form [name='{name}']")
        field.select_option(value) if field.evaluate("e => e.tagName") == "SELECT" else field.fill(value)
    if page.is_visible(".kc .form"):
        page.click(".kc .form .go")
    page.wait_for_function(f"() => {count} > {before} || document.querySelector('.kc .reply.refused')")
    assert page.locator(".kc .reply.refused").count() == 0, page.inner_text(".kc .reply")
    page.wait_for_selector(".kc .form", state="hidden")


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


def jumps_to_election(page: Any) -> None:
    """Go back from the last step to the last election."""
    page.select_option(".kc .kinds", "election")
    halt(page)
    page.focus(".kc")
    page.keyboard.press("J")


def test_a_broker_is_killed_by_clicking_it(opened: Any) -> None:
    """The menu opens on the broker; caption, script and picture follow; one step back it is alive again."""
    shows(opened, SETUP)
    opened.click(".kc [data-id='head:1']")
    opened.wait_for_selector(".kc .menu:visible")
    picture(opened, "menu")
    opened.click(".kc .menu [data-act='kill']")
    says(opened, ".kc .script pre", "lab.kill(1)")
    says(opened, ".kc .caption", "Broker 1 is killed")
    says(opened, ".kc [data-id='head:1']", "dead, still registered")
    opened.click(".kc [data-do='back']")
    says(opened, ".kc [data-id='head:1']", "up")
    does(opened, "", "settle")
    says(opened, ".kc .script pre", "lab.settle()\nlab.kill(1)\nlab.settle()")
    halt(opened)
    says(opened, ".kc [data-id='head:1']", "down")


def test_a_double_click_on_a_menu_is_one_click(opened: Any) -> None:
    """The menu closes with the first; the second does not reach what was under it, and opens no other menu."""
    shows(opened, SETUP)
    opened.click(".kc [data-id='head:1']", button="right")
    opened.dblclick(".kc .menu [data-act='kill']")
    says(opened, ".kc .script pre", "lab.kill(1)")
    says(opened, ".kc .caption", "Broker 1 is killed")
    assert opened.locator(".kc .menu:visible").count() == 0


def test_a_double_click_on_a_form_is_one_click(opened: Any) -> None:
    shows(opened, SETUP)
    opened.click(".kc .time [data-act='run_for']")
    assert opened.inner_text(".kc .form .of") == "Let time pass: For"
    opened.dblclick(".kc .form .go")
    opened.wait_for_selector(".kc .form", state="hidden")
    does(opened, "", "settle")
    assert opened.inner_text(".kc .script pre").count("lab.run_for(") == 1


def test_a_command_acts_at_the_moment_that_is_shown(opened: Any) -> None:
    """It is played from there; what came after is kept, and a click returns to it."""
    shows(opened, KILLED)
    last = halt(opened)
    opened.select_option(".kc .kinds", "fault")
    opened.focus(".kc")
    opened.keyboard.press("J")
    says(opened, ".kc .caption", "Broker 1 is killed")
    opened.click(".kc [data-do='back']")
    says(opened, ".kc .reply .present", "the moment shown")
    opened.click(".kc [data-id='head:1']")
    opened.wait_for_selector(".kc .menu [data-act='kill']")  # it is up here, and down at the end
    assert opened.locator(".kc .menu [data-act='start']").count() == 0
    opened.keyboard.press("Escape")
    opened.click(".kc [data-id='head:2']")
    opened.click(".kc .menu [data-act='kill']")
    says(opened, ".kc .caption", "Broker 2 is killed")
    assert "lab.kill(1)" not in opened.inner_text(".kc .script pre")
    assert halt(opened) < last
    says(opened, ".kc .kept", "lab.kill(1), up to")
    picture(opened, "kept")
    opened.click(".kc .kept .line")
    says(opened, ".kc .script pre", "lab.settle()\nlab.kill(1)\nlab.settle()")
    assert halt(opened) == last
    says(opened, ".kc .kept", "lab.kill(2), up to")


def test_a_film_stands_still_while_its_reader_chooses(opened: Any) -> None:
    """The command acts at the moment at which its menu was opened, however long the choice takes."""
    shows(opened, KILLED)
    opened.focus(".kc")
    opened.keyboard.press("Home")
    opened.keyboard.press("Space")
    opened.wait_for_function("() => +document.querySelector('.kc').dataset.step > 1")
    opened.click(".kc [data-id='head:2']")
    opened.wait_for_selector(".kc [data-do='play'][aria-label^='Play']")
    says(opened, ".kc .reply .present", "the moment shown")
    notice = opened.inner_text(".kc .reply .present")
    opened.click(".kc .menu [data-act='kill']")
    says(opened, ".kc .caption", "Broker 2 is killed")
    time = float(notice.split()[4])
    assert abs(float(opened.inner_text(".kc .caption .time").split()[0]) - time) < 0.01


def test_a_form_begins_with_what_there_was_at_the_moment_shown(opened: Any) -> None:
    shows(opened, MOVED)
    with Lab(brokers=3, seed=7) as lab:
        exec(MOVED.partition("seed=7)\n")[2], {"lab": lab})
        frames = lab.live().film["frames"]
    moved = next(n for n, frame in enumerate(frames) if frame.get("things", {}).get(ORDERS_0, "")[1:] == ["1, 2"])
    was = next(frame["things"][ORDERS_0][1] for frame in frames if ORDERS_0 in frame.get("things", {}))

    def suggested() -> str:
        opened.select_option(".kc .actions select", ORDERS_0)
        opened.focus(".kc .actions .open")
        opened.keyboard.press("Enter")
        opened.click(".kc .menu [data-act='reassign']")
        value = str(opened.input_value(".kc .form [name='replicas']"))
        opened.keyboard.press("Escape")
        return value

    last = halt(opened)
    assert suggested() == "1, 2"
    opened.focus(".kc")
    for _ in range(last - moved + 1):
        opened.keyboard.press("ArrowLeft")
    opened.wait_for_selector(f".kc[data-step='{moved - 1}']")
    assert suggested() == was != "1, 2"


def test_time_runs_by_itself_while_somebody_clicks(opened: Any) -> None:
    """A crash is seen as it happens; the story has the time between two clicks as one call."""
    shows(opened, KILLED)
    halt(opened)
    before = opened.inner_text(".kc .script pre")
    opened.click(".kc [data-key='live']")
    says(opened, ".kc .caption", "Now it is")
    opened.click(".kc [data-id='head:2']")
    opened.click(".kc .menu [data-act='kill']")
    says(opened, ".kc [data-id='head:2']", "dead, still registered")
    opened.wait_for_function(SAME)
    opened.select_option(".kc .live select", "10")
    says(opened, ".kc [data-id='head:2']", "down")
    opened.click(".kc [data-key='live']")
    opened.wait_for_selector(".kc [data-key='live'][aria-pressed='false']")
    made = opened.inner_text(".kc .script pre").removeprefix(before).split()
    assert [call.partition("(")[0] for call in made] == ["lab.run_for", "lab.kill", "lab.run_for"]
    for _ in range(3):
        halt(opened)
        opened.click(".kc [data-key='undo']")
    opened.wait_for_function("(story) => document.querySelector('.kc .script pre').textContent === story", arg=before)


def test_what_is_refused_is_reported(opened: Any) -> None:
    """The form keeps nobody from asking for nonsense; the lab says what is wrong with it."""
    shows(opened, SETUP)
    opened.click(".kc [data-id='replica:orders-0@2']")
    opened.click(".kc .menu [data-act='reassign']")
    opened.fill(".kc .form input[name='replicas']", "two")
    picture(opened, "form")
    opened.press(".kc .form input[name='replicas']", "Enter")
    opened.wait_for_selector(".kc .reply.refused")
    assert "reassign" not in opened.inner_text(".kc .script pre")
    assert "cannot be read" in opened.inner_text(".kc .form .error")
    assert opened.input_value(".kc .form input[name='replicas']") == "two", "what was typed is kept"
    opened.press(".kc .form input[name='replicas']", "Enter")
    opened.wait_for_selector(".kc .form .go:not([aria-disabled]) >> visible=true")
    assert "cannot be read" in opened.inner_text(".kc .form .error"), "the same answer is shown again"
    opened.press(".kc .form input[name='replicas']", "Escape")
    picture(opened, "refused")


def test_a_form_waits_for_its_own_answer(opened: Any) -> None:
    """The answer to what was asked before it closes no form."""
    shows(opened, KILLED)
    jumps_to_election(opened)
    opened.click(".kc [data-id='replica:orders-0@2']")
    opened.click(".kc .menu [data-act='reassign']")
    opened.fill(".kc .form input[name='replicas']", "two")
    opened.evaluate(
        """() => {
            document.querySelector(".kc .caption [data-do='why']").click();
            document.querySelector('.kc .form').requestSubmit();
        }"""
    )
    opened.wait_for_selector(".kc .reply.refused")
    assert "cannot be read" in opened.inner_text(".kc .form .error")
    opened.press(".kc .form input[name='replicas']", "Escape")


def test_why_and_the_log_stand_beside_an_election(opened: Any) -> None:
    shows(opened, KILLED)
    jumps_to_election(opened)
    says(opened, ".kc .caption", "Elections (offline)")
    opened.click(".kc .caption [data-do='why']")
    says(opened, ".kc .why", "first assigned replica that is live and in the ISR")
    assert opened.locator(".kc .why .ran").count() >= 3
    picture(opened, "why")
    opened.keyboard.press("Escape")
    opened.wait_for_selector(".kc .why", state="hidden")
    later = opened.locator(".kc .log .line:has-text('from OfflinePartition to OnlinePartition') >> nth=0")
    while not later.count():  # the log shows lines up to this step
        opened.click(".kc [data-do='next']")
    opened.click(".kc [data-do='next']")
    later.click()
    says(opened, ".kc .caption", "Offline → Online")
    assert "from OfflinePartition to OnlinePartition" in opened.inner_text(".kc .log .line.here >> nth=0")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_of_the_living_cluster(opened: Any, theme: str) -> None:
    """Drawn when they are asked for, at the step that is shown."""
    shows(opened, KILLED)
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
    shows(opened, KILLED)
    opened.click(".kc [data-tab='spacetime']")
    opened.wait_for_selector(".kc [data-view='spacetime'] svg .part:visible")
    does(opened, "broker:1", "start")
    does(opened, "", "settle")
    says(opened, ".kc .script pre", "lab.start(1)\nlab.settle()")
    halt(opened)
    opened.wait_for_function("() => document.querySelectorAll(\".kc [data-view='spacetime'] svg\").length === 1")
    opened.click(".kc [data-tab='cluster']")
    says(opened, ".kc [data-view='cluster'] [data-id='head:1']", "up")


def test_undo_takes_back_what_had_been_counted(opened: Any) -> None:
    """Each gauge is as the step has it, and not with the time of the run that was undone."""
    shows(opened, KILLED)
    opened.click(".kc [data-key='undo']")
    says(opened, ".kc .reply", "undone: lab.settle()")
    halt(opened)
    opened.wait_for_function(
        "() => [...document.querySelectorAll('.kc .gauge')].every((gauge) => gauge.textContent === gauge.title)"
    )


def test_two_futures_side_by_side_and_undo(opened: Any) -> None:
    shows(opened, RETURNED)
    halt(opened)
    opened.click(".kc [data-key='fork']")
    opened.wait_for_selector(".kc-fork .kc [data-id='head:3']")
    opened.click(".kc-fork [data-view='cluster'] [data-id='head:3']")
    opened.click(".kc-fork .menu [data-act='expire_session']")
    says(opened, ".kc-fork .script pre", "lab_2.expire_session(3)")
    says(opened, ".kc.compared", "first different fact")
    assert opened.locator(".kc .actions:visible").count() == 1
    picture(opened, "fork")
    opened.click(".kc-fork .shut")
    opened.wait_for_selector(".kc-fork", state="detached")
    opened.click(".kc [data-key='undo']")
    says(opened, ".kc .reply", "undone: lab.settle()")
    opened.click(".kc [data-key='undo']")
    says(opened, ".kc .reply", "undone: lab.start(1)")
    says(opened, ".kc [data-id='head:1']", "down")


def test_the_keyboard_reaches_everything(opened: Any) -> None:
    """A broker is started without any pointer, and every control has a name."""
    shows(opened, KILLED)
    opened.focus(".kc .actions select")
    opened.select_option(".kc .actions select", "broker:1")
    opened.focus(".kc .actions .open")
    opened.keyboard.press("Enter")
    opened.wait_for_function("() => document.activeElement.dataset.act === 'start'")
    opened.keyboard.press("Enter")
    says(opened, ".kc .script pre", "lab.start(1)")
    unnamed = opened.evaluate(
        "() => [...document.querySelectorAll('.kc button, .kc input, .kc select')]"
        ".filter((e) => !(e.ariaLabel || e.textContent || e.labels?.length)).length"
    )
    assert unnamed == 0


def test_a_right_click_opens_the_menu_of_the_thing(opened: Any) -> None:
    """On a partition, with the pointer or the keyboard; JupyterLab's own menu stays away."""
    shows(opened, SETUP)
    opened.click(".kc [data-id='replica:orders-1@2']", button="right")
    opened.wait_for_selector(".kc .menu [data-act='reassign']:visible")
    assert opened.inner_text(".kc .menu .head") == "Partition orders-1"
    assert opened.locator(".lm-Menu:visible").count() == 0
    opened.keyboard.press("ArrowDown")
    first, second = (opened.locator(".kc .menu button").nth(n).inner_text() for n in (0, 1))
    assert opened.evaluate("() => document.activeElement.textContent") == second != first
    opened.keyboard.press("Escape")
    opened.wait_for_selector(".kc .menu", state="hidden")


def test_every_fault_is_a_click_away(opened: Any) -> None:
    """Each button of the issue makes its call, and the story that comes of it makes the same run."""
    shows(opened, OBEDIENT)
    one = "broker:1"
    does(opened, one, "pause", seconds="1")
    does(opened, "", "settle")
    for action in ("bounce", "expire_session", "kill", "start", "shutdown", "start", "fail_log_dir"):
        does(opened, one, action)
        does(opened, "", "settle")
    does(opened, "broker:3", "lag", partition="orders-0")
    does(opened, "broker:3", "disconnect", other="2", way="only what it receives")
    does(opened, "broker:3", "delay", other="2", seconds="1")
    does(opened, "broker:3", "lose", other="zookeeper", when="after it is applied")
    does(opened, "", "heal")
    does(opened, "", "create_topic", topic="more", partitions="2", replication_factor="2")
    does(opened, "", "run_for", seconds="10")
    does(opened, "partition:more-0", "add_partitions", total="3")
    does(opened, "partition:orders-0", "reassign", replicas="2, 3, 4")
    does(opened, "partition:orders-0", "elect_preferred")
    does(opened, "tool", "generate_reassignment", topics="more", brokers="1, 3, 4")
    does(opened, "tool", "execute_reassignment", throttle="1000")
    does(opened, "", "settle")
    does(opened, "tool", "verify_reassignment")
    says(opened, ".kc .reply", "Status of partition reassignment")
    does(opened, "partition:orders-0", "execute_reassignment", broker="2", directory="/d1")
    does(opened, one, "kill")
    does(opened, one, "set_meta", directory="/d1", broker_id="")
    does(opened, one, "start")
    does(opened, "", "at_once", commands="create_topic x\ncreate_topic x")
    does(opened, "partition:orders-0", "produce", records="3")
    does(opened, "zookeeper", "delete_controller")
    does(opened, "", "settle")
    does(opened, "partition:more-0", "delete_topic")
    does(opened, "", "step")
    picture(opened, "everything")
    script = opened.inner_text(".kc .script pre")
    names: dict[str, Any] = {"Lab": Lab, "Generation": Generation}
    exec(script, names)
    assert script == "\n".join(live_script(names["lab"]))
    names["lab"].close()


def test_the_story_can_be_copied(opened: Any) -> None:
    shows(opened, SETUP)
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.click(".kc .script .copy")
    says(opened, ".kc .script .copy", "Copied")
    copied = opened.evaluate("() => navigator.clipboard.readText()")
    assert copied == opened.inner_text(".kc .script pre")


def test_until_a_rule_breaks(opened: Any) -> None:
    """A message of a controller that has been replaced is obeyed; the rule leads to the step that broke it."""
    shows(opened, OBEDIENT)
    does(opened, "broker:1", "delay", other="3", seconds="20")
    does(opened, "broker:4", "kill")
    does(opened, "", "run_for", seconds="7")
    does(opened, "broker:1", "pause", seconds="10")
    says(opened, ".kc .rules", "Every invariant has held so far")
    does(opened, "", "run_until_violation")
    opened.wait_for_selector(".kc .rules.broken")
    says(opened, ".kc .reply", "old-requests-are-refused")
    opened.click(".kc .rules .line >> nth=0")
    says(opened, ".kc .caption", "Invariant violated")
    opened.click(".kc .caption [data-do='why']")
    says(opened, ".kc .why", "checks_controller_epoch=True")
    picture(opened, "violation")
    opened.click(".kc [data-key='undo']")
    says(opened, ".kc .rules", "Every invariant has held so far")


def test_what_is_written_by_hand_is_text(opened: Any) -> None:
    """Markup and scripts in a znode are shown, in every view, and do nothing."""
    shows(opened, OBEDIENT)
    shouted: list[str] = []
    opened.on("dialog", lambda dialog: (shouted.append(dialog.message), dialog.dismiss()))
    shout = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    does(opened, "zookeeper", "write_znode", path="/brokers/ids/9", data=shout)
    does(opened, "zookeeper", "write_znode", path="/<b onclick=alert(3)>", data=shout)
    for view in VIEWS:
        opened.click(f".kc [data-tab='{view}']")
        opened.wait_for_selector(f".kc [data-view='{view}'] svg .part:visible")
    assert "onerror=alert(1)" in opened.inner_text(".kc .script pre")
    assert opened.locator(".kc img, .kc script, .kc b[onclick]").count() == 0
    assert shouted == []


def test_step_goes_on_while_its_step_is_played(opened: Any) -> None:
    """Each press lets time pass from the end on, and none plays the same steps again."""
    shows(opened, SETUP + "lab.kill(2)\n")
    count = "document.querySelector('.kc .script pre').textContent.split('lab.step()').length - 1"
    for presses in (1, 2, 3):
        opened.click(".kc .time [data-act='step']")
        opened.wait_for_function(f"() => {count} === {presses}")
    assert "fork(" not in opened.inner_text(".kc .script pre")


def test_a_click_on_the_crown_is_a_click_on_its_broker(opened: Any) -> None:
    shows(opened, KILLED)
    crown = opened.locator(".kc [data-id='crown']").bounding_box()
    opened.mouse.click(crown["x"] + crown["width"] / 2, crown["y"] + crown["height"] / 2)
    opened.wait_for_selector(".kc .menu:not([hidden]) .head")
    assert opened.inner_text(".kc .menu .head").startswith("Broker")
    opened.keyboard.press("Escape")
