"""A plugin of pytest for nbval, which skips pictures: `-p tools.pictures` compares those in notebooks, too.

A PNG is compared by its pixels, since its bytes depend on who has packed it; an SVG is compared as text, as ever.
The progress that a slow check prints on a busy machine is not compared.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
from collections.abc import Callable

import pytest
from nbval.plugin import IPyNbCell

from tools.notebooks import PROGRESS

PNG = "image/png"
START = base64.b64encode(b"\x89PNG\r\n\x1a\n\0")[:11].decode()
"""The first characters of a PNG in a notebook."""
NEAR = 2
"""Steps of 255 by which a colour may differ: other processors round otherwise where lines are smoothed."""


class Picture(str):
    """A PNG as text for a report; equal to another one with the same pixels."""

    pixels: object

    def __new__(cls, coded: str) -> Picture:
        import numpy
        from PIL import Image

        with Image.open(io.BytesIO(base64.b64decode(coded))) as image:
            pixels = numpy.asarray(image.convert("RGBA")).astype(int)
        height, width, _ = pixels.shape
        digest = hashlib.sha256(pixels.tobytes()).hexdigest()[:16]
        made = super().__new__(cls, f"a picture of {width} x {height} pixels, digest {digest}")
        made.pixels = pixels
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Picture):
            return False
        mine, theirs = self.pixels, other.pixels
        return bool(mine.shape == theirs.shape and (abs(mine - theirs) <= NEAR).all())  # type: ignore[attr-defined, operator]

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let nbval compare the pictures of this cell."""
    if isinstance(item, IPyNbCell):
        item.parent.skip_compare = tuple(key for key in item.parent.skip_compare if key != PNG)


def pytest_configure(config: pytest.Config) -> None:
    """Let nbval see pixels where there are pictures."""
    if not hasattr(IPyNbCell.sanitize, "sees_pictures"):
        IPyNbCell.sanitize = _seeing(IPyNbCell.sanitize)


def _seeing(usual: Callable[[IPyNbCell, object], object]) -> Callable[[IPyNbCell, object], object]:
    def sanitize(cell: IPyNbCell, value: object) -> object:
        if isinstance(value, str) and value.startswith(START):
            try:
                return Picture(value)
            except (OSError, binascii.Error):
                pass  # it is none, so it is compared as text
        return usual(cell, PROGRESS.sub("", value) if isinstance(value, str) else value)

    sanitize.sees_pictures = True  # type: ignore[attr-defined]
    return sanitize
