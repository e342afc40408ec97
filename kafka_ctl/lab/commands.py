"""The commands of a lab: calls that a story records, and what they have in common; those of topics and settings.

Kafka 2.0.1: admin/ConfigCommand.scala, alterConfig; zk/AdminZkClient.scala, changeTopicConfig, changeBrokerConfig
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from typing import Concatenate, ParamSpec, TypeVar, Unpack

from kafka_ctl.brokers.broker import DOWN, RUNNING, Broker
from kafka_ctl.errors import BadInput, ConditionNotMet, KafkaCtlError, Unavailable, UnknownName, short
from kafka_ctl.generation import Generation
from kafka_ctl.lab import menu, story, topic_names, validate
from kafka_ctl.lab.admin import Admin
from kafka_ctl.lab.calls import name_call
from kafka_ctl.lab.draw import PARTITIONS, Drawn, with_
from kafka_ctl.lab.inspection import Inspection
from kafka_ctl.lab.menu import BROKER, CLUSTER, PARTITION, WHEN_UP, Button, Call, Field, Given
from kafka_ctl.lab.settings import MAX_ID
from kafka_ctl.lab.topic_config import CHECKS, OF_BROKERS
from kafka_ctl.simulation.world import MemoryWorld
from kafka_ctl.trace.record import CAUSE, Columns

P = ParamSpec("P")
T = TypeVar("T")
L = TypeVar("L", bound="Commands")


def command(
    *buttons: Button, drawn: Drawn | None = None
) -> Callable[[Callable[Concatenate[L, P], T]], Callable[Concatenate[L, P], T]]:
    """A call that changes the run: refused on a closed lab, recorded for the story unless it did nothing.

    It is given what its line in the story says. Ctrl-C finds it not begun, stopped between two callbacks (the story
    says where), or done. `buttons`: where it can be clicked. `drawn`: how often walks draw it, and with what.
    """

    def made(method: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
        @functools.wraps(method)
        def recorded(self: L, *args: P.args, **kwargs: P.kwargs) -> T:
            if self.closed:
                raise BadInput(f"this lab is closed; {method.__name__} needs an open one")
            given = story.command(method, args, kwargs)
            with self._world.clock.uninterrupted():
                return self._carry_out(method, given)

        vars(recorded).update(is_command=True, buttons=buttons, drawn=drawn)
        return recorded

    return made


Operation = Callable[[], Coroutine[object, None, None]]
"""What one tool does."""
ADMIN: ContextVar[Admin | None] = ContextVar("admin", default=None)
"""The administrator who is at work, where there are several."""


class Commands(Inspection):
    """What every part of a lab needs to carry out commands."""

    closed: bool
    zookeeper: str
    """`memory`, `embedded`, or the address of a ZooKeeper."""
    generation: Generation
    commands: list[story.Command]
    _usual_admin: Admin
    _together: list[Operation] | None = None
    """Where tools that are to work at the same time are gathered."""

    def _carry_out(self, method: Callable[..., T], given: story.Command) -> T:
        """Carry a command out and record how far it came."""
        place, world = len(self.commands), self._world
        given = given._replace(seq=len(self.trace), time=self.now)
        self.commands.append(given)
        before = world.callbacks_run, len(self.trace)
        try:
            return method(self, *given.args, **given.kwargs)
        except (ConditionNotMet, Unavailable):
            raise  # understood, but it did not come to an end
        except BaseException as error:
            if world.clock.stopped_by(error):
                self._stopped()
            elif world.callbacks_run is None or (world.callbacks_run, len(self.trace)) == before:
                del self.commands[place:]  # refused: nothing was done
                if isinstance(error, BadInput):
                    name_call(error, method.__name__)
            elif isinstance(error, KafkaCtlError):
                self.commands[place] = given.refused()
            raise

    def _new_admin(self) -> Admin:
        """Another administrator, with a session of its own."""
        world = self._world
        return Admin(world.store, world.trace, world.random, self.generation, world.plugins)

    def _known_racks(self) -> dict[int, str | None]:
        return {id: broker.rack for id, broker in self._world.brokers.items()}

    def _stopped(self) -> None:
        """Record that the last command was interrupted, and after which record (in memory)."""
        if self._world.callbacks_run is not None:
            here = max(0, len(self.trace) - 1), self._world.callbacks_run
            self.commands.append(story.Command(story.UNTIL, here, {}, 0, len(self.trace), self.now))

    def _ask(self, operation: Callable[[], Awaitable[object]], name: str, **fields: object) -> None:
        async def asked() -> None:
            self._admin.record_request(name, **fields)
            await operation()

        self._needs_zookeeper(name)
        if self._together is None:
            self._world.run(asked())
        else:
            self._together.append(asked)

    @property
    def _admin(self) -> Admin:
        return ADMIN.get() or self._usual_admin

    def _needs_zookeeper(self, asked: str) -> None:
        if isinstance(self._world, MemoryWorld) and not self._world.store.up:
            raise BadInput(f"ZooKeeper is down; {asked} needs it: start_zookeeper or heal first")

    def _require_memory_world(self, asked: str) -> MemoryWorld:
        if not isinstance(self._world, MemoryWorld):
            raise BadInput(f"{asked} needs the memory world, where time is virtual")
        return self._world

    def _broker(self, id: int, asked: str, running: bool) -> Broker:
        process = self._known(id)
        if process.paused_since != math.inf:
            raise BadInput(f"broker {id} is paused; {asked} needs one that is not: heal, or kill it")
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
        **columns: Unpack[Columns],
    ) -> None:
        def broken() -> None:
            token = CAUSE.set(self._world.record_fault(name, broker, topic, partition, **columns))
            operation()
            CAUSE.reset(token)

        self._world.clock.call(broken)


DELETION_OFF = """Topic {} is marked for deletion.
Note: This will have no impact if delete.topic.enable is not set to true."""


MOST = 200_000
"""The most partitions a topic can be asked to have: as many as Kafka's developers advised for a whole cluster."""


