"""Exercises of lesson 19, crashes, disks and addresses."""

from __future__ import annotations

import json

from kafka_ctl.brokers.process import RUNNING
from kafka_ctl.errors import short
from kafka_ctl.exercises.compute import Compute
from kafka_ctl.exercises.exercise import Exercise, Guess
from kafka_ctl.exercises.operate import Operate
from kafka_ctl.exercises.predict import Predict
from kafka_ctl.lab.lab import Lab
from kafka_ctl.lab.view import LogDirView
from kafka_ctl_course.script_options import BROKERS, LIST, ZOOKEEPER, options

Answer = tuple[str, ...]
Configured = tuple[str, str | None, str]
TITLE = "Crashes, disks and addresses"
OPENING = (
    "lab brokers=3 generation=2.0 seed=7 "
    """config='{"auto.leader.rebalance.enable":false}' costs='{"boot":0.0005,"zookeeper_tick":0}'\n"""
)
LOADED = OPENING + (
    """create_topic orders assignment='{"0":[1,2,3],"1":[2,1,3]}'\nsettle\n"""
    "produce orders 0 records=8 size=134217728\nsettle\n"
)
"""One GiB in orders-0 that no broker has flushed."""
FULL = OPENING + (
    """create_topic orders assignment='{"0":[1,2]}'\nsettle\nproduce orders 0 records=30 size=1000000\nsettle\n"""
)
"""Both copies of orders-0 lie in /d0 of their brokers."""
SCRIPTS = (
    "kafka-topics",
    "kafka-console-producer",
    "kafka-console-consumer",
    "kafka-consumer-groups",
    "kafka-preferred-replica-election",
)
AWAY = 5.0
"""Seconds that broker 1 may need from its start until it is in every ISR."""
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


# 3: operate: a restart


def not_patched(lab: Lab) -> str | None:
    """The fault of a restart of broker 1."""
    if not any(p.topic == "orders" for p in lab.partitions()):
        return "the topic orders is gone."
    if down := [id for id, view in lab.brokers.items() if view.state != RUNNING]:
        return f"broker {down[0]} is not running."
    starts = lab.trace.slice(kind="broker", broker=1, action="start")
    if len(starts) < 2:
        return "broker 1 is still the process that ran before."
    if missing := [f"{p.topic}-{p.partition}" for p in lab.partitions() if 1 not in p.isr]:
        return f"broker 1 is not in the ISR of {', '.join(missing)}."
    began = starts[-1].time_ms
    back = max([began, *(r.time_ms for r in lab.trace.slice(kind="broker", broker=1, action="caught-up"))])
    took = (back - began) / 1000
    if took > AWAY:
        return f"broker 1 needed {took:.1f} s from its start until it was in every ISR; {AWAY:g} are allowed."
    return None


# 4: operate: a copy moves to the other disk


def copies(lab: Lab) -> dict[int, LogDirView]:
    """The copies of orders-0 by broker."""
    return {each.broker: each for each in lab.log_dirs() if (each.topic, each.partition) == ("orders", 0)}


def not_moved(lab: Lab) -> str | None:
    """The fault of a move within broker 1."""
    partition = lab.partition("orders", 0)
    if sorted(partition.replicas) != [1, 2] or sorted(partition.isr) != [1, 2]:
        return f"orders-0 has replicas {partition.replicas} and ISR {partition.isr}; both copies are to stay."
    copy = copies(lab)[1]
    if copy.future:
        return f"the copy on broker 1 is still on its way to {copy.future}."
    if copy.path != "/d1":
        return "the copy on broker 1 still lies in /d0."
    if any(b"io.max.bytes" in data for data, *_ in lab.znodes().values()):
        return "the copy lies in /d1, and the limit is still set: the next move will be slow, too."
    return None


def about_plan(lab: Lab) -> str:
    """The remark on a plan, by what it did."""
    paths = {broker: copy.path for broker, copy in copies(lab).items()}
    if paths.get(1) == "/d1":
        return "`lab.verify_reassignment(plan)` removes a limit when the move is done."
    if paths.get(2) == "/d1":
        return "`log_dirs` has the order of `replicas`: that was the copy on broker 2."
    return "Does the plan name /d1 for broker 1?"


