"""Followers that fall behind and catch up, and the leaders that take them out of the ISR and back in.

A follower is in step, lagging, or on its way to being in step again; `replica_logs.py` tells what it copies. The leader
writes the changed ISR into the `state` znode on condition of the version it knows, and announces it under
`/isr_change_notification` after a while.
Kafka 2.0.1: cluster/Partition.scala, maybeShrinkIsr; server/ReplicaManager.scala, maybePropagateIsrChanges
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_ctl.brokers.fetcher import FETCH_WAIT, KEPT, SKIPPED, STARTED, Fetcher
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.errors import ConnectionLoss, SessionExpired
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.store import Create, Set
from kafka_ctl.zookeeper.znodes import (
    IsrChangeNotificationSequenceZNode,
    IsrChangeNotificationZNode,
    TopicPartitionStateZNode,
)

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker

PROPAGATION_CHECK, PROPAGATION_QUIET, PROPAGATION_LIMIT = 2.5, 5.0, 60.0
"""Seconds: how often a leader looks, how long ISRs must be quiet, how long a change waits at most."""


class Replication:
    """The fetchers and the ISR bookkeeping of one broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.started = broker, broker.clock.now()
        self.lagging: dict[TopicPartition, float] = {}
        """Partitions this follower does not keep up with, and since when."""
        self.slow, self._slow_since = 0.0, math.inf
        """How much longer every fetch takes us, in seconds, and since when."""
        self._caught_up: dict[TopicPartition, float] = {}
        """When we were last counted in again."""
        self._fetchers: dict[TopicPartition, Fetcher] = {}
        self._fetched: dict[TopicPartition, int] = {}
        """Partitions with a fetcher, and the leader it fetches from."""
        self._threads: dict[int, list[float]] = {}
        """By leader: since when we fetch from it, and how many partitions."""
        self._idle_until = 0.0
        """When the last fetch for no partition returns."""
        self.unfetched: dict[TopicPartition, float] = {}
        """Partitions that we follow without a fetcher, and since when."""
        self._forming: dict[int, Fetcher] = {}
        """By leader: the fetcher that has been made last."""
        self._changed: dict[TopicPartition, None] = {}
        self._last_change = self._last_propagation = self.started
        self._propagator: asyncio.Task | None = None
        self._joining: set[tuple[TopicPartition, int]] = set()
        """Followers that are about to enter an ISR: who fetches meanwhile need not ask again."""
        self._writing: dict[TopicPartition, asyncio.Lock] = {}

    def begin(self) -> None:
        """The process has a session: from now on it looks every so often whether there is an ISR to announce.

        Each broker looks at times of its own, as they did not start at the same moment.
        Kafka 2.0.1: server/ReplicaManager.scala, startup
        """
        self.started = self._last_change = self._last_propagation = self.broker.clock.now()

    # As follower

    def lead(self, tp: TopicPartition) -> None:
        """A leader fetches from nobody; who never stopped fetching from it goes on, also outside of the ISR."""
        self.forget(tp)
        self.broker.logs.lead(tp)
        if not self.broker.world.generation.checks_fetched_epoch:
            hosted, network = self.broker.replicas.hosted[tp], self.broker.network
            for follower in hosted.replicas:
                outside = follower not in hosted.state.isr and follower in network.brokers
                if outside and network.silence(follower, self.broker.id) == math.inf:
                    network.brokers[follower].replication.fetch_on(tp)

    def fetcher_of(self, before: LeaderAndIsr | None, state: LeaderAndIsr) -> str:
        """What becomes of the fetcher where we are made follower: KEPT where little has changed, else it is STARTED,
        unless we leave.

        Kafka 2.4.1: cluster/Partition.scala, makeFollower; server/ReplicaManager.scala, makeFollowers
        """
        generation = self.broker.world.generation
        if before is not None and before.leader == state.leader and not generation.refetches_at_each_epoch:
            missed = state.leader_epoch > before.leader_epoch + 1
            if not (missed and generation.refetches_after_missed_epoch):
                return KEPT
        return SKIPPED if self.broker.is_leaving else STARTED

    def follow(self, tp: TopicPartition, fetcher: str = STARTED) -> None:
        """Fetch from the leader; if it does not count us as in sync, catch up and say so."""
        state = self.broker.replicas.hosted[tp].state
        if fetcher != KEPT:
            self.forget(tp)
            self.broker.logs.follow(tp)
        if fetcher == SKIPPED:
            self.unfetched[tp] = self.broker.clock.now()
        elif fetcher == STARTED:
            self._fetched[tp] = state.leader
            self._threads.setdefault(state.leader, [self.broker.clock.now(), 0])[1] += 1
        if tp in self.unfetched:
            return
        in_step = self.is_in_step(tp)
        if in_step and self.broker.id not in state.isr and state.leader >= 0:
            self._catch_up(tp, state)
        self.broker.logs.wake(tp)

    def is_in_step(self, tp: TopicPartition) -> bool:
        """Whether we fetch, and neither lag nor are about to catch up."""
        return tp not in self.lagging and tp not in self._fetchers and tp not in self.unfetched

    def keeps_up(self, tp: TopicPartition) -> bool:
        """Whether we will be in step, or are: a broker that is leaving starts no fetcher."""
        return tp not in self.lagging and not (tp in self.unfetched and self.broker.is_leaving)

    def remove_fetcher(self, tp: TopicPartition) -> None:
        """Stop fetching until we are made follower anew."""
        since = self.unfetched.get(tp, self.broker.clock.now())
        self.forget(tp)
        hosted = self.broker.replicas.hosted.get(tp)
        if hosted is not None and hosted.state.leader != self.broker.id:
            self.unfetched[tp] = since

    def forget(self, tp: TopicPartition) -> None:
        """This partition is not followed any more, or in another way."""
        self.stop(tp)
        self.unfetched.pop(tp, None)
        leader = self._fetched.pop(tp, None)
        if leader is not None:
            self._threads[leader][1] -= 1

    def end_idle_fetchers(self, at_once: bool) -> None:
        """End the fetchers that have no partition left, at once or when the fetch that is under way has returned.

        Kafka 0.10.2.2: server/AbstractFetcherManager.scala, shutdownIdleFetcherThreads
        """
        now, network = self.broker.clock.now(), self.broker.network
        for leader in [leader for leader, (_, partitions) in self._threads.items() if not partitions]:
            since, _ = self._threads.pop(leader)
            there = leader in network.brokers and network.silence(leader, self.broker.id) == math.inf
            if there and not at_once:
                self._idle_until = max(self._idle_until, now + FETCH_WAIT - (now - since) % FETCH_WAIT)

    async def idle_fetchers_ended(self) -> None:
        """Return when no fetcher is being ended any more."""
        if (wait := self._idle_until - self.broker.clock.now()) > 0:
            await self.broker.clock.sleep(wait)

    def stop(self, tp: TopicPartition) -> None:
        self.broker.logs.stop(tp)
        fetcher = self._fetchers.pop(tp, None)
        if fetcher is not None:
            fetcher.drop(tp)

    def go_at(self, slow: float) -> None:
        """From now on every fetch takes so much longer."""
        self.slow, self._slow_since = slow, self.broker.clock.now() if slow else math.inf

    @property
    def is_suspect(self) -> bool:
        """Whether we may be late somewhere."""
        return bool(self.lagging or self.slow or self.unfetched)

    def late_since(self, tp: TopicPartition) -> float:
        """Since when we have not been in step: we lag, or are slower than a leader waits; infinity if we are."""
        lags = self.lagging.get(tp, math.inf)
        if self.slow <= self.broker.config["replica.lag.time.max.ms"] / 1000:
            return lags
        return min(lags, max(self._slow_since, self._caught_up.get(tp, 0.0)))

    def fall_behind(self, tp: TopicPartition) -> None:
        self.stop(tp)
        self.lagging.setdefault(tp, self.broker.clock.now())

    def keep_up(self, tp: TopicPartition) -> None:
        if self.lagging.pop(tp, None) is not None:
            hosted = self.broker.replicas.hosted.get(tp)
            if hosted is not None and hosted.state.leader not in (self.broker.id, -1) and tp not in self.unfetched:
                self.stop(tp)
                self._catch_up(tp, hosted.state)

    def _catch_up(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """Be in step by and by, together with the partitions of the same leader that begin at the same moment."""
        fetcher = self._forming.get(state.leader)
        if fetcher is None or not fetcher.forming or self.broker.logs.has_records(tp, state):
            fetcher = Fetcher(self.broker, state.leader)
            if not self.broker.logs.has_records(tp, state):
                self._forming[state.leader] = fetcher
        self._fetchers[tp] = fetcher
        fetcher.add(tp, state)

    def fetch_alone(self, tp: TopicPartition, state: LeaderAndIsr, said: bool) -> None:
        """There are records now: go on with a fetcher for this partition only."""
        self._fetchers[tp].drop(tp)
        self._fetchers[tp] = alone = Fetcher(self.broker, state.leader)
        alone.add(tp, state, at_once=True, said=said)

    def counted_in(self, tp: TopicPartition) -> None:
        """The leader has taken us into the ISR."""
        self._caught_up[tp] = self.broker.clock.now()
        self._fetchers.pop(tp, None)
        self.broker.logs.wake(tp)

    def will_fetch(self) -> bool:
        """Whether a follower waits for its next attempt, and that one will be answered."""
        network, me = self.broker.network, self.broker.id
        for tp in (*self._fetchers, *self.broker.logs.resting):
            hosted = self.broker.replicas.hosted.get(tp)
            leader = network.brokers.get(hosted.state.leader) if hosted else None
            if hosted is None or leader is None or network.silence(leader.id, me) != math.inf:
                continue
            if self.broker.paused_since == math.inf and leader.logs.answers(tp, hosted.state.leader_epoch):
                return True
        return False

    def fetch_again(self) -> None:
        """After a silence: catch up wherever the leader has taken us out of the ISR meanwhile."""
        for tp in self.broker.replicas.hosted:
            self.fetch_on(tp)

    def fetch_on(self, tp: TopicPartition) -> None:
        """Catch up if we follow this partition and its leader has taken us out of the ISR meanwhile."""
        hosted = self.broker.replicas.hosted.get(tp)
        leader = self.broker.network.brokers.get(hosted.state.leader) if hosted else None
        if (
            hosted is not None
            and leader not in (None, self.broker)
            and self.is_in_step(tp)
            and not leader.replication.counts_in(tp, self.broker.id)
        ):
            self._catch_up(tp, hosted.state)

    # As leader

    def fetched(self, tp: TopicPartition, follower: int, leader_epoch: int) -> bool:
        """A follower has reached the end of our log; False if we are not its leader (any more, or yet)."""
        hosted = self.broker.replicas.hosted.get(tp)
        if (
            hosted is None
            or not self.broker.logs.answers(tp, leader_epoch)
            or not self.broker.logs.may_join(tp, follower)
        ):
            return False
        if follower in hosted.replicas and follower not in hosted.state.isr and (tp, follower) not in self._joining:
            self._joining.add((tp, follower))
            self.broker.spawn(self._let_join(tp, follower))
        return True

    async def _let_join(self, tp: TopicPartition, follower: int) -> None:
        try:
            await self._change_isr(tp, "expand-isr", add=follower)
        finally:
            self._joining.discard((tp, follower))

    def counts_in(self, tp: TopicPartition, follower: int) -> bool:
        """Whether a follower is in the ISR as far as we know."""
        hosted = self.broker.replicas.hosted.get(tp)
        return hosted is not None and follower in hosted.state.isr

    async def expire_laggards(self) -> None:
        """Every half `replica.lag.time.max.ms`, take followers out of the ISR that lag for longer than that."""
        CAUSE.set(None)
        broker = self.broker
        limit = broker.config["replica.lag.time.max.ms"] / 1000
        while True:
            await broker.clock.sleep(limit / 2, background=True)
            for tp, late in self.late_followers(broker.clock.now() - limit).items():
                await self._change_isr(tp, "shrink-isr", remove=late)
                for follower in late:
                    other = broker.network.brokers[follower].replication
                    if broker.network.silence(follower, broker.id) == math.inf:
                        other.fetch_again()  # it never stopped, or can be heard again since this was decided

    def late_followers(self, since: float) -> dict[TopicPartition, tuple[int, ...]]:
        """By partition led here: members of the ISR that have not been in step since then."""
        network, me = self.broker.network, self.broker.id
        suspects = {
            other.id
            for other in network.brokers.values()
            if other.id != me and (other.replication.is_suspect or network.silence(other.id, me) != math.inf)
        }
        if not suspects:
            return {}
        late = {
            tp: tuple(f for f in hosted.state.isr if f in suspects and self._is_late(tp, f, since))
            for tp, hosted in self.broker.replicas.hosted.items()
            if hosted.state.leader == me and len(hosted.state.isr) > 1
        }
        return {tp: followers for tp, followers in late.items() if followers}

    def _is_late(self, tp: TopicPartition, follower: int, since: float) -> bool:
        """Whether a follower has not been in step since then: it lags, or, where that counts, it fetches no more."""
        other = self.broker.network.brokers[follower]
        silent_since = self.broker.network.silence(follower, self.broker.id)
        silent_since = min(silent_since, other.replication.unfetched.get(tp, math.inf))
        if silent_since == math.inf:
            return other.replication.late_since(tp) <= since
        expels = self.broker.world.generation.expels_silent_followers or self.broker.logs.is_behind(tp, follower)
        return expels and max(silent_since, self.broker.replicas.hosted[tp].led_since) <= since

    async def _change_isr(
        self, tp: TopicPartition, action: str, add: int | None = None, remove: tuple[int, ...] = ()
    ) -> None:
        """Write a new ISR if the znode still has the version we know; else leave it to the controller."""
        async with self._writing.setdefault(tp, asyncio.Lock()):
            await self._write_isr(tp, action, add, remove)
        self.broker.logs.advance(tp)

    async def _write_isr(self, tp: TopicPartition, action: str, add: int | None, remove: tuple[int, ...]) -> None:
        broker, hosted = self.broker, self.broker.replicas.hosted.get(tp)
        if hosted is None or hosted.state.leader != broker.id:
            return
        old = hosted.state
        isr = tuple(r for r in old.isr if r not in remove)
        isr = isr if add is None or add in isr else (*isr, add)
        if isr == old.isr or not isr or (add is not None and add not in hosted.replicas):
            return
        new = old._replace(isr=isr)
        version, error = await self._write(tp, new)
        broker.record(
            action,
            tp,
            leader=broker.id,
            isr=isr,
            leader_epoch=new.leader_epoch,
            zk_version=version,
            controller_epoch=new.controller_epoch,
            error=error,
            detail=f"isr_before={','.join(map(str, old.isr))}" + (f" cached_version={old.zk_version}" * bool(error)),
        )
        current = broker.replicas.hosted.get(tp)
        if error is None and current is hosted and hosted.state is old:
            hosted.state = new._replace(zk_version=version)
            self._announce(tp)

    async def isr_written(self, partitions: Iterable[TopicPartition]) -> None:
        """Wait until no new ISR of these is on its way to ZooKeeper: who writes one holds the lock of the partition.

        Kafka 2.0.1: cluster/Partition.scala, leaderIsrUpdateLock, in makeLeader, makeFollower and delete
        """
        for tp in partitions:
            if self.is_writing(tp):
                async with self._writing[tp]:
                    pass

    def is_writing(self, tp: TopicPartition) -> bool:
        """Whether a new ISR is on its way to ZooKeeper: until it is there, neither the old nor the new one counts."""
        lock = self._writing.get(tp)
        return lock is not None and lock.locked()

    async def _write(self, tp: TopicPartition, state: LeaderAndIsr) -> tuple[int, str | None]:
        """The new zk_version, or an error; a znode that already holds what we want to write is no error."""
        zk, path = self.broker.zk, TopicPartitionStateZNode.path(tp)
        data = TopicPartitionStateZNode.encode(state)
        answer = await zk.write(Set(path, data, state.zk_version))
        if answer.error == "BADVERSION" and self.broker.world.generation.accepts_own_isr:
            there = await zk.read(path)
            if there.value == data and there.stat is not None:
                return there.stat.version, None
        return answer.stat.version if answer.stat else -1, answer.error

    def _announce(self, tp: TopicPartition) -> None:
        self._changed[tp] = None
        self._last_change = self.broker.clock.now()
        if self._propagator is None or self._propagator.done():
            self._propagator = self.broker.spawn(self._propagate())

    async def _propagate(self) -> None:
        """At the next check after things are quiet, name the changed partitions under `/isr_change_notification`."""
        clock = self.broker.clock
        while self._changed:
            wait = PROPAGATION_CHECK - (clock.now() - self.started) % PROPAGATION_CHECK
            await clock.sleep(wait if wait > 1e-6 else PROPAGATION_CHECK)
            now = clock.now()
            if self._last_change + PROPAGATION_QUIET < now or self._last_propagation + PROPAGATION_LIMIT < now:
                changed, self._changed = list(self._changed), {}
                self._last_propagation = now
                prefix = f"{IsrChangeNotificationZNode.path()}/isr_change_"
                data = IsrChangeNotificationSequenceZNode.encode(changed)
                try:
                    (await self.broker.zk.write(Create(prefix, data, sequence=True))).checked()
                except (ConnectionLoss, SessionExpired):
                    self._changed |= dict.fromkeys(changed)
