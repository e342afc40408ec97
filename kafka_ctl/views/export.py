"""A film as a file of its own: an SVG that plays without script, or one HTML page with the whole player.

Neither needs a network, a kernel or another file. The SVG plays inside `<img>` too; a reader who asks for
reduced motion, and any program that does not know CSS animation, sees its last frame. PNG and GIF are
drawn by a Chromium on this machine, where there is one: `.svg` and `.html` take a moment, a picture as PNG some
seconds, a GIF some more for its many pictures, and standard error says how far it is.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path
from threading import Event
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

from kafka_ctl.display import Countdown
from kafka_ctl.errors import BadInput, Unavailable, short, unavailable
from kafka_ctl.trace.record import Record
from kafka_ctl.views.dot import printable
from kafka_ctl.views.frames import Film, film, find_marks, relevant_to, views_of
from kafka_ctl.views.svg import SIZE, animated, explained, filmstrips, stacked, static_svg
from kafka_ctl.views.widget.payload import RECORDED, SHEET, Data, all_answers, payload, read_files, with_log
from kafka_ctl.writing import write_file

if TYPE_CHECKING:
    from PIL.Image import Image
    from playwright.sync_api import CDPSession, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")


SOON = 2.0
"""Seconds between two notes of how far the drawing is."""


def _draw(pictures: list[str]) -> list[bytes]:
    """Each SVG as PNG, at twice its size."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError as missing:
        raise unavailable("a PNG or GIF", "PNG and GIF need Playwright: pip install playwright") from missing
    if not (program := next(filter(None, map(shutil.which, BROWSERS)), None)):
        raise Unavailable("PNG and GIF need a Chromium on PATH, for example: apt-get install chromium")
    stopped = Event()
    with ThreadPoolExecutor(1) as thread:  # Playwright refuses a thread with a running loop: that of a notebook
        try:
            return thread.submit(_drawn, program, pictures, stopped).result()
        finally:
            stopped.set()  # Ctrl-C


