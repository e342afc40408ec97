"""The player in a real JupyterLab in a real Chromium: what a learner does with it.

The pictures it takes of every view in both themes go to `artifacts/`, for people to look at.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
from filmed import NASTY, every_kind, failover, sixty
from labs import play

from kafka_ctl import Lab
from kafka_ctl.museum import find
from kafka_ctl.paths import ROOT
from kafka_ctl.views.export import export, page_of
from kafka_ctl.views.frames import VIEWS, film
from kafka_ctl.views.widget.payload import payload

pytestmark = browser.needs_chromium

CELL = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
from filmed import failover
from kafka_ctl.views.widget.player import player
shown = player(failover(), {tuple(VIEWS)!r})
shown
"""


def picture(page: Any, name: str) -> None:
    page.screenshot(path=browser.ARTIFACTS / "views" / f"{name}.png")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    """An exported page with all views, opened from its file; nothing may be asked of any network."""
    path = export(failover(), tmp_path / "film.html", view=list(VIEWS))
    with browser.page(viewport={"width": 1280, "height": 860}) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector(".kc[data-step='0']")
        yield page
        assert asked == [path.as_uri()]
        assert wrong == []


def at(page: Any, step: int) -> None:
    page.wait_for_selector(f".kc[data-step='{step}']")


def test_a_learner_plays_in_jupyterlab(tmp_path: Path) -> None:
    """Run all, next, back, a jump: picture and caption follow, and the kernel knows the step."""
    made = film(failover())
    with browser.ran(tmp_path, CELL, "") as page:
        page.wait_for_selector(".kc [data-view='cluster'] .part")
        first = page.inner_html(".kc [data-view='cluster']")
        page.click(".kc [data-do='next']")
        at(page, 1)
        assert page.inner_html(".kc [data-view='cluster']") != first
        reported = page.inner_text(".kc .caption")
        assert "Brokers 1, 2 and 3 start." in reported
        page.click(".kc [data-do='back']")
        at(page, 0)
        page.select_option(".kc .kinds", "fault")
        page.click(".kc [data-do='jump']")
        fault = next(f for f in made.frames if f.kind == "fault")
        page.wait_for_function(f"() => document.querySelector('.kc .caption').innerText.includes({fault.caption!r})")
        picture(page, "jupyterlab-light")
        page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
        page.wait_for_selector(".kc[data-theme='dark']")
        page.wait_for_selector("#jupyterlab-splash", state="detached")
        picture(page, "jupyterlab-dark")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_is_drawn(opened: Any, theme: str) -> None:
    """In both themes; each shows the same step."""
    opened.emulate_media(color_scheme=theme)
    opened.wait_for_selector(f".kc[data-theme='{theme}']")
    opened.fill(".kc .number", "57")
    opened.press(".kc .number", "Enter")
    at(opened, 57)
    for view in VIEWS:
        opened.click(f".kc [data-tab='{view}']")
        opened.wait_for_selector(f".kc [data-view='{view}'] svg .part", state="visible")
        assert opened.locator(".kc .view:visible").count() == 1
        picture(opened, f"{view}-{theme}")


def test_the_keyboard_does_everything(opened: Any) -> None:
    """Arrows, Home, End, jump, speed and play, with the focus anywhere in the player."""
    last = opened.evaluate("() => +document.querySelector('.kc').dataset.last")
    opened.focus(".kc")
    for key, step in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last), ("Home", 0)):
        opened.keyboard.press(key)
        at(opened, step)
    opened.keyboard.press("+")
    opened.wait_for_function("() => document.querySelector('.kc .speed').value === '2'")
    opened.keyboard.press("j")
    opened.wait_for_function("() => document.querySelector('.kc .caption').innerText.includes('killed')")
    opened.keyboard.press("Home")
    opened.keyboard.press("+")
    opened.keyboard.press("Space")
    opened.wait_for_selector(".kc [data-do='play'][aria-label^='Pause']")
    opened.wait_for_function("() => +document.querySelector('.kc').dataset.step >= 2")  # it may not stand still there
    opened.keyboard.press("Space")
    opened.wait_for_selector(".kc [data-do='play'][aria-label^='Play']")
    opened.keyboard.press("l")
    opened.keyboard.press("End")
    opened.keyboard.press("ArrowLeft")
    at(opened, last - 1)
    opened.keyboard.press("Space")
    opened.wait_for_function(f"() => +document.querySelector('.kc').dataset.step < {last - 1}")  # it began again
    opened.keyboard.press("Space")


def test_nothing_glides_in_a_picture_of_a_thousand_parts(tmp_path: Path) -> None:
    """It would stutter."""
    made = film(sixty(), "spacetime")
    assert len(made.scene.parts) > 900
    path = tmp_path / "film.html"
    path.write_text(page_of(payload([made])), encoding="utf-8")
    with browser.page() as opened:
        opened.goto(path.as_uri())
        opened.wait_for_selector(".kc[data-step='0'] svg.still")
        motion = "() => getComputedStyle(document.querySelector('.kc [data-id=band]')).transitionDuration"
        assert set(opened.evaluate(motion).split(", ")) == {"0s"}


