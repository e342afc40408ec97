"""The status of brokers and replicas at one moment of a model, and the differences of memories from ZooKeeper.

A status is a style of the palette and its words. Contexts of acting controllers and memories of brokers may differ.

A broker has two things of a partition: its role, by the last LeaderAndIsr that it obeyed, and an entry of its metadata
cache, by the last UpdateMetadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.replica import ReplicaState
from kafka_ctl.trace.model import ClusterModel, controller_of
from kafka_ctl.trace.seen import ControllerSeen, Key, Led, PartitionSeen
from kafka_ctl.views.captions import brokers, listed

ANSWERED = 1.0
"""Milliseconds after its own write in which no holder is said to differ from it: the answer is on its way."""
NOT_NOTIFIED = "not notified"
SAME = "the same"


class PartitionDifference(NamedTuple):
    """The differences about one partition: by broker id, the other value in words."""

    stored: Led
    contexts: dict[int, Led | None]
    """Acting controllers whose context has something else, None for nothing."""
    roles: dict[int, str]
    """Brokers that lead or follow otherwise."""
    metadata: dict[int, Led | None]
    """Brokers whose metadata cache differs."""
    odd: dict[int, str]
    """Replicas about which two facts in ZooKeeper itself contradict each other."""
    has_controller: bool
    """True if a controller acts."""

    def of(self, broker: int) -> str:
        """The difference about one replica in a few words, `controller 1: in sync`; empty if there is none."""
        if found := self.roles.get(broker) or self.odd.get(broker):
            return found
        mine = state_of(self.stored, broker)
        for number, has in self.contexts.items():
            if (theirs := state_of(has, broker)) != mine:
                return f"controller {number}: {theirs}"
        return ""


def state_of(state: Led | None, broker: int) -> str:
    """The role of a replica: `leader`, `in sync`, `out of sync`; `unknown` if no record says it."""
    if state is None:
        return "unknown"
    return "leader" if state.leader == broker else "in sync" if broker in state.isr else "out of sync"


class Differences:
    """The differences of a model that moves on; only changed parts are compared again."""

    def __init__(self) -> None:
        self.partitions: dict[Key, PartitionDifference] = {}
        self.sentences: list[str] = []
        """About brokers and controllers, not partitions."""
        self.compared: set[Key] = set()
        """The partitions that were compared the last time."""
        self._texts: dict[tuple[object, ...], str] = {}
        self._by_partition: dict[Key, str] = {}
        self._model: ClusterModel | None = None
        self._seq = self._whole = -2
        self._again: set[Key] = set()
        """Partitions whose znode has just been written."""

    def update(self, model: ClusterModel) -> Differences:
        """Compare the changes since the last time; another model is compared as a whole."""
        if model is not self._model:
            self.__init__()  # type: ignore[misc]
            self._model = model
        if model.seq == self._seq:
            self.compared = set()
            return self
        if model.reshaped > self._whole:
            self._whole, changed = model.reshaped, set(model.partitions)
            self.sentences = [*_controllership(model), *_live(model)]
        else:
            changed = {key for key, seq in model.changed.items() if seq > self._seq and key in model.partitions}
            changed |= self._again
        self._again = {key for key in changed if model.time_ms - model.partitions[key].written_ms <= ANSWERED}
        around = _Around(model)
        for key in changed:
            if (found := _partition(around, key)) is not None:
                self.partitions[key], self._by_partition[key] = found, self._text(found)
            elif key in self.partitions:
                del self.partitions[key], self._by_partition[key]
        self._seq, self.compared = model.seq, changed
        return self

    def counts(self) -> tuple[Counter[int], Counter[int]]:
        """In how many partitions each controller's context differs, and each broker's metadata."""
        found = self.partitions.values()
        return Counter(n for one in found for n in one.contexts), Counter(n for one in found for n in one.metadata)

    def text(self, most: int = 2) -> str:
        """All differences in words: `most` kinds at most, each with its partitions; other partitions are counted."""
        ways: dict[str, list[str]] = {}
        for key in sorted(self.partitions):
            ways.setdefault(self._by_partition[key], []).append(f"{key[0]}-{key[1]}")
        shown = [f"{listed(names)}: {way}." for way, names in list(ways.items())[:most]]
        rest = sum(len(names) for names in list(ways.values())[most:])
        more = [f"And {rest} more partition{'s' * (rest != 1)}."] if rest else []
        return " ".join([*self.sentences, *shown, *more])

    def _text(self, found: PartitionDifference) -> str:
        """The words for a partition; many have the same."""
        parts = found.contexts, found.roles, found.metadata, found.odd
        content = found.stored, found.has_controller, *(tuple(part.items()) for part in parts)
        if content not in self._texts:
            self._texts[content] = difference_text(found)
        return self._texts[content]


class _Around:
    """The other side of the comparison: controllers that act, brokers that are up, topics to be deleted."""

    def __init__(self, model: ClusterModel) -> None:
        self.model = model
        self.contexts = [found for found in model.acting() if found.live is not None and not found.reads]
        self.brokers = [
            (number, broker.beliefs.hosted, broker.beliefs.metadata)
            for number, broker in sorted(model.brokers.items())
            if broker.listens
        ]
        self.registered = {number for number, broker in model.brokers.items() if broker.registered}
        self.deleted = model.topics_to_be_deleted


def difference_of(model: ClusterModel, key: Key) -> PartitionDifference | None:
    """The differences about one partition; None if there are none."""
    return _partition(_Around(model), key) if key in model.partitions else None


def _partition(around: _Around, key: Key) -> PartitionDifference | None:
    """The differences about a partition; None if there are none, or its topic is to be deleted."""
    seen = around.model.partitions[key]
    stored = seen.led
    if stored is None or key[0] in around.deleted:
        return None
    fresh = seen.writer if around.model.time_ms - seen.written_ms <= ANSWERED else None
    contexts, roles, metadata = {}, {}, {}
    for context in around.contexts:
        has = context.leadership.get(key)
        # Its own broker, as a leader, keeps the leader epoch; each write of the controller has another one.
        own = context.id == fresh and (has is None or has.leader_epoch != stored.leader_epoch)
        if has != stored and not own and not _same(has, stored):
            contexts[context.id] = has
    replicas = seen.replicas
    for number, hosts, caches in around.brokers:
        hosted, cached = hosts.get(key), caches.get(key)
        if number not in replicas:
            if hosted is not None:
                roles[number] = f"still {role(number, hosted)}"
        elif hosted != stored and (text := _role(number, hosted, stored, number == fresh)):
            roles[number] = text
        if cached != stored and not _same(cached, stored):
            metadata[number] = cached
    odd = _odd(around, seen)
    if not (contexts or roles or metadata or odd):
        return None
    return PartitionDifference(stored, contexts, roles, metadata, odd, bool(around.contexts))


def _odd(around: _Around, seen: PartitionSeen) -> dict[int, str]:
    """A leader that is not registered or not in sync, and members of the ISR that are not assigned."""
    found: dict[int, str] = {}
    for broker in seen.isr if seen.replicas else ():
        if broker not in seen.replicas:
            found[broker] = "in ISR, not assigned"
    if seen.leader is not None and seen.leader != NO_LEADER:
        if seen.leader not in around.registered:
            found[seen.leader] = "leader not registered"
        elif seen.leader not in seen.isr:
            found[seen.leader] = "leader not in ISR"
    return found


def _same(has: Led | None, stored: Led) -> bool:
    """True if two states are the same; the order of an ISR does not count."""
    return has is not None and (has[0], has[2], set(has[1])) == (stored[0], stored[2], set(stored[1]))


def _role(broker: int, has: Led | None, stored: Led, fresh: bool) -> str:
    """The acts of an assigned broker that differ from ZooKeeper; empty if there are none."""
    if stored.leader == NO_LEADER:
        return role(broker, has) if has is not None and has.leader == broker else ""
    if has is None or (has.leader, has.leader_epoch) != (stored.leader, stored.leader_epoch):
        return role(broker, has)
    if has.leader == broker and not fresh and set(has.isr) != set(stored.isr):
        return f"leads, ISR {_ids(has.isr)}"
    return ""


def role(broker: int, has: Led | None) -> str:
    """The role of a broker in its own memory: `leads, epoch 1`, `follows 2, epoch 0`, `not notified`."""
    if has is None:
        return NOT_NOTIFIED
    if has.leader == NO_LEADER:
        return "knows no leader"
    return f"{'leads' if has.leader == broker else f'follows {has.leader}'}, epoch {has.leader_epoch}"


def difference_text(found: PartitionDifference) -> str:
    """One partition's differences: `ZooKeeper: leader 3, epoch 1; controller: the same; broker 3: not notified`.

    Only the aspects are named in which a broker or a controller differs.
    """
    stored = found.stored
    others = [has for has in (*found.contexts.values(), *found.metadata.values()) if has is not None]
    aspects = {"leader"}
    if found.roles or any(has.leader_epoch != stored.leader_epoch for has in others):
        aspects.add("epoch")
    texts = (*found.roles.values(), *found.odd.values())
    if any(set(has.isr) != set(stored.isr) for has in others) or any("ISR" in text for text in texts):
        aspects.add("isr")
    parts = [f"ZooKeeper: {_state(stored, aspects)}"]
    parts += [f"controller {number}: {_state(has, aspects)}" for number, has in found.contexts.items()]
    if found.has_controller and not found.contexts:
        parts.append(f"controller: {SAME}")
    ways: dict[str, list[int]] = {}
    for number, text in (*found.roles.items(), *found.odd.items()):
        ways.setdefault(text, []).append(number)
    parts += [f"{brokers(numbers)}: {_plural(text, len(numbers))}" for text, numbers in ways.items()]
    caches: dict[str, list[int]] = {}
    for number, has in found.metadata.items():
        caches.setdefault(_state(has, aspects), []).append(number)
    parts += [f"metadata of {listed(numbers, 8)}: {text}" for text, numbers in caches.items()]
    return "; ".join(parts)


def _plural(text: str, count: int) -> str:
    """The role of several brokers: `follow 1, epoch 0`."""
    word, _, rest = text.partition(" ")
    return f"{word[:-1]} {rest}" if count > 1 and word in ("leads", "follows", "knows") else text


def _state(has: Led | None, aspects: set[str]) -> str:
    if has is None:
        return "nothing"
    words = ["no leader" if has.leader == NO_LEADER else f"leader {has.leader}"]
    words += [f"epoch {has.leader_epoch}"] * ("epoch" in aspects)
    words += [f"ISR {_ids(has.isr)}"] * ("isr" in aspects)
    return ", ".join(words)


def _ids(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers)) or "empty"


def is_stale(model: ClusterModel, context: ControllerSeen | None) -> bool:
    """True if a controller acts though ZooKeeper names another broker, or none."""
    return context is not None and context.acts and bool(model.znodes) and named_controller(model) != context.id


def named_controller(model: ClusterModel) -> int | None:
    """The broker that `/controller` names."""
    there = model.znodes.get("/controller")
    return controller_of(there.data) if there else None


def _controllership(model: ClusterModel) -> Iterator[str]:
    named = named_controller(model)
    for context in filter(partial(is_stale, model), model.acting()):
        epoch = f", epoch {context.epoch}" if context.epoch is not None else ""
        names = "no broker" if named is None else f"broker {named}"
        yield f"Controller: ZooKeeper: {names}; broker {context.id}: itself{epoch}."


def _live(model: ClusterModel) -> Iterator[str]:
    """Brokers that a controller takes for registered, gone or leaving when they are not; logs do not say which are."""
    for context in () if model.of_logs else model.acting():
        if context.live is None or context.reads:
            continue
        for number, broker in sorted(model.brokers.items()):
            if broker.registered != (number in context.live):
                words = ("registered", "not registered")[:: 1 if broker.registered else -1]
                yield f"Broker {number}: ZooKeeper: {words[0]}; controller {context.id}: {words[1]}."
            elif number in context.shutting_down and broker.registered and broker.listens and not broker.shutting_down:
                yield f"Broker {number}: up; controller {context.id}: shuts down."


GLYPHS = {
    "leader": "none",  # its star is a part of its own, which glides
    "insync": "dot",
    "lagging": "ring",
    "offline": "cross",
    "new": "plus",
    "deleting": "minus",
}
"""The role of a replica -> its sign without colour."""


DELETING = (ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL)
"""States of a replica whose broker was asked to delete it."""


def broker_state(model: ClusterModel, number: int) -> tuple[str, str]:
    """The style of a broker and the text under its name."""
    seen = model.brokers.get(number)
    if seen is None or not (seen.alive or seen.known or seen.registered):
        return "absent", "not seen yet"
    if not seen.alive and not seen.registered:
        return "down", "down"
    if not seen.alive:
        return "doubtful", "dead, still registered"
    if seen.paused:
        return "doubtful", "paused"
    if number in model.cuts:
        return "doubtful", f"cut off from {', '.join(dict.fromkeys(model.cuts[number]))}"
    context = model.context_of(number)
    if context is not None and is_stale(model, context):
        return "doubtful", "still acts" + (f", epoch {context.epoch}" if context.epoch is not None else "")
    if seen.note or not seen.registered:
        return "doubtful", seen.note or "alive, not registered"
    if model.controller == number:
        epoch = controller_epoch(model)
        return "active", "controller" + (f", epoch {epoch}" if epoch is not None else "")
    return "", "up"


def session_state(model: ClusterModel, number: int, time_ms: float) -> str:
    """The silence of a broker's session in ZooKeeper, and its limit; empty if it is not silent."""
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
    if (host is not None and host.is_gone) or (own == "OfflineReplica" and seen.leader != broker):
        return "offline"
    if seen.leader is None:
        return "new"
    if broker == seen.leader:
        return "leader"
    return "insync" if broker in seen.isr else "lagging"


