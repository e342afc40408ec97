"""The lab: a cluster to watch, step, rewind, break and question, with plain calls.

Every call below a `@command` is recorded; `lab.story` is the whole run as text and `Lab.replay` opens it again.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka_ctl.brokers.broker import DOWN
from kafka_ctl.brokers.identity import NOT_CONFIGURED, check_configured
from kafka_ctl.errors import BadInput, ConditionNotMet, Unavailable, check_not_in_browser, needed_for, short
from kafka_ctl.generation import Generation
from kafka_ctl.invariants import Checker, Violation
from kafka_ctl.lab import described_cluster, ending, story, validate, view
from kafka_ctl.lab.broker_commands import BrokerIdCommands
from kafka_ctl.lab.calls import calls
from kafka_ctl.lab.commands import ConfigCommands, Topics, command
from kafka_ctl.lab.concurrent_commands import ConcurrentCommands
from kafka_ctl.lab.description import Description, check_description, parse_description
from kafka_ctl.lab.election_commands import ElectionCommands
from kafka_ctl.lab.event_order import EventOrder
from kafka_ctl.lab.faults import Faults
from kafka_ctl.lab.menu import MEMORY as VIRTUAL
from kafka_ctl.lab.menu import SECONDS, TIME, Button
from kafka_ctl.lab.producer import Producer, ProducerCommands
from kafka_ctl.lab.rendering import Rendering
from kafka_ctl.lab.settings import parse_brokers, parse_config
from kafka_ctl.lab.story import Opening
from kafka_ctl.latencies import Costs
from kafka_ctl.plugins import Plugins
from kafka_ctl.simulation.clock import LIMIT, VirtualClock
from kafka_ctl.simulation.world import EMBEDDED, MEMORY, MemoryWorld, World, WorldOptions
from kafka_ctl.trace import Trace


@calls
class Lab(
    Topics,
    ConfigCommands,
    ElectionCommands,
    ProducerCommands,
    BrokerIdCommands,
    Faults,
    ConcurrentCommands,
    EventOrder,
    Rendering,
):
    """A Kafka cluster in ZooKeeper's days, small enough to look at.

    `brokers`: 3 means ids 1 to 3; or a list of ids; or {id: rack}. `zookeeper`: `memory` (virtual time, the same run
    for the same `seed`), `embedded` (a real one, started for this lab) or `host:port/chroot`. `config`: Kafka's own
    keys. `costs`: seconds of virtual time, a table or the entries that differ, `{"boot": 0.1}`. With `settle=False` the
    brokers have only just been started when the lab is returned. `described`: what the cluster begins as, see
    `from_description`. In a ZooKeeper at an address a lab lives only where nothing is but what labs have made;
    `join=True` lets it take part in what others have there, and change that; with `wire=True`, too, their brokers may
    be alive. `elections` and `rules` are functions of your own that take part, see `kafka_ctl.plugins`. With
    `wire=True` the brokers speak Kafka's protocol on 127.0.0.1 (`bootstrap_servers`), on real time, also where
    ZooKeeper is in memory.
    Raises UnknownName, BadInput or Unavailable, naming what is wrong.
    """

    def __init__(
        self,
        brokers: int | Iterable[int] | Mapping[int, str | None] = 3,
        generation: str | Generation = "2.0",
        seed: int = 0,
        zookeeper: str = MEMORY,
        config: Mapping[str, object] | None = None,
        costs: Costs | Mapping[str, float] | None = None,
        settle: bool = True,
        history: str = "lab",
        described: Description | None = None,
        join: bool = False,
        elections: Mapping[str, Callable[..., object]] | None = None,
        rules: Mapping[str, Callable[..., object]] | None = None,
        wire: bool = False,
    ) -> None:
        self.closed = True
        self.generation, self.plugins = Generation(generation), Plugins(elections, rules)
        self.seed, self.zookeeper = validate.integer("a seed", seed), validate.name("zookeeper", zookeeper)
        self._racks = parse_brokers(brokers)
        self._given_config = dict(validate.mapping("a config", {} if config is None else config))
        settings = parse_config(self.generation, config)
        if min(self._racks) < 0:
            check_configured(NOT_CONFIGURED, settings)
        self._described = None if described is None else _checked(described, self._racks)
        table = None if costs is None else costs if isinstance(costs, Costs) else Costs.of(costs)
        validate.name("history", history)
        flags = validate.flag("join", join), validate.flag("wire", wire)
        options = WorldOptions(self.generation, settings, seed, table, history, Trace)
        self._world = _open_world(zookeeper, options, *flags)
        self._world.plug(self.plugins)
        self.checker = Checker(self._world) if isinstance(self._world, MemoryWorld) else None
        self._keeper, self.closed = ending.keep(self._world), False
        self.commands: list[story.Command] = []
        self._usual_admin, self._producer = self._new_admin(), Producer(self._world)
        self._settled_first, self._costs = settle, table or Costs()
        try:
            self._open(wire)
            self._opened = len(self.trace)
            if settle:
                self._world.settle()
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_description(cls, path_or_text: str | Path, **options: Any) -> Lab:
        """A lab that begins as somebody's cluster: with those brokers, assignments, leaders and ISRs.

        `path_or_text` is what `kafka-topics --describe` printed (any Kafka from 0.10 to 3.x), or the JSON of
        `kafka-reassign-partitions`. `options` are those of `Lab`; `brokers` may add racks, or brokers that hold
        nothing. Who must be dead for the description to be true is down; what a controller of that generation would
        change at once (2.4 takes the dead out of ISRs) is changed. Raises BadInput for what cannot be read or be.
        """
        description = parse_description(path_or_text)
        return cls(**{"brokers": description.brokers} | options, described=description)

    def _open(self, wire: bool) -> None:
        """Start every broker, in a random order of arrival."""
        if wire:
            self._listen()
        for number, rack in self._racks.items():
            self._world.add_broker(number, rack)
        if self._described is not None:
            described_cluster.open_cluster(self._world, self._admin, self._described)
            return
        for broker in self._world.brokers.values():
            self._world.clock.call(functools.partial(broker.start, self._world.boot_delay()))

    def _listen(self) -> None:
        """Let the brokers that are about to be made listen to clients."""
        from kafka_ctl.wire.attach import attach

        try:
            attach(self._world, self._usual_admin)
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap_servers(self) -> str:
        """Where real clients connect, `127.0.0.1:PORT` of every broker with commas between; needs `wire=True`."""
        if self._world.listeners is None:
            raise BadInput("the brokers of this lab do not listen to clients; Lab(wire=True) makes one whose do")
        from kafka_ctl.wire.attach import bootstrap_servers

        return bootstrap_servers(self._world)

    # Time

    @command(Button(TIME, "Until quiet", "run until nothing is under way"))
    def settle(self, limit: float = LIMIT) -> None:
        """Let time pass until nothing is under way; ConditionNotMet after `limit` seconds."""
        self._world.settle(None if validate.seconds("a limit", limit) == LIMIT else limit)

    @command(Button(TIME, "For…", "let so many seconds pass", (SECONDS,)))
    def run_for(self, seconds: float) -> None:
        """Let so many seconds pass: virtual ones in memory, real ones elsewhere."""
        self._world.clock.run_for(validate.seconds("a time", seconds))

    @command(Button(TIME, "Step", "run to the next event", needs=VIRTUAL, rank=-1))
    def step(self, n: int = 1) -> None:
        """Go on until `n` more moments have left records in the trace (in memory only); stops when all is quiet.

        Raises ConditionNotMet when something goes on for an hour without leaving a record.
        """
        clock = self._world.clock
        if not isinstance(clock, VirtualClock):
            raise BadInput("step needs the memory world; real time cannot be stopped")
        for _ in range(validate.integer("a number of steps", n)):
            if clock.loop.idle:
                return
            size = len(self.trace)
            clock.drive(functools.partial(self._stepped, size, clock), self.now + LIMIT)
            if not self._stepped(size, clock):
                raise ConditionNotMet(f"no moment has left a record within {LIMIT:g} s of virtual time")

    def _stepped(self, size: int, clock: VirtualClock) -> bool:
        """Whether there are more records than so many, or all is quiet."""
        return len(self.trace) > size or clock.loop.idle

    @command(
        Button(TIME, "Until a violation", "run until an invariant is violated, or nothing is under way", needs=VIRTUAL)
    )
    def run_until_violation(self, limit: float = LIMIT) -> Violation | None:
        """Let time pass until an invariant is broken and return how; None when all is quiet first (in memory only)."""
        world = self._require_memory_world("run_until_violation")
        assert self.checker is not None
        violations, loop = self.checker.violations, world.clock.loop
        broken = len(violations)
        world.drive(lambda: len(violations) > broken or loop.idle, validate.seconds("a limit", limit))
        if loop.idle:
            world.settle()
        return violations[broken] if len(violations) > broken else None

    def run_until(self, holds: Callable[..., bool], limit: float = LIMIT) -> None:
        """Let time pass until `holds(lab)`, or `holds()`, is true; ConditionNotMet if not within `limit` seconds."""
        asked = _asked(holds, self)
        validate.seconds("a limit", limit)
        start, size, reached, clock = self.now, len(self.trace), False, self._world.clock

        def until() -> bool:
            with clock.interruptible():
                return asked()

        with clock.uninterrupted():
            try:
                reached = self._world.run_until(until, None if limit == LIMIT else limit)
            finally:
                if self._world.is_memory:  # in the story, that much time passed, and it stopped just there
                    seconds = math.ceil((self.now - start) * 1e6 + 1) / 1e6
                    self.commands.append(story.Command("run_for", (seconds,), {}, 0, size, start))
                    self._stopped()
        if not reached:
            why = f"the condition did not hold within {self._world.clock.now() - start:.3g} s"
            raise ConditionNotMet("; ".join(filter(None, (why, self._world.election_blocked_by()))))

    def __repr__(self) -> str:
        up = [id for id, b in self._world.brokers.items() if b.state != DOWN]
        try:
            who = "no controller" if self.closed else self._look(self._who_acts)
        except Unavailable:
            who = "ZooKeeper does not answer"
        return f"Lab of Kafka {self.generation}: brokers {up} of {sorted(self._world.brokers)} up, {who}, {self.trace}"

    def _who_acts(self, znodes: view.Znodes) -> str:
        acting = self._world.acting()
        if found := view.controller(znodes, acting):
            return f"controller {found.id} epoch {found.epoch}"
        idle = view.idle_controller(znodes, acting)
        named = "" if idle is None else f": /controller names broker {idle}, which does not act"
        return f"no controller{named}"

    @property
    def opening(self) -> Opening:
        """The arguments of `Lab` that open this one, as its story has them."""
        racks = self._racks if any(self._racks.values()) else [id if id >= 0 else None for id in self._racks]
        opening: Opening = {"brokers": racks, "generation": self.generation.name, "seed": self.seed}
        opening |= {"changes": self.generation.changes} if self.generation.changes else {}
        opening |= {"config": self._given_config} if self._given_config else {}
        opening |= {"costs": self._costs.changes} if self._costs.changes else {}
        opening |= {"description": described_cluster.encode(self._described)} if self._described else {}
        opening |= {"plugins": self.plugins.names} if self.plugins.names else {}
        opening |= {"settle": False} if not self._settled_first else {}
        return opening

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


def _checked(description: Description, racks: Mapping[int, object]) -> Description:
    """A description that can be, of brokers that there are."""
    whole = check_description("described", description)
    if missing := sorted(set(whole.brokers) - racks.keys()):
        raise BadInput(f"brokers={short(sorted(racks))}: the description also has {', '.join(map(str, missing))}")
    return whole


def _asked(holds: Callable[..., bool], lab: Lab) -> Callable[[], bool]:
    """The condition of `run_until` as a function of nothing; BadInput where it is none."""
    if callable(holds):
        with suppress(TypeError, ValueError):
            given = (lab,) if inspect.signature(holds).parameters else ()
            inspect.signature(holds).bind(*given)
            return functools.partial(holds, *given)
    raise BadInput(f"run_until({short(holds)}): a function of the lab, or of nothing, that says when to stop")


COMMANDS = tuple(sorted(name for name in dir(Lab) if getattr(getattr(Lab, name), "is_command", False)))
"""What a story can ask for."""


def _open_world(zookeeper: str, options: WorldOptions, join: bool, wire: bool) -> World:
    """The world for `memory`, `embedded` or an address; `join` goes with an address only, `wire` with real time."""
    if join and zookeeper in (MEMORY, EMBEDDED):
        raise BadInput(f"join=True needs a zookeeper='host:port/chroot' of others; {zookeeper!r} has nothing to join")
    if zookeeper == MEMORY and wire:
        check_not_in_browser("Lab(wire=True)")
        from kafka_ctl.simulation.real_time import MemoryInRealTime

        return MemoryInRealTime(options)
    if zookeeper == MEMORY:
        return MemoryWorld(options)
    check_not_in_browser("a real ZooKeeper")
    with needed_for("a real ZooKeeper"):
        from kafka_ctl.simulation.real_world import RealWorld

    return RealWorld(zookeeper, options, join, among=join and wire)
