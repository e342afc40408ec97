"""The lab: a cluster to watch, step, rewind, break and question, with plain calls.

Every call below a `@command` is recorded; `lab.story` is the whole run as text and `Lab.replay` opens it again.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_ctl.brokers.identity import NOT_CONFIGURED, check_configured
from kafka_ctl.brokers.states import DOWN
from kafka_ctl.display import Bundle, display_bundle
from kafka_ctl.errors import BadInput, ConditionNotMet, Unavailable, short
from kafka_ctl.extras import needed_for
from kafka_ctl.generation import Generation
from kafka_ctl.lab import description, story, validate, view
from kafka_ctl.lab.commands import command
from kafka_ctl.lab.description import Description, check_description, parse_description
from kafka_ctl.lab.faults import Faults
from kafka_ctl.lab.story import Opening
from kafka_ctl.lab.validate import calls, parse_brokers, parse_config
from kafka_ctl.latencies import Costs
from kafka_ctl.plugins import Plugins
from kafka_ctl.ports import LIMIT
from kafka_ctl.trace import Trace
from kafka_ctl.zookeeper.store import MEMORY

if TYPE_CHECKING:
    from kafka_ctl.foreign.read_only import Auth
    from kafka_ctl.foreign.reading import Progress
    from kafka_ctl.invariants import Violation
    from kafka_ctl.lab.foreign import Origin
    from kafka_ctl.simulation.clock import VirtualClock
    from kafka_ctl.views.explain.why import Why
    from kafka_ctl.views.widget.live import Live
    from kafka_ctl.views.widget.player import Player

MOST_DRAWN = 100_000
"""Records from which a notebook still draws a lab unasked; more would keep the kernel busy for seconds."""
WIRE = "wire (False, True or the first port)"


@calls
class Lab(Faults):
    """A Kafka cluster in ZooKeeper's days, small enough to look at.

        from kafka_ctl import Lab
        lab = Lab(brokers=3)
        lab.kill(lab.controller.id)
        lab.settle()
        lab.controller.epoch  # 2

    `brokers`: 3 means ids 1 to 3; or a list of ids; or {id: rack}. `zookeeper`: `memory` (virtual time, the same run
    for the same `seed`), `embedded` (a real one, started for this lab) or `host:port/chroot`. `config`: Kafka's own
    keys. `costs`: seconds of virtual time, a table or the entries that differ, `{"boot": 0.1}`. With `settle=False` the
    brokers have only just been started when the lab is returned. `described`: what the cluster begins as, see
    `from_description`. In a ZooKeeper at an address, a lab opens only in a chroot that holds nothing but znodes of
    labs. It takes over what a killed lab left there, and removes it when it is closed; with `fresh=True` it removes
    that first, and begins with an empty chroot. `join=True` lets it take part in what others have there, and change
    that; with `wire=True`, too, their brokers may be alive. `elections` and `rules` are functions of your own that take
    part, see `kafka_ctl.plugins`. With `wire=True` the brokers speak Kafka's protocol on 127.0.0.1
    (`bootstrap_servers`), on real time, also where ZooKeeper is in memory; at free ports or, with `wire=9092`, at this
    port and those after it. Raises UnknownName, BadInput or Unavailable, naming what is wrong.
    """

    _live: Live | None = None
    origin: Origin | None = None
    """The real cluster that this lab began as, if it did."""

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
        wire: bool | int = False,
        fresh: bool = False,
    ) -> None:
        self.closed = True
        self.generation, plugins = Generation(generation), Plugins(elections, rules)
        self.seed, self.zookeeper = validate.integer("a seed", seed), validate.name("zookeeper", zookeeper)
        self._racks = parse_brokers(brokers)
        self._given_config = dict(validate.mapping("a config", {} if config is None else config))
        settings = parse_config(self.generation, config)
        if min(self._racks) < 0:
            check_configured(NOT_CONFIGURED, settings)
        self._described = None if described is None else _checked(described, self._racks)
        table = None if costs is None else costs if isinstance(costs, Costs) else Costs.of(costs)
        validate.name("history", history)
        port = None if isinstance(wire, bool) else validate.integer(WIRE, wire, 1, 65536 - len(self._racks))
        flags = validate.flag("join", join), wire is not False, validate.flag("fresh", fresh)
        from kafka_ctl.lab import run  # here: until a lab is opened, no broker is loaded

        options = run.WorldOptions(self.generation, settings, self.seed, table, history, Trace)
        world = run.open_world(zookeeper, options, *flags)
        world.plug(plugins)
        self._run = run.begin(world)
        self.closed, self._settled_first, self._costs = False, settle, table or Costs()
        try:
            self._open(wire is not False, port)
            self._run.opened = len(self.trace)
            if settle:
                self.world.settle()
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_description(cls, path_or_text: str | Path, **options: Any) -> Lab:
        """A lab that begins as a given cluster: with those brokers, assignments, leaders and ISRs.

        `path_or_text` is what `kafka-topics --describe` printed (any Kafka from 0.10 to 3.x), or the JSON of
        `kafka-reassign-partitions`. `options` are those of `Lab`; `brokers` may add racks, or brokers that hold
        nothing. A broker that must be dead for the description to be true is down. Changes that a controller of that
        generation makes at once (2.4 takes the dead out of ISRs) are made. Raises BadInput if the description cannot be
        read, or describes an impossible cluster.
        """
        if "described" in options:
            raise BadInput("from_description: it reads the description itself; it does not take described")
        described = parse_description(path_or_text)
        return cls(**{"brokers": described.brokers} | options, described=described)

    @classmethod
    def from_zookeeper(
        cls, address: str, progress: Progress | None = None, auth: Auth | None = None, **options: object
    ) -> Lab:
        """A lab in memory that begins as the real cluster at `host:port/chroot`; nothing is written there.

        Brokers, racks, topics, settings, assignments, leaders, ISRs, epochs, versions and requests that wait are read
        from ZooKeeper. `lab.origin` says which releases fit, which generation plays them, and what differs. `options`
        are those of `Lab`, but for `zookeeper`; `progress(done, known)` counts the reads; `auth=("digest",
        "user:password")` reads what an ACL gives to this user only. Raises Unavailable where no Kafka is found and for
        a cluster that is being migrated to KRaft, BadInput for znodes that cannot be understood.
        """
        if taken := {"zookeeper", "described", "join", "fresh"} & options.keys():
            raise BadInput(f"from_zookeeper makes a lab in memory; it does not take {', '.join(sorted(taken))}")
        from kafka_ctl.lab.foreign import options_of, read_cluster

        cluster = read_cluster(address, progress, auth)
        given, origin = options_of(address, cluster, options)
        lab = cls(**given)
        lab.origin = origin
        return lab

    def _open(self, wire: bool, port: int | None) -> None:
        """Start every broker, in a random order of arrival; with `wire` they listen, from `port` on if it is given."""
        if wire:
            from kafka_ctl.wire.attach import attach

            attach(self.world, self._run.admin, port)
        for number, rack in self._racks.items():
            self.world.add_broker(number, rack)
        if self._described is not None:
            description.open_cluster(self.world, self._run.admin, self._described)
            return
        for broker in self.world.brokers.values():
            self.world.clock.call(functools.partial(broker.start, self.world.boot_delay()))

    @property
    def bootstrap_servers(self) -> str:
        """The addresses for real clients: `127.0.0.1:PORT` of every broker with commas between; needs `wire=True`."""
        if self.world.listeners is None:
            raise BadInput("the brokers of this lab do not listen to clients; those of Lab(wire=True) do")
        from kafka_ctl.wire.attach import bootstrap_servers

        return bootstrap_servers(self.world)

    # Time

    @command
    def settle(self, limit: float = LIMIT) -> None:
        """Let time pass until nothing is under way; ConditionNotMet after `limit` seconds."""
        self.world.settle(None if validate.seconds("a limit", limit) == LIMIT else limit)

    @command
    def run_for(self, seconds: float) -> None:
        """Let so many seconds pass: virtual ones in memory, real ones elsewhere."""
        self.world.clock.run_for(validate.seconds("a time", seconds))

    @command
    def step(self, n: int = 1) -> None:
        """Go on until `n` more moments have left records in the trace (in memory only); stops when all is quiet.

        Raises ConditionNotMet when something goes on for an hour without leaving a record.
        """
        world = self._require_memory_world("step")
        clock = world.clock
        for _ in range(validate.integer("a number of steps", n)):
            if clock.loop.idle:
                return
            size = len(self.trace)
            clock.drive(functools.partial(self._stepped, size, clock), self.now + LIMIT)
            if not self._stepped(size, clock):
                why = f"nothing was recorded within {LIMIT:g} s of virtual time: {world.waits_for()}"
                raise ConditionNotMet(why)

    def _stepped(self, size: int, clock: VirtualClock) -> bool:
        """True if the trace has more than `size` records, or the loop is idle."""
        return len(self.trace) > size or clock.loop.idle

    @command
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
        """Let time pass until `holds(lab)`, or `holds()`, is true.

        Raises ConditionNotMet if not within `limit` seconds, BadInput where `holds` calls a command, or the lab is
        closed.
        """
        self._require_open("run_until")
        self._require_idle("run_until")
        asked = _asked(holds, self)
        validate.seconds("a limit", limit)
        start, size, reached, clock = self.now, len(self.trace), False, self.world.clock

        def until() -> bool:
            clock.asking = True
            try:
                with clock.interruptible():
                    return asked()
            finally:
                clock.asking = False

        with clock.uninterrupted(), clock.alone():
            try:
                reached = self.world.run_until(until, None if limit == LIMIT else limit)
            finally:
                if self.world.is_memory:  # in the story, that much time passed
                    later = self._require_memory_world("run_until").clock.loop.next_time
                    whole = self.now >= start + limit and later is not None and later > self.now
                    seconds = limit if whole else math.ceil((self.now - start) * 1e6 + 1) / 1e6
                    self.commands.append(story.Command("run_for", (seconds,), {}, 0, size, start))
                    if not whole:  # and it stopped just there
                        self._stopped()
        if not reached:
            why = f"{_named(holds)} did not hold within {round(min(limit, self.now - start), 3):g} s"
            raise ConditionNotMet("; ".join(filter(None, (why, self.world.stalled()))))

    # The order of events

    @command
    def order(self, numbers: list[int]) -> None:
        """From here on, wherever several events are pending, let that one come next: 0 the earliest, 1 the second ...

        One number for each such moment, the last event where there are not as many; when they are used up, what is
        earliest comes next, as usual. Only messages on one connection to ZooKeeper keep their order.
        """
        if not isinstance(numbers, list):
            raise BadInput(f"an order cannot be {short(numbers)}; it must be a list of numbers, such as [1, 0, 2]")
        given = [validate.integer("a number of an order", number) for number in numbers]
        loop = self._require_memory_world("order").clock.loop
        from kafka_ctl.lab.event_order import GivenOrder

        loop.choose = GivenOrder(loop, given) if given else None
        self.world.network.wake_leaders()

    # Pictures

    def live(self, theme: str = "auto") -> Live:
        """The living cluster as a notebook widget: click a thing to do something to it; every click is a call.

        A click acts at the moment that is shown. At an earlier step, this lab goes back to that moment first, and the
        widget keeps the run so far as a future to return to: this object is the cluster of the future that is shown,
        at its end. On a real ZooKeeper a click acts at the end. `theme` is `auto`, `light` or `dark`. The same widget
        every time, so that two displays show the same.
        """
        from kafka_ctl.views.frames import check_theme

        check_theme(theme)
        if self._live is None:
            from kafka_ctl.views.widget.live import Live

            self._live = Live(self, theme=theme)
        self._live.refresh()
        return self._live

    def why(self, seq: int, lines: bool | None = None) -> Why:
        """The explanation of the record `seq`: the rule, its inputs, its decision, and its decisions for other inputs.

        The lines that ran are marked up to record 50,000, or with `lines` never or always: for that the story is
        replayed twice, in eight times the time it took. Raises BadInput when there is no such record.
        """
        from kafka_ctl.views.explain.source import lines_of
        from kafka_ctl.views.explain.why import MOST_REPLAYED, why

        if lines is not None and not isinstance(lines, bool):
            raise BadInput(f"lines cannot be {short(lines)}; it must be True, False or None")
        most = MOST_REPLAYED if lines is None else math.inf if lines else -1
        return why(self.trace, seq, self.generation, lines_of(self), most)

    def player(self, view: str | Sequence[str] = "cluster", **options: object) -> Player:
        """A player of the whole trace: step, rewind, jump, speed. Several views are kept in step.

        `view` is `cluster`, `partition`, `replica`, `spacetime`, `zookeeper`, `queue` or `timeline`; for options such
        as `start` (the first record's `seq`) and `limit` see `views/widget/player.py`. Raises UnknownName for another
        view.
        """
        with needed_for("a player"):
            from kafka_ctl.views.explain.source import lines_of
            from kafka_ctl.views.frames import check_own
            from kafka_ctl.views.widget.player import player

        check_own("player", options)
        return player(self.trace, view, generation=self.generation.name, lines=lines_of(self), **options)

    def export(
        self, path: str | Path, view: str | Sequence[str] = "cluster", *, step: int | None = None, **options: object
    ) -> Path:
        """Write the run as a file: a film as `.svg` (no script), `.html` (the player) or `.gif`, a sheet as `.png`.

        With `step=12`, `.svg` and `.png` are that step alone, for a slide; its number is that of `player`. The living
        cluster has the same numbers until one of the two joins steps: `player` beyond 400 in a run, the living cluster
        beyond 150 in a command. A film begins where the first command was given, when the cluster had started; with
        `start=0` at the first record. A browser draws `.png` and `.gif`: seconds, and standard error says how far a
        film is. Raises BadInput for another ending or step, Unavailable when a tool is missing.
        """
        from kafka_ctl.views.explain.source import lines_of
        from kafka_ctl.views.export import export
        from kafka_ctl.views.frames import check_own

        check_own("export", options)
        if step is None and self.commands and self.commands[0].seq < len(self.trace):
            options.setdefault("start", self.commands[0].seq)
        return export(self.trace, path, view, step, generation=self.generation.name, lines=lines_of(self), **options)

    def _repr_mimebundle_(self, **options: Any) -> Bundle:
        """In a notebook: the living cluster; where no widget can run, the cluster as it is now, and in words."""
        if len(self.trace) > MOST_DRAWN:
            return {"text/plain": repr(self)}, {}
        import base64
        from html import escape

        try:
            from kafka_ctl.views.frames import film
            from kafka_ctl.views.svg import static_svg

            shown = None if self.closed else self.live()
            picture = static_svg((shown and shown.builder) or film(self.trace), caption=False)
        except (ModuleNotFoundError, Unavailable):  # nothing to draw with: words will do
            return {"text/plain": repr(self)}, {}
        coded = base64.b64encode(picture.encode()).decode()
        image = f'<img alt="{escape(repr(self))}" style="max-width:none" src="data:image/svg+xml;base64,{coded}">'
        bundle = {"text/html": image, "image/svg+xml": picture, "text/plain": repr(self)}
        if shown is None:
            return bundle, {}
        return display_bundle(shown._repr_mimebundle_(**options), bundle)

    def __repr__(self) -> str:
        up = [id for id, b in self.world.brokers.items() if b.state != DOWN]
        try:
            who = "no controller" if self.closed else self.world.look(self._who_acts)
        except Unavailable:
            who = "ZooKeeper does not answer"
        return f"Lab of Kafka {self.generation}: brokers {up} of {sorted(self.world.brokers)} up, {who}, {self.trace}"

    def _who_acts(self, znodes: view.Znodes) -> str:
        acting = self.world.acting()
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
        given = {
            "changes": self.generation.changes,
            "config": self._given_config,
            "costs": self._costs.changes,
            "description": description.encode(self._described) if self._described else None,
            "plugins": self.plugins.names,
        }
        opening |= {name: value for name, value in given.items() if value}
        return opening if self._settled_first else opening | {"settle": False}


def _checked(given: Description, racks: Mapping[int, object]) -> Description:
    """A description that can be, of brokers that there are."""
    whole = check_description("described", given)
    if missing := sorted(set(whole.brokers) - racks.keys()):
        raise BadInput(f"brokers={short(sorted(racks))}: the description also has {', '.join(map(str, missing))}")
    return whole


def _asked(holds: Callable[..., bool], lab: Lab) -> Callable[[], bool]:
    """The condition of `run_until` as a function without arguments. Raises BadInput if it is not a function."""
    if callable(holds):
        with suppress(TypeError, ValueError):
            given = (lab,) if inspect.signature(holds).parameters else ()
            inspect.signature(holds).bind(*given)
            return functools.partial(holds, *given)
    raise BadInput(
        f"run_until({short(holds)}): give a function of the lab, or without arguments, that says when to stop"
    )


def _named(holds: Callable[..., bool]) -> str:
    """The condition of `run_until` for an error: its name, a lambda as it is written, where Python knows that."""
    name = getattr(holds, "__name__", "")
    if name and name != "<lambda>":
        return name
    with suppress(AttributeError, TypeError, ValueError, IndexError):
        # Every position lies in the body, but for the empty ones of instructions that only begin or end a function.
        places = [(at[0] or 0, at[2], at[1] or 0, at[3]) for at in holds.__code__.co_positions() if at[2] != at[3]]
        (first, begin), (last, end) = min(at[:2] for at in places), max(at[2:] for at in places)
        lines = [line.encode() for line in linecache.getlines(holds.__code__.co_filename)[first - 1 : last]]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][begin:]
        return f"the condition `{' '.join(b' '.join(lines).decode().split())[:200]}`"
    return "the condition"


COMMANDS = tuple(sorted(name for name in dir(Lab) if getattr(getattr(Lab, name), "is_command", False)))
"""The commands of a story."""
