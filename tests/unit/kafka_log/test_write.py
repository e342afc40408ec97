"""The trace as Kafka's own log lines: the words are Kafka's, and our reader of real logs understands them all."""

import ast
import re
from collections.abc import Iterator

import pytest
from labs import lab_of, play, until_quiet
from machines import bench
from prose import Prose, refuses

from kafka_ctl import Lab
from kafka_ctl.cluster import Replica
from kafka_ctl.errors import UnknownName
from kafka_ctl.kafka_log.read import LogLine, parse_line
from kafka_ctl.kafka_log.records import reading
from kafka_ctl.kafka_log.templates import GENERATIONS, templates_of
from kafka_ctl.kafka_log.write import NAMES, kafka_log
from kafka_ctl.paths import ROOT
from kafka_ctl.replica import NEW as NEW_REPLICA
from kafka_ctl.trace import SET, Record, Trace

WRITER = ("write.py", "broker_lines.py", "controller_lines.py", "listener_lines.py")
"""What decides which line is due."""


@pytest.fixture(scope="module")
def trace() -> Iterator[Trace]:
    """A run with creation, failures, controlled shutdown, deletion, reassignment and a refusal."""
    with lab_of("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, brokers=3, seed=7) as lab:
        until_quiet(lab.kill, 2)
        until_quiet(lab.create_topic, "dead", assignment={0: [2]})
        play(lab, "shutdown 3; settle; start 2; start 3; settle")
        until_quiet(lab.reassign, {("dead", 0): [3, 1]})
        until_quiet(lab.delete_topic, "orders")
        yield lab.trace


def lines(trace: Trace, name: str = "state-change", containing: str = "") -> list[str]:
    """The lines of a log without their times."""
    return [re.sub(r"^\[.{23}\] ", "", line) for line in trace.kafka_log(name).splitlines() if containing in line]


# The words


def test_a_partition_comes_to_life_in_kafkas_words(trace: Trace) -> None:
    """As in a real state-change.log, from the first move to the answer of the first broker."""
    reported = [line for line in lines(trace, containing="orders-0") if "[Broker id=2]" not in line]
    assert reported[:8] == [
        "TRACE [Controller id=2 epoch=1] Changed partition orders-0 state from NonExistentPartition to NewPartition "
        "with "
        "assigned replicas 1,2,3 (state.change.logger)",
        *[
            f"TRACE [Controller id=2 epoch=1] Changed state of replica {broker} for partition orders-0 from "
            "NonExistentReplica to NewReplica (state.change.logger)"
            for broker in (2, 1, 3)  # the order in which Scala walks through groups
        ],
        "TRACE [Controller id=2 epoch=1] Changed partition orders-0 from NewPartition to OnlinePartition with state "
        "LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1, 2, 3), zkVersion=0) (state.change.logger)",
        "TRACE [Controller id=2 epoch=1] Sending become-leader LeaderAndIsr request PartitionState(controllerEpoch=1, "
        "leader=1, leaderEpoch=0, isr=1,2,3, zkVersion=0, replicas=1,2,3, isNew=true) to broker 1 for partition "
        "orders-0 (state.change.logger)",
        *[
            "TRACE [Controller id=2 epoch=1] Sending become-follower LeaderAndIsr request PartitionState("
            "controllerEpoch=1, leader=1, leaderEpoch=0, isr=1,2,3, zkVersion=0, replicas=1,2,3, isNew=true) to broker "
            f"{broker} for partition orders-0 (state.change.logger)"
            for broker in (2, 3)
        ],
    ]
    assert reported[8] == (
        "TRACE [Controller id=2 epoch=1] Sending UpdateMetadata request PartitionState(controllerEpoch=1, leader=1, "
        "leaderEpoch=0, isr=[1, 2, 3], zkVersion=0, replicas=[1, 2, 3], offlineReplicas=[]) to brokers Set(1, 2, 3) "
        "for partition orders-0 (state.change.logger)"
    )


def test_a_follower_tells_every_step(trace: Trace) -> None:
    request = "from controller 2 epoch 1"
    reported = [line.removesuffix(" (state.change.logger)") for line in lines(trace, containing="[Broker id=3]")]
    assert [line for line in reported if "orders-0" in line][:7] == [
        "TRACE [Broker id=3] Received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=1, leaderEpoch=0, "
        f"isr=1,2,3, zkVersion=0, replicas=1,2,3, isNew=true) correlation id 1 {request} for partition orders-0",
        f"TRACE [Broker id=3] Handling LeaderAndIsr request correlationId 1 {request} starting the become-follower "
        "transition for partition orders-0 with leader 1",
        f"TRACE [Broker id=3] Stopped fetchers as part of become-follower request {request} with correlation id 1 for "
        "partition orders-0 with leader 1",
        "TRACE [Broker id=3] Truncated logs and checkpointed recovery boundaries for partition orders-0 as part of "
        f"become-follower request with correlation id 1 {request} with leader 1",
        f"TRACE [Broker id=3] Started fetcher to new leader as part of become-follower request {request} with "
        "correlation id 1 for partition orders-0 with leader 1",
        f"TRACE [Broker id=3] Completed LeaderAndIsr request correlationId 1 {request} for the become-follower "
        "transition for partition orders-0 with leader 1",
        "TRACE [Broker id=3] Cached leader info PartitionState(controllerEpoch=1, leader=1, leaderEpoch=0, "
        "isr=[1, 2, 3], zkVersion=0, replicas=[1, 2, 3], offlineReplicas=[]) for partition orders-0 in response to "
        "UpdateMetadata "
        "request sent by controller 2 epoch 1 with correlation id 2",
    ]


def test_what_nobody_can_lead_is_an_error_with_its_exception(trace: Trace) -> None:
    reported = trace.kafka_log().splitlines()
    place = next(i for i, line in enumerate(reported) if "failed to change state" in line)
    assert reported[place].endswith(
        "ERROR [Controller id=1 epoch=2] Controller 1 epoch 2 failed to change state for partition dead-0 from "
        "NewPartition to OnlinePartition (state.change.logger)"
    )
    assert reported[place + 1].startswith(
        "kafka.common.StateChangeFailedException: Controller 1 epoch 2 encountered error"
    )


def test_0_10_has_another_exception_for_that() -> None:
    with Lab(brokers=3, generation="0.10", seed=3, config={"unclean.leader.election.enable": False}) as lab:
        until_quiet(
            lab.create_topic, "orders", assignment={0: [lost := next(b for b in lab.brokers if b != lab.controller.id)]}
        )
        until_quiet(lab.kill, lost)
        logged = lab.trace.kafka_log("state-change").splitlines()
    place = next(n for n, line in enumerate(logged) if line.endswith("to OnlinePartition failed (state.change.logger)"))
    assert logged[place + 1].startswith(
        "kafka.common.NoReplicaOnlineException: No broker in ISR for partition [orders,0] is alive. Live brokers are: ["
    )


@pytest.mark.parametrize(("generation", "named"), [("0.10", "New"), ("2.0", "Offline"), ("2.4", "Offline")])
def test_the_state_that_a_new_replica_of_a_leader_is_refused(generation: str, named: str) -> None:
    """Kafka 2.0.1, 2.4.1: controller/ReplicaStateMachine.scala, NewReplica: logFailedStateChange(OfflineReplica)."""
    with bench(generation) as stage:
        replica = Replica("orders", 0, 1)
        del stage.controller.context.replicas[replica]
        stage.replicas([replica], NEW_REPLICA)
        assert f"from NonExistentReplica to {named}Replica failed" in stage.lab.trace.kafka_log("state-change")


def test_brokers_refuse_in_kafkas_words(trace: Trace) -> None:
    """A new controller repeats what brokers know; leader epochs tell them."""
    assert lines(trace, containing="not higher")[0] == (
        "WARN [Broker id=1] Ignoring LeaderAndIsr request from controller 1 with correlation id 1 epoch 2 for "
        "partition "
        "orders-0 since its associated leader epoch 0 is not higher than the current leader epoch 0 "
        "(state.change.logger)"
    )


def test_answers_carry_error_codes(trace: Trace) -> None:
    answers = lines(trace, containing="LEADER_AND_ISR with correlation id 1 sent to broker 127.0.0.1:9093")
    assert answers == [
        "TRACE [Controller id=1 epoch=2] Received response {error_code=0,partitions=[{topic=orders,partition=0,"
        "error_code=11},{topic=orders,partition=1,error_code=11}]} for request LEADER_AND_ISR with correlation id 1 "
        "sent to broker 127.0.0.1:9093 (id: 1 rack: null) (state.change.logger)"
    ]
    assert any("error_code=0}]} for request STOP_REPLICA" in line for line in lines(trace))


def test_a_request_with_another_broker_epoch_is_answered_without_a_word() -> None:
    """Kafka 2.4.1: server/KafkaApis.scala, isBrokerEpochStale, logs elsewhere, before any line about the request."""
    with lab_of("orders", {0: [2, 3]}, brokers=3, generation="2.4", seed=0) as lab:
        received = lines(lab.trace, containing="[Broker id=2] Received LeaderAndIsr")
        play(lab, "delay zookeeper 2 2; expire_session 2; run_for 5; settle")
        assert lines(lab.trace, containing="[Broker id=2] Received LeaderAndIsr") == received
        assert "topic_name=orders,partition_index=0,error_code=-1" in lab.trace.kafka_log()


@pytest.mark.parametrize("generation", ["0.10", "2.0"])
def test_a_request_that_is_not_answered_in_time_is_printed(generation: str) -> None:
    """Its connection is given up after 30 s; one that nobody takes is another line.

    Kafka 2.0.1: controller/ControllerChannelManager.scala, RequestSendThread.doWork, brokerReady
    """
    with Lab(brokers=3, generation=generation, config={"zookeeper.session.timeout.ms": 100_000}) as lab:
        first, second = (id for id in lab.brokers if id != lab.controller.id)
        lab.pause(first, 40)
        lab.kill(second)
        lab.create_topic("orders", assignment={0: [first], 1: [second]})
        lab.run_for(50)
        log, who = lab.trace.kafka_log("controller"), lab.controller.id
        node, dead = (f"127.0.0.1:{9092 + id} (id: {id} rack: null)" for id in (first, second))
        state = f"PartitionState(controllerEpoch=1, leader={first}, leaderEpoch=0, isr="
        sent = f"(type=LeaderAndIsRequest, controllerId={who}, controllerEpoch=1, partitionStates={{orders-0={state}"
        assert f"Controller {who} epoch 1 fails to send request {sent}" in log
        assert f", liveLeaders=({node})) to broker {node}. Reconnecting to broker. (kafka" in log
        lost = f"java.io.IOException: Connection to {first} was disconnected before the response was read"
        assert log.count("Reconnecting") == log.count(lost) == 1
        assert f"Controller {who}'s connection to broker {dead} was unsuccessful" in log


def test_the_controllers_own_log(trace: Trace) -> None:
    """Each component with its prefix and its logger."""
    reported = lines(trace, "controller")
    for line in (
        "INFO [Controller id=2] 2 successfully elected as the controller (kafka.controller.KafkaController)",
        "INFO [Controller id=2] Newly added brokers: 3, deleted brokers: , all live brokers: 1,2,3 "
        "(kafka.controller.KafkaController)",
        "INFO [Controller id=2] New topics: [Set(orders)], deleted topics: [Set()], new partition replica assignment "
        "[Map(orders-0 -> Vector(1, 2, 3), orders-1 -> Vector(2, 3, 1))] (kafka.controller.KafkaController)",
        "INFO [ReplicaStateMachine controllerId=1] Initializing replica state (kafka.controller.ReplicaStateMachine)",
        "INFO [Controller id=1] Removed Vector(3) from list of shutting down brokers. "
        "(kafka.controller.KafkaController)",
        "INFO [RequestSendThread controllerId=1] Controller 1 connected to 127.0.0.1:9095 (id: 3 rack: null) for "
        "sending "
        "state change requests (kafka.controller.RequestSendThread)",
        "DEBUG The stop replica request (delete = false) sent to broker 3 is [Topic=orders,Partition=0,Replica=3] "
        "(kafka.controller.ControllerBrokerRequestBatch)",
        "WARN [Channel manager on controller 1]: Not sending request (type=StopReplicaRequest, controllerId=1, "
        "controllerEpoch=2, deletePartitions=false, partitions=orders-0) to broker 3, since it is offline. "
        "(kafka.controller.ControllerChannelManager)",
        "INFO [Topic Deletion Manager 1], Deletion of topic orders successfully completed "
        "(kafka.controller.TopicDeletionManager)",
        "INFO [Controller id=1] 2/2 replicas have caught up with the leader for partition dead-0 being reassigned. "
        "Resuming "
        "partition reassignment (kafka.controller.KafkaController)",
    ):
        assert line in reported


def test_times_begin_with_the_day_of_the_release(trace: Trace) -> None:
    assert re.match(r"\[2018-10-25 00:00:00,0\d\d\] ", trace.kafka_log("controller").splitlines()[0])


def test_other_generations_have_other_words(trace: Trace) -> None:
    old, new = trace.kafka_log("state-change", "0.10"), trace.kafka_log("state-change", "2.4")
    assert (
        "Controller 2 epoch 1 changed partition [orders,0] from NewPartition to OnlinePartition with leader 1 (" in old
    )
    assert "elected leader 3 for Offline partition [orders,1]" in old
    assert "LeaderAndIsrPartitionState(topicName='orders', partitionIndex=0, controllerEpoch=1, leader=1, " in new
    assert "matches the current leader epoch" in new
    assert "Broker 2 is ready to serve as the new controller with epoch 1" in trace.kafka_log("controller", "0.10")
    assert "being reassigned to catch up" not in trace.kafka_log("controller", "2.4")


# What can be asked


def test_one_brokers_file(trace: Trace) -> None:
    """A cluster's lines are those of its brokers, and each broker writes as broker and as controller."""
    whole = trace.kafka_log("state-change").splitlines()
    parts = [kafka_log(trace, "state-change", broker=broker).splitlines() for broker in (1, 2, 3)]
    assert sorted(whole) == sorted(line for part in parts for line in part)
    assert {line.split("] ", 1)[1].split(" ", 1)[1][:13] for line in parts[2] if line.startswith("[")} == {
        "[Broker id=3]"
    }


def test_unknown_names_list_the_known_ones(prose: Prose, trace: Trace) -> None:
    prose.refuses(UnknownName, trace.kafka_log, "server")
    refuses(UnknownName, r"unknown generation '0\.8'; known: 0\.10, 2\.0, 2\.4", trace.kafka_log, "controller", "0.8")


@pytest.mark.parametrize("path", ["/brokers/ids/7", "/brokers/ids/x"])
@pytest.mark.parametrize("data", ["<b>", "[]", '{"host": 7}'])
def test_what_somebody_wrote_by_hand_is_no_obstacle(path: str, data: str) -> None:
    """A broker's znode may hold anything."""
    with Lab(brokers=1, seed=7) as lab:
        lab.write_znode(path, data)
        assert kafka_log(lab.trace.records)


def test_a_slice_is_not_guessed_about(trace: Trace) -> None:
    """Lines about a request that the slice has cut off are left out; the others stay as they are.

    Only whom a broker obeyed before is forgotten: it follows a leader anew that it has followed all the time.
    """
    place = next(r.seq for r in trace if r.kind == "broker" and r.action == "become-leader")
    whole, rest = trace.kafka_log().splitlines(), trace[place:].kafka_log().splitlines()
    assert len(whole) / 2 < len(rest) < len(whole)
    assert {line.split("] ")[2].split(" ")[0] for line in set(rest) - set(whole)} <= {"Stopped", "Truncated", "Started"}
    assert Trace(records=[]).kafka_log() == ""


# Templates and what is said belong together


def logged() -> set[str]:
    """Every name a controller's `log` is called with, and in modules that pass names around, what looks like one.

    A name that a class keeps (`self.half_sent`) is what its subclasses assign to it.
    """
    names: set[str] = set()
    kept: set[str] = set()
    assigned: dict[str, set[str]] = {}
    for path in sorted((ROOT / "kafka_ctl" / "controller").glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in (n for n in ast.walk(tree) if isinstance(n, ast.Assign)):
            pairs = zip(ast.walk(node.targets[0]), ast.walk(node.value), strict=False)
            for target, value in pairs:
                if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                    assigned.setdefault(target.id, set()).add(value.value)
        for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)):
            if call.func.attr == "log":
                first = call.args[0]
                parts = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
                if all(isinstance(part, ast.Constant) for part in parts):
                    names |= {part.value for part in parts}
                elif isinstance(first, ast.Attribute):
                    kept.add(first.attr)
                else:
                    words = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant))
                    names |= {w for w in words if isinstance(w, str) and re.fullmatch(r"[a-z]+(_[a-z]+)+", w)}
    return names.union(*(assigned[name] for name in kept if name in assigned))


