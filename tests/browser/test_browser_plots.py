"""A plot in JupyterLab: its words and lines have the colours of the page, in the light theme and in the dark one."""

from io import BytesIO
from pathlib import Path
from typing import Any

import browser
import nbformat
import pytest
from tables import text

from kafka_ctl.paths import ROOT

pytest.importorskip("pyspark")
pytestmark = browser.needs_chromium
CELL = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from kafka_ctl.history.plots.picture import curve, legend, per_cent, picture, times
figure, axes = picture("How long partitions had no leader", "duration", "share of them")
curve(axes, range(1, 400), 1, "broker crash", ("#D55E00", "-"))
times(axes), per_cent(axes), legend(axes)
figure.alt = "Half of them took 200 ms."
figure
"""
DRAWN = """
from kafka_ctl_course.widgets import CurveWidget, GuessWidget
display(GuessWidget("05.a"))
CurveWidget("Two prices", "timeout (s)", [2, 6], {"wait": [2, 6]})
"""
"""A drawing of a lesson, beside a picture as every lesson has some."""
SVG = ".jp-OutputArea-output svg[role=img]"
BRIGHTNESS = text("browser_plots_brightness.js")
"""How bright the parts of a selector are, of 1, and the page that they stand on."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL), nbformat.v4.new_code_cell(DRAWN)])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, tmp_path / "plot.ipynb")
    return tmp_path


def look(page: Any, parts: str) -> Any:
    return page.evaluate(BRIGHTNESS, f"{SVG} {parts}")


def ground(page: Any) -> int:
    """How bright the ground of a drawing is on the screen, of 255."""
    image = pytest.importorskip("PIL.Image")
    place = page.locator(".jupyter-widgets img[src^='data:image/svg']").bounding_box()
    clip = {"x": place["x"] + 4, "y": place["y"] + 4, "width": 2, "height": 2}
    return int(image.open(BytesIO(page.screenshot(clip=clip))).convert("L").getpixel((0, 0)))


def test_a_plot_is_light_on_dark_in_the_dark_theme(folder: Path) -> None:
    pictures = ROOT / "artifacts" / "views"
    pictures.mkdir(parents=True, exist_ok=True)
    with browser.lab(folder) as server, browser.page(viewport={"width": 1280, "height": 900}) as page:
        assert browser.run_all(page, server, "plot.ipynb", 120)
        page.wait_for_selector(SVG)
        page.screenshot(path=pictures / "plot-light.png")
        light = look(page, "text")
        assert light["page"] > 0.9 and light["words"] and max(light["words"]) < 0.3
        drawn = page.locator(".jupyter-widgets img[src^='data:image/svg']")
        drawn.scroll_into_view_if_needed()
        assert ground(page) > 240
        page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
        page.wait_for_selector("body[data-jp-theme-light=false]", state="attached")
        page.wait_for_selector("#jupyterlab-splash", state="detached")
        page.screenshot(path=pictures / "plot-dark.png")
        dark, axes = look(page, "text"), look(page, "#patch_3 path, [id^=xtick] use, [id^=ytick] use")
        assert dark["page"] < 0.2 and min(dark["words"]) > 0.7
        assert axes["lines"] and min(axes["lines"]) > 0.7
        drawn.scroll_into_view_if_needed()
        page.wait_for_function(
            "() => getComputedStyle(document.querySelector('.jupyter-widgets img')).filter !== 'none'"
        )
        assert ground(page) < 40
