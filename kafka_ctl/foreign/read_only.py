"""A store that can only read: the way to a ZooKeeper that belongs to others.

Every operation goes through `ReadOnlySession.send`, which passes on reads and nothing else. For such a client ZooKeeper
itself writes only the beginning and the end of its session.

Separate from `reading.py` because what protects the cluster is here alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_ctl.errors import BadInput, check_not_in_browser, short
from kafka_ctl.extras import needed_for
from kafka_ctl.ports import RealTime
from kafka_ctl.zookeeper.store import Children, Exists, Get, Op, Result, Session, StateListener, Store, Watcher

Auth = tuple[str, str]
"""Credentials of a client of ZooKeeper: `("digest", "user:password")`."""


class ReadOnlySession(Session):
    """A session that sends reads. Raises BadInput for every other operation, before anything is sent."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.id, self.actor = session.id, session.actor

    async def send(self, ops: Sequence[Op], window: int = 1) -> list[Result]:
        for op in ops:
            if not isinstance(op, (Get, Exists, Children)):
                raise BadInput(f"{type(op).__name__} of {op.path}: a cluster that is watched is only read")
        return await self._session.send(ops, window)

    async def close(self) -> None:
        await self._session.close()

    def abandon(self) -> None:
        self._session.abandon()


class ReadOnlyStore:
    """A store whose sessions can only read, and that makes and removes no chroot."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def connect(self, actor: str, timeout: float, watcher: Watcher, listener: StateListener) -> ReadOnlySession:
        """A session, as `Store.connect` opens it; close it when it is not needed any more."""
        return ReadOnlySession(await self._store.connect(actor, timeout, watcher, listener))


def remote(address: str, clock: RealTime, auth: Auth | None = None) -> ReadOnlyStore:
    """The ZooKeeper at `host:port,host:port/chroot`. Raises BadInput for an address or `auth` that cannot be read."""
    if not isinstance(address, str):
        raise BadInput(f"an address cannot be {short(address)}; write host:port/chroot")
    if auth is not None and not _is_digest(auth):
        raise BadInput('auth must be ("digest", "user:password"); ZooKeeper has that scheme for names and passwords')
    check_not_in_browser("a real ZooKeeper")
    with needed_for("a real ZooKeeper"):
        from kafka_ctl.zookeeper.real.store import BareStore

    return ReadOnlyStore(BareStore(address, clock, () if auth is None else (auth,)))


def _is_digest(auth: object) -> bool:
    match auth:
        case ("digest", str(credential)):
            return bool(credential.partition(":")[2]) and "\0" not in credential
    return False
