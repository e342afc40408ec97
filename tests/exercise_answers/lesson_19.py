"""Large histories."""

from __future__ import annotations

from typing import Any

RIGHT: dict[str, list[Any]] = {
    "19.1": [18, 18.0],
    "19.2": ["intervals >= 2", "intervals > 1", "NOT intervals = 1"],
    "19.3": [0.6, 6 / 10],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "19.1": [
        (6, "Which part of an outage changes"),
        (24, "one session, with one timeout"),
        (12, "by how much it grows"),
        (0, "A broker that crashes says nothing"),
        (9, "the whole timeout"),
    ],
    "19.2": [
        ("intervals > 2", "Twice is at least twice"),
        ("intervals >= 1", "Once is not twice"),
        ("intervals = 2", "so more often as well"),
        ("interval >= 2", "no such column"),
        ("intervals >=", "cannot be asked"),
    ],
    "19.3": [
        (60, "ten times more"),
        (0.1, "a tenth of a bad month"),
        (-4, "ten less is not a tenth"),
        (10, "worse still"),
    ],
}