def _drawn(program: str, pictures: list[str], stopped: Event) -> list[bytes]:
    """The pictures as PNG; of several, standard error says how many are drawn."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Ctrl-C ends Playwright's driver as well; its loop would report that after us.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            page, drawn = browser.new_page(), []
            chromium = page.context.new_cdp_session(page)
            countdown, total = Countdown(SOON), len(pictures)
            if total > 1:
                print(f"picture 0 of {total} drawn", file=sys.stderr, flush=True)
            for number, picture in enumerate(pictures):
                countdown(f"picture {number} of {total} drawn", number, total)
                if stopped.is_set():
                    break
                width, height = (math.ceil(float(size)) for size in SIZE.findall(picture)[0])
                size = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": False}
                chromium.send("Emulation.setDeviceMetricsOverride", size)
                page.set_content(f"<style>body{{margin:0}}svg{{display:block}}</style>{picture}")
                drawn.append(_shot(page, chromium, total > 1))
            return drawn
        finally:
            browser.close()


def _shot(page: Page, chromium: CDPSession, is_fast: bool) -> bytes:
    """The page as PNG. Compressing well, as Playwright always does, takes a quarter of the time of a GIF."""
    from playwright.sync_api import Error

    shot = {"format": "png", "optimizeForSpeed": is_fast}
    try:
        taken = chromium.send("Page.captureScreenshot", shot)
    except Error:  # seldom: "Unable to capture screenshot" of a page that was not painted yet
        page.evaluate("() => new Promise(requestAnimationFrame)")
        taken = chromium.send("Page.captureScreenshot", shot)
    return base64.b64decode(taken["data"])


def png(films: Sequence[Film], step: int | None = None) -> bytes:
    """The filmstrips, or one step, as PNG. Raises Unavailable without Playwright and a Chromium."""
    if step is not None:
        return _draw([one_step(films, step)])[0]
    print(f"a sheet of {len(films[0])} steps takes some seconds", file=sys.stderr, flush=True)
    return _draw([filmstrips([*map(explained, films)])])[0]


def gif(films: Sequence[Film]) -> bytes:
    """All frames as an animated GIF, those of several films below one another.

    Unavailable without Playwright, a Chromium and Pillow.
    """
    try:
        from PIL import Image
    except ImportError as missing:
        raise Unavailable("GIF needs Pillow: pip install pillow") from missing
    films = [*map(explained, films)]
    images = [
        Image.open(io.BytesIO(data)).convert("RGB")
        for data in _draw([stacked(films, [static_svg(film, i) for film in films]) for i in range(len(films[0]))])
    ]
    colours = _palette(images)
    shown = [image.quantize(palette=colours, dither=Image.Dither.NONE) for image in images]
    out = io.BytesIO()
    shown[0].save(out, "GIF", save_all=True, append_images=shown[1:], duration=1600, loop=0)
    return out.getvalue()


def _palette(images: list[Image]) -> Image:
    """The 256 most frequent colours of all these pictures: one palette for each takes ten times as long."""
    from PIL import Image

    rows = [image.reduce((1, 4)) for image in images]
    every = Image.new("RGB", (rows[0].width, sum(image.height for image in rows)))
    for number, image in enumerate(rows):
        every.paste(image, (0, number * image.height))
    counts = cast("list[tuple[int, tuple[int, ...]]]", every.getcolors(every.width * every.height))
    frequent: dict[tuple[int, ...], tuple[int, ...]] = {}
    for _, colour in sorted(counts, reverse=True):  # a finer step is lost: Pillow looks up six bits of each level
        frequent.setdefault(tuple(level >> 3 for level in colour), colour)
    palette = Image.new("P", (1, 1))
    palette.putpalette([level for colour in [*frequent.values()][:256] for level in colour])
    return palette


def one_step(films: Sequence[Film], step: int) -> str:
    """One step as SVG with its sentence, without legend; several films stand below one another.

    Raises BadInput if there is no such step.
    """
    if type(step) is not int or not 0 <= step < len(films[0]):
        raise BadInput(f"step {short(step)} does not exist; the steps are 0 to {len(films[0]) - 1}")
    return stacked(films, [static_svg(film, step, legend=False) for film in films])


KINDS = (".svg", ".html", ".png", ".gif")
STILLS = (".svg", ".png")
PAGES = (".html",)
"""The endings of a film's files, of those of one step, and of those of a film with prose."""


def export(
    records: Sequence[Record],
    path: str | Path,
    view: str | Sequence[str] = "cluster",
    step: int | None = None,
    **options: Any,
) -> Path:
    """Write the film of these records to a file and return its path; the ending gives the format.

    With `step`, the number of a step, `.svg` and `.png` are the picture of that step, for a slide.

    `.svg` plays by itself, without script; `.html` is the player in one file, with the lines of Kafka's log and the
    answers to "why?" when `generation` is given for a `Trace`; `.png` (a filmstrip) and `.gif` are drawn by a
    Chromium, through Playwright. Several views keep step; in pictures they stand below one another. Options are those
    of `film` in `views/frames.py`; a page also takes `marks`, names of steps (`film.html#step-NAME` opens there), and
    `prose`, a text with links to them: see `views/frames.py`. Raises BadInput for another ending and where nothing can
    be written, Unavailable when a tool is missing or the disk is full.
    """
    path = checked(path, step)
    views = views_of(view)
    options.setdefault("is_relevant", relevant_to(views))
    lines, marks, prose = (options.pop(name, None) for name in ("lines", "marks", "prose"))
    if (marks or prose) and path.suffix != ".html":
        raise BadInput(f"marks and prose are for a .html page, not for {short(path.name)}")
    if not isinstance(prose, (str, NoneType)):
        raise BadInput(f"prose cannot be {short(prose)}; it must be a text")
    films = [film(records, name, ("step", "marks", "prose"), **options) for name in views]
    if path.suffix != ".html":
        return write(films, path, step=step)
    data, runs = with_log(films, records, options, lines)
    if runs:
        data |= all_answers(films, runs)
    if marks:
        data["marks"] = find_marks(films[0], records, marks)
    return write_file(path, page_of(data, prose or ""))


