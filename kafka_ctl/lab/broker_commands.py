"""What can happen to a broker: its process is killed, started, restarted, asked to stop, or paused; its id changes.

Kafka 2.0.1: core/src/main/scala/kafka/Kafka.scala, main (the shutdown hook that SIGTERM runs)
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from contextvars import Token

from kafka_ctl.brokers.broker import DOWN as STOPPED
from kafka_ctl.brokers.broker import Broker, ShutdownReport
from kafka_ctl.brokers.disk import PATHS, Disk
from kafka_ctl.brokers.identity import NOT_CONFIGURED, BrokerMetadata, check_configured
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.lab import menu, validate
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.lab.draw import Drawn, with_
from kafka_ctl.lab.menu import BROKER, CLUSTER, DISK, MEMORY, SECONDS, WHEN_DOWN, WHEN_UP, Button, Call, Field, Given
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE


class ProcessFaults(Commands):
    """The part of a lab that does something to a process; every fault is a command, recorded as kind `fault`."""

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
    def bounce(self, broker: int, seconds: float = 0.0) -> None:
        """Restart so fast that the controller may see the broker only gone and back again.

        The new process speaks to ZooKeeper `seconds` after the old one's session was closed: a JVM takes some.
        """
        process, wait = self._broker(broker, "bounce", running=True), validate.seconds("a start", seconds)
        detail = details.write(seconds=f"{wait:g}") if wait else None

        async def restart() -> None:
            CAUSE.set(self._world.record_fault("bounce", broker, detail=detail))
            await process.stop()
            process.start(wait)

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
        self._require_memory_world("pause")
        process, wait = self._broker(broker, "pause", running=True), validate.seconds("a pause", seconds)
        self._fault("pause", broker, lambda: process.pause(wait), detail=details.write(seconds=f"{wait:g}"))


BROKER_ID = Field("broker_id", "broker.id", "optional", read=menu.maybe)


def _join(_: str, given: Given) -> Call:
    rack = menu.text(given, "rack")
    return (menu.maybe(given, "broker"),), {"rack": rack} if rack else {}


def _meta(broker: str, given: Given) -> Call:
    cluster = menu.text(given, "cluster")
    args = int(broker), DISK.choice(given), menu.maybe(given, "broker_id")
    return (*args, cluster) if cluster else args, {}


class BrokerIdCommands(Commands):
    """Brokers that join, and ids that do not match."""

    @command(
        Button(CLUSTER, "Add broker…", "one more joins the cluster; without an id it gets a generated one",
               (Field("broker", "Its id", "optional"), Field("rack", "Rack", "optional")), call=_join, rank=-1)
    )  # fmt: skip
    def add_broker(self, broker: int | None = None, rack: str | None = None) -> None:
        """Start one more broker, with this id or, without one, with an id from ZooKeeper."""
        world, configured = self._world, self._configured(broker)
        if broker in world.brokers:
            raise BadInput(f"broker {broker} exists already; brokers: {', '.join(map(str, sorted(world.brokers)))}")
        self._needs_zookeeper("add_broker")
        place = min([0, *world.brokers]) - 1 if broker is None else broker
        process = world.add_broker(place, rack if rack is None else validate.name("a rack", rack))
        delay = world.boot_delay()
        self._fault("add_broker", broker, lambda: process.start(delay), detail=f"broker.id={configured}")

    @command(
        Button(BROKER, "Change broker.id…", "another id in its configuration, or none", (BROKER_ID,), WHEN_DOWN, rank=1)
    )
    def set_broker_id(self, broker: int, broker_id: int | None) -> None:
        """Change `broker.id` in the configuration of a broker that is down; None for none."""
        process, configured = self._broker(broker, "set_broker_id", running=False), self._configured(broker_id)
        change = functools.partial(setattr, process, "configured", configured)
        self._fault("set_broker_id", broker, change, detail=f"broker.id={configured}")

    @command(
        Button(BROKER, "Change meta.properties…", "the broker.id that a disk has stored; no id removes the file",
               (DISK, BROKER_ID, Field("cluster", "cluster.id", "optional")), WHEN_DOWN, _meta, rank=1)
    )  # fmt: skip
    def set_meta(self, broker: int, directory: str, broker_id: int | None, cluster: str | None = None) -> None:
        """Change what `meta.properties` in a log directory (`/d0` or `/d1`) of a broker that is down says.

        None for the id removes the file.
        """
        files = self._broker(broker, "set_meta", running=False).disk.meta
        if directory not in PATHS:
            raise UnknownName("log directory", directory, PATHS)
        name = cluster if cluster is None else validate.name("a cluster", cluster)
        meta = None if broker_id is None else BrokerMetadata(validate.integer("a broker id", broker_id), name)
        change = functools.partial(files.__setitem__, directory, meta)
        self._fault("set_meta", broker, change, detail=f"{directory}: {meta or 'no file'}")

    def _configured(self, broker: int | None) -> int:
        """`broker.id` in a configuration; None for none."""
        return check_configured(
            NOT_CONFIGURED if broker is None else validate.integer("a broker id", broker), self.config
        )
