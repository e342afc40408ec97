"""Where somebody has something else than ZooKeeper: the acting controllers in their contexts, the brokers in memory.

A broker has two things of a partition: its role, by the last LeaderAndIsr that it obeyed, and an entry of its metadata
cache, by the last UpdateMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka_ctl.cluster import NO_LEADER
from kafka_ctl.trace.beliefs import ControllerSeen, Key, Led
from kafka_ctl.trace.model import ClusterModel, PartitionSeen, controller_of
from kafka_ctl.views.wording import brokers, listed

ANSWERED = 1.0
"""Milliseconds after its own write in which somebody is not said to differ from it: the answer is on its way."""
NOT_TOLD = "not told"
SAME = "the same"


class PartitionDifference(NamedTuple):
    """What differs about one partition; the dictionaries have broker ids and what is said there instead."""

    stored: Led
    contexts: dict[int, Led | None]
    """Acting controllers whose context has something else, None for nothing."""
    roles: dict[int, str]
    """Brokers that lead or follow otherwise."""
    metadata: dict[int, Led | None]
    """Brokers whose metadata cache has something else."""
    odd: dict[int, str]
    """Replicas of which ZooKeeper itself says two things that do not go together."""

    def of(self, broker: int) -> str:
        """What is otherwise about one replica, in some words; empty where nothing is."""
        found = self.roles.get(broker) or self.odd.get(broker)
        context = "" if found else self.in_context(broker)
        return f"controller: {context}" if context else found or ""

    def in_context(self, broker: int) -> str:
        """What the first of the contexts that differ says of one replica; empty where that is the same."""
        for has in self.contexts.values():
            mine, theirs = standing(self.stored, broker), standing(has, broker)
            if mine != theirs:
                return theirs
        return ""


def standing(state: Led | None, broker: int) -> str:
    """How a replica stands to its partition: `leader`, `in sync`, `out of sync`; `unknown` where nobody knows."""
    if state is None:
        return "unknown"
    return "leader" if state.leader == broker else "in sync" if broker in state.isr else "out of sync"


class Differences:
    """The differences of a model that moves on; only what has changed is compared again."""

    def __init__(self) -> None:
        self.partitions: dict[Key, PartitionDifference] = {}
        self.sentences: list[str] = []
        """About brokers and controllers, not partitions."""
        self._model: ClusterModel | None = None
        self._seq = self._whole = -2
        self._again: set[Key] = set()
        """Partitions that somebody has just written."""

    def update(self, model: ClusterModel) -> Differences:
        """Compare what has changed since the last time; another model is compared as a whole."""
        if model is not self._model:
            self.__init__()  # type: ignore[misc]
            self._model = model
        if model.seq == self._seq:
            return self
        if model.reshaped > self._whole:
            self._whole, changed = model.reshaped, set(model.partitions)
            self.sentences = [*_controllership(model), *_live(model)]
        else:
            changed = {key for key, seq in model.changed.items() if seq > self._seq and key in model.partitions}
            changed |= self._again
        self._again = {key for key in changed if model.time_ms - model.partitions[key].written_ms <= ANSWERED}
        for key in changed:
            self.partitions.pop(key, None)
            if (found := _partition(model, key)) is not None:
                self.partitions[key] = found
        self._seq = model.seq
        return self

    def in_metadata(self, broker: int) -> int:
        """In how many partitions the metadata of a broker differs."""
        return sum(broker in found.metadata for found in self.partitions.values())

    def in_context(self, controller: int) -> int:
        """In how many partitions the context of a controller differs."""
        return sum(controller in found.contexts for found in self.partitions.values())

    def text(self, most: int = 2) -> str:
        """All of it in words; of partitions that differ in the same way so many ways, the rest counted."""
        ways: dict[str, list[str]] = {}
        for key in sorted(self.partitions):
            ways.setdefault(said(self.partitions[key]), []).append(f"{key[0]}-{key[1]}")
        shown = [f"{listed(names)}: {way}." for way, names in list(ways.items())[:most]]
        rest = sum(len(names) for names in list(ways.values())[most:])
        more = [f"And {rest} more partition{'s' * (rest != 1)}."] if rest else []
        return " ".join([*self.sentences, *shown, *more])


def differences(model: ClusterModel) -> Differences:
    """What differs at one moment of a trace."""
    return Differences().update(model)


def _partition(model: ClusterModel, key: Key) -> PartitionDifference | None:
    """What differs about a partition; None where nothing does, and while its topic is to be deleted."""
    seen = model.partitions[key]
    stored = seen.led
    if stored is None or f"/admin/delete_topics/{key[0]}" in model.znodes:
        return None
    fresh = seen.writer if model.time_ms - seen.written_ms <= ANSWERED else None
    contexts, roles, metadata = {}, {}, {}
    for context in model.acting():
        has = context.leadership.get(key)
        if context.live is not None and not context.reads and context.id != fresh and not _same(has, stored):
            contexts[context.id] = has
    for number, broker in sorted(model.brokers.items()):
        if not broker.listens:
            continue
        hosted = broker.beliefs.hosted.get(key)
        if role := _role(number, hosted, stored, number in seen.replicas, number == fresh):
            roles[number] = role
        cached = broker.beliefs.metadata.get(key)
        if not _same(cached, stored):
            metadata[number] = cached
    found = PartitionDifference(stored, contexts, roles, metadata, _odd(model, seen))
    return found if contexts or roles or metadata or found.odd else None


def _odd(model: ClusterModel, seen: PartitionSeen) -> dict[int, str]:
    """A leader that is not registered or not in sync, and members of the ISR that are not assigned."""
    found = {broker: "in ISR, not assigned" for broker in seen.isr if seen.replicas and broker not in seen.replicas}
    if seen.leader is not None and seen.leader != NO_LEADER:
        if not model.broker(seen.leader).registered:
            found[seen.leader] = "leader not registered"
        elif seen.leader not in seen.isr:
            found[seen.leader] = "leader not in ISR"
    return found


def _same(has: Led | None, stored: Led) -> bool:
    """Whether two states are the same; the order of an ISR does not count."""
    if has is None:
        return False
    return has == stored or (has[0], has[2], set(has[1])) == (stored[0], stored[2], set(stored[1]))


def _role(broker: int, has: Led | None, stored: Led, assigned: bool, fresh: bool) -> str:
    """What a broker does otherwise than ZooKeeper says; empty where it does the same."""
    if not assigned:
        return f"still {role(broker, has)}" if has is not None else ""
    if stored.leader == NO_LEADER:
        return role(broker, has) if has is not None and has.leader == broker else ""
    if has is None or (has.leader, has.leader_epoch) != (stored.leader, stored.leader_epoch):
        return role(broker, has)
    if has.leader == broker and not fresh and set(has.isr) != set(stored.isr):
        return f"leads, ISR {_ids(has.isr)}"
    return ""


def role(broker: int, has: Led | None) -> str:
    """What a broker does with its copy: `leads, epoch 1`, `follows 2, epoch 0`, `not told`."""
    if has is None:
        return NOT_TOLD
    if has.leader == NO_LEADER:
        return "knows no leader"
    return f"{'leads' if has.leader == broker else f'follows {has.leader}'}, epoch {has.leader_epoch}"


def said(found: PartitionDifference) -> str:
    """One partition's differences in words: `ZooKeeper: leader 3, epoch 1; controller 1: the same; broker 3: not told`.

    Only the aspects are named in which somebody differs.
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
    if not found.contexts:
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
    """What several brokers do: `follow 1, epoch 0`."""
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


