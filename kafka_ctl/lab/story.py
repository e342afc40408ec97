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
import math
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from numbers import Integral
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote_plus

from kafka_ctl.cluster import parse_int, whole
from kafka_ctl.errors import BadInput, short
from kafka_ctl.lab.validate import bind, form, signature
from kafka_ctl.plugins import Plugins, wanted

Opening = dict[str, Any]
"""The arguments of `Lab`, by name."""
MAPPING = "a mapping, as JSON in '...',"
KINDS = {
    "seed": (int, "a whole number"),
    "settle": (bool, "true or false"),
    "config": (dict, MAPPING),
    "costs": (dict, MAPPING),
    "changes": (dict, MAPPING),
}
"""The possible words of a story's first line."""
QUIET, SHOWN = "quiet", ("show", "check")
"""The mark of golden stories before a command whose output is not wanted, and their commands that only look."""
MOST_ELEMENTS = 1_000_000
"""The most elements of an argument that are looked at: some iterables have no end."""
UNTIL, REFUSED = "until", "refused"
"""Two remarks of a story: `until` follows a command and says where it ended; `refused` precedes a command that was
refused after it had begun."""


class Command(NamedTuple):
    """One line: a method of Lab and its arguments; where it stood in a text, or when in a run it was given."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    line: int = 0
    seq: int = 0
    """The number of records of the trace."""
    time: float = 0.0
    """Seconds since the lab was opened."""

    def refused(self) -> Command:
        """The same command as one that was refused."""
        return self._replace(name=REFUSED, args=(self.name, *self.args))

    @property
    def asked(self) -> Command:
        """The command that was refused, if this is one; else this one."""
        return self._replace(name=self.args[0], args=self.args[1:]) if self.name == REFUSED and self.args else self

    def __str__(self) -> str:
        words = [_write(a, bare=True) for a in self.args]
        words += [f"{k}={v if k == 'generation' else _write(v)}" for k, v in self.kwargs.items()]
        return " ".join([self.name, *words])


def command(method: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> Command:
    """The call as the line that a story keeps of it: required arguments bare, the others named, defaults left out.

    The arguments are those that a reader of the line gets. BadInput, with the call, for what no line can hold and for
    arguments that do not fit.
    """
    given = bind(method, (None, *args), kwargs)
    bare, named = [], {}
    for name, parameter in list(signature(method).parameters.items())[1:]:
        if name not in given:
            continue
        try:
            held = given[name]
            if isinstance(held, tuple) and str(parameter.annotation).startswith(("str", "int")):
                raise TypeError  # a partition would become its name, and what a lab says of a controller a list
            if isinstance(held, bytes) and parameter.annotation == "object":  # what a znode holds, if it is text
                held = held.decode()
            value = plain(held)
            if parameter.default is inspect.Parameter.empty:
                bare.append(value)
            elif not _is_default(value, parameter.default):
                named[name] = value
        except (TypeError, ValueError, RecursionError):
            asked = f"{method.__name__}: {name} cannot be {short(given[name])}"
            raise BadInput(f"{asked}; the call is {form(method)}") from None
    written = Command(method.__name__, tuple(bare), named)
    try:
        (read,) = parse(str(written))
    except (ValueError, RecursionError):
        raise BadInput(f"{method.__name__}: what is given is nested too deeply; the call is {form(method)}") from None
    return written._replace(args=read.args, kwargs=read.kwargs)


def _is_default(value: object, default: object) -> bool:
    """True if a story may leave the value out; 3600 is 3600.0, but True is not 1."""
    kinds = (type(default), int) if isinstance(default, float) else (type(default),)
    return type(value) in kinds and bool(value == default)


def _write(value: object, bare: bool = False) -> str:
    """A value as a word of a line; a text is left as it is where it reads as itself."""
    if not isinstance(value, str) or not _stands(value, bare):
        value = json.dumps(plain(value), separators=(",", ":"), allow_nan=False)
    return shlex.quote(value) if value == "" or any(c.isspace() or c in "'\"\\#" for c in value) else value


def _stands(text: str, bare: bool) -> bool:
    """True if a text needs no quotes of JSON: it is no number, no line of its own, and does not look like `name=`."""
    named = bare and text.partition("=")[1] and text.partition("=")[0].isidentifier()
    return text.isprintable() and not named and _read(text) == text


def plain(value: object) -> object:
    """A value as JSON holds it: topic-partitions as `orders-0`, tuples and sets as lists, keys as text.

    TypeError or ValueError for what JSON cannot hold.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        str(int(value))  # ValueError for one of too many digits
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError
        return float(value)
    if isinstance(value, Mapping):
        held = {_key(key): plain(each) for key, each in value.items()}
        if len(held) < len(value):
            raise ValueError
        return held
    if isinstance(value, tuple) and _names_partition(value):
        return _key(value)
    if isinstance(value, (bytes, bytearray)) or not isinstance(value, Iterable):
        raise TypeError
    return [plain(each) for each in islice(value, MOST_ELEMENTS)]


def _names_partition(value: tuple[object, ...]) -> bool:
    """True for a topic and a number; a negative one would make it the name of another topic's partition."""
    number = whole(value[1]) if len(value) == 2 and isinstance(value[0], str) else None
    return number is not None and number >= 0


def _key(key: object) -> str:
    return f"{key[0]}-{key[1]}" if isinstance(key, tuple) and _names_partition(key) else str(key)


