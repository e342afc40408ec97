"""Fetch sessions: a reader names its partitions once, and from then on only what changes; so does the answer (KIP-227).

A full request (epoch 0) asks for a session, one with epoch -1 for none. An incremental request has the partitions that
are new or have moved on, and those to be forgotten; the answer has those with records, another high watermark, or
an error. Each request has the next epoch, so that one that is lost or repeated is noticed.

Kafka 2.0.1: server/FetchSession.scala, FetchManager, FetchSessionCache, FetchSession, CachedPartition
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.wire.codec import Message

NO_SESSION = 0
INITIAL, FINAL = 0, -1
"""The epochs of full requests: one that asks for a session, and one that wants none."""
LAST_EPOCH = 2**31 - 1
SLOTS = 1000
"""Kafka's `max.incremental.fetch.session.cache.slots`."""
EVICTION = 120_000
"""Milliseconds after which any other session may take the place of one."""
NOT_FOUND, WRONG_EPOCH = "FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"


class Asked(NamedTuple):
    """One partition to fetch; `leader_epoch` is the epoch that the reader knows, or -1 (KIP-320)."""

    offset: int
    most: int
    leader_epoch: int = -1
    log_start: int = -1


Wanted = Mapping[TopicPartition, Asked]
Found = dict[TopicPartition, Message]
"""By partition what an answer says of it."""


def next_epoch(epoch: int) -> int:
    """The epoch of the next request of a session."""
    return FINAL if epoch < 0 else 1 if epoch == LAST_EPOCH else epoch + 1


@dataclass
class CachedPartition:
    """A partition in a session's memory: the last request for it, and the last answer."""

    asked: Asked
    high_watermark: int = -1
    log_start: int = -1

    def news(self, found: Message) -> bool:
        """True if an answer must have this partition; remembers the answer."""
        news = bool(found["records"]) or self.high_watermark != found["high_watermark"]
        news = news or self.log_start != found["log_start_offset"] or found["error_code"] != 0
        news = news or found.get("preferred_read_replica", -1) >= 0
        self.high_watermark = -1 if found["error_code"] else found["high_watermark"]
        self.log_start = found["log_start_offset"]
        return news


@dataclass(eq=False)
class FetchSession:
    """One session; those partitions that had news last stand at the end, so that none starves."""

    id: int
    privileged: bool
    """True if it is a follower's."""
    partitions: dict[TopicPartition, CachedPartition]
    created: int
    """Milliseconds. (Kafka calls it last used, but remembers no later use: KAFKA-9137.)"""
    epoch: int = 1


Answered = tuple[str | None, int, Found]
"""An error of the whole request, the session's id, and the partitions of the answer."""


class Context(NamedTuple):
    """The partitions that a request means, and the form of its answer, given what was found of them."""

    partitions: Wanted
    answer: Callable[[Found], Answered]
    error: str | None = None


def _refused(error: str) -> Context:
    return Context({}, lambda _: (error, NO_SESSION, {}), error)


def _whole(partitions: Wanted) -> Context:
    """An answer without a session, which has all that was found."""
    return Context(partitions, lambda found: (None, NO_SESSION, found))


def _incremental(session: FetchSession) -> Context:
    """The answer has what is new, unless another request of the session has come meanwhile.

    The leader epoch that a reader knows is lost, until KAFKA-9338 (2.5.0).
    Kafka 2.4.1: server/FetchSession.scala, CachedPartition.reqData
    """
    epoch, cache = session.epoch, session.partitions

    def answer(found: Found) -> Answered:
        if session.epoch != epoch:
            return WRONG_EPOCH, session.id, {}
        news = Found()
        for tp, part in found.items():
            if cache[tp].news(part):
                news[tp] = part
                cache[tp] = cache.pop(tp)
        return None, session.id, news

    return Context({tp: cached.asked._replace(leader_epoch=-1) for tp, cached in cache.items()}, answer)


class FetchSessions:
    """The sessions of one broker process; `now` gives milliseconds."""

    def __init__(self, now: Callable[[], int], seed: object = 0, slots: int = SLOTS) -> None:
        self.now, self.slots = now, slots
        self.sessions: dict[int, FetchSession] = {}
        self.evictions = 0
        self._random = random.Random(f"fetch sessions {seed}")

    def context(
        self, id: int, epoch: int, wanted: Wanted, forgotten: Iterable[TopicPartition], is_follower: bool
    ) -> Context:
        """The form of the answer to a request that names this session and epoch.

        Kafka 2.0.1: server/FetchSession.scala, FetchManager.newContext
        """
        if epoch in (INITIAL, FINAL):
            self.sessions.pop(id, None)
            if epoch == FINAL:
                return _whole(wanted)
            return Context(wanted, lambda found: (None, self._create(wanted, found, is_follower), found))
        session = self.sessions.get(id)
        if session is None:
            return _refused(NOT_FOUND)
        if session.epoch != epoch:
            return _refused(WRONG_EPOCH)
        for tp, asked in wanted.items():
            if tp in session.partitions:
                session.partitions[tp].asked = asked
            else:
                session.partitions[tp] = CachedPartition(asked)
        for tp in forgotten:
            session.partitions.pop(tp, None)
        session.epoch = next_epoch(session.epoch)  # an earlier fetch may wait still: it is refused
        if not session.partitions:
            del self.sessions[id]
            return _whole(wanted)
        return _incremental(session)

    def _create(self, wanted: Wanted, found: Found, privileged: bool) -> int:
        """The id of a new session, `NO_SESSION` where all places are taken by more valuable ones."""
        now = self.now()
        if len(self.sessions) >= self.slots and not self._evict(privileged, now):
            return NO_SESSION
        id = NO_SESSION
        while id == NO_SESSION or id in self.sessions:
            id = self._random.randrange(1, LAST_EPOCH)
        partitions = {
            tp: CachedPartition(wanted[tp], part["high_watermark"], part["log_start_offset"])
            for tp, part in found.items()
        }
        self.sessions[id] = FetchSession(id, privileged, partitions, now)
        return id

    def _evict(self, privileged: bool, now: int) -> bool:
        """Make room for a session: the oldest goes if it is old enough; else, for a follower, a consumer's smallest.

        Kafka 2.0.1: server/FetchSession.scala, FetchSessionCache.tryEvict, touch
        """
        going = min(self.sessions.values(), key=lambda session: (session.created, session.id), default=None)
        if going is not None and now - going.created <= EVICTION:
            consumers = [session for session in self.sessions.values() if privileged and not session.privileged]
            going = min(consumers, key=lambda session: (len(session.partitions), session.id), default=None)
        if going is None:
            return False
        del self.sessions[going.id]
        self.evictions += 1
        return True
