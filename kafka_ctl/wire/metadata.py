"""The cluster as a broker tells it, and its topics: creating, growing and deleting them.

Versions, live brokers and leaders are from this broker's own cache, which the controller's UpdateMetadata requests
fill. The controller's broker changes topics, and waits for what comes of it.
Kafka 2.0.1: server/KafkaApis.scala, handleTopicMetadataRequest, handleCreateTopicsRequest, handleDeleteTopicsRequest;
server/MetadataCache.scala, getTopicMetadata; server/AdminManager.scala, createTopics, createPartitions;
server/DelayedCreatePartitions.scala (KIP-4, KIP-195); zk/AdminZkClient.scala, validateReplicaAssignment
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

from kafka_ctl.brokers.broker import Broker
from kafka_ctl.brokers.config_keys import TOPIC, check_values, keys
from kafka_ctl.cluster import INTERNAL, TopicPartition
from kafka_ctl.errors import ApiException, BadInput, KafkaCtlError, UnknownName
from kafka_ctl.requests import NOT_CONTROLLER, UNKNOWN_PARTITION
from kafka_ctl.scala_order import map_order, text_hash
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.listeners import HOST
from kafka_ctl.wire.schema import number_of
from kafka_ctl.wire.service import Service
from kafka_ctl.zookeeper.kafka_client import KafkaZkClient
from kafka_ctl.zookeeper.znodes import ReassignPartitionsZNode

NAMED, SOFTWARE = 3, re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""The version of ApiVersions from which on a client's software has a name and a version, and what these look like."""
MISSES_LISTENERS = 6
"""The version of Metadata from which on there is an error for a leader without this listener (KAFKA-6546)."""


async def api_versions(service: Service, version: int, request: Message) -> Message:
    """The requests that are understood, with their versions (KIP-35); since KIP-511 clients send their name."""
    named = (request.get("client_software_name", "-"), request.get("client_software_version", "-"))
    if version >= NAMED and not all(map(SOFTWARE.fullmatch, named)):
        return {"error_code": number_of("INVALID_REQUEST"), "api_keys": []}
    return {"error_code": 0, "api_keys": service.api_keys()}


async def metadata(service: Service, version: int, request: Message) -> Message:
    """The brokers that are alive, and who leads the partitions of some topics or of all."""
    broker = service.broker
    known, asked = topics_of(service), request["topics"]
    every = asked is None or (version == 0 and not asked)
    names = sorted(known) if every else dict.fromkeys(topic["name"] for topic in asked or ())
    found = []
    for name in names:
        if request.get("error"):  # a test asked for it
            found.append({"name": name, "error_code": number_of(request["error"])})
        elif name in known:
            listed = sorted(known[name], key=lambda tp: tp.partition)
            partitions = [_partition(broker, tp, version) for tp in listed]
            found.append({"name": name, "is_internal": name in INTERNAL, "partitions": partitions})
        else:
            creates = version < 4 or request["allow_auto_topic_creation"]
            error = await _auto_create(service, name) if creates else UNKNOWN_PARTITION
            found.append({"name": name, "is_internal": name in INTERNAL, "error_code": number_of(error)})
    racks = _racks(service)
    return {
        "brokers": [endpoint(service, id) | {"node_id": id, "rack": racks.get(id)} for id in broker.live_brokers],
        "cluster_id": broker.world.cluster_id,
        "controller_id": _controller(service),
        "topics": [{"topic_authorized_operations": 0} | topic for topic in found],
        "cluster_authorized_operations": 0,
    }


def _controller(service: Service) -> int:
    """The controller as this broker knows it; -1 for none.

    Kafka 2.0.1: common/requests/MetadataResponse.java, getControllerNode, toStruct
    """
    broker = service.broker
    is_hidden = broker.generation.requests.hides_dead_controller and broker.known_controller not in broker.live_brokers
    return -1 if is_hidden else broker.known_controller


def topics_of(service: Service) -> dict[str, list[TopicPartition]]:
    """The topics that this broker knows of, with their partitions."""
    known: dict[str, list[TopicPartition]] = {}
    for tp in service.broker.assigned:
        known.setdefault(tp.topic, []).append(tp)
    return known


def endpoint(service: Service, id: int) -> Message:
    host, port = service.shared.endpoints.get(id, (HOST, -1))
    return {"host": host, "port": service.shared.ports.get(id, port)}


