"""Consumer groups without a network: who joins, who leads, who is given up, and what is committed."""

import asyncio
import functools
import struct
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from prose import refuses

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.generation import Generation
from kafka_ctl.wire.coordinator_requests import heartbeat
from kafka_ctl.wire.groups import (
    EMPTY,
    FIRST_DELAY,
    JOINING,
    STABLE,
    SYNCING,
    Group,
    Groups,
    Member,
    NameGiven,
    OffsetAndMetadata,
    offsets_partition,
)
from kafka_ctl.wire.schema import Refusal, name_of

T = TypeVar("T")


def run(coro: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(coro, 30))


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine."""
    return functools.wraps(test)(lambda *args, **given: run(test(*args, **given)))


@pytest.fixture
def groups() -> Groups:
    return Groups()


def asking(member: str = "", session: float = 30, protocols: tuple[str, ...] = ("range",)) -> dict[str, Any]:
    """A request to join the group `g`."""
    return {
        "group_id": "g",
        "session_timeout": round(session * 1000),
        "rebalance_timeout": round(session * 1000),
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": [{"name": name, "metadata": name.encode()} for name in protocols],
    }


@pytest.mark.parametrize(
    ("live", "error"), [((), "COORDINATOR_NOT_AVAILABLE"), ((2, 1), "NOT_COORDINATOR"), ((3, 2), "UNKNOWN_MEMBER_ID")]
)
def test_the_first_broker_alive_coordinates(live: tuple[int, ...], error: str) -> None:
    """Broker 2 is asked; before its first UpdateMetadata it knows no broker."""
    broker = SimpleNamespace(id=2, live_brokers=live, generation=Generation("2.4"))
    service: Any = SimpleNamespace(broker=broker, shared=SimpleNamespace(groups=Groups()))
    asked = {"group_id": "g", "generation_id": 1, "member_id": "nobody"}
    assert name_of(run(heartbeat(service, 0, asked))["error_code"]) == error


@pytest.mark.parametrize(
    ("subscribed", "topics"),
    [
        (struct.pack(">hih1sh2s", 0, 2, 1, b"a", 2, b"bc"), {"a", "bc"}),
        (struct.pack(">hi", 0, 0), set()),
        (struct.pack(">hih1s", 0, 2, 1, b"a"), None),
        (struct.pack(">hih1s", 0, 1, 2, b"a"), None),
        (struct.pack(">hih", 0, 1, -1), None),
        (struct.pack(">hih1s", 0, 1, 1, b"\xff"), None),
        (b"", None),
    ],
)
def test_the_topics_of_a_group_are_known_or_not(subscribed: bytes, topics: set[str] | None) -> None:
    """One subscription that cannot be read is enough: then any topic may be read by it."""
    sound = Member("1", 30, 30, {"range": struct.pack(">hih1s", 0, 1, 1, b"a")})
    members = {"1": sound, "2": Member("2", 30, 30, {"range": subscribed})}
    assert Group("g", protocol="range", members=members).subscribed_topics() == (
        None if topics is None else topics | {"a"}
    )
    assert Group("g", protocol="roundrobin", members=members).subscribed_topics() is None


async def stable(groups: Groups, members: int, session: float = 30) -> list[str]:
    """So many members, in a group that has its assignment; the leader first."""
    joined = await asyncio.gather(*(groups.join(asking(session=session), "c", False) for _ in range(members)))
    group = groups.groups["g"]
    ids = sorted((id for _, id in joined), key=lambda id: id != group.leader)
    given = {id: id.encode() for id in ids}
    parts = await asyncio.gather(*(groups.sync("g", id, 1, given if id == group.leader else {}) for id in ids))
    assert parts == [id.encode() for id in ids]
    return ids


@on_a_loop
async def test_all_join_and_the_leader_assigns(groups: Groups) -> None:
    """The first to join leads; everybody gets its own part, whoever asks first."""
    leader, *_ = await stable(groups, 3)
    group = groups.groups["g"]
    assert (group.state, group.generation, group.leader, group.protocol) == (STABLE, 1, leader, "range")
    assert leader == next(iter(group.members))
    groups.heartbeat("g", leader, 1)


@on_a_loop
async def test_before_kip_134_the_first_member_waits_for_nobody() -> None:
    """It is the first generation alone, and the next one to join makes it join again."""
    groups = Groups(gathers=False)
    first, id = await groups.join(asking(), "c", False)
    assert (first.generation, first.leader) == (1, id)
    newcomer = asyncio.create_task(groups.join(asking(), "c", False))
    await asyncio.sleep(0)
    again, _ = await groups.join(asking(id), "c", False)
    assert (again.generation, (await newcomer)[0].generation) == (2, 2)


@on_a_loop
async def test_each_of_the_first_members_prolongs_the_wait(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    """But not beyond the rebalance timeout. A later generation of an empty group waits once.

    Kafka 2.0.1: coordinator/group/DelayedJoin.scala, InitialDelayedJoin
    """
    loop, waits = asyncio.get_running_loop(), list[float]()
    call_later = loop.call_later

    def noted(seconds: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        waits.append(seconds)
        return call_later(seconds, callback, *args)

    async def both(rebalance: float) -> list[str]:
        asked = asking(session=5) | {"rebalance_timeout": round(rebalance * 1000)}
        return [id for _, id in await asyncio.gather(*(groups.join(asked, "c", False) for _ in range(2)))]

    monkeypatch.setattr(loop, "call_later", noted)
    ids = await both(0.15)
    assert waits == pytest.approx([FIRST_DELAY, 0.15 - FIRST_DELAY, 5, 5])
    for id in ids:
        groups.leave("g", id)
    waits.clear()
    await both(5)
    assert waits == [FIRST_DELAY, 5, 5]


@on_a_loop
async def test_a_member_that_joins_again_keeps_its_timeouts(groups: Groups) -> None:
    """Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, updateMemberAndRebalance"""
    (id,) = await stable(groups, 1)
    await groups.join(asking(id, session=7), "other", False)
    member = groups.groups["g"].members[id]
    assert (member.session, member.rebalance, member.client) == (30, 30, "c")


def test_a_group_without_members_and_offsets_goes_with_its_last_topic(groups: Groups) -> None:
    """Kafka 0.10.2.2, 2.0.1, 2.4.1: GroupMetadataManager.scala, cleanupGroupMetadata"""
    a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    groups.commit("of a", "", -1, {a: OffsetAndMetadata(1)})
    groups.commit("of both", "", -1, {a: OffsetAndMetadata(1), b: OffsetAndMetadata(1)})
    groups.commit_in_transaction("in a transaction", 7, {a: OffsetAndMetadata(1)})
    groups.group("empty")
    groups.forget([])
    assert len(groups.groups) == 4
    groups.forget([a])
    assert groups.groups.keys() == {"of both", "in a transaction"}


@on_a_loop
async def test_a_newcomer_makes_all_join_again(groups: Groups) -> None:
    """Until they have, heartbeats are answered REBALANCE_IN_PROGRESS, and older generations are refused."""
    ids = await stable(groups, 2)
    newcomer = asyncio.create_task(groups.join(asking(), "c", False))
    await asyncio.sleep(0)
    refuses(Refusal, "REBALANCE_IN_PROGRESS", groups.heartbeat, "g", ids[0], 1)
    await asyncio.gather(newcomer, *(groups.join(asking(id), "c", False) for id in ids))
    assert groups.groups["g"].generation == 2
    assert len(groups.groups["g"].members) == 3
    refuses(Refusal, "ILLEGAL_GENERATION", groups.heartbeat, "g", ids[0], 1)


@on_a_loop
async def test_who_joins_next_is_not_in_the_answers_of_this_generation(groups: Groups) -> None:
    """The rebalance ends, and a member with other protocols joins before the leader's answer is written."""
    ids = await stable(groups, 2)
    both = [asyncio.create_task(groups.join(asking(id), "c", False)) for id in ids]
    groups.groups["g"].members[ids[0]].protocols["other"] = b""
    newcomer = asyncio.create_task(groups.join(asking(protocols=("range", "other")), "c", False))
    (leader, _), (follower, _) = await asyncio.gather(*both)
    assert (leader.generation, follower.generation, groups.groups["g"].state) == (2, 2, JOINING)
    assert [id for id, *_ in leader.members] == ids and not follower.members
    newcomer.cancel()


