"""The legend under a picture: what each sign and outline means, so that no colour has to be remembered."""

from __future__ import annotations

from kafka_ctl.views.scene import Box, Part, Scene, Text, box

_REPLICAS = (
    ("leader", "star", "leader"),
    ("insync", "dot", "in sync"),
    ("lagging", "ring", "out of sync"),
    ("offline", "cross", "offline"),
    ("new", "plus", "new"),
)
_MARKS = (
    ("preferred", "star", "preferred leader"),
    ("crown", "crown", "controller"),
    ("otherwise", "differs", "does not agree"),
)

NARROW, ROW = 560, 22
"""Pixels: a legend that is wider goes on in another row; how high a row is."""


def add_legend(scene: Scene, counted: bool = False) -> None:
    """Put the legend of the cluster picture below it, in as many rows as it needs."""
    top = scene.height - scene.offset[1] + 6
    first_row, first = top, 8.0 - scene.offset[0]
    left = first
    end = max(scene.width, NARROW) - scene.offset[0] - 8
    for style, glyph, text in _REPLICAS:
        width = 30 + len(text) * 6.5
        if left + width > end:
            left, top = first, top + ROW
        scene.add(
            Part(
                f"legend:{style}",
                Box(left, top, width, 18),
                (box(left, top, width, 18, 5),),
                (Text(left + 20, top + 12.5, text, 11.5, "start"),),
                f"plate {style}",
                (left + 11, top + 9, 0.9),
                glyph,
            )
        )
        left += width + 8
    for style, glyph, text in _MARKS[2:] if counted else _MARKS:
        if left + 20 + len(text) * 6.3 > end:
            left, top = first, top + ROW
        scene.add(
            Part(
                f"legend:{style}",
                Box(left, top, 20, 18),
                (),
                (Text(left + 20, top + 12.5, text, 11.5, "start"),),
                f"{style} note",
                (left + 9, top + 9, 0.8),
                glyph,
            )
        )
        left += 26 + len(text) * 6.3
    scene.height = top + ROW + scene.offset[1] + 4
    scene.width = max(scene.width, NARROW if top > first_row else left + scene.offset[0] + 8)
