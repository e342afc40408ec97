"""Exercises of the kind *repair*: a function of a controller as it was with a bug of the museum, to be fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import zip_longest
from typing import ClassVar

from kafka_ctl.exercises.answers import still_running
from kafka_ctl.exercises.exercise import Function, FunctionExercise, Verdict
from kafka_ctl.exercises.implement import played
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.story import Command
from kafka_ctl.museum import find
from kafka_ctl.museum.exhibit import Exhibit, Question
from kafka_ctl.plugins import Plugins, called, copies, plain

BEGIN = """create_topic orders assignment='{"0":[1,2,3],"1":[2,3,1],"2":[3,1,2]}'; settle; """
ORDINARY = {
    "brokers die and return": "kill 2; kill 3; settle; start 3; settle; start 2; settle; elect_preferred; settle",
    "a rolling restart": "; ".join(f"shutdown {id}; settle; start {id}; settle" for id in (2, 3, 1)),
    "the controller fails over during a move": """reassign '{"orders-0":[4,2,3]}' through=zookeeper; """
    "expire_session 1; settle; kill 2; delete_controller; settle; delete_topic orders; settle; start 2; settle",
}
"""Stories that go well with every right function: commands after `BEGIN`, by title, on four brokers."""
SHOWN = 300
"""Characters of a record that are shown."""
DIFFERS = "record"
"""The first word of a difference; any other problem has the call in its text."""


@dataclass(frozen=True, kw_only=True)
class Repair(FunctionExercise):
    """A function with the bug of the exhibit `ticket`, which a lab asks as `what[occasion]`, as `rules["fence"]`.

    `given` is its source text. With a right answer the exhibit's story goes well, and every record in it, in `ORDINARY`
    and in `stories`, made in the same way, is the one of Kafka without the bug. `why` explains it;
    only then the ticket is named. Of a wrong answer, the last call for which `telling` is true is shown:
    `telling` gets the arguments of the call and its result.
    """

    kind: ClassVar[str] = "repair"
    ticket: str
    what: str = "rules"
    occasion: str
    stories: Mapping[str, str] = field(default_factory=dict)
    telling: Callable[..., bool] = lambda *given: True

    def judge_function(self, function: Function) -> Verdict:
        """The exhibit's story first, then the others."""
        exhibit, mine = find(self.ticket), Plugins(**{self.what: {self.occasion: function}})
        text = repaired(self.ticket) + exhibit.commands.partition("\n")[2]
        asked: list[tuple[tuple[object, ...], object]] = []

        def listening(*given: object) -> object:
            asked.append((given, function(*copies(given))))
            return asked[-1][1]

        heard = Plugins(**{self.what: {self.occasion: listening}})
        if (problem := played(text, heard, partial(left, exhibit))) is not None:
            return Verdict(False, f"The story of the bug: {problem}{self._last(asked, problem)}", text, mine)
        texts = {"the bug": text}
        for title, commands in {**ORDINARY, **self.stories}.items():
            texts[title] = repaired(self.ticket, 4) + f"{BEGIN}{commands}".replace("; ", "\n") + "\n"
        for title, text in texts.items():
            still_running(f'the story "{title}"')
            asked.clear()
            if (problem := played(text, heard, partial(_difference, _records(text)))) is not None:
                problem += self._last(asked, problem) * problem.startswith(DIFFERS)
                return Verdict(False, f'The bug is gone, but in the story "{title}": {problem}', text, mine)
        return Verdict(True, f"{self.why} It was {exhibit.ticket}, in releases {exhibit.releases}: {exhibit.link}")

    def _last(self, asked: list[tuple[tuple[object, ...], object]], problem: str) -> str:
        """The last call; "" where the problem names a call of its own, or there was none."""
        if not asked or problem.startswith(f"{self.what}["):
            return ""
        given, got = ([each for each in asked if self.telling(*each[0], each[1])] or asked)[-1]
        return f"\nAsked with {called(self.what, self.occasion, given)}, your function answers {plain(got)}."


def left(exhibit: Exhibit, lab: Lab) -> str | None:
    """The fault of an exhibit that is left in a run of its story; None if there is none."""
    if isinstance(exhibit.caught_by, Question):
        answer = exhibit.caught_by.ask(lab)
        return None if answer == _well(exhibit.name) else f"{exhibit.caught_by.text} {answer}"
    first = next((v for v in lab.violations if v.invariant == exhibit.caught_by), None)
    return f"it breaks {first.invariant}: {first.text} (record {first.seq})." if first else None


@cache
def _well(name: str) -> str:
    """The answer to an exhibit's question without the bug."""
    exhibit = find(name)
    assert isinstance(exhibit.caught_by, Question)
    with Lab.replay(repaired(name) + exhibit.commands.partition("\n")[2]) as lab:
        return exhibit.caught_by.ask(lab)


def repaired(name: str, brokers: int | None = None) -> str:
    """The first line of an exhibit's story, without the bug; with another number of brokers, if one is given."""
    exhibit = find(name)
    given = dict(next(story.parse(exhibit.story)).kwargs) | {"generation": exhibit.fixed.name}
    changes = {"changes": exhibit.fixed.changes} if exhibit.fixed.changes else {}
    given = {key: value for key, value in given.items() if key != "changes"} | changes
    return f"{Command('lab', (), given | ({'brokers': brokers} if brokers else {}))}\n"


@cache
def _records(text: str) -> tuple[str, ...]:
    """The records of a story with Kafka's own function."""
    with Lab.replay(text) as lab:
        return tuple(lab.trace.text().splitlines())


def _difference(usual: tuple[str, ...], lab: Lab) -> str | None:
    """The first record that is not the one of Kafka; None if there is none."""
    for number, (mine, its) in enumerate(zip_longest(lab.trace.text().splitlines(), usual, fillvalue="no record")):
        if mine != its:
            plain, expected = (" ".join(line.split())[:SHOWN] for line in (mine, its))
            return f"{DIFFERS} {number} differs.\nWith your function: {plain}\nWith the fix: {expected}"
    return None
