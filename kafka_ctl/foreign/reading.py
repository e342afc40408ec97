"""The znodes of a cluster of others, read through a pipelined window: all of them at first, later what has changed.

A read may arm a watch, also where nothing is yet: ZooKeeper notifies a client of a znode's creation only after an
`Exists`. The znodes are read one after the other, so this is not the picture of one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kafka_ctl.errors import BadInput, Unavailable, ZooKeeperError
from kafka_ctl.foreign.cluster import IDS, PARENTS, SINGLE, STATE, TOPICS, Cluster, ZNode
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.store import Children, Exists, Get, Op, Result, Session, Stat

WINDOW = 100
"""Reads in flight."""
AT_ONCE = 1000
"""Reads between two reports of progress."""
MOST_ZNODES = 1_000_000
"""The most znodes of a cluster that are read; 200,000 partitions have a third of this."""

Progress = Callable[[int, int], None]
"""Called with the number of reads that are done, and of those that are known so far."""


class Change(NamedTuple):
    """A znode before and after; None where it was not there. `missed` changes came between the two, unseen.

    Of a znode that came and went unseen both are None; the path is that of its parent where its name is not known.
    `zxid` is that of the last change; of a deletion that of the parent's children, 0 where that is not known.
    """

    path: str
    before: ZNode | None
    after: ZNode | None
    missed: int
    zxid: int


class Reader:
    """Reads a cluster into `cluster`, and what has changed into `changes`; `watches` arms a watch with each read.

    `address` is what an error names.
    """

    def __init__(self, address: str, watches: bool = False, progress: Progress | None = None) -> None:
        self.address, self.watches, self.progress = address, watches, progress
        self.cluster = Cluster()
        self.changes: list[Change] = []
        self.children: dict[str, frozenset[str]] = {}
        self.created: set[str] = set()
        """Paths whose creation was notified, and that are not read yet."""
        self.unseen: dict[str, int] = {}
        """Creations and deletions of a parent's children, by its cversion, less those that were seen."""
        self.stats: dict[str, Stat] = {}
        """The parents as they were last read."""

    def everything(self) -> list[str]:
        """All znodes that are known or may come to be without a sign from another one."""
        states = [path for topic in self.cluster.topics for path in self._states(f"{TOPICS}/{topic}")]
        return list(dict.fromkeys((*SINGLE, *self.cluster.znodes, *self.cluster.problems, *states)))

    def take_changes(self, current: bool = False) -> list[Change]:
        """The changes since the last call, by zxid: a deletion whose zxid is not known comes after the one before.

        `current` says that nothing is stale: a child that was not seen by now came and went.
        """
        for parent, missed in self.unseen.items() if current else ():
            if missed > 0:
                self.unseen[parent] = 0
                if not any(path.startswith(f"{parent}/") for path in self.cluster.problems):  # one may be unreadable
                    self.changes.append(Change(parent, None, None, missed, 0))
        last, ordered = 0, []
        for change in self.changes:
            last = change.zxid or last
            ordered.append((last, change))
        self.changes = []
        return [change for _, change in sorted(ordered, key=lambda pair: pair[0])]

    async def read(self, session: Session, nodes: Iterable[str] = SINGLE, parents: Iterable[str] = PARENTS) -> None:
        """Read these znodes, the children of these parents, and all that they lead to.

        Raises Unavailable where there is no Kafka, or where the ACL forbids to read what is needed, and BadInput for
        too many znodes. Znodes that were read before a session broke are taken in.
        """
        todo: list[Op] = [Children(path, self.watches) for path in parents]
        todo += [Get(path, self.watches) for path in nodes]
        done = known = 0
        while todo:
            known += len(todo)
            if known > MOST_ZNODES:
                raise BadInput(f"this cluster has more than {MOST_ZNODES:,} znodes to read, which is the most allowed")
            asked, todo = todo, []
            for start in range(0, len(asked), AT_ONCE):
                try:
                    answers = await session.send(asked[start : start + AT_ONCE], WINDOW)
                except ZooKeeperError as lost:
                    for answer in lost.answers:
                        list(self._take(answer))
                    raise
                for answer in answers:
                    todo += self._take(answer)
                done += len(answers)
                if self.progress is not None:
                    self.progress(done, known + len(todo))

    def _take(self, answer: Result) -> Iterator[Op]:
        """Take in one answer; the reads that it leads to."""
        op, path, gone = answer.op, answer.op.path, answer.error == "NONODE"
        if answer.error == "NOAUTH":
            self._refused(path)
            return
        if not gone:
            answer.checked()
        if isinstance(op, Exists):
            if not gone:  # it was created between the two reads
                yield Children(path, self.watches) if path in PARENTS else Get(path, self.watches)
            return
        if gone and self.watches and self._comes_alone(path):
            yield Exists(path, watch=True)
        if isinstance(op, Children):
            yield from self._list(path, None if gone else answer.value, None if gone else answer.found)
        else:
            yield from self._put(path, None if gone else ZNode(answer.data, answer.found))

    def _put(self, path: str, after: ZNode | None, zxid: int = 0) -> Iterator[Op]:
        """Take in a znode; the states of a topic's new partitions are read next."""
        before = self.cluster.znodes.get(path)
        if path in self.created and before is None and after is None:
            self.changes.append(Change(path, None, None, 1, zxid))
        self.created.discard(path)
        if _mark(before) != _mark(after):
            known = set(self._states(path))
            self.cluster.take(path, after)
            zxid = zxid if after is None else after.stat.mzxid
            self.changes.append(Change(path, before, after, _missed(before, after), zxid))
            parent = path.rpartition("/")[0]
            if parent in self.unseen and not (before and after and before.stat.czxid == after.stat.czxid):
                self.unseen[parent] -= (before is not None) + (after is not None)
            yield from (Get(state, self.watches) for state in self._states(path) if state not in known)

    def _states(self, path: str) -> list[str]:
        """The `state` znodes of a topic's partitions, if the path is that of a topic."""
        parent, _, topic = path.rpartition("/")
        numbers = self.cluster.topics.get(topic, {}) if parent == TOPICS else ()
        return [znodes.TopicPartitionStateZNode.path((topic, number)) for number in numbers]

    def _list(self, parent: str, names: object, stat: Stat | None) -> Iterator[Op]:
        """Take in the names of children: those that are gone are dropped, those that are not known are read next."""
        if names is None and parent == IDS and parent not in self.children:
            hint = "no Kafka has its znodes there; a chroot is written host:port/chroot"
            raise Unavailable(f"there is no {IDS} at {self.address}: {hint}")
        before, now = self.children.get(parent, frozenset()), frozenset(names if isinstance(names, list) else ())
        self.children[parent] = now
        for name in sorted(before - now):
            list(self._put(f"{parent}/{name}", None, stat.pzxid if stat else 0))
        self._count(parent, len(now), stat)
        for path in (f"{parent}/{name}" for name in sorted(now)):
            if path not in self.cluster.znodes:
                yield Get(path, self.watches)

    def _count(self, parent: str, children: int, stat: Stat | None) -> None:
        """Count what its cversion says of a parent's children; each of them is seen when it is read."""
        before = self.stats.pop(parent, None)
        if stat is not None:
            self.stats[parent] = stat
        if stat is None or before is None or before.czxid != stat.czxid:
            self.unseen[parent] = children
        else:
            self.unseen[parent] += stat.cversion - before.cversion

    def _comes_alone(self, path: str) -> bool:
        """True if this znode may be made without a sign from another one."""
        if found := STATE.fullmatch(path):
            return int(found[2]) in self.cluster.topics.get(found[1], {})
        return path in SINGLE or path in PARENTS

    def _refused(self, path: str) -> None:
        """Note that the ACL of a znode forbids to read it; without brokers and topics there is nothing to show."""
        text = f"{path} cannot be read (NOAUTH): its ACL does not give READ to this client"
        if path in (IDS, TOPICS):
            raise Unavailable(text)
        list(self._put(path, None))
        self.cluster.problems[path] = text


def _mark(node: ZNode | None) -> tuple[int, int] | None:
    """The creation and the last write of a znode; its children do not count."""
    return None if node is None else (node.stat.czxid, node.stat.mzxid)


def _missed(before: ZNode | None, after: ZNode | None) -> int:
    """The number of changes between two reads that neither read has seen, as far as the versions tell."""
    if after is None:
        return 0
    if before is None or before.stat.czxid != after.stat.czxid:
        return after.stat.version
    return after.stat.version - before.stat.version - 1
