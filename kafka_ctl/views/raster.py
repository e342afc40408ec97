"""Films as PNG and GIF: drawn by a Chromium on this machine, where there is one."""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Sequence

from kafka_ctl.errors import Unavailable, unavailable
from kafka_ctl.views.frames import Film
from kafka_ctl.views.static_svg import SIZE, filmstrips, stacked, static_svg

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")


def _draw(pictures: list[str]) -> list[bytes]:
    """Each SVG as PNG, at twice its size."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as missing:
        raise unavailable("a PNG or GIF", "PNG and GIF need Playwright: pip install playwright") from missing
    if not (program := next(filter(None, map(shutil.which, BROWSERS)), None)):
        raise Unavailable("PNG and GIF need a Chromium on PATH, for example: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            page = browser.new_page(device_scale_factor=2)
            drawn = []
            for picture in pictures:
                width, height = (math.ceil(float(size)) for size in SIZE.findall(picture)[0])
                page.set_viewport_size({"width": width, "height": height})
                page.set_content(f"<style>body{{margin:0}}svg{{display:block}}</style>{picture}")
                drawn.append(page.screenshot())
            return drawn
        finally:
            browser.close()


def png(films: Sequence[Film]) -> bytes:
    """The filmstrips as PNG; Unavailable without Playwright and a Chromium."""
    return _draw([filmstrips(films)])[0]


def gif(films: Sequence[Film], seconds: float = 1.6) -> bytes:
    """All frames as an animated GIF, those of several films below one another.

    Unavailable without Playwright, a Chromium and Pillow.
    """
    try:
        from PIL import Image
    except ImportError as missing:
        raise Unavailable("GIF needs Pillow: pip install pillow") from missing
    images = [
        Image.open(io.BytesIO(data)).convert("P", palette=Image.Palette.ADAPTIVE)
        for data in _draw([stacked(films, [static_svg(film, i) for film in films]) for i in range(len(films[0]))])
    ]
    out = io.BytesIO()
    images[0].save(out, "GIF", save_all=True, append_images=images[1:], duration=int(seconds * 1000), loop=0)
    return out.getvalue()
