"""What topics can be called: Kafka's texts as literals, in each generation.

Kafka 0.10.2.2: common/Topic.scala; 2.0.1, 2.4.1: clients common/internals/Topic.java; their tests TopicTest
"""

from __future__ import annotations

import pytest
from labs import play
from prose import Prose
from tables import tabled

from kafka_ctl import Lab
from kafka_ctl.errors import ApiException, BadInput, UnknownName
from kafka_ctl.generation import Generation
from kafka_ctl.lab.topic_names import check_name, check_new, warning

LEGAL = ("a", "A-Z", "0", "valid", "TOPIC", "nAmEs", "ar6", "VaL1d", "_0-9_.", "...", "-", "_", "x" * 249, "..a")
OTHER = "a character other than ASCII alphanumerics, '.', '_' and '-'"
LONG, WIDE = "x" * 250, "\U0001d4b3" * 125
"""250 characters, also the latter, as Java counts."""
ILLEGAL = {
    # name: the text of 0.10, the text of 2.0 and 2.4
    "": ("topic name is illegal, can't be empty", "Topic name is illegal, it can't be empty"),
    ".": ('topic name cannot be "." or ".."', 'Topic name cannot be "." or ".."'),
    "..": ('topic name cannot be "." or ".."', 'Topic name cannot be "." or ".."'),
    LONG: (
        "topic name is illegal, can't be longer than 249 characters",
        f"Topic name is illegal, it can't be longer than 249 characters, topic name: {LONG}",
    ),
    WIDE: (
        "topic name is illegal, can't be longer than 249 characters",
        f"Topic name is illegal, it can't be longer than 249 characters, topic name: {WIDE}",
    ),
    "a b": (f"topic name a b is illegal, contains {OTHER}", f'Topic name "a b" is illegal, it contains {OTHER}'),
    "a/b": (f"topic name a/b is illegal, contains {OTHER}", f'Topic name "a/b" is illegal, it contains {OTHER}'),
    "a\n\x1b": (  # made visible
        f"topic name a\\n\\x1b is illegal, contains {OTHER}",
        f'Topic name "a\\n\\x1b" is illegal, it contains {OTHER}',
    ),
    "Ärger": (f"topic name Ärger is illegal, contains {OTHER}", f'Topic name "Ärger" is illegal, it contains {OTHER}'),
    "٣a": (f"topic name ٣a is illegal, contains {OTHER}", f'Topic name "٣a" is illegal, it contains {OTHER}'),
    "{topic}": (
        f"topic name {{topic}} is illegal, contains {OTHER}",
        f'Topic name "{{topic}}" is illegal, it contains {OTHER}',
    ),
    "!": (f"topic name ! is illegal,  contains {OTHER}", f'Topic name "!" is illegal, it contains {OTHER}'),
}


@pytest.mark.parametrize("topic", LEGAL)
def test_legal_names(generation: str, topic: str) -> None:
    check_name(topic, Generation(generation))


def test_illegal_names(prose: Prose, generation: str) -> None:
    with Lab(brokers=1, generation=generation, seed=1) as lab:
        for topic, texts in ILLEGAL.items():
            with pytest.raises(ApiException) as refused:
                lab.create_topic(topic)
            text = texts[generation != "0.10"]
            assert (refused.value.code, str(refused.value)) == ("INVALID_TOPIC_EXCEPTION", text)
        lab.settle()
        assert lab.partitions() == []
        assert not [path for path in lab.znodes() if path.startswith(("/config/topics/", "/brokers/topics/"))]
        with prose.refused(BadInput):
            lab.create_topic(5)  # type: ignore[arg-type]


@tabled
def test_collisions(topics: list[str], new: str, listed: str) -> None:
    if not listed:
        check_new(new, topics)
        return
    with pytest.raises(ApiException) as refused:
        check_new(new, topics)
    assert refused.value.code == "INVALID_TOPIC_EXCEPTION"
    assert str(refused.value) == f"Topic '{new}' collides with existing topics: {listed}"


def test_a_topic_beside_one_that_looks_alike_in_metrics(generation: str) -> None:
    """The tool warns of the first, and refuses the second; in every generation, before anything is written."""
    with Lab(brokers=1, generation=generation, seed=1, config={"delete.topic.enable": True}) as lab:
        reported = lab.create_topic("test.topic", assignment={0: [1]}, config={"min.insync.replicas": 1})
        assert reported == (
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide."
            " To avoid issues it is best to use either, but not both."
        )
        lab.settle()
        for given in ({}, {"assignment": {0: [1]}}):
            with pytest.raises(ApiException, match=r"^Topic 'test_topic' collides with existing topics: test\.topic$"):
                lab.create_topic("test_topic", **given)  # type: ignore[arg-type]
        with pytest.raises(ApiException, match=r"^Topic 'test\.topic' already exists\.$") as refused:
            lab.create_topic("test.topic")
        assert refused.value.code == "TOPIC_ALREADY_EXISTS"
        lab.settle()
        assert "/config/topics/test_topic" not in lab.znodes()
        assert {p.topic for p in lab.partitions()} == {"test.topic"}
        assert lab.create_topic("test-topic") is None
        play(lab, "delete_topic test.topic; settle; create_topic test_topic; settle")
        assert {p.topic for p in lab.partitions()} == {"test-topic", "test_topic"}
        with Lab.replay(lab.story) as again:
            assert list(again.trace) == list(lab.trace)


def test_two_tools_at_once_can_create_both(generation: str) -> None:
    """Each looks before the other has written, as in Kafka."""
    with Lab(brokers=1, generation=generation, seed=1) as lab:
        assert lab.at_once(["create_topic test.topic", "create_topic test_topic"]) == [None, None]
        lab.settle()
        assert {p.topic for p in lab.partitions()} == {"test.topic", "test_topic"}


@tabled
def test_internal_topics(topic: str, generation: str, kept: bool, fixed: str | None) -> None:
    """The tool creates them like others, with a warning of their underscores."""
    with Lab(brokers=1, generation=generation, seed=1, config={"delete.topic.enable": True}) as lab:
        for ask in (lambda: lab.delete_topic(topic), lambda: lab.add_partitions(topic, 2)):
            with pytest.raises(UnknownName, match="unknown topic"):
                ask()
        assert lab.create_topic(topic) == warning(topic) is not None
        lab.settle()
        if fixed is None:
            lab.add_partitions(topic, 2)
        else:
            with pytest.raises(BadInput) as refused:
                lab.add_partitions(topic, 2)
            assert str(refused.value) == fixed
        lab.settle()
        assert len(lab.partitions()) == (2 if fixed is None else 1)
        if kept:
            text = f"^Topic {topic} is a kafka internal topic and is not allowed to be marked for deletion\\.$"
            with pytest.raises(BadInput, match=text):
                lab.delete_topic(topic)
        else:
            lab.delete_topic(topic)
        lab.settle()
        assert bool(lab.partitions()) is kept