def written() -> set[str]:
    """Every other name the writer asks the book for."""
    texts = "".join((ROOT / "kafka_ctl" / "kafka_log" / name).read_text("utf-8") for name in WRITER)
    return set(re.findall(r'"([a-z]+(?:_[a-z]+)*)"', texts))


def test_what_controllers_say_has_words_in_some_generation() -> None:
    """But for what Kafka's client of ZooKeeper writes, into another file (server.log)."""
    known = {name for generation in GENERATIONS for name in templates_of(generation).templates}
    assert logged() - known == {"reassignment_ignored"}
    assert len(logged()) > 80


def test_no_template_is_for_nothing() -> None:
    for generation in GENERATIONS:
        names = templates_of(generation).templates.keys() - logged() - written()
        assert {n for n in names if not n.startswith("elected_")} == set(), generation


def test_what_controllers_say_is_documented() -> None:
    """A name in the code has its place in the legend."""
    legend = (ROOT / "docs" / "trace-format.md").read_text("utf-8")
    assert [name for name in sorted(logged()) if f"`{name}`" not in legend] == []


def test_templates_are_sound() -> None:
    """Components exist, levels are log4j's, braces close, shapes are known; each line has its record, or none."""
    for generation in GENERATIONS:
        for name, templates in templates_of(generation).templates.items():
            assert reading(name), name
            for template in templates:
                assert template.level in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR"), name
                assert template.component.file in NAMES, name
                assert template.text.pattern, name


