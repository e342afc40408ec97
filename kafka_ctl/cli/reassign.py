"""`kafka-ctl reassign`: Kafka's kafka-reassign-partitions, against any ZooKeeper that holds a cluster.

The options have Kafka's names. Exit status 0 when all is done that was asked, 1 when not (a reassignment that failed or
goes on, one that runs already), 2 for a file or an option that cannot be.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from kafka_ctl.cli.terminal import INT64, echo
from kafka_ctl.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from kafka_ctl.generation import Generation
    from kafka_ctl.reassign.tool import Outcome, Tool

T = TypeVar("T")
SESSION_SECONDS = 30.0
"""How long ZooKeeper keeps the tool's session without hearing of it."""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

zookeeper = click.option("--zookeeper", required=True, metavar="HOST:PORT/CHROOT", help="Where the cluster is.")
generation = click.option(
    "--generation", default="2.0", show_default=True, help="Of the cluster: 0.10 (to 1.0), 2.0 (1.1 to 2.3) or 2.4."
)
plan_file = click.option(
    "--reassignment-json-file", "plan", required=True, type=FILE, help='{"partitions":[{"topic":...}],"version":1}'
)


@click.group()
def reassign() -> None:
    """Move partitions to other brokers: propose a plan, start it, verify, list, cancel.

    \b
    kafka-ctl reassign generate --zookeeper 127.0.0.1:2181 --topics-to-move-json-file topics.json --broker-list 1,2,3
    kafka-ctl reassign execute --zookeeper 127.0.0.1:2181 --reassignment-json-file plan.json --throttle 10000000
    kafka-ctl reassign verify --zookeeper 127.0.0.1:2181 --reassignment-json-file plan.json
    """


@reassign.command()
@zookeeper
@generation
@click.option("--topics-to-move-json-file", "topics", required=True, type=FILE, help='{"topics":[{"topic":"t"}],...}')
@click.option("--broker-list", required=True, metavar="1,2,3", help="Brokers that the partitions may move to.")
@click.option("--disable-rack-aware", is_flag=True, help="Ignore racks.")
def generate(zookeeper: str, generation: str, topics: Path, broker_list: str, disable_rack_aware: bool) -> None:
    """Propose a plan for all partitions of some topics; nothing is started."""
    from random import Random

    from kafka_ctl.reassign.plan import write_plan

    if not re.fullmatch(r"(\s*[0-9]{1,10}\s*,)*\s*[0-9]{1,10}\s*", broker_list):
        raise BadInput(f"--broker-list cannot be {broker_list!r}; it is a list of ids such as 1,2,3")
    brokers = [int(part) for part in broker_list.split(",")]
    text = _read(topics)

    async def work(tool: Tool) -> str:
        proposed, current = await tool.generate(text, brokers, not disable_rack_aware, Random())
        plans = write_plan(current, tool.generation), write_plan(proposed, tool.generation)
        return "Current partition replica assignment\n{}\n\nProposed partition reassignment configuration\n{}".format(
            *plans
        )

    echo(_with_tool(zookeeper, generation, work))


@reassign.command()
@zookeeper
@generation
@plan_file
@click.option("--throttle", type=click.IntRange(0, INT64), help="At most so many bytes a second between brokers.")
@click.option(
    "--replica-alter-log-dirs-throttle",
    "log_dirs_throttle",
    type=click.IntRange(0, INT64),
    help="At most so many bytes a second between the log directories of a broker (since 1.1).",
)
def execute(zookeeper: str, generation: str, plan: Path, throttle: int | None, log_dirs_throttle: int | None) -> int:
    """Start a plan; while one is running, only change its throttles.

    The brokers are not spoken to, so a plan can name no log directory but "any".
    """
    text = _read(plan)
    return _print(_with_tool(zookeeper, generation, lambda tool: tool.execute(text, throttle, log_dirs_throttle)))


@reassign.command()
@zookeeper
@generation
@plan_file
def verify(zookeeper: str, generation: str, plan: Path) -> int:
    """Print the progress of a plan, and remove the throttles when it is done."""
    text = _read(plan)
    return _print(_with_tool(zookeeper, generation, lambda tool: tool.verify(text)))


@reassign.command()
@zookeeper
@plan_file
@click.option("--preserve-throttles", is_flag=True, help="Leave the throttles as they are.")
def cancel(zookeeper: str, plan: Path, preserve_throttles: bool) -> int:
    """Bring moving partitions back to their original replicas (clusters of 2.4 and later)."""
    text = _read(plan)
    return _print(_with_tool(zookeeper, "2.4", lambda tool: tool.cancel(text, preserve_throttles)))


@reassign.command(name="list")
@zookeeper
def list_running(zookeeper: str) -> None:
    """List the moving partitions, from the topics' znodes (clusters of 2.4 and later)."""
    echo(_with_tool(zookeeper, "2.4", lambda tool: tool.running()).text)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: not UTF-8 at byte {error.start}; JSON is expected") from None


def _print(outcome: Outcome) -> int:
    echo(outcome.text)
    return 0 if outcome.done else 1


def _with_tool(address: str, name: str, work: Callable[[Tool], Awaitable[T]]) -> T:
    """What `work` does with the tool and a session of the ZooKeeper at an address."""
    from kafka_ctl.generation import Generation

    generation = Generation(name)
    return asyncio.run(_connected(address, generation, work))


async def _connected(address: str, generation: Generation, work: Callable[[Tool], Awaitable[T]]) -> T:
    from kafka_ctl.reassign.tool import Tool
    from kafka_ctl.zookeeper.client import ZooKeeperClient
    from kafka_ctl.zookeeper.kafka_client import KafkaZkClient
    from kafka_ctl.zookeeper.real.store import RemoteStore
    from kafka_ctl.zookeeper.store import DISCONNECTED, Exists
    from kafka_ctl.zookeeper.znodes import BrokerIdsZNode

    store, client = RemoteStore(address), ZooKeeperClient(generation.config["zookeeper.max.in.flight.requests"])

    def changed(state: str) -> None:
        (client.connected.clear if state == DISCONNECTED else client.connected.set)()

    found = False
    try:
        client.session = await store.connect("admin", SESSION_SECONDS, client.watched, changed)
        client.connected.set()
        found = (await client.send([Exists(BrokerIdsZNode.path())]))[0].error is None
        if not found:
            raise Unavailable(f"there is no Kafka cluster at ZooKeeper {address}: {BrokerIdsZNode.path()} is missing")
        return await work(Tool(KafkaZkClient(client), generation))
    finally:
        await store.close(remove=not found)
