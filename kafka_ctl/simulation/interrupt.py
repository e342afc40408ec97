"""Ctrl-C while a lab runs: taken between two callbacks, so that it interrupts no actor, or when the command is done."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """What signals have asked of one loop."""

    def __init__(self) -> None:
        self.pending: Callable[[], object] | None = None
        """What to do between two callbacks."""
        self.stopped: BaseException | None = None
        """What that raised, the last time it raised anything."""
        self._at_once = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold Ctrl-C back until the loop, or the end of this, takes it.

        Whoever handles the signal, in Python and in this thread, is asked then instead of at once, and decides whether
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

        self.pending, self._at_once = None, False
        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)
            self.take()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let Ctrl-C through after all: here runs what somebody else has written."""
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    def take(self) -> None:
        """Do what a signal has asked for, if one has; raises what that raises, such as KeyboardInterrupt."""
        pending, self.pending = self.pending, None
        try:
            if pending is not None:
                pending()
        except BaseException as stop:
            self.stopped = stop
            raise
