"""Two of the three ports by which the actors meet the outside: the clock and the network.

The third, the store, is in `zookeeper/store.py`. An actor gets whatever world it lives in through these, and knows
nothing else of it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Protocol, TypeVar, TypeVarTuple

from kafka_ctl.errors import ConditionNotMet
from kafka_ctl.requests import Request, Response

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
Args = TypeVarTuple("Args")
PROCESS: ContextVar[int | None] = ContextVar("process", default=None)
"""The broker whose process the current callback belongs to; None for the world around it."""

LIMIT = 3600.0
"""Seconds of virtual time after which `settle` gives up."""


class Halted(ConditionNotMet):
    """The moment has come at which a replay was to stop; whatever was under way can go on from there."""


class Timer(Protocol):
    """A callback that has been asked for."""

    def cancel(self) -> None:
        """Do not call it any more."""


class Clock(Protocol):
    """Time, virtual or real, in seconds since the clock was made."""

    loop: asyncio.AbstractEventLoop
    """The event loop that the actors run on."""

    @property
    def in_order(self) -> bool:
        """True on virtual time, while events come in the order of their times."""

    def now(self) -> float:
        """Seconds since the clock was made."""

    def wall(self) -> int:
        """Milliseconds on the clock of the machines, as ZooKeeper's `ctime` has them."""

    def later(
        self, seconds: float, callback: Callable[[*Args], object], *args: *Args, background: bool = False
    ) -> Timer:
        """Call `callback(*args)` in so many seconds; `settle` does not wait for a `background` timer."""

    def at(
        self, when: float, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> Timer:
        """Call `callback(*args)` at this time; what was asked for earlier for the same time is called earlier."""

    def sleep(self, seconds: float, background: bool = False) -> Coroutine[object, None, None]:
        """Wait so many seconds; `settle` does not wait for a `background` wait."""

    async def sleep_until(self, when: float, background: bool = False) -> None:
        """Wait until exactly this time."""

    def spawn(self, coro: Coroutine[object, None, T], context: Context | None = None) -> asyncio.Task[T]:
        """Start a task."""

    def hold(self, process: int) -> None:
        """Run no task of this broker's process until it is released; on virtual time only."""

    def release(self, process: int) -> None:
        """Let its tasks go on."""


class RealTime(Clock, Protocol):
    """A clock on real time, as a real store needs it."""

    pending: int
    """Operations under way that a settled lab waits for."""

    def failed(self, error: BaseException) -> None:
        """Raise an uncaught error in the thread that drives the lab."""


class Network(Protocol):
    """Requests from one broker to another."""

    async def call(self, source: int, target: int, request: Request) -> tuple[Response, int]:
        """Deliver a request and return the answer, with the `seq` of its record.

        Raises ConnectionError if the target is not there or goes away before it answers.
        """