@on_a_loop
async def test_a_member_that_repeats_its_request_disturbs_nobody(groups: Groups) -> None:
    """While assignments are waited for, and a follower also later; a leader that joins begins a rebalance."""
    (first, a), (_, b) = await asyncio.gather(*(groups.join(asking(), "c", False) for _ in range(2)))
    group = groups.groups["g"]
    leader, follower = (a, b) if first.leader == a else (b, a)
    assert (await groups.join(asking(leader), "c", False))[0] == group.answer_to(leader)
    assert (await groups.join(asking(follower), "c", False))[0].members == ()
    refuses(Refusal, "REBALANCE_IN_PROGRESS", groups.heartbeat, "g", follower, 1)
    await asyncio.gather(*(groups.sync("g", id, 1, {}) for id in (leader, follower)))
    assert (await groups.join(asking(follower), "c", False))[0].generation == 1
    assert group.state == STABLE
    again = asyncio.create_task(groups.join(asking(leader), "c", False))
    await asyncio.sleep(0)
    assert group.state == JOINING
    again.cancel()


@on_a_loop
async def test_the_next_coordinator_does_not_know_who_waited(groups: Groups) -> None:
    """A consumer that was about to join has left nothing; one that joined again is silent from then on.

    Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, onGroupLoaded
    """
    ids = await stable(groups, 3, session=1)
    group = groups.groups["g"]
    waiting = [asyncio.create_task(groups.join(asking(id), "c", False)) for id in ("", ids[0])]
    await asyncio.sleep(0)
    assert len(group.members) == 4
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert [*group.members] == ids
    await asyncio.gather(*(groups.join(asking(id), "c", False) for id in ids[1:]))
    assert [*group.members] == ids[1:]


