"""The commands of administrators and of a producer: calls that a story records, and what they have in common.

Kafka 2.0.1: admin/ConfigCommand.scala, alterConfig; zk/AdminZkClient.scala, changeTopicConfig, changeBrokerConfig
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from kafka_ctl.assignment import MOST
from kafka_ctl.brokers.states import DOWN, RUNNING
from kafka_ctl.cluster import ReplicaAssignment, TopicPartition
from kafka_ctl.election import ElectionType
from kafka_ctl.errors import ApiException, BadInput, KafkaCtlError, Unavailable, UnknownName, short
from kafka_ctl.lab import producer, story, topic_names, validate
from kafka_ctl.lab.producer import ACKS, Produced
from kafka_ctl.lab.recorded_run import RecordedRun, rarely_collected
from kafka_ctl.lab.validate import MAX_ID
from kafka_ctl.reassign.plan import write_plan
from kafka_ctl.requests import (
    API_TIMEOUT,
    AdminRequest,
    AlterPartitionReassignmentsRequest,
    ApiError,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    Response,
    api_name,
)
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.znodes import BROKERS, TOPICS

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker
    from kafka_ctl.lab.admin import Admin
    from kafka_ctl.reassign.tool import Tool

P = ParamSpec("P")
T = TypeVar("T")
L = TypeVar("L", bound="Commands")
TOOLS = (
    *("create_topic", "add_partitions", "delete_topic", "elect_preferred", "elect_leaders", "reassign"),
    *("cancel_reassignment", "write_znode", "delete_znode", "delete_controller"),
)
"""The commands that administrators give with tools of their own."""
ZOOKEEPER, CONTROLLER = "zookeeper", "controller"
RETRY_BACKOFF = 0.1
"""Seconds between two attempts of an administrator's client."""
RETRIED = ("NOT_CONTROLLER", "DISCONNECTED", "CONTROLLER_NOT_AVAILABLE")
DELETION_OFF = """Topic {} is marked for deletion.
Note: This will have no impact if delete.topic.enable is not set to true."""
"""The tool's note."""
Elections = dict[TopicPartition, ApiError | None]
"""By partition: None where a leader was elected, else Kafka's error."""
Operation = Callable[[], Coroutine[object, None, None]]
"""The operation of one tool."""
ADMIN: ContextVar[Admin | None] = ContextVar("admin", default=None)
"""The administrator who is at work, where there are several."""


