"""The frame of every page of the site: its head, the ways to the other parts, the field to search in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape, unescape
from pathlib import Path
from string import Template
from textwrap import shorten

from pygments.formatters import HtmlFormatter

PAGE = Path(__file__).with_name("page")
SITE = "The Kafka controller, taught"
ABOUT = 160
"""The most characters of a description."""
PREFIX = "code-"
"""Of the classes of coloured code: `kc`, of Pygments, is a player here."""
FRAME = Template((PAGE / "frame.html").read_text(encoding="utf-8"))


def write_file(path: Path, text: str) -> None:
    """Write a file of the site, with the folders that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def framed(title: str, main: str, root: str = "", beside: str = "", about: str = "") -> str:
    """A page as HTML; `root` leads from it to the site's folder, `beside` is what stands left of `main`.

    `about` describes the page where its link is shown; without it the first paragraph of `main` does.
    """
    first = re.search("<p>(.+?)</p>", main, re.DOTALL)
    about = about or unescape(re.sub("<[^>]+>", "", first[1] if first else title))
    title = title if title == SITE else f"{title} - {SITE}"
    about = escape(shorten(about, ABOUT, placeholder=" …"))
    return FRAME.substitute(title=escape(title), about=about, main=main, root=root, beside=beside)


def contents(headings: Iterable[tuple[str, str]]) -> str:
    """Links to the headings of a page, given as address and words, to stand beside it."""
    links = "".join(f'<li><a href="{escape(address)}">{escape(words)}</a></li>' for address, words in headings)
    return f'<nav class="contents" aria-label="On this page"><ul>{links}</ul></nav>' if links else ""


def style() -> str:
    """The style sheet of the pages, with the colours of code in both themes."""
    light, dark = (
        HtmlFormatter(style=name, classprefix=PREFIX).get_style_defs("pre") for name in ("default", "github-dark")
    )
    own = (PAGE / "page.css").read_text(encoding="utf-8")
    return f"{own}{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
