"""A world: the three ports (store, network, clock), the settings, and the brokers that live in it.

`memory` is virtual time and a ZooKeeper in this process; everything else is real time and a real ZooKeeper: one
started for the lab (`embedded`) or anybody's (`host:port/chroot`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.controller.controller import Controller
from kafka_ctl.errors import BadInput, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.lab.clock import Clock, RealClock, VirtualClock
from kafka_ctl.lab.costs import Costs
from kafka_ctl.lab.network import Network
from kafka_ctl.trace import Trace
from kafka_ctl.zookeeper.kafka import KafkaZk
from kafka_ctl.zookeeper.memory import MemoryStore
from kafka_ctl.zookeeper.store import Store

MEMORY, EMBEDDED = "memory", "embedded"
CLUSTER_ID = "kafka-ctl-teaching-kit"
REAL_COSTS = Costs(zookeeper_round_trip=0.0, request=0.0, request_state=0.0, boot=0.0, catch_up=0.2)
"""On real time the machine itself takes its time."""


def parse_config(generation: Generation, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Kafka's configuration with the generation's defaults; UnknownName or BadInput for what it cannot be."""
    config = dict(generation.config)
    for key, value in (given or {}).items():
        if key not in config:
            raise UnknownName("configuration key", key, sorted(config))
        default = config[key]
        if isinstance(default, bool) is not isinstance(value, bool) or not isinstance(value, (bool, int)):
            wanted = "True or False" if isinstance(default, bool) else "a whole number"
            raise BadInput(f"configuration key {key!r} cannot be {value!r}; it is {wanted}")
        if not isinstance(value, bool) and value < 0:
            raise BadInput(f"configuration key {key!r} cannot be {value}; it is 0 or more")
        config[key] = value
    return config


def parse_brokers(brokers: int | Iterable[int] | Mapping[int, str | None]) -> dict[int, str | None]:
    """Broker ids and their racks: 3 means 1, 2, 3; or a list of ids; or {id: rack}."""
    if isinstance(brokers, int) and not isinstance(brokers, bool):
        if not 1 <= brokers <= 1000:
            raise BadInput(f"brokers={brokers}: a lab has 1 to 1000 brokers, or a list of their ids")
        return dict.fromkeys(range(1, brokers + 1))
    if isinstance(brokers, (str, bytes)) or not isinstance(brokers, Iterable):
        raise BadInput(f"brokers={brokers!r}: a number of brokers, a list of ids, or a mapping of ids to racks")
    racks = dict(brokers) if isinstance(brokers, Mapping) else dict.fromkeys(brokers)
    if not racks:
        raise BadInput("brokers: a lab needs at least one broker")
    for broker in racks:
        if not isinstance(broker, int) or isinstance(broker, bool) or broker < 0:
            raise BadInput(f"broker id {broker!r}: an id is a whole number, 0 or more")
    if not isinstance(brokers, Mapping) and len(racks) != len(list(brokers)):
        raise BadInput(f"brokers={list(brokers)}: an id stands there twice")
    return dict(sorted(racks.items()))


class World:
    """Everything the brokers of one lab share. `zookeeper` is `memory`, `embedded` or an address."""

    def __init__(
        self, zookeeper: str, generation: Generation, config: Mapping[str, Any], seed: int, costs: Costs | None,
        history: str = "lab",
    ) -> None:
        self.generation, self.config, self.cluster_id = generation, config, CLUSTER_ID
        self.random = random.Random(seed)
        self.is_memory = zookeeper == MEMORY
        self.clock: Clock = VirtualClock() if self.is_memory else RealClock()
        self.costs = costs or (Costs() if self.is_memory else REAL_COSTS)
        self.trace = Trace(self.clock.now, history=history)
        self.registration_retry = 0.5
        try:
            self.store = self._store(zookeeper)
        except BaseException:
            self.clock.close()
            raise
        self.network = Network(self.clock, self.costs.request)
        self.brokers: dict[int, Broker] = self.network.brokers

    def _store(self, zookeeper: str) -> Store:
        if self.is_memory:
            return MemoryStore(self.clock, self.trace, self.costs.zookeeper_round_trip)
        from kafka_ctl.zookeeper.remote import RemoteStore
        from kafka_ctl.zookeeper.server import EmbeddedServer

        if zookeeper == EMBEDDED:
            server = EmbeddedServer().start()
            return RemoteStore(server.address, self.clock, self.trace, server)
        return RemoteStore(zookeeper, self.clock, self.trace)

    def add_broker(self, id: int, rack: str | None) -> Broker:
        """A broker that is not started yet."""
        broker = self.brokers[id] = self.clock.call(lambda: Broker(id, rack, self))
        return broker

    def make_controller(self, broker: Broker) -> Controller:
        return Controller(
            broker.id, KafkaZk(broker.zk), self.network, self.clock, self.trace, self.generation, self.config, broker.register
        )

    def boot_delay(self) -> float:
        """How long the next broker takes to start: the seed decides who is first."""
        return self.costs.boot * (1 + self.random.random())

    # What the lab asks of time

    def acting(self) -> Controller | None:
        """The controller instance that believes to be active in a running process; the newest epoch if several do."""
        active = [b.controller for b in self.brokers.values() if b.listening and b.controller.is_active]
        return max(active, key=lambda c: c.context.epoch, default=None)

    def quiet(self) -> bool:
        """In real time: nothing is queued or under way, and the controller knows who is there."""
        running = {b.id for b in self.brokers.values() if b.state != "down"}
        busy = any(
            b.state == "starting" or (b.listening and (len(b.controller.queue) or b.controller.state != "Idle"
                                      or b.controller.channels.waiting))
            for b in self.brokers.values()
        )
        if busy or getattr(self.clock, "pending", 0):
            return False
        acting = self.acting()
        return not running or (acting is not None and acting.context.brokers.keys() == running)

    def settle(self, limit: float | None = None) -> None:
        if isinstance(self.clock, VirtualClock):
            self.clock.settle(**({} if limit is None else {"limit": limit}))
            return
        still = 0

        def quiet_for_a_while() -> bool:
            nonlocal still
            still = still + 1 if self.quiet() else 0
            return still > 20

        self.clock.wait(quiet_for_a_while, 60.0 if limit is None else limit)  # type: ignore[attr-defined]

    def run_until(self, holds: Callable[[], bool], limit: float) -> bool:
        """Let time pass until `holds()`; False when it did not come to that."""
        if isinstance(self.clock, VirtualClock):
            self.clock.drive(holds, self.clock.now() + limit)
            return holds()
        from kafka_ctl.errors import NotReached

        try:
            self.clock.wait(holds, limit)  # type: ignore[attr-defined]
        except NotReached:
            return False
        return True

    def close(self) -> None:
        """Stop every process and let go of ZooKeeper."""

        async def end() -> None:
            for broker in self.brokers.values():
                broker._end()
            await self.store.close()

        try:
            self.clock.run(end())
        finally:
            self.clock.close()
