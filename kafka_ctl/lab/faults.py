"""Faults of a lab, and other things that happen to its brokers: every one is a command, recorded as kind `fault`.

    process      kill start bounce shutdown pause lag catch_up slow fail_log_dir
    identity     add_broker set_broker_id set_meta
    network      disconnect delay lose heal
    ZooKeeper    expire_session stop_zookeeper start_zookeeper
    operators    delete_controller write_znode delete_znode

The network is the one between brokers and the one to ZooKeeper. `heal` ends every fault that can be ended without
starting a process.
Kafka 2.0.1: core/src/main/scala/kafka/Kafka.scala, main (the shutdown hook that SIGTERM runs)

Separate from `lab.py` because commands that break things are a concept of their own.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from contextvars import Token
from typing import TYPE_CHECKING, cast

from kafka_ctl.brokers.disk import PATHS, Disk
from kafka_ctl.brokers.identity import NOT_CONFIGURED, BrokerMetadata, check_configured
from kafka_ctl.brokers.states import DOWN as STOPPED
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput, UnknownName, short
from kafka_ctl.lab import validate
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.lab.menu import ZOOKEEPER
from kafka_ctl.lab.validate import MAX_ID
from kafka_ctl.trace import details
from kafka_ctl.trace.record import CAUSE
from kafka_ctl.zookeeper.store import Create, Delete, Set
from kafka_ctl.zookeeper.znodes import ConfigChangeNotificationSequenceZNode, ControllerZNode

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker, ShutdownReport
    from kafka_ctl.zookeeper.memory.server import MemoryStore

PATH = "a path begins with /, and none of its names is empty, . or .."


class Faults(Commands):
    """The faults that a lab can inject, `heal`, which ends them, and the identities of brokers."""

    # Processes

    @command
    def kill(self, broker: int) -> None:
        """Kill the process, whatever it is doing: ZooKeeper notices when the session times out."""
        process = self._known(broker)
        if process.state == STOPPED:
            raise BadInput(f"broker {broker} is down already; kill needs a broker that runs")
        self._fault("kill", broker, process.kill)

    @command
    def start(self, broker: int, empty: bool = False) -> None:
        """Start a broker that is down; with `empty`, on disks that have been replaced.

        On new disks it has no records and no `meta.properties`: a generated id is gone, too.
        """
        process = self._broker(broker, "start", running=False)
        self._needs_zookeeper("start")
        delay = self.world.boot_delay()

        def begin() -> None:
            if empty:
                process.disk = Disk()
            process.start(delay)

        self._fault("start", broker, begin, detail="empty" if empty else None)

    @command
    def bounce(self, broker: int, seconds: float = 0.0) -> None:
        """Restart so fast that the controller may see the broker only gone and back again.

        The new process speaks to ZooKeeper `seconds` after the old one's session was closed: a JVM needs some to start.
        """
        process, wait = self._broker(broker, "bounce", running=True), validate.seconds("a start", seconds)
        detail = details.write(seconds=f"{wait:g}") if wait else None

        async def restart() -> None:
            CAUSE.set(self.world.record_fault("bounce", broker, detail=detail))
            await process.stop()
            process.start(wait)

        self.world.run(restart())

    @command
    def shutdown(self, broker: int, wait: bool = True, grace: float | None = None) -> ShutdownReport | None:
        """Controlled shutdown: ask the controller to move leaderships away, then stop.

        Time passes until the broker is down; with `wait=False` it has only been asked to leave. `grace`: the sender of
        SIGTERM sends SIGKILL after so many seconds (by default `docker stop` 10, Kubernetes 30, systemd 90).
        """
        import asyncio

        from kafka_ctl.brokers.controlled_shutdown import ShutdownReport

        process = self._broker(broker, "shutdown", running=True)
        if wait:
            self._needs_zookeeper("shutdown, unless with wait=False,")
        given = None if grace is None else f"{validate.seconds('a grace', grace):g}"

        def ask() -> tuple[Token, Callable[[], object]]:
            detail = details.write(grace=given)
            token = CAUSE.set(self.world.trace.add("admin", "event", "shutdown", broker=broker, detail=detail))
            return token, (lambda: None) if grace is None else self._kill_after(grace, process)

        async def leave() -> ShutdownReport:
            since = len(self.world.trace)
            process.adopt()
            _, done = ask()
            try:
                return await process.controlled_shutdown()
            except asyncio.CancelledError:
                if process.state != STOPPED:
                    raise
                made = self.world.trace.slice(since, kind="broker", action="controlled-shutdown", broker=process.id)
                left = details.items(made[-1].detail, "remaining") if made else []
                remaining = tuple(validate.topic_partition(each) for each in left)
                return ShutdownReport(len(made), remaining, error="the process has ended")
            finally:
                done()

        def start() -> None:
            token, done = ask()
            process.spawn(process.controlled_shutdown()).add_done_callback(lambda _: done())
            CAUSE.reset(token)

        if wait:
            return self.world.run(leave())
        self.world.clock.call(start)
        return None

    def _kill_after(self, grace: float, process: Broker) -> Callable[[], object]:
        """Kill a process in so many seconds; what this returns is called when it has ended by itself."""
        cause = CAUSE.get()

        def kill() -> None:
            if process.state != STOPPED:
                self.world.record_fault("kill", process.id, detail=details.write(grace=f"{grace:g}"), cause=cause)
                process.kill()

        return self.world.clock.later(grace, kill).cancel

    @command
    def pause(self, broker: int, seconds: float) -> None:
        """Let a process stand still, as in a garbage collection; then it goes on where it was.

        If the pause is longer than the session timeout, ZooKeeper expires the broker's session; the broker learns it
        when it resumes.
        """
        self._memory_store("pause")
        process, wait = self._broker(broker, "pause", running=True), validate.seconds("a pause", seconds)
        self._fault("pause", broker, lambda: process.pause(wait), detail=details.write(seconds=f"{wait:g}"))

    @command
    def expire_session(self, broker: int) -> None:
        """Make ZooKeeper expire the session of a broker that is alive."""
        process = self._broker(broker, "expire_session", running=True)
        session = process.zk.session
        if session is None:
            raise BadInput(f"broker {broker} has no session with ZooKeeper at the moment")
        self._fault("expire_session", broker, lambda: self.world.expire(session))

    @command
    def lag(self, broker: int, topic: str, partition: int) -> None:
        """Let a follower fall behind: after `replica.lag.time.max.ms` its leader takes it out of the ISR.

        A leader falls behind as soon as it follows another one.
        """
        process, known = self._broker(broker, "lag", running=True), self.partition(topic, partition)
        tp = TopicPartition(topic, partition)
        if broker not in known.replicas:
            raise UnknownName(f"replica of {tp} on broker", broker, known.replicas)

        def fall_behind() -> None:
            process.as_follower.fall_behind(tp)
            wait = self.world.config["replica.lag.time.max.ms"] / 1000 * 1.5
            self.world.clock.spawn(self.world.clock.sleep(wait))  # so that settle waits for the leader to notice

        self._fault("lag", broker, fall_behind, topic=topic, partition=partition)

    @command
    def catch_up(self, broker: int) -> None:
        """Let a follower that fell behind keep up again in all partitions."""
        process = self._broker(broker, "catch_up", running=True)
        self._fault("catch_up", broker, process.as_follower.catch_up)

    @command
    def slow(self, broker: int, seconds: float) -> None:
        """Delay every fetch of a follower by so many seconds until `heal`; 0 ends the delay.

        A delay above `replica.lag.time.max.ms` makes the follower leave the ISRs, catch up, and leave them again.
        """
        process, wait = self._broker(broker, "slow", running=True), validate.seconds("a delay", seconds)
        self._fault("slow", broker, lambda: process.as_follower.set_fetch_delay(wait), detail=details.delay(wait))

    @command
    def fail_log_dir(self, broker: int) -> None:
        """Let one of the broker's two log directories fail: the copies in it are gone until the broker starts again.

        A broker whose last directory fails stops; in 0.10 it stops when the first one does.
        """
        process = self._broker(broker, "fail_log_dir", running=True)
        self._fault("fail_log_dir", broker, process.replicas.fail_log_dir)

    # The network

    @command
    def disconnect(self, source: int | str, target: int | str, one_way: bool = False) -> None:
        """Cut the connection between two brokers, or between a broker and `zookeeper`, until `heal`.

        With `one_way`, only what `source` sends is lost. A message that meets a cut is sent again until it arrives or
        is given up: a broker that receives nothing from ZooKeeper gives the connection up after a while, and ZooKeeper
        expires a session without a heartbeat for its timeout.
        """
        one, other = self._ends(source, target, "disconnect")
        first = one if one is not None else other

        def cut() -> None:
            if one is not None and other is not None:
                self.world.network.cut(one, other)
                if not one_way:
                    self.world.network.cut(other, one)
            else:
                sends, receives = self._memory_store("disconnect").cut.get(f"broker-{first}", (True, True))
                sends &= one_way and one is None
                receives &= one_way and one is not None
                self._memory_store("disconnect").cut_off(f"broker-{first}", sends, receives)

        if one is None or other is None:
            self._memory_store("disconnect from ZooKeeper")
        detail = details.link(source, target, one_way)
        self._fault("disconnect", first, cut, detail=detail)

    @command
    def delay(self, source: int | str, target: int | str, seconds: float) -> None:
        """Delay requests and answers from one broker to another, or to or from `zookeeper`, until `heal`.

        The fetches of followers are not delayed: see `slow`. Raises BadInput for a delay longer than a client of
        ZooKeeper waits: that is a cut.
        """
        from kafka_ctl.zookeeper.memory.session import DOWN, READ_TIMEOUT_FRACTION, UP

        (one, other), wait = self._ends(source, target, "delay"), validate.seconds("a delay", seconds)
        first = one if one is not None else other
        if one is None or other is None:
            store = self._memory_store("delay")
            most = self.world.config["zookeeper.session.timeout.ms"] / 1000 * READ_TIMEOUT_FRACTION
            if wait >= most:
                raise BadInput(
                    f"a delay of ZooKeeper cannot be {wait:g}; a delay of {most:g} s or more is a cut: use disconnect"
                )
            direction = f"broker-{first}", DOWN if one is None else UP
            slow_down: Callable[[], object] = functools.partial(store.slow.__setitem__, direction, wait)
        else:
            slow_down = functools.partial(setattr, self.world.network.link(one, other), "delay", wait)
        self._fault("delay", first, slow_down, detail=f"{source} -> {target} {details.delay(wait)}")

    @command
    def lose(self, source: int, target: int | str, applied: bool = False) -> None:
        """Break a connection at the next request of `source` (the next write, if `target` is `zookeeper`).

        It breaks before the request was handled or, with `applied`, after that, so that only the answer is lost. The
        sender connects again and sends the same again.
        """
        from kafka_ctl.zookeeper.memory.session import AFTER, BEFORE, MemorySession

        process = self._broker(source, "lose", running=True)
        _, to = self._ends(source, target, "lose")
        session = process.zk.session
        if to is not None:
            what = "answer" if applied else "request"
            act = functools.partial(setattr, self.world.network.link(source, to), "loses", what)
        elif isinstance(session, MemorySession):
            act = functools.partial(setattr, session, "fails_next_write", AFTER if applied else BEFORE)
        else:
            raise BadInput("lose needs the memory world, and a broker with a session")
        self._fault("lose", source, act, detail=f"{source} -> {target} {'applied' if applied else 'not applied'}")

    @command
    def heal(self) -> None:
        """End pauses, cuts, delays and losses, let followers keep up, and ZooKeeper answer; the dead stay dead."""
        from kafka_ctl.zookeeper.memory.server import MemoryStore

        def end_faults() -> None:
            world = self.world
            world.network.heal()
            if isinstance(world.store, MemoryStore):
                world.store.heal()
            for process in world.brokers.values():
                process.as_follower.set_fetch_delay(0.0)
                if process.state != STOPPED:
                    process.resume(CAUSE.get())
                    process.as_follower.catch_up()
                    process.as_follower.rejoin()

        self._fault("heal", None, end_faults)

    # ZooKeeper

    @command
    def stop_zookeeper(self) -> None:
        """Stop ZooKeeper until `start_zookeeper` or `heal`; no session expires meanwhile."""
        self._needs_zookeeper("stop_zookeeper")
        self._fault("stop_zookeeper", None, self._memory_store("stop_zookeeper").stop)

    @command
    def start_zookeeper(self) -> None:
        """Let ZooKeeper answer again."""
        store = self._memory_store("start_zookeeper")
        if store.up:
            raise BadInput("start_zookeeper: ZooKeeper is up")
        self._fault("start_zookeeper", None, store.start)

    # Operators

    @command
    def delete_controller(self) -> None:
        """Remove `/controller` by hand, as an operator might: the controller resigns and all compete again."""
        self._write("delete_controller", Delete(ControllerZNode.path()))

    @command
    def write_znode(self, path: str, data: object) -> None:
        """Write a znode by hand, whatever belongs there; it is made if it is missing and its parent is not.

        `data` is its text, or its bytes where they are UTF-8; anything else is written as JSON.
        """
        validate.name("a path", path)
        text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        content = validate.utf8("the content of a znode", text).encode()
        self._write("write_znode", Set(path, content), Create(path, content))

    @command
    def delete_znode(self, path: str) -> None:
        """Delete a znode by hand."""
        self._write("delete_znode", Delete(validate.name("a path", path)))

    def _write(self, name: str, op: Set | Delete, otherwise: Create | None = None) -> None:
        async def write() -> None:
            zk = await self._admin.zk()
            if op.path.startswith(ConfigChangeNotificationSequenceZNode.PARENT):
                self.world.watch_configs()
            answer = await zk.write(op)
            if answer.error == "NONODE" and otherwise is not None:
                answer = await zk.write(otherwise)
            if answer.error is not None:
                form = f"; {PATH}" if answer.error == "BADARGUMENTS" else ""
                raise BadInput(f"{name}: ZooKeeper answers {answer.error} for {op.path}{form}")

        self._ask(write, name, path=None if name == "delete_controller" else op.path)

    def _memory_store(self, asked: str) -> MemoryStore:
        """The ZooKeeper in this process. Raises BadInput if it is another program."""
        from kafka_ctl.zookeeper.memory.server import MemoryStore

        store = self.world.store
        return store if isinstance(store, MemoryStore) else self._require_memory_world(asked).store

    def _ends(self, source: int | str, target: int | str, asked: str) -> tuple[int | None, int | None]:
        """Both ends of a connection: a broker's id, or None for ZooKeeper."""
        for end in (source, target):
            if isinstance(end, str) and end != ZOOKEEPER:
                raise BadInput(f"an end of a connection cannot be {short(end)}; it must be a broker id or {ZOOKEEPER}")
        one, other = (None if end == ZOOKEEPER else self._known(cast("int", end)).id for end in (source, target))
        if one == other:
            raise BadInput(f"{asked}({source}, {target}): the two ends must be different")
        return one, other

    # Identities

    @command
    def add_broker(self, broker: int | None = None, rack: str | None = None) -> None:
        """Start one more broker, with this id or, without one, with an id from ZooKeeper."""
        world, configured = self.world, self._configured(broker)
        if broker in world.brokers:
            raise BadInput(f"broker {broker} exists already; brokers: {', '.join(map(str, sorted(world.brokers)))}")
        self._needs_zookeeper("add_broker")
        place = min([0, *world.brokers]) - 1 if broker is None else broker
        process = world.add_broker(place, rack if rack is None else validate.name("a rack", rack))
        delay = world.boot_delay()
        self._fault("add_broker", broker, lambda: process.start(delay), detail=f"broker.id={configured}")

    @command
    def set_broker_id(self, broker: int, broker_id: int | None) -> None:
        """Change `broker.id` in the configuration of a broker that is down; None for none."""
        process, configured = self._broker(broker, "set_broker_id", running=False), self._configured(broker_id)
        change = functools.partial(setattr, process, "configured", configured)
        self._fault("set_broker_id", broker, change, detail=f"broker.id={configured}")

    @command
    def set_meta(self, broker: int, directory: str, broker_id: int | None, cluster: str | None = None) -> None:
        """Change `meta.properties` in a log directory (`/d0` or `/d1`) of a broker that is down.

        None for the id removes the file.
        """
        files = self._broker(broker, "set_meta", running=False).disk.meta
        if directory not in PATHS:
            raise UnknownName("log directory", directory, PATHS)
        name = cluster if cluster is None else validate.name("a cluster", cluster)
        id = None if broker_id is None else validate.integer("a broker id", broker_id, 0, MAX_ID)
        meta = None if id is None else BrokerMetadata(id, name)
        change = functools.partial(files.__setitem__, directory, meta)
        self._fault("set_meta", broker, change, detail=f"{directory}: {meta or 'no file'}")

    def _configured(self, broker: int | None) -> int:
        """`broker.id` in a configuration; None for none."""
        id = NOT_CONFIGURED if broker is None else validate.integer("a broker id", broker)
        return check_configured(id, self.config)
