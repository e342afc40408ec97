"""The fields of every message, version by version, and the numbers of errors: Kafka's own, as the package kio has them.

kio 0.5.0 is generated from Kafka's message files of the last release that still had the four requests between
controller and brokers. Only its tables are used; `codec.py` says why.
Kafka 2.4.1: clients/src/main/resources/common/message/*.json
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from dataclasses import Field as DataclassField
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, cast, get_args, get_origin

from kafka_ctl.errors import UnknownName
from kafka_ctl.extras import needed_for

REQUEST, RESPONSE = "request", "response"
PLAIN_TYPES = {"error_code": "int16", "timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}
"""Types that kio makes something of, and what is on the wire."""


class Field(NamedTuple):
    """One field: `kind` is a primitive type's name or the schema of a structure; `default` is what no value means."""

    name: str
    kind: str | Schema
    is_array: bool
    nullable: bool
    tag: int | None
    default: object


@dataclass(frozen=True, eq=False, slots=True)
class Schema:
    """A structure: its fields in order, those with a tag with their tags, and whether it is of the flexible kind."""

    name: str
    fields: tuple[Field, ...]
    tagged: tuple[tuple[int, Field], ...]
    flexible: bool


@dataclass(frozen=True, eq=False, slots=True)
class MessageType:
    """A request or response of one version, and the version of the header in front of it."""

    api_key: int
    version: int
    direction: str
    header_version: int
    body: Schema


@cache
def apis() -> dict[int, str]:
    """The name of every API key that the schemas know, as Kafka writes it: 4 is LeaderAndIsr."""
    with needed_for("Kafka's wire protocol"):
        from kio.schema.index import api_key_map
    return {key: "".join(word.capitalize() for word in name.split("_")) for key, name in api_key_map.items()}


def api_key(name: str | int) -> int:
    """The key of an API given by name, in any case, or by key. Raises UnknownName for an unknown API."""
    known = apis()
    if isinstance(name, int) or name.isdigit():
        if int(name) in known:
            return int(name)
        raise UnknownName("API key", name, known)
    for key, title in known.items():
        if title.lower() == name.replace("_", "").lower():
            return key
    raise UnknownName("API", name, known.values())


@cache
def versions(key: int) -> range:
    """The versions of an API that there are schemas of."""
    from kio.schema.index import api_key_map, schema_name_map

    known = sorted(schema_name_map[api_key_map[key]])
    return range(known[0], known[-1] + 1)


@cache
def message_type(key: int, version: int, direction: str = REQUEST) -> MessageType:
    """The message of this API, version and direction. Raises UnknownName if there is no such version."""
    title = apis().get(key)
    if title is None:
        raise UnknownName("API key", key, apis())
    if version not in versions(key):
        raise UnknownName(f"version of {title}", version, versions(key))
    from kio.index import load_payload_module
    from kio.static.constants import EntityType

    module = load_payload_module(key, version, EntityType.request if direction == REQUEST else EntityType.response)
    entity = getattr(module, f"{title}{direction.title()}")
    return MessageType(key, version, direction, entity.__header_schema__.__version__, _schema(entity))


@cache
def header_type(direction: str, version: int) -> Schema:
    """The header of a request (versions 0 to 2) or response (0 and 1).

    The client id is of the old kind also in headers that are flexible, so that a broker can read it before it knows.
    """
    from kio.index import load_entity_module
    from kio.static.constants import EntityType

    module = load_entity_module(f"{direction}_header", version, EntityType.header)
    schema = _schema(getattr(module, f"{direction.title()}Header"))
    fields = tuple(f._replace(kind="legacy_string") if f.name == "client_id" else f for f in schema.fields)
    return replace(schema, fields=fields)


@cache
def _schema(entity: Any) -> Schema:
    listed = [(field, _field(field)) for field in fields(entity)]
    tagged = tuple((known.tag, known) for _, known in listed if known.tag is not None)
    plain = tuple(known for _, known in listed if known.tag is None)
    return Schema(entity.__name__, plain, tagged, entity.__flexible__)


def _field(field: DataclassField[object]) -> Field:
    kind, nullable = _without_none(field.type)
    is_array = get_origin(kind) is tuple
    if is_array:
        kind, inner = _without_none(get_args(kind)[0])
        nullable = nullable or inner
    if is_dataclass(kind):
        of: str | Schema = _schema(cast(Hashable, kind))
    else:
        named = field.metadata["kafka_type"]
        of = PLAIN_TYPES.get(named, named)
        nullable = nullable and (is_array or of in ("string", "bytes", "records", "uuid"))
    default = _default(field, of, is_array, nullable)
    return Field(field.name.rstrip("_"), of, is_array, nullable, field.metadata.get("tag"), default)


def _default(field: DataclassField[object], of: str | Schema, is_array: bool, nullable: bool) -> object:
    """The default of Kafka's schema, else the empty value of the type."""
    if field.default is not MISSING and isinstance(field.default, (bool, str, bytes)):
        return field.default
    if isinstance(field.default, int):
        return int(field.default)
    if isinstance(field.default, timedelta):
        return round(field.default.total_seconds() * 1000)
    if field.default is None and (nullable or of == "int64"):
        return None if nullable else -1  # a time that is not known
    if is_array:
        return ()
    if nullable:
        return None
    if not isinstance(of, str):
        return {}
    return {"string": "", "legacy_string": "", "bytes": b"", "records": b"", "bool": False, "uuid": None}.get(of, 0)


def _without_none(kind: object) -> tuple[object, bool]:
    """A type without None, and whether None was allowed."""
    given = get_args(kind)
    if NoneType not in given:
        return kind, False
    return next(one for one in given if one is not NoneType), True


# Errors

RENAMED = {"NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER", "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION"}
"""Names that Kafka has changed since; their numbers are the same."""


class Refusal(Exception):
    """A request that is refused, or a part of it: `error` is Kafka's name for that, the text is for the trace."""

    def __init__(self, error: str, text: str = "") -> None:
        self.error = error
        super().__init__(text or error)


@cache
def codes() -> dict[str, int]:
    """The number of every error; NONE is 0."""
    from kio.schema.errors import ErrorCode

    numbers = {error.name.upper(): int(error) for error in ErrorCode}
    return numbers | {old: numbers[new] for old, new in RENAMED.items() if new in numbers}


def number_of(error: str | None) -> int:
    """The number of an error by Kafka's name for it, 0 for None."""
    if error is None:
        return 0
    if error not in codes():
        raise UnknownName("error of Kafka", error, codes())
    return codes()[error]


def name_of(number: int) -> str | None:
    """Kafka's name of an error, of 2.4's time; None for 0."""
    if number == 0:
        return None
    found = next((name for name, known in codes().items() if known == number), f"error {number}")
    return next((old for old, new in RENAMED.items() if new == found), found)
