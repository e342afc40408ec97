"""The codec of `Record.detail`, which is one of three things.

- what a controller logs: its fields as a JSON object (`write_fields`, `fields`);
- most other records: flags and `name=value` words (`write`, `named`, `flags`), lists with commas (`listed`, `numbers`);
- a write to ZooKeeper: the text of the znode, whatever that is (`json_object`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka_ctl.trace.record import Record

Json = dict[str, Any]
"""An object in JSON from any writer."""
FEW = 500
"""So many records are listed one by one."""


def write(*flags: str, **values: object) -> str | None:
    """Flags that are not empty, then `name=value` words; None values are left out. None if nothing is left."""
    words = [*filter(None, flags)]
    for name, value in values.items():
        if value is not None:
            words.append(f"{name}={value}")
    return " ".join(words) or None


def listed(values: Iterable[object]) -> str:
    """A list as the value of a word: `1,2,3`."""
    return ",".join(map(str, values))


def runs(values: Sequence[int], epochs: Sequence[int] = ()) -> str:
    """The values of records, `1,2,3`, or with the leader epoch of each `1@0,2@0`; many in a row as `1..5000@0`."""
    if len(values) > FEW and len(set(epochs)) < 2 and list(values) == list(range(values[0], values[0] + len(values))):
        return f"{values[0]}..{values[-1]}" + (f"@{epochs[0]}" if epochs else "")  # one batch, the most frequent case
    tails = [f"@{epoch}" for epoch in epochs] or [""] * len(values)
    if len(values) <= FEW:
        return ",".join(f"{value}{tail}" for value, tail in zip(values, tails, strict=True))
    words, first = [], 0
    for at in range(1, len(values) + 1):
        if at == len(values) or values[at] != values[at - 1] + 1 or tails[at] != tails[first]:
            alone = at - first == 1
            words.append(f"{values[first]}{'' if alone else f'..{values[at - 1]}'}{tails[first]}")
            first = at
    return ",".join(words)


def records(text: str) -> list[tuple[int, int]]:
    """The records that `runs` has written: value and leader epoch (0 where none is written)."""
    found: list[tuple[int, int]] = []
    for word in text.split(","):
        span, _, epoch = word.partition("@")
        first, _, last = span.partition("..")
        found += [(value, int(epoch or 0)) for value in range(int(first), int(last or first) + 1)]
    return found


def link(source: object, target: object, one_way: bool = False) -> str:
    """Both ends of a connection: `1 <-> 2`, or `1 -> zookeeper` for one way of it."""
    return f"{source} {'->' if one_way else '<->'} {target}"


def ends(detail: str | None) -> list[tuple[str, str]]:
    """The ends of a `link` that no longer reach each other: one pair for one way, else two."""
    one, arrow, other = (detail or "? <-> ?").split(" ")
    return [(one, other), (other, one)][: 2 if arrow == "<->" else 1]


def named(detail: str | None) -> dict[str, str]:
    """The values of the `name=value` words."""
    return dict(word.split("=", 1) for word in (detail or "").split() if "=" in word)


def items(detail: str | None, name: str) -> list[str]:
    """The parts of a list that stands under a name; none when it does not stand there."""
    return [item for item in named(detail).get(name, "").split(",") if item]


def violation(detail: str | None) -> tuple[str, str]:
    """The invariant that no longer holds, and how."""
    invariant, _, text = (detail or "").partition(": ")
    return invariant, text


def delay(seconds: float) -> str:
    """The delay of a message: `+0.2s`."""
    return f"+{seconds:g}s"


def delayed(detail: str | None) -> float:
    """The seconds that `delay` has written; 0 where nothing is written."""
    return float((detail or "+0s").strip("+s"))


def after(detail: str | None, begins: str) -> str:
    """The text after `begins` in the text of an error; empty where that does not occur."""
    return (detail or "").partition(begins)[2]


def flags(detail: str | None) -> frozenset[str]:
    """The words that are no `name=value`."""
    return frozenset(word for word in (detail or "").split() if "=" not in word)


def numbers(text: str | None) -> tuple[int, ...]:
    """`1,2,3` as numbers; anything else in it, also -1 for no broker, is left out."""
    return tuple(int(word) for word in (text or "").split(",") if word.isdecimal())


def write_fields(values: Mapping[str, object]) -> str | None:
    """The fields of a controller's message as JSON; None if there are none."""
    return json.dumps(values) if values else None


def fields(record: Record) -> Json:
    """The fields of a controller's message; empty for a record without any."""
    return json_object(record.detail)


def json_object(text: str | None) -> Json:
    """The JSON object in a text, or an empty one: what others wrote into a znode may be anything."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def ids(value: object) -> tuple[int, ...]:
    """The numbers in a list from JSON; empty for anything else."""
    return tuple(v for v in value if isinstance(v, int)) if isinstance(value, (list, tuple)) else ()