PLAN = json.dumps(
    {
        "version": 1,
        "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["/d1", "any"]}],
    }
)
"""A plan that moves a copy to another directory of its broker."""

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
        why="A script that works on znodes takes --zookeeper, a client brokers; the producer kept --broker-list.",
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
        truth=registered,
        explain=explain_registered,
        why="What a broker binds and what it registers are two settings; clients see only the second.",
        shows_story=False,
    ),
    Operate(
        name="19.3",
        title="A restart within five seconds",
        core=True,
        hints=(
            "What does broker 1 do between its start and its registration?",
            "`lab.trace.slice(kind='broker', broker=1)` shows how many bytes it recovers.",
            "Which way of stopping flushes the logs, and says so?",
        ),
        begin=LOADED,
        missing=not_patched,
        best=2,
        remarks={
            "kill": "After `kill -9` there is no .kafka_cleanshutdown: all that was not flushed is read again.",
            "shutdown": "It left in good order; now it has to come back.",
            "expire_session": "The session ended, and the process went on.",
            "delete_controller": "No process of a broker is restarted by that.",
        },
        praise={"bounce": "The process closed its logs, but its leaders did not move before."},
        why="A process that closes its logs leaves nothing to recover. A controlled shutdown moves the leaders first.",
    ),
    Operate(
        name="19.4",
        title="One disk is full",
        hints=(
            "A plan names a directory for each replica: `log_dirs`, in the order of `replicas`; `any` leaves a copy.",
            "The replicas stay [1, 2]; only the first directory is another one.",
            "`lab.execute_reassignment(plan)`; with a limit `lab.verify_reassignment(plan)` ends it.",
        ),
        begin=FULL,
        missing=not_moved,
        best=1,
        remarks={
            "reassign": "This plan names brokers only. Within a broker a copy moves with `log_dirs`.",
            "fail_log_dir": "The directory and all of its copies are gone now.",
            "execute_reassignment": about_plan,
            "add_broker": "The copy is to stay on broker 1.",
            "shutdown": "A broker that is down moves nothing.",
        },
        why="The copy in the new directory grows beside the old one, and takes its place when it has caught up.",
    ),
)

GUESSES: dict[str, Guess] = {
    "19.a": Guess(
        "A broker with 1 GiB that was not flushed is killed with `kill -9` and started again. What does it do first?",
        (
            ("it fetches the gigabyte from the new leaders", "Its own disk has it: only its end is uncertain."),
            ("it reads the gigabyte on its own disk again", "It checks each batch, and cuts off what is damaged."),
            ("nothing: the records are in the log", "It cannot know that without the marker of a clean shutdown."),
        ),
        1,
    ),
    "19.b": Guess(
        "The script is repaired: it looks for `kafka` instead of `kafka.Kafka`. What can go wrong?",
        (
            (
                "nothing: that name comes early in the line",
                "The broker is found. What else has that folder in its line?",
            ),
            ("it still does not find the broker", "The class path begins early, with the folder of Kafka."),
            ("it also stops ZooKeeper, if that runs from Kafka's folder", "Its class path is the same."),
        ),
        2,
    ),
    "19.c": Guess(
        "A client reaches the address in `bootstrap.servers`. The broker there advertises another address, which the "
        "client cannot reach. What does the client report?",
        (
            ("connection refused, at once", "The first connection worked. The error comes with the next one."),
            ("it cannot get metadata, after a time-out", "It had the metadata, and went to the address in there."),
            ("nothing: it goes on with the bootstrap address", "That address is for the first question only."),
        ),
        1,
    ),
    "19.d": Guess(
        "A copy moves from /d0 to /d1 within its broker, which leads it. Who is asked, and what does the ISR do?",
        (
            ("the controller; the copy leaves the ISR for a time", "The controller learns nothing of it."),
            ("the broker itself; the ISR does not change", "The old copy serves until the new one has caught up."),
            ("the broker itself; another replica leads meanwhile", "No leader changes: the old copy is still there."),
        ),
        1,
    ),
}