def summary(model: ClusterModel) -> str:
    """The state of the cluster in words, for readers who cannot see the picture."""
    idle = idle_controller(model)
    ruler = "No controller." if idle is None else f"No controller: {idle}."
    if model.controller is not None and not _has_ended(model, model.controller):
        epoch = controller_epoch(model)
        raised = f"epoch {epoch}" if epoch is not None else "which has not raised the epoch yet"
        ruler = f"Controller: broker {model.controller}, {raised}."
    if not model.brokers and not model.partitions:
        return f"{ruler} No broker has been seen yet."
    up = sorted(b.id for b in model.brokers.values() if b.alive)
    down = sorted(b.id for b in model.brokers.values() if not b.alive and (b.known or b.registered))
    running = f"Brokers up: {', '.join(map(str, up)) or 'none'}; down: {', '.join(map(str, down)) or 'none'}."
    deleted = model.topics_to_be_deleted
    kept = {key: seen for key, seen in model.partitions.items() if key[0] not in deleted and model.members(key)}
    waiting = [key for key, seen in kept.items() if seen.leader is None]
    found = {"Without a leader": model.leaderless(), "No leader yet": waiting}
    missing = [f"{text}: {_some(keys)}." for text, keys in found.items() if keys]
    if kept and not missing:
        missing = ["Every partition has a leader."]
    return " ".join([ruler, running, *missing])


def _some(keys: list[tuple[str, int]], most: int = 6) -> str:
    """The first of the partitions, and how many more there are."""
    names = ", ".join(f"{topic}-{partition}" for topic, partition in keys[:most])
    return names + (f" and {len(keys) - most} more" if len(keys) > most else "")


def idle_controller(model: ClusterModel) -> str | None:
    """The warning that `/controller` names a broker that does not act; None if there is none."""
    named = named_controller(model)
    if named is None or (named == model.controller and model.broker(named).alive and not _has_ended(model, named)):
        return None
    return f"/controller names broker {named}, which does not act"


def _has_ended(model: ClusterModel, number: int) -> bool:
    """True if a broker's controller was elected by a process that has ended since, though its znode may stand."""
    context = model.context_of(number)
    return context is not None and not context.acts
