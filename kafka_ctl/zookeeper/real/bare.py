"""A store for sessions alone: it keeps no session of its own, and makes no chroot.

Separate from `store.py` because the store there makes the chroot before the first session.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_ctl.ports import RealTime
from kafka_ctl.zookeeper.real.session import RemoteSession
from kafka_ctl.zookeeper.real.store import RemoteStore
from kafka_ctl.zookeeper.store import StateListener, Watcher


class BareStore(RemoteStore):
    """The way to a ZooKeeper that belongs to others; `auth` are the credentials of every session."""

    def __init__(self, address: str, clock: RealTime | None = None, auth: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(address, clock)
        self.auth = auth

    async def connect(self, actor: str, timeout: float, watcher: Watcher, listener: StateListener) -> RemoteSession:
        session = RemoteSession(self, actor, timeout, watcher, listener)
        await session.open()
        self.sessions.add(session)
        return session