def command(method: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """A call that changes the run: refused on a closed lab, recorded for the story unless it did nothing.

    The method gets the arguments that its line in the story has. The call is refused while the lab runs or another
    thread uses it. After Ctrl-C the command has not begun, has stopped between two callbacks (the story says where), or
    is done. Its buttons, and how often walks draw it and with what, stand in `menu.txt`.
    """

    @functools.wraps(method)
    def recorded(self: L, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._require_open(method.__name__)
        self._require_idle(method.__name__)
        given = story.command(method, args, kwargs)
        clock = self.world.clock
        with clock.uninterrupted(), rarely_collected(), clock.alone():
            return self._carry_out(method, given)

    vars(recorded)["is_command"] = True
    return recorded


class Commands(RecordedRun):
    """The tools of administrators, and a producer."""

    _together: list[Operation] | None = None
    """The tools that shall work at the same time, while they are gathered."""

    def _known_racks(self) -> dict[int, str | None]:
        return {id: broker.rack for id, broker in self.world.brokers.items()}

    def _ask(self, operation: Callable[[], Awaitable[object]], name: str, **fields: object) -> None:
        async def asked() -> None:
            self._admin.record_request(name, **fields)
            await operation()

        self._needs_zookeeper(name)
        if self._together is None:
            self.world.run(asked())
        else:
            self._together.append(asked)

    @property
    def _admin(self) -> Admin:
        return ADMIN.get() or self._run.admin

    def _needs_zookeeper(self, asked: str) -> None:
        from kafka_ctl.simulation.world import MemoryWorld

        if isinstance(self.world, MemoryWorld) and not self.world.store.up:
            raise BadInput(f"ZooKeeper is down; {asked} needs it: start_zookeeper or heal first")

    def _broker(self, id: int, asked: str, running: bool) -> Broker:
        process = self._known(id)
        if process.is_paused:
            raise BadInput(f"broker {id} is paused; {asked} needs a broker that is not paused: heal, or kill it")
        if process.state != (RUNNING if running else DOWN):
            wanted = "one that is running" if running else "one that is down"
            raise BadInput(f"broker {id} is {process.state}; {asked} needs {wanted}")
        return process

    def _fault(
        self,
        name: str,
        broker: int | None,
        operation: Callable[[], object],
        topic: str | None = None,
        partition: int | None = None,
        detail: str | None = None,
    ) -> None:
        def broken() -> None:
            token = CAUSE.set(self.world.record_fault(name, broker, topic, partition, detail=detail))
            operation()
            CAUSE.reset(token)

        self.world.clock.call(broken)

    # Topics

    @command
    def create_topic(
        self,
        topic: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
        config: Mapping[str, object] | None = None,
    ) -> str | None:
        """Ask for a topic: so many partitions and copies, spread as Kafka does, or exactly this assignment.

        Returns the tool's warning where the name has a `.` or `_`. Raises BadInput with Kafka's own words where Kafka
        refuses: ApiException, with Kafka's code, for a name that is illegal, taken, or collides with another's.
        """
        if assignment is not None and (partitions is not None or replication_factor is not None):
            raise BadInput("create_topic: give an assignment, or partitions and replication_factor, not both")
        if topic != "":  # of which Kafka has something to say
            validate.name("a topic", topic)
        if assignment is None:
            partitions = validate.integer("the number of partitions", 1 if partitions is None else partitions, 0, MOST)
            given = 1 if replication_factor is None else replication_factor
            replication_factor = validate.integer("the replication factor", given)
        else:
            assignment = validate.assignment("an assignment", assignment)
        config = validate.mapping("a topic's config", {} if config is None else config)
        self._ask(
            lambda: self._admin.create_topic(
                topic, partitions, replication_factor, assignment, config, self._known_racks()
            ),
            "create_topic",
            topic=topic,
            partitions=partitions,
            replication_factor=replication_factor,
        )
        return topic_names.warning(topic)

    @command
    def add_partitions(self, topic: str, total: int) -> None:
        """Ask for more partitions, `total` altogether."""
        validate.name("a topic", topic)
        validate.integer("the number of partitions", total, 1, MOST)
        self._ask(
            lambda: self._admin.add_partitions(topic, total, self._known_racks()),
            "add_partitions",
            topic=topic,
            total=total,
        )

    @command
    def delete_topic(self, topic: str) -> str | None:
        """Ask for a topic's deletion; where `delete.topic.enable` is off, the tool's note on that."""
        validate.name("a topic", topic)
        self._ask(lambda: self._admin.delete_topic(topic), "delete_topic", topic=topic)
        return None if self.world.config["delete.topic.enable"] else DELETION_OFF.format(topic)

    # Settings

    @command
    def alter_config(self, entity_type: str, entity_name: str | int, config: Mapping[str, object]) -> None:
        """Set some settings of a topic or a broker, and remove those whose value is None; every broker is notified.

        `alter_config("topics", "orders", {"min.insync.replicas": 2})`, or `"brokers", 1` with
        `leader.replication.throttled.rate` and `follower.replication.throttled.rate` in bytes a second (KIP-73).
        All keys of the release are checked as Kafka does and kept; a lab obeys few of them.
        Raises UnknownName for another entity or key, ApiException (INVALID_CONFIG) for a wrong value, BadInput for a
        broker's key that cannot be changed while it runs, and for the removal of what is not set.
        """
        changes = validate.mapping("the settings", config)
        if entity_type == TOPICS:
            name = validate.name("a topic", entity_name)
            fields = {"topic": name}
        elif entity_type == BROKERS:
            name = str(validate.integer("a broker id", entity_name, 0, MAX_ID))
            fields = {"broker": name}
        else:
            raise UnknownName("entity type", entity_type, (TOPICS, BROKERS))

        async def alter() -> None:
            self.world.watch_configs()
            await self._admin.alter_config(entity_type, name, changes)

        written = json.dumps(dict(changes), separators=(",", ":"), default=str)
        self._ask(alter, "alter_config", **fields, config=written)

    # Elections

    @command
    def elect_leaders(self, election_type: str, partitions: Iterable[object] | None = None) -> Elections:
        """2.4: ask the controller for elections, `preferred` or `unclean`, as `kafka-leader-election.sh` does.

        Kafka 2.4.1: admin/LeaderElectionCommand.scala; clients admin/KafkaAdminClient.java, electLeaders.

        Returns an answer for each partition: None where a leader was elected, else an error with Kafka's `code`
        (ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE ...). Without `partitions`
        the call is for all partitions that the controller's broker knows; those that needed no election are left out of
        the answer. Raises ApiException (UNSUPPORTED_VERSION) in 0.10 and 2.0, Unavailable when no answer comes within
        30 s.
        """
        try:
            kind = ElectionType(validate.name("an election type", election_type).upper())
        except ValueError:
            raise UnknownName("election type", election_type, map(str.lower, ElectionType)) from None
        return self._elect(kind, partitions)

    @command
    def elect_preferred(
        self, partitions: Iterable[object] | None = None, through: str | None = None
    ) -> Elections | None:
        """Ask for the preferred leaders of `[("orders", 0)]`, or of all partitions.

        A znode asks, and nothing is answered; in 2.4 `through="controller"` asks the controller and answers as
        `elect_leaders` does (Kafka 2.4.1: admin/PreferredReplicaLeaderElectionCommand.scala).
        """
        if through not in (None, ZOOKEEPER, CONTROLLER):
            raise BadInput(f"an election cannot be requested through {through!r}; use {ZOOKEEPER} or {CONTROLLER}")
        if through == CONTROLLER:
            return self._elect(ElectionType.PREFERRED, partitions)
        wanted = None if partitions is None else validate.topic_partitions("partitions", partitions)
        self._ask(lambda: self._admin.elect_preferred(wanted), "elect_preferred")
        return None

    def _elect(self, kind: ElectionType, partitions: Iterable[object] | None) -> Elections:
        wanted = None if partitions is None else validate.topic_partitions("partitions", partitions)
        if not self.generation.election.elects_on_request:
            raise ApiException(
                "UNSUPPORTED_VERSION",
                f"Kafka {self.generation.kafka} does not support ELECT_LEADERS with an election type; that came with "
                "2.4 (KIP-460)",
            )
        found: Elections = {}
        request = ElectLeadersRequest(kind, None if wanted is None else tuple(dict.fromkeys(wanted)), API_TIMEOUT)

        async def ask() -> None:
            try:
                found.update((await self._call_controller(request)).elections)
            except Unavailable:
                raise Unavailable("Timeout waiting for election results") from None

        listed = None if wanted is None else ",".join(map(str, wanted))
        self._ask(ask, "elect_leaders", type=kind.lower(), partitions=listed)
        return found

    # Reassignments

    @command
    def reassign(self, targets: Mapping[Any, Sequence[int]], through: str | None = None) -> dict[str, str] | None:
        """Ask for other replicas: `{("orders", 0): [2, 3, 4]}`; the first is the preferred leader.

        2.4 asks the controller (`through="controller"`), which also accepts new targets for a partition that is moving.
        In 0.10 and 2.0, and with `through="zookeeper"`, the lab writes a request to ZooKeeper; the request waits until
        the last one is done. Raises ApiException, with Kafka's name for the error, when everything is refused;
        what is refused in part is returned.
        """
        wanted = validate.targets(validate.mapping("a reassignment", targets))
        if self._goes_through_api(through):
            return self._altered("reassign", wanted)
        self._ask(lambda: self._admin.reassign(wanted), "reassign", partitions=",".join(map(str, wanted)))
        return None

    @command
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
        return self._altered("cancel_reassignment", dict.fromkeys(wanted))

    def _altered(self, name: str, targets: Mapping[TopicPartition, tuple[int, ...] | None]) -> dict[str, str] | None:
        """Ask the controller for these replicas; its refusals as text, or ApiException if it refuses everything."""
        refused: dict[TopicPartition, ApiError] = {}

        def refusals() -> dict[str, str] | None:
            if refused and len(refused) == len(targets):
                code = next(iter(refused.values())).code
                raise ApiException(code, "; ".join(f"{tp}: {error}" for tp, error in refused.items()))
            return {str(tp): str(error) for tp, error in refused.items()} or None

        async def ask() -> None:
            refused.update(await self._alter(targets))
            refusals()  # in `at_once`, this error is the result of the tool

        self._ask(ask, name, partitions=",".join(map(str, targets)))
        return refusals()

    # Kafka's tool

    @command
    def generate_reassignment(
        self, topics: Iterable[str], brokers: Iterable[int], rack_aware: bool = True
    ) -> dict[TopicPartition, tuple[int, ...]]:
        """The tool's proposal for these topics on these brokers; Kafka draws the first broker, here the seed does."""
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise BadInput(f"the topics cannot be {short(topics)}; they must be a list such as ['orders']")
        file = json.dumps({"version": 1, "topics": [{"topic": validate.name("a topic", topic)} for topic in topics]})
        wanted = list(validate.replicas("the brokers", brokers))
        rng = self.world.random
        proposed, _ = self._use("generate_reassignment", lambda tool: tool.generate(file, wanted, rack_aware, rng))
        return dict(proposed)

    @command
    def execute_reassignment(
        self, plan: object, throttle: int | None = None, replica_alter_log_dirs_throttle: int | None = None
    ) -> str:
        """Start a plan (JSON, or `{("orders", 0): [2, 3]}`) with the tool; what it prints.

        In JSON, `log_dirs` (`/d0`, `/d1` or `any`) says where a broker's copy is to lie (2.0 and 2.4, KIP-113).
        Throttles in bytes a second go into the configurations of brokers and topics until `verify_reassignment`; -1 is
        none.
        Raises ApiException with a broker's error, such as LOG_DIR_NOT_FOUND.
        """
        file, between_dirs = self._file(plan), replica_alter_log_dirs_throttle
        for given in (throttle, between_dirs):
            if given is not None:
                validate.integer("a throttle", given, -1, 2**63 - 1)

        throttles = any(rate is not None and rate >= 0 for rate in (throttle, between_dirs))
        return self._use(
            "execute_reassignment", lambda tool: tool.execute(file, throttle, between_dirs), throttles
        ).text

    @command
    def verify_reassignment(self, plan: object) -> str:
        """The progress of a plan, in the tool's words; throttles are removed when it is done."""
        file = self._file(plan)
        return self._use("verify_reassignment", lambda tool: tool.verify(file)).text

    @command
    def list_reassignments(self) -> str:
        """2.4: what is moving, as the tool prints it."""
        return self._use("list_reassignments", lambda tool: tool.running()).text

    def _file(self, plan: object) -> str:
        if isinstance(plan, str):
            return plan
        if not isinstance(plan, Mapping):
            raise BadInput(f"a plan cannot be {short(plan)}; it must be JSON, or a mapping: {{('orders', 0): [2, 3]}}")
        if "partitions" in plan:
            raise BadInput("a plan as JSON must be text; give json.dumps(plan)")
        return write_plan(validate.targets(plan), self.generation)

    def _use(self, command: str, work: Callable[[Tool], Awaitable[T]], throttles: bool = False) -> T:
        """Do some work with the tool; refused where it would wait for ZooKeeper without end."""
        self._needs_zookeeper(command)

        async def used() -> T:
            from kafka_ctl.reassign.tool import LogDirs, Tool

            if throttles:
                self.world.watch_configs()
            self._admin.record_request(command)
            log_dirs = LogDirs(self._call_broker, self.world.clock)
            return await work(Tool(await self._admin.zk(), self.generation, self._alter, self._moving, log_dirs))

        return self.world.run(used())

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
        """Ask the broker that is controller by then; its refusals."""
        return (await self._call_controller(AlterPartitionReassignmentsRequest(targets))).refused

    async def _moving(self) -> Mapping[TopicPartition, ReplicaAssignment]:
        return (await self._call_controller(ListPartitionReassignmentsRequest())).moving

    async def _call_controller(self, request: AdminRequest) -> Response:
        """Send a request to the controller; while there is none, or it is none any more, wait and look again.

        Raises Unavailable if there is no answer in time: a controller drops the request when its session expires.
        """
        import asyncio

        asked, zk = CAUSE.get(), await self._admin.zk()
        with suppress(TimeoutError):
            async with asyncio.timeout(API_TIMEOUT):
                while True:
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
                    await self.world.clock.sleep(RETRY_BACKOFF)
        raise Unavailable(f"no controller answered {api_name(request)} within {API_TIMEOUT:g} s")

    async def _call_broker(self, broker: int, request: AdminRequest) -> Response:
        """The same for a tool that goes on afterwards: what it does next is not caused by this request."""
        asked = CAUSE.get()
        try:
            return await self._call(broker, request)
        finally:
            CAUSE.set(asked)

    async def _call(self, broker: int, request: AdminRequest) -> Response:
        """Send a request to a broker, once. Raises ConnectionError if it does not answer."""
        CAUSE.set(self.world.trace.add("admin", "request", api_name(request), broker=broker, target="sent"))
        return (await self.world.network.call(-1, broker, request))[0]

    # Several administrators at the same time: their tools know nothing of each other and all write to ZooKeeper

    @command
    def at_once(self, commands: list[str]) -> list[str | None]:
        """Let several tools work at the same moment, each with a ZooKeeper session of its own.

        `commands` are lines as in a story, such as `["delete_topic orders", "add_partitions orders 9"]`. Returns why
        each of them was refused, None where it was not. BadInput for what no tool does.
        """
        if not isinstance(commands, list):
            raise BadInput(f"at_once cannot be given {short(commands)}; it must be a list of commands, [...]")
        if odd := [text for text in commands if not isinstance(text, str)]:
            raise BadInput(
                f"at_once: a command cannot be {short(odd[0])}; it must be a name with its arguments, as in a story"
            )
        lines = [line for text in commands for line in story.parse(text)]
        self._together = []
        try:
            for line in lines:
                if line.name not in TOOLS:
                    raise UnknownName("tool", line.name, TOOLS)
                tool = getattr(type(self), line.name).__wrapped__
                given = story.command(tool, line.args, line.kwargs)
                tool(self, *given.args, **given.kwargs)
            operations = self._together
        finally:
            self._together = None
        return self.world.run(self._all(operations))

    async def _all(self, operations: list[Operation]) -> list[str | None]:
        tasks = [self.world.clock.loop.create_task(self._alone(operation)) for operation in operations]
        return [await task for task in tasks]

    async def _alone(self, operation: Operation) -> str | None:
        """Do the work of one tool, as an administrator of its own."""
        from kafka_ctl.lab.run import new_admin

        admin, refusal = new_admin(self.world), None
        ADMIN.set(admin)
        try:
            await operation()
        except KafkaCtlError as error:
            admin.record_refusal(error)
            refusal = str(error)
        await admin.close()
        return refusal

    # A producer

    @command
    def produce(
        self, topic: str, partition: int, records: int = 1, acks: int | str = "all", wait: bool = True, size: int = 0
    ) -> Produced | None:
        """Let a producer send the next values to the leader: 1, 2, 3 and so on, in every partition by itself.

        `acks`: `all` (or -1) is answered when every in-sync replica has the records, 1 when the leader has, 0 not at
        all. Time passes until the outcome is known; with `wait=False` the records have only been sent. `size`: bytes of
        each record; copying them takes followers time, and can be throttled. An error of the write is part of the
        outcome; UnknownName for a partition that does not exist, BadInput for what cannot be sent.
        """
        tp = TopicPartition(validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID))
        count = validate.integer("the number of records", records, 1)
        if count > producer.MOST:
            raise BadInput(f"the number of records cannot be {count}; one command produces {producer.MOST} at most")
        if isinstance(acks, bool) or not isinstance(acks, (int, str)) or acks not in ACKS:
            raise BadInput(f"acks cannot be {short(acks)}; it must be 0, 1 or all")
        bytes = validate.integer("the size of a record", size, 0, producer.LARGEST)
        self.partition(*tp)
        sending = self._run.producer.send(tp, count, ACKS[acks], bytes)
        if wait:
            return self.world.run(sending)
        self.world.clock.call(lambda: self.world.clock.spawn(sending))
        return None
