"""Looking at a lab: its trace, its znodes, its partitions, replicas and brokers, without changing anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kafka_ctl.balance import BrokerBalance
from kafka_ctl.brokers.broker import Broker
from kafka_ctl.cluster import LeaderAndIsr, TopicPartition
from kafka_ctl.controller.rebalance import brokers_balance
from kafka_ctl.errors import UnknownName
from kafka_ctl.generation import Config
from kafka_ctl.invariants import Checker, Violation
from kafka_ctl.lab import validate, view
from kafka_ctl.lab.metrics import Shown, metrics
from kafka_ctl.lab.settings import MAX_ID
from kafka_ctl.simulation.clock import VirtualClock
from kafka_ctl.simulation.world import World
from kafka_ctl.trace import Trace

if TYPE_CHECKING:
    from kafka_ctl.zookeeper.real.server import EmbeddedServer

T = TypeVar("T")


class Inspection:
    """The part of a lab that only looks."""

    _world: World
    checker: Checker | None
    """What checks the invariants; on real time nothing does."""

    @property
    def world(self) -> World:
        """What the lab runs on: `clock`, ZooKeeper's `store`, `network`, the `brokers` and who is `acting` controller.

        For invariants, searches and tests of one's own. What is changed there is in no story.
        """
        return self._world

    @property
    def now(self) -> float:
        """Seconds since the lab was opened."""
        return self._world.clock.now()

    @property
    def quiet(self) -> bool | None:
        """Whether nothing is under way; None on real time, where only `settle` finds out."""
        clock = self._world.clock
        return clock.loop.idle if isinstance(clock, VirtualClock) else None

    @property
    def trace(self) -> Trace:
        """Everything that has happened so far, as records."""
        trace = self._world.trace
        assert isinstance(trace, Trace)
        return trace

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The invariants broken so far, each once for each thing it is about; `known` is the ticket of a real bug."""
        return tuple(self.checker.violations) if self.checker else ()

    @property
    def config(self) -> Config:
        """Kafka's configuration of every broker."""
        return self._world.config.copy()

    def znodes(self) -> view.Znodes:
        """{path: (data, version, ephemeral owner)}, sorted by path."""
        return self._look(lambda znodes: znodes)

    def _look(self, at: Callable[[view.Znodes], T]) -> T:
        """Look at ZooKeeper, and at the actors while none of them moves."""

        return self._world.look(at)

    def _known(self, id: int) -> Broker:
        process = self._world.brokers.get(validate.integer("a broker id", id))
        if process is None:
            raise UnknownName("broker", id, sorted(self._world.brokers))
        return process

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
        """The broker that `/controller` names and that acts as controller; None while there is none.

        Who is only named there, by hand, was not elected, has no epoch and does nothing.
        """
        return self._look(lambda znodes: view.controller(znodes, self._world.acting()))

    def controller_memory(self) -> view.ControllerMemory | None:
        """The requests that the acting controller knows of, which may differ from those in ZooKeeper; None without one.

        Kafka 2.0.1: controller/ControllerContext.scala, partitionsBeingReassigned; TopicDeletionManager.scala,
        topicsToBeDeleted
        """
        return self._world.clock.call(lambda: view.memory(self._world.acting()))

    def metrics(self, broker: int) -> dict[str, Shown]:
        """What JMX shows of a broker, by Kafka's names: gauges of its controller and its replicas, and meters.

        From 2.0 on also its event queue, with times in milliseconds. Gauges have the values that Kafka computes: those
        of the controller are 0 where the broker does not act, and in 2.0 and 2.4 as old as the last event.
        `kafka_ctl.lab.metrics.METRICS` has the source of each. UnknownName for a broker that is not there.
        """
        process = self._known(broker)
        usual = int(self._world.config["min.insync.replicas"])
        znodes = self._look(lambda znodes: znodes) if process.hosted else {}
        return self._world.clock.call(
            lambda: metrics(process, self.trace, lambda topic: view.min_isr(znodes, topic, usual))
        )

    def identity(self, broker: int) -> view.IdentityView:
        """What says which id a broker has, and whether these agree; UnknownName for a broker that is not there."""
        process = self._known(broker)
        return self._look(lambda znodes: view.identity_of(process, znodes))

    def partitions(self) -> list[view.PartitionView]:
        """Every partition, by topic and number."""
        return self._look(lambda znodes: [p for _, p in sorted(view.partitions(znodes, self._world.acting()).items())])

    def partition(self, topic: str, partition: int) -> view.PartitionView:
        """One partition; UnknownName when there is none of that name."""
        asked = validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID)
        found = {(p.topic, p.partition): p for p in self.partitions()}
        if asked not in found:
            raise UnknownName("partition", f"{topic}-{partition}", (f"{t}-{n}" for t, n in found))
        return found[asked]

    def balance(self) -> list[BrokerBalance]:
        """What an automatic rebalance would find now about each broker, and what it would do.

        It says why partitions are left out, which Kafka logs nowhere; also where the rebalance is switched off. An
        empty list without a controller.
        """
        acting = self._world.acting()
        return self._world.clock.call(lambda: brokers_balance(acting)) if acting is not None else []

    def controller_leadership(self, topic: str, partition: int) -> LeaderAndIsr | None:
        """What the acting controller holds of a partition's leader and ISR; None without one, or without that."""
        tp = TopicPartition(validate.name("a topic", topic), validate.integer("a partition", partition, 0, MAX_ID))
        acting = self._world.acting()
        return None if acting is None else self._world.clock.call(lambda: acting.context.leadership.get(tp))

    def replicas(self) -> list[view.ReplicaView]:
        """Every replica the acting controller knows, by topic, partition and broker; none without a controller."""
        return self._world.clock.call(lambda: view.replicas(self._world.acting()))

    @property
    def brokers(self) -> dict[int, view.BrokerView]:
        """What each broker does and knows, by id."""
        processes = self._world.brokers
        return self._world.clock.call(lambda: {id: view.broker(process) for id, process in sorted(processes.items())})
