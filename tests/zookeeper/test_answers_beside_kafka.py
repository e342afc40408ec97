"""The fields of answers that clients rarely look at: a lab has the same as Kafka 0.10.2.2, 2.0.1 and 2.4.1.

The answers stand here as they came from real Kafka; they are compared with both. Needs Java, and Maven once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from real_broker import asking_kafka
from tables import text
from wire_clients import Asking, closed_connections, eventually, fetch_of, listening
from zookeepers import beside_kafka

from kafka_ctl.wire.batches import Record, read_messages, write_batch, write_messages
from kafka_ctl.wire.codec import Message
from kafka_ctl.wire.schema import name_of
from kafka_ctl.wire.versions import ANNOUNCED

SHOWN = (
    "base_offset log_append_time log_start_offset old_style_offsets last_stable_offset generation_id group_state "
    "authorized_operations error_message"
).split()
"""The fields that are compared, beside errors."""


class Answers:
    """Requests to one broker, and what is worth comparing in its answers."""

    def __init__(self, broker: Asking, generation: str) -> None:
        self.broker, self.generation, self.lines = broker, generation, list[str]()

    def ask(self, name: str, version: int, **fields: Any) -> Message:
        return self.broker.ask(name, min(version, ANNOUNCED[self.generation][name][1]), **fields)

    def note(self, what: str, answer: Message) -> None:
        shown = [f"{name}={answer[name]}" for name in SHOWN if name in answer]
        self.lines.append(" ".join([f"{what}: {name_of(answer['error_code'])}", *shown]))

    def produce(self, what: str, data: bytes, acks: int = -1, topic: str = "orders") -> None:
        asked = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
        answer = self.ask("Produce", 6, acks=acks, timeout=1000, topic_data=asked)
        self.note(f"Produce {what}", answer["responses"][0]["partition_responses"][0])

    def part(self, what: str, name: str, version: int, **fields: Any) -> None:
        answer = self.ask(name, version, **fields)
        (topic,) = answer["topics" if "topics" in answer else "responses"]
        for part in topic["partitions"]:
            self.note(f"{name} {what}", part)

    def fetch(self, version: int, offset: int) -> Message:
        limits = {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20, "session_epoch": -1}
        answer = self.ask("Fetch", version, topics=fetch_of(("orders", 0, offset)), **limits)
        part: Message = answer["responses"][0]["partitions"][0]
        return part


def records(answers: Answers) -> None:
    """Four records, and errors of others."""

    def data(*values: bytes, **numbers: int) -> bytes:
        made = [Record(offset, 1000 + offset, None, value) for offset, value in enumerate(values)]
        return write_messages(made, 1) if answers.generation == "0.10" else write_batch(made, **numbers)

    answers.produce("three", data(b"a", b"b", b"c"))
    answers.produce("with acks=7", data(b"d"), acks=7)
    answers.produce("with acks=7 to no topic", data(b"d"), acks=7, topic="nothing")
    answers.produce("with a wrong checksum", data(b"d")[:-1] + b"?")
    times = [
        {"name": "orders", "partitions": [{"partition_index": 0, "timestamp": time, "max_num_offsets": 9}]}
        for time in (1001, -1)
    ]
    for asked in times:
        answers.part(f"0 of {asked['partitions'][0]['timestamp']}", "ListOffsets", 0, replica_id=-1, topics=[asked])
    answers.lines.append(f"Fetch 3 from 2: {read_messages(answers.fetch(3, 2)['records'])[0].offset}")
    if answers.generation == "0.10":
        return
    answers.note("Fetch", answers.fetch(8, 0))
    batches = [data(bytes([65 + number]), producer=7, producer_epoch=0, sequence=number) for number in range(3)]
    for what, batch in (("0", 0), ("0 again", 0), ("2", 2)):
        answers.produce(what, batches[batch])
    answers.produce("of an unknown producer", data(b"x", producer=8, producer_epoch=0, sequence=5))
    deleted = [{"name": "orders", "partitions": [{"partition_index": 0, "offset": -1}]}]
    answers.ask("DeleteRecords", 1, topics=deleted, timeout=5000)
    for what, batch in (("1 after a deletion", 1), ("0 after a deletion", 0), ("2 after a deletion", 2)):
        answers.produce(what, batches[batch])


def groups(answers: Answers) -> None:
    """A group that waits for its assignment, and offsets."""
    eventually(lambda: answers.ask("FindCoordinator", 0, key="g")["error_code"] == 0, "a coordinator")
    asked = {"session_timeout": 10_000, "rebalance_timeout": 3000, "protocol_type": "consumer"}
    asked |= {"protocols": [{"name": "range", "metadata": b""}]}
    answers.note("JoinGroup", answers.ask("JoinGroup", 1, group_id="g", member_id="nobody", **asked))
    eventually(lambda: answers.ask("JoinGroup", 1, group_id="g", member_id="", **asked)["error_code"] == 0, "a member")
    for one in answers.ask("DescribeGroups", 3, groups=["g", "nothing"])["groups"]:
        answers.note(f"DescribeGroups {one['group_id']}", one)
    parts = [
        {"partition_index": number, "committed_offset": 1, "committed_metadata": metadata}
        for number, metadata in ((0, "é" * 4096), (0, "é" * 4097), (9, ""))
    ]
    for part in parts:
        topics = [{"name": "orders", "partitions": [part]}]
        alone = {"group_id": "other", "generation_id_or_member_epoch": -1, "member_id": "", "retention_time_ms": -1}
        answers.part(
            f"{part['partition_index']} {len(part['committed_metadata'])}", "OffsetCommit", 2, topics=topics, **alone
        )


def forgotten(answers: Answers) -> None:
    """A group without members goes with the last topic of which it has an offset. 0.10 deletes no topics by default."""
    if answers.generation == "0.10":
        return

    def listed() -> list[str]:
        return [one["group_id"] for one in answers.ask("ListGroups", 0)["groups"] if one["group_id"] == "of gone"]

    answers.ask("CreateTopics", 1, topics=[NEW | {"name": "gone"}], timeout=10_000)
    offsets = [
        {"name": "gone", "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}
    ]
    alone = {"group_id": "of gone", "generation_id_or_member_epoch": -1, "member_id": "", "retention_time_ms": -1}
    answers.part("of gone", "OffsetCommit", 2, topics=offsets, **alone)
    before = listed()
    answers.ask("DeleteTopics", 0, topic_names=["gone"], timeout=10_000)
    eventually(lambda: not listed(), "the end of the group")
    answers.lines.append(f"ListGroups before its topic is deleted: {before}")


def topics(answers: Answers) -> None:
    """Defaults of a new topic, and moves."""
    wanted = {"num_partitions": -1, "replication_factor": -1, "assignments": [], "configs": []}
    created = answers.ask("CreateTopics", 1, topics=[{"name": "new"} | wanted], timeout=1000, validate_only=True)
    answers.lines.append(f"CreateTopics 1: {name_of(created['topics'][0]['error_code'])}")
    if answers.generation == "2.4":
        answers.note("ListPartitionReassignments", answers.ask("ListPartitionReassignments", 0, timeout=1000))


def chosen(copies: Mapping[int, Sequence[int]]) -> Message:
    """A topic whose copies are chosen."""
    assignments = [{"partition_index": number, "broker_ids": brokers} for number, brokers in copies.items()]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}


NEW: Message = {"name": "new", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
WRONG = [{"name": "retention.ms", "value": "x"}]
REFUSED: dict[str, Message] = {
    "no partitions": {"num_partitions": 0},
    "no copies": {"replication_factor": 0},
    "five copies": {"replication_factor": 5},
    "an unknown setting": {"configs": [{"name": "nope", "value": "1"}]},
    "a wrong setting": {"configs": WRONG},
    "a wrong setting and no partitions": {"configs": WRONG, "num_partitions": 0},
    "a name that is taken and a wrong setting": {"name": "orders", "configs": WRONG},
    "a name that is taken and no partitions": {"name": "orders", "num_partitions": 0},
    "each copy twice": chosen({0: [1, 1], 1: [1, 1]}),
}
"""Topics that cannot be created, and their differences from one that can."""


def refusals(answers: Answers) -> None:
    """Requests of administrators, refused in the order and the words of the release."""

    def settings(name: str, kind: int, resource: str, /, **given: object) -> None:
        one: Message = {"resource_type": kind, "resource_name": resource}
        described = name == "DescribeConfigs"
        one |= {"configuration_keys": None} if described else {"configs": [given]}
        more = {"include_synonyms": False} if described else {"validate_only": True}
        answer = answers.ask(name, 1, resources=[one], **more)
        answers.note(f"{name} {kind} {resource} {given}", (answer.get("results") or answer["responses"])[0])

    later = {"a gap": chosen({0: [1], 2: [1]})} if answers.generation == "2.4" else {}
    for what, fields in (REFUSED | later).items():
        answer = answers.ask("CreateTopics", 4, topics=[NEW | fields], timeout=1000, validate_only=True)
        answers.note(f"CreateTopics with {what}", answer["topics"][0])
    if answers.generation == "0.10":
        return
    settings("AlterConfigs", 2, "a b", name="retention.ms", value="1")
    settings("AlterConfigs", 3, "orders", name="retention.ms", value="1")
    settings("AlterConfigs", 2, "orders", name="leader.replication.throttled.replicas", value="x")
    settings("DescribeConfigs", 2, "")
    if answers.generation == "2.4":
        settings("DescribeConfigs", 8, "2")
        settings("IncrementalAlterConfigs", 2, "orders", name="retention.ms", value=None, config_operation=0)
        settings("IncrementalAlterConfigs", 2, "orders", name="retention.ms", value="1", config_operation=9)
        asked = [{"topic": "orders", "partitions": [0]}]
        answer = answers.ask("ElectLeaders", 1, election_type=7, topic_partitions=asked, timeout=1000)
        answers.note("ElectLeaders 7", answer)
        answers.note("ElectLeaders 7 of orders-0", answer["replica_election_results"][0]["partition_result"][0])


def repetitions(answers: Answers) -> None:
    """Topics that stand in a request more than once."""
    repeated = [NEW | {"name": name} for name in ("one", "two", "one", "alone", "two", "one")]
    for topic in answers.ask("CreateTopics", 4, topics=repeated, timeout=1000, validate_only=True)["topics"]:
        answers.note(f"CreateTopics with {topic['name']}", topic)
    if answers.generation != "0.10":
        more = [{"name": "orders", "count": 2, "assignments": None}] * 2
        for topic in answers.ask("CreatePartitions", 1, topics=more, timeout=1000, validate_only=True)["results"]:
            answers.note("CreatePartitions twice", topic)
    names = ["nothing", "orders", "nothing", "orders"] if answers.generation == "2.4" else ["nothing", "nothing"]
    for topic in answers.ask("DeleteTopics", 3, topic_names=names, timeout=0)["responses"]:
        answers.note(f"DeleteTopics {topic['name']}", topic)


def play(generation: str, broker: Asking) -> list[str]:
    """What a broker answers; it leads `orders-0` and is alone."""
    answers, topic = Answers(broker, generation), [{"name": "orders"}]
    eventually(lambda: answers.ask("Metadata", 1, topics=topic)["topics"][0]["error_code"] == 0, "a topic")
    records(answers)
    groups(answers)
    forgotten(answers)
    topics(answers)
    refusals(answers)
    repetitions(answers)
    return answers.lines


def expected(generation: str) -> list[str]:
    return text(f"answers_beside_kafka_{generation}.txt").splitlines()


def test_a_lab_answers(generation: str) -> None:
    with listening(generation, brokers=1, orders={0: [1]}) as lab:
        with Asking(lab, 1) as broker:
            assert play(generation, broker) == expected(generation)
        assert closed_connections(lab) == []


@beside_kafka
def test_real_kafka_answers(generation: str) -> None:
    with asking_kafka(generation) as broker:
        assert play(generation, broker) == expected(generation)
