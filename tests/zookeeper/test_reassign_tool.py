"""Kafka's tool for moving partitions: its files, its words in each generation, throttles, and what it refuses."""

import json
from pathlib import Path
from random import Random

import pytest
from labs import lab_of, until_quiet
from prose import Prose
from tables import tabled, text

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


def opened(generation: Generation) -> Lab:
    """Brokers and a topic of two partitions, whose first one the plans move."""
    return lab_of("orders", {0: [1, 2], 1: [2, 3]}, brokers=4, generation=generation, seed=3)


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


@tabled
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
        until_quiet(lab.create_topic, "orders", partitions=8, replication_factor=2)
        spread = lab.generate_reassignment(["orders"], [1, 2, 3, 4])
        assert all({racks[b] for b in replicas} == {"a", "b"} for replicas in spread.values())
        mixed = lab.generate_reassignment(["orders"], [1, 2, 3, 4], rack_aware=False)
        assert any(len({racks[b] for b in replicas}) == 1 for replicas in mixed.values())


def test_what_cannot_be_proposed() -> None:
    with lab_of("orders", {0: [1, 2]}, brokers={1: "a", 2: None}, seed=1) as lab:
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


@every
def test_minus_one_is_no_throttle_and_leaves_the_one_that_is_set(generation: Generation) -> None:
    """As Kafka's tool, whose default it is: nothing is said or written of a throttle."""
    with opened(generation) as lab, opened(generation) as other:
        between_dirs = {} if generation.name == "0.10" else {"replica_alter_log_dirs_throttle": -1}
        started = lab.execute_reassignment({ORDERS: [3, 4]}, throttle=-1, **between_dirs)
        assert started == other.execute_reassignment({ORDERS: [3, 4]})
        assert lab.znodes() == other.znodes()
        lab.settle()
        lab.execute_reassignment({ORDERS: [1, 2]}, throttle=1000)
        again = lab.execute_reassignment({ORDERS: [1, 2]}, throttle=-1)
        assert again == "There is an existing assignment running."
        assert config(lab, "brokers", "1")["leader.replication.throttled.rate"] == "1000"


def test_below_minus_one_is_no_throttle(prose: Prose) -> None:
    with opened(NEW) as lab, prose.refused(BadInput):
        lab.execute_reassignment({ORDERS: [1, 2]}, throttle=-2)


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
        until_quiet(lab.kill, 4)
        if generation.name == "0.10":  # does not look whether the brokers are there
            assert "Successfully started" in lab.execute_reassignment({ORDERS: [3, 4]})
            return
        with pytest.raises(BadInput, match=r"contains non-existent brokerIDs: 4,9$"):
            lab.execute_reassignment({ORDERS: [4, 9]})


# 2.4: list and cancel


@pytest.mark.parametrize("generation", GENERATIONS[:2], ids=str)
def test_before_2_4_nothing_can_be_listed_or_cancelled(prose: Prose, generation: Generation) -> None:
    with opened(generation) as lab:
        prose.refuses(BadInput, lab.list_reassignments)
        prose.refuses(BadInput, lab.cancel_reassignment, [ORDERS])
        prose.refuses(BadInput, lab.reassign, {ORDERS: [3, 4]}, through="controller")


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
    with lab_of("orders", {0: [1, 2], 1: [2, 3]}, brokers=3, generation="2.4", seed=1, zookeeper="embedded") as lab:
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


