"""Kafka's tool for moving partitions: its files, its words in each generation, throttles, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from prose import Prose

from kafka_ctl import Generation, Lab, TopicPartition
from kafka_ctl.cli.commands import status
from kafka_ctl.cluster import Replica
from kafka_ctl.errors import ApiException, BadInput
from kafka_ctl.reassign import plan as plans
from kafka_ctl.zookeeper.znodes import ConfigEntityZNode

GENERATIONS = [Generation("0.10"), Generation("2.0"), Generation("2.4")]
OLD, NEW = Generation("0.10"), Generation("2.0")
ORDERS = TopicPartition("orders", 0)
every = pytest.mark.parametrize("generation", GENERATIONS, ids=str)


def opened(generation: Generation, brokers: int = 4, **options: object) -> Lab:
    """Brokers and a topic of two partitions, whose first one the plans move."""
    lab = Lab(brokers=brokers, generation=generation, seed=3, **options)  # type: ignore[arg-type]
    lab.create_topic("orders", assignment={0: [1, 2], 1: [2, 3]})
    lab.settle()
    return lab


def config(lab: Lab, kind: str, name: str) -> dict[str, str]:
    """The settings of an entity as ZooKeeper has them."""
    znode = lab.znodes().get(ConfigEntityZNode.path(kind, name))
    return ConfigEntityZNode.decode(znode[0], kind, name) if znode else {}


# Files


def test_a_plan_is_read_with_its_log_directories() -> None:
    text = """{"version":1,"partitions":[
        {"topic":"orders","partition":0,"replicas":[2,3],"log_dirs":["any","/d1"]},
        {"topic":"orders","partition":1,"replicas":[3]}]}"""
    read = plans.read_plan(text, NEW)
    assert read.partitions == {ORDERS: (2, 3), TopicPartition("orders", 1): (3,)}
    assert read.log_dirs == {Replica("orders", 0, 3): "/d1"}
    assert plans.read_plan(text, OLD).log_dirs == {}  # 0.10 knows no log directories


@every
def test_what_is_printed_can_be_read_again(generation: Generation) -> None:
    plan = {ORDERS: (2, 3), TopicPartition("a", 7): (1,)}
    text = plans.write_plan(plan, generation)
    assert plans.read_plan(text, generation, check=True).partitions == plan
    assert ("log_dirs" in text) == (generation.name != "0.10")


BAD_PLANS = [
    ("", "The input string is not a valid JSON", "Partition reassignment data file is empty"),
    ("{", "The input string is not a valid JSON", "Partition reassignment data file is empty"),
    ('{"version":1}', "Partition reassignment data file is empty", None),
    (
        '{"version":2,"partitions":[]}',
        "Not supported version field value 2",
        "Partition reassignment data file is empty",
    ),
    ("[]", "Expected JSON object, received []", None),
    ('{"partitions":5}', "Expected JSON array, received 5", None),
    ('{"partitions":[7]}', "Expected JSON object, received 7", None),
    ('{"partitions":[{"topic":"t","partition":0}]}', "No such field exists: `replicas`", None),
    ('{"partitions":[{"topic":1,"partition":0,"replicas":[1]}]}', "Expected `String` value, received 1", None),
    ('{"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}', 'Expected `Int` value, received "0"', None),
    ('{"partitions":[{"topic":"t","partition":0,"replicas":[true]}]}', "Expected `Int` value, received true", None),
    (
        '{"partitions":[{"topic":"t","partition":0,"replicas":[1]},{"topic":"t","partition":0,"replicas":[2]}]}',
        "Partition reassignment contains duplicate topic partitions: t-0",
        "Partition reassignment contains duplicate topic partitions: [t,0]",
    ),
    (
        '{"partitions":[{"topic":"t","partition":0,"replicas":[1,2,1]}]}',
        "Partition replica lists may not contain duplicate entries: t-0 contains multiple entries for 1",
        "Partition replica lists may not contain duplicate entries: [t,0] contains multiple entries for 1",
    ),
    (
        '{"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any"]}]}',
        "Size of replicas list ArrayBuffer(1, 2) is different from size of log dirs list ArrayBuffer(any) for "
        "partition t-0",
        "",
    ),
    ('{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}', "Partition replica list cannot be empty", ""),
]


@pytest.mark.parametrize(("text", "logged", "reported_by_0_10"), BAD_PLANS)
def test_a_bad_plan_is_refused_in_kafkas_words(text: str, logged: str, reported_by_0_10: str | None) -> None:
    """None: 0.10 says the same; empty: 0.10 does not mind."""
    with pytest.raises(BadInput) as refusal:
        plans.read_plan(text, NEW, check=True)
    assert str(refusal.value) == logged
    if reported_by_0_10 == "":
        plans.read_plan(text, OLD, check=True)
        return
    with pytest.raises(BadInput) as refusal:
        plans.read_plan(text, OLD, check=True)
    assert str(refusal.value) == (reported_by_0_10 or logged)


def test_topics_are_read_and_none_twice() -> None:
    assert plans.read_topics('{"version":1,"topics":[{"topic":"b"},{"topic":"a"}]}', NEW) == ["b", "a"]
    with pytest.raises(BadInput, match=r"List of topics to reassign contains duplicate entries: a$"):
        plans.read_topics('{"topics":[{"topic":"a"},{"topic":"b"},{"topic":"a"}]}', NEW)


# Proposals


def test_a_proposal_keeps_counts_and_uses_the_brokers_named() -> None:
    current = {TopicPartition("orders", n): (1, 2, 3) for n in range(7)} | {TopicPartition("one", 0): (1,)}
    proposed = plans.propose(current, [4, 5, 6, 7], {}, Random(1))
    assert proposed.keys() == current.keys()
    assert all(len(proposed[tp]) == len(set(proposed[tp])) == len(current[tp]) for tp in current)
    assert {broker for replicas in proposed.values() for broker in replicas} == {4, 5, 6, 7}


def test_a_proposal_keeps_racks_apart_unless_reported_not_to() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b"}
    with Lab(brokers=racks, seed=1) as lab:
        lab.create_topic("orders", partitions=8, replication_factor=2)
        lab.settle()
        spread = lab.generate_reassignment(["orders"], [1, 2, 3, 4])
        assert all({racks[b] for b in replicas} == {"a", "b"} for replicas in spread.values())
        mixed = lab.generate_reassignment(["orders"], [1, 2, 3, 4], rack_aware=False)
        assert any(len({racks[b] for b in replicas}) == 1 for replicas in mixed.values())


def test_what_cannot_be_proposed() -> None:
    with Lab(brokers={1: "a", 2: None}, seed=1) as lab:
        lab.create_topic("orders", assignment={0: [1, 2]})
        lab.settle()
        with pytest.raises(BadInput, match=r"Broker list contains duplicate entries: 2$"):
            lab.generate_reassignment(["orders"], [2, 2])
        with pytest.raises(
            BadInput, match=r"Not all brokers have rack information. Add --disable-rack-aware in command"
        ):
            lab.generate_reassignment(["orders"], [1, 2])
        with pytest.raises(ApiException, match="larger than available brokers: 1") as refusal:
            lab.generate_reassignment(["orders"], [2, 9])  # 9 is not registered: passed over, as in Kafka
        assert refusal.value.code == "INVALID_REPLICATION_FACTOR"


# Throttles


def test_throttled_replicas_are_those_that_send_and_those_that_come() -> None:
    """Kafka's own example: leaders' lists have all replicas before the move of partitions that gain one."""
    existing = {TopicPartition("t", 0): (100, 101), TopicPartition("t", 1): (100, 101), TopicPartition("u", 0): (1,)}
    proposed = {TopicPartition("t", 0): (101, 102), TopicPartition("t", 1): (101, 100)}
    assert plans.throttled("t", existing, proposed) == ("0:100,0:101", "0:102")
    assert plans.throttled("u", existing, proposed) == ("", "")


@every
def test_a_throttle_stands_in_the_configurations_until_verify_removes_it(generation: Generation) -> None:
    with opened(generation) as lab:
        reported = lab.execute_reassignment({ORDERS: [3, 4]}, throttle=1000)
        named = "The throttle limit" if generation.name == "0.10" else "The inter-broker throttle limit"
        assert f"{named} was set to 1000 B/s" in reported.splitlines()
        rates = dict.fromkeys(("leader.replication.throttled.rate", "follower.replication.throttled.rate"), "1000")
        assert all(config(lab, "brokers", str(broker)) == rates for broker in (1, 2, 3, 4))
        assert config(lab, "topics", "orders") == {
            "leader.replication.throttled.replicas": "0:1,0:2",
            "follower.replication.throttled.replicas": "0:3,0:4",
        }
        assert "Throttle" not in lab.verify_reassignment({ORDERS: [3, 4]})  # not yet
        lab.settle()
        assert lab.verify_reassignment({ORDERS: [3, 4]}).endswith("Throttle was removed.")
        assert not any(config(lab, "brokers", str(broker)) for broker in (1, 2, 3, 4))
        assert config(lab, "topics", "orders") == {}
        assert "Throttle" not in lab.verify_reassignment({ORDERS: [3, 4]})  # nothing to remove any more


def test_every_change_of_a_configuration_is_announced() -> None:
    with opened(NEW) as lab:
        lab.execute_reassignment({ORDERS: [1, 4]}, throttle=5)
        changes = [
            json.loads(data)["entity_path"]
            for path, (data, *_) in lab.znodes().items()
            if path.startswith("/config/changes/")
        ]
        assert changes == ["topics/orders", "brokers/1", "brokers/2", "brokers/3", "brokers/4"]


# Execute and verify


@every
def test_the_tool_says_what_kafkas_says(generation: Generation) -> None:
    with opened(generation) as lab:
        log_dirs = ',"log_dirs":["any","any"]' if generation.name != "0.10" else ""
        current = ",".join(
            f'{{"topic":"orders","partition":{n},"replicas":[{r}]{log_dirs}}}' for n, r in ((0, "1,2"), (1, "2,3"))
        )
        assert lab.execute_reassignment({ORDERS: [3, 4]}).splitlines() == [
            "Current partition replica assignment",
            "",
            f'{{"version":1,"partitions":[{current}]}}',
            "",
            "Save this to use as the --reassignment-json-file option during rollback",
            "Successfully started reassignment of partitions.",
        ]
        name = "[orders,0]" if generation.name == "0.10" else "orders-0"
        assert lab.verify_reassignment({ORDERS: [3, 4]}).splitlines() == [
            "Status of partition reassignment: ",
            f"Reassignment of partition {name} is still in progress",
        ]
        lab.settle()
        assert lab.verify_reassignment({ORDERS: [3, 4]}).splitlines()[1:] == [
            f"Reassignment of partition {name} completed successfully"
        ]
        failed = lab.verify_reassignment({ORDERS: [1, 2]}).splitlines()[1:]
        complaint = (
            "ERROR: Assigned replicas (3,4) don't match the list of replicas for reassignment (1,2) for partition "
        )
        assert failed == [complaint + name] * (generation.name != "2.4") + [f"Reassignment of partition {name} failed"]


@every
def test_while_one_is_running_only_its_throttle_can_be_changed(generation: Generation) -> None:
    with opened(generation) as lab:
        lab.execute_reassignment({ORDERS: [3, 4]}, throttle=1000)
        request = lab.znodes()["/admin/reassign_partitions"][0]
        reported = lab.execute_reassignment({ORDERS: [1, 3]}, throttle=2000).splitlines()
        assert reported[0] == "There is an existing assignment running."
        assert lab.znodes()["/admin/reassign_partitions"][0] == request
        assert config(lab, "brokers", "1")["leader.replication.throttled.rate"] == "2000"
        assert reported[1:] == ["The throttle limit was set to 2000 B/s"] * (generation.name == "0.10")
        with pytest.raises(BadInput, match="There is an existing assignment running"):
            lab.reassign({ORDERS: [1, 3]}, through="zookeeper")


@every
def test_partitions_and_brokers_must_exist(generation: Generation) -> None:
    with opened(generation) as lab:
        listed = "List([orders,9])" if generation.name == "0.10" else "ListBuffer(orders-9)"
        with pytest.raises(BadInput) as refusal:
            lab.execute_reassignment({("orders", 9): [1]})
        assert str(refusal.value) == f"The proposed assignment contains non-existent partitions: {listed}"
        lab.kill(4)
        lab.settle()
        if generation.name == "0.10":  # does not look whether the brokers are there
            assert "Successfully started" in lab.execute_reassignment({ORDERS: [3, 4]})
            return
        with pytest.raises(BadInput, match=r"contains non-existent brokerIDs: 4,9$"):
            lab.execute_reassignment({ORDERS: [4, 9]})


# 2.4: list and cancel


@pytest.mark.parametrize("generation", GENERATIONS[:2], ids=str)
def test_before_2_4_nothing_can_be_listed_or_cancelled(prose: Prose, generation: Generation) -> None:
    with opened(generation) as lab:
        with prose.refused(BadInput):
            lab.list_reassignments()
        with prose.refused(BadInput):
            lab.cancel_reassignment([ORDERS])
        with prose.refused(BadInput):
            lab.reassign({ORDERS: [3, 4]}, through="controller")


def test_what_is_moving_is_listed_and_brought_back() -> None:
    with opened(Generation("2.4")) as lab:
        assert lab.list_reassignments() == "No partition reassignments found."
        lab.reassign({ORDERS: [3, 4]})
        assert lab.list_reassignments().splitlines() == [
            "Current partition reassignments:",
            "orders-0: replicas: 3,4,1,2. adding: 3,4. removing: 1,2.",
        ]
        (moving,) = lab.reassignments()
        assert moving == ("orders", 0, (3, 4, 1, 2), (3, 4), (3, 4))
        assert lab.cancel_reassignment() is None
        lab.settle()
        assert lab.reassignments() == []
        assert lab.partition("orders", 0).replicas == (1, 2)
        with pytest.raises(ApiException, match="No partition reassignment is in progress") as refusal:
            lab.cancel_reassignment()
        assert refusal.value.code == "NO_REASSIGNMENT_IN_PROGRESS"


# The command line, on a real ZooKeeper


@pytest.fixture(scope="module")
def cluster() -> object:
    """A lab of 2.4 on a real ZooKeeper."""
    with Lab(brokers=3, generation="2.4", seed=1, zookeeper="embedded") as lab:
        lab.create_topic("orders", assignment={0: [1, 2], 1: [2, 3]})
        lab.settle()
        yield lab


def test_the_command_moves_partitions_of_any_cluster(
    cluster: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Propose, start, verify until it is done; the lab's cluster knows nothing of the command."""
    where = ["--zookeeper", str(cluster.zookeeper_address)]
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text('{"version":1,"topics":[{"topic":"orders"}]}')
    asked = ["--topics-to-move-json-file", str(topics), "--broker-list", "1,3"]
    assert status(["reassign", "generate", *where, "--generation", "2.4", *asked]) == 0
    proposal = capsys.readouterr().out.splitlines()[-1]
    plan.write_text(proposal)
    file = ["--reassignment-json-file", str(plan)]
    assert status(["reassign", "execute", *where, "--generation", "2.4", *file, "--throttle", "10000"]) == 0
    assert "Successfully started reassignment of partitions." in capsys.readouterr().out
    cluster.settle()
    assert status(["reassign", "verify", *where, "--generation", "2.4", *file]) == 0
    assert capsys.readouterr().out.endswith("completed successfully\nThrottle was removed.\n")
    requested = {e["partition"]: tuple(e["replicas"]) for e in json.loads(proposal)["partitions"]}
    assert {p.partition: p.replicas for p in cluster.partitions()} == requested
    assert status(["reassign", "list", *where]) == 0
    assert capsys.readouterr().out == "No partition reassignments found.\n"
    plan.write_text('{"partitions":[{"topic":"orders","partition":0,"replicas":[2]}]}')
    assert status(["reassign", "verify", *where, "--generation", "2.4", *file]) == 1
    assert status(["reassign", "cancel", *where, *file]) == 1
    assert "None of the specified partition reassignments are active." in capsys.readouterr().out


