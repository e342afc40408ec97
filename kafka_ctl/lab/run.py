"""The running part of a lab: a world, what acts on it, and its end.

Only this module of the folder loads brokers, a controller and asyncio, when a lab is opened; others know their types.
So `from kafka_ctl import Lab`, and a command that opens no lab, start fast.
"""

from __future__ import annotations

import atexit
import os
import signal
import weakref
from dataclasses import dataclass

from kafka_ctl.errors import BadInput, check_not_in_browser
from kafka_ctl.extras import needed_for
from kafka_ctl.invariants import Checker
from kafka_ctl.lab.admin import Admin
from kafka_ctl.lab.producer import Producer
from kafka_ctl.lab.story import Command
from kafka_ctl.simulation.world import MemoryWorld, World, WorldOptions
from kafka_ctl.zookeeper.store import EMBEDDED, MEMORY


@dataclass
class RunState:
    """The part of a lab that time travel exchanges: a world, what acts on it, and the commands given so far.

    Only a lab holds it, and hands it on to a lab that takes over its world: when it is dropped, the world ends.
    """

    world: World
    checker: Checker | None
    admin: Admin
    producer: Producer
    commands: list[Command]
    opened: int = 0
    """The number of records when the lab had been opened: its first moment."""


def begin(world: World) -> RunState:
    """A run of a world, with an administrator and a producer; it ends with the last holder of what is returned."""
    checker = Checker(world) if isinstance(world, MemoryWorld) else None
    run = RunState(world, checker, new_admin(world), Producer(world), [])
    _end_with(run)
    return run


def new_admin(world: World) -> Admin:
    """Another administrator of a world, with a session of its own."""
    return Admin(world.store, world.trace, world.random, world.generation, world.plugins)


def open_world(zookeeper: str, options: WorldOptions, join: bool, wire: bool, fresh: bool) -> World:
    """The world for `memory`, `embedded` or an address; `join` and `fresh` need an address, `wire` real time."""
    if join and zookeeper in (MEMORY, EMBEDDED):
        raise BadInput(f"join=True needs a zookeeper='host:port/chroot' of others; {zookeeper!r} has nothing to join")
    if fresh and zookeeper in (MEMORY, EMBEDDED):
        raise BadInput(f"fresh=True needs a zookeeper='host:port/chroot'; {zookeeper!r} is empty for every lab anyway")
    if fresh and join:
        raise BadInput(
            "fresh=True begins with an empty chroot, join=True with what others have there: give one of them"
        )
    if zookeeper == MEMORY and wire:
        check_not_in_browser("Lab(wire=True)")
        from kafka_ctl.simulation.real_time import MemoryInRealTime

        return MemoryInRealTime(options)
    if zookeeper == MEMORY:
        return MemoryWorld(options)
    if ":" not in zookeeper and zookeeper != EMBEDDED:
        allowed = f"write host:port/chroot, {EMBEDDED!r} or {MEMORY!r}"
        raise BadInput(f"ZooKeeper address {zookeeper!r} cannot be read; {allowed}")
    check_not_in_browser("a real ZooKeeper")
    with needed_for("a real ZooKeeper"):
        from kafka_ctl.simulation.real_world import RealWorld

    return RealWorld(zookeeper, options, join, among=join and wire, fresh=fresh)


# The end of a lab that is not closed

_exiting = False
_on_real_time: set[weakref.finalize] = set()
"""The ends of labs with threads, and perhaps servers, of their own."""


def _end_with(run: RunState) -> None:
    """Let the world end with its run, or with the program, also by SIGTERM.

    After kill -9 the znodes are left to their sessions, and an embedded server to its supervisor.
    """
    end = weakref.finalize(run, _end, run.world, os.getpid())
    if not run.world.is_memory:
        _on_real_time.difference_update([other for other in _on_real_time if not other.alive])
        _on_real_time.add(end)
        _heed_sigterm()
    atexit.unregister(_note_exit)
    atexit.register(_note_exit)  # after weakref has registered its own, so it comes before that


def _end(world: World, process: int) -> None:
    if os.getpid() == process:  # a fork has copies of everything but the threads
        world.dropped(_exiting)


def _note_exit() -> None:
    global _exiting
    _exiting = True


def _heed_sigterm() -> None:
    """Let SIGTERM end the labs and then the program, unless the program handles it itself."""
    import threading  # here: a browser's Python has no threads, and needs no signals

    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: object) -> None:
    _note_exit()
    for end in list(_on_real_time):
        end()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