@on_a_loop
async def test_most_members_choose_the_protocol(groups: Groups) -> None:
    """The first to join leads, and prefers another one."""
    wanted = [("range", "rr"), ("rr", "range"), ("rr", "sticky", "range")]
    joined = await asyncio.gather(*(groups.join(asking(protocols=each), "c", False) for each in wanted))
    assert {answer.protocol for answer, _ in joined} == {"rr"}


@on_a_loop
async def test_who_is_silent_is_given_up(groups: Groups) -> None:
    """After the session timeout; the last one to go leaves an empty group with its offsets."""
    tp = TopicPartition("orders", 0)
    _, id = await groups.join(asking(session=1), "c", False)
    await groups.sync("g", id, 1, {id: b""})
    groups.commit("g", id, 1, {tp: (5, None)})
    group = groups.groups["g"]
    while group.members:
        await asyncio.sleep(0.05)
    while group.state != EMPTY:
        await asyncio.sleep(0.05)
    assert groups.offsets("g") == {tp: (5, None)}
    refuses(Refusal, "UNKNOWN_MEMBER_ID", groups.heartbeat, "g", id, 1)


@on_a_loop
async def test_a_member_that_is_gone_has_no_session_timeout(groups: Groups) -> None:
    """Neither one that leaves, nor one that does not join again in time: a quiet lab waits for nothing."""
    _, left = await groups.join(asking(session=30), "c", False)
    going = groups.groups["g"].members[left]
    groups.leave("g", left)
    _, first = await groups.join(asking(session=1), "c", False)
    late = groups.groups["g"].members[first]
    late.session = 30
    await groups.sync("g", first, groups.groups["g"].generation, {first: b""})
    await groups.join(asking(session=1), "c", False)  # after the rebalance timeout, a second
    assert first not in groups.groups["g"].members
    for member in (going, late):
        assert member.expiry is not None and member.expiry.cancelled()


@on_a_loop
async def test_the_session_of_a_member_that_waits_for_its_assignment_does_not_end(groups: Groups) -> None:
    """It begins again with the assignment, or when the group rebalances; only the silent leader is given up.

    Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, shouldKeepMemberAlive, propagateAssignment
    """
    joins = [groups.join(asking(session=seconds), "c", False) for seconds in (3, 1)]
    (_, leader), (_, follower) = await asyncio.gather(*joins)
    group = groups.groups["g"]
    waiting = asyncio.create_task(groups.sync("g", follower, 1, {}))
    await asyncio.sleep(1.2)
    assert [*group.members] == [leader, follower]
    await groups.sync("g", leader, 1, {follower: b"all"})
    assert await waiting == b"all"
    while follower in group.members:
        await asyncio.sleep(0.05)
    assert (group.state, [*group.members]) == (JOINING, [leader])