def test_the_command_cannot_ask_brokers_for_log_directories(
    cluster: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It speaks with ZooKeeper only, and so refuses the plan as Kafka's tool does without --bootstrap-server."""
    plan = tmp_path / "plan.json"
    plan.write_text('{"partitions":[{"topic":"orders","partition":1,"replicas":[2,3],"log_dirs":["/d1","any"]}]}')
    where = ["--zookeeper", str(cluster.zookeeper_address), "--reassignment-json-file", str(plan)]
    for action in ("execute", "verify"):
        assert status(["reassign", action, *where, "--generation", "2.4"]) == 2
        reported = capsys.readouterr().err
        assert "bootstrap-server needs to be provided in order to reassign replica to the specified log dir" in reported
        assert 'write "any" for every' in reported
    assert "/admin/reassign_partitions" not in cluster.znodes()
    throttle = ["--replica-alter-log-dirs-throttle", "5"]
    assert status(["reassign", "execute", *where, "--generation", "0.10", *throttle]) == 2
    assert "cannot move copies between log directories" in capsys.readouterr().err


def test_a_wrong_call_names_what_is_wrong(cluster: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text("{")
    where, file = ["--zookeeper", str(cluster.zookeeper_address)], ["--reassignment-json-file", str(plan)]
    assert status(["reassign", "execute", *where, *file]) == 2
    assert capsys.readouterr().err == "kafka-ctl: The input string is not a valid JSON\n"
    nowhere = ["--zookeeper", f"{cluster.zookeeper_address}/nowhere"]
    assert status(["reassign", "list", *nowhere]) == 1
    assert "no Kafka cluster at ZooKeeper" in capsys.readouterr().err
    assert not any(path.startswith("/nowhere") for path in cluster.znodes())
    assert status(["reassign", "execute", *where, "--reassignment-json-file", str(tmp_path / "no")]) == 2
