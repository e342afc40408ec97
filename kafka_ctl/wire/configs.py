"""Requests that show and change the settings of topics, brokers and loggers, with all keys of the release.

Separate from `attach.py` because that one only says which request has which handler.
A setting has one source of several: the topic's or the running broker's own in ZooKeeper, what all running brokers have
there, the broker's file, Kafka's default. Brokers write changes into ZooKeeper and learn of them from there.
Kafka 2.4.1: server/AdminManager.scala, describeConfigs, alterConfigs, incrementalAlterConfigs;
server/DynamicBrokerConfig.scala, validateConfigs; utils/Log4jController.scala (KIP-133, KIP-226, KIP-339, KIP-412)
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeVar

from kafka_ctl.brokers import config_keys
from kafka_ctl.brokers.config_keys import PER_BROKER, ConfigKey, as_text, check_values, dynamic_keys, keys
from kafka_ctl.brokers.disk import PATHS
from kafka_ctl.errors import ApiException, BadInput, KafkaCtlError
from kafka_ctl.requests import UNKNOWN_PARTITION
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.listeners import HOST
from kafka_ctl.wire.metadata import topics_of
from kafka_ctl.wire.schema import number_of
from kafka_ctl.wire.service import RefusedFrame, Service
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient, change_config, read_config
from kafka_ctl.zookeeper.znodes import BROKERS, TOPICS

T = TypeVar("T")
UNKNOWN, TOPIC, BROKER, LOGGER = 0, 2, 4, 8
KINDS = {UNKNOWN: "UNKNOWN", TOPIC: "TOPIC", BROKER: "BROKER", LOGGER: "BROKER_LOGGER"}
"""The kinds of resources with settings (`ConfigResource.Type`)."""
OF_TOPIC, OF_BROKER, OF_ALL_BROKERS, STATIC, DEFAULT, OF_LOGGER = 1, 2, 3, 4, 5, 6
"""The source of a setting (`DescribeConfigsResponse.ConfigSource`)."""
SET, DELETE, APPEND, SUBTRACT = range(4)
"""The operations of an incremental change (`AlterConfigOp.OpType`)."""
ALL_BROKERS = "<default>"
"""The name under which the settings of all brokers are kept."""
NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
LEVELS = ("TRACE", "ERROR", "INFO", "FATAL", "DEBUG", "WARN")
"""The levels of loggers, in the order of a Java set of them."""
ROOT_LOGGER = "root"


class Setting(NamedTuple):
    """One value of a key, and where it stands."""

    name: str
    value: str | None
    source: int


class BrokerSettings(NamedTuple):
    """The settings of one broker, from the source that counts most to Kafka's defaults."""

    generation: str
    own: Mapping[str, str]
    all_brokers: Mapping[str, str]
    static: Mapping[str, str]

    @classmethod
    async def read(cls, service: Service) -> BrokerSettings:
        """The broker's own settings and those of all brokers, as ZooKeeper has them, and its file."""
        broker, zk = service.broker, KafkaZkClient(service.broker.zk)
        own = await read_config(zk, BROKERS, str(broker.id))
        return cls(broker.generation.name, own, await read_config(zk, BROKERS, ALL_BROKERS), static(service))

    def known(self, key: str) -> ConfigKey | None:
        """The release's entry for a key of brokers."""
        found = keys(config_keys.BROKER, self.generation).get(key)
        return found or dynamic_keys(self.generation).get(key)

    def sources(self, key: str) -> list[Setting]:
        """Every value of a key and of those asked in its place, the one that counts first.

        Kafka 2.4.1: server/AdminManager.scala, configSynonyms
        """
        known = self.known(key)
        names = known.synonyms if known and known.synonyms else (key,)
        defaults = {name: k.default for name in names if (k := self.known(name)) is not None and k.default is not None}
        sources = {OF_BROKER: self.own, OF_ALL_BROKERS: self.all_brokers, STATIC: self.static, DEFAULT: defaults}
        places = [(name, source) for source, values in sources.items() for name in names if name in values]
        found = [Setting(name, sources[source][name], source) for name, source in places]
        first = next((place for place, one in enumerate(found) if one.name == key), len(found))
        return found[first:]


def static(service: Service) -> dict[str, str]:
    """The file of a lab's broker: its id, its listener, and the settings that its lab was given."""
    broker, known = service.broker, keys(config_keys.BROKER, service.broker.generation.name)
    given = as_text({key: value for key, value in broker.config.items() if key in known})
    other = {key: value for key, value in given.items() if known[key].default != value}
    rack = {} if broker.rack is None else {"broker.rack": broker.rack}
    places = {"zookeeper.connect": service.shared.world.address or "memory", "log.dirs": ",".join(PATHS)}
    listens = {"listeners": f"PLAINTEXT://{HOST}:{service.shared.ports.get(broker.id, -1)}"}
    return {"broker.id": str(broker.id)} | places | listens | rack | other


