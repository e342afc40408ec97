"""What one broker does with records: as leader it appends them and counts who has them, as follower it copies them.

A follower's fetch tells the leader where the follower's log ends. What every in-sync replica has lies below the high
watermark, which followers learn one fetch later. A log comes into being when somebody produces; until then none of
this happens, and a follower is in step by definition (see `replication.py`).
Kafka 2.0.1: cluster/Partition.scala, appendRecordsToLeader, maybeIncrementLeaderHW, maybeExpandIsr;
server/ReplicaFetcherThread.scala, processPartitionData, maybeTruncate, handleOffsetOutOfRange
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kafka_ctl.brokers.fetcher import FETCH_BACKOFF, FETCH_WAIT
from kafka_ctl.brokers.log import Entry, Log
from kafka_ctl.brokers.requests import ProduceRequest, Response
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.znodes import ConfigEntityZNode

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker

PRODUCE_TIMEOUT = 30.0
"""Seconds a produce request waits for the in-sync replicas: the producer's `request.timeout.ms`."""
SESSION_BACKOFF = 0.1
"""Seconds until somebody whose session has expired asks again."""
MIN_ISR = "min.insync.replicas"
ALL = -1
"""What `acks=all` is in a request."""
NOT_LEADER, NOT_ENOUGH = "NOT_LEADER_FOR_PARTITION", "NOT_ENOUGH_REPLICAS"


class Fetched(NamedTuple):
    """A leader's answer: its records from the asked offset on, its high watermark before that, and its log's end."""

    entries: list[Entry]
    high_watermark: int
    end: int


