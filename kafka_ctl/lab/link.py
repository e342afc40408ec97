"""A run as the end of an address: `try.html#story=lab+brokers%3D3...&step=12`, opened by the site's try-it page.

The text is the story, percent-encoded, and `step` the picture of the player to begin with (0 is the first). It can be
read, cut and changed by hand; no server sees it, for what follows `#` is not sent.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, quote_plus

from kafka_ctl.cluster import parse_int
from kafka_ctl.errors import BadInput, short

PAGE = "try.html"
"""The page's name in the site."""


class Link(NamedTuple):
    """A story and where to look at it: the number of a picture, or None for the last."""

    story: str
    step: int | None = None

    def fragment(self) -> str:
        """What follows `#`."""
        step = "" if self.step is None else f"&step={self.step}"
        return f"story={quote_plus(self.story.strip(), safe='/:,')}{step}"


def parse_fragment(text: str) -> Link | None:
    """The link behind a `#`; None where there is no story. Raises BadInput for a step that is no number."""
    given = dict(parse_qsl(text.removeprefix("#")))
    if not given.get("story", "").strip():
        return None
    step = given.get("step")
    number = None if step is None else parse_int(step)
    if step is not None and (number is None or number < 0):
        raise BadInput(f"step cannot be {short(step)}; it is the number of a picture, 0 for the first")
    return Link(given["story"] + "\n", number)
