"""Text of unknown origin, shown as what it is: a terminal obeys nothing in it, and nothing hides."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ud800-\\udfff]"
)
"""Control characters, what changes the direction of a text or has no width, ends of lines, halves of characters."""


def visible(text: str) -> str:
    """A text as one line in which nothing hides: what a terminal would obey instead of showing is escaped, `\\x1b`."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