# And back again


def parsed(text: str) -> list[LogLine]:
    """The lines as our reader of real logs understands them; the first line of an exception is no line."""
    understood = [(line, parse_line(line)) for line in text.splitlines()]
    strange = [line for line, known in understood if known is None and not re.match(r"[a-z]+(\.\w+)+\w*: ", line)]
    assert strange == []
    return [known for _, known in understood if known is not None]


def moved(records: list[LogLine] | list[Record], kind: str) -> list[tuple[object, ...]]:
    """The moves of one machine, in order."""
    made = [r for r in records if r.kind == kind and r.action != SET]
    return [(r.actor, r.topic, r.partition, r.broker, r.source, r.target, bool(r.error)) for r in made]


def test_every_line_is_understood(trace: Trace, generation: str) -> None:
    """What is written as a log and read as a log is the same story."""
    known = parsed(trace.kafka_log("state-change", generation))
    for kind in ("partition", "replica"):
        assert moved(known, kind) == moved(list(trace), kind)
    assert all(line.actor is not None for line in known)
    requests = [r for r in trace if r.kind == "request" and r.action == "LeaderAndIsr" and r.topic]
    sent = [line for line in known if line.kind == "request" and line.action == "LeaderAndIsr"]
    assert [(r.topic, r.partition, r.broker, r.leader, r.isr) for r in requests] == [
        (line.topic, line.partition, line.broker, line.leader, line.isr) for line in sent
    ]
    assert all(
        line.logger.startswith("kafka.controller.") for line in parsed(trace.kafka_log("controller", generation))
    )


