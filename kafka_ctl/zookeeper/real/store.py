"""A real ZooKeeper behind the store port: the embedded server, or any `host:port,host:port/chroot`.

Nothing outside the chroot is ever touched, and what the store made is removed with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from kafka_ctl.errors import BadInput, ZooKeeperError
from kafka_ctl.ports import RealTime
from kafka_ctl.trace.record import Recorder
from kafka_ctl.zookeeper.real.server import EmbeddedServer
from kafka_ctl.zookeeper.real.session import RemoteSession, SessionRegistry
from kafka_ctl.zookeeper.store import (
    Children,
    Create,
    Delete,
    Exists,
    Get,
    Stat,
    StateListener,
    Store,
    Watcher,
    parent_of,
)

_log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
"""Seconds that `connect` waits for a server."""
WINDOW = 100
"""Operations in flight when the store reads or clears a whole tree."""


class RemoteStore(SessionRegistry, Store):
    """Any ZooKeeper from 3.4 on.

    `address` is `host:port`, several of them with commas, and a chroot if everything is to be below one:
    `127.0.0.1:2181/kit`. The chroot is made when it is missing. With a `trace`, what every session does is
    recorded. `server` is an embedded server that was started for this store and is stopped with it.
    Raises BadInput for an address that cannot be read.
    """

    housekeeping = 10.0
    """The timeout of its own session, in seconds."""

    def __init__(
        self,
        address: str,
        clock: RealTime | None = None,
        trace: Recorder | None = None,
        server: EmbeddedServer | None = None,
    ) -> None:
        super().__init__(*parse_address(address), clock, trace, CONNECT_SECONDS)
        self.server = server
        self._made_roots: list[str] = []
        self.tools: RemoteSession | None = None
        self._opening = asyncio.Lock()

    async def connect(self, actor: str, timeout: float, watcher: Watcher, listener: StateListener) -> RemoteSession:
        await self._housekeeper()
        session = RemoteSession(self, actor, timeout, watcher, listener)
        await session.open()
        self.sessions.add(session)
        if self.trace is not None:
            self.trace.add(actor, "zk", "connect", detail=f"session={session.id:#x} timeout={timeout:g}s")
        return session

    def expire(self, session: RemoteSession) -> None:
        """Have the server end a session whose client is alive; its listener is called soon."""
        session.expire()

    async def dump(self, root: str = "/") -> dict[str, tuple[bytes, int, int]]:
        """The znodes from `root` down but ZooKeeper's own `/zookeeper`.

        The znodes are read one by one: while another client writes, this is not the picture of one moment.
        """
        tools = await self._housekeeper()
        paths = [path for path in await self._tree(self.inside(root)) if path != (self.chroot or "/")]
        answers = await tools.send([Get(path) for path in paths], WINDOW)
        found = {}
        for answer in answers:
            if isinstance(answer.value, bytes) and answer.stat is not None:  # else it has gone meanwhile
                stat = answer.stat
                found[self.outside(answer.op.path)] = answer.value, stat.version, stat.ephemeral_owner
        return dict(sorted(found.items()))

    async def stat(self, path: str) -> Stat | None:
        tools = await self._housekeeper()
        return await tools.exists(self.inside(path))

    async def close(self, remove: bool = True) -> None:
        """Close all sessions, remove what this store made (unless asked not to), and stop a server of its own.

        The znodes that its sessions made go if they are still the same ones and have no children of others; then
        the chroot, if this store made it and it is empty.
        """
        await asyncio.gather(*(session.close() for session in list(self.sessions)))
        if self.tools is not None:
            if remove and self.server is None:
                try:
                    await self._remove()
                except ZooKeeperError as error:
                    _log.warning("znodes may be left on ZooKeeper at %s%s: %s", self.servers, self.chroot, error)
            await self.tools.close()
            self.tools = None
        if self.server is not None:
            self.server.stop()

    # The store's own session: the chroot, dumps, removal. Its paths are the server's; it leaves no records.

    async def _housekeeper(self) -> RemoteSession:
        async with self._opening:
            if self.tools is None or self.tools.over:
                self.tools = None
                tools = RemoteSession(self, "store", self.housekeeping, _ignore, self._housekeeping_state)
                tools.private = True
                await tools.open()
                try:
                    await self._prepare(tools)
                except BaseException:
                    tools.abandon()
                    raise
                self.tools = tools
            return self.tools

    async def _prepare(self, tools: RemoteSession) -> None:
        """The first operations of a new session of the store."""
        for path in await self._missing_roots(tools):
            if (await tools.send([Create(path)]))[0].error is None:
                self._made_roots.append(path)

    def _housekeeping_state(self, state: str) -> None:
        """The store's own session is Connected, Disconnected or Expired: the next need opens another one."""

    async def _missing_roots(self, tools: RemoteSession) -> list[str]:
        """The chroot and its parents, as far as they are missing, parents first."""
        missing = []
        path = self.chroot or "/"
        while await tools.exists(path) is None:
            missing.append(path)
            path = parent_of(path)
        return missing[::-1]

    async def _tree(self, root: str) -> list[str]:
        """All paths from `root` down, parents before their children, without ZooKeeper's own."""
        paths, level = [], [root]
        while level:
            paths += level
            level = await self._below(level)
        return paths

    async def _below(self, paths: list[str]) -> list[str]:
        """The paths of the children of these znodes, without ZooKeeper's own `/zookeeper`."""
        assert self.tools is not None
        answers = await self.tools.send([Children(path) for path in paths], WINDOW)
        children = [
            f"{answer.op.path.rstrip('/')}/{name}"
            for answer in answers
            if isinstance(answer.value, list)
            for name in answer.value
        ]
        return [path for path in children if path != "/zookeeper"]

    async def _remove(self) -> None:
        assert self.tools is not None
        await self._remove_made(self.tools)
        for answer in await self.tools.send([Delete(path) for path in reversed(self._made_roots)], WINDOW):
            if answer.error not in (None, "NONODE", "NOTEMPTY"):
                answer.checked()

    async def _remove_made(self, tools: RemoteSession) -> None:
        """Remove what our sessions made, children before their parents."""
        if left := sorted(self.doubtful - set(self.created)):
            _log.warning("znodes that may be left on ZooKeeper at %s: %s", self.servers, ", ".join(left))
        made = [*self.created.items(), *self.ephemerals.items(), *self.orphans.items()]
        answers = await tools.send([Exists(self.inside(path)) for path, _ in made], WINDOW)
        ours = [
            Delete(answer.op.path, answer.stat.version)
            for answer, (path, mark) in zip(answers, made, strict=True)
            if answer.stat and self._is_ours(path, mark, answer.stat)
        ]
        ours.sort(key=lambda delete: delete.path.count("/"), reverse=True)
        for answer in await tools.send(ours, WINDOW):
            if answer.error not in (None, "NONODE", "NOTEMPTY", "BADVERSION"):
                answer.checked()

    def _is_ours(self, path: str, mark: int, stat: Stat) -> bool:
        """True if this is still the znode that one of our sessions made; `mark` is its czxid or its session."""
        return mark in (stat.czxid, stat.ephemeral_owner or None)


