"""Exercises of lesson 19, finding a broker. The wire is imported where it is used: its tables need more than Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_ctl.brokers.states import RUNNING
from kafka_ctl.errors import short
from kafka_ctl.exercises.exercise import Exercise
from kafka_ctl.exercises.implement import Compute
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl_course.quiet import opening
from kafka_ctl_course.script_options import BROKERS, LIST, ZOOKEEPER, options

if TYPE_CHECKING:
    from kafka_ctl.wire.codec import Message

Answer = tuple[str, ...]
Configured = tuple[str, str | None, str]
TITLE = "Finding a broker"
OPENING = opening(3, "2.4")
ORDERS = "create_topic orders partitions=3 replication_factor=3\nsettle\n"
FIVE = (
    OPENING.replace("brokers=3", "brokers=5")
    + """create_topic orders assignment='{"0":[1,2],"1":[2,3],"2":[3,1]}'\nsettle\n"""
)
"""Broker 4 is the controller, and leads nothing."""
COPIED = (
    OPENING
    + ORDERS
    + """create_topic audit assignment='{"0":[3]}'\nsettle\nproduce audit 0 records=3\nsettle\n"""
    + "shutdown 3\nsettle\nset_meta 3 /d1 2\nstart 3\nsettle\n"
)
"""A directory of broker 2 was copied to broker 3, which has the only replica of audit-0."""
SCRIPTS = (
    "kafka-topics",
    "kafka-console-producer",
    "kafka-console-consumer",
    "kafka-consumer-groups",
    "kafka-preferred-replica-election",
)
NAME = "kafka-1.example.org"


# 1: predict


def options_of(lab: Lab) -> Answer:
    """The option of each script in 2.0.1."""
    return tuple(options(script, "2.0.1")[0] for script in SCRIPTS)


def options_wrong(answer: Answer, truth: Answer) -> str | None:
    """The mistakes of exercise 1."""
    topics, producer, consumer, groups, preferred = answer
    if topics == BROKERS:
        return "kafka-topics works on znodes in 2.0: it has no client. Since 2.2 it can ask a broker."
    if producer == BROKERS:
        return "The producer kept its old option until 2.5."
    if ZOOKEEPER in (consumer, groups):
        return "Offsets in ZooKeeper belonged to the old consumer, which 2.0 has removed."
    if preferred != ZOOKEEPER:
        return "That script writes a znode. Which option reaches it?"
    if LIST in (topics, consumer, groups):
        return f"{LIST} is the option of the old producer, and of no other of these scripts."
    return None


def with_dashes(answer: object) -> object:
    """The same options with the dashes in front."""
    if isinstance(answer, (list, tuple)):
        return tuple(f"--{each.lstrip('-')}" if isinstance(each, str) else each for each in answer)
    return answer


# 2: what a broker registers


def configurations(lab: Lab) -> list[Configured]:
    """`listeners`, `advertised.listeners` and the machine's full name."""
    return [
        ("PLAINTEXT://10.0.0.5:9092", None, NAME),
        ("PLAINTEXT://:9092", None, NAME),
        ("PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://kafka.example.com:29092", NAME),
        ("PLAINTEXT://0.0.0.0:9092", None, NAME),
        ("PLAINTEXT://10.0.0.5:9092", "PLAINTEXT://:29092", NAME),
        ("PLAINTEXT://localhost:9092", None, NAME),
        ("PLAINTEXT://:9092", "PLAINTEXT://0.0.0.0:9092", NAME),
    ]


def registered(listeners: str, advertised: str | None, name: str) -> str | None:
    """The address that a broker registers; None if it does not start.

    Kafka 2.0.1: server/KafkaConfig.scala, advertisedListeners, validateValues; server/KafkaServer.scala,
    createBrokerInfo
    """
    host, _, port = (advertised or listeners).partition("://")[2].rpartition(":")
    return None if host == "0.0.0.0" else f"{host or name}:{port}"


