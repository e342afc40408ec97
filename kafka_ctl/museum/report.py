"""An exhibit in words: what happened, the lines that decide it, what noticed it, and the same story mended."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kafka_ctl.museum.exhibit import Showing
from kafka_ctl.museum.exhibits import EXHIBITS
from kafka_ctl.museum.questions import Question

WIDTH = 100
LINE, MOST_LINES = 180, 16
"""How much of a trace's line is told, and how many of the decisive ones."""


def index() -> str:
    """All exhibits, one a line: number, ticket, title."""
    return "\n".join(f"{n:>3}  {e.name:<12}  {e.title}" for n, e in enumerate(EXHIBITS, 1))


def tell(showing: Showing) -> str:
    """Both runs of an exhibit as text."""
    exhibit = showing.exhibit
    changed = ", ".join(f"{field}={value}" for field, value in exhibit.fix.items())
    parts = [
        f"{exhibit.name}  {exhibit.title}",
        _paragraph(exhibit.sentence),
        *map(_paragraph, exhibit.tale.split("\n\n")),
        _paragraph(f"Releases with it: {exhibit.releases}."),
        f"The story, with Kafka {exhibit.generation}:",
        textwrap.indent(exhibit.commands.rstrip(), "  "),
        "What decides it:",
        _lines(showing.decisive(showing.broken)),
        *_caught(showing),
        f"The same story with {changed}:",
        _lines(showing.decisive(showing.mended)),
        *_mended(showing),
        _paragraph(exhibit.task) + f"\n  kafka-ctl museum {exhibit.name} --story > mine.txt; kafka-ctl run mine.txt",
        f"Read on: {exhibit.link}\n         kafka_ctl/{exhibit.source} asks for {', '.join(exhibit.fix)}",
    ]
    return "\n\n".join(parts)


def verdict(showing: Showing) -> str:
    """One line: whether the bug shows, and whether the run without it is sound."""
    shows = "shows" if showing.is_caught else "DOES NOT SHOW"
    sound = "sound" if showing.is_sound else "NOT SOUND"
    return f"{showing.exhibit.name:<12}  {shows}, and is {sound} with the fix"


def _caught(showing: Showing) -> Iterator[str]:
    """What noticed the bug."""
    asked = showing.exhibit.caught_by
    if isinstance(asked, Question):
        assert showing.answers is not None
        yield f"{asked.text}\n  {showing.answers[0]}"
    elif showing.violations:
        first = showing.violations[0]
        more = len(showing.violations) - 1
        text = f"Broken: {first.invariant} {first.name}, by record {first.seq}: {first.text}"
        yield _paragraph(text + f", and {more} more" * bool(more))
    else:
        yield f"Nothing: invariant {asked} holds."


def _mended(showing: Showing) -> Iterator[str]:
    """What the other run has to say to that."""
    if isinstance(showing.exhibit.caught_by, Question):
        assert showing.answers is not None
        yield f"{showing.exhibit.caught_by.text}\n  {showing.answers[1]}"
    yield "Every invariant holds." if showing.is_sound else "\n".join(map(str, showing.mended.violations))


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH)


def _lines(lines: list[str]) -> str:
    told = [f"  {line}" if len(line) <= LINE else f"  {line[:LINE]} ..." for line in lines[:MOST_LINES]]
    rest = len(lines) - MOST_LINES
    return "\n".join([*told, f"  ... and {rest} more"] if rest > 0 else told or ["  nothing of the kind"])
