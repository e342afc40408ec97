"""What ends a lab that nobody closes: it is dropped, or the program ends, also by SIGTERM.

Whoever kills a program with kill -9 leaves the znodes to their sessions, and an embedded server to its supervisor.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_ctl.simulation.world import World

_exiting = False
_on_real_time: set[weakref.finalize] = set()
"""The ends of labs with threads, and perhaps servers, of their own."""


class Keeper:
    """Held by a lab and by nothing else: it is dropped with the lab, or moves to the lab that takes over its world."""


def keep(world: World) -> Keeper:
    """Let the world end with whoever holds the answer."""
    keeper = Keeper()
    end = weakref.finalize(keeper, _end, world, os.getpid())
    if not world.is_memory:
        _on_real_time.difference_update([other for other in _on_real_time if not other.alive])
        _on_real_time.add(end)
        _heed_sigterm()
    atexit.unregister(_note_exit)
    atexit.register(_note_exit)  # after weakref has registered its own, so it comes before that
    return keeper


def _end(world: World, process: int) -> None:
    if os.getpid() == process:  # a fork has copies of everything but the threads
        world.dropped(_exiting)


def _note_exit() -> None:
    global _exiting
    _exiting = True


def _heed_sigterm() -> None:
    """Let SIGTERM end the labs and then the program, unless somebody else has an answer to it."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: object) -> None:
    _note_exit()
    for end in list(_on_real_time):
        end()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