def _racks(service: Service) -> dict[int, str | None]:
    return {id: broker.rack for id, broker in service.shared.world.brokers.items()}


def _partition(broker: Broker, tp: TopicPartition, version: int) -> Message:
    """One partition; version 0 has an error instead of replicas on dead brokers.

    Where no leader is alive, a broker looks for itself among the live brokers, not for the leader, and then misses a
    listener (KAFKA-10312).
    Kafka 2.4.1: server/MetadataCache.scala, getPartitionMetadata (errorUnavailableEndpoints, errorUnavailableListeners)
    """
    sent, live = broker.assigned[tp], broker.live_brokers
    state = sent.state
    led, all_named = state.leader in live, version > 0 or {*sent.replicas, *state.isr} <= {*live}
    in_sync = state.isr if led or broker.generation.requests.names_isr_without_leader else ()
    replicas, isr = ([one for one in ids if version > 0 or one in live] for ids in (sent.replicas, in_sync))
    missed = "LISTENER_NOT_FOUND" if version >= MISSES_LISTENERS and broker.id in live else "LEADER_NOT_AVAILABLE"
    return {
        "error_code": number_of(missed if not led else None if all_named else "REPLICA_NOT_AVAILABLE"),
        "partition_index": tp.partition,
        "leader_id": state.leader if led else -1,
        "leader_epoch": state.leader_epoch if led else -1,
        "replica_nodes": replicas,
        "isr_nodes": isr,
        "offline_replicas": sent.offline,
    }


async def _auto_create(service: Service, topic: str) -> str:
    """Create a topic that a client asked for, as `auto.create.topics.enable` has it by default; the error to answer."""
    config = service.shared.world.config
    numbers = config["num.partitions"], config["default.replication.factor"]
    create = functools.partial(_create, service, topic, *numbers, None, None)
    error, _ = await _attempt(create, "INVALID_TOPIC_EXCEPTION")
    return "LEADER_NOT_AVAILABLE" if error in (None, "TOPIC_ALREADY_EXISTS") else error


async def describe_acls(service: Service, version: int, request: Message) -> Message:
    """The ACLs of a broker without an authorizer.

    Kafka 2.0.1: server/KafkaApis.scala, handleDescribeAcls
    """
    text = "No Authorizer is configured on the broker"
    return {"error_code": number_of("SECURITY_DISABLED"), "error_message": text, "resources": []}


# Changing topics

Assignment = Mapping[int, Sequence[int]]
Outcome = tuple[str | None, str | None]
"""The error of one topic, and its text."""
DONE: Outcome = (None, None)
MOST_PARTITIONS = 100_000
"""Partitions of one topic. With more its znode is larger than a ZooKeeper server takes (`jute.maxbuffer`, 1 MiB)."""
REPEATED = ("INVALID_REQUEST", "Duplicate topic in request.")
"""A topic that stands twice in CreatePartitions."""
TOO_MANY = ("INVALID_PARTITIONS", f"A topic has {MOST_PARTITIONS} partitions at most here.")


async def _as_controller(service: Service, work: Callable[[], Awaitable[None]], otherwise: str) -> Outcome:
    return await _attempt(work, otherwise) if service.broker.acts else NOT_CONTROLLER


async def _attempt(work: Callable[[], Awaitable[None]], otherwise: str) -> Outcome:
    """Do something about one topic; what an administrator refuses is Kafka's error."""
    try:
        await work()
    except ApiException as refused:
        return refused.code, str(refused) or None
    except UnknownName as unknown:
        missing = unknown.what == "topic"
        return (UNKNOWN_PARTITION if missing else "INVALID_CONFIG"), str(unknown)
    except BadInput as error:
        return otherwise, str(error)
    except KafkaCtlError as error:
        return "UNKNOWN_SERVER_ERROR", str(error)
    return DONE


