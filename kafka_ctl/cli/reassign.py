"""`kafka-ctl reassign`: Kafka's kafka-reassign-partitions, against any ZooKeeper that holds a cluster.

It takes Kafka's own flags, those of the release that `--generation` follows, or a subcommand for each action. Exit
status 0 when all is done that was asked, 1 when not (a reassignment that failed or goes on, one that runs already), 2
for a file or an option that cannot be.
Kafka 0.10.2.2, 2.0.1, 2.4.1: admin/ReassignPartitionsCommand.scala, validateAndParseArgs

Separate from `commands.py` because its flags are those of Kafka's tool, which other commands do not have.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict, TypeVar, Unpack

import click

from kafka_ctl.cli.terminal import INT64, Commands, echo
from kafka_ctl.errors import BadInput, Unavailable
from kafka_ctl.generation import GENERATIONS, Generation

if TYPE_CHECKING:
    from kafka_ctl.reassign.tool import Outcome, Tool
    from kafka_ctl.wire.client import AdminClient

T = TypeVar("T")
SESSION_SECONDS = 30.0
"""Seconds for which ZooKeeper keeps the tool's session without hearing of it."""
TIMEOUT_MS = 10_000
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Long(click.types.IntParamType):
    """A number from `least` to the largest `Long`."""

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = int(super().convert(value, param, ctx))
        if not self.least <= number <= INT64:
            self.fail(f"{value!r} is not in the range {self.least} to {INT64}.", param, ctx)
        return number


RATE = Long(-INT64 - 1)
"""Bytes a second; a negative number, such as Kafka's default -1, means no throttle."""


class Where(TypedDict, total=False):
    """The cluster, and how to reach it; `timeout` in milliseconds."""

    zookeeper: Required[str]
    bootstrap_server: str | None
    command_config: Path | None
    timeout: int | None


zookeeper = click.option("--zookeeper", metavar="HOST:PORT/CHROOT", help="ZooKeeper of the cluster.")
bootstrap = click.option(
    "--bootstrap-server",
    metavar="HOST:PORT,...",
    help="Bootstrap brokers; required if a plan names log directories (since 1.1).",
)
command_config = click.option(
    "--command-config", type=FILE, help="Properties of the connection to the brokers: client.id (since 2.1)."
)
generation = click.option(
    "--generation",
    type=click.Choice(list(GENERATIONS)),
    default="2.0",
    show_default=True,
    help="Generation of the cluster: 0.10 (to 1.0), 2.0 (1.1 to 2.3) or 2.4.",
)
plan_file = click.option(
    "--reassignment-json-file", "plan", type=FILE, help='{"partitions":[{"topic":...}],"version":1}'
)
topics_file = click.option(
    "--topics-to-move-json-file", "topics", type=FILE, help='{"topics":[{"topic":"t"}],"version":1}'
)
broker_list = click.option("--broker-list", metavar="1,2,3", help="Brokers that the partitions may move to.")
ignores_racks = click.option("--disable-rack-aware", is_flag=True, help="Ignore racks.")
throttle = click.option(
    "--throttle", type=RATE, help="At most so many bytes a second between brokers; -1: no throttle."
)
log_dirs_throttle = click.option(
    "--replica-alter-log-dirs-throttle",
    "log_dirs_throttle",
    type=RATE,
    help="At most so many bytes a second between the log directories of a broker; -1: no throttle (since 1.1).",
)
timeout = click.option(
    "--timeout",
    type=Long(0),
    help=f"Milliseconds until the brokers must have accepted the log directories (since 1.1) [default: {TIMEOUT_MS}].",
)
preserve = click.option("--preserve-throttles", is_flag=True, help="Leave the throttles as they are (since 2.6).")


def options(*chosen: Callable[[T], T], **required: bool) -> Callable[[T], T]:
    """Options in this order; those named are required."""

    def add(function: T) -> T:
        for option in reversed(chosen):
            function = option(function)
        parameters: list[click.Parameter] = vars(function)["__click_params__"]
        for parameter in parameters:
            parameter.required = required.get(str(parameter.name), parameter.required)
        return function

    return add


