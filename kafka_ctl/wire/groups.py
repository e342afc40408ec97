"""Consumer groups: who is in a group, who has which partitions, and how far each has come.

A group is empty, waits for its members to join, waits for its leader's assignment, or is stable. A member that joins or
leaves makes all others join again. Groups and their offsets outlive brokers, as if `__consumer_offsets` had lost
nothing; the coordinator of all groups is the first broker that is alive, and others refuse.
Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, GroupMetadata.scala
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeGuard, TypeVar

from kafka_ctl.cluster import OFFSETS_TOPIC, TopicPartition
from kafka_ctl.scala_order import text_hash
from kafka_ctl.wire.codec import Malformed, Message, read_int16, read_int32, take
from kafka_ctl.wire.schema import Refusal

T = TypeVar("T")
EMPTY, JOINING, SYNCING, STABLE = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"
CONSUMER = "consumer"
"""The protocol type of groups of consumers."""
FIRST_DELAY = 0.1
"""Seconds that an empty group waits for more members: `group.initial.rebalance.delay.ms`, 3000 in Kafka."""
SHORTEST, LONGEST = 1.0, 300.0
"""Seconds that a session timeout may have. Kafka's `group.min.session.timeout.ms` is 6000; `group.max.` is 300000, and
1800000 since 2.3 (KIP-345)."""

OFFSETS_PARTITIONS = 50
"""Kafka's `offsets.topic.num.partitions`; here these partitions only name what a transaction writes to."""


def coordinator_id(live_brokers: Collection[int]) -> int | None:
    """The broker that coordinates all groups and all transactions: the first of those alive."""
    return min(live_brokers, default=None)


def offsets_partition(group: str) -> TopicPartition:
    """The partition that has a group's offsets.

    Kafka 2.0.1: coordinator/group/GroupMetadataManager.scala, partitionFor
    """
    return TopicPartition(OFFSETS_TOPIC, (text_hash(group) & 0x7FFFFFFF) % OFFSETS_PARTITIONS)


class OffsetAndMetadata(NamedTuple):
    """An offset with the text that the consumer keeps beside it and, if known, the leader epoch of the last record.

    Kafka 2.4.1: common/OffsetAndMetadata.scala
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Offsets = Mapping[TopicPartition, OffsetAndMetadata]
"""Offsets to commit."""


class Joined(NamedTuple):
    """The answer to a member that has joined; `members` has the ids, instances and metadata, for the leader only."""

    generation: int
    protocol: str
    leader: str
    members: tuple[tuple[str, str | None, bytes], ...]


@dataclass
class Member:
    """One consumer of a group."""

    id: str
    session: float
    rebalance: float
    protocols: dict[str, bytes]
    joined: asyncio.Future[Joined] | None = None
    """The answer to JoinGroup, until all have joined."""
    synced: asyncio.Future[bytes] | None = None
    """The answer to SyncGroup, until the leader has assigned."""
    assignment: bytes = b""
    expiry: asyncio.TimerHandle | None = None
    client: str = ""
    """The client's name for itself."""
    instance: str | None = None
    """The `group.instance.id` of a static member (KIP-345)."""

    def metadata(self, protocol: str) -> bytes:
        """The member's metadata for a protocol; nothing where a static member has restarted without that protocol."""
        return self.protocols.get(protocol, b"")


