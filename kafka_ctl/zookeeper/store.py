"""The store port: the operations of ZooKeeper that the controller, brokers and tools use, in ZooKeeper's own terms.

A client opens a `Session` on a `Store` and sends operations, singly or pipelined through a window.
Watches are one-shot: a read with `watch=True` arms one, and the next change of that znode fires it.
Two implementations behave alike and pass one test suite: `memory.server.MemoryStore` and
`real.store.RemoteStore`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafka_ctl.errors import ZOOKEEPER_ERRORS, ZooKeeperError
from kafka_ctl.trace.record import Recorder

MEMORY, EMBEDDED = "memory", "embedded"
"""The two names of a ZooKeeper that needs no address."""
ANY_VERSION = -1


class Stat(NamedTuple):
    """The bookkeeping of a znode, as ZooKeeper's `stat` prints it. Times are milliseconds of the server's clock.

    ZooKeeper 3.4: org/apache/zookeeper/data/Stat (zookeeper.jute)
    """

    czxid: int
    """The zxid of its creation."""
    mzxid: int
    """The zxid of the last write of its data."""
    version: int
    """Writes of its data."""
    cversion: int
    """Creations and deletions of its children."""
    ephemeral_owner: int
    """The session that it goes with; 0 for a persistent znode."""
    num_children: int
    ctime: int
    mtime: int
    """The time of the last write of its data, at first that of its creation."""
    pzxid: int
    """The zxid of the last creation or deletion of a child, at first that of its own creation."""
    data_length: int
    """Bytes."""
    aversion: int = 0
    """Changes of its ACL."""


class Get(NamedTuple):
    path: str
    watch: bool = False


class Exists(NamedTuple):
    path: str
    watch: bool = False


class Children(NamedTuple):
    path: str
    watch: bool = False


class Made(NamedTuple):
    """True if a lab made this znode; asked by the store of a real ZooKeeper only."""

    path: str


class Create(NamedTuple):
    """`version` is the first one of the data: in memory, a znode may begin as one that was written to before."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False
    version: int = 0


class Set(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


Write = Create | Set | Delete


class Check(NamedTuple):
    """Inside a `Multi` only: the whole transaction fails unless the znode has this version."""

    path: str
    version: int


class Multi(NamedTuple):
    """All of these writes and checks, or none."""

    ops: tuple[Write | Check, ...]

    @property
    def path(self) -> str:
        return self.ops[0].path if self.ops else "/"


Op = Get | Exists | Children | Made | Write | Multi


def record_write(trace: Recorder, actor: str, op: Write, path: str, version: int | None, cause: int | None) -> int:
    """Record a write that succeeded; `path` has the sequence number of what it made. Returns the record's `seq`."""
    kind, detail = None, None
    if isinstance(op, Create):
        kind = "ephemeral" if op.ephemeral else "persistent"
    if not isinstance(op, Delete):
        detail = op.data.decode("utf-8", "backslashreplace") or None
    action = type(op).__name__.lower()
    return trace.add(actor, "zk", action, path=path, target=kind, zk_version=version, cause=cause, detail=detail)


class Result(NamedTuple):
    """The answer to one operation.

    `error` is None or ZooKeeper's code name. `value` is the data of a Get (bytes), the names of
    Children (list), the answer to Made (bool), the path made by Create (str, with its sequence number), and
    for Multi the tuple of its parts' results. `stat` comes with Get, Exists, Children, Made and Set.
    An Exists of a missing znode is not an exception but a result with error NONODE, as in ZooKeeper.
    In a Multi that failed, the part that failed carries its error, the parts before it
    OK_ROLLED_BACK ("ROLLEDBACK") and those after it RUNTIMEINCONSISTENCY.
    """

    op: Op | Check
    error: str | None = None
    value: bytes | list[str] | bool | str | tuple[Result, ...] | None = None
    stat: Stat | None = None

    @property
    def data(self) -> bytes:
        """The data that a successful Get has read."""
        assert isinstance(self.value, bytes)
        return self.value

    @property
    def data_if_any(self) -> bytes | None:
        """The data that a Get has read, None where the znode is missing. Raises every other error."""
        return None if self.error == "NONODE" else self.checked().data

    @property
    def found(self) -> Stat:
        """The stat that came with an answer without error."""
        assert self.stat is not None
        return self.stat

    @property
    def exception(self) -> ZooKeeperError:
        """The exception that its error stands for; one without a class of its own is a ZooKeeperError with its code."""
        return ZOOKEEPER_ERRORS.get(self.error or "", ZooKeeperError)(self.op.path, code=self.error)

    def checked(self) -> Result:
        """This result. Raises the exception that its error stands for."""
        if self.error is not None:
            raise self.exception
        return self


def parent_of(path: str) -> str:
    """The path of the znode above."""
    return path.rpartition("/")[0] or "/"


class WatchedEvent(NamedTuple):
    """A fired watch: NodeCreated, NodeDeleted, NodeDataChanged or NodeChildrenChanged, and where."""

    type: str
    path: str


CREATED, DELETED = "NodeCreated", "NodeDeleted"
DATA_CHANGED, CHILDREN_CHANGED = "NodeDataChanged", "NodeChildrenChanged"

Watcher = Callable[[WatchedEvent], None]
StateListener = Callable[[str], None]
CONNECTED, DISCONNECTED, EXPIRED = "Connected", "Disconnected", "Expired"


class Session(ABC):
    """One client's session. Its ephemeral znodes live until it is closed or expires."""

    id: int
    """ZooKeeper's session id; the `ephemeral_owner` of the znodes it made."""
    actor: str
    """The actor in the records."""

    @abstractmethod
    async def send(self, ops: Sequence[Op], window: int = 1) -> list[Result]:
        """Send all operations, at most `window` in flight; answers come in the order asked.

        Raises SessionExpired when the session is gone, ConnectionLoss when the connection broke before
        the answers were in (whether the server applied them is then unknown).
        """

    @abstractmethod
    async def close(self) -> None:
        """End the session now: the server removes its ephemeral znodes at once."""

    @abstractmethod
    def abandon(self) -> None:
        """End without closing the session, as a killed process does: on the server it lasts until it times out."""

    def pause(self) -> None:
        """The client's process pauses: it neither sends nor reads anything until `resume`; on virtual time only."""
        raise NotImplementedError

    def resume(self) -> None:
        raise NotImplementedError

    async def exists(self, path: str, watch: bool = False) -> Stat | None:
        answer = (await self.send((Exists(path, watch),)))[0]
        return None if answer.error == "NONODE" else answer.checked().stat


class Store(ABC):
    """A ZooKeeper: in this process, started for this lab, or an existing one."""

    @abstractmethod
    async def connect(self, actor: str, timeout: float, watcher: Watcher, listener: StateListener) -> Session:
        """Open a session for `actor` (`controller-1`, `admin` ...) with a timeout in seconds.

        `watcher` gets every fired watch, `listener` every change between Connected, Disconnected and
        Expired; both are called on the loop that called `connect`. Raises Unavailable when no server answers.
        """

    @abstractmethod
    async def dump(self, root: str = "/") -> dict[str, tuple[bytes, int, int]]:
        """The znodes from `root` down, by default all of the lab's: path -> (data, version, ephemeral owner)."""

    @abstractmethod
    async def stat(self, path: str) -> Stat | None:
        """The Stat of a znode below the lab's root; None where there is none."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the server; one that was started for this store is stopped and its data removed."""
