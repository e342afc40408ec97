"""Exercises of the kind *implement*: a function of one's own takes part in a running lab, or finds something in it.

The answer is run in named stories, asked about hidden cases, and run in random walks (`kafka_ctl/explore`), each time
beside the kit's own function. The first call that the two answer differently says what went wrong.

The result that a function finds in a lab is compared with the lab itself.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Generic, TypeVar, TypeVarTuple, cast

from kafka_ctl.election import Election
from kafka_ctl.errors import ConditionNotMet, KafkaCtlError, PluginFailed, short
from kafka_ctl.exercises.answers import still_running
from kafka_ctl.exercises.exercise import (
    Function,
    FunctionExercise,
    Verdict,
    asked_for,
    failed,
    first,
    fitted,
    plain,
    returned_none,
    same,
    unsuited_member,
)
from kafka_ctl.explore.walk import walk
from kafka_ctl.lab import story
from kafka_ctl.lab.lab import Lab
from kafka_ctl.plugins import Plugins, called, copies
from kafka_ctl.plugins import plain as typed
from kafka_ctl.trace import Trace

WALKS, STEPS = 10, 15
"""The number of random walks in which an answer is run, and of their commands."""
_ends: dict[tuple[str, str], tuple[object, bool]] = {}
"""By exercise and story: how it ends with the kit's own function, and whether that is asked in it."""
_given: dict[tuple[Callable[..., object], str], Sequence[object]] = {}
"""By exercise and story: the arguments of its calls, where all of them are plain values."""
PLAIN, SHOWN = (str, bytes, int, tuple, frozenset, type(None)), 60
"""Arguments of these types, up to so many characters each, are shown when a function fails."""
OF_ANOTHER_SHAPE = ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError
"""Errors of an explanation of an answer whose shape is not that of the right one."""
Given = TypeVarTuple("Given")
Answer = TypeVar("Answer")
End = TypeVar("End")
Truth = TypeVar("Truth")


