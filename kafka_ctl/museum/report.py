"""An exhibit as text: what happened, the lines that decide it, what noticed it, and the same story with the fix.

Separate from `commands.py` because an exhibit is put into words without a terminal, too.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kafka_ctl.generation import BY_NAME
from kafka_ctl.museum.exhibit import ExhibitRun
from kafka_ctl.museum.exhibits import EXHIBITS
from kafka_ctl.museum.questions import Question

WIDTH = 100
LINE, MOST_LINES = 180, 16
"""The number of characters of a trace's line, and of decisive lines, that are shown."""


def index() -> str:
    """All exhibits, one a line: number, ticket, title."""
    return "\n".join(f"{n:>3}  {e.name:<12}  {e.title}" for n, e in enumerate(EXHIBITS, 1))


def describe(run: ExhibitRun) -> str:
    """Both runs of an exhibit as text."""
    exhibit = run.exhibit
    asked = ", ".join(BY_NAME[field].asked for field in exhibit.fix)
    changed = ", ".join(f"{field}={value}" for field, value in exhibit.fix.items())
    parts = [
        f"{exhibit.name}  {exhibit.title}",
        _paragraph(exhibit.sentence),
        *map(_paragraph, exhibit.description.split("\n\n")),
        _paragraph(f"Releases with it: {exhibit.releases}."),
        f"The story, with Kafka {exhibit.generation}:",
        textwrap.indent(exhibit.commands.rstrip(), "  "),
        "What decides it:",
        _lines(run.decisive(run.broken)),
        *_caught(run),
        f"The same story with {changed}:",
        _lines(run.decisive(run.fixed)),
        *_fixed(run),
        _paragraph(exhibit.task) + f"\n  kafka-ctl museum {exhibit.name} --story > mine.txt; kafka-ctl run mine.txt",
        f"Read on: {exhibit.link}\n         kafka_ctl/{exhibit.source} asks for {asked}",
    ]
    return "\n\n".join(parts)


def verdict(run: ExhibitRun) -> str:
    """One line: whether the bug shows, and whether the run without it is sound."""
    shows = "shows" if run.is_caught else "DOES NOT SHOW"
    sound = "sound" if run.is_sound else "NOT SOUND"
    return f"{run.exhibit.name:<12}  {shows}, and is {sound} with the fix"


def _caught(run: ExhibitRun) -> Iterator[str]:
    """The invariant or question that noticed the bug."""
    asked = run.exhibit.caught_by
    if isinstance(asked, Question):
        assert run.answers is not None
        yield f"{asked.text}\n  {run.answers[0]}"
    elif run.violations:
        first = run.violations[0]
        more = len(run.violations) - 1
        text = f"Broken: {first.invariant} {first.name}, by record {first.seq}: {first.text}"
        yield _paragraph(text + f", and {more} more" * bool(more))
    else:
        yield f"Nothing: invariant {asked} holds."


def _fixed(run: ExhibitRun) -> Iterator[str]:
    """The verdict of the other run."""
    if isinstance(run.exhibit.caught_by, Question):
        assert run.answers is not None
        yield f"{run.exhibit.caught_by.text}\n  {run.answers[1]}"
    yield "Every invariant holds." if run.is_sound else "\n".join(map(str, run.fixed.violations))


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH)


def _lines(lines: list[str]) -> str:
    shown = [f"  {line}" if len(line) <= LINE else f"  {line[:LINE]} ..." for line in lines[:MOST_LINES]]
    rest = len(lines) - MOST_LINES
    return "\n".join([*shown, f"  ... and {rest} more"] if rest > 0 else shown or ["  nothing of the kind"])