def test_every_control_has_a_name(opened: Any) -> None:
    """For who hears the page; the caption is announced."""
    unnamed = opened.evaluate(
        "() => [...document.querySelectorAll('.kc button, .kc input, .kc select')]"
        ".filter((e) => !(e.ariaLabel || e.textContent)).length"
    )
    assert unnamed == 0
    assert opened.locator(".kc [role=status]").count() == 1
    reported = opened.locator(".kc svg[role=img]").evaluate_all("all => all.map((one) => one.ariaLabel)")
    opened.click(".kc [data-do='last']")
    later = opened.locator(".kc svg[role=img]").evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert len(reported) == len(VIEWS) and all(len(text) > 30 for text in later)
    assert all(one != two for one, two in zip(reported, later, strict=True)), "every frame has words of its own"


def test_a_click_selects_in_every_view(opened: Any) -> None:
    opened.keyboard.press("End")
    opened.click(".kc [data-do='last']")
    opened.click(".kc [data-of='partition:orders-1'] >> nth=0")
    opened.wait_for_selector(".kc .chosen")
    assert opened.locator(".kc [data-view='cluster'] .chosen").count() >= 3
    opened.focus(".kc")
    opened.keyboard.press("Escape")
    opened.wait_for_function("() => !document.querySelector('.kc .chosen')")


def test_a_click_on_a_request_marks_it_in_every_view(opened: Any) -> None:
    """Its pill in the cluster, its arrow in space and time."""
    opened.select_option(".kc .kinds", "request")
    opened.click(".kc [data-do='jump']")
    opened.click(".kc [data-view='cluster'] .travel .pill >> nth=0")
    opened.wait_for_selector(".kc [data-view='cluster'] .travel .chosen")
    assert opened.locator(".kc [data-view='spacetime'] .chosen").count() >= 1
    opened.click(".kc [data-do='next']")
    opened.wait_for_function("() => !document.querySelector('.kc .travel .chosen')")
    opened.click(".kc [data-view='cluster'] > svg", position={"x": 3, "y": 3})
    opened.wait_for_function("() => !document.querySelector('.kc .chosen')")


def test_a_step_leads_to_its_cause(opened: Any) -> None:
    opened.fill(".kc .number", "57")
    opened.press(".kc .number", "Enter")
    at(opened, 57)
    cause = int(opened.inner_text(".kc .cause").rpartition(" ")[2])
    opened.click(".kc .cause")
    at(opened, cause)
    assert cause < 57


def test_stars_glide_and_stand_still_when_asked(opened: Any) -> None:
    """A moved leader is animated, but not for readers who want no motion."""
    moved = ".kc [data-id^='star:']:not(.jumped)"
    step = 0
    while not opened.locator(moved).count():
        step += 1
        opened.click(".kc [data-do='next']")
        at(opened, step)
    motion = f"() => getComputedStyle(document.querySelector(`{moved}`)).transitionDuration"
    assert opened.evaluate(motion).split(",")[0] != "0s"
    opened.emulate_media(reduced_motion="reduce")
    assert set(opened.evaluate(motion).split(", ")) == {"0s"}


@pytest.mark.parametrize("width", [1280, 811])
def test_two_runs_are_stepped_together(tmp_path: Path, width: int) -> None:
    """They stand side by side, the button leads to the first difference; who disagrees has the colour of errors."""
    with find("KAFKA-7235a").show() as run:
        shown = run.side_by_side()
        path = shown.export(tmp_path / "both.html")
    with browser.page(viewport={"width": width, "height": 900}) as page:
        page.goto(path.as_uri())
        at(page, 0)
        assert page.locator(".kc .view:visible h4").all_inner_texts() == ["With the bug", "With the fix"]
        left, right = (drawn.bounding_box() for drawn in page.locator(".kc .view > svg").all())
        assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"] and left["width"] == right["width"]
        assert page.locator(".kc .mark.m-parted").count() == 1
        page.click(".kc [data-do='parted']")
        at(page, shown.parted or 0)
        assert "First difference." in page.inner_text(".kc .caption")
        page.press(".kc", "End")
        at(page, len(shown) - 1)
        logged = page.locator(".kc .differs")
        assert "broker 3: not notified" in logged.inner_text()
        in_error_colour = """(said) => {
          const sample = said.parentElement.appendChild(document.createElement('i'));
          sample.style.color = 'var(--kc-bad)';
          const same = getComputedStyle(said).color === getComputedStyle(sample).color;
          sample.remove();
          return same;
        }"""
        assert logged.evaluate(in_error_colour)
        looks = [
            page.locator(f".kc [data-view='{side}'] [data-id='replica:orders-0@3']").get_attribute("class")
            for side in ("left", "right")
        ]
        assert ["s-differs" in (look or "") for look in looks] == [True, False]
        picture(page, f"beside-{width}")


