"""Answers made harmless before they are judged: of a bounded size, of known types, and functions that come to an end.

A list may hold itself, an object's `__eq__` may never return, a function may call `sys.exit`. Nothing of that reaches
a judge: of lists, dictionaries and the like it gets a copy, of an object that is none of ours its type only, and of a
function one that gives up after `SECONDS`.
"""

from __future__ import annotations

import _weakrefset
import builtins
import contextlib
import io
import signal
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, NoReturn, TextIO

from kafka_ctl.errors import UnusableFunction
from kafka_ctl.simulation.loop import LONGEST, RunTooLong

SECONDS, BUSY = 10.0, 10.0
"""The seconds for the functions of an answer altogether, and those of processor time for each cluster that works with
their results: other programs on the machine do not use up processor time."""
PATIENCE = 4.0
"""Seconds without a sign of life while an answer is judged; then the part that is under way is printed."""
PARTS, DEPTH, CHARACTERS, BITS = 10_000, 20, 100_000, 3_300
"""The limits of an answer: its parts altogether, the depth of nesting, a text, a number (of about 1,000 digits)."""
PRINTED = 10_000
"""So many characters of what a learner's function prints are shown."""
VALUES = ("datetime", "decimal", "fractions", "pathlib")
"""Modules of the standard library whose objects compare and print like values."""
KIT = str(Path(__file__).resolve().parent.parent)


class TimeLimitExceeded(BaseException):
    """Raised in the middle of a learner's function when the time is over."""


class UnknownObject:
    """The stand-in for an object of an unknown type: the name of the type."""

    def __init__(self, value: object) -> None:
        self.type = type.__dict__["__name__"].__get__(type(value))

    def __repr__(self) -> str:
        return f"an object of the type {self.type}"


class Judging:
    """One answer while it is judged: what it may still take, and whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.left, self.over = SECONDS, False
        self.shown = time.monotonic()
        self.pressed = False
        self.raised: Exception | None = None
        self._depth = 0

    def copied(self, answer: object) -> object:
        """The plain values that a judge gets instead of the answer; raises UnusableAnswer."""
        try:
            with self._timed():
                return _Copier(self).copied(answer, 0)
        except TimeLimitExceeded:
            raise UnusableAnswer(f"does not come to an end within {SECONDS:g} s") from None

    def limited(self, function: Callable[..., object]) -> Callable[..., object]:
        """The same function, which gives up when the time is over and returns a plain copy of its result.

        Raises UnusableFunction then, and for SystemExit and the like; after the answer was judged there is no limit.
        """

        def limited(*args: object, **kwargs: object) -> object:
            if self.over or self._depth:
                return function(*args, **kwargs)
            try:
                with self._timed():
                    return _Copier(self).copied(function(*args, **kwargs), 0)
            except UnusableAnswer as problem:
                raise UnusableFunction(f"returned what {problem}") from None
            except TimeLimitExceeded:
                raise UnusableFunction(f"did not come to an end within {SECONDS:g} s") from None
            except (RunTooLong, UnusableFunction):
                raise
            except BaseException as error:
                if self.pressed:
                    raise
                self.raised = self._harmless(error)
                raise self.raised from None

        if isinstance(function, FunctionType):
            limited.__name__ = function.__name__
            vars(limited)["__wrapped__"] = function
        else:
            limited.__name__ = UnknownObject(function).type
        return limited

    def _harmless(self, error: BaseException) -> Exception:
        """The error itself, where its text can be printed and it is one that ends no program."""
        try:
            with self._timed():
                text = str(error)
        except BaseException:
            text = ""
        short = text if len(text) <= 300 else f"{text[:300]}…"
        is_known = type(error).__module__.startswith(("builtins", "kafka_ctl"))
        if isinstance(error, Exception) and short == text and is_known:
            return error
        return UnusableFunction(f"raised {UnknownObject(error).type}{': ' * bool(short)}{short}")

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Raise TimeLimitExceeded in what runs inside, wherever it is, once no time is left.

        A signal reaches also what sleeps, but only in the main thread, and not on Windows; elsewhere every line looks
        at the clock. Neither reaches a loop that is not written in Python, such as `sum(itertools.count())`.
        """
        began, self._depth = time.monotonic(), self._depth + 1
        ends = began + self.left
        asks, builtins.input = builtins.input, _no_input  # Jupyter's would wait for the learner after the verdict
        try:
            if self.left <= 0:
                raise TimeLimitExceeded
            if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
                with _alarm(self.left):
                    yield
            else:
                with _watched(ends):
                    yield
        finally:
            builtins.input = asks
            self._depth -= 1
            self.left = ends - time.monotonic()


def _no_input(prompt: object = "") -> NoReturn:
    raise UnusableFunction("asks for input; an answer gets everything as arguments")


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        if not _is_ours(frame):
            raise TimeLimitExceeded

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.02)  # again and again, until it is taken
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_ours(frame: FrameType | None) -> bool:
    """True if our code runs, or what Python calls on its own account, where an error is printed and forgotten."""
    if frame is not None and frame.f_code.co_filename.startswith((KIT, contextlib.__file__)):
        return True
    hook = getattr(sys.unraisablehook, "func", sys.unraisablehook)  # pytest has a partial function there
    reports = getattr(hook, "__code__", None)
    cleared = (weakref.__file__, _weakrefset.__file__)
    while frame is not None and frame.f_code is not reports and not frame.f_code.co_filename.startswith(cleared):
        frame = frame.f_back
    return frame is not None


