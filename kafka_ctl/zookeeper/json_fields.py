"""The parts that the znode classes share: paths, and JSON that is written and read field by field.

`Fields` checks what it hands out, so that a decoder is a list of the fields it wants, and every surprise one
BadInput that says where and what. Numbers are Kafka's: 32 bits, no booleans, no fractions.
"""

from __future__ import annotations

import json
import reprlib
from typing import TypeGuard

from kafka_ctl.cluster import TopicPartition, parse_int
from kafka_ctl.errors import BadInput

MAX_BYTES = 1024 * 1024
"""The most ZooKeeper stores in one znode (its `jute.maxbuffer`)."""
_INT32 = range(-(2**31), 2**31)
_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = 60
_short = _shortener.repr


_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def encode_json(value: object) -> bytes:
    """JSON as Kafka writes it: no spaces, UTF-8, keys in the order given."""
    return _encoder.encode(value).encode()


class FixedZNode:
    """A znode that is always at the same place; a class that adds nothing is for an empty one."""

    PATH = ""

    @classmethod
    def path(cls) -> str:
        return cls.PATH


class SequentialZNode:
    """A znode whose name ends in a number that ZooKeeper counts up."""

    PREFIX = ""

    @classmethod
    def path(cls, sequence: str = "") -> str:
        """The znode of that sequence number (ten digits); without one, the path to create it at."""
        return cls.PREFIX + sequence


def number(path: str, text: str | bytes) -> int:
    """A plain integer, as in `/controller_epoch` or the name of a broker's znode."""
    decoded = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    if parse_int(decoded.removeprefix("-")) is not None and int(decoded) in _INT32:
        return int(decoded)
    raise BadInput(f"{path}: {_short(decoded)}; an integer is expected")


class NotJson(BadInput):
    """Data that is no JSON. Kafka treats most such znodes as empty."""


class Fields:
    """The fields of one JSON object; `path` says where it was found."""

    def __init__(self, path: str, raw: dict[str, object]) -> None:
        self.path, self._raw = path, raw

    @classmethod
    def read(cls, path: str, data: bytes, versions: tuple[object, ...] = ()) -> Fields:
        """Parse the object that a znode holds.

        One without a version counts as the first of `versions`; without `versions` any version is read, as in Kafka.
        """
        raw = _parse(path, data)
        version = raw.get("version", *versions[:1])
        if versions and (version not in versions or type(version) is bool):
            known = ", ".join(map(str, versions))
            raise BadInput(f"{path}: version {_short(version)}; known: {known}")
        return cls(path, raw)

    def _wrong(self, name: str, expected: str) -> BadInput:
        if name in self._raw:
            found = _short(self._raw[name])
            return BadInput(f"{self.path}: field {name!r} is {found}; {expected} is expected")
        present = ", ".join(map(_short, list(self._raw)[:20])) or "none"
        return BadInput(f"{self.path}: field {name!r} is missing; present: {present}")

    def check_known(self, *names: str) -> None:
        """Raise BadInput for a field with another name."""
        if (other := next((name for name in self._raw if name not in names), None)) is not None:
            raise BadInput(f"{self.path}: unrecognized field {other!r}")

    def get(self, name: str) -> object:
        """The unchecked value of a field, None when there is none."""
        return self._raw.get(name)

    def integer(self, name: str) -> int:
        value = self._raw.get(name)
        if type(value) is int and value in _INT32:
            return value
        raise self._wrong(name, "a 32-bit integer")

    def text(self, name: str) -> str:
        value = self._raw.get(name)
        if type(value) is str:
            return value
        raise self._wrong(name, "a text")

    def texts(self, name: str) -> list[str]:
        values = self._raw.get(name)
        if type(values) is list and all(type(v) is str for v in values):
            return values
        raise self._wrong(name, "a list of texts")

    def text_map(self, name: str) -> dict[str, str]:
        """An object of texts, as in a configuration."""
        values = self._raw.get(name)
        if type(values) is dict and all(type(v) is str for v in values.values()):
            return values
        raise self._wrong(name, "an object of texts")

    def integers(self, name: str) -> tuple[int, ...]:
        values = self._raw.get(name)
        if _are_integers(values):
            return tuple(values)
        raise self._wrong(name, "a list of integers")

    def replica_lists(self, name: str, required: bool = True) -> dict[int, tuple[int, ...]]:
        """An object `{"partition": [brokers]}` with its keys as numbers."""
        lists = self._raw.get(name, None if required else {})
        if type(lists) is not dict:
            raise self._wrong(name, "an object of replica lists")
        for partition, replicas in lists.items():
            if not _are_integers(replicas):
                raise BadInput(
                    f"{self.path}: field {name!r} gives partition {_short(partition)} the replicas "
                    f"{_short(replicas)}; a list of integers is expected"
                )
        return {number(self.path, partition): tuple(replicas) for partition, replicas in lists.items()}

    def partitions(self) -> list[tuple[TopicPartition, Fields]]:
        """The field `partitions`: objects that each name a topic and a partition, with their other fields."""
        entries = self._raw.get("partitions")
        if type(entries) is not list or not all(type(entry) is dict for entry in entries):
            raise self._wrong("partitions", "a list of objects")
        found = []
        for position, entry in enumerate(entries):
            fields = Fields(f"{self.path}, partitions[{position}]", entry)
            found.append((TopicPartition(fields.text("topic"), fields.integer("partition")), fields))
        return found


def _are_integers(values: object) -> TypeGuard[list[int]]:
    return type(values) is list and all(type(v) is int and v in _INT32 for v in values)


def _parse(path: str, data: bytes) -> dict[str, object]:
    if len(data) > MAX_BYTES:
        raise BadInput(f"{path}: {len(data)} bytes; ZooKeeper stores at most {MAX_BYTES}")
    try:
        raw = json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise NotJson(f"{path}: not UTF-8 at byte {error.start}; JSON is expected") from None
    except json.JSONDecodeError as error:
        raise NotJson(
            f"{path}: {error.msg} at character {error.pos} of {_short(error.doc)}; JSON is expected"
        ) from None
    except (ValueError, RecursionError):
        raise NotJson(f"{path}: JSON with a number too long or nested too deeply") from None
    if type(raw) is not dict:
        raise BadInput(f"{path}: {_short(raw)}; an object is expected")
    return raw