async def create_topics(service: Service, version: int, request: Message) -> Message:
    """Create topics, or with `validate_only` say whether they could be created; the answer waits for their leaders."""
    seconds, config, only = request["timeout"] / 1000, service.broker.config, request.get("validate_only", False)
    answers, twice = dict[str, tuple[Outcome, int]](), _twice(service, request["topics"])
    for topic in request["topics"]:
        name = topic["name"]
        assignment = {one["partition_index"]: tuple(one["broker_ids"]) for one in topic["assignments"]} or None
        wanted, copies = topic["num_partitions"], topic["replication_factor"]
        if assignment is None and service.broker.generation.requests.has_default_counts:
            wanted = config["num.partitions"] if wanted == -1 else wanted
            copies = config["default.replication.factor"] if copies == -1 else copies
        create = functools.partial(_create_checked, service, topic, wanted, copies, assignment, only)
        otherwise = "INVALID_REPLICA_ASSIGNMENT" if assignment else "INVALID_REQUEST"
        if name not in twice:
            answers[name] = await _as_controller(service, create, otherwise), len(assignment or ()) or wanted
    answers |= _repeated(service, request, twice)
    outcomes = await _all_awaited(service, answers, seconds, only)
    more = {"num_partitions": -1, "replication_factor": -1, "configs": None}
    each = service.broker.generation.requests.answers_each_entry
    names = [topic["name"] for topic in request["topics"]] if each else outcomes
    return {"topics": [_answer(name, outcomes[name]) | more for name in names]}


def _repeated(service: Service, request: Message, names: Iterable[str]) -> dict[str, tuple[Outcome, int]]:
    """The answer to topics that stand in CreateTopics more than once."""
    listed, text = map_order(names, text_hash), "Found multiple entries for this topic."
    if not service.broker.generation.requests.answers_each_entry:
        text = f"Create topics request from client `{request['client_id'] or ''}` contains multiple entries for "
        text += f"the following topics: {','.join(listed)}"
    return dict.fromkeys(listed, (("INVALID_REQUEST", text), 0))


async def _create_checked(
    service: Service, topic: Message, partitions: int, copies: int, assignment: Assignment | None, only: bool
) -> None:
    """Create a topic of a request, or with `only` find out whether it could be."""
    settings = {one["name"]: one["value"] for one in topic["configs"]}
    _check_new(service, topic, settings, partitions, copies)
    wanted, each = (None, None) if assignment else (partitions, copies)
    await _create(service, topic["name"], wanted, each, assignment, settings, only)


async def _create(
    service: Service,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    assignment: Assignment | None,
    settings: Mapping[str, str] | None,
    only: bool = False,
) -> None:
    """Create a topic, or with `only` find out whether it could be."""
    admin = service.shared.admin
    if not only:
        admin.record_request("create_topic", topic=name)
    await admin.create_topic(name, partitions, replication_factor, assignment, settings, _racks(service), only)


async def _all_awaited(
    service: Service, answers: Mapping[str, tuple[Outcome, int]], seconds: float, only: bool
) -> dict[str, Outcome]:
    """The outcome of each topic; those that were changed are waited for together.

    Kafka 2.0.1: server/DelayedCreatePartitions.scala
    """
    done = [] if only else [(name, number) for name, (outcome, number) in answers.items() if outcome == DONE]
    waited = await asyncio.gather(*(_awaited(service, name, number, seconds) for name, number in done))
    late = {name: outcome for (name, _), outcome in zip(done, waited, strict=True)}
    return {name: late.get(name, outcome) for name, (outcome, _) in answers.items()}


async def _awaited(service: Service, topic: str, partitions: int, seconds: float) -> Outcome:
    """Wait until so many partitions have leaders; without time to wait, too, the error is REQUEST_TIMED_OUT."""
    cache = service.broker

    def have_leaders() -> bool:
        known = topics_of(service).get(topic, [])
        return len(known) >= partitions and all(cache.metadata[tp].leader in cache.live_brokers for tp in known)

    in_time = seconds > 0 and await cache.metadata_shows(have_leaders, seconds)
    return DONE if in_time else ("REQUEST_TIMED_OUT", None)


