"""What can be done to the processes of a lab: every fault is a command, recorded as kind `fault`."""

from __future__ import annotations

from kafka_ctl.brokers.broker import ShutdownReport
from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.lab.commands import Commands, command
from kafka_ctl.trace import CAUSE
from kafka_ctl.zookeeper.store import Delete
from kafka_ctl.zookeeper.znodes import ControllerZNode


class Faults(Commands):
    """Brokers that die, come back, leave, lag, and lose their sessions."""

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
        async def delete() -> None:
            (await (await self._admin.zk()).write(Delete(ControllerZNode.path()))).checked()

        self._ask(delete, "delete_controller")