@dataclass(frozen=True, kw_only=True)
class Implement(FunctionExercise, Generic[*Given, Answer, End]):
    """A function that is plugged in as `what[occasion]`, such as `elections["offline"]`.

    `usual` is the kit's own; both are asked through the plug, so that they are treated alike. `cases` are the hidden
    ones: tuples of arguments. `read` turns the answer to a case into the meant one. With `lists`, a tuple among the
    arguments can be added to a list, and a list to it: a rule does not depend on which of the two types holds the
    brokers. `stories` have titles. `outcome` is what is compared of two labs, and `describe` puts it in words.
    `explain` says what is wrong with an answer to one case, beside the right answer; `why` explains a right function.
    """

    what: str = "rules"
    occasion: str
    usual: Callable[..., object]
    read: Callable[..., Answer] = lambda answer, case: answer
    cases: Callable[[], Iterable[tuple[*Given]]]
    stories: Mapping[str, str]
    outcome: Callable[[Lab], End]
    describe: Callable[[End], str]
    explain: Callable[[tuple[*Given], Answer, Answer], str]
    lists: bool = False

    def judge_function(self, function: Function) -> Verdict:
        """Stories first, then cases, then walks; the first difference is reported."""
        mine, usual = self._plugins(with_rows(function) if self.lists else function), self._plugins(self.usual)
        for title, text in self.stories.items():
            still_running(f'the story "{title}"')
            if (verdict := self._story(f'In the story "{title}"', text, mine, usual)) is not None:
                return verdict
        for number, case in enumerate(self.cases(), 1):
            still_running(f"case {number}")
            if (problem := self._difference(mine, usual, case)) is not None:
                return Verdict(False, f"In a case without a story: {problem}")
        for seed in range(WALKS):
            still_running(f"random walk {seed + 1} of {WALKS}")
            text = _walk(seed)
            if (verdict := self._story("In a random walk", text, mine, usual)) is not None:
                return verdict
        return Verdict(True, self.why)

    def _plugins(self, function: Callable[..., object]) -> Plugins:
        return Plugins(**{self.what: {self.occasion: function}})

    def _story(self, where: str, text: str, mine: Plugins, usual: Plugins) -> Verdict | None:
        """The difference of the answer in a story, and the shortest part of the story that shows it."""
        asked: list[tuple[*Given]] = []
        ended = functools.cache(lambda part: self._played(part, mine, asked if part == text else None))
        expected, is_asked = self._usually(text, usual)
        got = ended(text) if is_asked else expected
        if got == expected:
            return None
        found = next((problem for case in asked if (problem := self._difference(mine, usual, case)) is not None), "")
        less = shortest(text, lambda part: ended(part) != self._usually(part, usual)[0])
        ends = self._ends(ended(less), self._usually(less, usual)[0])
        return Verdict(False, f"{where}: {found or got}{ends}", less, mine)

    def _ends(self, *ends: End | str) -> str:
        """The two ends of a story, in words; "" where they have none, or the same."""
        words = ["" if isinstance(end, str) else self.describe(end) for end in ends]
        differ = all(words) and words[0] != words[1]
        return f"\nThe story ends with {words[0]}; with Kafka's, {words[1]}." if differ else ""

    def _usually(self, text: str, usual: Plugins) -> tuple[End | str, bool]:
        """The end of a story with the kit's own function, and whether it is asked in it; the same each time."""
        key = self.name, text
        if key not in _ends:
            asked: list[tuple[*Given]] = []
            _ends[key] = self._played(text, usual, asked), bool(asked)
        return cast("tuple[End | str, bool]", _ends[key])

    def _played(self, text: str, plugins: Plugins, asked: list[tuple[*Given]] | None = None) -> End | str:
        """The state to compare at the end of a story, or a function's failure as text; `asked` collects its calls."""
        function = getattr(plugins, self.what)[self.occasion]

        def listening(*case: *Given) -> object:
            if asked is not None:
                asked.append(case)
            return function(*copies(case))

        return played(text, self._plugins(listening), self.outcome)

    def _difference(self, mine: Plugins, usual: Plugins, case: tuple[*Given]) -> str | None:
        """The fault in the answer to one case; None when it is right."""
        expected = self._answer(usual, case)
        try:
            got = self._answer(mine, case)
        except PluginFailed as error:
            return decoded(error)
        if got == expected:
            return None
        try:
            why = self.explain(case, got, expected)
        except OF_ANOTHER_SHAPE:
            why = "That is of another shape than what is asked for."
        answer = tuple(got)[:2] if isinstance(got, Election) else got  # leader and ISR
        return f"asked with {called(self.what, self.occasion, case)}, your function answers {answer!r}. {why}"

    def _answer(self, plugins: Plugins, case: tuple[*Given]) -> Answer:
        return self.read(plugins.decided(self.what, self.occasion, *case), case)


class Row(tuple[object, ...]):
    """A row of brokers as a function gets it: a tuple to which a list can be added, and which can be added to one."""

    def __add__(self, other: Iterable[object]) -> Row:
        return Row([*self, *other])

    def __radd__(self, other: Iterable[object]) -> Row:
        return Row([*other, *self])


def with_rows(function: Callable[..., object]) -> Callable[..., object]:
    """The same function, called with rows in the place of tuples."""

    @functools.wraps(function)
    def called(*given: object) -> object:
        return function(*(Row(each) if isinstance(each, tuple) else each for each in given))

    return called


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
    text = str(error).replace(f"'{Row.__name__}'", "'tuple'")
    if "returned None" in text or "NoneType" in text:
        unled = " Is a partition without a candidate a case of its own?" if text.startswith("elections") else ""
        return f"{text}\nDoes every way through it end with a `return`?{unled}"
    if "positional argument" in text:
        return f"{text}\nIts parameters are not those that it is called with."
    return text


def played(text: str, plugins: Plugins, look: Callable[[Lab], End]) -> End | str:
    """The result of `look` on a story with a learner's functions, or the error that ended the story, in words."""
    try:
        with Lab.replay(text, **plugins.given) as lab:
            return look(lab)
    except PluginFailed as error:
        return decoded(error)
    except ConditionNotMet as error:
        return f"the cluster does not come to rest: {error}"
    except Exception as error:  # what the cluster does with an answer that it cannot work with
        return f"the cluster cannot go on with what your function returned: {type(error).__name__}: {error}"


