"""What can happen to a broker's process: it is killed, started, restarted, asked to stop, or stands still.

Kafka 2.0.1: core/src/main/scala/kafka/Kafka.scala, main (the shutdown hook that SIGTERM runs)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Token

from kafka_ctl.brokers.broker import DOWN as STOPPED
from kafka_ctl.brokers.broker import Broker, ShutdownReport
from kafka_ctl.brokers.disk import Disk
from kafka_ctl.errors import BadInput
from kafka_ctl.lab import menu, validate
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.lab.draw import Drawn, with_
from kafka_ctl.lab.menu import BROKER, MEMORY, SECONDS, WHEN_DOWN, WHEN_UP, Button
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
