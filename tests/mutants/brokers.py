"""Mutants of brokers, their logs, and what they make of the controller's requests."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from kafka_ctl.brokers.fetches import FetchRequest
from kafka_ctl.brokers.follower import FollowedPartition, FollowerRole, State
from kafka_ctl.brokers.leader import LeaderRole
from kafka_ctl.brokers.log import Log
from kafka_ctl.brokers.replica_manager import ReplicaManager
from kafka_ctl.cluster import LeaderAndIsr
from kafka_ctl.lab.producer import Producer
from kafka_ctl.requests import ProduceRequest, Response
from tests.mutants.seeded import Function, seeded


@seeded("I1", LeaderRole, "in_sync_end")
def majority_is_enough(original: Function) -> Function:
    """The high watermark waits for most of the ISR, not for all of it."""

    def in_sync_end(self: LeaderRole, tp: Any, log: Log) -> int:
        ends = self.follower_ends.get(tp, {}) | {self.process.id: log.end}
        isr = self.process.hosted[tp].state.isr
        return sorted(ends.get(replica, -1) for replica in isr)[(len(isr) - 1) // 2]

    return in_sync_end


@seeded("I3", LeaderRole, "fetch")
def sent_is_received(original: Function) -> Function:
    """A leader takes what it sends to a follower for what the follower has."""

    def fetch(self: LeaderRole, request: FetchRequest) -> Any:
        answer = original(self, request)
        if answer is not None and request.offset is not None:
            self.follower_ends.setdefault(request.partition, {})[request.replica] = answer.end
            self.increment_high_watermark(request.partition)
        return answer

    return fetch


@seeded("I4", LeaderRole, "replicated")
def one_is_all(original: Function) -> Function:
    """A leader answers `acks=all` without waiting for the others."""

    async def replicated(self: LeaderRole, tp: Any, end: int, timeout: float) -> str | None:
        return None

    return replicated


@seeded("I5", Log, "common_end")
def epochs_unchecked(original: Function) -> Function:
    """A follower compares the lengths of the logs with its leader, not the leader epochs in them."""

    def common_end(self: Log, leaders_end_of: Any) -> Any:
        answer = leaders_end_of(sys.maxsize)
        return None if answer is None else min(self.end, answer[1])

    return common_end


@seeded("I6", LeaderRole, "in_sync_end")
def reads_uncommitted(original: Function) -> Function:
    """A leader's high watermark is the end of its own log."""

    def in_sync_end(self: LeaderRole, tp: Any, log: Log) -> int:
        return log.end

    return in_sync_end


@seeded("I9", ReplicaManager, "stale")
def obeys_old_controllers(original: Function) -> Function:
    """A broker does not look at the controller epoch of a request, nor at the broker epoch."""

    def stale(self: ReplicaManager, request: Any) -> None:
        self.controller_epoch = request.controller_epoch

    return stale


@seeded("I10", LeaderRole, "_write")
def leader_raises_epoch(original: Function) -> Function:
    """A leader that changes an ISR raises the leader epoch, as if there had been an election."""

    def _write(self: LeaderRole, tp: Any, state: LeaderAndIsr) -> Any:
        return original(self, tp, state._replace(leader_epoch=state.leader_epoch + 1))

    return _write


@seeded("I15", LeaderRole, "_write")
def everybody_is_in_sync(original: Function) -> Function:
    """A leader that changes an ISR puts every assigned replica into it, whatever state that is in."""

    def _write(self: LeaderRole, tp: Any, state: LeaderAndIsr) -> Any:
        return original(self, tp, state._replace(isr=self.process.hosted[tp].replicas))

    return _write


@seeded("I18", ReplicaManager, "update_metadata")
def cache_never_updated(original: Function) -> Function:
    """A broker keeps what it first heard of a partition, and forgets to update its cache."""

    def update_metadata(self: ReplicaManager, request: Any) -> Any:
        known = dict(self.process.metadata)
        response = original(self, request)
        self.process.metadata |= {tp: state for tp, state in known.items() if tp in self.process.metadata}
        return response

    return update_metadata


@seeded("I22", LeaderRole, "can_join_isr")
def joins_at_once(original: Function) -> Function:
    """A leader lets a follower join the ISR without looking how far its log reaches."""

    def can_join_isr(self: LeaderRole, tp: Any, follower: int) -> bool:
        return True

    return can_join_isr


@seeded("I24", LeaderRole, "in_sync_end")
def counts_cached_isr(original: Function) -> Function:
    """The high watermark waits for the ISR in the broker's metadata cache, not for the one that its leader keeps."""

    def in_sync_end(self: LeaderRole, tp: Any, log: Log) -> int:
        ends = self.follower_ends.get(tp, {}) | {self.process.id: log.end}
        cached = self.process.metadata.get(tp) or self.process.hosted[tp].state
        return min(ends.get(replica, -1) for replica in cached.isr)

    return in_sync_end


@seeded("I25", LeaderRole, "lead")
def leader_begins_empty(original: Function) -> Function:
    """A broker that becomes leader drops what it has, and begins with an empty log."""

    def lead(self: LeaderRole, tp: Any) -> None:
        log = self.process.disk.logs.get(tp)
        if log is not None and (dropped := log.truncate(0)):
            self.process.record_offset("truncate", tp, dropped, 0, "leader-end")
        original(self, tp)

    return lead


@seeded("I26", LeaderRole, "_write_isr")
def expansion_forgotten(original: Function) -> Function:
    """A leader writes a larger ISR and goes on with the smaller one."""

    async def _write_isr(self: LeaderRole, tp: Any, action: str, add: Any, remove: Any) -> None:
        before = self.process.hosted[tp].state.isr if tp in self.process.hosted else ()
        await original(self, tp, action, add, remove)
        hosted = self.process.hosted.get(tp)
        if hosted is not None and add in hosted.state.isr:
            hosted.state = hosted.state._replace(isr=before)

    return _write_isr


@seeded("I27", FollowedPartition, "_fetch")
def asks_another_replica(original: Function) -> Function:
    """A follower fetches from the last of the other replicas, whoever leads."""

    async def _fetch(self: FollowedPartition, log: Log, leader: int) -> bool:
        others = [id for id in self.process.hosted[self.tp].replicas if id != self.process.id]
        return bool(await original(self, log, others[-1] if others else leader))

    return _fetch


@seeded("I28", Producer, "_ask")
def connection_loss_unnoticed(original: Function) -> Function:
    """A producer goes on waiting when the connection to a leader is lost."""

    async def _ask(self: Producer, leader: int, request: ProduceRequest) -> Response:
        answer: Response = await original(self, leader, request)
        if answer.error == "NETWORK_EXCEPTION":
            await asyncio.Event().wait()
        return answer

    return _ask


@seeded("I29", FollowerRole, "answered")
def answer_forgotten(original: Function) -> Function:
    """A follower whose fetch has waited does not look at the answer, and fetches no more."""

    def answered(self: FollowerRole, p: FollowedPartition, brings: bool) -> None:
        if p.state is State.WAITING:
            p.state, p.waits = State.IN_STEP, None

    return answered
