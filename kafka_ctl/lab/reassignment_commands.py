"""Moving partitions in a lab: by Kafka's tool, by a request in ZooKeeper, or through the controller's API (2.4)."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.cluster import ReplicaAssignment, TopicPartition
from kafka_ctl.errors import ApiException, BadInput, Unavailable, short
from kafka_ctl.generation import Generation
from kafka_ctl.lab import menu, validate
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.lab.draw import Drawn, with_
from kafka_ctl.lab.menu import DISK, PARTITION, TOOL, Button, Call, Field, Given
from kafka_ctl.lab.view import Znodes
from kafka_ctl.reassign.log_dirs import LogDirs
from kafka_ctl.reassign.plan import write_plan
from kafka_ctl.reassign.tool import Tool
from kafka_ctl.requests import (
    API_TIMEOUT,
    AdminRequest,
    AlterPartitionReassignmentsRequest,
    ApiError,
    ListPartitionReassignmentsRequest,
    Response,
)
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode, TopicPartitionStateZNode, TopicZNode

T = TypeVar("T")
ZOOKEEPER, CONTROLLER = "zookeeper", "controller"
RETRY_BACKOFF = 0.1
"""Seconds that an administrator's client looks for a controller, and between two attempts."""
RETRIED = ("NOT_CONTROLLER", "DISCONNECTED", "CONTROLLER_NOT_AVAILABLE")


class ReassignmentView(NamedTuple):
    """A reassignment under way: the replicas now, those there shall be, and which of these are not in sync yet."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    waiting: tuple[int, ...]


class LogDirView(NamedTuple):
    """Where a broker's copy of a partition lies, and where its future copy, if it moves; None for a failed disk."""

    topic: str
    partition: int
    broker: int
    path: str | None
    future: str | None


REPLICAS = Field("replicas", "Replicas", "replicas")
PLAN = Field("plan", "Plan", "plan", read=menu.as_written)
SPREAD = Field("racks", "Spread", "choice", "over racks|without regard to racks")


def one_partition(name: str, given: Given) -> Call:
    """The call for one partition of a command that takes several."""
    return ([menu.partition(name)],), {}


def _propose(_: str, given: Given) -> Call:
    spread = {} if SPREAD.choice(given) == "over racks" else {"rack_aware": False}
    return (given.get("topics", "").replace(",", " ").split(), menu.replicas(given, "brokers")), spread


def _execute(_: str, given: Given) -> Call:
    throttles = {name: menu.maybe(given, name) for name in ("throttle", "replica_alter_log_dirs_throttle")}
    return (given.get("plan", ""),), {name: rate for name, rate in throttles.items() if rate is not None}


def _lay(name: str, given: Given) -> Call:
    """A plan that leaves the replicas where they are, and moves one of them to another log directory."""
    topic, partition = menu.partition(name)
    broker, replicas = menu.number(given, "broker"), menu.replicas(given, "replicas")
    dirs = [DISK.choice(given) if replica == broker else "any" for replica in replicas]
    entry = {"topic": topic, "partition": partition, "replicas": replicas, "log_dirs": dirs}
    return (json.dumps({"version": 1, "partitions": [entry]}, separators=(",", ":")),), {}


