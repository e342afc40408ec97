"""The chroot of a lab: one lab at a time, and only if labs have made everything that is there.

The lab that creates the lock has the chroot:

    /kafka_ctl_lab     ephemeral, so it goes with the session of its lab, however that ends; its data names that lab

A znode that a lab makes has an ACL of its own (`kazoo_connection.LABS`), so what a killed lab left is recognised, znode
by znode, from what other programs have made. A lab reads everything below its chroot before it writes anything there.

Separate from `real_world.py` because what it deletes is decided here alone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from kafka_ctl.errors import BadInput, ConnectionLoss, SessionExpired, Unavailable, ZooKeeperError
from kafka_ctl.ports import RealTime
from kafka_ctl.trace.record import Recorder
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.real.kazoo_connection import LABS
from kafka_ctl.zookeeper.real.server import EmbeddedServer
from kafka_ctl.zookeeper.real.session import RemoteSession
from kafka_ctl.zookeeper.real.store import WINDOW, RemoteStore
from kafka_ctl.zookeeper.store import (
    EXPIRED,
    Children,
    Create,
    Delete,
    Get,
    Made,
    Multi,
    Result,
    Stat,
    StateListener,
    Watcher,
)

_log = logging.getLogger(__name__)

NAMED = 5
"""The number of foreign znodes that a refusal names."""
Dump = Mapping[str, tuple[bytes, int, int]]


class Found(NamedTuple):
    """A znode below the chroot: whether a lab made it, the session it belongs to (0: none), and its czxid and mzxid."""

    path: str
    labs: bool
    owner: int
    czxid: int
    mzxid: int


class LabStore(RemoteStore):
    """The store of a lab in an existing ZooKeeper; `claim` comes before the first session.

    `session_seconds` is the longest timeout of a session; the lock outlives them all. With `join`, what others have
    made may be there, and goes on being theirs: what they have written to since stays when the lab is closed. With
    `among`, their brokers may be alive.
    """

    acl = LABS

    def __init__(
        self,
        address: str,
        clock: RealTime,
        trace: Recorder,
        server: EmbeddedServer | None = None,
        session_seconds: float = 6.0,
        join: bool = False,
        among: bool = False,
    ) -> None:
        super().__init__(address, clock, trace, server)
        self.join, self.among, self.session_seconds = join, among, session_seconds
        self.housekeeping = outliving(session_seconds)
        self.lock = Lock(self.inside(LOCK), self.address)
        self.lost = ""
        """The reason why this lab has lost its chroot to another one; empty while it has not."""

    @property
    def address(self) -> str:
        return self.servers + self.chroot

    async def connect(self, actor: str, timeout: float, watcher: Watcher, listener: StateListener) -> RemoteSession:
        """A session that does not outlive the lock: a lab with a session has the chroot."""
        session = await super().connect(actor, min(timeout, self.session_seconds), watcher, listener)
        try:
            await self._make_sure_of_lock()
        except BaseException:
            session.abandon()
            raise
        return session

    async def dump(self, root: str = "/") -> dict[str, tuple[bytes, int, int]]:
        """The znodes from `root` down but ZooKeeper's own `/zookeeper` and our lock."""
        found = await super().dump(root)
        found.pop(LOCK, None)
        return found

    async def stat(self, path: str) -> Stat | None:
        """The Stat of a znode but our lock."""
        return None if path == LOCK else await super().stat(path)

    async def close(self, remove: bool = True) -> None:
        self.lock.release()
        await super().close(remove)

    # Taking the chroot

    async def claim(self, check: Callable[[Dump], None], fresh: bool = False) -> None:
        """Take the chroot for this lab, which makes it if it is missing; `check` may refuse what is there.

        Znodes that earlier labs have left are this lab's from now on; with `fresh` they are removed at once. Raises
        BadInput where others have made something (unless we join them), where others have sessions, where an ACL keeps
        a lab out, and where another lab is open or just being opened. Nothing has been written then.
        """
        tools = await self._housekeeper()
        if tools.granted > self.housekeeping:  # the server grants nothing shorter, to no session
            self.housekeeping = outliving(tools.granted)
            await tools.close()
            tools = await self._housekeeper()
        self.session_seconds = min(self.session_seconds, outlived(tools.granted))
        await self._look(_anything if fresh else check, lambda found: not found.labs)
        await self._lock(tools)
        found = await self._look(_anything if fresh else check, lambda found: True)  # others may have come, but no lab
        await self._take_over(tools, found)
        if fresh:
            with _authorized(self.address):
                await self._remove_made(tools)
            self.created.clear()
            check(await self.dump())

    async def _take_over(self, tools: RemoteSession, found: Iterable[Found]) -> None:
        """Take over the znodes that killed labs have left, also the parts of the chroot that they made.

        Among others (`join`) only what has not been written to since: they may be using the rest.
        """
        left = (there for there in found if there.labs and not there.owner)
        self.created |= {there.path: there.czxid for there in left if not self.join or there.mzxid == there.czxid}
        roots, path = [], self.chroot
        while path and (await tools.send([Made(path)]))[0].value is True:
            roots.append(path)
            path = path.rpartition("/")[0]
        self._made_roots = roots[::-1]  # with those that this lab has just made

    async def _look(self, check: Callable[[Dump], None], outlives_us: Callable[[Found], bool]) -> list[Found]:
        """Read everything; ephemeral znodes for which `outlives_us` holds must vanish as their sessions end."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.session_seconds + 1
        while True:
            found = await self._survey()
            if not self.join and (others := [there.path for there in found if not there.labs]):
                raise BadInput(await self._refusal(others))
            own = [there for there in found if there.labs] if self.among else found
            living = [there.path for there in own if there.owner and outlives_us(there)]
            if not living:
                check(await self.dump())
                return found
            if loop.time() > end:
                raise BadInput(
                    f"Kafka brokers run at ZooKeeper {self.address}: the sessions of {_listed(living)} are alive. "
                    "A lab's brokers can reach them only with wire=True and join=True; stop those brokers, "
                    f"or {OWN}"
                )
            await asyncio.sleep(LOOK)

    async def _survey(self) -> list[Found]:
        """The znodes below the chroot but the lock; no deeper than foreign znodes, unless we join."""
        tools = await self._housekeeper()
        found: list[Found] = []
        level = [self.chroot or "/"]
        while level and (self.join or all(there.labs for there in found)):
            level = await self._below(level)
            for answer in await tools.send([Made(path) for path in level], WINDOW):
                owner, *times = _of(answer.stat)
                if answer.error != "NONODE" and not (answer.op.path == self.lock.path and owner):
                    found.append(Found(self.outside(answer.op.path), answer.value is True, owner, *times))
        return found

    async def _refusal(self, others: list[str]) -> str:
        """Names what others have made here: first the znodes that only a Kafka makes."""
        tools = await self._housekeeper()
        paths = [znodes.ClusterIdZNode.path(), znodes.ControllerEpochZNode.path(), znodes.ControllerZNode.path()]
        folders = [znodes.TopicsZNode.path(), znodes.BrokerIdsZNode.path(), znodes.DeleteTopicsZNode.path()]
        for answer in await tools.send([Children(self.inside(path)) for path in folders]):
            names = answer.value if isinstance(answer.value, list) else []
            paths += [f"{self.outside(answer.op.path)}/{name}" for name in names[:NAMED]]
        answers = await tools.send([Made(self.inside(path)) for path in paths])
        named = [self.outside(a.op.path) for a in answers if a.error is None and not a.value]
        named += [path for path in others if not any(f"{name}/".startswith(f"{path}/") for name in named)]
        return (
            f"ZooKeeper {self.address} has znodes that no lab made: {_listed(named)}. If they belong to a Kafka "
            f"cluster, a lab would become its controller and change them; {OWN}. join=True (on the command line: "
            "--join) lets the lab take part in that cluster and change its znodes"
        )

    # The lock

    async def _lock(self, tools: RemoteSession) -> None:
        with _authorized(self.address):
            self._made_roots += await self.lock.take(tools, self._missing_roots)

    async def _prepare(self, tools: RemoteSession) -> None:
        """A new session of the store: if we had the lock, it went with the old one, and must be had before all else."""
        if self.lock.taken and not self.lost:
            try:
                await self._lock(tools)
            except BadInput as taken:
                self.lost = f"this lab had lost its session, and meanwhile {taken}"
                for session in list(self.sessions):
                    session.abandon()
        if self.lost:
            raise BadInput(self.lost)

    def _housekeeping_state(self, state: str) -> None:
        if state == EXPIRED and self.lock.taken and self.clock is not None:
            self.clock.spawn(self._lock_again())

    async def _make_sure_of_lock(self) -> None:
        while True:
            tools = await self._housekeeper()
            try:
                if not await self.lock.is_held(tools):
                    await self._prepare(tools)
                return
            except SessionExpired:
                continue
            except ConnectionLoss as lost:
                raise Unavailable(f"ZooKeeper at {self.address} does not answer") from lost

    async def _lock_again(self) -> None:
        with suppress(Unavailable, ZooKeeperError):  # the next need tries once more
            await self._housekeeper()

    # The end

    async def _remove(self) -> None:
        """Remove what this lab made, unless brokers that are not the lab's are registered there now."""
        tools = self.tools
        if not self.lock.taken or self.lost or tools is None:
            return
        if brokers := await self._other_brokers(tools):
            _log.warning("at ZooKeeper %s %s live now: what the lab made is left", self.address, _listed(brokers))
            return
        await self._remove_made(tools)
        await self.lock.remove(tools, self._made_roots[::-1])

    async def _other_brokers(self, tools: RemoteSession) -> list[str]:
        registered = await self._below([self.inside(znodes.BrokerIdsZNode.path())])
        answers = await tools.send([Made(path) for path in registered])
        return [self.outside(answer.op.path) for answer in answers if answer.error is None and not answer.value]

    def _is_ours(self, path: str, mark: int, stat: Stat) -> bool:
        """True if we made it; with `join`, what another client has written to since is not ours."""
        ours = stat.mzxid in (stat.czxid, self.written.get(path)) or not self.join
        return ours and super()._is_ours(path, mark, stat)


def _anything(found: Dump) -> None:
    """Refuse nothing."""


@contextmanager
def _authorized(address: str) -> Iterator[None]:
    """Raise BadInput, instead of NOAUTH, where the ACL of a znode keeps a lab out."""
    try:
        yield
    except ZooKeeperError as error:
        if error.code != "NOAUTH":
            raise
        raise BadInput(
            f"ZooKeeper {address}: a lab cannot read or write {error.path}, because its connection is not authorized "
            f"(NOAUTH). A lab sends no credentials, so every client must have all rights there; {OWN}"
        ) from error


def _of(stat: Stat | None) -> tuple[int, int, int]:
    """The session, czxid and mzxid of a znode; zeros of one that may not be read."""
    return (stat.ephemeral_owner, stat.czxid, stat.mzxid) if stat else (0, 0, 0)


def _listed(paths: Iterable[str]) -> str:
    first = list(paths)
    return ", ".join(first[:NAMED]) + (f" and {len(first) - NAMED} more" if len(first) > NAMED else "")


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
                if answer.error == "NOAUTH":
                    raise answer.exception
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
