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
_MARKS = (("preferred", "star", "preferred leader"), ("crown", "crown", "controller"))


def add_legend(scene: Scene, counted: bool = False) -> None:
    """Put the legend of the cluster picture below it."""
    top = scene.height - scene.offset[1] + 6
    left = 8.0 - scene.offset[0]
    for style, glyph, text in _REPLICAS:
        width = 30 + len(text) * 6.5
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
    for style, glyph, text in () if counted else _MARKS:
        scene.add(
            Part(
                f"legend:{style}",
                Box(left, top, 20 + len(text) * 6.3, 18),
                (),
                (Text(left + 20, top + 12.5, text, 11.5, "start"),),
                f"{style} note",
                (left + 9, top + 9, 0.8),
                glyph,
            )
        )
        left += 26 + len(text) * 6.3
    scene.height += 32
    scene.width = max(scene.width, left + scene.offset[0] + 8)
