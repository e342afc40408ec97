"""The lab: a cluster to watch, step, rewind, break and question, with plain calls.

Every call below a `@command` is remembered; `lab.story` is the whole run as text and `Lab.replay` opens it again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from kafka_ctl.brokers.broker import DOWN, RUNNING, Broker, ShutdownReport
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput, NotReached, Unavailable, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.lab import story, view, world
from kafka_ctl.lab.admin import Admin
from kafka_ctl.lab.clock import LIMIT, VirtualClock
from kafka_ctl.lab.costs import Costs
from kafka_ctl.trace import CAUSE, Trace

if TYPE_CHECKING:
    from kafka_ctl.zookeeper.server import EmbeddedServer

P = ParamSpec("P")
T = TypeVar("T")


def command(method: Callable[Concatenate[Lab, P], T]) -> Callable[Concatenate[Lab, P], T]:
    """A call that changes the run: refused on a closed lab, remembered for the story when it was understood."""

    @functools.wraps(method)
    def remembered(self: Lab, *args: P.args, **kwargs: P.kwargs) -> T:
        if self.closed:
            raise BadInput(f"this lab is closed; {method.__name__} needs an open one")
        place = len(self.commands)
        self.commands.append(story.command(method, args, kwargs))
        try:
            return method(self, *args, **kwargs)
        except BadInput:
            del self.commands[place:]  # refused: nothing was done
            raise

    remembered.is_command = True  # type: ignore[attr-defined]
    return remembered


class Lab:
    """A Kafka cluster in ZooKeeper's days, small enough to look at.

    `brokers`: 3 means ids 1 to 3; or a list of ids; or {id: rack}. `zookeeper`: `memory` (virtual time, the same run
    for the same `seed`), `embedded` (a real one, started for this lab) or `host:port/chroot`. `config`: Kafka's own
    keys. With `settle=False` the brokers have only just been started when the lab is returned.
    Raises UnknownName, BadInput or Unavailable, naming what is wrong.
    """

    def __init__(
        self, brokers: int | Iterable[int] | Mapping[int, str | None] = 3, generation: str | Generation = "2.0",
        seed: int = 0, zookeeper: str = world.MEMORY, config: Mapping[str, Any] | None = None,
        costs: Costs | None = None, settle: bool = True, history: str = "lab",
    ) -> None:
        self.closed = True
        self.generation = Generation(generation)
        self.seed, self.zookeeper = seed, zookeeper
        self._racks = world.parse_brokers(brokers)
        self._given_config = dict(config or {})
        settings = world.parse_config(self.generation, config)
        self._world = world.open_world(zookeeper, self.generation, settings, seed, costs, history)
        self.closed = False
        self.commands: list[story.Command] = []
        self._admin = Admin(self._world.store, self._world.trace, self._world.random)
        self._settled_first = settle
        try:
            for broker, rack in self._racks.items():
                self._world.add_broker(broker, rack)
            self._open()
            if settle:
                self._world.settle()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Start every broker, in a random order of arrival."""
        for broker in self._world.brokers.values():
            self._world.clock.call(functools.partial(broker.start, self._world.boot_delay()))

    # Topics

    @command
    def create_topic(
        self, topic: str, partitions: int | None = None, replication_factor: int | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None, config: Mapping[str, Any] | None = None,
    ) -> None:
        """Ask for a topic: so many partitions and copies, spread as Kafka does, or exactly this assignment.

        Raises BadInput with Kafka's own words where Kafka refuses.
        """
        if assignment is not None and (partitions is not None or replication_factor is not None):
            raise BadInput("create_topic: give an assignment, or partitions and replication_factor, not both")
        if assignment is None:
            partitions, replication_factor = partitions or 1, replication_factor or 1
        self._ask(
            lambda: self._admin.create_topic(topic, partitions, replication_factor, assignment, config, self._racks),
            "create_topic", topic=topic, partitions=partitions, replication_factor=replication_factor,
        )

    @command
    def add_partitions(self, topic: str, total: int) -> None:
        """Ask for more partitions, `total` altogether."""
        self._ask(lambda: self._admin.add_partitions(topic, total), "add_partitions", topic=topic, total=total)

    @command
    def delete_topic(self, topic: str) -> None:
        """Ask for a topic's deletion."""
        self._ask(lambda: self._admin.delete_topic(topic), "delete_topic", topic=topic)

    @command
    def reassign(self, targets: Mapping[Any, Sequence[int]]) -> None:
        """Ask for other replicas: `{("orders", 0): [2, 3, 4]}`; the first is the preferred leader."""
        wanted = {_topic_partition(tp): tuple(replicas) for tp, replicas in targets.items()}
        self._ask(lambda: self._admin.reassign(wanted), "reassign", partitions=",".join(map(str, wanted)))

    @command
    def elect_preferred(self, partitions: Iterable[Any] | None = None) -> None:
        """Ask for the preferred leaders of `[("orders", 0)]`, or of all partitions."""
        wanted = None if partitions is None else [_topic_partition(tp) for tp in partitions]
        self._ask(lambda: self._admin.elect_preferred(wanted), "elect_preferred")

    def _ask(self, work: Callable[[], Any], name: str, **words: Any) -> None:
        async def asked() -> None:
            self._admin.asks(name, **words)
            await work()

        self._world.run(asked())

    # Brokers

    @command
    def kill(self, broker: int) -> None:
        """Kill the process: ZooKeeper notices when the session times out."""
        process = self._broker(broker, "kill", running=True)
        self._fault("kill", broker, process.kill)

    @command
    def start(self, broker: int) -> None:
        """Start a broker that is down."""
        process = self._broker(broker, "start", running=False)
        delay = self._world.boot_delay()
        self._fault("start", broker, lambda: process.start(delay))

    @command
    def bounce(self, broker: int) -> None:
        """Restart so fast that the controller may see the broker only gone and back again."""
        process = self._broker(broker, "bounce", running=True)

        async def restart() -> None:
            CAUSE.set(self._record_fault("bounce", broker))
            await process.stop()
            process.start(0.0)

        self._world.run(restart())

    @command
    def shutdown(self, broker: int) -> ShutdownReport:
        """Controlled shutdown: ask the controller to move leaderships away, then stop. Time passes until it is down."""
        process = self._broker(broker, "shutdown", running=True)

        async def leave() -> ShutdownReport:
            CAUSE.set(self._world.trace.add("admin", "event", "shutdown", broker=broker))
            return await process.controlled_shutdown()

        return self._world.run(leave())

    @command
    def expire_session(self, broker: int) -> None:
        """Make ZooKeeper forget the session of a broker that is alive and well."""
        process = self._broker(broker, "expire_session", running=True)
        session = process.zk.session
        if session is None:
            raise BadInput(f"broker {broker} has no session with ZooKeeper at the moment")
        self._fault("expire_session", broker, lambda: self._world.expire(session))

    @command
    def lag(self, broker: int, topic: str, partition: int) -> None:
        """Let a follower fall behind: after `replica.lag.time.max.ms` its leader takes it out of the ISR."""
        process, tp = self._broker(broker, "lag", running=True), TopicPartition(topic, partition)
        known = self.partition(topic, partition)
        if broker not in known.replicas:
            raise UnknownName(f"replica of {tp} on broker", broker, known.replicas)

        def fall_behind() -> None:
            process.replication.fall_behind(tp)
            wait = self._world.config["replica.lag.time.max.ms"] / 1000 * 1.5
            self._world.clock.spawn(self._world.clock.sleep(wait))  # so that settle waits for the leader to notice

        self._fault("lag", broker, fall_behind, topic=topic, partition=partition)

    @command
    def catch_up(self, broker: int) -> None:
        """Let a follower that fell behind keep up again in all partitions."""
        process = self._broker(broker, "catch_up", running=True)

        def keep_up() -> None:
            for tp in list(process.replication.lagging):
                process.replication.keep_up(tp)

        self._fault("catch_up", broker, keep_up)

    @command
    def delete_controller(self) -> None:
        """Remove `/controller` by hand, as an operator might: the controller resigns and all compete again."""
        from kafka_ctl.zookeeper.store import Delete
        from kafka_ctl.zookeeper.znodes import ControllerZNode

        async def delete() -> None:
            (await (await self._admin.zk()).write(Delete(ControllerZNode.path()))).checked()

        self._ask(delete, "delete_controller")

    def _broker(self, id: int, asked: str, running: bool) -> Broker:
        process = self._world.brokers.get(id)
        if process is None:
            raise UnknownName("broker", id, sorted(self._world.brokers))
        if (process.state == RUNNING) is not running and (running or process.state != DOWN):
            wanted = "one that is running" if running else "one that is down"
            raise BadInput(f"broker {id} is {process.state}; {asked} needs {wanted}")
        return process

    def _record_fault(self, name: str, broker: int, **columns: Any) -> int:
        return self._world.trace.add("fault", "fault", name, broker=broker, **columns)

    def _fault(self, name: str, broker: int, work: Callable[[], object], **columns: Any) -> None:
        def broken() -> None:
            token = CAUSE.set(self._record_fault(name, broker, **columns))
            work()
            CAUSE.reset(token)

        self._world.clock.call(broken)

    # Time

    @command
    def settle(self, limit: float = LIMIT) -> None:
        """Let time pass until nothing is under way; NotReached after `limit` seconds."""
        self._world.settle(None if limit == LIMIT else limit)

    @command
    def run_for(self, seconds: float) -> None:
        """Let so many seconds pass: virtual ones in memory, real ones elsewhere."""
        if not seconds >= 0:
            raise BadInput(f"run_for(seconds={seconds}): a number of seconds, 0 or more")
        self._world.clock.run_for(seconds)  # type: ignore[attr-defined]

    @command
    def step(self, n: int = 1) -> None:
        """Go on until `n` more moments have left records in the trace (in memory only); stops when all is quiet."""
        clock = self._world.clock
        if not isinstance(clock, VirtualClock):
            raise BadInput("step needs the memory world; real time cannot be stopped")
        for _ in range(n):
            size = len(self.trace)
            clock.drive(lambda size=size: len(self.trace) > size or clock.loop.idle)  # type: ignore[misc]

    def run_until(self, holds: Callable[[Lab], bool], limit: float = LIMIT) -> None:
        """Let time pass until `holds(lab)` is true; NotReached when it is not within `limit` seconds."""
        start = self._world.clock.now()
        reached = self._world.run_until(lambda: holds(self), None if limit == LIMIT else limit)
        if self._world.is_memory:  # in the story, that much time passed
            self.commands.append(story.Command("run_for", (), {"seconds": self._world.clock.now() - start}))
        if not reached:
            raise NotReached(f"the condition did not hold within {self._world.clock.now() - start:.3g} s")

    @property
    def now(self) -> float:
        """Seconds since the lab was opened."""
        return self._world.clock.now()

    # Looking

    @property
    def trace(self) -> Trace:
        return self._world.trace

    @property
    def config(self) -> Mapping[str, Any]:
        """Kafka's configuration of every broker."""
        return dict(self._world.config)

    def znodes(self) -> view.Znodes:
        """{path: (data, version, ephemeral owner)}, sorted by path."""
        return self._look(lambda znodes: znodes)

    def _look(self, at: Callable[[view.Znodes], T]) -> T:
        """Look at ZooKeeper, and at the actors while none of them moves."""

        async def look() -> T:
            return at(await self._world.store.dump())

        return self._world.run(look())

    @property
    def zookeeper_address(self) -> str | None:
        """Where other programs find this lab's ZooKeeper, `host:port/chroot`; None in memory."""
        return self._world.address

    @property
    def zookeeper_server(self) -> EmbeddedServer | None:
        """The embedded server, to be killed and restarted; None unless the lab started one."""
        return self._world.server

    @property
    def controller(self) -> view.ControllerView | None:
        """The broker that `/controller` names and that acts as controller; None while there is none."""
        return self._look(lambda znodes: view.controller(znodes, self._world.acting()))

    def partitions(self) -> list[view.PartitionView]:
        """Every partition, by topic and number."""
        return self._look(lambda znodes: [p for _, p in sorted(view.partitions(znodes, self._world.acting()).items())])

    def partition(self, topic: str, partition: int) -> view.PartitionView:
        """One partition; UnknownName when there is none of that name."""
        found = {(p.topic, p.partition): p for p in self.partitions()}
        if (topic, partition) not in found:
            raise UnknownName("partition", f"{topic}-{partition}", (f"{t}-{n}" for t, n in found))
        return found[topic, partition]

    def replicas(self) -> list[view.ReplicaView]:
        """Every replica the acting controller knows, by topic, partition and broker; none without a controller."""
        return self._world.clock.call(lambda: view.replicas(self._world.acting()))

    @property
    def brokers(self) -> dict[int, view.BrokerView]:
        """What each broker does and knows, by id."""
        processes = self._world.brokers
        return self._world.clock.call(lambda: {id: view.broker(process) for id, process in processes.items()})

    def __repr__(self) -> str:
        up = [id for id, b in self._world.brokers.items() if b.state != DOWN]
        try:
            controller = self.controller if not self.closed else None
            who = f"controller {controller.id} epoch {controller.epoch}" if controller else "no controller"
        except Unavailable:
            who = "ZooKeeper does not answer"
        return f"Lab of Kafka {self.generation}: brokers {up} of {sorted(self._world.brokers)} up, {who}, {self.trace}"

    # Stories

    @property
    def story(self) -> str:
        """The run as text: `Lab.replay(lab.story)` opens it again, in memory exactly."""
        racks = self._racks if any(self._racks.values()) else list(self._racks)
        opening: dict[str, Any] = {"brokers": racks, "generation": self.generation.name, "seed": self.seed}
        opening |= {"changes": self.generation.changes} if self.generation.changes else {}
        opening |= {"config": self._given_config} if self._given_config else {}
        opening |= {"settle": False} if not self._settled_first else {}
        return "\n".join(map(str, [story.Command("lab", (), opening), *self.commands])) + "\n"

    @classmethod
    def replay(cls, text: str | Path, zookeeper: str = world.MEMORY) -> Lab:
        """Open a story (text or file) and run its commands; BadInput names the line that cannot be run."""
        lab: Lab | None = None
        for line in story.parse(story.read(text)):
            if lab is None:
                lab = cls(**story.opening(line), zookeeper=zookeeper)
            else:
                lab.do(line)
        if lab is None:
            raise BadInput("the story is empty; it begins with a line such as: lab brokers=3 generation=2.0 seed=7")
        return lab

    def do(self, line: story.Command) -> object:
        """Run one command of a story."""
        method = getattr(type(self), line.name, None)
        if not getattr(method, "is_command", False):
            raise UnknownName(f"command (line {line.line})", line.name, COMMANDS)
        try:
            return method(self, *line.args, **line.kwargs)  # type: ignore[misc]
        except TypeError as error:
            raise BadInput(f"line {line.line}: {line}: {error}") from None

    # The end

    def close(self) -> None:
        """Stop everything this lab started and remove what it made; closing twice is harmless."""
        if not self.closed:
            self.closed = True
            self._world.close()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _topic_partition(given: Any) -> TopicPartition:
    """A topic-partition given as a pair or as text, `orders-0`."""
    topic, number = given.rsplit("-", 1) if isinstance(given, str) and "-" in given else given
    if not isinstance(topic, str) or not str(number).isdigit():
        raise BadInput(f"{given!r} names no partition; a pair such as ('orders', 0) or text such as 'orders-0' does")
    return TopicPartition(topic, int(number))


COMMANDS = tuple(sorted(name for name, value in vars(Lab).items() if getattr(value, "is_command", False)))
"""What a story can ask for."""