class ReassignmentCommands(Commands):
    """Other replicas for partitions."""

    generation: Generation

    @command(
        Button(PARTITION, "Reassign…", "give it other replicas; the first is preferred as leader", (REPLICAS,),
               call=lambda name, given: (({menu.partition(name): menu.replicas(given, "replicas")},), {})),
        drawn=Drawn(4, lambda d: with_(
            {d.partition(): d.replicas()}, through="zookeeper" if d.maybe(0.3) else None)),
    )  # fmt: skip
    def reassign(self, targets: Mapping[Any, Sequence[int]], through: str | None = None) -> dict[str, str] | None:
        """Ask for other replicas: `{("orders", 0): [2, 3, 4]}`; the first is the preferred leader.

        2.4 asks the controller (`through="controller"`), which also takes new targets for what is moving; before, and
        with `through="zookeeper"`, a request is written, which waits until the last one is done. Raises ApiException,
        with Kafka's name for the error, when everything is refused; what is refused in part is returned.
        """
        wanted = {
            validate.topic_partition(tp): validate.replicas(f"the replicas of {tp}", replicas)
            for tp, replicas in validate.mapping("a reassignment", targets).items()
        }
        api = self._goes_through_api(through)
        refused: dict[TopicPartition, ApiError] = {}

        async def ask() -> None:
            if api:
                refused.update(await self._alter(wanted))
                _refusals(refused, len(wanted))
            else:
                await self._admin.reassign(wanted)

        self._ask(ask, "reassign", partitions=",".join(map(str, wanted)))
        return _refusals(refused, len(wanted))

    @command(
        Button(PARTITION, "Cancel reassignment", "back to the replicas it had", call=one_partition,
               needs="incremental_reassignment", rank=1),
        Button(TOOL, "Cancel all", "everything that moves goes back to the replicas it had",
               needs="incremental_reassignment", rank=1),
        drawn=Drawn(1),
    )  # fmt: skip
    def cancel_reassignment(self, partitions: Iterable[object] | None = None) -> dict[str, str] | None:
        """2.4: bring these partitions, or all that move, back to their original replicas.

        Raises ApiException with NO_REASSIGNMENT_IN_PROGRESS where nothing is moving.
        """
        if not self.generation.reassignment.incremental_reassignment:
            raise BadInput(f"Kafka {self.generation.kafka} cannot cancel a reassignment; that came with 2.4 (KIP-455)")
        self._needs_zookeeper("cancel_reassignment")
        moving = [TopicPartition(r.topic, r.partition) for r in self.reassignments()]
        wanted = moving if partitions is None else validate.topic_partitions("partitions", partitions)
        if not wanted:
            raise ApiException("NO_REASSIGNMENT_IN_PROGRESS", "No partition reassignment is in progress.")
        refused: dict[TopicPartition, ApiError] = {}

        async def ask() -> None:
            refused.update(await self._alter(dict.fromkeys(wanted)))
            _refusals(refused, len(wanted))

        self._ask(ask, "cancel_reassignment", partitions=",".join(map(str, wanted)))
        return _refusals(refused, len(wanted))

    def reassignments(self) -> list[ReassignmentView]:
        """The reassignments in ZooKeeper, by topic and partition."""
        return self._look(_reassignments)

    # Kafka's tool

    @command(
        Button(TOOL, "Propose…", "--generate: propose other brokers for topics",
               (Field("topics", "Topics", "topic"), Field("brokers", "On brokers", "brokers"), SPREAD), call=_propose)
    )  # fmt: skip
    def generate_reassignment(
        self, topics: Iterable[str], brokers: Iterable[int], rack_aware: bool = True
    ) -> dict[TopicPartition, tuple[int, ...]]:
        """What the tool proposes for these topics on these brokers; Kafka draws where to begin, here the seed does."""
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise BadInput(f"the topics cannot be {short(topics)}; they are a list such as ['orders']")
        file = json.dumps({"version": 1, "topics": [{"topic": validate.name("a topic", topic)} for topic in topics]})
        wanted = list(validate.replicas("the brokers", brokers))

        async def generate() -> dict[TopicPartition, tuple[int, ...]]:
            tool = await self._tool("generate_reassignment")
            return dict((await tool.generate(file, wanted, rack_aware, self._world.random))[0])

        return self._use("generate_reassignment", generate())

    @command(
        Button(PARTITION, "To another disk…", "a copy moves between the log directories of its broker",
               (REPLICAS, Field("broker", "Copy on broker", "number", "1"), DISK), call=_lay,
               needs="moves_between_log_dirs"),
        Button(TOOL, "Execute…", "--execute: start to move as the plan says",
               (PLAN, Field("throttle", "Throttle, bytes/s", "optional"),
                Field("replica_alter_log_dirs_throttle", "Between disks, bytes/s", "optional")), call=_execute),
    )  # fmt: skip
    def execute_reassignment(
        self, plan: object, throttle: int | None = None, replica_alter_log_dirs_throttle: int | None = None
    ) -> str:
        """Start a plan (JSON, or `{("orders", 0): [2, 3]}`) with the tool; what it prints.

        In JSON, `log_dirs` (`/d0`, `/d1` or `any`) says where a broker's copy is to lie (2.0 and 2.4, KIP-113).
        Throttles in bytes a second go into the configurations of brokers and topics until `verify_reassignment`.
        Raises ApiException with a broker's error, such as LOG_DIR_NOT_FOUND.
        """
        file, between_dirs = self._file(plan), replica_alter_log_dirs_throttle
        for given in (throttle, between_dirs):
            if given is not None:
                validate.integer("a throttle", given)

        async def execute() -> str:
            if throttle is not None:
                self._world.watch_configs()
            return (await (await self._tool("execute_reassignment")).execute(file, throttle, between_dirs)).text

        return self._use("execute_reassignment", execute())

    @command(Button(TOOL, "Verify…", "--verify: the progress; throttles are removed when it is done", (PLAN,)))
    def verify_reassignment(self, plan: object) -> str:
        """How far a plan has come, in the tool's words; throttles are removed when it is done."""
        file = self._file(plan)

        async def verify() -> str:
            return (await (await self._tool("verify_reassignment")).verify(file)).text

        return self._use("verify_reassignment", verify())

    @command(Button(TOOL, "List", "--list: what is moving", needs="incremental_reassignment"))
    def list_reassignments(self) -> str:
        """2.4: what is moving, as the tool prints it."""

        async def running() -> str:
            return (await (await self._tool("list_reassignments")).running()).text

        return self._use("list_reassignments", running())

    def _file(self, plan: object) -> str:
        if isinstance(plan, str):
            return plan
        given = validate.mapping("a plan", plan).items()
        targets = {validate.topic_partition(tp): validate.replicas(f"the replicas of {tp}", r) for tp, r in given}
        return write_plan(targets, self.generation)

    def _use(self, command: str, work: Coroutine[object, None, T]) -> T:
        """Do some work with the tool; refused where it would wait for ZooKeeper without end."""
        try:
            self._needs_zookeeper(command)
        except BadInput:
            work.close()
            raise
        return self._world.run(work)

    async def _tool(self, command: str) -> Tool:
        self._admin.record_request(command)
        log_dirs = LogDirs(self._call_broker, self._world.clock)
        return Tool(await self._admin.zk(), self.generation, self._alter, self._moving, log_dirs)

    def log_dirs(self) -> list[LogDirView]:
        """Where every copy lies, and where it is being moved to, by topic, partition and broker."""
        return self._world.clock.call(lambda: _log_dirs(self._world.brokers))

    # The API of 2.4

    def _goes_through_api(self, through: str | None) -> bool:
        able = self.generation.reassignment.incremental_reassignment
        if through not in (None, ZOOKEEPER, *[CONTROLLER] * able):
            allowed = f"{ZOOKEEPER} or {CONTROLLER}" if able else f"{ZOOKEEPER}; {CONTROLLER} came with 2.4 (KIP-455)"
            raise BadInput(f"a reassignment cannot go through {short(through)}; it goes through {allowed}")
        return able and through != ZOOKEEPER

    async def _alter(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, ApiError]:
        """Ask the controller, whoever that is by then; its refusals."""
        return (await self._call_controller(AlterPartitionReassignmentsRequest(targets))).refused

    async def _moving(self) -> Mapping[TopicPartition, ReplicaAssignment]:
        return (await self._call_controller(ListPartitionReassignmentsRequest())).moving

    async def _call_controller(self, request: AdminRequest) -> Response:
        """Send a request to the controller; while there is none, or it is none any more, wait and look again."""
        clock, zk = self._world.clock, await self._admin.zk()
        asked, until = CAUSE.get(), clock.now() + API_TIMEOUT
        while clock.now() < until:
            controller = await zk.controller_id()
            response = Response("CONTROLLER_NOT_AVAILABLE")
            if controller != -1:
                CAUSE.set(asked)
                try:
                    response = await self._call(controller, request)
                except ConnectionError as error:
                    response = Response("DISCONNECTED", text=str(error))
            if response.error not in RETRIED:
                return response
            await clock.sleep(RETRY_BACKOFF)
        raise Unavailable(f"no controller answered {request.name} within {API_TIMEOUT:g} s")

    async def _call_broker(self, broker: int, request: AdminRequest) -> Response:
        """The same for a tool that goes on afterwards: what it does next is not caused by this request."""
        asked = CAUSE.get()
        try:
            return await self._call(broker, request)
        finally:
            CAUSE.set(asked)

    async def _call(self, broker: int, request: AdminRequest) -> Response:
        """Send a request to a broker, once; ConnectionError if it does not answer."""
        CAUSE.set(self._world.trace.add("admin", "request", request.name, broker=broker, target="sent"))
        return (await self._world.network.call(-1, broker, request))[0]


