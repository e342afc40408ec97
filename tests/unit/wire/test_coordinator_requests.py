"""The requests of a group's members, as their coordinator answers them in every version.

Motive: Kafka 2.4.1, GroupCoordinatorTest.scala
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tables import tabled
from wire_clients import Asking, listening

from kafka_ctl import Lab
from kafka_ctl.generation import Generation
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.schema import name_of
from kafka_ctl.wire.versions import announced

RANGE = [{"name": "range", "metadata": b"r"}]


@pytest.fixture(scope="module", params=["0.10", "2.0", "2.4"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with listening(request.param, brokers=1, orders={0: [1]}) as opened:
        yield opened


@pytest.fixture
def broker(lab: Lab) -> Iterator[Asking]:
    with Asking(lab, 1) as connection:
        yield connection


def versions(lab: Lab, api: str) -> range:
    """The versions in which this generation answers an API."""
    low, high = announced(Generation(lab.generation.name))[api]
    return range(low, high + 1)


def committed(broker: Asking, version: int, group: str, **given: Any) -> str | None:
    """Commit offset 5 of orders-0 outside of a membership; the error."""
    part = {"partition_index": 0, "committed_offset": 5} | given
    topics = [{"name": "orders", "partitions": [part]}]
    (topic,) = broker.ask("OffsetCommit", version, group_id=group, topics=topics)["topics"]
    return name_of(topic["partitions"][0]["error_code"])


def fetched(broker: Asking, version: int, group: str) -> Message:
    """The committed offset of orders-0."""
    topics = [{"name": "orders", "partition_indexes": [0]}]
    (topic,) = broker.ask("OffsetFetch", version, group_id=group, topics=topics)["topics"]
    (part,) = topic["partitions"]
    return part


def test_an_offset_keeps_its_leader_epoch(lab: Lab, broker: Asking) -> None:
    """OffsetCommit has it since version 6, OffsetFetch since version 5; -1 means that it is not known."""
    for version in versions(lab, "OffsetCommit"):
        for epoch in (3, -1):
            known = {"committed_leader_epoch": epoch} if version >= 6 else {}
            assert committed(broker, version, "epochs", committed_metadata=None, **known) is None
            for asked in versions(lab, "OffsetFetch"):
                found = fetched(broker, asked, "epochs")
                assert (found["committed_offset"], found["metadata"]) == (5, "")
                if asked >= 5:
                    assert found["committed_leader_epoch"] == known.get("committed_leader_epoch", -1)


@tabled
def test_a_group_without_a_name(lab: Lab, broker: Asking, api: str, in_0_10: str | None, since: str | None) -> None:
    """Its offsets can be kept. Kafka 2.0.1, 2.4.1: coordinator/group/GroupCoordinator.scala, isValidGroupId;
    0.10.2.2: coordinator/GroupCoordinator.scala, handleJoinGroup"""
    error = in_0_10 if lab.generation.name == "0.10" else since
    for version in versions(lab, api):
        if api == "OffsetCommit":
            assert committed(broker, version, "") == error
        elif api == "OffsetFetch":
            assert name_of(fetched(broker, version, "")["error_code"]) == error
        else:
            fields = {"session_timeout": 30_000, "protocol_type": "consumer", "protocols": RANGE}
            if api != "JoinGroup":
                fields = {"member_id": "1"} if version < 3 or api != "LeaveGroup" else {"members": [{"member_id": "1"}]}
            assert name_of(broker.ask(api, version, group_id="", **fields)["error_code"]) == error


@tabled
def test_the_first_member_brings_its_protocols(
    lab: Lab, broker: Asking, kind: str, number: int, in_0_10: str | None, since: str | None
) -> None:
    """KAFKA-6005. Before, such a group broke when it chose its protocol (MemberMetadata.scala, vote)."""
    error = in_0_10 if lab.generation.name == "0.10" else since
    fields = {"session_timeout": 30_000, "protocol_type": kind, "protocols": RANGE[:number]}
    for version in versions(lab, "JoinGroup"):
        group = f"first {kind} {number} {version}"
        answer = broker.ask("JoinGroup", version, group_id=group, **fields)
        given = error is None and version >= 4
        assert name_of(answer["error_code"]) == ("MEMBER_ID_REQUIRED" if given else error)


def test_a_member_that_may_not_join_gets_its_own_id_back(lab: Lab, broker: Asking) -> None:
    """Kafka 2.0.1: coordinator/group/GroupCoordinator.scala, joinError"""
    for version in versions(lab, "JoinGroup"):
        for id, seconds, error in (("nobody", 30, "UNKNOWN_MEMBER_ID"), ("m", 0, "INVALID_SESSION_TIMEOUT")):
            fields = {"session_timeout": 1000 * seconds, "protocol_type": "consumer", "protocols": RANGE}
            answer = broker.ask("JoinGroup", version, group_id="echo", member_id=id, **fields)
            assert (name_of(answer["error_code"]), answer["member_id"]) == (error, id)


def test_a_static_member_replaces_the_one_before(lab: Lab, broker: Asking) -> None:
    """The older one is fenced by every request that has an instance (KIP-345)."""
    fields = {"session_timeout": 30_000, "protocol_type": "consumer", "protocols": RANGE, "group_instance_id": "i"}
    for version in versions(lab, "JoinGroup")[5:]:
        mine = {"group_id": f"static {version}", "group_instance_id": "i", "generation_id": 1}
        joined = broker.ask("JoinGroup", version, **fields | mine)
        id = joined["member_id"]
        assert id.startswith("i-")
        assert joined["members"] == [{"member_id": id, "group_instance_id": "i", "metadata": b"r"}]
        assignments = [{"member_id": id, "assignment": b"a"}]
        assert broker.ask("SyncGroup", 3, **mine, member_id=id, assignments=assignments)["assignment"] == b"a"
        again = broker.ask("JoinGroup", version, **fields | mine)
        assert (again["generation_id"], again["leader"], again["members"]) == (1, id, [])
        for member, error in ((id, "FENCED_INSTANCE_ID"), (again["member_id"], None)):
            found = [broker.ask("JoinGroup", version, **fields | mine, member_id=id)] if error else []
            found += [broker.ask("SyncGroup", n, **mine, member_id=member) for n in versions(lab, "SyncGroup")[3:]]
            found += [broker.ask("Heartbeat", n, **mine, member_id=member) for n in versions(lab, "Heartbeat")[3:]]
            assert {name_of(answer["error_code"]) for answer in found} == {error}
            as_member = {"member_id": member, "group_instance_id": "i", "generation_id_or_member_epoch": 1}
            for n in versions(lab, "OffsetCommit")[7:]:
                topics = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 5}]}]
                answer = broker.ask("OffsetCommit", n, group_id=mine["group_id"], topics=topics, **as_member)
                assert name_of(answer["topics"][0]["partitions"][0]["error_code"]) == error
            assert left(broker, version - 2, mine["group_id"], member, "i") == error


def test_a_member_may_leave_before_it_has_joined(lab: Lab, broker: Asking) -> None:
    """With the id that it was given (KIP-394), once."""
    fields = {"session_timeout": 30_000, "protocol_type": "consumer", "protocols": RANGE}
    for version in versions(lab, "JoinGroup")[4:]:
        for leaving in versions(lab, "LeaveGroup"):
            id = broker.ask("JoinGroup", version, group_id="pending", **fields)["member_id"]
            errors = [left(broker, leaving, "pending", id) for _ in range(2)]
            assert errors == [None, "UNKNOWN_MEMBER_ID"]


def left(broker: Asking, version: int, group: str, id: str, instance: str | None = None) -> str | None:
    """Leave a group; the member's error."""
    if version < 3:
        return name_of(broker.ask("LeaveGroup", version, group_id=group, member_id=id)["error_code"])
    members = [{"member_id": id, "group_instance_id": instance}]
    answer = broker.ask("LeaveGroup", version, group_id=group, members=members)
    assert answer["error_code"] == 0
    (member,) = answer["members"]
    assert (member["member_id"], member["group_instance_id"]) == (id, instance)
    return name_of(member["error_code"])
