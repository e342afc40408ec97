"""A controller's client of ZooKeeper, where the answers are written down: of other controllers, and of bad data."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

import pytest
from prose import refuses

from kafka_ctl.cluster import LeaderAndIsr, ReplicaAssignment, TopicPartition
from kafka_ctl.errors import BadInput, BadVersion, ControllerMoved, NoNode, SessionExpired, ZooKeeperError
from kafka_ctl.zookeeper.client import ZooKeeperClient
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient, read_config
from kafka_ctl.zookeeper.store import Exists, Op, Result, Stat
from kafka_ctl.zookeeper.znodes import ControllerZNode, TopicPartitionStateZNode, TopicZNode

T = TypeVar("T")
OP, STAT = Exists("/"), Stat(*[0] * 10)._replace(version=8)
DONE = Result(OP)
MINE, OTHERS = (Result(OP, value=ControllerZNode.encode(id, 0), stat=STAT) for id in (1, 2))
NOT_JSON = Result(OP, value=b"{", stat=STAT)


class Answers(ZooKeeperClient):
    """A client that has these answers, one for each operation."""

    def __init__(self, *answers: Result) -> None:
        super().__init__(window=1)
        self.answers = [*answers]

    async def send(self, ops: Sequence[Op]) -> list[Result]:
        return [self.answers.pop(0)._replace(op=op) for op in ops]


def asked(call: Coroutine[object, None, T]) -> T:
    return asyncio.run(call)


def client(*answers: Result) -> KafkaZkClient:
    return KafkaZkClient(Answers(*answers))


def error(name: str) -> Result:
    return Result(OP, name)


def epoch(number: int) -> Result:
    return Result(OP, value=str(number).encode(), stat=STAT)


def test_a_controller_registers_with_the_next_epoch() -> None:
    assert asked(client(epoch(4), DONE).register_controller(1, b"")) == (5, 9)


def test_the_first_controller_creates_the_epoch() -> None:
    """If another broker creates it in between, its epoch is read, and must still be there."""
    missing, there = error("NONODE"), error("NODEEXISTS")
    assert asked(client(missing, DONE, DONE).register_controller(1, b"")) == (1, 1)
    assert asked(client(missing, there, epoch(4), DONE).register_controller(1, b"")) == (5, 9)
    refuses(NoNode, "but goes away while", asked, client(missing, there, missing).register_controller(1, b""))
    refuses(ZooKeeperError, "NOAUTH", asked, client(missing, error("NOAUTH")).register_controller(1, b""))


@pytest.mark.parametrize("refused", ["NODEEXISTS", "BADVERSION"])
def test_a_transaction_whose_answer_was_lost_counts(refused: str) -> None:
    """It was done if `/controller` is ours, and the epoch the one that we wrote."""
    before = (epoch(4), error(refused))
    assert asked(client(*before, MINE, epoch(5)).register_controller(1, b"")) == (5, 8)
    for moved in ((OTHERS,), (MINE, epoch(6)), (error("NONODE"),)):
        with pytest.raises(ControllerMoved, match="Aborting controller startup"):
            asked(client(*before, *moved).register_controller(1, b""))
    with pytest.raises(ControllerMoved, match="at /controller went away"):
        asked(client(*before, error("NONODE")).register_controller(1, b""))
    refuses(NoNode, "but goes away while", asked, client(*before, MINE, error("NONODE")).register_controller(1, b""))


def test_another_error_of_the_transaction_is_raised() -> None:
    with pytest.raises(ZooKeeperError):
        asked(client(epoch(4), error("NOAUTH")).register_controller(1, b""))


def test_the_epoch_is_raised_where_no_other_controller_has_raised_it() -> None:
    assert asked(client(Result(OP, stat=STAT)).raise_controller_epoch(5, 7)) == (5, 8)
    assert asked(client(error("NONODE"), DONE).raise_controller_epoch(5, 7)) == (1, 1)
    for answers, raised in (
        ([error("BADVERSION")], BadVersion),
        ([error("NONODE"), error("NODEEXISTS")], ControllerMoved),
    ):
        with pytest.raises(raised):
            asked(client(*answers).raise_controller_epoch(5, 7))
    with pytest.raises(ZooKeeperError):
        asked(client(error("NONODE"), error("NOAUTH")).raise_controller_epoch(5, 7))


TP = TopicPartition("orders", 0)
READS: dict[str, Callable[[KafkaZkClient], Coroutine[object, None, object]]] = {
    "brokers": lambda zk: zk.brokers([1]),
    "assignments": lambda zk: zk.assignments(["orders"]),
    "state": lambda zk: zk.state(TP),
    "notifications": lambda zk: zk.notifications("/isr_change_notification", ["isr_change_1"], lambda data, _: data),
    "reassignments": lambda zk: zk.reassignments(by_class=True),
    "preferred_elections": lambda zk: zk.preferred_elections(),
    "controller_epoch": lambda zk: zk.controller_epoch(),
    "controller_id": lambda zk: zk.controller_id(),
    "exists": lambda zk: zk.exists("/"),
    "handle_node_and_check": lambda zk: zk.handle_node_and_check("/", lambda kind: None),
    "read_config": lambda zk: read_config(zk, "topics", "orders"),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_that_was_not_answered_finds_nothing_missing(name: str) -> None:
    """Only NONODE says that there is nothing."""
    assert not asked(READS[name](client(error("NONODE")))) or name == "controller_id"
    with pytest.raises(SessionExpired):
        asked(READS[name](client(error("SESSIONEXPIRED"))))


def test_a_topic_without_json_assigns_nothing() -> None:
    good = Result(OP, value=TopicZNode.encode({0: (1, 2)}), stat=STAT)
    found = asked(client(NOT_JSON, good, error("NONODE")).assignments(["bad", "good", "gone"]))
    assert found == {"bad": {}, "good": {0: ReplicaAssignment((1, 2))}}


def test_a_state_without_json_is_missing() -> None:
    state = LeaderAndIsr(1, (1, 2), 3, 8, 5)
    good = Result(OP, value=TopicPartitionStateZNode.encode(state), stat=STAT)
    bad, fine = TopicPartition("orders", 0), TopicPartition("orders", 1)
    found = asked(client(NOT_JSON, good).states([bad, fine]))
    assert isinstance(found[bad], NoNode)
    assert found[fine] == state


def test_settings_and_requests_without_json() -> None:
    assert asked(client(NOT_JSON, error("NONODE")).topic_configs(["a", "b"])) == {"a": {}, "b": {}}
    assert asked(read_config(client(NOT_JSON), "brokers", "1")) == {}
    assert asked(client(NOT_JSON).preferred_elections()) == []
    assert asked(client(NOT_JSON).controller_id()) == -1
    assert asked(client(error("NONODE")).preferred_elections()) == []
    assert asked(client(error("NONODE")).reassignments(by_class=True)) is None
    with pytest.raises(BadInput):
        asked(client(NOT_JSON).reassignments(by_class=True))


@pytest.mark.parametrize("name", ["controller_id", "preferred_elections"])
def test_before_1_1_no_json_is_an_error(name: str) -> None:
    old = client(NOT_JSON)
    old.client.reads_over_no_json = False
    with pytest.raises(BadInput):
        asked(READS[name](old))