def _check_new(service: Service, topic: Message, settings: Mapping[str, str | None], wanted: int, copies: int) -> None:
    """Raise ApiException for what a broker refuses before all else, in its order.

    Kafka 2.4.1: server/AdminManager.scala, createTopics; admin/AdminUtils.scala, assignReplicasToBrokers
    """
    generation, brokers = service.broker.generation, len(service.broker.live_brokers)
    rules, known = generation.requests, keys(TOPIC, generation.name)
    if rules.checks_existence_first and topic["name"] in topics_of(service):
        raise ApiException("TOPIC_ALREADY_EXISTS", f"Topic '{topic['name']}' already exists.")
    given = {key: value for key, value in settings.items() if value is not None}
    if given != settings:
        raise ApiException("UNKNOWN_SERVER_ERROR", "")  # a NullPointerException of java.util.Properties
    if unknown := next((key for key in settings if key not in known), None):
        named = f"topic config name: {unknown}" if rules.names_topic_configs else f"Log configuration {unknown}."
        raise ApiException("INVALID_CONFIG", f"Unknown {named}")
    try:
        check_values(given, known, generation)
    except ApiException as refused:
        code = refused.code if rules.answers_invalid_configs else "UNKNOWN_SERVER_ERROR"
        raise ApiException(code, str(refused)) from None
    if not topic["assignments"]:
        _check_numbers(wanted, copies, brokers, rules.writes_sentences)
    elif topic["num_partitions"] != -1 or topic["replication_factor"] != -1:
        text = "Both numPartitions or replicationFactor and replicasAssignments were set. "
        raise ApiException("INVALID_REQUEST", text + "Both cannot be used at the same time.")
    else:
        assignment = {one["partition_index"]: one["broker_ids"] for one in topic["assignments"]}
        _check_assignment(assignment, rules.numbers_from_zero)


def _check_assignment(given: Assignment, numbered: bool) -> None:
    """Refuse an assignment in Kafka's words. The lab refuses more: a partition without replicas, and always a gap.

    Kafka 2.4.1: zk/AdminZkClient.scala, validateTopicCreate
    """
    shown = [f"{number} -> ArrayBuffer({_listed(given[number])})" for number in map_order(given, int)]
    if len({len(replicas) for replicas in given.values()}) != 1:
        _refuse("All partitions should have the same number of replicas")
    if any(len(set(replicas)) != len(replicas) for replicas in given.values()):
        _refuse(f"Duplicate replica assignment found: Map({', '.join(shown)})")
    if numbered and sum(number for number in given if number >= 0) != sum(range(len(given))):
        _refuse("partitions should be a consecutive 0-based integer sequence")


def _check_numbers(partitions: int, copies: int, brokers: int, in_sentences: bool) -> None:
    """Raise ApiException for a number of partitions or replicas that cannot be."""
    code, text = "INVALID_REPLICATION_FACTOR", "replication factor must be larger than 0"
    if partitions > MOST_PARTITIONS:
        raise ApiException(*TOO_MANY)
    if partitions <= 0:
        code, text = "INVALID_PARTITIONS", "number of partitions must be larger than 0"
    elif copies > brokers:
        text = f"replication factor: {copies} larger than available brokers: {brokers}"
    elif copies > 0:
        return
    raise ApiException(code, f"{text.capitalize()}." if in_sentences else text)


def _twice(service: Service, topics: Sequence[Message]) -> list[str]:
    """The names of topics that stand in a request to the controller more than once."""
    counted = Counter(topic["name"] for topic in topics)
    return [name for name, number in counted.items() if number > 1] if service.broker.acts else []


def _answer(name: str, outcome: Outcome) -> Message:
    return {"name": name, "error_code": number_of(outcome[0]), "error_message": outcome[1]}


async def delete_topics(service: Service, version: int, request: Message) -> Message:
    """Delete topics; answered when this broker knows nothing of them any more, or when the time is over.

    Kafka 2.0.1: server/AdminManager.scala, deleteTopics; server/DelayedDeleteTopics.scala
    """
    results = []
    knows = service.versions["DeleteTopics"][1] >= 3  # before KIP-322 the controller drops the request: a timeout
    for name in dict.fromkeys(request["topic_names"]):

        async def delete(name: str = name) -> None:
            service.shared.admin.record_request("delete_topic", topic=name)
            await service.shared.admin.delete_topic(name, by_request=True)

        if not service.broker.acts:
            outcome: Outcome = NOT_CONTROLLER
        elif knows and not service.broker.config["delete.topic.enable"]:
            outcome = ("TOPIC_DELETION_DISABLED" if version >= 3 else "INVALID_REQUEST"), None
        elif name not in topics_of(service):
            outcome = UNKNOWN_PARTITION, None
        else:
            outcome = await _attempt(delete, "INVALID_TOPIC_EXCEPTION")
        results.append((name, outcome))
    gone, seconds = [name for name, outcome in results if outcome == DONE], request["timeout"] / 1000
    await service.broker.metadata_shows(lambda: not topics_of(service).keys() & gone, seconds)
    late = topics_of(service).keys() & gone
    timed_out = gone if seconds <= 0 else late
    answers = {name: _answer(name, outcome) for name, outcome in results}
    first = answers | {name: _answer(name, ("REQUEST_TIMED_OUT", None)) for name in timed_out}
    names = request["topic_names"] if service.broker.generation.requests.answers_each_entry else list(answers)
    return {"responses": [first.pop(name, answers[name]) for name in names]}


