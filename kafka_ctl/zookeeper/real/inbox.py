"""What a real server said to a session, handed on in the order in which it was said."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from kafka_ctl.zookeeper.real.causes import OperationRecorder, watch_keys
from kafka_ctl.zookeeper.store import Children, Exists, Get, Op, Result, WatchedEvent


class Owner(Protocol):
    """What an inbox needs of the store whose session it belongs to."""

    recorder: OperationRecorder

    def deliver(self) -> None:
        """Hand on what no inbox need keep waiting any more."""

    def failed(self, error: Exception) -> None:
        """Keep an error of a watcher or listener for whoever asks."""


class Inbox:
    """A watch waits while the write that may have fired it is unanswered, and what was said later waits with it."""

    def __init__(self, store: Owner) -> None:
        self.store = store
        self._waiting: deque[tuple[WatchedEvent | None, int, Callable[[], None]]] = deque()
        self._armed: dict[tuple[str, str], int] = {}

    def arm(self, op: Op, result: Result | None, zxid: int) -> None:
        """Note the watch that an answered read has armed, if any."""
        watches = isinstance(op, (Get, Exists, Children)) and op.watch
        if watches and result is not None and (result.error is None or isinstance(op, Exists)):
            self._armed.setdefault(watch_keys(op)[0], zxid)

    def fired(self, event: WatchedEvent) -> int:
        """The zxid at which the watch that has fired was armed."""
        return min([self._armed.pop(key) for key in watch_keys(event) if key in self._armed], default=0)

    def put(self, act: Callable[[], None], event: WatchedEvent | None = None, armed: int = 0) -> None:
        """Queue up what the server said, and hand on whatever need not wait."""
        self._waiting.append((event, armed, act))
        self.deliver()
        self.store.deliver()

    def deliver(self) -> None:
        """Hand on what need not wait any more."""
        recorder = self.store.recorder
        while self._waiting:
            event, armed, act = self._waiting[0]
            if event is not None and recorder.cause(event, armed) is None and recorder.awaits(event):
                return
            self._waiting.popleft()
            try:
                act()
            except Exception as error:  # of a watcher or listener; the rest must still be heard
                self.store.failed(error)