def split_words(line: str) -> list[str]:
    """The words of a line as a shell reads them, up to a `#`. Raises ValueError for an open quote or a last backslash.

    The answer is that of `shlex.split(line, comments=True)`, which takes time by the square of a word's length.
    """
    words: list[str] = []
    parts: list[str] | None = None
    """The parts of the word that is being read; None between two words."""
    place = 0
    while place < len(line):
        found = PART.match(line, place)
        if found is None:
            raise ValueError("No escaped character" if line[place] == "\\" else "No closing quotation")
        place, kind, part = found.end(), found.lastgroup, found[found.lastgroup or 0]
        if kind in ("space", "comment"):
            words += [] if parts is None else ["".join(parts)]
            parts = None
            continue
        parts = [] if parts is None else parts
        parts.append(ESCAPED.sub(r"\1", part) if kind == "double" else part)
    return words if parts is None else [*words, "".join(parts)]


PART = re.compile(
    r"""(?P<space>[ \t\r\n]+)|(?P<comment>\#.*)|(?P<plain>[^ \t\r\n'"\\\#]+)|\\(?P<escaped>.)
    |'(?P<single>[^']*)'|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)\"""",
    re.DOTALL | re.VERBOSE,
)
"""The parts of a line."""
ESCAPED = re.compile(r"""\\(["\\])""")
"""The characters whose special meaning a backslash removes between double quotes."""


def json_or_text(text: str) -> object:
    """The value of a text that is JSON, or the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _read(word: str) -> object:
    """A word as JSON, or as itself: so is `0.10`, which names a generation and is no number."""
    value = json_or_text(word)
    return word if isinstance(value, float) and repr(value) != word else value


def parse(text: str, with_views: bool = False) -> Iterator[Command]:
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
            words = split_words(stripped)
        except ValueError as error:
            raise BadInput(f"line {number}: {short(stripped)} is not a command: {error}") from None
        words = words[1:] if words[0] == QUIET and len(words) > 1 else words
        if words[0] in SHOWN and not with_views:
            continue
        args: list[object] = []
        kwargs: dict[str, object] = {}
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if equals and name.isidentifier():
                if name in kwargs:
                    raise BadInput(f"line {number}: {name} is given twice")
                kwargs[name] = _read(value)
            elif kwargs:
                raise BadInput(f"line {number}: {short(word)} comes after a named argument; name it too")
            else:
                args.append(_read(word))
        yield Command(words[0], tuple(args), kwargs, number)


def read(text: str | os.PathLike[str]) -> str:
    """A story given as text, or as the path of a file.

    A text is a story if it is empty, has several lines, or begins with the word `lab`.
    """
    if not isinstance(text, (str, os.PathLike)):
        raise BadInput(f"a story cannot be {short(text)}; it must be a text, or the path of a file with one")
    given = str(text)
    if isinstance(text, str) and ("\n" in text or text.split()[:1] in ([], ["lab"])):
        return text
    try:
        with open(given, encoding="utf-8-sig") as file:  # editors on Windows write a mark
            return file.read()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        if isinstance(error, UnicodeDecodeError):
            why = f"not UTF-8 at byte {error.start}; text is expected"
        raise BadInput(f"story {given[:200]!r} cannot be read: {why}") from None


def opening(line: Command, plugins: Plugins | None = None) -> Opening:
    """The arguments of `Lab` from a story's first command; with `plugins`, which a story can only name.

    Raises BadInput for what cannot be read, and where the story names plug-ins that are not given.
    """
    from kafka_ctl.generation import Generation
    from kafka_ctl.lab.description import decode
    from kafka_ctl.latencies import Costs

    known = ("brokers", "generation", "seed", "config", "costs", "settle", "changes", "description", "plugins")
    if line.name != "lab" or line.args or set(line.kwargs) - set(known):
        try:
            first = str(line)
        except ValueError:  # an argument that no story can hold, such as NaN
            first = line.name
        raise BadInput(
            f"line {line.line}: a story begins with 'lab' and {', '.join(known)} by name; "
            f"this begins with {first[:200]!r}"
        )
    given = dict(line.kwargs)
    for name, (kind, words) in KINDS.items():
        if name in given and type(given[name]) is not kind:
            raise BadInput(f"line {line.line}: {name}={given[name]}: {words} is expected")
    if isinstance(given.get("brokers"), dict):
        racks = given["brokers"].items()
        given["brokers"] = {id if (plain := parse_int(str(id))) is None else plain: rack for id, rack in racks}
    if "description" in given:
        given["described"] = decode(given.pop("description"))
    if "costs" in given:
        given["costs"] = Costs.of(given["costs"])
    plugins = plugins or Plugins()
    wanted(given.pop("plugins", []), plugins)
    changes = given.pop("changes", {})
    return given | plugins.given | {"generation": Generation(str(given.get("generation", "2.0")), **changes)}


# In an address

PAGE = "try.html"
"""The page of the site that opens a run."""


class Link(NamedTuple):
    """A run as the end of an address: `try.html#story=lab+brokers%3D3...&step=12`, opened by the site's try-it page.

    The text is the story, encoded as in a form, and `step` the number of the picture to begin with: 0 is the first,
    None the last. It can be read, cut and changed by hand; no server sees it, for what follows `#` is not sent.
    """

    story: str
    step: int | None = None

    def fragment(self) -> str:
        """The text after `#`."""
        step = "" if self.step is None else f"&step={self.step}"
        return f"story={quote_plus(self.story.strip(), safe='/:,')}{step}"


def parse_fragment(text: str) -> Link | None:
    """The link behind a `#`; None where there is no story. Raises BadInput for a step that is no number."""
    given = dict(parse_qsl(text.removeprefix("#")))
    if not given.get("story", "").strip():
        return None
    step = given.get("step")
    number = None if step is None else parse_int(step)
    if step is not None and (number is None or number < 0):
        raise BadInput(f"step cannot be {short(step)}; it must be the number of a picture, 0 for the first")
    return Link(given["story"] + "\n", number)