@pytest.mark.parametrize("generation", ["2.0", "2.4"])
def test_a_broker_caches_what_its_own_request_names(generation: str) -> None:
    """2.4 sends two UpdateMetadata when a broker comes, to different receivers: who was in one of them only took the
    states of the other, or none, and lost the offline replicas."""
    with Lab(brokers=4, generation=generation, seed=1, config={"auto.leader.rebalance.enable": False}) as lab:
        until_quiet(lab.create_topic, "orders", assignment={0: [1, 2, 3], 1: [2, 3, 4], 2: [4, 3, 1]})
        until_quiet(lab.kill, 3)
        before = len(kafka_log(lab.trace, "state-change", generation).splitlines())
        for act in (lab.kill, lab.start):
            act(4)
            lab.settle()
        until_quiet(lab.create_topic, "more", assignment={0: [1, 3], 1: [2, 4]})
        lines = kafka_log(lab.trace, "state-change", generation).splitlines()[before:]
    found = re.compile(r"Cached leader info .* replicas=\[(.*?)\], offlineReplicas=\[(.*?)\]\)")
    cached = [match.groups() for line in lines if (match := found.search(line))]
    assert len(cached) > 20
    assert {"3" in replicas.split(", ") for replicas, _ in cached} == {True, False}
    assert [(r, o) for r, o in cached if ("3" in r.split(", ")) != ("3" in o.split(", "))] == []


