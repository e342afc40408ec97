"""Ctrl-C while a lab runs: taken between two callbacks, so that it interrupts no actor, or when the command is done.

Separate from `loop.py` because a loop without signals, as in a browser, needs none of it.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """The signals that reached one loop."""

    def __init__(self) -> None:
        self.pending: Callable[[], object] | None = None
        """The call between two callbacks; kept until it has been done."""
        self.stopped: BaseException | None = None
        """The last exception of that call."""
        self._at_once = False
        self._holder: object = None
        """The handler of the signal while it is held back."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold Ctrl-C back until the loop, or the end of this, takes it.

        The signal's handler, in Python and in this thread, is called then instead of at once, and decides whether
        that stops anything.
        """
        main = threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGINT) if main else None
        if not callable(handler):  # another thread, or no handler in Python: nothing can be torn apart
            yield
            return

        def note(number: int, frame: FrameType | None) -> None:
            if self._at_once:
                handler(number, frame)
            else:
                self.pending = functools.partial(handler, number, None)

        # One command may be given within another: what has been asked for meanwhile, and how, belongs to the outer one.
        outer, before = self._holder, self._at_once
        if outer is not handler:  # the outermost: what came while the last one ended has been raised then
            self.pending = None
        signal.signal(signal.SIGINT, note)
        self._holder, self._at_once = note, False
        try:
            yield
        finally:
            self._holder, self._at_once = outer, before
            signal.signal(signal.SIGINT, handler)
            self.take()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let Ctrl-C through after all: here runs a learner's function, which may never end."""
        before, self._at_once = self._at_once, True
        try:
            yield
        finally:
            self._at_once = before

    def later(self, error: BaseException) -> None:
        """Raise this between two callbacks: an actor called what Ctrl-C has interrupted, and goes on without it."""

        def stop() -> None:
            raise error

        self.pending = stop

    def take(self) -> None:
        """Do what a signal has asked for, if one has; raises what that raises, such as KeyboardInterrupt."""
        pending, self.pending = self.pending, None
        try:
            if pending is not None:
                pending()
        except BaseException as stop:
            self.stopped = stop
            raise
