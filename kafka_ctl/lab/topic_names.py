"""Valid names of topics, and the topics that are Kafka's own.

One check serves the tool and the broker: `kafka-topics` calls it before it writes to ZooKeeper, and a broker asked
to create a topic (0.10.1 and later, KIP-4) calls the same method. A name written without it, by hand or by two
tools at once, is not checked again. Names that differ in `.` and `_` only would have the same name in metrics: the tool
warns of both characters, and a second such topic is refused.

Kafka 0.10.2.2: common/Topic.scala, Topic; admin/AdminUtils.scala, validateCreateOrUpdateTopic; admin/TopicCommand.scala
Kafka 2.0.1: clients common/internals/Topic.java, Topic; zk/AdminZkClient.scala, validateCreateOrUpdateTopic
Kafka 2.4.1: zk/AdminZkClient.scala, validateTopicCreate; admin/TopicCommand.scala, ZookeeperTopicService
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kafka_ctl.errors import ApiException, BadInput
from kafka_ctl.generation import Generation
from kafka_ctl.paths import blocks

LEGAL, MOST = re.compile(r"[a-zA-Z0-9._-]"), 249
WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
    "avoid issues it is best to use either, but not both."
)
RULES = {name: dict(line.split(" ", 1) for line in lines) for name, *lines in blocks(__package__, "topic_names.txt")}
"""The rules and texts of each generation."""


def check_name(topic: str, generation: Generation) -> None:
    """Raise ApiException (INVALID_TOPIC_EXCEPTION), with Kafka's text, for a name that no topic can have.

    A character that cannot be printed is written as an escape, where Kafka writes it as it is.
    """
    rules, text = RULES[generation.name], None
    if not topic:
        text = rules["empty"]
    elif topic in (".", ".."):
        text = rules["dots"]
    elif len(topic.encode("utf-16-le")) // 2 > MOST:  # as Java counts
        text = rules["long"]
    elif not LEGAL.search(topic):
        text = rules["nothing_legal"]
    elif not all(map(LEGAL.match, topic)):
        text = rules["illegal"]
    if text is not None:
        printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in topic)
        raise ApiException("INVALID_TOPIC_EXCEPTION", text.format(topic=printable))


def check_new(topic: str, topics: Iterable[str]) -> None:
    """Raise ApiException if the topic exists (TOPIC_ALREADY_EXISTS), or another whose name collides with its own."""
    existing = list(topics)
    if topic in existing:
        raise ApiException("TOPIC_ALREADY_EXISTS", f"Topic '{topic}' already exists.")
    colliding = [other for other in existing if other.replace(".", "_") == topic.replace(".", "_")]
    if colliding:
        listed = ", ".join(colliding)
        raise ApiException("INVALID_TOPIC_EXCEPTION", f"Topic '{topic}' collides with existing topics: {listed}")


def warning(topic: str) -> str | None:
    """The warning of the tool about a name with one of the characters that collide."""
    return WARNING if "." in topic or "_" in topic else None


def check_deletion(topic: str, generation: Generation) -> None:
    """BadInput in the tool's words for a topic of Kafka's own."""
    if topic in RULES[generation.name]["internal"].split():
        raise BadInput(f"Topic {topic} is a kafka internal topic and is not allowed to be marked for deletion.")


def check_growth(topic: str, generation: Generation) -> None:
    """BadInput in the tool's words for a topic that must keep its number of partitions."""
    rules = RULES[generation.name]
    if topic in rules["fixed"].split():
        raise BadInput(rules["fixed_text"].format(topic=topic))