# Describing


async def describe_configs(service: Service, version: int, request: Message) -> Message:
    """The settings of topics, of this broker or of all brokers, and of this broker's loggers; each resource once."""
    without: Message = {} if request.get("include_synonyms", False) else {"synonyms": []}

    async def describe(kind: int, name: str, wanted: Sequence[str] | None) -> Message:
        found = await _described(service, kind, name)
        return {"configs": [one | without for one in found if wanted is None or one["name"] in wanted]}

    return {"results": await _each(service, request, "configuration_keys", describe)}


async def _described(service: Service, kind: int, name: str) -> list[Message]:
    settings = await BrokerSettings.read(service)
    if kind == TOPIC:
        service.shared.admin.check_name(name)
        if name not in topics_of(service):
            _refuse("", UNKNOWN_PARTITION)
        own = await read_config(KafkaZkClient(service.broker.zk), TOPICS, name)
        return _of_topic(settings, own)
    if kind == BROKER and not name:
        return [_of_broker(settings, key, True) for key in settings.all_brokers]
    if kind == BROKER:
        _check_broker(service, name, " or empty string,")
        known = keys(config_keys.BROKER, settings.generation)
        return [_of_broker(settings, key) for key in dict.fromkeys((*known, *settings.static, *settings.own))]
    if kind == LOGGER:
        if not name:
            _refuse("Broker id must not be empty")
        _check_broker(service, name, "")
        return [_entry(Setting(one, level, OF_LOGGER), []) for one, level in service.loggers.items()]
    raise ApiException("INVALID_REQUEST", f"Unexpected resource type {KINDS.get(kind, 'UNKNOWN')} for resource {name}")


def _kind(service: Service, number: int) -> int:
    """The kind of settings that a number means in this release, and in its answers."""
    has_loggers = "IncrementalAlterConfigs" in service.versions  # alone this changes their levels (KIP-412)
    return number if number in KINDS and (number != LOGGER or has_loggers) else UNKNOWN


def _check_broker(service: Service, name: str, alternative: str = ",") -> None:
    """Refuse a request for the settings of another broker."""
    if not NUMBER.fullmatch(name):
        _refuse(f"Broker id must be an integer, but it is: {name}")
    if int(name) != service.broker.id:
        _refuse(f"Unexpected broker id, expected {service.broker.id}{alternative} but received {name}")


def _refuse(text: str, error: str = "INVALID_REQUEST") -> NoReturn:
    raise ApiException(error, text)


def _of_topic(settings: BrokerSettings, own: Mapping[str, str]) -> list[Message]:
    """All keys of topics. Kafka 2.4.1: server/AdminManager.scala, createTopicConfigEntry"""
    entries, known = [], keys(config_keys.TOPIC, settings.generation)
    for name, key in known.items():
        server = key.server_key if key.server_key and settings.known(key.server_key) else None
        inherited = settings.sources(server) if server else []
        sources = [Setting(name, own[name], OF_TOPIC), *inherited] if name in own else inherited
        # a broker's hours are no milliseconds: of its keys only the one of the same unit is a topic's value
        value = sources[0].value if sources and sources[0].name in (name, server) else key.default
        shown = Setting(name, _shown(key, value), sources[0].source if sources else DEFAULT)
        entries.append(_entry(shown, sources))
    return entries + [_entry(Setting(name, own[name], OF_TOPIC), []) for name in own if name not in known]


def _of_broker(settings: BrokerSettings, name: str, of_all: bool = False) -> Message:
    """One key of a broker, or of what all brokers have.

    Kafka 2.4.1: server/AdminManager.scala, createBrokerConfigEntry
    """
    key, sources = settings.known(name), settings.sources(name)
    if of_all:
        sources = [one for one in sources if one.source == OF_ALL_BROKERS]
    value = sources[0].value if sources else None
    sensitive = key is None or key.type == "PASSWORD"
    shown = None if sensitive or key is None else _shown(key, value)
    if sensitive:
        sources = [one._replace(value=None) for one in sources]
    read_only = key is None or key.mode is None
    return _entry(Setting(name, shown, sources[0].source if sources else DEFAULT), sources, read_only, sensitive)


