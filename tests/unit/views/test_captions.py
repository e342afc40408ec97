"""Every step in plain words."""

import pytest
from filmed import NASTY, every_kind, failover
from labs import until_quiet
from prose import Prose

from kafka_ctl import Lab
from kafka_ctl.trace import KINDS, Record
from kafka_ctl.views.captions import SENTENCES, TRACED, caption, listed
from kafka_ctl.views.frames import film


def one(**columns: object) -> Record:
    return Record(**{"seq": 0, "time_ms": 0.0, "actor": "controller-1", **columns})


def test_every_kind_has_its_sentence() -> None:
    assert {*SENTENCES, *TRACED} == set(KINDS)


@pytest.mark.parametrize("record", every_kind(), ids=lambda r: f"{r.kind}-{r.action}")
def test_a_sentence_is_a_sentence(record: Record) -> None:
    text = caption([record])
    assert text[0].isupper() or text.startswith("orders")
    assert text.endswith(".") and "None" not in text and "  " not in text


@pytest.mark.parametrize("record", every_kind(NASTY), ids=lambda r: r.kind)
def test_any_name_can_stand_in_a_sentence(record: Record) -> None:
    """Braces, escapes and markup are only text here; very long names are cut."""
    assert caption([record]).endswith(".")
    assert len(caption([record._replace(topic="t" * 5000, path="/p" * 5000, detail="d" * 5000)])) < 1500


CASES = [
    one(kind="fault", action="kill", actor="fault", broker=1),
    one(kind="zk", action="expired", actor="zookeeper", detail="session=0x1000 of broker-1"),
    one(kind="zk", action="disconnected", actor="broker-1", detail="session=0x1000"),
    one(kind="zk", action="reconnected", actor="broker-1", detail="session=0x1000"),
    one(kind="zk", action="delete", actor="zookeeper", path="/controller"),
    one(kind="zk", action="create", actor="broker-3", path="/controller", error="NODEEXISTS"),
    one(kind="zk", action="create", actor="broker-2", path="/controller", target="ephemeral",
         detail='{"version":1,"brokerid":2,"timestamp":"1"}'),
    one(kind="zk", action="set", actor="admin", path="/controller", detail='{"version":1,"brokerid":2}'),
    one(kind="zk", action="set", actor="admin", path="/controller", detail="x"),
    one(kind="zk", action="create", actor="broker-2", path="/controller_epoch", detail="0"),
    one(kind="zk", action="set", actor="broker-2", path="/controller_epoch", detail="1"),
    one(kind="zk", action="set", actor="admin", path="/brokers/topics/a/partitions/0/state", zk_version=4, detail="5"),
    one(kind="broker", action="stop-replica", broker=2, topic="a", partition=0, detail="delete absent"),
    one(kind="controller", action="resigned", broker=2),
    one(kind="zk", action="set", path="/brokers/topics/orders/partitions/0/state", zk_version=1,
         detail='{"controller_epoch":2,"leader":-1,"version":1,"leader_epoch":1,"isr":[1]}'),
    one(kind="controller", action="brokers_changed", broker=1,
         detail='{"new":[],"dead":[2],"bounced":[3],"live":[1,3]}'),
    one(kind="controller", action="brokers_changed", broker=1, detail='{"new":[],"dead":[],"live":[1]}'),
    one(kind="partition", action="mark", topic="orders", partition=0, source="OnlinePartition",
         target="OfflinePartition", leader=1, isr=(1, 2), leader_epoch=0),
    one(kind="partition", action="elect", topic="orders", partition=0, source="OfflinePartition",
         target="OnlinePartition", leader=2, isr=(2, 3), leader_epoch=1),
    one(kind="partition", action="elect", topic="orders", partition=0, source="OnlinePartition",
         target="NonExistentPartition", error="InvalidTransition"),
    one(kind="election", action="offline", topic="orders", partition=0, leader=3, isr=(3,), target="unclean"),
    one(kind="election", action="offline", topic="orders", partition=0, error="NoReplicaOnline"),
    one(kind="request", action="StopReplica", broker=3, target="sent"),
    one(kind="request", action="UpdateMetadata", topic="orders", partition=0, leader=2, detail="brokers=2,3"),
    one(kind="broker", action="controlled-shutdown", broker=1, detail="attempt=1 remaining=orders-0,orders-2"),
    one(kind="broker", action="controlled-shutdown", broker=1, error="NOT_CONTROLLER", detail="attempt=1 remaining="),
    one(kind="broker", action="controlled-shutdown", broker=1, detail="attempt=2 remaining="),
    one(kind="event", action="elect_leaders", actor="admin", target="done"),
    one(kind="response", action="LeaderAndIsr", broker=3, error="DISCONNECTED",
         detail="broker 3 closed the connection"),
    one(kind="response", actor="broker-3", action="LeaderAndIsr", broker=3, error="STALE_CONTROLLER_EPOCH"),
    one(kind="broker", action="ignored", actor="broker-2", broker=2, topic="a", partition=0,
         error="STALE_CONTROLLER_EPOCH"),
    one(kind="event", action="delete_topic", actor="admin", topic="orders"),
]  # fmt: skip


