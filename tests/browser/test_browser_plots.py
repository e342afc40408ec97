"""Plots and drawings in JupyterLab: dark on light, light on dark in the dark theme, and never scaled."""

from io import BytesIO
from pathlib import Path
from typing import Any

import browser
import pytest

from kafka_ctl.paths import ROOT

pytest.importorskip("pyspark")
pytestmark = browser.needs_chromium
CELL = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from kafka_ctl.history.plots.picture import curve, named_shares, picture
figure, axes = picture("How long partitions had no leader", "duration", "share of them")
curve(axes, range(1, 400), 1, "broker crash", ("#D55E00", "-"))
named_shares(axes)
figure.alt = "Half of them took 200 ms."
figure
"""
DRAWN = """
from kafka_ctl_course.widgets import CurveWidget, GuessWidget
display(GuessWidget("05.a"))
CurveWidget("Two prices", "timeout (s)", [2, 6], {"wait": [2, 6]})
"""
"""A drawing of a lesson, beside a picture as every lesson has some."""
IMAGES = ".jp-OutputArea-output img[src^='data:image/svg']"
THEME = "() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})"
FULL = "selector => [...document.querySelectorAll(selector)].every((one) => one.width === one.naturalWidth)"


def ground(page: Any, image: Any) -> int:
    """How bright the ground of an image is on the screen, of 255."""
    pillow = pytest.importorskip("PIL.Image")
    image.scroll_into_view_if_needed()
    place = image.bounding_box()
    clip = {"x": place["x"] + 3, "y": place["y"] + 3, "width": 2, "height": 2}
    return int(pillow.open(BytesIO(page.screenshot(clip=clip))).convert("L").getpixel((0, 0)))


def test_a_picture_is_light_on_dark_in_the_dark_theme(tmp_path: Path) -> None:
    with browser.ran(tmp_path, CELL, DRAWN, seconds=120) as page:
        page.wait_for_function("selector => document.querySelectorAll(selector).length === 2", arg=IMAGES)
        images = [page.locator(IMAGES).nth(n) for n in (0, 1)]
        page.screenshot(path=browser.ARTIFACTS / "views" / "plot-light.png")
        assert [ground(page, image) > 240 for image in images] == [True, True]
        page.evaluate(THEME)
        page.wait_for_selector("body[data-jp-theme-light=false]", state="attached")
        page.wait_for_selector("#jupyterlab-splash", state="detached")
        for image in images:
            page.wait_for_function("one => getComputedStyle(one).filter !== 'none'", arg=image.element_handle())
            assert ground(page, image) < 40
        page.screenshot(path=browser.ARTIFACTS / "views" / "plot-dark.png")
        page.set_viewport_size({"width": 560, "height": 900})
        assert page.evaluate(FULL, IMAGES)
