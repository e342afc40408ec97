"""The state of a lab as a digest: equal for two runs that will go on alike whatever happens next.

Everything counts that an actor has in memory, that ZooKeeper has stored, and that is on its way; also where each task
stands in its code and the values of its variables. Times do not, nor the numbers of sessions and records.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING

from kafka_ctl.errors import BadInput
from kafka_ctl.lab.event_order import connection
from kafka_ctl.requests import Response
from kafka_ctl.simulation.world import MemoryWorld

if TYPE_CHECKING:
    from kafka_ctl.brokers.broker import Broker
    from kafka_ctl.lab.lab import Lab
    from kafka_ctl.simulation.loop import Timer
    from kafka_ctl.zookeeper.memory.server import MemoryStore

UNSTABLE = re.compile(r'"timestamp":"?\d+"?| at 0x[0-9a-f]+|Task-\d+|\d+\.\d+')
"""Times, addresses and the numbers of tasks."""
RECORDS = frozenset(("cause", "sent", "started", "answered", "asked", "seq", "about", "fired", "since", "waited"))
"""Variables that only order records of the trace."""


def digest(lab: Lab) -> bytes:
    """16 bytes that identify this state."""
    world = memory_of(lab)
    names = _names(world.store)
    parts = [*_stored(world.store, names)]
    for broker in world.brokers.values():
        parts += _known(broker)
    parts += sorted(_pending(world.clock.loop.pending, names))
    parts += sorted(map(_task_state, world.clock.tasks))
    return blake2b(UNSTABLE.sub("", "\n".join(parts)).encode(), digest_size=16).digest()


def memory_of(lab: Lab) -> MemoryWorld:
    """What a lab on virtual time runs on; BadInput for another."""
    if not isinstance(lab.world, MemoryWorld):
        raise BadInput("this needs a lab on virtual time")
    return lab.world


def _names(store: MemoryStore) -> dict[int, str]:
    """Sessions by their clients, and which of them began earlier."""
    return {number: f"{s.actor}/{n}" for n, (number, s) in enumerate(sorted(store.sessions.items()))}


def _stored(store: MemoryStore, names: dict[int, str]) -> Iterator[str]:
    """Znodes, watches and sessions."""
    for path, (data, version, owner) in store.snapshot():
        yield f"{path} {data!r} {version} {names.get(owner)}"
    for watches in (store.data_watches, store.child_watches):
        yield repr(sorted((path, sorted(names.get(n, "") for n in holders)) for path, holders in watches.items()))
    for s in store.sessions.values():
        flags = f"{s.connected} {s.sends} {s.receives} {s.running} {s.fails_next_write}"
        yield f"{names[s.id]} {flags} {s.waiting} {s.missed}"


def _known(broker: Broker) -> Iterator[str]:
    """What a broker and its controller have in memory."""
    replicas, controller = broker.replicas, broker.controller
    yield f"{broker.id} {broker.state} {replicas.controller_epoch} {broker.live_brokers}"
    yield repr({tp: (h.state, h.replicas) for tp, h in broker.hosted.items()})
    yield repr(broker.metadata)
    yield f"{broker.as_follower.state_key()} {broker.as_leader.state_key()}"
    yield f"{controller.active_id} {controller.state} {controller.zk.fence} {controller.context}"
    yield repr(list(controller.queue))
    for id, requests in controller.channels.queued():
        yield f"{id} {requests}"


def _pending(pending: list[Timer], names: dict[int, str]) -> Iterator[str]:
    """What is on its way or to come, a message with its connection and place there."""
    ahead: Counter[tuple[int, bool]] = Counter()
    for timer in pending:
        name = getattr(timer.callback, "__qualname__", "")
        where = ""
        if (own := connection(timer)) is not None:
            where = f"{names.get(own[0], 'gone')} {ahead[own]}"
            ahead[own] += 1
        yield f"{where} {name} {[a for a in timer.args if not isinstance(a, (asyncio.Future, int))]}"


def _task_state(task: asyncio.Task) -> str:
    """Where a task stands: each of its frames, with those of its variables that can be printed."""
    frames: list[str] = []
    awaited: object = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        texts = ((name, repr(_plain(value))) for name, value in frame.f_locals.items() if name not in RECORDS)
        plain = {name: text for name, text in texts if "object at" not in text}
        frames.append(f"{frame.f_code.co_qualname}:{frame.f_lasti} {plain}")
        awaited = getattr(awaited, "cr_await", None)
    return " ".join(frames)


def _plain(value: object) -> object:
    """A variable's value: what became of what is awaited; an answer without the number of its record."""
    if isinstance(value, asyncio.Future):
        if not value.done() or value.cancelled():
            return "CANCELLED" if value.cancelled() else "PENDING"
        return value.exception() or _plain(value.result())
    return value[0] if isinstance(value, tuple) and value and isinstance(value[0], Response) else value
