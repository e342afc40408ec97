"""A generation of Kafka's controller is data: every difference is a field with its ticket.

Code asks `generation.pipelined`, never for a version number. `Generation("2.0").but(pipelined=False)` is a
controller that never existed and shows what one ticket bought.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kafka_ctl.errors import BadInput, UnknownName


def _field(default: Any, doc: str, ticket: str) -> Any:
    return field(default=default, metadata={"doc": doc, "ticket": ticket})


def _field(doc: str, ticket: str) -> Any:
    return field(metadata={"doc": doc, "ticket": ticket})


DEFAULTS: dict[str, Any] = {
    "auto.leader.rebalance.enable": True,
    "broker.id.generation.enable": True,
    "controlled.shutdown.enable": True,
    "controlled.shutdown.max.retries": 3,
    "controlled.shutdown.retry.backoff.ms": 5000,
    "controller.socket.timeout.ms": 30000,
    "default.replication.factor": 1,
    "delete.topic.enable": True,
    "leader.imbalance.check.interval.seconds": 300,
    "leader.imbalance.per.broker.percentage": 10,
    "min.insync.replicas": 1,
    "num.partitions": 1,
    "replica.lag.time.max.ms": 10000,
    "reserved.broker.max.id": 1000,
    "unclean.leader.election.enable": False,
    "zookeeper.max.in.flight.requests": 10,
    "zookeeper.session.timeout.ms": 6000,
}
"""Kafka 2.0.1's configuration keys that the lab obeys, with their defaults."""


@dataclass(frozen=True, init=False)
class Generation:
    """One generation: `Generation("2.0")`; UnknownName for others, BadInput for a field it does not have."""

    name: str
    """Its short name; a hybrid keeps the name it was made from, with the changed fields."""
    kafka: str = _field("the release whose source is followed", "")
    pipelined: bool = _field("ZooKeeper operations go out in a window instead of one at a time", "KAFKA-5642")
    elects_already_preferred: bool = _field(
        "a preferred election bumps the leader epoch also where the preferred replica leads already", "KAFKA-5642"
    )
    retries_whole_batch: bool = _field(
        "after a version conflict all partitions of a batch are elected again, not only the one", "KAFKA-8286"
    )
    shutdown_tells_leaving_broker: bool = _field(
        "a broker in controlled shutdown is told of the leaders that replace it", "KAFKA-7482"
    )
    metadata_to_all_on_broker_change: bool = _field(
        "a broker that comes or goes makes the controller send all metadata to every broker", "KAFKA-7537"
    )
    fences_writes: bool = _field("a controller's writes fail once another has been elected", "KAFKA-6082")
    broker_epochs: bool = _field(
        "each life of a broker has an epoch; requests of another life are refused and a quick restart is noticed",
        "KAFKA-7235",
    )
    preempts_queue: bool = _field("events dropped at session expiry answer those who wait for them", "KAFKA-7235")
    stops_dead_replicas_at_startup: bool = _field(
        "a new controller takes replicas on dead brokers out of their ISRs", "KAFKA-3143"
    )
    announces_leaderless_replicas: bool = _field(
        "a replica that goes offline is announced also where no leader was ever elected", "KAFKA-3143"
    )
    shutdown_skips_deletions: bool = _field(
        "a controlled shutdown leaves partitions of topics being deleted alone", "KAFKA-6753"
    )
    incremental_reassignment: bool = _field(
        "a reassignment stands in the topic's znode and can be changed and cancelled", "KIP-455"
    )
    caches_bumped_epoch: bool = _field(
        "the leader epoch raised for a reassignment also enters the controller's cache", "KAFKA-9212"
    )
    partitions_leave_first: bool = _field(
        "partitions leave the state machine when the deletion of their topic begins, not when it ends", "KAFKA-6753"
    )
    groups_stop_replica: bool = _field("StopReplica requests to one broker travel together", "KAFKA-8294")
    config: Mapping[str, Any] = field(hash=False, metadata={"doc": "Kafka's configuration defaults", "ticket": ""})

    def __init__(self, name: str | Generation = "2.0", **changes: Any) -> None:
        if isinstance(name, Generation):
            values = {f.name: getattr(name, f.name) for f in fields(name)}
        elif name in GENERATIONS:
            values = {"name": name, **GENERATIONS[name]}
        else:
            raise UnknownName("generation", name, GENERATIONS)
        if unknown := sorted(changes.keys() - values.keys()):
            raise UnknownName("field of Generation", unknown[0], values)
        for key, value in (values | changes).items():
            if isinstance(values[key], bool) and not isinstance(value, bool):
                raise BadInput(f"Generation.{key} cannot be {value!r}; it is True or False")
            object.__setattr__(self, key, value)

    def but(self, **changes: Any) -> Generation:
        """The same generation with some fields changed: a hybrid for lessons and exhibits."""
        return Generation(self, **changes)

    @property
    def changes(self) -> dict[str, Any]:
        """The fields in which a hybrid differs from the generation it is named after."""
        plain = GENERATIONS[self.name]
        return {key: getattr(self, key) for key, value in plain.items() if getattr(self, key) != value}

    def __str__(self) -> str:
        return self.name + "".join(f" {key}={value}" for key, value in self.changes.items())


GENERATIONS: dict[str, dict[str, Any]] = {
    "2.0": {
        "kafka": "2.0.1",
        "pipelined": True,
        "elects_already_preferred": True,
        "retries_whole_batch": True,
        "shutdown_tells_leaving_broker": False,
        "metadata_to_all_on_broker_change": True,
        "fences_writes": False,
        "broker_epochs": False,
        "preempts_queue": False,
        "stops_dead_replicas_at_startup": False,
        "announces_leaderless_replicas": False,
        "shutdown_skips_deletions": False,
        "incremental_reassignment": False,
        "caches_bumped_epoch": False,
        "partitions_leave_first": False,
        "groups_stop_replica": False,
        "config": DEFAULTS,
    },
    "2.4": {
        "kafka": "2.4.1",
        "pipelined": True,
        "elects_already_preferred": False,
        "retries_whole_batch": False,
        "shutdown_tells_leaving_broker": True,
        "metadata_to_all_on_broker_change": False,
        "fences_writes": True,
        "broker_epochs": True,
        "preempts_queue": True,
        "stops_dead_replicas_at_startup": True,
        "announces_leaderless_replicas": True,
        "shutdown_skips_deletions": True,
        "incremental_reassignment": True,
        "caches_bumped_epoch": True,
        "partitions_leave_first": True,
        "groups_stop_replica": True,
        "config": DEFAULTS,
    },
}
"""The fields of each generation."""
