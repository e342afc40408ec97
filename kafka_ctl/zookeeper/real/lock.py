"""One lab at a time in a chroot: the lab that creates the lock has it.

/kafka_ctl_lab     ephemeral, so it goes with the session of its lab, however that ends; its data names that lab

Separate from `chroot.py` because a lock is taken before anything is known of the znodes.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress

from kafka_ctl.errors import BadInput
from kafka_ctl.zookeeper.real.session import RemoteSession
from kafka_ctl.zookeeper.store import Create, Delete, Get, Multi, Result

LOCK = "/kafka_ctl_lab"
OWN = "give the lab a chroot of its own, such as host:port/kit"
LOOK = 0.1
"""Seconds between two looks at what is to vanish."""
TICK = 2.0
"""ZooKeeper's usual tickTime in seconds: a session may end so much later than its timeout."""
LONGEST = 86_400.0
"""Seconds: no session lives longer than a day, so a lock that says so was written by hand."""

_open: set[str] = set()
"""The labs of this process that have a lock, by their tokens."""


def outliving(seconds: float) -> float:
    """A timeout for the lock's session: clients ping after each third of one, so if we stop, two thirds are left."""
    return 1.5 * seconds + 1


def outlived(seconds: float) -> float:
    """The longest timeout of a session that a lock with this one outlives."""
    return (seconds - 1) / 1.5


class Lock:
    """The lock of one lab at `path` on the server; `address` is for texts."""

    def __init__(self, path: str, address: str) -> None:
        self.path, self.address = path, address
        self.token = uuid.uuid4().hex
        self.taken = False
        """True if this lab once held it; it may be lost since, with its session."""

    async def take(
        self, tools: RemoteSession, missing_roots: Callable[[RemoteSession], Awaitable[list[str]]]
    ) -> list[str]:
        """Create the lock and, in the same transaction, what is missing of the chroot, which is returned.

        While the lock is another's, wait as long as its session would live if that lab had been killed. Raises
        BadInput when it is still there then, and at once when that lab is just being opened or is in this process.
        """
        loop = asyncio.get_running_loop()
        end, raced = 0.0, False
        while True:
            held = (await tools.send([Get(self.path)]))[0]
            if held.error == "NONODE":
                roots = await missing_roots(tools)
                both = Multi((*map(Create, roots), Create(self.path, self._content(tools), ephemeral=True)))
                answer = (await tools.send([both]))[0]
                if answer.error is None:
                    self.taken = True
                    _open.add(self.token)
                    return roots
                if answer.error not in ("NODEEXISTS", "NONODE"):
                    raise BadInput(f"ZooKeeper {self.address}: a lab cannot write there: {answer.error}")
                raced = True
                continue
            who = Holder(held.checked())
            if who.session == tools.id:
                return []
            end = end or loop.time() + who.seconds + min(TICK, who.seconds / 2) + LOOK
            alive = raced or who.token in _open or not who.session or loop.time() > end
            if alive and who.token != self.token:  # our own one, of an earlier session, is about to go
                raise BadInput(
                    f"another lab uses ZooKeeper {self.address}: {LOCK} belongs to {who}; close that one, or {OWN}"
                )
            await asyncio.sleep(LOOK)

    def _content(self, tools: RemoteSession) -> bytes:
        who = {"version": 1, "process": os.getpid(), "host": socket.gethostname(), "token": self.token}
        return json.dumps(who | {"seconds": tools.granted}).encode()

    async def is_held(self, tools: RemoteSession) -> bool:
        there = await tools.exists(self.path)
        return there is not None and there.ephemeral_owner == tools.id

    def release(self) -> None:
        """Let another lab of this process wait for the lock, which is about to go."""
        _open.discard(self.token)

    async def remove(self, tools: RemoteSession, roots: list[str]) -> None:
        """Remove the lock and, in the same transaction, as much of `roots` (children first) as is empty."""
        while True:
            answer = (await tools.send([Multi((Delete(self.path), *map(Delete, roots)))]))[0]
            parts = answer.value if isinstance(answer.value, tuple) else ()
            failed = next((n for n, part in enumerate(parts) if part.error in ("NOTEMPTY", "NONODE")), 0)
            if answer.error is None or not failed:
                return
            roots = roots[: failed - 1]


class Holder:
    """The lab that a lock names."""

    def __init__(self, lock: Result) -> None:
        assert isinstance(lock.value, bytes) and lock.stat is not None
        self.session = lock.stat.ephemeral_owner
        content = None
        with suppress(ValueError, RecursionError):
            content = json.loads(lock.value)
        known = content if isinstance(content, dict) else {}
        seconds = known.get("seconds")
        self.seconds = float(seconds) if isinstance(seconds, (int, float)) and 0 < seconds < LONGEST else 0.0
        self.token, self.process, self.host = (known.get(name) for name in ("token", "process", "host"))

    def __str__(self) -> str:
        here = (self.process, self.host) == (os.getpid(), socket.gethostname())
        return "this process" if here else f"process {self.process} on {self.host}"