def checked(path: str | Path, step: int | None = None, kinds: Sequence[str] = KINDS) -> Path:
    """The path of a file for a film, or for one step. Raises BadInput if it is no path, or for another ending."""
    if not isinstance(path, (str, os.PathLike)):
        raise BadInput(f"cannot export {short(path)}: the path of a file is expected")
    path = Path(path)
    if path.suffix not in (kinds := kinds if step is None else STILLS):
        what = short(path.name) if step is None else f"one step as {short(path.name)}"
        raise BadInput(f"cannot export {what}: the ending {short(path.suffix)} is not one of {', '.join(kinds)}")
    return path


def write(films: Sequence[Film], path: Path, data: Data | None = None, step: int | None = None) -> Path:
    """Write films, or one `step` of them, to a file as its ending says; return its path.

    `data` are the films as an HTML page needs them.
    """
    if path.suffix == ".svg":
        return write_file(path, animated([*map(explained, films)]) if step is None else one_step(films, step))
    if path.suffix == ".html":
        return write_file(path, page_of(data or payload(films)))
    return write_file(path, png(films, step) if path.suffix == ".png" else gif(films))


def page_of(data: Data, prose: str = "") -> str:
    """The page of films that are data already, opened at step `index` of it; `page.html` is the template.

    `prose` is a text beside them whose links lead to the `marks` of the data.
    """
    title, steps = data["views"][0]["title"], [frame["caption"] for frame in data["frames"]]
    fill = {
        "title": escape(f"{title}: {len(steps)} steps"),
        "sheet": SHEET,
        "prose": f'<section class="prose">{prose_html(prose, data.get("marks", {}))}</section>' if prose else "",
        "steps": "".join(f"<li>{escape(step)}</li>" for step in steps),
        "player": RECORDED,
        "film": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    }
    form = read_files("page.html")
    return re.sub(r"<!--(\w+)-->", lambda slot: fill[slot[1]], form)


_LINK = re.compile(r"\[([^\[\]]+)\]\(#([\w-]+)\)")
"""A link to a step, `#step-NAME`, in the prose beside a page's film."""


def prose_html(text: str, marks: Mapping[str, int]) -> str:
    """Plain text with links such as `[here](#step-race-lost)` as HTML: paragraphs, `# headings`, lists of `- lines`.

    Raises BadInput if a link has no mark.
    """

    def link(found: re.Match[str]) -> str:
        if found[2] not in (links := [f"step-{name}" for name in marks]):
            known = ", ".join(f"#{name}" for name in links) or "none"
            raise BadInput(f"the text links to {short('#' + found[2])}, which is no step with a mark; known: {known}")
        return f'<a href="#{found[2]}">{found[1]}</a>'

    parts = [part.strip() for part in re.split(r"\n\s*\n", printable(text)) if part.strip()]
    return "".join(_block(_LINK.sub(link, escape(part, quote=False))) for part in parts)


def _block(text: str) -> str:
    """One part of a text in HTML: a heading, a list, or a paragraph, with `code` in it."""
    text = re.sub("`([^`]+)`", r"<code>\1</code>", text)
    marks, _, heading = text.partition(" ")
    if marks in ("#", "##") and "\n" not in text:
        return f"<h{len(marks)}>{heading}</h{len(marks)}>"
    items = text.split("\n")
    if all(item.startswith("- ") for item in items):
        return f"<ul>{''.join(f'<li>{item[2:]}</li>' for item in items)}</ul>"
    return f"<p>{text}</p>"