@on_a_loop
async def test_a_group_whose_first_member_has_no_protocol_is_lost(groups: Groups) -> None:
    """The member stays and supports nothing (0.10). Kafka 0.10.2.2: coordinator/GroupCoordinator.scala, doJoinGroup;
    coordinator/GroupMetadata.scala, initNextGeneration, supportsProtocols"""
    for protocols, error in (
        ((), "UNKNOWN_SERVER_ERROR"),
        ((), "INCONSISTENT_GROUP_PROTOCOL"),
        (("range",), "INCONSISTENT_GROUP_PROTOCOL"),
    ):
        with pytest.raises(Refusal, match=error):
            await groups.join(asking(protocols=protocols), "c", False, checks_first_member=False)
    group = groups.groups["g"]
    assert (group.state, group.generation, len(group.members)) == (JOINING, 1, 1)


@on_a_loop
async def test_a_consumer_is_given_its_name_first(groups: Groups) -> None:
    """Since 2.2, who comes without an id is given one and joins with that (KIP-394)."""
    with pytest.raises(NameGiven, match="MEMBER_ID_REQUIRED") as given:
        await groups.join(asking(), "c", True)
    _, id = await groups.join(asking(given.value.id), "c", True)
    assert id == given.value.id
    with pytest.raises(Refusal, match="UNKNOWN_MEMBER_ID"):
        await groups.join(asking("nobody"), "c", True)


