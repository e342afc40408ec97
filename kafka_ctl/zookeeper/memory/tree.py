"""The znode tree of a ZooKeeper server: what may be written, and writing it.

Every change has one zxid and can be taken back, so that a transaction is all or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from kafka_ctl.scala_order import FIRST_TABLE, grown_table, java_bucket
from kafka_ctl.zookeeper.store import ANY_VERSION, Check, Create, Delete, Set, Stat, Write, parent_of

FORBIDDEN = re.compile(r"[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")
"""The characters that no path may have. Java has a character above U+FFFF as two, both of them in the third range."""


class Node:
    """One znode. `created` counts the children ever made: it numbers sequence znodes. `children` has their numbers."""

    __slots__ = tuple("children created ctime czxid data mtime mzxid owner pzxid table version".split())

    def __init__(self, data: bytes, zxid: int, ctime: int, owner: int = 0) -> None:
        self.data, self.ctime, self.mtime, self.owner = data, ctime, ctime, owner
        self.czxid = self.mzxid = self.pzxid = zxid
        self.version = self.created = 0
        self.children: dict[str, int] = {}
        self.table = FIRST_TABLE
        """The places of the server's hash table of children, which never shrinks."""

    def adopt(self, name: str) -> None:
        self.children[name] = self.created
        self.created += 1
        self.table = grown_table(self.table, name, self.children)

    def names(self) -> list[str]:
        """The children in the order in which the server lists them: that of a `java.util.HashSet(8)`.

        ZooKeeper 3.4.9, 3.9.3: server/DataNode.java, addChild
        """
        return sorted(self.children, key=lambda name: (java_bucket(name, self.table), self.children[name]))

    def stat(self) -> Stat:
        cversion = 2 * self.created - len(self.children)  # creations and deletions, as the server shows it
        children, times = len(self.children), (self.ctime, self.mtime)
        return Stat(
            self.czxid, self.mzxid, self.version, cversion, self.owner, children, *times, self.pzxid, len(self.data)
        )


class Change(NamedTuple):
    """A change that was made: how to take it back, where, and the version and stat that came of it."""

    undo: Callable[[], None]
    path: str
    version: int | None
    stat: Stat | None


class Tree:
    """Znodes by path, the last zxid, and the ephemeral znodes of each session; `now` gives milliseconds."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now, self.zxid = now, 0
        self.nodes: dict[str, Node] = {"/": Node(b"", 0, 0)}
        self.ephemerals: dict[int, dict[str, None]] = {}

    def problem(self, op: Write | Check) -> str | None:
        """ZooKeeper's code for why this write cannot be done now, or None."""
        if isinstance(op, Create):
            parent = self.nodes.get(parent_of(op.path))
            if malformed(op.path, op.sequence):
                return "BADARGUMENTS"
            if parent is None:
                return "NONODE"
            if parent.owner:
                return "NOCHILDRENFOREPHEMERALS"
            return "NODEEXISTS" if op.path in self.nodes and not op.sequence else None
        node = self.nodes.get(op.path)
        if node is None:
            return "NONODE"
        if op.version not in (ANY_VERSION, node.version):
            return "BADVERSION"
        return "NOTEMPTY" if isinstance(op, Delete) and node.children else None

    def change(self, op: Write, owner: int) -> Change:
        """Make a change that has no `problem`; `owner` is the session that makes it."""
        self.zxid += 1
        if isinstance(op, Set):
            return self._set(op)
        return self._create(op, owner) if isinstance(op, Create) else self._delete(op)

    def _set(self, op: Set) -> Change:
        node = self.nodes[op.path]
        old = node.data, node.version, node.mzxid, node.mtime
        node.data, node.version, node.mzxid, node.mtime = op.data, node.version + 1, self.zxid, self.now()

        def undo() -> None:
            node.data, node.version, node.mzxid, node.mtime = old

        return Change(undo, op.path, node.version, node.stat())

    def _create(self, op: Create, owner: int) -> Change:
        parent, path = self.nodes[parent_of(op.path)], op.path
        if op.sequence:
            path = f"{path}{parent.created:010d}"
        name, mine = path.rpartition("/")[2], self.ephemerals.setdefault(owner, {})
        node = self.nodes[path] = Node(op.data, self.zxid, self.now(), owner if op.ephemeral else 0)
        node.version = op.version
        before = parent.table, parent.pzxid
        parent.adopt(name)
        parent.pzxid = self.zxid
        if op.ephemeral:
            mine[path] = None

        def undo() -> None:
            del self.nodes[path], parent.children[name]
            parent.created -= 1
            parent.table, parent.pzxid = before
            mine.pop(path, None)

        return Change(undo, path, op.version, None)

    def _delete(self, op: Delete) -> Change:
        parent, path = self.nodes[parent_of(op.path)], op.path
        node, name = self.nodes.pop(path), path.rpartition("/")[2]
        number = parent.children.pop(name)
        before, parent.pzxid = parent.pzxid, self.zxid
        owned = self.ephemerals.get(node.owner, {})
        was_owned = owned.pop(path, path) is None

        def undo() -> None:
            self.nodes[path] = node
            parent.children[name] = number
            parent.pzxid = before
            if was_owned:
                owned[path] = None

        return Change(undo, path, None, None)


def malformed(path: str, sequence: bool) -> bool:
    """True if ZooKeeper would refuse this path: relative, with an empty name, `.`, `..` or a control character.

    ZooKeeper 3.4.14: common/PathUtils.java, validatePath
    """
    names = path.split("/")
    named = names[1:-1] if sequence else names[1:]
    return names[0] != "" or FORBIDDEN.search(path) is not None or any(name in ("", ".", "..") for name in named)