def test_each_of_two_runs_is_asked_why(tmp_path: Path) -> None:
    """A button for each run that takes the step; the answer begins with the run's name, and goes with the step."""
    with find("KAFKA-7235a").show() as run:
        shown = run.side_by_side()
        path = shown.export(tmp_path / "both.html")
    with browser.page(viewport={"width": 811, "height": 900}) as page:
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(path.as_uri())
        at(page, 0)
        page.click(".kc [data-do='parted']")
        at(page, shown.parted or 0)
        asked = page.locator(".kc .caption [data-do='why']")
        assert [one.get_attribute("aria-label").partition("? ")[2] for one in asked.all()] == ["With the bug"]
        asked.click()
        assert page.inner_text(".kc .why h4").startswith("With the bug: Controller 1")
        page.click(".kc [data-do='back']")
        page.wait_for_selector(".kc .why", state="hidden")
        assert asked.all_inner_texts() == ["why? With the bug", "why? With the fix"]
        for name, button in zip(("With the bug", "With the fix"), asked.all(), strict=True):
            button.focus()
            page.keyboard.press("Enter")
            page.wait_for_function(
                "name => document.querySelector('.kc .why h4')?.textContent.startsWith(name + ': ')", arg=name
            )
            assert "In Kafka" in page.inner_text(".kc .why")
            page.click(".kc .why .shut")
            page.wait_for_selector(".kc .why", state="hidden")
        assert wrong == []


def test_scripts_in_names_do_not_run(tmp_path: Path) -> None:
    """Neither in the player nor in the pictures it shows."""
    films = [film(every_kind(NASTY), view, is_relevant=lambda record: True) for view in VIEWS]
    path = tmp_path / "film.html"
    path.write_text(page_of(payload(films)), encoding="utf-8")
    with browser.page() as opened:
        shouted: list[str] = []
        opened.on("dialog", lambda dialog: (shouted.append(dialog.message), dialog.dismiss()))
        opened.goto(path.as_uri())
        opened.wait_for_selector(".kc[data-step='0']")
        for step in range(1, len(films[0])):
            opened.click(".kc [data-do='next']")
            at(opened, step)
        assert shouted == []
        assert "<script>alert" in opened.inner_text(".kc .caption") or "script" in opened.inner_text(".kc")


def test_an_exported_lab_has_its_log_and_its_answers(tmp_path: Path) -> None:
    """Nobody stands behind the page, and yet it can be asked; what somebody wrote by hand is text."""
    with Lab(brokers=3, seed=7) as lab:
        play(lab, "create_topic orders partitions=4 replication_factor=3; settle; kill 1; settle")
        lab.write_znode("/brokers/ids/9", NASTY)
        path = lab.export(tmp_path / "failover.html")
    with browser.page(viewport={"width": 1366, "height": 768}) as page:
        wrong: list[str] = []
        page.on("request", lambda request: wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri())
        page.wait_for_selector(".kc[data-step='0']")
        page.select_option(".kc .kinds", "election")
        page.click(".kc [data-do='jump']")
        page.click(".kc .caption [data-do='why']")
        assert "first assigned replica" in page.inner_text(".kc .why")
        assert page.locator(".kc .why .source .ran").count() >= 3
        picture(page, "exported")
        page.keyboard.press("Escape")
        later = page.locator(".kc .log .line:has-text('from OfflinePartition to OnlinePartition') >> nth=0")
        while not later.count():  # the log shows lines up to this step
            page.click(".kc [data-do='next']")
        page.click(".kc [data-do='next']")
        later.click()
        assert "Offline → Online" in page.inner_text(".kc .caption")
        assert page.locator(".kc .log .line.here").count() >= 1
        step = page.get_attribute(".kc", "data-step")
        page.click(".kc [data-do='first']")
        page.fill(".kc .number", step)
        page.press(".kc .number", "Enter")
        inside = """() => { const log = document.querySelector('.kc .log').getBoundingClientRect();
            const here = document.querySelector('.kc .log .here').getBoundingClientRect();
            return log.top <= here.top && here.top < log.bottom; }"""
        page.wait_for_function(inside)  # the lines of the step are in sight
        assert wrong == [path.as_uri()]


def test_pictures_for_slides(tmp_path: Path) -> None:
    """A PNG of all views, and a GIF with every frame of the first."""
    image = pytest.importorskip("PIL.Image")
    strip = image.open(export(failover(), tmp_path / "film.png", ("cluster", "timeline"), limit=4))
    assert strip.format == "PNG" and strip.width > 1000 and len(strip.convert("RGB").getcolors(1_000_000)) > 20
    moving = image.open(export(failover(), tmp_path / "film.gif", ("cluster", "timeline"), limit=4))
    assert (moving.format, moving.n_frames) == ("GIF", 5)


def test_an_animated_svg_plays_inside_an_image(tmp_path: Path) -> None:
    """Where no script ever runs: two moments differ."""
    export(failover(), tmp_path / "film.svg", view="partition")
    (tmp_path / "page.html").write_text("<img src=film.svg width=800>")
    with browser.page() as opened:
        opened.goto((tmp_path / "page.html").as_uri())
        opened.wait_for_function("() => document.images[0].complete && document.images[0].naturalWidth > 0")
        first = opened.screenshot()
        for _ in range(50):
            opened.wait_for_timeout(200)
            if opened.screenshot() != first:
                break
        else:
            pytest.fail("the picture stands still")