def parse_address(address: str) -> tuple[str, str]:
    """`host:port,host:port/chroot` as (`host:port,host:port`, `/chroot` or an empty text)."""
    servers, slash, rest = address.partition("/")
    chroot = (slash + rest).rstrip("/")
    no_path = any(part in ("", ".", "..") for part in chroot.split("/")[1:]) or not chroot.isprintable()
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        plain = port.isascii() and port.isdigit() and len(port) < 6
        if not _is_host(host) or not plain or not 0 < int(port) < 65536 or no_path:
            allowed = "write host:port, host:port,host:port or host:port/chroot"
            raise BadInput(f"ZooKeeper address {address!r} cannot be read; {allowed}")
    return servers, chroot


def _is_host(text: str) -> bool:
    """True for what may be the name or the address of a machine."""
    try:
        return bool(text.encode("idna")) and text.isprintable() and " " not in text
    except UnicodeError:
        return False


def _ignore(_: object) -> None:
    """Ignore an event: the store's own session sets no watches."""


class BareStore(RemoteStore):
    """The way to a ZooKeeper that belongs to others; `auth` are the credentials of every session."""

    advice = "is the address right, and can this machine reach it?"

    def __init__(self, address: str, clock: RealTime | None = None, auth: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(address, clock)
        self.auth = auth

    async def connect(self, actor: str, timeout: float, watcher: Watcher, listener: StateListener) -> RemoteSession:
        session = RemoteSession(self, actor, timeout, watcher, listener)
        await session.open()
        self.sessions.add(session)
        return session