@on_a_loop
async def test_what_a_group_refuses(groups: Groups) -> None:
    """No name, a session too short, no assignment strategy in common, and commits of strangers."""
    ids = await stable(groups, 1)
    for request, error in (
        (asking() | {"group_id": ""}, "INVALID_GROUP_ID"),
        (asking(session=0.1), "INVALID_SESSION_TIMEOUT"),
        (asking(session=301), "INVALID_SESSION_TIMEOUT"),
        (asking(protocols=("sticky",)), "INCONSISTENT_GROUP_PROTOCOL"),
        (asking(protocols=()), "INCONSISTENT_GROUP_PROTOCOL"),
        (asking() | {"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
    ):
        with pytest.raises(Refusal, match=error):
            await groups.join(request, "c", False)
    tp = TopicPartition("orders", 0)
    for member, generation, error in (
        ("nobody", 1, "UNKNOWN_MEMBER_ID"),
        (ids[0], 9, "ILLEGAL_GENERATION"),
        ("", -1, "UNKNOWN_MEMBER_ID"),
    ):
        refuses(Refusal, error, groups.commit, "g", member, generation, {tp: (1, None)})
    groups.commit("alone", "", -1, {tp: (1, None)})
    assert groups.offsets("alone") == {tp: (1, None)}
    assert groups.offsets("never heard of") == {}
    assert "never heard of" not in groups.groups


@on_a_loop
async def test_no_offsets_while_a_group_waits_for_its_assignment(groups: Groups) -> None:
    """Members are told to join again; who is none is told so since 2.4 only (KAFKA-8487)."""
    tp = TopicPartition("orders", 0)
    _, id = await groups.join(asking(), "c", False)
    group = groups.groups["g"]
    assert group.state == SYNCING
    for member, generation, first, error in (
        (id, 1, True, "REBALANCE_IN_PROGRESS"),
        (id, 9, True, "ILLEGAL_GENERATION"),
        ("nobody", 1, True, "UNKNOWN_MEMBER_ID"),
        ("", -1, True, "UNKNOWN_MEMBER_ID"),
        (id, 1, False, "REBALANCE_IN_PROGRESS"),
        (id, 9, False, "REBALANCE_IN_PROGRESS"),
        ("nobody", 1, False, "REBALANCE_IN_PROGRESS"),
        ("", -1, False, "REBALANCE_IN_PROGRESS"),
    ):
        refuses(Refusal, error, groups.commit, "g", member, generation, {tp: (1, None)}, first)
        with pytest.raises(Refusal, match=error if id == member or first else "UNKNOWN_MEMBER_ID"):
            groups.heartbeat("g", member, generation, None, first)
    assert groups.offsets("g") == {}
    await groups.sync("g", id, 1, {id: b""})
    groups.commit("g", id, 1, {tp: (1, None)})
    refuses(Refusal, "ILLEGAL_GENERATION", groups.commit, "never heard of", "", 0, {tp: (1, None)})
    assert "never heard of" not in groups.groups
    newcomer = asyncio.create_task(groups.join(asking(), "c", False))
    await asyncio.sleep(0)
    assert group.state == JOINING
    groups.commit("g", id, 1, {tp: (2, None)})
    assert groups.offsets("g") == {tp: (2, None)}
    newcomer.cancel()


@pytest.mark.parametrize(("members", "newcomer", "longest"), [((3, 50, 5), 7, 50), ((3, 5), 60, 60)])
@on_a_loop
async def test_a_rebalance_waits_as_long_as_its_most_patient_member(
    members: tuple[int, ...], newcomer: int, longest: int
) -> None:
    """The longest rebalance timeout counts, be it a member's or the newcomer's; session timeouts do not."""
    groups, loop = Groups(), asyncio.get_running_loop()

    def request(seconds: int) -> dict[str, Any]:
        return asking(session=20) | {"rebalance_timeout": seconds * 1000}

    joined = await asyncio.gather(*(groups.join(request(seconds), "c", False) for seconds in members))
    group = groups.groups["g"]
    await asyncio.gather(*(groups.sync("g", id, 1, {}) for _, id in joined))
    before = loop.time()
    joining = asyncio.create_task(groups.join(request(newcomer), "c", False))
    await asyncio.sleep(0)
    assert longest <= group.timer.when() - before < longest + 1
    joining.cancel()


@on_a_loop
async def test_offsets_within_a_transaction_count_once_it_is_committed(groups: Groups) -> None:
    """Not those of an aborted one, nor those that were replaced since; others' transactions do not matter."""
    one, two = TopicPartition("orders", 0), TopicPartition("orders", 1)
    here = [offsets_partition("g")]
    groups.commit("g", "", -1, {one: (1, "alone")})
    groups.commit_in_transaction("g", 7, {one: (5, "t")})
    groups.commit_in_transaction("g", 7, {two: (6, None)})
    groups.commit_in_transaction("g", 8, {one: (9, None)})
    assert groups.offsets("g") == {one: (1, "alone")}
    groups.end_transaction(7, [offsets_partition("h")], True)
    assert groups.offsets("g") == {one: (1, "alone")}
    groups.end_transaction(7, here, True)
    assert groups.offsets("g") == {one: (5, "t"), two: (6, None)}
    groups.end_transaction(7, here, True)
    groups.end_transaction(8, here, False)
    assert groups.offsets("g") == {one: (5, "t"), two: (6, None)}
    groups.commit_in_transaction("g", 7, {one: (10, None), two: (10, None)})
    groups.commit("g", "", -1, {one: (11, None)})
    groups.end_transaction(7, here, True)
    assert groups.offsets("g") == {one: (11, None), two: (10, None)}
    refuses(Refusal, "INVALID_GROUP_ID", groups.commit_in_transaction, "", 7, {one: (1, None)})
    ids = await stable(groups, 1)
    groups.commit_in_transaction("g", 7, {one: (12, None)})  # members and generations do not matter
    groups.end_transaction(7, here, True)
    assert groups.offsets("g")[one] == (12, None)
    groups.leave("g", ids[0])


def test_the_partition_that_has_a_groups_offsets_is_javas() -> None:
    """`Utils.abs("my-group".hashCode) % 50`, as Java prints it."""
    assert [offsets_partition(name).partition for name in ("g", "my-group", "console-consumer-12345")] == [3, 36, 6]


@on_a_loop
async def test_who_leaves_is_replaced(groups: Groups) -> None:
    """The others join again, and one of them leads."""
    ids = await stable(groups, 2)
    groups.leave("g", ids[0])
    joined, _ = await groups.join(asking(ids[1]), "c", False)
    assert (joined.leader, joined.members) == (ids[1], ((ids[1], None, b"range"),))
    assert [*groups.groups["g"].members] == [ids[1]]


@on_a_loop
async def test_a_refused_member_leaves_no_group() -> None:
    """Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, handleJoinGroup"""
    groups = Groups(longest=1800)
    for request, error in (
        (asking(session=1801), "INVALID_SESSION_TIMEOUT"),
        (asking("nobody", session=1800), "UNKNOWN_MEMBER_ID"),
    ):
        with pytest.raises(Refusal, match=error):
            await groups.join(request, "c", False)
    assert groups.groups == {}


# Static members (KIP-345). Motive: Kafka 2.4.1, GroupCoordinatorTest.scala, staticMember...


def as_static(instance: str, member: str = "", **options: Any) -> dict[str, Any]:
    return asking(member, **options) | {"group_instance_id": instance}


async def two_static(groups: Groups, **options: Any) -> tuple[str, str]:
    """Two static members, `one` and `two`, in a stable group; the leader first."""
    joins = [groups.join(as_static(name, **options), "c", True) for name in ("one", "two")]
    ids = [id for _, id in await asyncio.gather(*joins)]
    assert [id.partition("-")[0] for id in ids] == ["one", "two"], "nobody is asked to join with an id"
    given = {id: id.encode() for id in ids}
    await asyncio.gather(*(groups.sync("g", id, 1, given if id == ids[0] else {}, id[:3]) for id in ids))
    assert groups.groups["g"].leader == ids[0]
    return ids[0], ids[1]


@pytest.mark.parametrize("place", [0, 1])
@on_a_loop
async def test_a_static_member_that_restarts_keeps_its_place(groups: Groups, place: int) -> None:
    """The group stays stable; who has the older id is fenced."""
    old = await two_static(groups)
    name, group = ("one", "two")[place], groups.groups["g"]
    joined, new = await groups.join(as_static(name), "c", True)
    assert (joined, group.state) == ((1, "range", old[0], ()), STABLE)
    assert new not in old and group.leader == (new if place == 0 else old[0])
    assert await groups.sync("g", new, 1, {}, name) == old[place].encode()
    groups.heartbeat("g", new, 1, name)
    groups.heartbeat("g", old[1 - place], 1)
    offsets = {TopicPartition("orders", 0): OffsetAndMetadata(1)}
    with pytest.raises(Refusal, match="FENCED_INSTANCE_ID"):
        await groups.join(as_static(name, old[place]), "c", True)
    with pytest.raises(Refusal, match="FENCED_INSTANCE_ID"):
        await groups.sync("g", old[place], 1, {}, name)
    for ask in (
        lambda: groups.heartbeat("g", old[place], 1, name),
        lambda: groups.commit("g", old[place], 1, offsets, True, name),
        lambda: groups.leave("g", old[place], name),
    ):
        refuses(Refusal, "FENCED_INSTANCE_ID", ask)
    groups.commit("g", new, 1, offsets, True, name)
    assert group.state == STABLE and len(group.members) == 2


@on_a_loop
async def test_a_static_member_that_restarts_while_it_waits(groups: Groups) -> None:
    """For the other members, then for the assignment: the request that waits is fenced, the new one goes on."""
    leader, follower = await two_static(groups)
    first = asyncio.create_task(groups.join(as_static("one", leader), "c", True))
    await asyncio.sleep(0)
    assert groups.groups["g"].state == JOINING
    again = asyncio.create_task(groups.join(as_static("one"), "c", True))
    with pytest.raises(Refusal, match="FENCED_INSTANCE_ID"):
        await first
    (joined, new), (other, _) = await asyncio.gather(again, groups.join(as_static("two", follower), "c", True))
    assert (joined.generation, joined.leader, other.leader) == (2, new, new)
    assert [(id, instance) for id, instance, _ in joined.members] == [(follower, "two"), (new, "one")]
    waiting = asyncio.create_task(groups.sync("g", follower, 2, {}, "two"))
    await asyncio.sleep(0)
    joined, newer = await groups.join(as_static("two"), "c", True)
    assert joined == (2, "range", new, ())
    with pytest.raises(Refusal, match="FENCED_INSTANCE_ID"):
        await waiting
    parts = await asyncio.gather(groups.sync("g", newer, 2, {}), groups.sync("g", new, 2, {newer: b"2", new: b"1"}))
    assert parts == [b"2", b"1"]


@on_a_loop
async def test_a_rebalance_keeps_static_members_that_are_away(groups: Groups) -> None:
    """It ends after the rebalance timeout; another member leads."""
    short = {"rebalance_timeout": 200}
    _, follower = await two_static(groups)
    for member in groups.groups["g"].members.values():
        member.rebalance = 0.2
    joins = [asking() | short, as_static("two", follower) | short]
    (_, dynamic), (joined, _) = await asyncio.gather(*(groups.join(one, "c", False) for one in joins))
    assert (joined.generation, joined.leader) == (2, follower)
    assert [instance for _, instance, _ in joined.members] == ["one", "two", None]
    group = groups.groups["g"]
    groups.leave("g", "", "one")  # an administrator may name an instance alone
    assert group.state == JOINING and group.static_member("one") is None
    joined, _ = await groups.join(as_static("two", follower) | short, "c", False)
    assert [id for id, *_ in joined.members] == [follower] and dynamic not in group.members


@on_a_loop
async def test_a_group_waits_for_static_members_until_their_sessions_end(groups: Groups) -> None:
    """No generation begins while all of them are away."""
    leader, _ = await two_static(groups, session=1)
    group = groups.groups["g"]
    group.members[leader].rebalance = 0.1
    groups.leave("g", "", "two")
    begun = group.timer
    while group.timer is begun:
        await asyncio.sleep(0.05)
    assert (group.state, group.generation, [*group.members]) == (JOINING, 1, [leader])
    while group.state != EMPTY:
        await asyncio.sleep(0.05)
    assert not group.members


@on_a_loop
async def test_a_static_member_may_restart_with_other_protocols(groups: Groups) -> None:
    """The protocol of the generation stays; there is no metadata for it."""
    await groups.join(as_static("one", protocols=("range", "rr")), "c", True)
    joined, id = await groups.join(as_static("one", protocols=("rr",)), "c", True)
    assert joined.protocol == "range"
    assert groups.groups["g"].answer_to(id).members == ((id, "one", b""),)


@on_a_loop
async def test_an_instance_that_is_not_known(groups: Groups) -> None:
    """Its member begins anew; a static member may leave its instance out."""
    _, follower = await two_static(groups)
    for id, instance in (("nobody", "one"), ("nobody", "new"), (follower, "new")):
        error = "FENCED_INSTANCE_ID" if instance == "one" else "UNKNOWN_MEMBER_ID"
        with pytest.raises(Refusal, match=error):
            await groups.join(as_static(instance, id), "c", True)
    assert (await groups.join(asking(follower), "c", True))[0].generation == 1
    assert groups.groups["g"].static_member("two") is groups.groups["g"].members[follower]
    refuses(Refusal, "UNKNOWN_MEMBER_ID", groups.leave, "g", "", "new")


@on_a_loop
async def test_a_rebalance_waits_for_members_that_were_given_an_id(groups: Groups) -> None:
    """Until they join, leave or have been silent for a session timeout (KIP-394)."""
    (id,) = await stable(groups, 1)
    for ends in ("join", "leave", "silence"):
        with pytest.raises(NameGiven) as given:
            await groups.join(asking(session=1), "c", True)
        again = asyncio.create_task(groups.join(asking(id), "c", True))
        await asyncio.sleep(0)
        assert groups.groups["g"].state == JOINING and groups.groups["g"].pending == {given.value.id}
        if ends == "leave":
            groups.leave("g", given.value.id)
        if ends == "join":
            await groups.join(asking(given.value.id), "c", True)
            groups.leave("g", given.value.id)
            await again
            again = asyncio.create_task(groups.join(asking(id), "c", True))
        await again
        await groups.sync("g", id, groups.groups["g"].generation, {})
        assert groups.groups["g"].state == STABLE
