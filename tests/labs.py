"""Labs that several tests begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.controller.controller import Controller
from kafka_ctl.generation import Generation
from kafka_ctl.lab import story
from kafka_ctl.lab.admin import Admin
from kafka_ctl.lab.lab import Lab
from kafka_ctl.trace import Trace
from kafka_ctl.zookeeper.store import Create, Delete, Set

Result = TypeVar("Result")
QUIET = {"auto.leader.rebalance.enable": False}
CLEAN = QUIET | {"unclean.leader.election.enable": False, "delete.topic.enable": True}


def settled(
    generation: str | Generation,
    topics: Mapping[str, Mapping[int, Sequence[int]]],
    brokers: int,
    config: Mapping[str, Any],
    seed: int = 1,
    controller: int = 1,
) -> Lab:
    """A lab as of `lab_of`, with several topics, where this broker is controller."""
    lab = Lab(brokers=brokers, generation=generation, seed=seed, config=config)
    for topic, assignment in topics.items():
        lab.create_topic(topic, assignment=assignment)
    lab.settle()
    assert lab.controller is not None
    assert lab.controller.id == controller
    return lab


def lab_of(topic: str, assignment: Mapping[int, Sequence[int]], **options: Any) -> Lab:
    """A lab with these options that has settled with a topic."""
    lab = Lab(**options)
    try:
        until_quiet(lab.create_topic, topic, assignment=assignment)
    except BaseException:  # a real server must not outlive its test
        lab.close()
        raise
    return lab


def three_brokers(generation: str, *replicas: Sequence[int]) -> Lab:
    """Three brokers that elect and move nothing by themselves, of which 1 is controller; `orders` has these replicas.

    Without them it has one partition, on 2, 3 and 1.
    """
    return settled(generation, {"orders": {n: list(ids) for n, ids in enumerate(replicas or [(2, 3, 1)])}}, 3, CLEAN)


def until_quiet(command: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
    """Give a command, as in `until_quiet(lab.kill, 1)`, and let the lab settle; what the command returned."""
    result = command(*args, **kwargs)
    command.__self__.settle()  # type: ignore[attr-defined]
    return result


def play(lab: Lab, commands: str) -> Trace:
    """Give commands in the words of a story, as in `play(lab, "kill 1; settle; start 1; settle")`; what happened."""
    since = len(lab.trace)
    for command in story.parse(commands.replace("; ", "\n")):
        lab.do(command)
    return lab.trace[since:]


def acting(lab: Lab) -> Controller:
    """The controller that acts; there is one."""
    controller = lab.world.acting()
    assert controller is not None
    return controller


def process_of(lab: Lab, broker: int) -> Broker:
    """The process of a broker."""
    return lab.world.brokers[broker]


def by_hand(lab: Lab, *ops: Create | Set | Delete) -> None:
    """Write znodes as somebody with a ZooKeeper shell might, in a session of its own."""
    world = lab.world
    shell = Admin(world.store, world.trace, world.random, lab.generation, world.plugins)

    async def write() -> None:
        zk = await shell.zk()
        for op in ops:
            (await zk.write(op)).checked()

    world.run(write())


def eventful_lab(generation: str) -> Lab:
    """Elections of all four kinds, clean, unclean and in vain."""
    unclean = {"unclean.leader.election.enable": True}
    lab = Lab(brokers=4, seed=3, generation=generation, config=unclean)
    lab.create_topic("a", partitions=5, replication_factor=3)
    lab.create_topic("b", assignment={0: [1, 2]}, config={"unclean.leader.election.enable": False})
    lab.settle()
    lab.shutdown(3)
    for broker in (1, 2):
        lab.kill(broker)
        lab.settle()
    lab.start(1)
    lab.start(3)
    lab.settle()
    lab.start(2)
    lab.settle()
    lab.elect_preferred()
    lab.reassign({("a", 0): [4, 3], ("a", 1): [4, 1, 2]})
    lab.settle()
    return lab


def eventful(generation: str) -> Trace:
    with eventful_lab(generation) as lab:
        return lab.trace
