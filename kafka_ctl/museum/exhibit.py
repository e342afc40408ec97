"""An exhibit: a bug, the field that brings it back, the story that shows it, what notices it, and all this as text.

The collection has the rows of `exhibits.txt`. A bug that breaks no invariant but makes something worse is noticed by a
question that both runs of its exhibit answer. The story's file begins with its words: a title, one sentence, what
happens, and a task, each after an empty `#` line.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import NEAREST, BadInput, UnknownName, nearest, short
from kafka_ctl.generation import BY_NAME, Generation
from kafka_ctl.invariants import Violation
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import PartitionView
from kafka_ctl.paths import blocks

if TYPE_CHECKING:
    from kafka_ctl.views.widget.side_by_side import SideBySide


class Question(NamedTuple):
    """A question, and the function by which a lab answers it."""

    text: str
    ask: Callable[[Lab], str]

    def answered(self, lab: Lab) -> str:
        """The question, and in the line below it the answer of this lab."""
        return f"{self.text}\n  {self.ask(lab)}"


def _of_each(shown: Callable[[PartitionView], object]) -> Callable[[Lab], str]:
    """A question about each partition at the end."""
    return lambda lab: ", ".join(f"{p.topic}-{p.partition}: {shown(p)}" for p in lab.partitions())


def fruitless_elections(lab: Lab) -> str:
    """The number of elections without a leader."""
    return str(sum(r.kind == "election" and r.error is not None for r in lab.trace))


def stop_replicas(lab: Lab) -> str:
    """The number of StopReplica requests from controllers, and of those that named no partition."""
    sent = [r for r in lab.trace if r.kind == "request" and r.action == "StopReplica" and r.target == "sent"]
    empty = sum("partitions=0 " in (r.detail or "") for r in sent)
    return f"{len(sent)}" + f", {empty} of them empty" * bool(empty)


def double_leadership(lab: Lab) -> str:
    """The time for which brokers acted as leaders of a partition that another broker already led."""
    leads: dict[TopicPartition, dict[int, float]] = {}
    double = 0.0
    for r in lab.trace:
        if r.kind != "broker" or r.broker is None:
            continue
        if r.action in ("become-leader", "become-follower"):
            since = leads.setdefault(r.tp, {})
            if r.action == "become-leader":
                since[r.broker] = r.time_ms
            ended = [since] if r.action == "become-follower" else []
        else:
            ended = list(leads.values()) if r.action in ("shutting-down", "stopped") else []
        for since in ended:
            if since.pop(r.broker, None) is not None and since:
                double += r.time_ms - max(since.values())
    return f"{double:.1f} ms"


QUESTIONS = {
    "leaders": _of_each(lambda p: p.leader),
    "leader_epochs": _of_each(lambda p: p.leader_epoch),
    "in_sync": _of_each(lambda p: f"{list(p.isr)} of {list(p.replicas)}"),
    "replicas": _of_each(lambda p: list(p.replicas)),
    "fruitless_elections": fruitless_elections,
    "stop_replicas": stop_replicas,
    "double_leadership": double_leadership,
}
"""By name, as `exhibits.txt` has it."""


STORIES = Path(__file__).parent / "stories"
JIRA = "https://issues.apache.org/jira/browse/"
LINKEDIN = "https://github.com/linkedin/kafka/pull/"


@dataclass(frozen=True)
class Exhibit:
    """One bug. `name` is its ticket, with a letter where a ticket has two exhibits; `LINKEDIN-14` is linkedin/kafka#14.

    `fix` are the fields of `Generation` that fix it, `releases` says who had it, `caught_by` is the id of the
    invariant it breaks or a question that the two runs answer differently, `decisive` a pattern of the trace's lines
    to look at, and `source` the module where the bug lives.
    """

    name: str
    fix: Mapping[str, bool]
    releases: str
    caught_by: str | Question
    decisive: str
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
        return STORIES / f"{self.name}.txt"

    @cached_property
    def story(self) -> str:
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

    def __exit__(self, *_: object) -> None:
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
        answers = self.answers
        return answers[0] != answers[1] if answers else bool(self.violations)

    @property
    def is_sound(self) -> bool:
        """True if the run without the bug breaks no invariant."""
        return not self.fixed.violations

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


def _exhibit(name: str, *lines: str) -> Exhibit:
    """One row: its name, and lines of a word and a value."""
    values = dict(line.split(" ", 1) for line in lines)
    *unless, field = values["fix"].split()
    caught, _, asked = values["caught"].partition(": ")
    return Exhibit(
        name,
        {field: not unless},
        values["releases"],
        Question(asked, QUESTIONS[caught]) if asked else caught,
        values["decisive"],
        values["source"],
    )


EXHIBITS = tuple(_exhibit(*block) for block in blocks(__package__, "exhibits.txt"))
"""All of them. They are known by their names, as `KAFKA-7482`, and by their numbers, from 1."""


def find(name: str | int) -> Exhibit:
    """The exhibit of that number or name; UnknownName, which lists the nearest names, if there is none.

    The ticket will do, also without its `KAFKA-`. Raises BadInput if it has two exhibits.
    """
    if not isinstance(name, (str, int)):
        raise BadInput(f"an exhibit cannot be {short(name)}; it must be a ticket or a number")
    given = str(name).strip().upper()
    if given.isdecimal() and 1 <= int(given) <= len(EXHIBITS):
        return EXHIBITS[int(given) - 1]
    wanted = given if given.startswith(("KAFKA-", "LINKEDIN")) else f"KAFKA-{given}"
    fitting = [e for e in EXHIBITS if wanted in (e.name.upper(), e.ticket.upper())]
    if len(fitting) > 1:
        raise BadInput(f"{wanted} has {len(fitting)} exhibits: {' and '.join(e.name for e in fitting)}")
    if not fitting:
        names = [e.name for e in EXHIBITS]
        near = [] if given.isdecimal() else nearest(given, names, NEAREST, 0.6)
        known = f"nearest known: {', '.join(near)}" if near else f"known: 1 to {len(names)}, and their tickets"
        raise UnknownName("exhibit", name, names, f"{known}; `kafka-ctl museum` lists all")
    return fitting[0]


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
        _caught(run),
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


def _caught(run: ExhibitRun) -> str:
    """The invariant or question that noticed the bug."""
    asked = run.exhibit.caught_by
    if isinstance(asked, Question):
        return asked.answered(run.broken)
    if not run.violations:
        return f"Nothing: invariant {asked} holds."
    first, *others = run.violations
    text = f"Broken: {first.invariant} {first.name}, by record {first.seq}: {first.text}"
    return _paragraph(text + f", and {len(others)} more" * bool(others))


def _fixed(run: ExhibitRun) -> Iterator[str]:
    asked = run.exhibit.caught_by
    if isinstance(asked, Question):
        yield asked.answered(run.fixed)
    yield "Every invariant holds." if run.is_sound else "\n".join(map(str, run.fixed.violations))


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH)


def _lines(lines: list[str]) -> str:
    shown = [f"  {line}" if len(line) <= LINE else f"  {line[:LINE]} ..." for line in lines[:MOST_LINES]]
    rest = len(lines) - MOST_LINES
    return "\n".join([*shown, f"  ... and {rest} more"] if rest > 0 else shown or ["  nothing of the kind"])