def test_a_broker_that_does_not_know_its_id_yet_writes_nothing(generation: str) -> None:
    with lab_of("orders", {0: [1001, 1]}, brokers=[None, 1], generation=generation, seed=1) as lab:
        assert "broker-new" in {r.actor for r in lab.trace}
        for name in NAMES:
            apart = [kafka_log(lab.trace, name, generation, broker) for broker in (1, 1001)]
            assert all(apart)
            assert sorted(lab.trace.kafka_log(name).splitlines()) == sorted("".join(apart).splitlines())


@pytest.mark.parametrize(
    ("source", "error", "printed"),
    [
        ("NewPartition", "NodeExists", "NodeExistsException: KeeperErrorCode = NodeExists"),
        ("OfflinePartition", "NoNode", "NoNodeException: KeeperErrorCode = NoNode for PATH"),
        ("OfflinePartition", "SessionExpired", "SessionExpiredException: KeeperErrorCode = Session expired for PATH"),
    ],
)
def test_an_error_of_zookeeper_names_its_path_but_for_a_first_leader(source: str, error: str, printed: str) -> None:
    """Kafka 2.0.1: zookeeper/ZooKeeperClient.scala, AsyncResponse.resultException; PartitionStateMachine.scala,
    logFailedStateChange (KeeperException.create(code))."""
    place = {"topic": "orders", "partition": 0, "source": source, "target": "OnlinePartition", "controller_epoch": 1}
    failed = Record(seq=1, time_ms=0, actor="controller-1", kind="partition", action="refuse", error=error, **place)
    path = "/brokers/topics/orders/partitions/0/state"
    expected = f"org.apache.zookeeper.KeeperException${printed.replace('PATH', path)}"
    assert kafka_log([failed]).splitlines()[1] == expected
