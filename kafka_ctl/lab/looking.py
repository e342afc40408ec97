"""Looking at a lab: its trace, its znodes, its partitions, replicas and brokers, without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.lab import view
from kafka_ctl.lab.invariants import Violation
from kafka_ctl.lab.metrics import Timer, metrics
from kafka_ctl.lab.world import World
from kafka_ctl.trace import Trace

if TYPE_CHECKING:
    from kafka_ctl.zookeeper.server import EmbeddedServer

T = TypeVar("T")


class Looking:
    """The part of a lab that only looks."""

    _world: World

    @property
    def now(self) -> float:
        """Seconds since the lab was opened."""
        return self._world.clock.now()

    @property
    def trace(self) -> Trace:
        """Everything that has happened so far, as records."""
        return self._world.trace

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The invariants broken so far, each once for each thing it is about; `known` is the ticket of a real bug."""
        return self._world.violations

    @property
    def config(self) -> Mapping[str, Any]:
        """Kafka's configuration of every broker."""
        return dict(self._world.config)

    def znodes(self) -> view.Znodes:
        """{path: (data, version, ephemeral owner)}, sorted by path."""
        return self._look(lambda znodes: znodes)

    def _look(self, at: Callable[[view.Znodes], T]) -> T:
        """Look at ZooKeeper, and at the actors while none of them moves."""

        return self._world.look(at)

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

    def metrics(self, broker: int) -> dict[str, int | Timer]:
        """What JMX would show of a broker's controller: the length of its event queue, times of waiting and work (ms).

        BadInput for 0.10, which had no queue; UnknownName for a broker that is not there.
        """
        if broker not in self._world.brokers:
            raise UnknownName("broker", broker, sorted(self._world.brokers))
        if not self._world.generation.single_threaded:
            raise BadInput("metrics: Kafka 0.10 has no event queue, and so none of its metrics")
        return self._world.clock.call(lambda: metrics(self.trace, broker))

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
        return self._world.clock.call(lambda: {id: view.broker(process) for id, process in sorted(processes.items())})