@pytest.mark.parametrize("record", CASES, ids=lambda record: f"{record.kind} {record.action}")
def test_captions(prose: Prose, record: Record) -> None:
    prose(caption([record]))


def test_what_a_leader_and_isr_request_does(prose: Prose) -> None:
    """Of one broker both roles are named, of several brokers the leaders."""
    leads = one(kind="broker", action="become-leader", broker=1, topic="a", partition=0)
    follows = one(kind="broker", action="become-follower", broker=1, topic="a", partition=1)
    other = one(kind="broker", action="become-follower", broker=2, topic="a", partition=0)
    prose(*(caption(records) for records in ([leads], [follows], [leads, follows], [leads, other], [follows, other])))


def test_a_broker_writes_as_a_controller_or_as_a_leader(prose: Prose) -> None:
    """Both share a session: the record that caused the write tells them apart."""
    state = "/brokers/topics/a/partitions/0/state"
    event = one(kind="event", action="BrokerChange")
    for cause in (0, None):
        for path, action in ((state, "set"), (state, "get"), ("/brokers/ids/1", "create")):
            write = one(seq=1, kind="zk", actor="broker-1", action=action, path=path, cause=cause, zk_version=4,
                        detail='{"leader":2,"isr":[2,1],"leader_epoch":3}')  # fmt: skip
            prose(caption([write], [event, write]))
        refused = one(seq=1, kind="zk", actor="broker-1", action="set", path=state, cause=cause, error="BADVERSION")
        prose(caption([refused], [event, refused]))


def test_a_partition_goes_with_its_topic_or_with_its_leader(prose: Prose, generation: str) -> None:
    """The records before the move tell a deletion from a dead leader."""
    with Lab(brokers=2, generation=generation, seed=1, config={"delete.topic.enable": True}) as lab:
        lab.create_topic("a", assignment={0: [1], 1: [2]})
        until_quiet(lab.create_topic, "b", assignment={0: [1], 1: [2]})
        until_quiet(lab.delete_topic, "a")
        until_quiet(lab.kill, next(b for b in lab.brokers if b != lab.controller.id))
        moves = lab.trace.slice(kind="partition", source="OnlinePartition", target="OfflinePartition")
        ends = {caption([r], lab.trace).partition(", ")[2]: r.topic for r in moves}
        assert list(ends.values()) == ["a", "b"]
        prose(*ends, caption([r for r in moves if r.topic == "a"], lab.trace))


def test_copies_that_are_there_and_not(prose: Prose) -> None:
    stops = [one(kind="broker", action="stop-replica", broker=b, topic="a", partition=0, detail=detail)
             for b, detail in ((1, None), (2, "absent"), (3, "absent"))]  # fmt: skip
    prose(caption(stops))


def test_many_subjects_are_counted(prose: Prose) -> None:
    records = [one(kind="replica", action="stop", topic="a", partition=p, broker=1, source="OnlineReplica",
                   target="OfflineReplica") for p in range(40)]  # fmt: skip
    prose(caption(records))
    assert listed([1]) == "1"
    assert listed([1, 2]) == "1 and 2"
    assert listed([1, 2, 2, 3]) == "1, 2 and 3"
    assert listed(range(5)) == "0, 1 and 3 more"


def test_steps_joined_for_want_of_room_tell_each_kind_of_news() -> None:
    text = caption(every_kind()[:9])
    assert text.count(".") >= 4 and text.endswith("things more.)")
    texts = [caption(every_kind()[:number]) for number in range(1, 10)]
    assert any(each.endswith("(And 1 thing more.)") for each in texts) and not any("1 things" in each for each in texts)


def test_a_whole_story_reads_well() -> None:
    """No step of a real run falls back to a bare name or shows a missing value."""
    reported = [frame.caption for frame in film(failover()).frames]
    assert not [text for text in reported if "None" in text or " notes: " in text]
