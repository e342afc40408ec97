"""Descriptions of clusters: every form Kafka's tools print, and what is refused."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import Prose
from tables import tabled

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.errors import BadInput
from kafka_ctl.lab.description import Description, PartitionDescription, parse_description

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
LED = PartitionDescription((1, 2), 1, (2, 1))
LEADERLESS = PartitionDescription((2, 3), None, (3,))
COUNTS = "\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: "
HEADERS = {
    "0.10": "Topic:orders" + COUNTS.replace(" ", ""),
    "1.0 being deleted": "Topic:orders" + COUNTS.replace(" ", "") + "\tMarkedForDeletion:true",
    "2.4": "Topic: orders" + COUNTS,
    "2.8": "Topic: orders\tTopicId: 3Tk9bYzLQ7mNvQ1xw5VbYA" + COUNTS,
}


@tabled
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_what_kafka_topics_prints(header: str, tail: str) -> None:
    """Every generation's header, and everything that may follow the ISR."""
    text = (
        f"{header}\n\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 2,1{tail}\n"
        f"\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3\tIsr: 3{tail}\n"
    )
    assert parse_description(text) == Description((1, 2, 3), {ZERO: LED, ONE: LEADERLESS}, {})


@pytest.mark.parametrize(("old", "new"), [("\t", "   "), ("\t", " "), ("\n", "\r\n"), ("\n", "\n\n"), ("none", "-1")])
def test_text_that_was_pasted(old: str, new: str) -> None:
    """Tabs become blanks and line ends change on the way through a terminal or a mail."""
    text = (
        "Topic: orders\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3\tIsr: 3\tOffline: 2\n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 2,1"
    )
    result = parse_description(text.replace(old, new))
    assert result.partitions == {ZERO: LED, ONE: LEADERLESS}
    assert list(result.partitions) == [ZERO, ONE]


def test_partition_lines_alone() -> None:
    """A listing without headers, as with --unavailable-partitions; nobody is in sync here."""
    result = parse_description("Topic: orders\tPartition: 0\tLeader: none\tReplicas: 7,5\tIsr: ")
    assert result == Description((5, 7), {ZERO: PartitionDescription((7, 5), None, ())}, {})


def test_a_running_reassignment() -> None:
    """Replicas on their way in and out are kept."""
    line = "Topic: orders\tPartition: 0\tLeader: 1\tReplicas: 4,1,2\tIsr: 1,2"
    result = parse_description(f"{line}\tAdding Replicas: 4\tRemoving Replicas: 1\n")
    assert result.partitions[ZERO] == PartitionDescription((4, 1, 2), 1, (1, 2), (4,), (1,))


def test_configs() -> None:
    """A value may contain commas, colons and equals signs."""
    configs = {
        "cleanup.policy": "compact,delete",
        "follower.replication.throttled.replicas": "0:1,1:2",
        "retention.ms": "1000",
    }
    joined = ",".join(f"{key}={value}" for key, value in configs.items())
    header = f"Topic: orders\tPartitionCount: 1\tConfigs: {joined}\tMarkedForDeletion: true\n"
    for text in (header, header.replace(": ", ":")):
        assert parse_description(text + line()).configs == {"orders": configs}


def test_the_json_of_a_reassignment() -> None:
    """It tells replicas only: the first leads and all are in sync."""
    entry = {"topic": "orders", "partition": 0, "replicas": [3, 1], "log_dirs": ["any", "any"]}
    text = json.dumps({"version": 1, "partitions": [entry]})
    expected = Description((1, 3), {ZERO: PartitionDescription((3, 1), 3, (3, 1))}, {})
    assert parse_description(text) == parse_description(f"\n {text}\n") == expected


def test_files(prose: Prose, tmp_path: Path) -> None:
    """A path, as a text or as a Path; errors name the file."""
    file = tmp_path / "cluster.txt"
    file.write_bytes(b"\xef\xbb\xbfTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 2,1\n")
    assert parse_description(file) == parse_description(str(file)) == Description((1, 2), {ZERO: LED}, {})
    file.write_text("Topic: orders\n")
    prose.refuses(BadInput, parse_description, file)
    file.write_bytes(b"Topic: \xff")
    prose.refuses(BadInput, parse_description, file)
    prose.refuses(BadInput, parse_description, tmp_path)


def line(partition: object = 0, leader: object = 1, replicas: str = "1,2", isr: str = "1,2") -> str:
    return f"\tTopic: orders\tPartition: {partition}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}\n"


def entries(*partitions: object) -> str:
    return json.dumps({"version": 1, "partitions": partitions})