# Kafka's flags

ACTIONS = {"generate": "Propose a plan.", "execute": "Start a plan.", "verify": "Print the progress of a plan."}
LATER = {
    "bootstrap_server": ("1.1 (KIP-113)", ("2.0", "2.4")),
    "log_dirs_throttle": ("1.1 (KIP-113)", ("2.0", "2.4")),
    "timeout": ("1.1 (KIP-113)", ("2.0", "2.4")),
    "command_config": ("2.1 (KAFKA-7147)", ("2.4",)),
    "cancel": ("2.6 (KAFKA-8820)", ()),
    "list": ("2.6 (KAFKA-8820)", ()),
    "additional": ("2.6 (KAFKA-8820)", ()),
    "preserve_throttles": ("2.6 (KAFKA-8820)", ()),
}
"""Options that not every release has: the release that they came with, and the generations that have them."""
INSTEAD = {
    "cancel": "with 2.4 one cancels through the API: `kafka-ctl reassign cancel`",
    "list": "with 2.4 one lists through the API: `kafka-ctl reassign list`",
    "additional": "with 2.4 one adds a reassignment through the API: AlterPartitionReassignments",
    "preserve_throttles": "`kafka-ctl reassign cancel` has it",
}
"""The equivalents in this kit."""
SPELLED = {
    "plan": "reassignment-json-file",
    "topics": "topics-to-move-json-file",
    "log_dirs_throttle": "replica-alter-log-dirs-throttle",
}
USELESS = {
    "verify": ("throttle", "log_dirs_throttle", "topics", "disable_rack_aware", "broker_list"),
    "generate": ("throttle", "log_dirs_throttle", "plan"),
    "execute": ("topics", "disable_rack_aware", "broker_list"),
}
"""The options that an action refuses, in Kafka's order."""
NEEDED = {
    "verify": (("plan",), "--reassignment-json-file that was used during the --execute option"),
    "generate": (("topics", "broker_list"), "both --topics-to-move-json-file and --broker-list options"),
    "execute": (("plan",), "--reassignment-json-file that was output during the --generate option"),
}
"""The options that an action needs, and the end of Kafka's sentence where one is missing."""


def checked_action(given: Mapping[str, object], name: str) -> str:
    """The action that Kafka's flags ask for. Raises BadInput, in Kafka's words, if that release refuses it."""
    release = Generation(name).kafka
    for option, (since, having) in LATER.items():
        if _is_given(given.get(option)) and name not in having:
            instead = f"; {INSTEAD[option]}" if option in INSTEAD else ""
            raise BadInput(
                f"{_flag(option)} is not an option of the tool of Kafka {release}; it came with {since}{instead}"
            )
    actions = [action for action in ACTIONS if given.get(action)]
    if len(actions) != 1:
        raise BadInput("Command must include exactly one action: --generate, --execute or --verify")
    if not given.get("zookeeper"):
        raise BadInput('Missing required argument "[zookeeper]"')
    (action,) = actions
    needed, text = NEEDED[action]
    if not all(given.get(option) for option in needed):
        raise BadInput(f"If --{action} option is used, command must include {text}")
    for option in USELESS[action]:
        if _is_given(given.get(option)):
            space = " " if name == "2.4" else ""
            raise BadInput(f'Option "[{action}]" can\'t be used with option{space}"[{_flag(option)[2:]}]"')
    return action


def _is_given(value: object) -> bool:
    return value is not None and value is not False


def _flag(option: str) -> str:
    return "--" + SPELLED.get(option, option).replace("_", "-")