SETTLE = "settle"
ATTEMPTS, SHORTENING = 60, 5.0
"""The most commands that are left out on trial, and the most seconds for it, to shorten a story."""


def shortest(text: str, differs: Callable[[str], bool]) -> str:
    """A story with as few commands as can be found for which `differs` still holds; the given one, if for none.

    A story that cannot be played without the command that was left out does not count. A `settle` between two commands
    stays: the second one finds done what the first one asked for.
    """
    opening, *commands = map(str, story.parse(text))
    ends = time.monotonic() + SHORTENING
    for place in reversed(range(len(commands))[-ATTEMPTS:]):
        if time.monotonic() >= ends:
            break
        if commands[place] == SETTLE and place + 1 < len(commands):
            continue
        before, after = commands[:place], commands[place + 1 :]
        fewer = before + (after[1:] if before[-1:] == after[:1] == [SETTLE] else after)
        with suppress(KafkaCtlError):
            if differs(story_of(opening, fewer)):
                commands = fewer
    return story_of(opening, commands)


def story_of(opening: str, commands: list[str]) -> str:
    """The text of a story."""
    return "\n".join([opening, *commands]) + "\n"


@dataclass(frozen=True, kw_only=True)
class Compute(FunctionExercise, Generic[*Given, Truth]):
    """A function that is called after each of `stories`, with what `give` takes from the lab: tuples of arguments.

    `truth` is the right answer to one of them, `explain` says what is wrong with another one. Where the arguments say
    all, and a story would show nothing, `shows_story` is off. Where None may be right, `none` is on, so that a wrong
    None is explained like any other answer.
    """

    stories: Mapping[str, str]
    give: Callable[[Lab], list[tuple[*Given]]]
    truth: Callable[[*Given], Truth]
    explain: Callable[[tuple[*Given], object, Truth], str]
    shows_story: bool = True
    none: bool = False

    def judge_function(self, function: Function) -> Verdict:
        """Call it after every story; the first difference is reported."""
        for title, text in self.stories.items():
            problem = self._problem(function, text)
            if problem is not None and not self.shows_story:
                return Verdict(False, problem[:1].upper() + problem[1:])
            if problem is not None:
                return Verdict(False, f'In the story "{title}": {problem}', text)
        return Verdict(True, self.why)

    def _problem(self, answer: Callable[..., object], text: str) -> str | None:
        """The first fault in the answers at the end of a story, which is played once if it gives plain values."""
        if (self.give, text) not in _given:
            with Lab.replay(text) as lab:
                found = self.give(lab)
                if any(isinstance(each, Lab | Trace) for given in found for each in given):
                    return first(self._wrong(answer, given, lab) for given in found)
            _given[self.give, text] = found
        known = cast("list[tuple[*Given]]", deepcopy(_given[self.give, text]))
        return first(self._wrong(answer, given) for given in known)

    def _wrong(self, answer: Callable[..., object], given: tuple[*Given], lab: Lab | None = None) -> str | None:
        expected = plain(self.truth(*given))
        moment = lab and (lab.now, len(lab.trace))
        try:
            made = answer(*copies(given))
            got = fitted(plain(made), expected)
        except Exception as error:  # whatever a learner's code can do
            return f"your function {failed(error)}{_asked(given)}."
        if got is None and expected is not None and not self.none:
            return f"y{returned_none(answer, _asked(given))[1:]}"
        if same(got, expected):
            return None
        if lab is not None and (lab.now, len(lab.trace)) != moment:
            return "your function changed the cluster; it is asked about this moment."
        if isinstance(made, list) and isinstance(got, tuple) and not isinstance(expected, tuple):
            got = made  # is shown as it was written
        try:
            return self.explain(given, got, expected)
        except OF_ANOTHER_SHAPE:
            odd = unsuited_member(got, expected)
            return f"your function returned {short(got)}; {asked_for(expected)}{f': {odd}' if odd else ''}."


def _asked(given: tuple[object, ...]) -> str:
    """The end of a sentence about a call: its arguments, those that are short and plain."""
    words = [typed(value) for value in given if isinstance(value, PLAIN)]
    asked = ", ".join(each for each in words if len(each) <= SHOWN)
    return asked and f"; it was asked with {asked}"