def test_kafkas_flags_do_the_same(cluster: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Propose, start, verify, as an administrator writes it for kafka-reassign-partitions.sh."""
    where = ["reassign", "--zookeeper", str(cluster.zookeeper_address), "--generation", "2.4"]
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text('{"version":1,"topics":[{"topic":"orders"}]}')
    proposing = [
        "--generate",
        "--topics-to-move-json-file",
        str(topics),
        "--broker-list",
        "1,2",
        "--disable-rack-aware",
    ]
    assert status([*where, *proposing]) == 0
    plan.write_text(capsys.readouterr().out.splitlines()[-1])
    file = ["--reassignment-json-file", str(plan)]
    none = ["--throttle", "-1", "--replica-alter-log-dirs-throttle=-1"]
    assert status([*where, "--execute", *file, "--timeout", "5000", *none]) == 0
    printed = capsys.readouterr().out
    assert "Successfully started" in printed and "throttle" not in printed
    cluster.settle()
    assert status([*where, "--verify", *file]) == 0
    assert {broker for p in cluster.partitions() for broker in p.replicas} == {1, 2}


FLAGS = text("reassign_tool_flags.txt")


@pytest.mark.parametrize("row", [line.strip() for line in FLAGS.strip().splitlines()])
def test_each_release_refuses_what_its_tool_refuses(
    prose: Prose, tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str
) -> None:
    """In Kafka's words, or with the release that an option came with; nothing is connected to."""
    (tmp_path / "F").write_text("{}")
    name, _, flags = row.partition("|")
    given = [str(tmp_path / "F") if word == "F" else word for word in flags.split()]
    assert status(["reassign", "--generation", name.strip(), *given]) == 2
    prose(capsys.readouterr().err.strip())


def test_a_number_is_a_long_and_a_flag_stands_behind_its_subcommand(
    prose: Prose, capsys: pytest.CaptureFixture[str]
) -> None:
    for given in (["--throttle", str(2**63)], ["--throttle", "x"], ["--zookeeper", "z", "verify"]):
        assert status(["reassign", *given]) == 2
        prose(capsys.readouterr().err.splitlines()[-1])


# Over the network


@pytest.fixture(scope="module", params=["2.0", "2.4"])
def wired(request: pytest.FixtureRequest) -> object:
    """A lab on a real ZooKeeper whose brokers listen."""
    options = {"zookeeper": "embedded", "wire": True, "seed": 1}
    with lab_of("orders", {0: [1, 2], 1: [2, 3]}, brokers=3, generation=request.param, **options) as lab:
        yield lab


def test_the_command_moves_copies_between_log_directories(
    wired: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By AlterReplicaLogDirs and DescribeLogDirs; without --bootstrap-server the plan is refused in Kafka's words."""
    generation, plan = wired.generation.name, tmp_path / "plan.json"
    plan.write_text('{"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["/d1","any"]}]}')
    where = ["reassign", "--zookeeper", str(wired.zookeeper_address), "--generation", generation]
    file = ["--reassignment-json-file", str(plan)]
    for action in ("--execute", "--verify"):
        assert status([*where, action, *file]) == 2
        assert capsys.readouterr().err == (
            "kafka-ctl: bootstrap-server needs to be provided in order to reassign replica to the specified log "
            "directory\n"
        )
    assert "/admin/reassign_partitions" not in wired.znodes()
    config = tmp_path / "admin.properties"
    config.write_text("# an administrator\nclient.id = me\nsecurity.protocol=PLAINTEXT\n")
    brokers = ["--bootstrap-server", f"127.0.0.1:1,{wired.bootstrap_servers}"]  # the first one does not answer
    brokers += ["--command-config", str(config)] if generation == "2.4" else []
    throttled = ["--replica-alter-log-dirs-throttle", "5000", "--timeout", "8000"]
    assert status([*where, *brokers, "--execute", *file, *throttled]) == 0
    assert "The replica-alter-dir throttle limit was set to 5000 B/s" in capsys.readouterr().out
    wired.settle()
    places = {(at.topic, at.partition, at.broker): at.path for at in wired.log_dirs()}
    assert places["orders", 0, 1] == "/d1"
    assert status([*where, *brokers, "--verify", *file]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Reassignment of partition orders-0 completed successfully",
        "Reassignment of replica orders-0-1 completed successfully",
        "Throttle was removed.",
    ]
    plan.write_text('{"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["/nowhere","any"]}]}')
    assert status([*where, *brokers, "--execute", *file]) == 2
    assert "Failed to alter dir for orders-0-1 to /nowhere: LOG_DIR_NOT_FOUND" in capsys.readouterr().err
    config.write_text("security.protocol=SSL\n")
    if generation == "2.4":
        assert status([*where, *brokers, "--verify", *file]) == 2
        assert "security.protocol cannot be 'SSL'" in capsys.readouterr().err


def test_a_move_between_log_directories_is_described_on_the_wire(wired: Lab) -> None:
    """Each directory, its copies with bytes and lag, and all of them where null is asked for."""
    from kafka_ctl.wire.client import ask

    server = wired.bootstrap_servers.split(",")[1]
    (before,) = [at.path for at in wired.log_dirs() if (at.topic, at.partition, at.broker) == ("orders", 1, 2)]
    wired.produce("orders", 1, records=3, size=100)
    for version in (0, 1):
        described = ask(server, "DescribeLogDirs", version, {"topics": [{"topic": "orders", "partitions": [1, 7]}]})
        assert {each["log_dir"]: each["error_code"] for each in described["results"]} == {"/d0": 0, "/d1": 0}
        ((topic,),) = [each["topics"] for each in described["results"] if each["topics"]]
        held = {"partition_index": 1, "partition_size": 300, "offset_lag": 0, "is_future_key": False}
        assert topic == {"name": "orders", "partitions": [held]}
    everything = ask(server, "DescribeLogDirs", 1, {"topics": None})
    assert sum(len(topic["partitions"]) for each in everything["results"] for topic in each["topics"]) == 2
    answered = ask(server, "AlterReplicaLogDirs", 1, {"dirs": [
        {"path": before, "topics": [{"name": "orders", "partitions": [1]}, {"name": "nothing", "partitions": [0]}]},
    ]})  # fmt: skip
    codes = {topic["topic_name"]: topic["partitions"][0]["error_code"] for topic in answered["results"]}
    assert codes == {"orders": 0, "nothing": 9 if wired.generation.name == "2.0" else 3}


def test_the_controller_is_asked_to_cancel(wired: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clusters of 2.4: with --bootstrap-server through the API (KIP-455)."""
    if wired.generation.name != "2.4":
        pytest.skip("the API came with 2.4")
    adding, partition = 1, 1
    before, after = wired.partition("orders", partition).replicas, (adding,)
    where = ["--zookeeper", str(wired.zookeeper_address), "--bootstrap-server", wired.bootstrap_servers]
    plan = tmp_path / "plan.json"
    plan.write_text(f'{{"partitions":[{{"topic":"orders","partition":{partition},"replicas":{list(after)}}}]}}')
    file = ["--reassignment-json-file", str(plan)]
    assert status(["reassign", "cancel", *where, *file]) == 1
    assert "None of the specified partition reassignments are active." in capsys.readouterr().out
    wired.produce("orders", partition, records=5, size=10**6)
    wired.alter_config("topics", "orders", {"follower.replication.throttled.replicas": "*"})
    wired.alter_config("brokers", adding, {"follower.replication.throttled.rate": 1})  # a record every 11 seconds
    wired.settle()
    wired.reassign({("orders", partition): after})
    assert status(["reassign", "list", *where]) == 0
    assert f"orders-{partition}: replicas: " in (printed := capsys.readouterr().out)
    assert f"adding: {adding}." in printed
    assert status(["reassign", "cancel", *where, *file]) == 0
    assert f"Successfully cancelled partition reassignment for: orders-{partition}" in capsys.readouterr().out
    assert wired.reassignments() == []
    assert wired.partition("orders", partition).replicas == before
    assert not config(wired, "brokers", str(adding)) and not config(wired, "topics", "orders")  # throttles are removed
    wired.settle()


def test_a_dead_address_is_advised_by_the_command(
    prose: Prose, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reassignment is for a cluster that exists: no server is offered for it, as one is for a lab."""
    monkeypatch.setattr("kafka_ctl.zookeeper.real.store.CONNECT_SECONDS", 0.2)
    for words in (["reassign", "list"], ["demo"]):
        assert status([*words, "--zookeeper", "127.0.0.1:1"]) == 1
        prose(capsys.readouterr().err)


def test_a_wrong_call_names_what_is_wrong(cluster: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}')
    where, file = ["--zookeeper", str(cluster.zookeeper_address)], ["--reassignment-json-file", str(plan)]
    throttle = ["--replica-alter-log-dirs-throttle", "5"]
    assert status(["reassign", "execute", *where, *file, "--generation", "0.10", *throttle]) == 2
    assert "cannot move copies between log directories" in capsys.readouterr().err
    plan.write_text("{")
    assert status(["reassign", "execute", *where, *file]) == 2
    assert capsys.readouterr().err == f"kafka-ctl: {plan}: The input string is not a valid JSON\n"
    nowhere = ["--zookeeper", f"{cluster.zookeeper_address}/nowhere"]
    assert status(["reassign", "list", *nowhere]) == 1
    assert "no Kafka cluster at ZooKeeper" in capsys.readouterr().err
    assert not any(path.startswith("/nowhere") for path in cluster.znodes())
    assert status(["reassign", "execute", *where, "--reassignment-json-file", str(tmp_path / "no")]) == 2