def _create(_: str, given: Given) -> Call:
    return (menu.text(given, "topic"),), {n: menu.number(given, n) for n in ("partitions", "replication_factor")}


class Topics(Commands):
    """What an administrator asks for."""

    @command(
        Button(CLUSTER, "Create topic…", "so many partitions, each with so many replicas",
               (Field("topic", "Topic", "text", "orders"), Field("partitions", "Partitions", "number", "4"),
                Field("replication_factor", "Replication factor", "number", "3")), call=_create, rank=-3),
        drawn=Drawn(6, lambda d: with_(
            d.topic(), partitions=d.rng.randint(1, PARTITIONS), replication_factor=d.rng.randint(1, d.brokers))),
    )  # fmt: skip
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

    @command(
        Button(PARTITION, "Add partitions…", "its topic gets more partitions",
               (Field("total", "Partitions in total", "number"),),
               call=lambda name, given: ((menu.partition(name)[0], menu.number(given, "total")), {})),
        drawn=Drawn(2, lambda d: with_(d.topic(), d.rng.randint(2, PARTITIONS))),
    )  # fmt: skip
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

    @command(
        Button(PARTITION, "Delete topic", "all replicas of its topic are deleted",
               call=lambda name, _: ((menu.partition(name)[0],), {})),
        drawn=Drawn(3, lambda d: with_(d.topic())),
    )  # fmt: skip
    def delete_topic(self, topic: str) -> str | None:
        """Ask for a topic's deletion; where `delete.topic.enable` is off, the tool's note on that."""
        validate.name("a topic", topic)
        self._ask(lambda: self._admin.delete_topic(topic), "delete_topic", topic=topic)
        return None if self._world.config["delete.topic.enable"] else DELETION_OFF.format(topic)


TOPICS, BROKERS = "topics", "brokers"


RATE = Field("key", "Rate", "choice", "|".join(OF_BROKERS))
SETTING = Field("key", "Setting", "choice", "|".join(CHECKS))


def _rate(name: str, given: Given) -> Call:
    return (BROKERS, int(name), {RATE.choice(given): menu.text(given, "rate") or None}), {}


def _setting(name: str, given: Given) -> Call:
    return (TOPICS, menu.partition(name)[0], {SETTING.choice(given): menu.text(given, "value") or None}), {}


class ConfigCommands(Commands):
    """The part of a lab that changes settings."""

    @command(
        Button(BROKER, "Throttle…", "a rate in bytes a second for its throttled replicas; empty removes it",
               (RATE, Field("rate", "Bytes/s", "text", "10000000")), WHEN_UP, _rate),
        Button(PARTITION, "Change setting…", "a setting of its topic, on every broker; empty removes it",
               (SETTING, Field("value", "Value", "text", "true")), call=_setting),
    )  # fmt: skip
    def alter_config(self, entity_type: str, entity_name: str | int, config: Mapping[str, object]) -> None:
        """Set some settings of a topic or a broker, and remove those whose value is None; every broker is notified.

        `alter_config("topics", "orders", {"min.insync.replicas": 2})`, or `"brokers", 1` with
        `leader.replication.throttled.rate` and `follower.replication.throttled.rate` in bytes a second (KIP-73).
        Raises UnknownName for another entity or key, ApiException (INVALID_CONFIG) for a wrong value, BadInput for the
        removal of what is not set.
        """
        changes = validate.mapping("the settings", config)
        if entity_type == TOPICS:
            name = validate.name("a topic", entity_name)
            fields = {"topic": name}
        elif entity_type == BROKERS:
            name = str(validate.integer("a broker id", entity_name, 0, MAX_ID))
            fields = {"broker": name}
        else:
            raise UnknownName("entity type", short(entity_type), (TOPICS, BROKERS))

        async def alter() -> None:
            self._world.watch_configs()
            await self._admin.alter_config(entity_type, name, changes)

        written = json.dumps(dict(changes), separators=(",", ":"), default=str)
        self._ask(alter, "alter_config", **fields, config=written)