class ReplicaLogs:
    """The logs of one broker process; the records themselves are on its disk and outlive it."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.logs = broker, broker.disk.logs
        self._ends: dict[TopicPartition, dict[int, int]] = {}
        """As leader: the log end offset of each follower, as of its last fetch."""
        self._epoch_start: dict[TopicPartition, int] = {}
        """As leader: where our log ended when our leader epoch began."""
        self._producers: dict[TopicPartition, list[tuple[int, asyncio.Future]]] = {}
        """As leader: who waits until the high watermark has come so far."""
        self._config: dict[TopicPartition, dict[str, str]] = {}
        """The topic's own settings, as they were when the copy was made in this process."""
        self._fetchers: dict[TopicPartition, asyncio.Task] = {}
        self.resting: set[TopicPartition] = set()
        """As follower: where the fetcher waits for news, or for a leader that does not answer."""
        self._unchecked: set[TopicPartition] = set()
        """As follower: where our leader epochs have not been compared with the leader's yet."""

    def _record(self, action: str, tp: TopicPartition, entries: Iterable[Entry], offset: int, more: str = "") -> int:
        hosted = self.broker.replicas.hosted[tp]
        told = ",".join(f"{entry.value}@{entry.leader_epoch}" for entry in entries)
        detail = f"offset={offset}" + (f" records={told}" if told else "") + more
        state = hosted.state
        return self.broker.record(action, tp, leader=state.leader, leader_epoch=state.leader_epoch, detail=detail)

    def _set_high_watermark(self, tp: TopicPartition, log: Log, offset: int) -> None:
        if offset != log.high_watermark:
            log.high_watermark = offset
            self._record("high-watermark", tp, (), offset)

    def _log(self, tp: TopicPartition) -> Log:
        return self.logs.setdefault(tp, Log())

    async def _setting(self, topic: str, key: str) -> str:
        """A setting of the topic, as ZooKeeper has it, else of the broker."""
        return (await self._read_config(topic)).get(key, str(self.broker.config[key]))

    async def _read_config(self, topic: str) -> dict[str, str]:
        """The topic's own settings, none where nobody can read them; asked for until there is an answer."""
        while True:
            answer = await self.broker.zk.read(ConfigEntityZNode.path("topics", topic))
            if answer.error != "SESSIONEXPIRED":
                break
            await self.broker.clock.sleep(SESSION_BACKOFF)
        with suppress(BadInput):  # as Kafka takes what is no JSON for empty
            return ConfigEntityZNode.decode(answer.value, "topics", topic) if isinstance(answer.value, bytes) else {}
        return {}

    async def configure(self, topic: str, partitions: Iterable[TopicPartition]) -> None:
        """Read how the logs of new copies are to be kept."""
        self._config |= dict.fromkeys(partitions, await self._read_config(topic))

    def _min_isr(self, tp: TopicPartition) -> int:
        return int(self._config.get(tp, {}).get(MIN_ISR, self.broker.config[MIN_ISR]))

    # As leader

    def leads(self, tp: TopicPartition) -> bool:
        """Whether we lead the partition."""
        hosted = self.broker.replicas.hosted.get(tp)
        return hosted is not None and hosted.state.leader == self.broker.id

    def answers(self, tp: TopicPartition, leader_epoch: int) -> bool:
        """Whether we answer a follower that knows this leader epoch.

        Kafka 2.4.1: cluster/Partition.scala, checkCurrentLeaderEpoch
        """
        checks = self.broker.world.generation.checks_fetched_epoch
        return self.leads(tp) and (not checks or self.broker.replicas.hosted[tp].state.leader_epoch == leader_epoch)

    def lead(self, tp: TopicPartition) -> None:
        """We lead it in a new epoch, perhaps for the first time."""
        log = self.logs.get(tp)
        if log is not None:
            self._epoch_start[tp] = log.end
            self.advance(tp)
            self._wake_followers(tp)

    async def produce(self, request: ProduceRequest) -> Response:
        """Append the records, and with `acks=all` answer only when every in-sync replica has them."""
        tp = request.partition
        if not self.leads(tp):
            return Response(NOT_LEADER)
        state = self.broker.replicas.hosted[tp].state
        if request.acks == ALL and len(state.isr) < self._min_isr(tp):
            return Response(NOT_ENOUGH)
        log = self._log(tp)
        offset, entries = log.end, [Entry(state.leader_epoch, value) for value in request.values]
        log.entries += entries
        CAUSE.set(self._record("append", tp, entries, offset))
        self._wake_followers(tp)
        self.advance(tp)
        error = await self._replicated(tp, log.end) if request.acks == ALL else None
        return Response(error, offset=None if error else offset)

    async def _replicated(self, tp: TopicPartition, end: int) -> str | None:
        """Wait until the high watermark reaches `end`; returns the error if it does not, or means too little."""
        if self._log(tp).high_watermark < end:
            done = self.broker.clock.loop.create_future()
            self._producers.setdefault(tp, []).append((end, done))
            try:
                async with asyncio.timeout(PRODUCE_TIMEOUT):
                    if error := await done:
                        return str(error)
            except TimeoutError:
                return "REQUEST_TIMED_OUT"
        isr = self.broker.replicas.hosted[tp].state.isr
        return None if len(isr) >= self._min_isr(tp) else f"{NOT_ENOUGH}_AFTER_APPEND"

    def read(self, tp: TopicPartition, follower: int, offset: int) -> Fetched:
        """Answer a fetch from this offset, and remember that the follower has everything below it."""
        log = self._log(tp)
        answer = Fetched(log.entries[offset:], log.high_watermark, log.end)
        if offset <= log.end:
            self._ends.setdefault(tp, {})[follower] = offset
            self.advance(tp)
        return answer

    def advance(self, tp: TopicPartition) -> None:
        """Raise the high watermark to where every in-sync replica's log reaches; not while the ISR is being written."""
        log = self.logs.get(tp)
        if log is None or not self.leads(tp) or self.broker.replication.is_writing(tp):
            return
        end = self.in_sync_end(tp, log)
        if end > log.high_watermark:
            self._set_high_watermark(tp, log, end)
            waiting = self._producers.pop(tp, [])
            self._producers[tp] = [(offset, done) for offset, done in waiting if offset > end]
            _finish([done for offset, done in waiting if offset <= end], None)
            self._wake_followers(tp, 0.0 if self.broker.world.generation.passes_on_high_watermark else FETCH_WAIT)

    def in_sync_end(self, tp: TopicPartition, log: Log) -> int:
        """How far the log of every in-sync replica reaches."""
        ends = self._ends.get(tp, {}) | {self.broker.id: log.end}
        return min(ends.get(replica, -1) for replica in self.broker.replicas.hosted[tp].state.isr)

    def may_join(self, tp: TopicPartition, follower: int) -> bool:
        """Whether a follower has enough to be in sync: all below the high watermark and, since KAFKA-7128, all that
        we had when we began to lead."""
        log = self.logs.get(tp)
        if log is None:
            return True
        since = self._epoch_start.get(tp, 0) if self.broker.world.generation.joins_from_epoch_start else 0
        return self._ends.get(tp, {}).get(follower, -1) >= max(log.high_watermark, since)

    def is_behind(self, tp: TopicPartition, follower: int) -> bool:
        """Whether there are records that a follower has not fetched."""
        log = self.logs.get(tp)
        return log is not None and self._ends.get(tp, {}).get(follower, -1) < log.end

    def _wake_followers(self, tp: TopicPartition, after: float = 0.0) -> None:
        for id in self.broker.replicas.hosted[tp].replicas:
            other = self.broker.network.brokers.get(id)
            if other is not None and other.listening and other is not self.broker:
                other.logs.wake(tp, after)

    def release(self, tp: TopicPartition) -> None:
        """We lead it no more: who waits for our high watermark learns that."""
        self._ends.pop(tp, None)
        self._epoch_start.pop(tp, None)
        _finish([done for _, done in self._producers.pop(tp, ())], NOT_LEADER)

    # As follower

    def follow(self, tp: TopicPartition) -> None:
        """Before anything is copied from a new leader, what it may not have must go."""
        log = self.logs.get(tp)
        if log is None:
            return
        self.release(tp)
        if self.broker.world.generation.truncates_by_epoch:
            self._unchecked.add(tp)
        else:
            self._truncate(tp, log, log.high_watermark, "high-watermark")

    def stop(self, tp: TopicPartition) -> None:
        """Fetch no more."""
        self.resting.discard(tp)
        task = self._fetchers.pop(tp, None)
        if task is not None:
            task.cancel()

    def wake(self, tp: TopicPartition, after: float = 0.0) -> None:
        """There is news at the leader: fetch it, at once or when the fetch that is waiting has waited long enough."""
        hosted, replication = self.broker.replicas.hosted.get(tp), self.broker.replication
        if hosted is None or hosted.state.leader in (self.broker.id, -1) or not replication.is_in_step(tp):
            return
        leader = self.broker.network.brokers.get(hosted.state.leader)
        written = tp in self.logs or (leader is not None and tp in leader.logs.logs)
        if written and (tp not in self._fetchers or (not after and tp in self.resting)):
            self.stop(tp)
            self._fetchers[tp] = self.broker.spawn(self._keep_up(tp, hosted.state, after))

    async def _keep_up(self, tp: TopicPartition, state: LeaderAndIsr, after: float) -> None:
        """Fetch until there is nothing that the leader could tell us."""
        at_once = self.broker.world.generation.passes_on_high_watermark
        leader = self.broker.network.brokers[state.leader]
        news = True
        while news:
            if after:
                await self._rest(tp, after)
            await self.copy(tp, state)
            after = 0.0 if at_once else FETCH_WAIT
            theirs, own = leader.logs.logs.get(tp), self._log(tp)
            led = self.broker.listening and self._answered_by(leader, tp)
            news = led and theirs is not None and theirs.high_watermark != own.high_watermark
        self._fetchers.pop(tp, None)

    async def _rest(self, tp: TopicPartition, seconds: float, background: bool = False) -> None:
        self.resting.add(tp)
        await self.broker.clock.sleep(seconds, background)
        self.resting.discard(tp)

    def has_records(self, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        """Whether anything was ever written, here or at the leader."""
        leader = self.broker.network.brokers.get(state.leader)
        return leader is not None and (tp in self.logs or tp in leader.logs.logs)

    async def copy(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """Drop what the leader has not, then fetch to the end of its log; at once where nothing was ever written."""
        broker, leader = self.broker, self.broker.network.brokers.get(state.leader)
        if leader is None or not self.has_records(tp, state):
            return
        log = self._log(tp)
        while broker.listening:
            await broker.clock.sleep(broker.costs.request + broker.replication.slow)
            answers = broker.network.silence(leader.id, broker.id) == math.inf
            if not answers or not self._answered_by(leader, tp):
                await self._rest(tp, FETCH_BACKOFF, background=True)
            elif tp in self._unchecked:
                end = log.common_end(leader.logs._log(tp))
                await broker.clock.sleep(broker.costs.request)
                self._truncate(tp, log, end, "leader-epoch")
                self._unchecked.discard(tp)
            else:
                answer = leader.logs.read(tp, broker.id, log.end)
                await broker.clock.sleep(broker.costs.request)
                if log.end > answer.end:
                    await self._out_of_range(tp, log, answer.end)
                else:
                    self._take(tp, log, answer)
                    if not answer.entries and log.end == leader.logs._log(tp).end:
                        return

    def _answered_by(self, leader: Broker, tp: TopicPartition) -> bool:
        """Whether this broker answers what we fetch."""
        return leader.logs.answers(tp, self.broker.replicas.hosted[tp].state.leader_epoch)

    def _take(self, tp: TopicPartition, log: Log, answer: Fetched) -> None:
        if answer.entries:
            offset = log.end
            log.entries += answer.entries
            self._record("copy", tp, answer.entries, offset)
        self._set_high_watermark(tp, log, min(answer.high_watermark, log.end))

    def _truncate(self, tp: TopicPartition, log: Log, end: int, by: str) -> None:
        if dropped := log.truncate(end):
            self._record("truncate", tp, dropped, end, f" by={by}")

    async def _out_of_range(self, tp: TopicPartition, log: Log, end: int) -> None:
        """Our log is longer than the leader's: drop the rest where records may be lost, else stop (KAFKA-3410)."""
        unclean = await self._setting(tp.topic, "unclean.leader.election.enable")
        if self.broker.world.generation.truncates_by_epoch or unclean.lower() == "true":
            self._truncate(tp, log, end, "leader-end")
        else:
            self.broker.record("stopped", tp, error="OFFSET_OUT_OF_RANGE", detail=f"end={log.end} leaders_end={end}")
            self.broker.kill()


def _finish(futures: Iterable[asyncio.Future], result: str | None) -> None:
    for future in futures:
        if not future.done():
            future.set_result(result)