def explain_registered(given: Configured, got: object, expected: str | None) -> str:
    """The fault in an address, in one sentence."""
    listeners, advertised, name = given
    asked = f"with listeners {listeners} and advertised.listeners {advertised} you return {short(got)}. "
    if expected is None:
        return f"{asked}No client can reach 0.0.0.0, and a broker that would have to advertise it does not start."
    if got is None and "0.0.0.0" in listeners:
        return f"{asked}A broker may bind 0.0.0.0 if it advertises another host. Which host does it advertise here?"
    if not isinstance(got, str) or ":" not in got:
        return f"{asked}Host and port are asked for, as in {name}:9092."
    host, _, port = got.rpartition(":")
    if "/" in host:
        return f"{asked}The name of the listener stands before `://`; a client gets host and port."
    if not host:
        return f"{asked}Where no host is configured, the broker takes the full name of its machine."
    if advertised is not None and port != expected.rpartition(":")[2]:
        return f"{asked}advertised.listeners counts, where there is one."
    return f"{asked}Which host is configured for clients? Where there is none, it is {name}."


# 3: where a client writes


def metadata(lab: Lab) -> list[tuple[Message, str, int]]:
    """A Metadata answer of a broker of this lab with each partition, and with one that does not exist."""
    from kafka_ctl.wire.codec import decode, encode
    from kafka_ctl.wire.schema import RESPONSE, api_key, message_type

    assert lab.controller is not None
    known = next(view for view in lab.brokers.values() if view.state == RUNNING)
    nodes = [{"node_id": id, "host": "127.0.0.1", "port": 9090 + id} for id in known.live_brokers]
    partitions = [
        {
            "error_code": 0 if state.leader >= 0 else 5,
            "partition_index": tp.partition,
            "leader_id": state.leader,
            "replica_nodes": state.isr,
            "isr_nodes": state.isr,
        }
        for tp, state in sorted(known.metadata.items(), reverse=True)
    ]
    topics = [{"error_code": 3, "name": "nothing"}, {"error_code": 0, "name": "orders", "partitions": partitions}]
    schema = message_type(api_key("Metadata"), 1, RESPONSE).body
    body = {"brokers": nodes[::-1], "controller_id": lab.controller.id, "topics": topics}
    answer, _ = decode(schema, encode(schema, body))
    return [(answer, "orders", number) for number in range(3)] + [(answer, "nothing", 0)]


def leader_address(answer: Message, topic: str, partition: int) -> str | None:
    """The address of the leader, as a client finds it; None where there is no leader."""
    leaders = {
        (each["name"], one["partition_index"]): one["leader_id"]
        for each in answer["topics"]
        for one in each["partitions"]
    }
    nodes = {node["node_id"]: f"{node['host']}:{node['port']}" for node in answer["brokers"]}
    return nodes.get(leaders.get((topic, partition), -1))


def explain_address(given: tuple[Message, str, int], got: object, expected: str | None) -> str:
    """The fault in an address, in one sentence."""
    answer, topic, partition = given
    asked = f"for {topic}-{partition} you return {got!r}. "
    nodes = {f"{node['host']}:{node['port']}": node["node_id"] for node in answer["brokers"]}
    if isinstance(got, int):
        return f"{asked}That is an id; a client needs host and port."
    if expected is None:
        return f"{asked}The leader is -1 or the topic is unknown: no broker takes the record now; answer None."
    if got is None:
        return f"{asked}There is a leader, and it listens at an address."
    if not isinstance(got, str):
        return f"{asked}An address is one text, such as {min(nodes)}."
    if got not in nodes:
        return f"{asked}No broker listens there; the addresses are {', '.join(sorted(nodes))}."
    by_place = next(each for each in answer["topics"] if each["name"] == topic)["partitions"][partition]
    if nodes[got] == by_place["leader_id"]:
        return (
            f"{asked}That leader is of partition {by_place['partition_index']}: its place in the list is {partition}."
        )
    if nodes[got] == answer["controller_id"]:
        return f"{asked}That is the controller. Writes go to the leader, and that is broker {nodes[expected]}."
    if nodes[got] == answer["brokers"][0]["node_id"]:
        return f"{asked}That broker stands first in the list. It knows who leads, but only the leader takes records."
    return f"{asked}That is broker {nodes[got]}, not {nodes[expected]}."


# 4: operate


def not_back(lab: Lab) -> str | None:
    """The fault that is left; None once broker 3 runs, with its records."""
    if (others := [id for id in lab.brokers if id > 3]) and lab.brokers[3].state != RUNNING:
        return f"broker {others[0]} runs, with an empty disk; broker 3 and its replicas are still missing."
    if lab.brokers.keys() != {1, 2, 3}:
        return f"the cluster has brokers {', '.join(map(str, lab.brokers))}; 1, 2 and 3 are asked for."
    if lab.brokers[3].state == RUNNING:
        return (
            None
            if any(log.end for log in lab.log("audit", 0))
            else "audit-0 is empty: no other broker had its records."
        )
    if changed(lab):
        return "broker 3 is down: it was not started since your last change."
    logged = reason(lab)
    return f"broker 3 is down. It said: {logged}" if logged else "broker 3 was stopped again."


