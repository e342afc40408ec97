"""The tables of `docs/fidelity.md`: which story the kit replays exactly, in which generation, and what stories cover.

`python -m tools.recorder.fidelity` writes it; the test run makes it again and fails when the page is stale.
"""

from __future__ import annotations

import functools

from kafka_ctl.generation import GENERATIONS
from kafka_ctl.lab import story as stories_language
from kafka_ctl.paths import ROOT
from tests.conformance import truth
from tests.conformance.replay import replay
from tests.conformance.story import STORIES, Story
from tools.recorder import playing
from tools.recorder.release import RECORDINGS

GOLDEN = RECORDINGS / "golden"
PAGE = ROOT / "docs" / "fidelity.md"
BEGIN, END = "<!-- written by tools/recorder/fidelity.py: -->\n", "<!-- end -->\n"


@functools.cache
def golden_files() -> list[tuple[str, str]]:
    """Every recording as (generation, story)."""
    return [(g, s) for g in GENERATIONS for s in STORIES if (GOLDEN / g / f"{s}.txt").exists()]


def golden(generation: str, story: str) -> str:
    return (GOLDEN / generation / f"{story}.txt").read_text(encoding="utf-8")


@functools.cache
def replayed(generation: str, story: str) -> str:
    """The kit's text for a recording."""
    return replay(golden(generation, story))


def outcome(generation: str, story: str) -> str:
    """`exact`, `differs` or, without a recording, `-`."""
    if (generation, story) not in golden_files():
        return "-"
    return "exact" if replayed(generation, story) == golden(generation, story) else "differs"


def counts() -> str:
    """The numbers of recordings and of exact ones, as a sentence."""
    files = golden_files()
    exact = sum(outcome(*each) == "exact" for each in files)
    return f"{len(files)} recordings of {len({story for _, story in files})} stories: {exact} exact.\n"


def table() -> str:
    """The stories and what becomes of them, as Markdown."""
    lines = ["| story | what happens | " + " | ".join(GENERATIONS) + " |", "|---|---|" + "---|" * len(GENERATIONS)]
    for name, story in STORIES.items():
        results = " | ".join(outcome(generation, name) for generation in GENERATIONS)
        lines.append(f"| {name} | {story.about} | {results} |")
    return "\n".join(lines) + "\n"


HOLDS = {
    "records": "the log of every replica (so what was truncated), its high watermark, what a consumer reads",
    "log_dirs": "in which log directory each copy lies",
    "fetchers": "whom each broker fetches from, so which fetchers have started and stopped",
    "metadata": "leaders, ISRs and live brokers in each broker's metadata cache",
}
"""The things that are compared in brokers after each command (`truth.py`), in words."""
EVERYWHERE = 8
"""From so many stories on a command's stories are counted instead of named."""


@functools.cache
def commands_of(story: Story) -> list[stories_language.Command]:
    """The commands of a story, and those within `at_once`."""
    _, *commands = stories_language.parse(story.text(story.generations[-1]))
    inside = [c.args[0] for c in commands if c.name == "at_once"]
    return [*commands, *(c for lines in inside for c in stories_language.parse("\n".join(lines)))]


def coverage() -> str:
    """The stories that play a command of the recorder, and those that compare what brokers hold, as Markdown."""
    lines = ["| after each command is compared | in the stories |", "|---|---|"]
    for kind in truth.KINDS:
        asking = [name for name, story in STORIES.items() if kind in truth.asked(story.asks, commands_of(story))]
        lines.append(f"| {HOLDS[kind]} | {_named(asking)} |")
    lines += ["", "| command | recorded in the stories |", "|---|---|"]
    for command in playing.COMMANDS:
        lines.append(f"| `{command}` | {_named(played(command), EVERYWHERE)} |")
    return "\n".join(lines) + "\n"


def played(command: str) -> list[str]:
    """The stories with a recording that play a command."""
    recorded = {story for _, story in golden_files()}
    return [n for n, story in STORIES.items() if n in recorded and command in {c.name for c in commands_of(story)}]


def _named(stories: list[str], most: int = len(STORIES)) -> str:
    return ", ".join(stories) if len(stories) < most else f"{len(stories)} stories"


def page() -> str:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{counts()}\n{table()}\n{coverage()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
