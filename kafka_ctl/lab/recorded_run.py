"""A recorded run of a cluster: what can be seen of it, its commands as a story, and travel to any of its moments."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

from kafka_ctl.balance import BrokerBalance
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.display import Rows
from kafka_ctl.errors import BadInput, ConditionNotMet, KafkaCtlError, Unavailable, UnknownName, short
from kafka_ctl.generation import Config, Generation
from kafka_ctl.lab import story, validate, view
from kafka_ctl.lab.description import with_live
from kafka_ctl.lab.story import PAGE, REFUSED, UNTIL, Command, Link, Opening
from kafka_ctl.lab.time_travel import OPEN, OPENED, Part, Progress, Report, Stop, moment, parts, parts_in_time, run
from kafka_ctl.lab.validate import MAX_ID
from kafka_ctl.plugins import Plugins
from kafka_ctl.ports import Halted
from kafka_ctl.trace import Trace
from kafka_ctl.trace.record import extent
from kafka_ctl.zookeeper.store import MEMORY, Stat

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker
    from kafka_ctl.invariants import Checker, Violation
    from kafka_ctl.lab.metrics import MetricValue
    from kafka_ctl.lab.run import RunState
    from kafka_ctl.simulation.world import MemoryWorld, World
    from kafka_ctl.zookeeper.real.server import EmbeddedServer

T = TypeVar("T")
L = TypeVar("L", bound="RecordedRun")
SAME_MOMENT = 0.1
"""Seconds within which a command was given at the moment of a record; players write no shorter pause."""

RARELY = (1_000_000, 50, 1_000)
"""Thresholds of Python's garbage collector while many records are made, which stay."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Make garbage collection rare in this block; with Python's own thresholds it takes a third of a large run's time.

    A threshold that the user set stays if it makes collection as rare, or switches it off. A threshold set in the block
    stays, too.
    """
    before = gc.get_threshold()
    often = 0 < before[0] < RARELY[0]  # else an outer block, or one in another thread, restores them
    if often:
        gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        if often and gc.get_threshold()[0] == RARELY[0]:
            gc.set_threshold(*before)


class RecordedRun:
    """The part of a lab that reads its state, keeps its story, and goes to any point of the story."""

    closed: bool
    generation: Generation
    seed: int
    zookeeper: str
    """`memory`, `embedded`, or the address of a ZooKeeper."""
    _settled_first: bool
    _run: RunState

    @property
    def plugins(self) -> Plugins:
        """Functions of your own that take part."""
        return self._run.world.plugins

    @property
    def commands(self) -> list[Command]:
        """The commands given so far, each with the moment at which it was given."""
        return self._run.commands

    @property
    def checker(self) -> Checker | None:
        """The checker of the invariants; None on real time."""
        return self._run.checker

    @property
    def opening(self) -> Opening:
        """The arguments of `Lab` that open this one, as its story has them."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop everything this lab started and remove what it made; closing twice is harmless."""
        with self.world.clock.alone() if self.world.is_memory else nullcontext():
            if not self.closed:
                self.closed = True
                self.world.close()

    def __reduce__(self) -> NoReturn:
        raise BadInput("a lab cannot be copied or pickled; fork() makes another one, and its story is a text")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Looking

    @property
    def world(self) -> World:
        """The world of the lab: `clock`, ZooKeeper's `store`, `network`, the `brokers` and the `acting` controller.

        For invariants, searches and tests of one's own. A story does not have changes that are made there.
        """
        return self._run.world

    @property
    def now(self) -> float:
        """Seconds since the lab was opened."""
        return self.world.clock.now()

    @property
    def quiet(self) -> bool | None:
        """True if nothing is under way; None on real time, where only `settle` finds out."""
        return self.world.idle

    @property
    def trace(self) -> Trace:
        """Everything that has happened so far, as records."""
        trace = self.world.trace
        assert isinstance(trace, Trace)
        return trace

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The invariants broken so far, each once for each thing it is about; `known` is the ticket of a real bug."""
        return tuple(self.checker.violations) if self.checker else ()

    @property
    def config(self) -> Config:
        """Kafka's configuration of every broker."""
        return self.world.config.copy()

    def znodes(self) -> view.ZnodeTable:
        """{path: (data, version, ephemeral owner)}, sorted by path."""
        return self.world.look(view.ZnodeTable)

    def stat(self, path: str) -> Stat:
        """The Stat of a znode: zxids, times and versions. Raises UnknownName for a path that does not exist."""
        found = self.world.stat(path) if isinstance(path, str) else None
        if found is None:
            raise UnknownName("znode", path, list(self.znodes()))
        return found

    def _known(self, id: int) -> Broker:
        return self.world.broker(validate.integer("a broker id", id))

    @property
    def zookeeper_address(self) -> str | None:
        """The address of this lab's ZooKeeper for other programs, `host:port/chroot`; None in memory."""
        return self.world.address

    @property
    def zookeeper_server(self) -> EmbeddedServer | None:
        """The embedded server, to be killed and restarted; None unless the lab started one."""
        return self.world.server

    @property
    def controller(self) -> view.ControllerView | None:
        """The broker that `/controller` names and that acts as controller; None while there is none.

        A broker that was written there by hand was not elected: it has no epoch and does nothing.
        """
        return self.world.look(lambda znodes: view.controller(znodes, self.world.acting()))

    def controller_memory(self) -> view.ControllerMemory | None:
        """The requests that the acting controller knows of, which may differ from those in ZooKeeper; None without one.

        Kafka 2.0.1: controller/ControllerContext.scala, partitionsBeingReassigned; TopicDeletionManager.scala,
        topicsToBeDeleted
        """
        return self.world.clock.call(lambda: view.memory(self.world.acting()))

    def metrics(self, broker: int) -> dict[str, MetricValue]:
        """The metrics of a broker as in JMX, by Kafka's names: gauges of its controller and its replicas, and meters.

        From 2.0 on also its event queue, with times in milliseconds. Gauges have the values that Kafka computes: those
        of the controller are 0 where the broker does not act, and in 2.0 and 2.4 as old as the last event.
        `kafka_ctl.lab.metrics.METRICS` has the source of each. UnknownName for a broker that is not there.
        """
        from kafka_ctl.lab.metrics import metrics

        process = self._known(broker)
        return self.world.clock.call(lambda: metrics(process, self.trace))

    def identity(self, broker: int) -> view.IdentityView:
        """The sources of a broker's id, and their contradictions. Raises UnknownName for an unknown broker."""
        process = self._known(broker)
        return self.world.look(lambda znodes: view.identity_of(process, znodes))

    def partitions(self) -> Rows[view.PartitionView]:
        """Every partition, by topic and number."""
        found = self.world.look(lambda znodes: view.partitions(znodes, self.world.acting()))
        return Rows(found[tp] for tp in sorted(found))

    def partition(self, topic: str, partition: int) -> view.PartitionView:
        """One partition. Raises UnknownName if there is none of that name."""
        asked = validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID)
        found = {(p.topic, p.partition): p for p in self.partitions()}
        if asked not in found:
            raise UnknownName("partition", f"{topic}-{partition}", (f"{t}-{n}" for t, n in found))
        return found[asked]

    def balance(self) -> Rows[BrokerBalance]:
        """The findings and acts of an automatic rebalance that would run now, for each broker.

        It says why partitions are left out, which Kafka logs nowhere; also where the rebalance is switched off. An
        empty list without a controller.
        """
        from kafka_ctl.controller.rebalance import brokers_balance

        acting = self.world.acting()
        return Rows(self.world.clock.call(lambda: brokers_balance(acting)) if acting is not None else ())

    def controller_leadership(self, topic: str, partition: int) -> LeaderAndIsr | None:
        """The leader and ISR of a partition in the acting controller's context; None without either."""
        tp = TopicPartition(validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID))
        acting = self.world.acting()
        return None if acting is None else self.world.clock.call(lambda: acting.context.leadership.get(tp))

    def replicas(self) -> Rows[view.ReplicaView]:
        """Every replica the acting controller knows, by topic, partition and broker; none without a controller."""
        return Rows(self.world.clock.call(lambda: view.replicas(self.world.acting())))

    @property
    def brokers(self) -> view.BrokerTable:
        """The state, the memory and the partitions of each broker, by id."""
        processes = sorted(self.world.brokers.items())
        return view.BrokerTable(self.world.clock.call(lambda: {id: view.broker(process) for id, process in processes}))

    def logs(self) -> Rows[view.LogView]:
        """The logs of all replicas that were ever written to, in the order of topic, partition and broker."""
        return Rows(self.world.clock.call(lambda: view.logs(self.world.brokers)))

    def log(self, topic: str, partition: int) -> Rows[view.LogView]:
        """The logs of one partition, by broker; none before the first produce.

        Raises UnknownName if the partition does not exist.
        """
        tp = TopicPartition(validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID))
        found = Rows(log for log in self.logs() if log[:2] == tp)
        if not found:
            self.partition(topic, partition)
        return found

    def reassignments(self) -> Rows[view.ReassignmentView]:
        """The reassignments in ZooKeeper, by topic and partition."""
        return Rows(self.world.look(view.reassignments))

    def log_dirs(self) -> Rows[view.LogDirView]:
        """The log directory of every copy, and the one to which it is being moved, by topic, partition and broker."""
        return Rows(self.world.clock.call(lambda: view.log_dirs(self.world.brokers)))

    # Its commands

    def _carry_out(self, method: Callable[..., T], given: story.Command) -> T:
        """Carry a command out and record how far it came."""
        place, world = len(self.commands), self.world
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
                    validate.name_call(error, method.__name__)
            elif isinstance(error, KafkaCtlError):
                self.commands[place] = given.refused()
            raise

    def _stopped(self) -> None:
        """Record that the last command was interrupted, and after which record (in memory)."""
        if self.world.callbacks_run is not None:
            here = max(0, len(self.trace) - 1), self.world.callbacks_run
            self.commands.append(story.Command(story.UNTIL, here, {}, 0, len(self.trace), self.now))

    def _require_memory_world(self, asked: str) -> MemoryWorld:
        from kafka_ctl.simulation.world import MemoryWorld

        if not isinstance(self.world, MemoryWorld):
            raise BadInput(f"{asked} needs a lab with ZooKeeper in memory, where time is virtual")
        return self.world

    def _require_open(self, asked: str) -> None:
        if self.closed:
            raise BadInput(f"this lab is closed; {asked} needs an open lab")

    def _require_idle(self, asked: str) -> None:
        """A command within another would not be where the story has it: the replay would be another run."""
        with self.world.clock.alone():
            if self.world.clock.in_callback:
                raise BadInput(
                    f"{asked} cannot be called while the lab runs: by a condition of run_until, by a listener of the "
                    "trace, or by a function that the lab was given"
                )

    # Its story

    @property
    def story(self) -> str:
        """The run as text: `Lab.replay(lab.story)` opens it again, in memory exactly."""
        return self._written(self.commands)

    def _written(self, commands: Sequence[Command]) -> str:
        return "\n".join(map(str, [Command(OPEN, (), self.opening), *commands])) + "\n"

    def link(self, step: int | None = None) -> str:
        """The run as an address within a site of `kafka-ctl site`, `try.html#story=...`: opened there, it is played.

        `step` is the picture to begin with, 0 for the first; None is the last. Raises BadInput where a story does not
        repeat: on real time, and with functions of your own.
        """
        self._require_memory_world("a link")
        if self.plugins.given:
            raise BadInput(f"a link cannot hold functions: {', '.join(self.plugins.given)}")
        at = None if step is None else validate.integer("a step", step)
        return f"{PAGE}#{Link(self.story, at).fragment()}"

    @classmethod
    def replay(
        cls,
        text: str | Path,
        zookeeper: str = MEMORY,
        until: int | None = None,
        *,
        join: bool = False,
        elections: Mapping[str, Callable[..., object]] | None = None,
        rules: Mapping[str, Callable[..., object]] | None = None,
        wire: bool | int = False,
    ) -> Self:
        """Open a story (text or file) and run its commands; with `until`, no further than that record of the trace.

        `zookeeper`, `join`, `elections`, `rules` and `wire` are those of `Lab`; functions that the story names, which
        it cannot hold, have to be given again. A condition that was not met when the story was made (ConditionNotMet)
        is not met again, and the run goes on as it did then, unless that was its last command. Raises BadInput for a
        line that cannot be run, and when there is no record `until`.
        """
        last = None if until is None else validate.integer("until", until)
        plugins = Plugins(elections, rules)
        return cls._replayed(text, last, None, plugins, True, zookeeper=zookeeper, join=join, wire=wire)

    @classmethod
    def _replayed(
        cls,
        text: str | Path,
        until: int | None,
        progress: Progress | None,
        plugins: Plugins,
        raises: bool = False,
        **options: object,
    ) -> Self:
        lines = list(story.parse(story.read(text)))
        if not lines:
            raise BadInput("the story is empty; it begins with a line such as: lab brokers=3 generation=2.0 seed=7")
        opening = story.opening(lines[0], plugins) | options
        lab = cls._played(opening, list(parts(lines[1:], until)), progress, raises)
        if until is not None and len(lab.trace) <= until:
            lab.close()
            raise BadInput(f"until={until}: this story ends with record {len(lab.trace) - 1}")
        return lab

    def _again(self, text: str, until: int | None = None, progress: Progress | None = None) -> Self:
        """A lab with the plug-ins and the history of this one, in which a story has been played."""
        return self._replayed(text, until, progress, self.plugins, history=self.trace.history)

    @classmethod
    @rarely_collected()
    def _played(
        cls, opening: Opening, played: list[Part], progress: Progress | None = None, raises: bool = False
    ) -> Self:
        """A lab in which these parts have been played; with `raises`, ConditionNotMet where the last was not met."""
        settles = opening.get("settle", True)
        whole = all(stop == Stop() for _, stop in played)
        try:
            lab = cls(**opening | {"settle": settles and whole})
        except BadInput as error:
            error.args = (error.unnamed or str(error),)  # the constructor was not called
            raise
        lab._settled_first = settles
        listeners = [] if progress is None else [progress]
        lab.trace.listeners.extend(listeners)
        try:
            if whole:
                run(lab.world, lab.do, played[0][0], raises)
            else:
                played[0][0][:0] = [OPENED] * settles
                for number, (lines, stop) in enumerate(played, 1):
                    lab._play(lines, stop, raises and number == len(played))
        except BaseException:
            lab.close()
            raise
        for listener in listeners:
            lab.trace.listeners.remove(listener)
        return lab

    def _play(self, lines: list[Command], stop: Stop, raises: bool) -> None:
        """Run commands up to their stop, which becomes a line of the story.

        A stop with a number of callbacks or of seconds is in the last command: those before came to their ends.
        """
        clock, records = self._require_memory_world("a run that stops").clock, self.trace.records
        last, callbacks_run, seconds = stop
        if callbacks_run or seconds < math.inf:
            run(self.world, self.do, lines[:-1], raises=False)
            lines = lines[-1:]
        end, loop = clock.now() + seconds, clock.loop

        def halt() -> bool:
            return (len(records) > last and loop.callbacks_run >= callbacks_run) or (loop.next_time or 0.0) > end

        clock.halt = halt
        try:
            run(self.world, self.do, lines, raises)
        except Halted:
            self._stopped()
            if last < math.inf and not callbacks_run:  # the first callback known to have left the record
                self.commands[-1] = self.commands[-1]._replace(args=(len(records) - 1,))
        finally:
            clock.halt = None

    def do(self, line: Command | str) -> object:
        """Run one command of a story, as text or as parsed; one that was refused may be refused again.

        Raises UnknownName for a text that is not a command, BadInput for a text that is not one line.
        """
        line = line if isinstance(line, Command) else _only(line)
        refused, line = line.name == REFUSED and bool(line.args), line.asked
        method = getattr(type(self), str(line.name), None)
        if method is None or not getattr(method, "is_command", False):
            known = [name for name in dir(type(self)) if getattr(getattr(type(self), name), "is_command", False)]
            raise UnknownName(f"command (line {line.line})" if line.line else "command", line.name, known)
        try:
            return method(self, *line.args, **line.kwargs)
        except KafkaCtlError as error:
            if refused and not isinstance(error, (ConditionNotMet, Unavailable)):
                return None
            if isinstance(error, BadInput) and line.line:
                error.args, error.unnamed = (f"line {line.line}: {error.unnamed or error}",), None
            raise

    vars(do)["names_itself"] = True

    def fork(
        self,
        at: int | None = None,
        generation: str | Generation | None = None,
        seed: int | None = None,
        config: Mapping[str, object] | None = None,
        progress: Report | None = None,
        elections: Mapping[str, Callable[..., object]] | None = None,
        rules: Mapping[str, Callable[..., object]] | None = None,
    ) -> Self:
        """Another lab with the same story, up to record `at` of this one's trace (all of it, if None).

        With another generation, seed or configuration (Kafka's keys, added to those given) or with functions of your
        own (`elections`, `rules`: instead of ours, see `kafka_ctl.plugins`) the records will be others:
        the fork then gets the same commands, and stops as long after the last of them as `at` is here. The story is
        replayed for it, some 70,000 records a second, also where a `settle` of it was not met: where that takes long,
        `progress` is called with how many records there are and how many there will be; without it, a line on standard
        error says so every two seconds. Raises BadInput, with the line of `story`, for a command that is refused there.
        """
        self._require_memory_world("fork")
        at = None if at is None else validate.integer("at", at)
        if at is not None and at >= len(self.trace):
            raise BadInput(f"fork(at={at}): {extent(self.trace)}")
        given = None if config is None else validate.mapping("a config", config)
        size = len(self.trace) if at is None else at + 1
        note = Progress("fork", size, validate.function("progress", progress, 0, 0))
        others = {"generation": generation, "seed": seed, "config": given, "elections": elections, "rules": rules}
        others = {name: other for name, other in others.items() if other is not None}
        if not others:
            return self._again(self.story, at, note)
        opening = story.opening(Command(OPEN, (), self.opening), self.plugins)
        if "described" in opening:
            opening["described"] = with_live(opening["described"], self.generation, self.config)
        settings = opening.get("config", {}) | dict(given or {})
        opening |= others | {"history": self.trace.history, "config": settings}
        lines = [command._replace(line=number) for number, command in enumerate(self.commands, 2)]
        return self._played(opening, parts_in_time(lines, self.trace.records, at), note)

    def back(self, n: int = 1, progress: Report | None = None) -> None:
        """Undo the last `n` moments that left records (see `step`): this lab is again as it was before them.

        The story is replayed up to there, with `progress` as in `fork`; until that has come to its end nothing is
        undone. Raises BadInput where there were not as many moments, and on a closed lab.
        """
        self._require_open("back")
        self._require_idle("back")
        world = self._require_memory_world("back")
        n = validate.integer("a number of moments", n, 1)
        begun = {command.seq for command in self.commands}
        size = max(1, moment(world, n, self._run.opened, begun))
        note = Progress("back", size, validate.function("progress", progress, 0, 0))
        take_over(self, self._again(self.story, size - 1, note))


