"""A lab that begins as a real cluster: what is read from its ZooKeeper becomes a `Description`.

The brokers, racks, topics, settings, assignments, leaders, ISRs, epochs and versions are those of the cluster, and so
are its controller and the requests of administrators that wait. The contents of logs are not in ZooKeeper: a replica in
the ISR has all records, another one lags behind.

Separate from `description.py` because that needs no ZooKeeper of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka_ctl.brokers.config_keys import TOPIC, check_values, keys
from kafka_ctl.cluster import NO_LEADER, LeaderAndIsr, TopicPartition, parse_int
from kafka_ctl.errors import ApiException, BadInput, Unavailable, short
from kafka_ctl.foreign.cluster import (
    BROKER_CONFIGS,
    CLUSTER_WIDE,
    CONTROLLER,
    DELETIONS,
    EPOCH,
    PREFERRED,
    REASSIGNMENTS,
    TOPIC_CONFIGS,
    Cluster,
    Release,
    release_of,
)
from kafka_ctl.foreign.read_only import Auth, remote
from kafka_ctl.foreign.reading import Progress, Reader
from kafka_ctl.generation import REPLICA_LAG_TIME, Generation
from kafka_ctl.lab import validate
from kafka_ctl.lab.description import Description, PartitionDescription, check_description
from kafka_ctl.lab.story import Opening

SESSION_SECONDS = 18.0
"""The timeout of the session that reads."""


class Origin(NamedTuple):
    """The cluster that a lab began as. `notes` are sentences about what the lab does not have from it."""

    address: str
    release: Release
    notes: tuple[str, ...]

    def __str__(self) -> str:
        differs = [f"  differs: {text}" for text in self.release.differences]
        return "\n".join([f"{self.address}: {self.release}", *differs, *(f"  note: {text}" for text in self.notes)])


def read_cluster(address: str, progress: Progress | None = None, auth: Auth | None = None) -> Cluster:
    """Read the cluster once, in a session that can only read.

    Raises BadInput for an address that cannot be read, Unavailable where no ZooKeeper answers or no Kafka is found.
    """
    from kafka_ctl.simulation.clock import RealClock

    clock, reader = RealClock(), Reader(address, progress=progress)

    async def read() -> None:
        store = remote(address, clock, auth)
        session = await store.connect("reader", SESSION_SECONDS, lambda _: None, lambda _: None)
        try:
            await reader.read(session)
        finally:
            await session.close()

    try:
        clock.run(read())
    finally:
        clock.close()
    return reader.cluster


def options_of(address: str, cluster: Cluster, options: Mapping[str, object]) -> tuple[Opening, Origin]:
    """The arguments of `Lab` for this cluster, and where they come from; `options` given by the caller come first.

    Raises Unavailable for a cluster that is being migrated to KRaft, and BadInput for one with a znode that cannot be
    understood, with no live broker, or with a description that cannot be.
    """
    if cluster.migrates:
        raise Unavailable(f"{address}: {cluster.migrates}; the kit has no KRaft controller and cannot play it")
    if bad := [text for path, text in cluster.problems.items() if not path.startswith("/config/")]:
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise BadInput(f"{address} has a znode that cannot be understood{more}: {bad[0]}")
    if not cluster.brokers:
        raise BadInput(f"{address} has no registered broker; a lab begins as a cluster that is up")
    release = release_of(cluster)
    asked = options.get("generation", release.generation)
    generation = asked if isinstance(asked, Generation) else Generation(str(asked))
    notes = [*cluster.problems.values()]
    described = check_description(address, _description(cluster, generation, notes))
    racks = {id: cluster.brokers[id].rack if id in cluster.brokers else None for id in described.brokers}
    config = {
        **release.config,
        **_cluster_wide(cluster, generation, notes),
        **validate.mapping("a config", options.get("config", {})),
    }
    notes.append(_assumed({**generation.config, **config}))
    given: Opening = {"brokers": racks, "generation": generation, "history": address} | dict(options)
    return given | {"config": config, "described": described}, Origin(address, release, tuple(notes))


def _description(cluster: Cluster, generation: Generation, notes: list[str]) -> Description:
    partitions: dict[TopicPartition, PartitionDescription] = {}
    for tp, (replicas, adding, removing), stored in cluster.partitions():
        state = stored or LeaderAndIsr(NO_LEADER, (), leader_epoch=-1)
        leader = None if state.leader == NO_LEADER else state.leader
        epochs = (state.leader_epoch, state.zk_version, state.controller_epoch)
        partitions[tp] = PartitionDescription(replicas, leader, state.isr, adding, removing, *epochs)
    settings: dict[str, dict[str, str]] = {}
    for topic in cluster.topics:
        if config := _known(topic, cluster.configs.get(f"topics/{topic}", {}), generation, notes):
            settings[topic] = config
    found = {path: node.text for path, node in cluster.znodes.items() if path in (EPOCH, REASSIGNMENTS, PREFERRED)}
    found |= {f"{DELETIONS}/{topic}": "" for topic in cluster.deleting}
    for path, node in cluster.znodes.items():
        if path.startswith(BROKER_CONFIGS) and path not in cluster.problems:
            found[path] = node.text
    controller = cluster.controller
    if controller is not None and not controller.doubt and controller.epoch is not None:
        found[CONTROLLER] = str(controller.id)
    return Description((), partitions, settings, tuple(sorted(cluster.brokers)), found)


def _assumed(config: Mapping[str, object]) -> str:
    """The settings that a prediction depends on, and that no znode has."""
    session, lag = (f"{key}={config[key]}" for key in ("zookeeper.session.timeout.ms", REPLICA_LAG_TIME))
    return (
        f"settings in the brokers' files are not in ZooKeeper, so the lab has {session} and {lag}; give others as "
        "config=. The shorter of these times decides whether the controller takes a dead replica out of an ISR or the "
        "leader, which does not raise the leader epoch"
    )


def _known(topic: str, config: dict[str, str], generation: Generation, notes: list[str]) -> dict[str, str]:
    """The settings of a topic that the generation can have; the others become a note."""
    known, kept = keys(TOPIC, generation.name), dict(config)
    for key in config:
        try:
            check_values({key: config[key]}, known, generation)
        except ApiException as error:
            del kept[key]
            notes.append(f"{TOPIC_CONFIGS}/{topic}: {key} is left out: {error}")
    return kept


def _cluster_wide(cluster: Cluster, generation: Generation, notes: list[str]) -> dict[str, object]:
    """The cluster-wide settings that a lab obeys, as `Lab(config=...)` takes them; the others become a note."""
    found: dict[str, object] = {}
    for key, text in cluster.configs.get("brokers/<default>", {}).items():
        value = {"true": True, "false": False}.get(text.lower(), parse_int(text))
        try:
            validate.parse_config(generation, {key: value})
        except BadInput:
            notes.append(f"{CLUSTER_WIDE}: {key}={short(text)} is not obeyed by the lab")
        else:
            found[key] = value
    return found
