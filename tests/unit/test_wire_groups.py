"""Consumer groups without a network: who joins, who leads, who is given up, and what is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.wire.groups import EMPTY, STABLE, GroupError, Groups, NameGiven

T = TypeVar("T")


def run(coro: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(coro, 30))


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


async def stable(groups: Groups, members: int) -> list[str]:
    """So many members, in a group that has its assignment; the leader first."""
    joined = await asyncio.gather(*(groups.join(asking(), "c", False) for _ in range(members)))
    group = groups.groups["g"]
    ids = sorted((id for _, id in joined), key=lambda id: id != group.leader)
    given = {id: id.encode() for id in ids}
    parts = await asyncio.gather(*(groups.sync("g", id, 1, given if id == group.leader else {}) for id in ids))
    assert parts == [id.encode() for id in ids]
    return ids


def test_all_join_and_the_leader_assigns() -> None:
    """The first to join leads; everybody gets its own part, whoever asks first."""

    async def play() -> None:
        groups = Groups()
        leader, *_ = await stable(groups, 3)
        group = groups.groups["g"]
        assert (group.state, group.generation, group.leader, group.protocol) == (STABLE, 1, leader, "range")
        assert leader == next(iter(group.members))
        groups.heartbeat("g", leader, 1)

    run(play())


def test_a_newcomer_makes_all_join_again() -> None:
    """Until they have, heartbeats are answered REBALANCE_IN_PROGRESS, and older generations are refused."""

    async def play() -> None:
        groups = Groups()
        ids = await stable(groups, 2)
        newcomer = asyncio.create_task(groups.join(asking(), "c", False))
        await asyncio.sleep(0)
        with pytest.raises(GroupError, match="REBALANCE_IN_PROGRESS"):
            groups.heartbeat("g", ids[0], 1)
        await asyncio.gather(newcomer, *(groups.join(asking(id), "c", False) for id in ids))
        assert groups.groups["g"].generation == 2
        assert len(groups.groups["g"].members) == 3
        with pytest.raises(GroupError, match="ILLEGAL_GENERATION"):
            groups.heartbeat("g", ids[0], 1)

    run(play())


def test_who_is_silent_is_given_up() -> None:
    """After the session timeout; the last one to go leaves an empty group with its offsets."""

    async def play() -> None:
        groups = Groups()
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
        with pytest.raises(GroupError, match="UNKNOWN_MEMBER_ID"):
            groups.heartbeat("g", id, 1)

    run(play())


def test_a_consumer_is_given_its_name_first() -> None:
    """Since 2.2, who comes without an id is given one and joins with that (KIP-394)."""

    async def play() -> None:
        groups = Groups()
        with pytest.raises(NameGiven, match="MEMBER_ID_REQUIRED") as given:
            await groups.join(asking(), "c", True)
        _, id = await groups.join(asking(given.value.id), "c", True)
        assert id == given.value.id
        with pytest.raises(GroupError, match="UNKNOWN_MEMBER_ID"):
            await groups.join(asking("nobody"), "c", True)

    run(play())


def test_what_a_group_refuses() -> None:
    """No name, a session too short, no assignment strategy in common, and commits of strangers."""

    async def play() -> None:
        groups = Groups()
        ids = await stable(groups, 1)
        for request, error in (
            (asking() | {"group_id": ""}, "INVALID_GROUP_ID"),
            (asking(session=0.1), "INVALID_SESSION_TIMEOUT"),
            (asking(protocols=("sticky",)), "INCONSISTENT_GROUP_PROTOCOL"),
            (asking(protocols=()), "INCONSISTENT_GROUP_PROTOCOL"),
            (asking() | {"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
        ):
            with pytest.raises(GroupError, match=error):
                await groups.join(request, "c", False)
        tp = TopicPartition("orders", 0)
        for member, generation, error in (
            ("nobody", 1, "UNKNOWN_MEMBER_ID"),
            (ids[0], 9, "ILLEGAL_GENERATION"),
            ("", -1, "UNKNOWN_MEMBER_ID"),
        ):
            with pytest.raises(GroupError, match=error):
                groups.commit("g", member, generation, {tp: (1, None)})
        groups.commit("alone", "", -1, {tp: (1, None)})
        assert groups.offsets("alone") == {tp: (1, None)}
        assert groups.offsets("never heard of") == {}
        assert "never heard of" not in groups.groups

    run(play())


def test_who_leaves_is_replaced() -> None:
    """The others join again, and one of them leads."""

    async def play() -> None:
        groups = Groups()
        ids = await stable(groups, 2)
        groups.leave("g", ids[0])
        group, _ = await groups.join(asking(ids[1]), "c", False)
        assert (group.leader, list(group.members)) == (ids[1], [ids[1]])

    run(play())