def stale(model: ClusterModel) -> list[ControllerSeen]:
    """Controllers that act though ZooKeeper names somebody else, or nobody."""
    there = model.znodes.get("/controller")
    named = controller_of(there.data) if there else None
    return [context for context in model.acting() if context.id != named] if model.znodes else []


def _controllership(model: ClusterModel) -> Iterator[str]:
    there = model.znodes.get("/controller")
    named = controller_of(there.data) if there else None
    for context in stale(model):
        epoch = f", epoch {context.epoch}" if context.epoch is not None else ""
        names = "nobody" if named is None else f"broker {named}"
        yield f"Controller: ZooKeeper: {names}; broker {context.id}: itself{epoch}."


def _live(model: ClusterModel) -> Iterator[str]:
    """Brokers that a controller takes for registered, gone or leaving when they are not."""
    for context in model.acting():
        if context.live is None or context.reads:
            continue
        for number, broker in sorted(model.brokers.items()):
            if broker.registered != (number in context.live):
                words = ("registered", "not registered")[:: 1 if broker.registered else -1]
                yield f"Broker {number}: ZooKeeper: {words[0]}; controller {context.id}: {words[1]}."
            elif number in context.shutting_down and broker.registered and broker.listens and not broker.leaving:
                yield f"Broker {number}: up; controller {context.id}: shuts down."
