"""What can go wrong in a lab: every fault is a command, recorded as kind `fault`.

    process      kill start bounce shutdown pause lag catch_up slow fail_log_dir
    network      disconnect delay lose heal
    ZooKeeper    expire_session stop_zookeeper start_zookeeper
    operators    delete_controller write_znode delete_znode

The network is the one between brokers and the one to ZooKeeper. `heal` ends every fault that can be ended without
starting a process.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable
from contextvars import Token
from typing import Any, cast

from kafka_ctl.brokers.broker import DOWN as STOPPED
from kafka_ctl.brokers.broker import Broker, ShutdownReport
from kafka_ctl.brokers.disk import Disk
from kafka_ctl.brokers.dynamic_configs import CHANGES
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.lab import menu, validate
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.lab.draw import PARTITIONS, Drawn, with_
from kafka_ctl.lab.menu import (
    BROKER,
    CLUSTER,
    MEMORY,
    SECONDS,
    WHEN_DOWN,
    WHEN_UP,
    ZOOKEEPER,
    Button,
    Call,
    Field,
    Given,
)
from kafka_ctl.simulation.world import MemoryWorld
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.memory.session import AFTER, BEFORE, DOWN, READ_TIMEOUT_FRACTION, UP, MemorySession
from kafka_ctl.zookeeper.store import Create, Delete, Set
from kafka_ctl.zookeeper.znodes import ControllerZNode

OTHER = Field("other", "Broker, or zookeeper", "text", "zookeeper", menu.end)
LOST = Field("way", "Lost is", "choice", "both ways|only what it sends|only what it receives")
BREAKS = Field("when", "Breaks", "choice", "before it arrives|after it is applied")
PATH = Field("path", "Path", "text", "/controller")


def _cut(broker: str, given: Given) -> Call:
    ends, way = (int(broker), menu.end(given, "other")), LOST.choice(given)
    return (ends[::-1] if way == "only what it receives" else ends), {} if way == "both ways" else {"one_way": True}


def _lose(broker: str, given: Given) -> Call:
    after = BREAKS.choice(given) == "after it is applied"
    return (int(broker), menu.end(given, "other")), {"applied": True} if after else {}


class Faults(Commands):
    """The faults that a lab can inject, and `heal`, which ends them."""

    @command(
        Button(BROKER, "Kill", "its process dies; ZooKeeper notices when the session times out", when=WHEN_UP),
        drawn=Drawn(6, lambda d: with_(d.broker())),
    )
    def kill(self, broker: int) -> None:
        """Kill the process, whatever it is doing: ZooKeeper notices when the session times out."""
        process = self._known(broker)
        if process.state == STOPPED:
            raise BadInput(f"broker {broker} is down; kill needs one that is not")
        self._fault("kill", broker, process.kill)

    @command(
        Button(BROKER, "Start", "its process comes up and registers", when=WHEN_DOWN),
        Button(BROKER, "Start, disks replaced", "it comes up without any record", when=WHEN_DOWN,
               call=lambda name, _: ((int(name),), {"empty": True}), do="start_empty"),
        drawn=Drawn(14, lambda d: with_(d.broker())),
    )  # fmt: skip
    def start(self, broker: int, empty: bool = False) -> None:
        """Start a broker that is down; with `empty`, on disks that have been replaced.

        Then it has no record any more, and no `meta.properties`: a generated id is gone, too.
        """
        process = self._broker(broker, "start", running=False)
        self._needs_zookeeper("start")
        delay = self._world.boot_delay()

        def begin() -> None:
            if empty:
                process.disk = Disk()
            process.start(delay)

        self._fault("start", broker, begin, detail="empty" if empty else None)

    @command(
        Button(BROKER, "Bounce", "it restarts faster than its session times out", when=WHEN_UP),
        drawn=Drawn(4, lambda d: with_(d.broker())),
    )
    def bounce(self, broker: int) -> None:
        """Restart so fast that the controller may see the broker only gone and back again."""
        process = self._broker(broker, "bounce", running=True)

        async def restart() -> None:
            CAUSE.set(self._world.record_fault("bounce", broker))
            await process.stop()
            process.start(0.0)

        self._world.run(restart())

    @command(
        Button(
            BROKER, "Controlled shutdown", "it asks the controller to take its leaderships, then stops", when=WHEN_UP
        ),
        Button(BROKER, "Stop within…", "the same, and SIGKILL after so many seconds", (SECONDS,), WHEN_UP,
               lambda name, given: ((int(name),), {"grace": menu.seconds(given, "seconds")}), do="stop_within"),
        drawn=Drawn(5, lambda d: (((d.broker()),), {"wait": False} if d.maybe(0.6) else {})),
    )  # fmt: skip
    def shutdown(self, broker: int, wait: bool = True, grace: float | None = None) -> ShutdownReport | None:
        """Controlled shutdown: ask the controller to move leaderships away, then stop.

        Time passes until the broker is down; with `wait=False` it has only been asked to leave. `grace`: whoever sent
        SIGTERM sends SIGKILL after so many seconds (by default `docker stop` 10, Kubernetes 30, systemd 90).
        """
        process = self._broker(broker, "shutdown", running=True)
        if wait:
            self._needs_zookeeper("shutdown, unless with wait=False,")
        given = None if grace is None else f"{validate.seconds('a grace', grace):g}"

        def ask() -> tuple[Token, Callable[[], object]]:
            detail = details.write(grace=given)
            token = CAUSE.set(self._world.trace.add("admin", "event", "shutdown", broker=broker, detail=detail))
            return token, (lambda: None) if grace is None else self._kill_after(grace, process)

        async def leave() -> ShutdownReport:
            process.adopt()
            _, done = ask()
            try:
                return await process.controlled_shutdown()
            except asyncio.CancelledError:
                if process.state != STOPPED:
                    raise
                return ShutdownReport(0, error="the process has ended")
            finally:
                done()

        def start() -> None:
            token, done = ask()
            process.spawn(process.controlled_shutdown()).add_done_callback(lambda _: done())
            CAUSE.reset(token)

        if wait:
            return self._world.run(leave())
        self._world.clock.call(start)
        return None

    def _kill_after(self, grace: float, process: Broker) -> Callable[[], object]:
        """Kill a process in so many seconds; what this returns is called when it has ended by itself."""
        cause = CAUSE.get()

        def kill() -> None:
            if process.state != STOPPED:
                self._world.record_fault("kill", process.id, detail=details.write(grace=f"{grace:g}"), cause=cause)
                process.kill()

        return self._world.clock.later(grace, kill).cancel

    @command(
        Button(BROKER, "Pause…", "its process stops for some seconds, as in a long garbage collection", (SECONDS,),
               WHEN_UP, needs=MEMORY),
        drawn=Drawn(4, lambda d: with_(d.broker(), d.seconds(20))),
    )  # fmt: skip
    def pause(self, broker: int, seconds: float) -> None:
        """Let a process stand still, as in a garbage collection; then it goes on where it was.

        When that is longer than its session timeout, ZooKeeper takes it for dead; it learns so when it resumes.
        """
        self._memory("pause")
        process, wait = self._broker(broker, "pause", running=True), validate.seconds("a pause", seconds)
        self._fault("pause", broker, lambda: process.pause(wait), detail=details.write(seconds=f"{wait:g}"))

    @command(
        Button(BROKER, "Expire session", "ZooKeeper expires its session although it is alive", when=WHEN_UP),
        drawn=Drawn(4, lambda d: with_(d.broker())),
    )
    def expire_session(self, broker: int) -> None:
        """Make ZooKeeper expire the session of a broker that is alive."""
        process = self._broker(broker, "expire_session", running=True)
        session = process.zk.session
        if session is None:
            raise BadInput(f"broker {broker} has no session with ZooKeeper at the moment")
        self._fault("expire_session", broker, lambda: self._world.expire(session))

    @command(
        Button(BROKER, "Lag…", "its replica of a partition falls behind and leaves the ISR",
               (Field("partition", "Partition", "partition"),), WHEN_UP,
               lambda broker, given: ((int(broker), *menu.partition(given.get("partition", ""))), {})),
        drawn=Drawn(3, lambda d: with_(d.broker(), d.topic(), d.rng.randrange(PARTITIONS))),
    )  # fmt: skip
    def lag(self, broker: int, topic: str, partition: int) -> None:
        """Let a follower fall behind: after `replica.lag.time.max.ms` its leader takes it out of the ISR."""
        process, known = self._broker(broker, "lag", running=True), self.partition(topic, partition)
        tp = TopicPartition(topic, partition)
        if broker not in known.replicas:
            raise UnknownName(f"replica of {tp} on broker", broker, known.replicas)

        def fall_behind() -> None:
            process.as_follower.fall_behind(tp)
            wait = self._world.config["replica.lag.time.max.ms"] / 1000 * 1.5
            self._world.clock.spawn(self._world.clock.sleep(wait))  # so that settle waits for the leader to notice

        self._fault("lag", broker, fall_behind, topic=topic, partition=partition)

    @command(
        Button(BROKER, "Catch up", "its replicas catch up with their leaders", when=WHEN_UP),
        drawn=Drawn(2, lambda d: with_(d.broker())),
    )
    def catch_up(self, broker: int) -> None:
        """Let a follower that fell behind keep up again in all partitions."""
        process = self._broker(broker, "catch_up", running=True)

        def keep_up() -> None:
            for tp in list(process.as_follower.lagging):
                process.as_follower.catch_up(tp)

        self._fault("catch_up", broker, keep_up)

    @command(
        Button(BROKER, "Slow fetches…", "its replicas fetch so much later, and leave the ISR when that is too late",
               (SECONDS,), WHEN_UP),
        drawn=Drawn(1, lambda d: with_(d.broker(), d.seconds(15))),
    )  # fmt: skip
    def slow(self, broker: int, seconds: float) -> None:
        """Let everything that a follower fetches take so much longer, until `heal`, or with 0 no longer.

        When that is longer than `replica.lag.time.max.ms` it leaves the ISRs, catches up, and leaves them again.
        """
        process, wait = self._broker(broker, "slow", running=True), validate.seconds("a delay", seconds)
        self._fault("slow", broker, lambda: process.as_follower.set_fetch_delay(wait), detail=f"+{wait:g}s")

    @command(
        Button(BROKER, "Disk fails", "one of its two log directories is gone", when=WHEN_UP),
        drawn=Drawn(1, lambda d: with_(d.broker())),
    )
    def fail_log_dir(self, broker: int) -> None:
        """Let one of the broker's two log directories fail: the copies in it are gone until the broker starts again.

        A broker whose last directory fails stops; in 0.10 it stops when the first one does.
        """
        process = self._broker(broker, "fail_log_dir", running=True)
        self._fault("fail_log_dir", broker, process.replicas.fail_log_dir)

    # The network

    @command(
        Button(BROKER, "Network partition…", "it and another broker, or ZooKeeper, no longer reach one another",
               (OTHER, LOST), WHEN_UP, _cut),
        drawn=Drawn(3, lambda d: with_(*d.pair(zookeeper=True), one_way=d.maybe(0.5))),
    )  # fmt: skip
    def disconnect(self, source: int | str, target: int | str, one_way: bool = False) -> None:
        """Cut the way between two brokers, or between a broker and `zookeeper`, until `heal`.

        With `one_way`, only what `source` sends is lost. What meets a cut is sent again until it comes through or is
        given up: a broker that receives nothing from ZooKeeper gives the connection up after a while, and ZooKeeper
        expires a session without a heartbeat for its timeout.
        """
        ends = self._ends(source, target, "disconnect")

        def cut() -> None:
            if ZOOKEEPER in ends:
                broker = next(end for end in ends if end != ZOOKEEPER)
                sends, hears = self._memory("disconnect").store.cut.get(f"broker-{broker}", (True, True))
                sends &= one_way and ends[0] == ZOOKEEPER
                hears &= one_way and ends[0] != ZOOKEEPER
                self._memory("disconnect").store.cut_off(f"broker-{broker}", sends, hears)
            else:
                self._world.network.cut(*ends)
                if not one_way:
                    self._world.network.cut(*ends[::-1])

        if ZOOKEEPER in ends:
            self._memory("disconnect from ZooKeeper")
        first = next(end for end in ends if end != ZOOKEEPER)
        detail = details.link(source, target, one_way)
        self._fault("disconnect", first, cut, detail=detail)

    @command(
        Button(BROKER, "Network delay…", "what it sends to another broker, or to ZooKeeper, takes longer",
               (OTHER._replace(label="To broker, or zookeeper", default="1"), SECONDS._replace(default="2")), WHEN_UP),
        drawn=Drawn(3, lambda d: with_(*d.pair(zookeeper=True), d.seconds(3.9))),
    )  # fmt: skip
    def delay(self, source: int | str, target: int | str, seconds: float) -> None:
        """Make everything that one broker sends to another, or to or from `zookeeper`, so much slower, until `heal`.

        What is slower than a client of ZooKeeper waits for is a cut; BadInput says so.
        """
        ends, wait = self._ends(source, target, "delay"), validate.seconds("a delay", seconds)
        first = next(end for end in ends if end != ZOOKEEPER)
        if ZOOKEEPER in ends:
            store = self._memory("delay").store
            most = self._world.config["zookeeper.session.timeout.ms"] / 1000 * READ_TIMEOUT_FRACTION
            if wait >= most:
                raise BadInput(f"a delay of ZooKeeper cannot be {wait:g}; from {most:g} s on it is a cut: disconnect")
            way = f"broker-{first}", DOWN if ends[0] == ZOOKEEPER else UP
            slow_down: Callable[[], object] = functools.partial(store.slow.__setitem__, way, wait)
        else:
            slow_down = functools.partial(setattr, self._world.network.link(*ends), "delay", wait)
        self._fault("delay", first, slow_down, detail=f"{source} -> {target} +{wait:g}s")

    @command(
        Button(BROKER, "Lose a request…", "its connection breaks at its next request or write", (OTHER, BREAKS),
               WHEN_UP, _lose),
        drawn=Drawn(4, lambda d: with_(d.broker(), *d.pair(zookeeper=True)[1:], applied=d.maybe(0.5))),
    )  # fmt: skip
    def lose(self, source: int, target: int | str, applied: bool = False) -> None:
        """Break a connection at the next request of `source` (the next write, if `target` is `zookeeper`).

        It breaks before the request was handled or, with `applied`, after that, so that only the answer is lost. The
        sender connects again and sends the same again.
        """
        process = self._broker(source, "lose", running=True)
        _, to = self._ends(source, target, "lose")
        session = process.zk.session
        if to != ZOOKEEPER:
            what = "answer" if applied else "request"
            act = functools.partial(setattr, self._world.network.link(source, to), "loses", what)
        elif isinstance(session, MemorySession):
            act = functools.partial(setattr, session, "fails_next_write", AFTER if applied else BEFORE)
        else:
            raise BadInput("lose needs the memory world, and a broker with a session")
        self._fault("lose", source, act, detail=f"{source} -> {target} {'applied' if applied else 'not applied'}")

    @command(Button(CLUSTER, "Heal", "pauses, network faults and lags end", rank=1), drawn=Drawn(6))
    def heal(self) -> None:
        """End pauses, cuts, delays and losses, let followers keep up, and ZooKeeper answer; the dead stay dead."""

        def end_faults() -> None:
            world = self._world
            world.network.heal()
            if isinstance(world, MemoryWorld):
                world.store.heal()
            for process in world.brokers.values():
                process.as_follower.set_fetch_delay(0.0)
                if process.state != STOPPED:
                    process.resume(CAUSE.get())
                    for tp in list(process.as_follower.lagging):
                        process.as_follower.catch_up(tp)
                    process.as_follower.fetch_again()

        self._fault("heal", None, end_faults)

    # ZooKeeper

    @command(
        Button(ZOOKEEPER, "Stop", "it answers no request; no session expires meanwhile", needs=MEMORY),
        drawn=Drawn(1),
    )
    def stop_zookeeper(self) -> None:
        """Let ZooKeeper not answer any more, until `start_zookeeper` or `heal`; no session expires meanwhile."""
        self._needs_zookeeper("stop_zookeeper")
        self._fault("stop_zookeeper", None, self._memory("stop_zookeeper").store.stop)

    @command(Button(ZOOKEEPER, "Start", "it answers again", needs=MEMORY), drawn=Drawn(1))
    def start_zookeeper(self) -> None:
        """Let ZooKeeper answer again."""
        store = self._memory("start_zookeeper").store
        if store.up:
            raise BadInput("start_zookeeper: ZooKeeper is up")
        self._fault("start_zookeeper", None, store.start)

    # Operators

    @command(
        Button(ZOOKEEPER, "Delete /controller", "the controller resigns, and a new one is elected", rank=-1),
        drawn=Drawn(2),
    )
    def delete_controller(self) -> None:
        """Remove `/controller` by hand, as an operator might: the controller resigns and all compete again."""
        self._write("delete_controller", Delete(ControllerZNode.path()))

    @command(
        Button(ZOOKEEPER, "Write a znode…", "by hand, whatever belongs there",
               (PATH, Field("data", "Data", "text", read=menu.as_written)), rank=-1)
    )  # fmt: skip
    def write_znode(self, path: str, data: Any) -> None:
        """Write a znode by hand, whatever belongs there; it is made if it is missing and its parent is not.

        `data` is its text; a mapping or a list is written as JSON.
        """
        validate.name("a path", path)
        text = json.dumps(data, separators=(",", ":")) if isinstance(data, (dict, list)) else str(data)
        content = validate.utf8("the content of a znode", text).encode()
        self._write("write_znode", Set(path, content), Create(path, content))

    @command(Button(ZOOKEEPER, "Delete a znode…", "by hand", (PATH,), rank=-1))
    def delete_znode(self, path: str) -> None:
        """Delete a znode by hand."""
        self._write("delete_znode", Delete(validate.name("a path", path)))

    def _write(self, name: str, op: Set | Delete, otherwise: Create | None = None) -> None:
        async def write() -> None:
            zk = await self._admin.zk()
            if op.path.startswith(CHANGES):
                self._world.watch_configs()
            answer = await zk.write(op)
            if answer.error == "NONODE" and otherwise is not None:
                answer = await zk.write(otherwise)
            if answer.error is not None:
                raise BadInput(f"{name}: ZooKeeper answers {answer.error} for {op.path}")

        self._ask(write, name, path=None if name == "delete_controller" else op.path)

    def _ends(self, source: int | str, target: int | str, asked: str) -> list[Any]:
        """Both ends of a connection."""
        ends = [self._end(source, asked), self._end(target, asked)]
        if ends[0] == ends[1]:
            raise BadInput(f"{asked}({source}, {target}): two different ends are needed")
        return ends

    def _end(self, end: int | str, asked: str) -> Any:
        """One end of a connection: a broker's id, or ZooKeeper."""
        return end if end == ZOOKEEPER else self._known(cast("int", end)).id