REFUSED = {
    "nowhere.txt": "'nowhere.txt' is neither a description nor a file that can be read: No such file",
    "x" * 9999: "a file that can be read: File name too long",
    "a\0b": "a file that can be read: embedded null byte",
    "": "description: nothing in it; the output of `kafka-topics --describe` or the JSON",
    " \n\n": "description: nothing in it",
    entries(): "description: nothing in it",
    "hello\nworld": "description, line 1: 'hello'; the output of",
    line() + "Error: broker down\n": "description, line 2: 'Error: broker down'; the output of",
    line() + line(): "description, line 2: orders-0 is described twice, first at description, line 1",
    "Topic: orders\tPartitionCount: 2\n" + line(): "topic orders lacks partition 1",
    "Topic: orders\tPartitionCount: 1\n" + line() + line(1): "orders lists 2 partitions; PartitionCount is 1",
    "Topic: orders\tPartitionCount: 2000000000\n": "topic orders lacks partition 0",
    "Topic: orders\tPartitionCount: many\n": "line 1, PartitionCount: 'many'; an integer",
    line("first"): "line 1, Partition: 'first'; an integer is expected",
    line("-1"): "line 1: orders--1: partitions are numbered from 0",
    line(leader="one"): "line 1, Leader: 'one'; an integer is expected",
    line(leader=3): "line 1: orders-0 is led by 3, but in sync are 1,2 of replicas 1,2",
    line(isr="2"): "line 1: orders-0 is led by 1, but in sync are 2 of replicas 1,2",
    line(isr=""): "line 1: orders-0 is led by 1, but in sync are none of replicas 1,2",
    line(isr="1,2,3"): "line 1: orders-0 names 3 beside its replicas 1,2",
    line(isr="1,1"): "line 1: orders-0 names 1 twice in its isr",
    line(replicas="1,2,1"): "line 1: orders-0 names 1 twice in its replicas",
    line(replicas="1,,2"): "line 1, Replicas: ''; an integer is expected",
    line(replicas="-1,2", leader=2, isr="2"): "orders-0 has replicas -1,2; broker ids are not negative",
    line(replicas="", leader="none", isr=""): "orders-0 has no replicas; at least one is expected",
    line().replace("orders", "a/b"): "line 1: topic 'a/b'; 1 to 249 of a-z",
    line().replace("\tLeader: 1", ""): "line 1: no Leader; Partition, Leader, Replicas and Isr are expected",
    '{"version":1,\n"partitions":[{]}': "description, line 2, column 16: Expecting property name",
    '{"version":1,"partitions"': "description, line 1, column 26: Expecting ':'",
    "[" * 100_000: "nested too deeply",
    "[]": "description: '[]'; an object of version 1 is expected",
    '{"version":2,"partitions":[]}': "an object of version 1 is expected",
    '{"version":1,"topics":[]}': "field 'partitions' is missing; present: 'version', 'topics'",
    entries({"topic": "orders", "partition": 0}): "partitions[0]: field 'replicas' is missing",
    entries({"topic": "t", "partition": "0"}): "partitions[0]: field 'partition' is '0'; a 32-bit integer",
    entries({"topic": 7, "partition": 0}): "partitions[0]: field 'topic' is 7; a text",
    entries({"topic": "t", "partition": 0, "replicas": []}): "partitions[0]: t-0 has no replicas",
    entries({"topic": "t", "partition": 0, "replicas": [1, 1]}): "t-0 names 1 twice in its replicas",
    entries({"topic": "..", "partition": 0, "replicas": [1]}): "partitions[0]: topic '..'; 1 to 249",
    entries(3): "field 'partitions' is [3]; a list of objects",
}


@pytest.mark.parametrize(("text", "expected"), REFUSED.items(), ids=[text[:40] for text in REFUSED])
def test_refusals(text: str, expected: str) -> None:
    """One error that says where, what and what is expected."""
    with pytest.raises(BadInput) as refusal:
        parse_description(text)
    assert expected in str(refusal.value)
    assert len(str(refusal.value)) < 400


@given(st.text(st.sampled_from('Topic: orders\tPartition: Leader: Replicas:Isr:0123,{}[]"\n'), max_size=200))
def test_noise_is_refused_in_words(text: str) -> None:
    """Text that is no description ends in BadInput, never in another exception."""
    with contextlib.suppress(BadInput):
        assert parse_description(text).partitions


@pytest.mark.parametrize("text", ["A" * 5_000_000, "Topic: " + " Aa" * 1_000_000, "\t" * 3_000_000 + ":"])
def test_long_lines_do_not_hang(text: str) -> None:
    """Reading is linear in the length of a line; were it quadratic, this would take days."""
    with pytest.raises(BadInput):
        parse_description(text + "\n")


def test_a_part_of_a_topic_is_enough_without_a_header() -> None:
    """`--under-replicated-partitions` and most reassignments name only some partitions."""
    assert list(parse_description(line() + line(2)).partitions) == [("orders", 0), ("orders", 2)]
    plan = '{"version":1,"partitions":[{"topic":"foo","partition":3,"replicas":[1,2]}]}'
    assert list(parse_description(plan).partitions) == [("foo", 3)]


def test_what_the_reassignment_tool_prints_around_its_json_is_skipped() -> None:
    plan = '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2]}]}'
    printed = (
        f"Current partition replica assignment\n\n{plan}\n\nSave this to use as the --reassignment-json-file option\n"
    )
    assert parse_description(printed) == parse_description("\ufeff" + plan)
