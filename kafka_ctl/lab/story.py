"""A story: seed, generation and commands as a short text that reopens a run exactly.

    lab brokers=3 generation=2.0 seed=7
    create_topic orders partitions=6 replication_factor=3
    settle
    kill 1

One command a line: a method of `Lab`, its first arguments bare, the others by name, values as JSON without spaces.
Lines with `#` are prose. A golden story also has `----` and recorded output after each command, up to the next blank
line, and commands that only look; a reader of commands skips these.
"""

from __future__ import annotations

import inspect
import json
import os
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from kafka_ctl.errors import BadInput
from kafka_ctl.zookeeper.fields import digits

MAPPING = "a mapping, as JSON in '...',"
KINDS = {
    "seed": (int, "a whole number"),
    "settle": (bool, "true or false"),
    "config": (dict, MAPPING),
    "costs": (dict, MAPPING),
    "changes": (dict, MAPPING),
}
"""What the words of a story's first line may be."""
QUIET, SHOWN = "quiet", ("show", "check")
"""What golden stories put before a command whose output is not wanted, and their commands that only look."""
UNTIL, REFUSED = "until", "refused"
"""What stories say of the command before (it ended there), and before one that was refused after it had been begun."""


class Command(NamedTuple):
    """One line: a method of Lab and its arguments; where it stood in a text, or when in a run it was given."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    line: int = 0
    seq: int = 0
    """How many records the trace had."""
    time: float = 0.0
    """Seconds since the lab was opened."""

    def refused(self) -> Command:
        """The same command as one that was refused."""
        return self._replace(name=REFUSED, args=(self.name, *self.args))

    def __str__(self) -> str:
        words = [_write(a) for a in self.args]
        words += [f"{k}={v if k == 'generation' else _write(v)}" for k, v in self.kwargs.items()]
        return " ".join([self.name, *words])


def command(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Command:
    """The call as a command: required arguments bare, the others named, defaults left out."""
    bound = inspect.signature(method).bind(None, *args, **kwargs)
    bare, named = [], {}
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        if name not in bound.arguments:
            continue
        value = bound.arguments[name]
        if parameter.default is inspect.Parameter.empty:
            bare.append(value)
        elif value != parameter.default:
            named[name] = value
    return Command(method.__name__, tuple(bare), named)


def _write(value: Any) -> str:
    text = (
        value if isinstance(value, str) and _read(value) == value else json.dumps(plain(value), separators=(",", ":"))
    )
    return shlex.quote(text) if text == "" or any(c.isspace() or c in "'\"\\#" for c in text) else text


def plain(value: Any) -> Any:
    """A value as JSON can hold it: topic-partitions as `orders-0`, tuples as lists, keys as text."""
    if isinstance(value, dict):
        return {(f"{k[0]}-{k[1]}" if isinstance(k, tuple) else str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return f"{value[0]}-{value[1]}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    return value


def _read(word: str) -> Any:
    """A word as JSON, or as itself: so is `0.10`, which names a generation and is no number."""
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return word
    return word if isinstance(value, float) and repr(value) != word else value


def parse(text: str, looks: bool = False) -> Iterator[Command]:
    """The commands of a story; BadInput names the line that is no command.

    A golden story also looks (`show`, `check`); those lines are left out unless asked for.
    """
    skipping = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if skipping or stripped == "----":
            skipping = stripped != ""
            continue
        if not stripped or stripped.startswith("#"):
            continue
        try:
            words = shlex.split(stripped, comments=True)
        except ValueError as error:
            raise BadInput(f"line {number}: {stripped!r} is no command: {error}") from None
        words = words[1:] if words[0] == QUIET and len(words) > 1 else words
        if words[0] in SHOWN and not looks:
            continue
        args, kwargs = [], {}
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if equals and name.isidentifier():
                if name in kwargs:
                    raise BadInput(f"line {number}: {name} is given twice")
                kwargs[name] = _read(value)
            elif kwargs:
                raise BadInput(f"line {number}: {word!r} comes after a named argument; name it too")
            else:
                args.append(_read(word))
        yield Command(words[0], tuple(args), kwargs, number)


def read(text: str | Any) -> str:
    """A story given as text, or as the path of a file."""
    if not isinstance(text, (str, os.PathLike)):
        raise BadInput(f"a story cannot be {text!r}; it is a text, or the path of a file with one")
    given = str(text)
    if "\n" in given or not given.strip() or given.lstrip().startswith("lab"):
        return given
    try:
        with open(given, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"story {given[:200]!r} cannot be read: {why}") from None


def opening(line: Command) -> dict[str, Any]:
    """The arguments of `Lab` from a story's first command."""
    from kafka_ctl.generation import Generation
    from kafka_ctl.lab.costs import Costs
    from kafka_ctl.lab.described import expand

    known = ("brokers", "generation", "seed", "config", "costs", "settle", "changes", "description")
    if line.name != "lab" or line.args or set(line.kwargs) - set(known):
        raise BadInput(
            f"line {line.line}: a story begins with 'lab' and {', '.join(known)} by name; "
            f"this begins with {str(line)[:200]!r}"
        )
    given = dict(line.kwargs)
    for name, (kind, words) in KINDS.items():
        if name in given and type(given[name]) is not kind:
            raise BadInput(f"line {line.line}: {name}={given[name]}: {words} is expected")
    if isinstance(given.get("brokers"), dict):
        racks = given["brokers"].items()
        given["brokers"] = {id if (plain := digits(id)) is None else plain: rack for id, rack in racks}
    if "description" in given:
        given["described"] = expand(given.pop("description"))
    if "costs" in given:
        given["costs"] = Costs.of(given["costs"])
    changes = given.pop("changes", {})
    return given | {"generation": Generation(str(given.get("generation", "2.0")), **changes)}