class Flags(Commands):
    """A group that does the work itself if no subcommand is named."""

    def format_usage(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(context.command_path, "OPTIONS")
        formatter.write_usage(context.command_path, "COMMAND [OPTIONS]")


@click.group(cls=Flags, invoke_without_command=True)
@click.pass_context
@options(
    *(click.option(f"--{name}", is_flag=True, help=text) for name, text in ACTIONS.items()),
    *(click.option(f"--{name}", is_flag=True, hidden=True) for name in ("cancel", "list", "additional")),
    *(zookeeper, bootstrap, command_config, plan_file, topics_file, broker_list, ignores_racks),
    *(throttle, log_dirs_throttle, timeout, click.option("--preserve-throttles", is_flag=True, hidden=True)),
    click.option(
        "--generation", type=click.Choice(list(GENERATIONS)), help="Generation of the cluster [default: 2.0]."
    ),
)
def reassign(context: click.Context, **given: object) -> int | None:
    """Move partitions to other brokers or log directories: propose a plan, start it, verify, list, cancel.

    The options are those of Kafka's kafka-reassign-partitions, of the release that the generation follows.

    \b
    kafka-ctl reassign --zookeeper 127.0.0.1:2181 --generate --topics-to-move-json-file topics.json --broker-list 1,2,3
    kafka-ctl reassign --zookeeper 127.0.0.1:2181 --execute --reassignment-json-file plan.json --throttle 10000000
    kafka-ctl reassign --zookeeper 127.0.0.1:2181 --verify --reassignment-json-file plan.json

    Every action is also a subcommand: `kafka-ctl reassign verify --zookeeper ...`.
    """
    chosen = [name for name, value in given.items() if _is_given(value)]
    if context.invoked_subcommand is not None:
        if chosen:
            raise click.UsageError(
                f"{_flag(chosen[0])} stands before the subcommand {context.invoked_subcommand!r}; write it behind it"
            )
        return None
    given["generation"] = given["generation"] or "2.0"
    action = reassign.commands[checked_action(given, str(given["generation"]))]
    return int(context.invoke(action, **{str(p.name): given[str(p.name)] for p in action.params}))


# A subcommand for each action


@reassign.command()
@options(zookeeper, generation, topics_file, broker_list, ignores_racks, zookeeper=True, topics=True, broker_list=True)
def generate(generation: str, topics: Path, broker_list: str, disable_rack_aware: bool, **where: Unpack[Where]) -> int:
    """Propose a plan for all partitions of some topics; nothing is started."""
    from random import Random

    from kafka_ctl.reassign.plan import write_plan

    if not re.fullmatch(r"(\s*[0-9]{1,10}\s*,)*\s*[0-9]{1,10}\s*", broker_list):
        raise BadInput(f"--broker-list cannot be {broker_list!r}; it must be a list of ids such as 1,2,3")
    brokers = [int(part) for part in broker_list.split(",")]
    text = _read_plan(topics, generation, of_topics=True)

    async def work(tool: Tool) -> str:
        proposed, current = await tool.generate(text, brokers, not disable_rack_aware, Random())
        plans = write_plan(current, tool.generation), write_plan(proposed, tool.generation)
        return "Current partition replica assignment\n{}\n\nProposed partition reassignment configuration\n{}".format(
            *plans
        )

    echo(_with_tool(where, generation, work))
    return 0


@reassign.command()
@options(
    *(zookeeper, bootstrap, command_config, generation, plan_file, throttle, log_dirs_throttle, timeout),
    zookeeper=True,
    plan=True,
)
def execute(
    generation: str, plan: Path, throttle: int | None, log_dirs_throttle: int | None, **where: Unpack[Where]
) -> int:
    """Start a plan; while one is running, only change its throttles.

    A plan that names log directories other than "any" needs --bootstrap-server.
    """
    text = _read_plan(plan, generation, check=True)
    return _print(_with_tool(where, generation, lambda tool: tool.execute(text, throttle, log_dirs_throttle)))


@reassign.command()
@options(zookeeper, bootstrap, command_config, generation, plan_file, zookeeper=True, plan=True)
def verify(generation: str, plan: Path, **where: Unpack[Where]) -> int:
    """Print the progress of a plan, and remove the throttles when it is done."""
    text = _read_plan(plan, generation)
    return _print(_with_tool(where, generation, lambda tool: tool.verify(text)))


@reassign.command()
@options(zookeeper, bootstrap, command_config, plan_file, preserve, zookeeper=True, plan=True)
def cancel(plan: Path, preserve_throttles: bool, **where: Unpack[Where]) -> int:
    """Bring moving partitions back to their original replicas (clusters of 2.4 and later).

    With --bootstrap-server the controller is asked, else a request for the original replicas is written.
    """
    text = _read_plan(plan, "2.4")
    return _print(_with_tool(where, "2.4", lambda tool: tool.cancel(text, preserve_throttles)))


@reassign.command(name="list")
@options(zookeeper, bootstrap, command_config, zookeeper=True)
def list_running(**where: Unpack[Where]) -> None:
    """List the moving partitions (clusters of 2.4 and later).

    With --bootstrap-server the controller is asked, else the topics' znodes are read.
    """
    echo(_with_tool(where, "2.4", lambda tool: tool.running()).text)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: not UTF-8 at byte {error.start}; text is expected") from None


def _read_plan(file: Path, name: str, of_topics: bool = False, check: bool = False) -> str:
    """The text of a plan or of a list of topics, which is parsed, and checked, before anything is connected to."""
    from kafka_ctl.reassign.plan import read_plan, read_topics

    text, parse = _read(file), read_topics if of_topics else partial(read_plan, check=check)
    try:
        parse(text, Generation(name))
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    return text


def _print(outcome: Outcome) -> int:
    echo(outcome.text)
    return 0 if outcome.done else 1


# The way to the cluster


def _admin_client(where: Where) -> AdminClient | None:
    """The client that reaches the brokers; None without `--bootstrap-server`."""
    from kafka_ctl.wire.client import AdminClient

    servers, config = where.get("bootstrap_server"), where.get("command_config")
    if not servers:
        return None
    properties = {} if config is None else read_properties(_read(config))
    protocol = properties.get("security.protocol", "PLAINTEXT")
    if protocol != "PLAINTEXT":
        raise BadInput(f"security.protocol cannot be {protocol!r}; kafka-ctl connects with PLAINTEXT only")
    return AdminClient(servers, properties.get("client.id", "reassign-partitions-tool"))


def read_properties(text: str) -> dict[str, str]:
    """The entries of a Java properties file, a line each: `key=value`; lines with `#` are comments."""
    lines = [line.strip() for line in text.splitlines()]
    entries = (re.split(r"\s*[=:]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {entry[0]: "".join(entry[1:]) for entry in entries}


def _with_tool(where: Where, name: str, work: Callable[[Tool], Awaitable[T]]) -> T:
    """The result of `work` with the tool and a session of the ZooKeeper."""
    import asyncio

    return asyncio.run(_connected(where, Generation(name), work))


async def _connected(where: Where, generation: Generation, work: Callable[[Tool], Awaitable[T]]) -> T:
    from kafka_ctl.reassign.tool import LogDirs, Tool, WallClock
    from kafka_ctl.zookeeper.client import ZooKeeperClient
    from kafka_ctl.zookeeper.kafka_client import KafkaZkClient
    from kafka_ctl.zookeeper.real.store import BareStore, RemoteStore
    from kafka_ctl.zookeeper.store import Exists
    from kafka_ctl.zookeeper.znodes import BrokerIdsZNode

    address, brokers = where["zookeeper"], _admin_client(where)
    store, client = RemoteStore(address), ZooKeeperClient(generation.config["zookeeper.max.in.flight.requests"])
    store.advice = BareStore.advice  # the cluster belongs to others: no server is to be started for it
    found = False
    try:
        client.session = await store.connect("admin", SESSION_SECONDS, client.watched, client.state_changed)
        client.connected.set()
        found = (await client.send([Exists(BrokerIdsZNode.path())]))[0].error is None
        if not found:
            raise Unavailable(f"there is no Kafka cluster at ZooKeeper {address}: {BrokerIdsZNode.path()} is missing")
        zk = KafkaZkClient(client)
        if brokers is None:
            return await work(Tool(zk, generation))
        milliseconds = where.get("timeout")
        seconds = (TIMEOUT_MS if milliseconds is None else milliseconds) / 1000
        ways = brokers.alter_reassignments, brokers.list_reassignments
        return await work(Tool(zk, generation, *ways, LogDirs(brokers.call, WallClock(), seconds)))
    finally:
        await store.close(remove=not found)
