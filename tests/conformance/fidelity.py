"""The table of `docs/fidelity.md`: which story the kit replays exactly, in which generation.

`python -m tests.conformance.fidelity` writes it; the test run makes it again and fails when the page is stale.
"""

from __future__ import annotations

import functools
from pathlib import Path

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab import story as stories_language
from kafka_ctl.lab.lab import COMMANDS
from tests.conformance.replay import replay
from tests.conformance.stories import STORIES

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"
BEGIN, END = "<!-- written by tests/conformance/fidelity.py: -->\n", "<!-- end -->\n"
RECORDED = ("0.10", "2.0", "2.4")


def golden_files() -> list[tuple[str, str]]:
    """Every recording as (generation, story)."""
    return [(g, s) for g in RECORDED for s in STORIES if (GOLDEN / g / f"{s}.txt").exists()]


def golden(generation: str, story: str) -> str:
    return (GOLDEN / generation / f"{story}.txt").read_text(encoding="utf-8")


def missing(generation: str, story: str) -> str:
    """What the kit lacks to replay this story at all; empty when it lacks nothing."""
    if generation not in GENERATIONS:
        return f"the kit has no generation {generation} yet"
    wanted = {command.name for command in stories_language.parse(golden(generation, story))} - {"lab"}
    return f"Lab has no command {', '.join(sorted(wanted - set(COMMANDS)))} yet" if wanted - set(COMMANDS) else ""


@functools.cache
def replayed(generation: str, story: str) -> str:
    """The kit's text for a recording; what went wrong, if it could not be replayed."""
    try:
        return replay(golden(generation, story))
    except (BadInput, UnknownName) as error:
        return f"{type(error).__name__}: {error}"


def outcome(generation: str, story: str) -> str:
    """`exact`, `differs`, `not yet` or, without a recording, `-`."""
    if (generation, story) not in golden_files():
        return "-"
    if missing(generation, story):
        return "not yet"
    return "exact" if replayed(generation, story) == golden(generation, story) else "differs"


def table() -> str:
    """The stories and what becomes of them, as Markdown."""
    lines = ["| story | what happens | " + " | ".join(RECORDED) + " |", "|---|---|" + "---|" * len(RECORDED)]
    for name, story in STORIES.items():
        results = " | ".join(outcome(generation, name) for generation in RECORDED)
        lines.append(f"| {name} | {story.about} | {results} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page with a fresh table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