def _shown(key: ConfigKey, value: str | None) -> str | None:
    """A value as Kafka prints it when it has read it (ConfigDef.convertToString)."""
    if value is None:
        return None
    if key.type == "BOOLEAN":
        return value.strip().lower()
    return ",".join(part.strip() for part in value.split(",")) if key.type == "LIST" else value.strip()


def _entry(shown: Setting, sources: Sequence[Setting], read_only: bool = False, sensitive: bool = False) -> Message:
    return {
        "name": shown.name,
        "value": shown.value,
        "read_only": read_only,
        "is_default": shown.source == DEFAULT,
        "config_source": shown.source,
        "is_sensitive": sensitive,
        "synonyms": [{"name": one.name, "value": one.value, "source": one.source} for one in sources],
    }


# Changing


async def alter_configs(service: Service, version: int, request: Message) -> Message:
    """Give topics or this broker other settings, instead of all that they had.

    Kafka 2.4.1: common/requests/AlterConfigsRequest.java, ConfigEntry (requireNonNull)
    """
    if any(one["value"] is None for resource in request["resources"] for one in resource["configs"]):
        raise RefusedFrame("INVALID_REQUEST", "AlterConfigs: a setting without a value")

    async def alter(kind: int, name: str, configs: Sequence[Message]) -> None:
        wanted = {one["name"]: one["value"] for one in configs}
        if kind == LOGGER:
            _refuse("AlterConfigs is deprecated and does not support the resource type BROKER_LOGGER")
        await _altered(service, kind, name, wanted, request["validate_only"])

    return {"responses": await _each(service, request, "configs", alter)}


async def incremental_alter_configs(service: Service, version: int, request: Message) -> Message:
    """Set, remove, or lengthen and shorten the lists of single settings (KIP-339)."""

    async def alter(kind: int, name: str, configs: Sequence[Message]) -> None:
        twice = [key for key, number in Counter(one["name"] for one in configs).items() if number > 1]
        if twice:
            _refuse(f"Error due to duplicate config keys : {','.join(twice)}")
        if kind == LOGGER:
            _alter_loggers(service, name, configs, request["validate_only"])
            return
        own = await read_config(KafkaZkClient(service.broker.zk), *await _place(service, kind, name))
        scope = config_keys.TOPIC if kind == TOPIC else config_keys.BROKER
        wanted = _changed(own, configs, keys(scope, service.broker.generation.name))
        await _altered(service, kind, name, wanted, request["validate_only"])

    return {"responses": await _each(service, request, "configs", alter)}


async def _each(
    service: Service, request: Message, part: str, work: Callable[[int, str, T], Awaitable[Message | None]]
) -> list[Message]:
    """The answer for every resource of a request, given its `part` of that; what Kafka refuses is its error."""
    answers = []
    asked = {(one["resource_type"], one["resource_name"]): one[part] for one in request["resources"]}
    for (number, name), given in asked.items():
        kind, code, text = _kind(service, number), None, ""
        try:
            found = await work(kind, name, given) or {}
        except KafkaCtlError as refused:
            found, text = {"configs": []}, str(refused)
            code = refused.code if isinstance(refused, ApiException) else "UNKNOWN_SERVER_ERROR"
        error = {"error_code": number_of(code), "error_message": text or None}
        answers.append(found | error | {"resource_type": kind, "resource_name": name})
    return answers


async def _altered(service: Service, kind: int, name: str, wanted: Mapping[str, str], only: bool) -> None:
    """Check the settings of a topic or broker as a whole, and write them unless only their check was asked for."""
    place = await _place(service, kind, name)
    if kind == TOPIC:
        known = keys(config_keys.TOPIC, service.broker.generation.name)
        if unknown := [key for key in wanted if key not in known]:
            _refuse(f"Unknown topic config name: {unknown[0]}", "INVALID_CONFIG")
    else:
        known = dynamic_keys(service.broker.generation.name)
        if wrong := _not_dynamic(service, wanted, bool(name)):
            _refuse_values(kind, name, wrong)
    try:
        check_values(wanted, known, service.broker.generation)
    except ApiException as refused:
        if str(refused).startswith("conflict"):
            raise
        _refuse_values(kind, name, refused)
    if not only:
        await _write(service, place, wanted)


async def _place(service: Service, kind: int, name: str) -> tuple[str, str]:
    """The znode of settings in ZooKeeper. Raises ApiException if such settings are not possible.

    Kafka 2.4.1: zk/AdminZkClient.scala, validateTopicConfig; server/AdminManager.scala, getBrokerId
    """
    if kind == TOPIC:
        service.shared.admin.check_name(name)
        if name not in await KafkaZkClient(service.broker.zk).read_children("/brokers/topics"):
            _refuse(f'Topic "{name}" does not exist.', "UNKNOWN_SERVER_ERROR")
        return TOPICS, name
    if kind != BROKER:
        _refuse(f"Unexpected resource type {KINDS[kind]}")
    if name:
        _check_broker(service, name)
    return BROKERS, name or ALL_BROKERS


