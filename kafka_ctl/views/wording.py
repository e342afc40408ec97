"""The parts of sentences: who, about what, how many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka_ctl.trace.model import number_of
from kafka_ctl.trace.record import Record
from kafka_ctl.views.scene import shorten

LONGEST = 60
"""The most characters of a name from outside in a sentence."""


def brief(text: object) -> str:
    """Any text, cut in the middle when it is too long for a sentence."""
    return shorten(str(text), LONGEST)


def listed(things: Iterable[object], most: int = 3) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b and 7 more`."""
    texts = list(dict.fromkeys(brief(thing) for thing in things))
    if len(texts) > most:
        texts = [*texts[: most - 1], f"{len(texts) - most + 1} more"]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def who(actor: str) -> str:
    """An actor as a sentence begins with it: `Controller 2`, `Broker 1`, `ZooKeeper`, `The administrator`."""
    number = number_of(actor)
    if number is not None and actor.startswith(("controller", "broker")):
        return f"{'Controller' if actor.startswith('c') else 'Broker'} {number}"
    known = {"zookeeper": "ZooKeeper", "admin": "The administrator", "producer": "The producer", "fault": "A fault"}
    return known.get(actor, brief(actor))


def brokers(numbers: Iterable[int | None]) -> str:
    """`broker 1`, `brokers 1 and 2`."""
    found = sorted({n for n in numbers if n is not None})
    return f"broker{'s' if len(found) > 1 else ''} {listed(found, 8)}"


def subjects(records: Sequence[Record]) -> str:
    """The partitions (or topics) that records are about, as a list in words; empty when there are none."""
    names = [f"{r.topic}-{r.partition}" for r in records if r.topic is not None and r.partition is not None]
    return listed(names or [r.topic for r in records if r.topic is not None])


def format_ids(numbers: Iterable[int] | None) -> str:
    """An ISR or assignment in its own order: `[2, 3]`."""
    return str(list(numbers or ()))


def duration(ms: float) -> str:
    """A length of time with a unit that suits it: `0.4 ms`, `120 ms`, `5.98 s`, `2.5 min`, `3.1 h`."""
    for size, unit in ((3_600_000.0, "h"), (60_000.0, "min"), (1_000.0, "s")):
        if ms >= size:
            return f"{ms / size:.3g} {unit}"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"