def reason(lab: Lab) -> str:
    """The reason for which broker 3 did not start; "" if it did."""
    last = [r for r in lab.trace.slice(kind="broker", broker=3) if r.action in ("start", "stopped")][-1]
    return (last.detail or "").replace("\n", " ")


def changed(lab: Lab) -> bool:
    """True if what a broker reads was changed after the last start."""
    return [each.name for each in lab.commands if each.name in ("set_meta", "set_broker_id", "start")][-1] != "start"


def only_started(lab: Lab) -> str | None:
    """The reply where the broker was only started again."""
    changes = [command for command in lab.commands if command.name in ("set_meta", "set_broker_id")]
    if len(changes) > 1 or lab.brokers[3].state == RUNNING:
        return None
    return "Nothing has changed since the last attempt."


def about_meta(lab: Lab) -> str | None:
    """The reply to a learner who changed a file, and started the broker."""
    if changed(lab) or not reason(lab):
        return None
    return "2.4 compares the whole entries, with the cluster's id, and then the broker's id with the configuration."


EXERCISES: tuple[Exercise, ...] = (
    Predict(
        name="19.1",
        title="Which option?",
        hints=(
            "What does each script talk to: a broker, or ZooKeeper?",
            "Scripts that write znodes take --zookeeper in 2.0.",
            "One of the clients still has the name of 0.8 for the same thing.",
        ),
        story=OPENING,
        ask=options_of,
        example=(BROKERS, ZOOKEEPER, LIST, LIST, LIST),
        parts=SCRIPTS,
        read=with_dashes,
        wrong=(options_wrong,),
        why="A script that works on znodes takes --zookeeper, a client brokers; the producer kept --broker-list. "
        "`ScriptOptions()` shows all three releases.",
    ),
    Compute(
        name="19.2",
        title="What do clients get?",
        core=True,
        hints=(
            "`advertised.listeners` counts where it is set; else `listeners`.",
            "`'PLAINTEXT://a:9092'.partition('://')[2].rpartition(':')` has host and port.",
            "Without a host it is the name of the machine; 0.0.0.0 is refused.",
        ),
        stories={"seven configurations": OPENING},
        give=configurations,
        none=True,
        truth=registered,
        explain=explain_registered,
        why="The address that a broker binds and the one it registers are two settings; clients see only the second.",
        shows_story=False,
    ),
    Compute(
        name="19.3",
        title="Where does a client write?",
        hints=(
            "Two lists belong together: partitions name the leader's id, brokers name addresses.",
            "Is partition 1 at place 1 of its list?",
            "What does a leader of -1 mean, and a topic without partitions?",
        ),
        stories={
            "five brokers": FIVE,
            "a leader that is not the first replica": FIVE
            + "shutdown 1\nsettle\nstart 1\nsettle\nelect_preferred\nsettle\n",
            "ids that are not 1, 2, 3": OPENING.replace("brokers=3", "brokers=[5,7,9]") + ORDERS,
            "a partition without a leader": OPENING
            + """create_topic orders assignment='{"0":[1],"1":[2],"2":[3]}'\nsettle\nkill 3\nsettle\n""",
        },
        give=metadata,
        none=True,
        truth=leader_address,
        explain=explain_address,
        why="Every client does it like this: metadata from any broker, records to the leader.",
    ),
    Operate(
        name="19.4",
        title="Two ids on one machine",
        core=True,
        hints=(
            "Which places say who this broker is? `lab.identity(3)` shows all of them.",
            "`lab.trace.slice(actor='broker-3', action='stopped')[-1].detail` says which two disagree.",
            "Which file is wrong? `lab.set_meta(3, directory, None)` removes one.",
        ),
        begin=COPIED,
        missing=not_back,
        best=2,
        remarks={
            "set_broker_id": "The configuration was right: the directory /d0 is broker 3's.",
            "add_broker": "A new broker has no data. The replicas are on the disks of broker 3.",
            "start": only_started,
            "set_meta": about_meta,
        },
        why="An id belongs to the disks. Where two of them disagree, a guess is not safe.",
    ),
)
