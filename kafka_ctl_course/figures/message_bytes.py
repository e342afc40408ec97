"""A message as a picture: its bytes in rows of eight, coloured by field, and the fields beside them.

Separate from `widgets.py` because a figure is drawn from bytes, without a widget.
"""

from __future__ import annotations

from kafka_ctl.wire.annotated import Annotated, Part, annotate
from kafka_ctl_course.figures.drawing import COLOURS, Drawing, label, svg

COLUMNS, CELL, ROW, LIST = 8, 30, 24, 18
FILLS = ("insync", "lag", "good_fill", "zoo", "off", "faint")
"""Neighbours among the fields have different ones of these."""


def message_bytes(message: bytes | str | Annotated, earlier: bytes | str | Annotated | None = None) -> Drawing:
    """A request as `annotate` takes it apart. Fields that `earlier`, an older version, does not have are framed.

    Raises BadInput where nothing can be recognised.
    """
    parts = message if isinstance(message, Annotated) else annotate(message)
    known = None if earlier is None else earlier if isinstance(earlier, Annotated) else annotate(earlier)
    fresh = [known is not None and part.field != "" and not _has(known, part) for part in parts]
    size = parts[-1].offset + len(parts[-1].raw)
    names = [_named(part, new) for part, new in zip(parts, fresh, strict=True)]
    drawn = [label(20, 22, parts.title, "bold")]
    for number, (part, new, name) in enumerate(zip(parts, fresh, names, strict=True)):
        fill = COLOURS[FILLS[number % len(FILLS)]]
        drawn += _cells(part, fill, new)
        drawn += _line(name, number, fill, new)
    rows = 1 + (size - 1) // COLUMNS
    height = 60 + max(rows * ROW, len(parts) * LIST)
    text = f"{parts}" + "".join(f"\nnew: {part.field}" for part, new in zip(parts, fresh, strict=True) if new)
    return Drawing(svg(70 + COLUMNS * CELL + 7 * max(map(len, names)), height, drawn), text)


def _has(known: Annotated, part: Part) -> bool:
    """True if an older version has a field of this name, wherever it stands in it."""
    return part.field.rpartition(".")[2] in {other.field.rpartition(".")[2] for other in known}


def _cells(part: Part, fill: str, new: bool) -> list[str]:
    edge, width = (COLOURS["bad"], 2.5) if new else (COLOURS["faint"], 1)
    drawn = []
    for place, byte in enumerate(part.raw, part.offset):
        x, y = 20 + CELL * (place % COLUMNS), 40 + ROW * (place // COLUMNS)
        drawn.append(
            f'<rect x="{x}" y="{y}" width="{CELL - 3}" height="{ROW - 3}" rx="3" fill="{fill}" stroke="{edge}" '
            f'stroke-width="{width}"><title>{part.field}</title></rect>'
        )
        drawn.append(
            f'<text x="{x + 5}" y="{y + 15}" font-family="monospace" fill="{COLOURS["ink"]}">{byte:02x}</text>'
        )
    return drawn


def _named(part: Part, new: bool) -> str:
    """The name of a field and its value, shortened."""
    value = "" if part.value is ... else str(part.value)
    text = f"{part.field.rpartition('.')[2]} {value}".rstrip()
    return (text if len(text) <= 52 else f"{text[:49]}...") + " (new)" * new


def _line(name: str, number: int, fill: str, new: bool) -> list[str]:
    """One field of the list: its colour, its name and its value."""
    x, y = 40 + COLUMNS * CELL, 40 + LIST * number
    box = f'<rect x="{x}" y="{y}" width="14" height="13" rx="2" fill="{fill}" stroke="{COLOURS["line"]}"/>'
    return [box, label(x + 22, y + 11, name, "bold" if new else "normal")]
