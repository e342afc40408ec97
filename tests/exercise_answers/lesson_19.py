"""Finding a broker."""

from __future__ import annotations

from typing import Any

from kafka_ctl_course.lesson_19 import leader_address, registered


def with_regex(listeners: str, advertised: str | None, name: str) -> str | None:
    host, port = (advertised or listeners).split("://")[1].split(":")
    if host == "0.0.0.0":
        return None
    return f"{host if host else name}:{port}"


def empty_host(listeners: str, advertised: str | None, name: str) -> str | None:
    return registered(listeners, advertised, "")


def any_address(listeners: str, advertised: str | None, name: str) -> str:
    host, _, port = (advertised or listeners).partition("://")[2].rpartition(":")
    return f"{host or name}:{port}"


def whole(listeners: str, advertised: str | None, name: str) -> str | None:
    found = registered(listeners, advertised, name)
    return None if found is None else f"PLAINTEXT://{found}"


def always_the_name(listeners: str, advertised: str | None, name: str) -> str | None:
    found = registered(listeners, advertised, name)
    return None if found is None else f"{name}:{found.rpartition(':')[2]}"


def of(answer: dict[str, Any], id: int) -> str:
    return next(f"{b['host']}:{b['port']}" for b in answer["brokers"] if b["node_id"] == id)


def next_broker(answer: dict[str, Any], topic: str, partition: int) -> str:
    return of(answer, partition % 3 + 2)


def by_loops(answer: dict[str, Any], topic: str, partition: int) -> str | None:
    for each in answer["topics"]:
        for one in each["partitions"]:
            if (each["name"], one["partition_index"]) == (topic, partition) and one["leader_id"] >= 0:
                return of(answer, one["leader_id"])
    return None


def by_place(answer: dict[str, Any], topic: str, partition: int) -> str | None:
    (found,) = (each for each in answer["topics"] if each["name"] == topic)
    return of(answer, found["partitions"][partition]["leader_id"]) if found["partitions"] else None


def one_leader_id(answer: dict[str, Any], topic: str, partition: int) -> Any:
    (found,) = (each for each in answer["topics"] if each["name"] == topic)
    return next((p["leader_id"] for p in found["partitions"] if p["partition_index"] == partition), None)


def never_none(answer: dict[str, Any], topic: str, partition: int) -> str:
    return leader_address(answer, topic, partition) or of(answer, answer["brokers"][-1]["node_id"])


def in_two(answer: dict[str, Any], topic: str, partition: int) -> Any:
    found = leader_address(answer, topic, partition)
    return found and tuple(found.split(":"))


def first_replica(answer: dict[str, Any], topic: str, partition: int) -> str | None:
    (found,) = (each for each in answer["topics"] if each["name"] == topic)
    one = next((p for p in found["partitions"] if p["partition_index"] == partition), None)
    return of(answer, one["replica_nodes"][0]) if one and one["leader_id"] >= 0 else None


def of_a_topic_with_partitions(answer: dict[str, Any], topic: str, partition: int) -> str | None:
    (found,) = (each["partitions"] for each in answer["topics"] if each["name"] == topic)
    next(each for each in found if each["partition_index"] == partition)
    return leader_address(answer, topic, partition)


RIGHT: dict[str, list[Any]] = {
    "19.2": [registered, with_regex],
    "19.3": [leader_address, by_loops],
    "19.4": [lambda lab: (lab.set_meta(3, "/d0", None), lab.set_meta(3, "/d1", None), lab.start(3))],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "19.2": [
        (empty_host, "takes the full name of its machine"),
        (any_address, "No client can reach 0.0.0.0"),
        (whole, "stands before `://`"),
        (lambda listeners, advertised, name: None, "advertised.listeners None you return None. Host and port"),
        (
            lambda listeners, advertised, name: (
                None if "0.0.0.0" in listeners else registered(listeners, advertised, name)
            ),
            "A broker may bind 0.0.0.0",
        ),
        (always_the_name, "Which host is configured for clients?"),
        (lambda listeners, advertised, name: registered(listeners, advertised, name) and name, "as in kafka-1"),
        (
            lambda listeners, advertised, name: registered(listeners.replace("0.0.0.0", ""), None, name),
            "advertised.listeners counts",
        ),
    ],
    "19.3": [
        (lambda answer, topic, partition: of(answer, answer["controller_id"]), "That is the controller"),
        (lambda answer, topic, partition: of(answer, answer["brokers"][0]["node_id"]), "stands first in the list"),
        (by_place, "its place in the list"),
        (one_leader_id, "a client needs host and port"),
        (never_none, "answer None"),
        (next_broker, "That is broker 2, not 1"),
        (first_replica, 'In the story "a leader that is not the first replica": for orders-0'),
        (in_two, "An address is one text, such as 127.0.0.1:9091"),
        (lambda answer, topic, partition: "localhost:9092", "No broker listens there"),
        (of_a_topic_with_partitions, "partition)`); it was asked with 'nothing', 0."),
        (of_a_topic_with_partitions, "raised StopIteration (in `next(each for each in found if"),
    ],
}