@dataclass
class Group:
    """One group and its offsets."""

    name: str
    state: str = EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    offsets: dict[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    """The number of the commit of each offset, which grows: its place in Kafka's `__consumer_offsets`."""
    in_transactions: dict[int, dict[TopicPartition, tuple[int, OffsetAndMetadata]]] = field(default_factory=dict)
    """By producer: the offsets that count once its transaction is committed, each with the number of its commit."""
    timer: asyncio.TimerHandle | None = None
    gathers: bool = False
    """True if the first member still waits for others."""
    has_newcomer: bool = False
    """True if another has joined for the first generation, and the wait has not been prolonged for it yet."""
    pending: set[str] = field(default_factory=set)
    """Ids that were given to consumers which are to join with them (KIP-394)."""

    def chosen_protocol(self) -> str:
        """The protocol that most members prefer among those that all of them support.

        Kafka 2.0.1: coordinator/group/GroupMetadata.scala, selectProtocol
        """
        common = set.intersection(*(set(member.protocols) for member in self.members.values()))
        votes = [next(name for name in member.protocols if name in common) for member in self.members.values()]
        return max(votes, key=votes.count)

    @property
    def rebalance_timeout(self) -> float:
        """The longest of its members, in seconds."""
        return max((member.rebalance for member in self.members.values()), default=0.0)

    def answer_to(self, id: str) -> Joined:
        """The answer to a member that has joined, as of now: later members are not in it."""
        members = self.members.values() if id == self.leader else ()
        listed = tuple((member.id, member.instance, member.metadata(self.protocol)) for member in members)
        return Joined(self.generation, self.protocol, self.leader, listed)

    def static_member(self, instance: str | None) -> Member | None:
        """The member with this `group.instance.id`."""
        return next((one for one in self.members.values() if instance is not None and one.instance == instance), None)

    def check_not_fenced(self, id: str, instance: str | None) -> None:
        """Raise Refusal if another member id has this `group.instance.id` now.

        Kafka 2.4.1: coordinator/group/GroupMetadata.scala, isStaticMemberFenced
        """
        member = self.static_member(instance)
        if member is not None and member.id != id:
            raise Refusal("FENCED_INSTANCE_ID")

    def forget_offset(self, tp: TopicPartition) -> None:
        """Drop the offset of a partition, also in transactions."""
        self.offsets.pop(tp, None)
        self.committed.pop(tp, None)
        for pending in self.in_transactions.values():
            pending.pop(tp, None)

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that its members read; None where that cannot be read in what they have said.

        Kafka 2.4.1: coordinator/group/GroupMetadata.scala, computeSubscribedTopics; clients
        consumer/internals/ConsumerProtocol.java, deserializeSubscription
        """
        found: set[str] = set()
        for member in self.members.values():
            try:
                metadata = member.protocols[self.protocol]
                number, at = read_int32(metadata, 2)
                for _ in range(number):
                    size, at = read_int16(metadata, at)
                    topic, at = take(metadata, at, size, "a topic")
                    found.add(topic.decode())
            except (KeyError, Malformed, UnicodeDecodeError):
                return None
        return frozenset(found)


class Groups:
    """All groups of a lab; `longest` is the most seconds of a session timeout. `gathers` is KIP-134."""

    def __init__(self, longest: float = LONGEST, gathers: bool = True) -> None:
        self._longest, self._gathers = longest, gathers
        self.groups: dict[str, Group] = {}
        self._named = 0
        self._commits = 0

    def group(self, name: str) -> Group:
        """The group of this name, from now on if there was none."""
        return self.groups.setdefault(name, Group(name))

    def _member(self, name: str, member: str, generation: int, instance: str | None) -> tuple[Group, Member]:
        """A member of the group. Raises Refusal if it is fenced, not a member, or belongs to another generation."""
        group = self.groups.get(name, Group(name))
        group.check_not_fenced(member, instance)
        if member not in group.members:
            raise Refusal("UNKNOWN_MEMBER_ID")
        if generation != group.generation:
            raise Refusal("ILLEGAL_GENERATION")
        return group, group.members[member]

    # Joining

    async def join(
        self, request: Message, client: str, names_first: bool, checks_first_member: bool = True
    ) -> tuple[Joined, str]:
        """Join, and return when all have: the generation, and the member's id.

        With `names_first`, a consumer without an id gets one to join with (MEMBER_ID_REQUIRED), except a static
        member. A member that joins again with the same protocols gets the present generation: while assignments are
        waited for, and, if it does not lead, while the group is stable. `checks_first_member` is KAFKA-6005.
        Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, doJoinGroup; 2.4.1: also doUnknownJoinGroup
        """
        name, session, id = request["group_id"], request["session_timeout"] / 1000, request["member_id"]
        instance = request.get("group_instance_id")
        if not name:
            raise Refusal("INVALID_GROUP_ID")
        if not SHORTEST <= session <= self._longest:
            raise Refusal("INVALID_SESSION_TIMEOUT")
        if id and name not in self.groups:
            raise Refusal("UNKNOWN_MEMBER_ID")
        group = self.group(name)
        protocols = {one["name"]: one["metadata"] for one in request["protocols"]}
        self._check_protocols(group, request["protocol_type"], protocols, checks_first_member)
        known = group.static_member(instance)
        if not id:
            self._named += 1
            id = f"{client if instance is None else instance}-{self._named:08x}"
            if known is not None:
                return await self._replace(group, known, id, protocols), id
            if names_first and instance is None:
                group.pending.add(id)
                asyncio.get_running_loop().call_later(session, self._drop_pending, group, id)
                raise NameGiven(id)
        elif id not in group.pending:
            group.check_not_fenced(id, instance)
            if id not in group.members or (instance is not None and known is None):
                raise Refusal("UNKNOWN_MEMBER_ID")
        group.pending.discard(id)
        if self._repeats(group, id, protocols):
            return group.answer_to(id), id
        group.protocol_type = request["protocol_type"]
        rebalance = request["rebalance_timeout" if "rebalance_timeout" in request else "session_timeout"] / 1000
        group.has_newcomer |= id not in group.members and (group.state, group.generation) == (JOINING, 0)
        new = Member(id, session, rebalance, protocols, client=client, instance=instance)
        member = group.members.setdefault(id, new)  # a rejoin brings no other timeouts
        member.protocols = protocols
        return await self._joined(group, member), id

    async def _replace(self, group: Group, member: Member, id: str, protocols: dict[str, bytes]) -> Joined:
        """Give a static member that has restarted a new id; only a rebalance that is under way makes it wait.

        The answer names the leader of before, so that no restarted leader assigns anew.
        Kafka 2.4.1: coordinator/group/GroupCoordinator.scala, doUnknownJoinGroup; GroupMetadata.scala,
        replaceGroupInstance
        """
        leader = group.leader
        _refuse(member.joined, "FENCED_INSTANCE_ID")
        _refuse(member.synced, "FENCED_INSTANCE_ID")
        del group.members[member.id]
        if leader == member.id:
            group.leader = id
        member.id, member.protocols = id, protocols
        group.members[id] = member
        if group.state == JOINING:
            return await self._joined(group, member)
        self._heard(group, member)
        return Joined(group.generation, group.protocol, leader, ())

    def _repeats(self, group: Group, id: str, protocols: dict[str, bytes]) -> bool:
        """True if a member joins again with the same protocols, and the group need not rebalance for it."""
        member = group.members.get(id)
        if member is None or [*member.protocols.items()] != [*protocols.items()]:
            return False
        return group.state == SYNCING or (group.state == STABLE and id != group.leader)

    def _check_protocols(self, group: Group, kind: str, protocols: dict[str, bytes], checks_first: bool) -> None:
        common = set(protocols).intersection(*(member.protocols for member in group.members.values()))
        if group.state == EMPTY and not checks_first:
            return
        if not common or (not kind if group.state == EMPTY else kind != group.protocol_type):
            raise Refusal("INCONSISTENT_GROUP_PROTOCOL")

    async def _joined(self, group: Group, member: Member) -> Joined:
        """Wait until all members have joined or timed out, and return the answer to the member."""
        if not member.protocols:  # KAFKA-6005: Kafka fails when it chooses the protocol, and the member stays
            group.state, group.generation = JOINING, group.generation + 1
            raise Refusal("UNKNOWN_SERVER_ERROR")
        if not _waits(member.joined):
            member.joined = asyncio.get_running_loop().create_future()
        if group.state != JOINING:
            self._rebalance(group)
        waiting = member.joined
        self._complete_if_all(group)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self._lose(group, member)
            raise

    def _lose(self, group: Group, member: Member) -> None:
        """Forget that a member waits, because its coordinator has ended; one that had no generation goes with it.

        Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, onGroupUnloaded, onGroupLoaded
        """
        member.joined = None
        if member.expiry is None:
            self._remove(group, member)
        elif group.members.get(member.id) is member:
            self._heard(group, member)

    def _rebalance(self, group: Group) -> None:
        """Begin a rebalance: every member must join again."""
        group.gathers = self._gathers and group.state == EMPTY
        for member in group.members.values():
            if _waits(member.synced):
                _refuse(member.synced, "REBALANCE_IN_PROGRESS")
                self._heard(group, member)
        group.state = JOINING
        if group.gathers:
            self._gather(group, FIRST_DELAY, group.rebalance_timeout - FIRST_DELAY)
        else:
            group.timer = asyncio.get_running_loop().call_later(group.rebalance_timeout, self._complete, group)

    def _gather(self, group: Group, seconds: float, rest: float) -> None:
        """Wait for more members, and once more after each wait in which one came, for `rest` seconds at most.

        Kafka 2.0.1: coordinator/group/DelayedJoin.scala, InitialDelayedJoin
        """

        def waited() -> None:
            if group.has_newcomer and rest > 0:
                group.has_newcomer = False
                self._gather(group, min(FIRST_DELAY, rest), rest - seconds)
            else:
                self._complete(group)

        group.timer = asyncio.get_running_loop().call_later(seconds, waited)

    def _complete_if_all(self, group: Group) -> None:
        all_there = not group.pending and all(_waits(member.joined) for member in group.members.values())
        if group.state == JOINING and all_there and not group.gathers:
            self._complete(group)

    def _complete(self, group: Group) -> None:
        """Begin the next generation with the members that have joined; remove the others, but no static members.

        Kafka 2.4.1: coordinator/group/GroupCoordinator.scala, onCompleteJoin
        """
        if group.timer is not None:
            group.timer.cancel()
        group.gathers = False
        for id in [id for id, m in group.members.items() if not _waits(m.joined) and m.instance is None]:
            self._stop_expiry(group.members.pop(id))
        joined = [id for id, member in group.members.items() if _waits(member.joined)]
        if group.members and not joined:
            group.timer = asyncio.get_running_loop().call_later(group.rebalance_timeout, self._complete, group)
            return
        group.generation += 1
        if not group.members:
            group.state = EMPTY
            return
        group.state = SYNCING
        if group.leader not in joined:
            group.leader = joined[0]
        group.protocol = group.chosen_protocol()
        for member in group.members.values():
            if _waits(member.joined):
                member.joined.set_result(group.answer_to(member.id))
            self._heard(group, member)

    # Assigning

    async def sync(
        self,
        name: str,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes],
        instance: str | None = None,
    ) -> bytes:
        """The member's part of the assignment, which the leader brings; waits for it."""
        group, member = self._member(name, member_id, generation, instance)
        if group.state == JOINING:
            raise Refusal("REBALANCE_IN_PROGRESS")
        if group.state == STABLE:
            self._heard(group, member)
            return member.assignment
        member.synced = waiting = asyncio.get_running_loop().create_future()
        if member_id == group.leader:
            for other in group.members.values():
                other.assignment = assignments.get(other.id, b"")
                if _waits(other.synced):
                    other.synced.set_result(other.assignment)
                    self._heard(group, other)
            group.state = STABLE
        return await asyncio.shield(waiting)

    # Staying and leaving

    def heartbeat(
        self, name: str, member_id: str, generation: int, instance: str | None = None, compares: bool = True
    ) -> None:
        """Restart the session timeout of a member. Raises Refusal while the group rebalances.

        Without `compares`, a group that waits for its assignment takes a heartbeat of any generation.
        Kafka 2.0.1, 2.4.1: coordinator/group/GroupCoordinator.scala, handleHeartbeat
        """
        known = self.groups.get(name, Group(name))
        if known.state == SYNCING and not compares:
            generation = known.generation
        group, member = self._member(name, member_id, generation, instance)
        if group.state != SYNCING:
            self._heard(group, member)
        if group.state in (JOINING, SYNCING):
            raise Refusal("REBALANCE_IN_PROGRESS")

    def _heard(self, group: Group, member: Member) -> None:
        """Restart the session timeout."""
        self._stop_expiry(member)
        member.expiry = asyncio.get_running_loop().call_later(member.session, self._expire, group, member)

    def _stop_expiry(self, member: Member) -> None:
        if member.expiry is not None:
            member.expiry.cancel()

    def _expire(self, group: Group, member: Member) -> None:
        """Remove a member, unless it waits for an answer: with that its next session timeout begins.

        Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, shouldKeepMemberAlive, propagateAssignment
        """
        if not _waits(member.joined) and not _waits(member.synced):
            self._remove(group, member)

    def leave(self, name: str, member_id: str, instance: str | None = None) -> None:
        """The member goes; the others are to join again. A static member may be named by its instance alone.

        Kafka 2.4.1: coordinator/group/GroupCoordinator.scala, handleLeaveGroup
        """
        group = self.groups.get(name, Group(name))
        if member_id:
            group.check_not_fenced(member_id, instance)
        if member_id in group.pending:
            self._drop_pending(group, member_id)
            return
        member = group.static_member(instance) or group.members.get(member_id)
        if member is None:
            raise Refusal("UNKNOWN_MEMBER_ID")
        self._remove(group, member)

    def _drop_pending(self, group: Group, id: str) -> None:
        """Forget an id that was given; a rebalance may have waited for it alone."""
        group.pending.discard(id)
        self._complete_if_all(group)

    def _remove(self, group: Group, member: Member) -> None:
        if group.members.get(member.id) is not member:
            return
        self._stop_expiry(member)
        del group.members[member.id]
        _refuse(member.joined, "UNKNOWN_MEMBER_ID")
        _refuse(member.synced, "UNKNOWN_MEMBER_ID")
        if group.state in (STABLE, SYNCING):
            self._rebalance(group)
        self._complete_if_all(group)

    # Offsets

    def offsets(self, name: str) -> Offsets:
        """The committed offsets of a group, with the consumer's metadata."""
        group = self.groups.get(name)
        return {} if group is None else group.offsets

    def commit(
        self,
        name: str,
        member_id: str,
        generation: int,
        offsets: Offsets,
        checks_members_first: bool = True,
        instance: str | None = None,
    ) -> None:
        """Remember offsets; a consumer without a group's membership has generation -1.

        A group that waits for its assignment takes no offsets (REBALANCE_IN_PROGRESS). With `checks_members_first` a
        consumer that is not a member gets UNKNOWN_MEMBER_ID also then.
        Kafka 2.0.1, 2.4.1: coordinator/group/GroupCoordinator.scala, handleCommitOffsets, doCommitOffsets
        """
        if generation >= 0 and name not in self.groups:
            raise Refusal("ILLEGAL_GENERATION")
        group = self.group(name)
        if generation >= 0 or group.state != EMPTY:
            if group.state == SYNCING and not checks_members_first:
                raise Refusal("REBALANCE_IN_PROGRESS")
            _, member = self._member(name, member_id, generation, instance)
            if group.state == SYNCING:
                raise Refusal("REBALANCE_IN_PROGRESS")
            self._heard(group, member)
        self._commits += 1
        group.offsets.update(offsets)
        group.committed.update(dict.fromkeys(offsets, self._commits))

    def commit_in_transaction(self, name: str, producer: int, offsets: Offsets) -> None:
        """Keep offsets until the producer's transaction ends; its members and generation do not matter."""
        if not name:
            raise Refusal("INVALID_GROUP_ID")
        group = self.group(name)
        self._commits += 1
        kept = {tp: (self._commits, offset) for tp, offset in offsets.items()}
        group.in_transactions.setdefault(producer, {}).update(kept)

    def end_transaction(self, producer: int, partitions: Container[TopicPartition], commits: bool) -> None:
        """Commit or drop the pending offsets of a producer in the groups of these partitions.

        Kafka 2.0.1: coordinator/group/GroupMetadata.scala, completePendingTxnOffsetCommit
        """
        for group in self.groups.values():
            if offsets_partition(group.name) not in partitions:
                continue
            for tp, (number, offset) in group.in_transactions.pop(producer, {}).items():
                if commits and number > group.committed.get(tp, 0):
                    group.offsets[tp], group.committed[tp] = offset, number

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the offsets of partitions that have been deleted; then the groups without members and offsets go, too.

        Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, handleDeletedPartitions
        """
        gone = list(partitions)
        for group in list(self.groups.values()) if gone else ():
            for tp in gone:
                group.forget_offset(tp)
            self._clean_up(group)

    def _clean_up(self, group: Group) -> None:
        """Forget a group that has neither members nor offsets.

        Kafka 2.0.1: coordinator/group/GroupMetadataManager.scala, cleanupGroupMetadata
        """
        if group.state == EMPTY and not group.offsets and not group.in_transactions:
            self.delete(group.name)

    # Requests of administrators

    def delete(self, name: str) -> None:
        """Forget a group that has no members, and its offsets.

        Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, handleDeleteGroups
        """
        if self._known(name).state != EMPTY:
            raise Refusal("NON_EMPTY_GROUP")
        del self.groups[name]

    def delete_offsets(self, name: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str | None]:
        """Forget offsets of a group, but none of topics that its members read; the error of each (KIP-496).

        Kafka 2.4.1: coordinator/group/GroupCoordinator.scala, handleDeleteOffsets
        """
        if not name:
            raise Refusal("INVALID_GROUP_ID")
        group = self._known(name)
        if group.state != EMPTY and group.protocol_type != CONSUMER:
            raise Refusal("NON_EMPTY_GROUP")
        read = frozenset[str]() if group.state == EMPTY else group.subscribed_topics()
        errors: dict[TopicPartition, str | None] = {}
        for tp in partitions:
            kept = read is None or tp.topic in read
            errors[tp] = "GROUP_SUBSCRIBED_TO_TOPIC" if kept else None
            if not kept:
                group.forget_offset(tp)
        if None in errors.values():
            self._clean_up(group)
        return errors

    def _known(self, name: str) -> Group:
        if name not in self.groups:
            raise Refusal("GROUP_ID_NOT_FOUND")
        return self.groups[name]


def _waits(answer: asyncio.Future[T] | None) -> TypeGuard[asyncio.Future[T]]:
    """True for the answer to a member that waits; it may have waited, or never have done so."""
    return answer is not None and not answer.done()


def _refuse(future: asyncio.Future[T] | None, error: str) -> None:
    """End a wait with an error, and mark the error as seen: the member may be gone."""
    if _waits(future):
        future.set_exception(Refusal(error))
        future.exception()


class NameGiven(Refusal):
    """A consumer has been given an id to join with."""

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__("MEMBER_ID_REQUIRED")