@contextmanager
def _watched(ends: float) -> Iterator[None]:
    def called(frame: FrameType, event: str, arg: object) -> Any:
        return None if frame.f_code.co_filename.startswith(KIT) else went(frame, event, arg)

    def went(frame: FrameType, event: str, arg: object) -> object:
        if time.monotonic() > ends:
            raise TimeLimitExceeded
        return went

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(before)


_current: ContextVar[Judging | None] = ContextVar("judging", default=None)


def still_running(what: str) -> None:
    """Print the part of a judgement that begins now, if nothing was printed for `PATIENCE` seconds."""
    state = _current.get()
    if state is not None and time.monotonic() - state.shown > PATIENCE:
        state.shown = time.monotonic()
        print(f"(still running: {what})", flush=True)


@contextmanager
def judging() -> Iterator[Judging]:
    """Judge one answer inside: clusters give up after `BUSY` seconds of work, output is cut, Ctrl-C noted."""
    state = Judging()
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None

    def press(number: int, frame: FrameType | None) -> None:
        state.pressed = True
        if callable(handler):
            handler(number, frame)

    if callable(handler):
        signal.signal(signal.SIGINT, press)
    token, outer = LONGEST.set(BUSY), _current.set(state)
    try:
        with redirect_stdout(LimitedOutput(sys.stdout)):
            yield state
    finally:
        state.over = True
        LONGEST.reset(token)
        _current.reset(outer)
        if callable(handler):
            signal.signal(signal.SIGINT, handler)


class LimitedOutput(io.TextIOBase):
    """A text stream that passes on so much and then says that it stops."""

    def __init__(self, to: TextIO) -> None:
        self.to, self.left = to, PRINTED

    def write(self, text: str) -> int:
        if self.left > 0:
            self.to.write(text[: self.left])
            self.left -= len(text)
            if self.left <= 0:
                self.to.write(f"\n[only the first {PRINTED:,} characters of what your code prints are shown]\n")
        return len(text)

    def flush(self) -> None:
        self.to.flush()


class UnusableAnswer(Exception):
    """An answer that cannot be judged; the text begins with a verb, such as `holds itself`."""


class _Copier:
    """Turns one answer into plain values that a judge can compare and print; UnusableAnswer for one too large."""

    def __init__(self, state: Judging) -> None:
        self.state, self.parts, self.within = state, 0, set[int]()

    def copied(self, value: Any, depth: int) -> Any:
        """The copy; no method is called that a class outside of the standard library and this package has written."""
        kind = type(value)
        if value is None or value is ... or kind in (bool, float, complex):
            return value
        if kind.__module__.startswith("kafka_ctl.") and not isinstance(value, tuple):
            return value
        if isinstance(value, int) and not isinstance(value, Enum):
            return self._number(int.__int__(value))
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, (str, bytes, bytearray)) and not isinstance(value, Enum):
            return self._text(value)
        if kind.__module__ in VALUES:
            return value
        if kind.__module__ == "numpy":
            fits = getattr(value, "size", PARTS + 1) <= PARTS
            return self.copied(value.tolist(), depth) if fits else UnknownObject(value)
        if (parts := self._iterated(value)) is not None:
            return self._container(value, parts, depth)
        return self.state.limited(value) if callable(value) else UnknownObject(value)

    def _number(self, value: int) -> int:
        if value.bit_length() > BITS:
            raise UnusableAnswer("is a number of more than 1,000 digits")
        return value

    @staticmethod
    def _text(value: object) -> str | bytes | bytearray:
        base: Any = next(base for base in (str, bytes, bytearray) if isinstance(value, base))
        if base.__len__(value) > CHARACTERS:
            raise UnusableAnswer(f"is a text of more than {CHARACTERS:,} characters")
        copied: str | bytes | bytearray = base.__getitem__(value, slice(None))
        return copied if type(copied) is base else base(copied)

    @staticmethod
    def _iterated(value: Any) -> Iterable[object] | None:
        """The parts of a container, by the methods of its built-in type; what a generator or an iterator gives."""
        bases: tuple[Any, ...] = (list, tuple, set, frozenset, deque)
        for base in bases:
            if isinstance(value, base):
                return iter(base.__iter__(value))
        if isinstance(value, dict):
            return iter(dict.items(value))
        kinds: tuple[type, ...] = (range, type({}.keys()), type({}.values()), type({}.items()))
        return iter(value) if type(value) in kinds or hasattr(type(value), "__next__") else None

    def _container(self, value: object, parts: Iterable[Any], depth: int) -> object:
        if id(value) in self.within:
            raise UnusableAnswer("holds itself")
        if depth >= DEPTH:
            raise UnusableAnswer(f"is nested more than {DEPTH} deep")
        self.within.add(id(value))
        copied, is_dict = [], isinstance(value, dict)
        for part in parts:
            self.parts += 1
            if self.parts > PARTS:
                raise UnusableAnswer(f"has more than {PARTS:,} parts")
            copied.append(tuple(self.copied(p, depth + 1) for p in part) if is_dict else self.copied(part, depth + 1))
        self.within.discard(id(value))
        if isinstance(value, tuple):
            ours = type(value).__module__.startswith("kafka_ctl.")
            return tuple.__new__(type(value) if ours else tuple, copied)
        base = next((base for base in (set, frozenset, dict) if isinstance(value, base)), list)
        return base(copied)
