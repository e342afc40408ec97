"""Exercises of the kind *implement*: a function of one's own takes part in a running lab.

The answer is run in named stories, asked about hidden cases, and taken for random walks (`kafka_ctl/explore`), each
time beside the kit's own function. The first call that the two answer differently says what went wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kafka_ctl.election import Election
from kafka_ctl.errors import KafkaCtlError, PluginFailed
from kafka_ctl.exercises.exercise import Exercise, Verdict, not_callable
from kafka_ctl.exercises.shortest import shortest
from kafka_ctl.explore.walk import walk
from kafka_ctl.lab.lab import Lab
from kafka_ctl.plugins import Plugins, plain

WALKS, STEPS = 10, 15
"""Random walks that an answer is taken for, and their commands."""
Case = tuple[Any, ...]
Ask = Callable[[Plugins, Case], Any]


@dataclass(frozen=True, kw_only=True)
class Implement(Exercise):
    """A function that is plugged in as `what[occasion]`, such as `elections["offline"]`.

    `usual` is the kit's own; `ask` calls a function for one case through the plug, so that both are treated alike.
    `cases` are the hidden ones: tuples of `arguments`. `stories` have titles. `outcome` is what is compared of two
    labs, and `tell` says what it is in words. `explain` says what is wrong with an answer to one case, beside the right
    answer; `why` explains a right function.
    """

    kind: ClassVar[str] = "implement"
    what: str
    occasion: str
    arguments: str
    usual: Callable[..., Any]
    ask: Ask
    cases: Callable[[], Iterable[Case]]
    stories: Mapping[str, str]
    outcome: Callable[[Lab], Any]
    tell: Callable[[Any], str]
    explain: Callable[[Case, Any, Any], str]
    why: str

    def judge(self, answer: Any) -> Verdict:
        """Stories first, then cases, then walks; the first difference is reported."""
        if refusal := not_callable(answer):
            return refusal
        mine, usual = self._plugins(answer), self._plugins(self.usual)
        for title, text in self.stories.items():
            if (verdict := self._story(f'In the story "{title}"', text, mine, usual)) is not None:
                return verdict
        for case in self.cases():
            if (problem := self._difference(mine, usual, case)) is not None:
                return Verdict(False, problem)
        for seed in range(WALKS):
            text = _walk(seed)
            if (verdict := self._story("In a random walk", text, mine, usual)) is not None:
                return verdict
        return Verdict(True, self.why)

    def _plugins(self, function: Callable[..., Any]) -> Plugins:
        return Plugins(**{self.what: {self.occasion: function}})

    def _story(self, where: str, text: str, mine: Plugins, usual: Plugins) -> Verdict | None:
        """How the answer differs in a story, and the shortest part of it that shows it."""
        asked: list[Case] = []
        expected, got = self._played(text, usual), self._played(text, mine, asked)
        if got == expected:
            return None
        less = shortest(text, lambda part: self._played(part, mine) != self._played(part, usual))
        found = next((problem for case in asked if (problem := self._difference(mine, usual, case)) is not None), "")
        ends = (
            ""
            if isinstance(got, str)
            else f"\nThe story ends with {self.tell(got)}; with Kafka's, {self.tell(expected)}."
        )
        return Verdict(False, f"{where}: {found or got}{ends}", less, mine)

    def _played(self, text: str, plugins: Plugins, asked: list[Case] | None = None) -> Any:
        """What is compared at the end of a story, or the failure of a function as text; `asked` collects its calls."""
        function = getattr(plugins, self.what)[self.occasion]

        def listening(*case: Any) -> Any:
            if asked is not None:
                asked.append(case)
            return function(*case)

        try:
            with Lab.replay(text, **self._plugins(listening).given) as lab:
                return self.outcome(lab)
        except PluginFailed as error:
            return decoded(error)

    def _difference(self, mine: Plugins, usual: Plugins, case: Case) -> str | None:
        """What is wrong with the answer to one case; None when it is right."""
        expected = self.ask(usual, case)
        try:
            got = self.ask(mine, case)
        except PluginFailed as error:
            return decoded(error)
        if got == expected:
            return None
        words = zip(self.arguments.split(", "), case, strict=True)
        asked = ", ".join(f"{word}={plain(value)}" for word, value in words)
        return f"asked with {asked}, your function answers {shown(got)}. {self.explain(case, got, expected)}"


@functools.cache
def _walk(seed: int) -> str:
    """The walk of a seed, as a story without the commands that are refused when it is played."""
    opening, *commands = walk("2.0", seed, STEPS).story.splitlines()
    done: list[str] = []
    with Lab.replay(opening + "\n") as lab:
        for line in commands:
            try:
                lab.do(line)
            except KafkaCtlError:
                continue
            done.append(line)
    return "\n".join([opening, *done, "settle"]) + "\n"


def decoded(error: PluginFailed) -> str:
    """The failure of a function, with the usual cause where there is one."""
    text = str(error)
    if "returned None" in text or "NoneType" in text:
        nobody = " Is nobody fit to lead a case of its own?" if text.startswith("elections") else ""
        return f"{text}\nDoes every way through it end with a `return`?{nobody}"
    if "positional argument" in text:
        return f"{text}\nIts parameters are not those that it is called with."
    return text


def shown(value: Any) -> str:
    """An answer as one would type it; an election as leader and ISR."""
    return repr(tuple(value)[:2]) if isinstance(value, Election) else repr(value)