def undo(lab: RecordedRun) -> Command:
    """Take back the last command of a lab, and return it.

    The story is replayed without that command; until that has come to its end nothing is undone. Raises BadInput if no
    command was given, on a closed lab, and on real time.
    """
    lab._require_open("undo")
    lab._require_idle("undo")
    lab._require_memory_world("undo")
    given = list(lab.commands)
    while given and given[-1].name in (UNTIL, REFUSED):
        given.pop()
    if not given:
        raise BadInput("there is nothing to undo: no command has been given yet")
    gone = given.pop()
    take_over(lab, replayed(lab, given))
    return gone


def replayed(lab: L, commands: Sequence[Command]) -> L:
    """Another lab that was opened as this one and got these commands. Raises BadInput on a closed lab."""
    lab._require_open("a return to another future")
    return lab._again(lab._written(commands))


def take_over(lab: L, other: L) -> None:
    """Replace the run of a lab, from here on, by that of another lab that was opened in the same way; the old run ends.

    Ctrl-C finds the lab with one of the two runs, never between them.
    """
    ended = lab._run
    with ended.world.clock.uninterrupted(), ended.world.clock.alone():
        lab._run = other._run
        ended.world.close()


def at_moment(lab: L, at: int, news: int) -> L:
    """Another lab with the same story up to record `at`, or up to a command that was given at that moment.

    A command counts as given at that moment if it was given within `SAME_MOMENT` of that record and no later than
    record `news`.
    """
    end = lab.trace[at].time_ms / 1000 + SAME_MOMENT
    for place, given in enumerate(lab.commands):
        if at < given.seq <= news and given.time <= end and given.name != UNTIL:
            return replayed(lab, lab.commands[:place])
    return lab.fork(at=at)


def run_on(lab: RecordedRun, seconds: float, piece: Command | None) -> Command:
    """Let so many seconds pass, and return the `run_for` that did it.

    If `piece` is the last command, both become one `run_for`.

    Pieces are whole milliseconds, so that the one call makes the same run as all of them.
    """
    clock = lab._require_memory_world("live time").clock
    if piece is None or not lab.commands or lab.commands[-1] is not piece:
        lab.do(Command("run_for", (round(seconds, 3),), {}))
        return lab.commands[-1]
    piece = lab.commands[-1] = piece._replace(args=(round(piece.args[0] + seconds, 3),))
    with clock.uninterrupted(), clock.alone():
        try:
            clock.run_to(piece.time + piece.args[0])
        except BaseException as error:
            if clock.stopped_by(error):
                lab._stopped()
            elif isinstance(error, KafkaCtlError):
                lab.commands[-1] = piece.refused()
            raise
    return piece


def _only(text: object) -> Command:
    lines = list(story.parse(text)) if isinstance(text, str) else []
    if len(lines) != 1:
        raise BadInput(f"do: a command cannot be {short(text)}; it must be one line of a story, such as 'kill 1'")
    return lines[0]._replace(line=0)