def _not_dynamic(service: Service, wanted: Mapping[str, str], of_one: bool) -> str | None:
    """The reason why a running broker cannot take these settings; it keeps keys that no release knows.

    Kafka 2.4.1: server/DynamicBrokerConfig.scala, validateConfigs
    """
    generation = service.broker.generation.name
    dynamic, known = dynamic_keys(generation), keys(config_keys.BROKER, generation)
    fixed = [key for key in wanted if key in known and key not in dynamic]
    security = [key for key in wanted if key.startswith("ssl.") and key in dynamic]
    own = [key for key in wanted if key in known and key in dynamic and dynamic[key].mode == PER_BROKER]
    for found, text in (
        (fixed, "Cannot update these configs dynamically"),
        (security, "These security configs can be dynamically updated only per-listener using the listener prefix"),
        ([] if of_one else own, "Cannot update these configs at default cluster level, broker id must be specified"),
    ):
        if found:
            return f"{text}: Set({', '.join(found)})"
    return None


async def _write(service: Service, place: tuple[str, str], wanted: Mapping[str, str]) -> None:
    (kind, name), zk = place, KafkaZkClient(service.broker.zk)
    before = await read_config(zk, kind, name)
    changes: dict[str, str | None] = dict.fromkeys(key for key in before if key not in wanted) | dict(wanted)
    written = json.dumps(changes, separators=(",", ":"))
    service.shared.admin.record_request("alter_config", **{kind.removesuffix("s"): name}, config=written)
    await change_config(zk, kind, name, changes)


def _changed(own: Mapping[str, str], changes: Sequence[Message], known: Mapping[str, ConfigKey]) -> dict[str, str]:
    """Settings after incremental changes. Kafka 2.4.1: server/AdminManager.scala, prepareIncrementalConfigs"""
    wanted = dict(own)
    for one in changes:
        key, operation, value = one["name"], one["config_operation"], one["value"] or ""
        if operation == SET and one["value"] is None:
            _refuse("", "UNKNOWN_SERVER_ERROR")  # a NullPointerException of java.util.Properties
        if operation == DELETE:
            wanted.pop(key, None)
        elif operation == SET:
            wanted[key] = value
        elif operation in (APPEND, SUBTRACT):
            if key not in known:
                raise BadInput(f"key not found: {key}")
            word = "append" if operation == APPEND else "subtract"
            if known[key].type != "LIST":
                _refuse(f"Config value {word} is not allowed for config key: {key}")
            if key not in wanted:
                raise BadInput(f"{key} is not set, so there is nothing to {word}")  # Kafka: a NullPointerException
            listed, given = wanted[key].split(","), value.split(",")
            rest = [part for part in listed if part not in given]
            wanted[key] = ",".join([*listed, *given] if operation == APPEND else rest)
        else:
            raise BadInput("null")  # a MatchError
    return wanted


def _alter_loggers(service: Service, name: str, configs: Sequence[Message], only: bool) -> None:
    """Other levels for loggers of this process. Kafka 2.4.1: server/AdminManager.scala, validateLogLevelConfigs"""
    _check_broker(service, name)
    changes = [(one["name"], one["config_operation"], one["value"]) for one in configs]
    for logger, operation, level in changes:
        if logger not in service.loggers:
            _refuse_values(LOGGER, name, f"Logger {logger} does not exist!")
        if operation not in (SET, DELETE):
            word = "APPEND" if operation == APPEND else "SUBTRACT"
            _refuse(f"{word} operation is not allowed for the BROKER_LOGGER resource")
        if operation == DELETE and logger == ROOT_LOGGER:
            _refuse(f"Removing the log level of the {ROOT_LOGGER} logger is not allowed")
        if operation == SET and level not in LEVELS:
            text = f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
            _refuse_values(LOGGER, name, f"{text}Valid log levels are {', '.join(LEVELS)}")
    for logger, operation, level in () if only else changes:
        service.loggers[logger] = level if operation == SET else service.loggers[ROOT_LOGGER]


def _refuse_values(kind: int, name: str, text: object) -> NoReturn:
    _refuse(f"Invalid config value for resource ConfigResource(type={KINDS.get(kind)}, name='{name}'): {text}")
