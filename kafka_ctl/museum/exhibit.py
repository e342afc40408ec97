"""An exhibit: a bug, the field that brings it back, the story that shows it, and what notices it.

The story's file begins with its words: a title, one sentence, what happens, and a task, each after an empty `#` line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafka_ctl.generation import Generation
from kafka_ctl.invariants import Violation
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.museum.questions import Question

if TYPE_CHECKING:
    from kafka_ctl.views.widget.side_by_side import SideBySide

STORIES = Path(__file__).parent / "stories"
JIRA = "https://issues.apache.org/jira/browse/"
LINKEDIN = "https://github.com/linkedin/kafka/pull/"


@dataclass(frozen=True)
class Exhibit:
    """One bug. `name` is its ticket, with a letter where a ticket has two exhibits; `LINKEDIN-14` is linkedin/kafka#14.

    `fix` are the fields of `Generation` that fix it, `releases` says who had it, `caught_by` is the id of the
    invariant it breaks or a question that the two runs answer differently, `decisive` a pattern of the trace's lines
    to look at, `visible` one of what the cluster's picture shows of the bug (a line of `Film.described`), and `source`
    the module where the bug lives.
    """

    name: str
    fix: Mapping[str, bool]
    releases: str
    caught_by: str | Question
    decisive: str
    visible: str
    source: str

    @property
    def ticket(self) -> str:
        return self.name.rstrip("abc").replace("LINKEDIN-", "linkedin/kafka#")

    @property
    def link(self) -> str:
        number = self.ticket.removeprefix("linkedin/kafka#")
        return JIRA + number if number == self.ticket else LINKEDIN + number

    @property
    def path(self) -> Path:
        """The story's file."""
        return STORIES / f"{self.name}.txt"

    @cached_property
    def story(self) -> str:
        """The whole file."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def commands(self) -> str:
        """The story's commands, without the words before them."""
        return "".join(line + "\n" for line in self.story.splitlines() if line and not line.startswith("#"))

    @cached_property
    def _paragraphs(self) -> list[str]:
        lines = [line[1:].strip() for line in self.story.splitlines() if line.startswith("#")]
        return [" ".join(part.split()) for part in "\n".join(lines).split("\n\n")]

    @property
    def title(self) -> str:
        return self._paragraphs[0]

    @property
    def sentence(self) -> str:
        """The bug in one sentence."""
        return self._paragraphs[1]

    @property
    def description(self) -> str:
        """The story in plain words."""
        return "\n\n".join(self._paragraphs[2:-1])

    @property
    def task(self) -> str:
        """Something to be changed in the story, and a question to be answered before it is run again."""
        return self._paragraphs[-1]

    @cached_property
    def generation(self) -> Generation:
        """The generation with the bug, as the story opens it."""
        found: Generation = story.opening(next(story.parse(self.story)))["generation"]
        return found

    @cached_property
    def fixed(self) -> Generation:
        """The same generation without the bug."""
        return self.generation.but(**self.fix)

    def show(self) -> ExhibitRun:
        """Play the story with the bug and without it; to be closed, or used as a context manager."""
        return ExhibitRun(self)


class ExhibitRun:
    """Both runs of an exhibit, as labs: `broken` and `fixed`."""

    def __init__(self, exhibit: Exhibit) -> None:
        self.exhibit = exhibit
        self.broken = Lab.replay(exhibit.story)
        try:
            self.fixed = self.broken.fork(generation=exhibit.fixed)
        except BaseException:
            self.broken.close()
            raise

    def close(self) -> None:
        self.broken.close()
        self.fixed.close()

    def __enter__(self) -> ExhibitRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The violations of the exhibit's invariant in the run with the bug; none if a question is asked."""
        return tuple(v for v in self.broken.violations if v.invariant == self.exhibit.caught_by)

    @property
    def answers(self) -> tuple[str, str] | None:
        """The exhibit's question answered by both runs, the one with the bug first; None if it has no question."""
        asked = self.exhibit.caught_by
        return (asked.ask(self.broken), asked.ask(self.fixed)) if isinstance(asked, Question) else None

    @property
    def is_caught(self) -> bool:
        """True if the bug shows."""
        return self.answers[0] != self.answers[1] if self.answers else bool(self.violations)

    @property
    def is_sound(self) -> bool:
        """True if the run without the bug breaks no invariant."""
        return not self.fixed.violations

    def seen(self, lab: Lab) -> list[int]:
        """The steps of the cluster's film of one of the two labs in whose pictures the bug is visible."""
        from kafka_ctl.views.frames import film

        made = film(lab.trace)
        wanted = re.compile(self.exhibit.visible, re.MULTILINE)
        return [n for n in range(len(made)) if wanted.search(made.described(n))]

    def side_by_side(self, **options: Any) -> SideBySide:
        """Both runs beside each other from where the trouble begins, as a player that steps both.

        Options are those of `side_by_side` in `views/widget/side_by_side.py`.
        """
        from kafka_ctl.views.widget.side_by_side import side_by_side

        options.setdefault("titles", ("With the bug", "With the fix"))
        options.setdefault("start", (self.start(self.broken), self.start(self.fixed)))
        return side_by_side(self.broken, self.fixed, **options)

    @staticmethod
    def start(lab: Lab) -> int:
        """The first record after the cluster was set up, in one of the two labs."""
        return next(c.seq for c in lab.commands if c.name not in ("create_topic", "settle"))

    def decisive(self, lab: Lab) -> list[str]:
        """The trace's lines to look at, of one of the two labs."""
        return [line for line in lab.trace.text().splitlines() if re.search(self.exhibit.decisive, line)]
