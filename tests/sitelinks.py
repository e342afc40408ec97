"""The links of the built site's own pages: what they lead to, and whether it is there."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, unquote, urljoin, urlsplit

from kafka_ctl.lab.story import parse_fragment

HERE = "http://127.0.0.1/"


class Page(HTMLParser):
    """The links, the anchors and the number of figures of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.figures = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.figures += tag == "figure"
        self.anchors |= {given["id"] or ""} if "id" in given else set()
        self.links += [given[name] or "" for name in ("href", "src", "srcset", "action") if name in given]


@functools.cache
def pages(folder: Path) -> dict[str, Page]:
    """The site's own pages by their paths; those of JupyterLite have another frame."""
    found = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*.html")}
    made = {name: Page(text) for name, text in sorted(found.items()) if "page.css" in text}
    made["search.html"].links += [address for address, *_ in json.loads((folder / "search.json").read_text("utf-8"))]
    return made


def wrong(name: str, known: dict[str, Page], folder: Path) -> Iterator[str]:
    """Each link of a page that does not lead anywhere; addresses of other places are not asked."""
    for link in known[name].links:
        address = urlsplit(urljoin(HERE + name, link))
        target, part = unquote(address.path.removeprefix("/")), unquote(address.fragment)
        file = f"files/{parse_qs(address.query)['path'][0]}" if target == "lab/index.html" else target
        if address.netloc != urlsplit(HERE).netloc:
            continue
        if not (folder / file).is_file():
            yield f"{name}: {link}"
        elif part.startswith("story="):
            if parse_fragment(address.fragment) is None:
                yield f"{name}: {link} names no run"
        elif part and part not in known[target].anchors:
            yield f"{name}: {link} names no heading"