def _refusals(refused: Mapping[TopicPartition, ApiError], asked: int) -> dict[str, str] | None:
    """What was refused, as text; ApiException if that is all."""
    if refused and len(refused) == asked:
        codes = list(dict.fromkeys(error.code for error in refused.values()))
        raise ApiException(codes[0], "; ".join(f"{tp}: {error}" for tp, error in refused.items()))
    return {str(tp): str(error) for tp, error in refused.items()} or None


def _log_dirs(brokers: Mapping[int, Broker]) -> list[LogDirView]:
    return [
        LogDirView(*tp, id, *process.log_dirs.describe([tp])[tp])
        for tp, id, process in sorted(
            ((tp, id, process) for id, process in brokers.items() for tp in process.disk.places), key=lambda at: at[:2]
        )
    ]


def _reassignments(znodes: Znodes) -> list[ReassignmentView]:
    stored = znodes.get(ReassignPartitionsZNode.path())
    targets = ReassignPartitionsZNode.decode(stored[0]) if stored else {}
    found = []
    for path, (data, *_) in sorted(znodes.items()):
        parts = path.split("/")
        if path.startswith("/brokers/topics/") and len(parts) == 4:
            for number, assignment in TopicZNode.decode(data, parts[3]).items():
                tp = TopicPartition(parts[3], number)
                target = assignment.target if assignment.is_being_reassigned else targets.get(tp)
                if target is not None:
                    state = znodes.get(TopicPartitionStateZNode.path(tp))
                    isr = TopicPartitionStateZNode.decode(state[0], partition=tp).isr if state else ()
                    waiting = tuple(r for r in target if r not in isr)
                    found.append(ReassignmentView(*tp, assignment.replicas, target, waiting))
    return found
