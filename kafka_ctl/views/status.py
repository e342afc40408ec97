"""How brokers and replicas stand at one moment of a model: as a style of the palette, and in words."""

from __future__ import annotations

from kafka_ctl.replica import ReplicaState
from kafka_ctl.trace.model import ClusterModel, controller_of
from kafka_ctl.views.differences import is_stale

GLYPHS = {
    "leader": "none",  # its star is a part of its own, which glides
    "insync": "dot",
    "lagging": "ring",
    "offline": "cross",
    "new": "plus",
    "deleting": "minus",
}
"""How a replica stands -> the sign that says so without colour."""


DELETING = (ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL)
"""States of a replica whose broker was asked to delete it."""


def broker_state(model: ClusterModel, number: int) -> tuple[str, str]:
    """The style of a broker and what is written under its name."""
    seen = model.brokers.get(number)
    if seen is None:
        return "absent", "not seen yet"
    if not seen.alive and not seen.registered:
        return "down", "down"
    if not seen.alive:
        return "doubtful", "dead, still registered"
    if seen.note == "paused":
        return "doubtful", "paused"
    if number in model.cuts:
        return "doubtful", f"cut off from {', '.join(dict.fromkeys(model.cuts[number]))}"
    context = model.context_of(number)
    if context is not None and is_stale(model, context):
        return "doubtful", "still acts" + (f", epoch {context.epoch}" if context.epoch is not None else "")
    if not seen.registered:
        return "doubtful", seen.note or "alive, not registered"
    if model.controller == number:
        epoch = controller_epoch(model)
        return "active", "controller" + (f", epoch {epoch}" if epoch is not None else "")
    return "", "up"


def session_state(model: ClusterModel, number: int, time_ms: float) -> str:
    """What ZooKeeper knows of a broker's session: how long it has been silent, of how long it may be; else empty."""
    seen = model.brokers.get(number)
    if seen is None or not seen.registered or seen.silent is None or seen.timeout is None:
        return ""
    return f"silent {max(0.0, time_ms - seen.silent) / 1000:.1f} of {seen.timeout / 1000:g} s"


def controller_epoch(model: ClusterModel) -> int | None:
    """The epoch of the controller, as it has it; None until it has raised it."""
    context = model.context_of(model.controller)
    return context.epoch if context is not None else model.controller_epoch


def replica_state(model: ClusterModel, key: tuple[str, int], broker: int) -> str:
    """The style of a replica: how it stands to its partition, and whether it can answer."""
    seen, own = model.partitions[key], model.replicas.get((*key, broker), "")
    host = model.brokers.get(broker)
    queued = key[0] in model.topics_to_be_deleted and own == ReplicaState.NON_EXISTENT
    if own in DELETING or queued or (own.startswith("ReplicaDeletion") and seen.leader is None):
        return "deleting"
    if (host is not None and not host.alive) or (own == "OfflineReplica" and seen.leader != broker):
        return "offline"
    if seen.leader is None:
        return "new"
    if broker == seen.leader:
        return "leader"
    return "insync" if broker in seen.isr else "lagging"


def summary(model: ClusterModel) -> str:
    """The state of the cluster in words, for who cannot see the picture."""
    up = [b.id for b in model.brokers.values() if b.alive]
    down = [b.id for b in model.brokers.values() if not b.alive]
    idle = idle_controller(model)
    ruler = "No controller." if idle is None else f"No controller: {idle}."
    if model.controller is not None and not _has_ended(model, model.controller):
        epoch = controller_epoch(model)
        ruler = f"Controller: broker {model.controller}, " + (
            f"epoch {epoch}." if epoch is not None else "which has not raised the epoch yet."
        )
    if not model.brokers and not model.partitions:
        return f"{ruler} No broker has been seen yet."
    running = f" Brokers up: {_ids(up)}; down: {_ids(down)}."
    if not model.partitions:
        return ruler + running
    deleted = model.topics_to_be_deleted
    kept = {key: seen for key, seen in model.partitions.items() if key[0] not in deleted and model.members(key)}
    waiting, lost = [key for key, seen in kept.items() if seen.leader is None], model.leaderless()
    found = {"Without a leader": lost, "No leader yet": waiting}
    missing = [f" {text}: {_some(keys)}." for text, keys in found.items() if keys]
    every = [" Every partition has a leader."] if kept else []
    return "".join([ruler, running, *(missing or every)])


def _some(keys: list[tuple[str, int]], most: int = 6) -> str:
    """The first of the partitions, and how many more there are."""
    names = ", ".join(f"{topic}-{partition}" for topic, partition in keys[:most])
    return names + (f" and {len(keys) - most} more" if len(keys) > most else "")


def idle_controller(model: ClusterModel) -> str | None:
    """What is to be said where `/controller` names a broker that does not act; None where all is well."""
    stored = model.znodes.get("/controller")
    named = controller_of(stored.data) if stored else None
    if named is None or (named == model.controller and model.broker(named).alive and not _has_ended(model, named)):
        return None
    return f"/controller names broker {named}, which does not act"


def _has_ended(model: ClusterModel, number: int) -> bool:
    """Whether a broker's controller was elected by a process that has ended since, though its znode may stand."""
    context = model.context_of(number)
    return context is not None and not context.acts


def _ids(numbers: list[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"