async def create_partitions(service: Service, version: int, request: Message) -> Message:
    """Give topics more partitions, or only say whether they could be; answered when these have leaders."""
    only, twice = request["validate_only"], _twice(service, request["topics"])
    answers = dict[str, tuple[Outcome, int]]()
    for topic in request["topics"]:
        name, count = topic["name"], topic["count"]

        async def grow(name: str = name, count: int = count, given: Message = topic) -> None:
            assignments = given["assignments"]
            chosen = None if assignments is None else [one["broker_ids"] for one in assignments]
            new = await _check_growth(service, name, count, chosen)
            if not only:
                service.shared.admin.record_request("add_partitions", topic=name, total=count)
            await service.shared.admin.add_partitions(name, count, _racks(service), new, only)

        outcome = REPEATED if name in twice else await _as_controller(service, grow, "INVALID_PARTITIONS")
        answers[name] = outcome, count
    outcomes = await _all_awaited(service, answers, request["timeout"] / 1000, only)
    return {"results": [_answer(name, outcome) for name, outcome in outcomes.items()]}


async def _check_growth(
    service: Service, topic: str, count: int, given: Sequence[Sequence[int]] | None
) -> dict[int, tuple[int, ...]] | None:
    """The new partitions with the replicas that were given for each in order, None where the broker is to choose.

    Raises ApiException if they are not possible.
    """
    zk = KafkaZkClient(service.broker.zk)
    per_topic = service.broker.generation.reassignment.incremental_reassignment
    if not per_topic and await zk.exists(ReassignPartitionsZNode.path()):
        raise ApiException("REASSIGNMENT_IN_PROGRESS", "A partition reassignment is in progress.")
    known = (await zk.assignments([topic])).get(topic, {})
    if per_topic and any(assignment.is_being_reassigned for assignment in known.values()):
        text = f"A partition reassignment is in progress for the topic '{topic}'."
        raise ApiException("REASSIGNMENT_IN_PROGRESS", text)
    _check_count(topic, known, count)
    if given is None:
        return None
    brokers = await zk.broker_ids()
    new = {len(known) + place: tuple(replicas) for place, replicas in enumerate(given)}
    unknown = sorted({broker for replicas in given for broker in replicas} - set(brokers))
    if unknown:
        _refuse(f"Unknown broker(s) in replica assignment: {_listed(unknown)}.")
    if len(given) != count - len(known):
        more = count - len(known)
        _refuse(f"Increasing the number of partitions by {more} but {len(given)} assignments provided.")
    _check_replicas(new, len(known[0].replicas) if 0 in known else 0)
    return new


def _check_count(topic: str, known: Collection[int], count: int) -> None:
    if not known:
        raise ApiException(UNKNOWN_PARTITION, f"The topic '{topic}' does not exist.")
    if count < len(known):
        text = f"Topic currently has {len(known)} partitions, which is higher than the requested {count}."
        raise ApiException("INVALID_PARTITIONS", text)
    if count == len(known):
        raise ApiException("INVALID_PARTITIONS", f"Topic already has {len(known)} partitions.")
    if count > MOST_PARTITIONS:
        raise ApiException(*TOO_MANY)


def _check_replicas(new: Mapping[int, Sequence[int]], factor: int) -> None:
    """Each new partition has replicas, none twice, as many as partition 0."""
    for number, replicas in new.items():
        if not replicas:
            _refuse(f"Cannot have replication factor of 0 for partition id {number}.")
        if len(set(replicas)) != len(replicas):
            twice = f"Duplicate brokers not allowed in replica assignment: {_listed(replicas)}"
            _refuse(f"{twice} for partition id {number}.")
    bad = {number: len(replicas) for number, replicas in new.items() if len(replicas) != factor}
    if bad:
        _refuse(
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
            f"[{_listed(bad)}] have replication factors [{_listed(bad.values())}], respectively."
        )


def _refuse(text: str) -> None:
    raise ApiException("INVALID_REPLICA_ASSIGNMENT", text)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
