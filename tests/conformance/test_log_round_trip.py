"""Every line that the kit writes is read back: to its template, to the values written into it, and to its record.

What of a record a line holds is what its template prints and `kafka_log/records.py` takes: the test demands that each
column and each field of a message that a reader finds is the record's own, and that every field of a message that a
template prints is found. What differs is listed in `STEPS`, `OTHERWISE`, `UNORDERED` and `SAME_TEXT`, with the reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from kafka_ctl import Lab
from kafka_ctl.kafka_log import templates as shapes
from kafka_ctl.kafka_log.read import LogLine, parse_line
from kafka_ctl.kafka_log.records import NO_RECORD, RECORDS, reading
from kafka_ctl.kafka_log.templates import BY_NAME, GENERATIONS, Field, Shape, Template, capital, templates_of
from kafka_ctl.kafka_log.write import NAMES, KafkaLogs
from kafka_ctl.lab import story as stories_language
from kafka_ctl.trace import Record, Trace, details
from kafka_ctl.trace.catalogue import rows
from tests.conformance.replay import Player
from tests.conformance.story import STORIES

COLUMNS = (
    *("topic", "partition", "broker", "source", "target", "leader", "isr", "leader_epoch", "zk_version"),
    *("controller_epoch", "replicas", "error"),
)
STEPS = {
    "become-leader": {"received", "become-leader", "stopped-fetcher", "skipped", "done"},
    "become-follower": {
        "received",
        "become-follower",
        "stopped-fetcher",
        "truncated",
        "started-fetcher",
        "skipped",
        "ignored",
        "done",
    },
    "stop-replica": {"stop-replica", "skipped", "done"},
    "LeaderAndIsr": {"received", "ignored"},
}
"""What a broker writes of one record, step by step: the actions of its lines."""
SENDER = {"controller_epoch": "the sender's; the record has that of the state, or none"}
OTHERWISE: dict[str, dict[str, str]] = {
    "answered": SENDER
    | {
        "action": "0.10 does not name the request",
        "error": "one code stands for all partitions of a request; the record of each has its own",
    },
    "lead_handling": SENDER,
    "lead_completed": SENDER,
    "follow_handling": SENDER,
    "follow_completed": SENDER,
    "election": {
        "action": "0.10 writes it before every election, and does not say which kind",
        "kind": "of one that fails, or finds that nothing has to change, the move is the record",
    },
    "elected_leader": {"action": "0.10 calls each of these partitions an offline one"},
    "election_failed_with": {"kind": "the move that fails is the record", "action": "as the kind"},
    "partition_failed": {"error": "the exception below it names it"},
    "replica_failed": {"error": "the exception below it names it"},
    "isr_changes": {"kind": "the event is the record", "action": "as the kind"},
    "resigned": {"kind": "a broker that stops resigns without a record of its own", "action": "as the kind"},
    "partition_machine_started": {"action": "counts states, each of which is a record", "detail": "as the action"},
}
"""By template: what its line says otherwise than its record, and why."""
UNORDERED = {"brokers", "new", "dead", "bounced", "live", "missing", "topics", "ineligible"}
"""Fields that Kafka prints from a set, in whatever order; a reader sorts them."""
SAME_TEXT = {("2.0", "preferred_unknown"): "error_processing"}
"""By generation and template: Kafka has the same words for this and for something else, which a reader takes it for."""


# What a value is once it has been printed


def canonical(shape: Shape, value: Any) -> Any:
    """A value as a reader may know it: what Kafka prints from a set has no order, a list printed is a list."""
    read = shape.read
    if read is shapes.topic_partition:
        topic, _, number = str(value).rpartition("-")
        return [topic, int(number)]
    if read is shapes.BROKERS.read or read is shapes.names or shape.write in SETS:
        return sorted(value)
    if shape is BY_NAME["response"]:
        codes = re.findall(r"error_code=(-?\d+)", value)
        return next((code for code in codes if code != "0"), None)
    if shape is BY_NAME["request"]:
        return re.sub(r"^\(type=(\w+?)(?:Is|AndIsr)?Request.*", r"\1", value).replace("LeaderAnd", "LeaderAndIsr")
    if read is int:
        return int(value)
    if read is float:
        return pytest.approx(float(value), abs=1e-6)
    if shape.read is shapes.SHAPES["StateMap"].read:
        return len(value)
    if shape.read is shapes.members:
        return [list(each)[:3] for each in value]
    return json.loads(json.dumps(value))


SETS = {shapes.SHAPES[name].write for name in ("hashset", "javaset", "flatset")}


def plainly(value: Any) -> Any:
    """What was read, with lists for tuples and texts for the keys, as JSON has them."""
    return json.loads(json.dumps(value))


# What a line holds


def sentence(template: Template, fields: dict[str, Any]) -> str:
    """A line as a reader has it when it has taken off who writes."""
    return capital(re.sub(r"^Controller -?\d+ epoch \d+ ", "", template.text.fill(fields)))


def values(template: Template, text: str) -> dict[str, Any] | None:
    """The values in a sentence, without those that have no way back; None if it is not of the template's form."""
    found = template.text.pattern.fullmatch(text)
    if found is None:
        return None
    return {name: read(text) for (name, read, _), text in zip(template.text.readers, found.groups(), strict=True)}


def value_problems(template: Template, fields: dict[str, Any]) -> Iterator[str]:
    """The values that the template's own pattern does not give back as they were written."""
    text = sentence(template, fields)
    found = values(template, text)
    if found is None:
        yield f"{template.name}: {text}: not of its own form"
        return
    printed = {piece.name for piece in template.text.pieces if isinstance(piece, Field)}
    printed -= printed if template.name in NO_RECORD else set()
    for name, shape in template.text.source[1]:
        if name in printed:
            wanted, value = canonical(shape, fields.get(name, "")), plainly(found[name])
            value = sorted(value) if shape.write in SETS else value
            if value != wanted:
                yield f"{template.name}: {text}: {name} is {value!r}, written was {wanted!r}"


def line_problems(generation: str, template: Template, fields: dict[str, Any], line: LogLine) -> Iterator[str]:
    """Where the reader, which does not know the template, understands something else than the template holds."""
    name = SAME_TEXT.get((generation, template.name), template.name)
    known = next(one for one in templates_of(generation).templates[name] if name != template.name or one == template)
    found = values(known, sentence(template, fields)) or {}
    columns = reading(name).make({field: value for field, value in found.items() if field in reading(name).fields})
    for column, value in columns.items():
        if getattr(line, column) != value:
            yield f"{template.name}: {column} is {getattr(line, column)!r}, its template holds {value!r}"
    if (name in NO_RECORD) != (line.action == "says"):
        yield f"{template.name}: read as {line.action}"


def record_problems(generation: str, template: Template, line: LogLine, record: Record) -> Iterator[str]:
    """What a line says otherwise than the record that it was written for."""
    if template.name in NO_RECORD or (generation, template.name) in SAME_TEXT:
        return
    other = OTHERWISE.get(template.name, {})
    if line.kind not in ("broker", record.kind) and "kind" not in other:
        yield f"{template.name}: kind {line.kind}, of a record {record.kind} {record.action}"
    if line.action not in (record.action, *STEPS.get(record.action, ())) and "action" not in other:
        yield f"{template.name}: action {line.action}, of a record {record.kind} {record.action}"
    for column in COLUMNS:
        value, known = getattr(line, column), getattr(record, column)
        unordered = column == "replicas" and generation == "0.10" and template.name in ("received", "cached")
        if value is None or column in other or (unordered and sorted(value) == sorted(known)):
            continue
        if value != known:
            yield f"{template.name}: {column} {value!r}, the record's is {known!r}"
    if record.kind == line.kind == "controller" and "detail" not in other:
        yield from field_problems(template, details.json_object(line.detail), details.fields(record))


def field_problems(template: Template, found: dict[str, Any], fields: dict[str, Any]) -> Iterator[str]:
    """The same of a message's fields: those that the template prints, no other ones, with the record's values."""
    printed = {piece.name for piece in template.text.pieces if isinstance(piece, Field)}
    for name in printed & fields.keys() - found.keys():
        yield f"{template.name}: {name} is printed and not read"
    for name, value in found.items():
        known = fields.get(name, ...)
        if isinstance(known, float):
            known = pytest.approx(known, abs=1e-6)
        same = value == known or (name in UNORDERED and isinstance(known, list) and sorted(value) == sorted(known))
        if not same:
            yield f"{template.name}: {name} is {value!r}, the record's is {known!r}"


# All traces


def traces(generation: str) -> Iterator[Trace]:
    """What all stories of the conformance suite leave behind in this generation."""
    for story in STORIES.values():
        if generation not in story.generations:
            continue
        opening, *commands = stories_language.parse(story.text(generation))
        with Lab(**stories_language.opening(opening)) as lab:
            player = Player(lab)
            player.observe()
            for command in commands:
                player.play(command)
            yield lab.trace


def test_every_line_of_every_story_is_read_back(generation: str) -> None:
    """Lines that differ in their time only, of the same record, count once."""
    problems, seen, read = Counter[str](), set[object](), Counter[str]()
    for trace in traces(generation):
        for name in NAMES:
            for _, line in KafkaLogs([name], generation).add(trace)[name]:
                template, fields = line.text, dict(line.fields)
                if not isinstance(template, Template):
                    continue  # an exception below a line
                record = trace[fields["seq"]]
                read[template.name] += 1
                if (same := (str(line)[25:], record._replace(seq=0, time_ms=0, cause=None))) in seen:
                    continue
                seen.add(same)
                problems.update(problems_of(generation, template, fields, record))
    assert not problems, "\n".join(f"{count} times {problem}" for problem, count in problems.most_common(20))
    assert read.total() > 15_000
    assert len(read) > LINES[generation]


def problems_of(generation: str, template: Template, fields: dict[str, Any], record: Record | None) -> Iterator[str]:
    """What is wrong with a line that these fields are written into."""
    yield from value_problems(template, fields)
    line = parse_line(f"[2018-10-25 00:00:00,000] {template.message(fields)}")
    assert line is not None
    yield from line_problems(generation, template, fields, line)
    if record is not None:
        yield from record_problems(generation, template, line, record)


LINES = {"0.10": 100, "2.0": 100, "2.4": 90}
"""Of so many templates all stories together write lines; the others are in the test below too."""


# All templates, whatever the values are


def words(random: Random) -> str:
    """A topic: with dots, dashes and numbers at its end."""
    return random.choice(("orders", "a.b-c", "5", "eu.orders-v1-7", "_x", "T"))


def pairs(random: Random) -> list[str]:
    return [f"{words(random)}-{random.randrange(12)}" for _ in range(random.randrange(4))]


def ids(random: Random) -> list[int]:
    return random.sample(range(1, 2_000), random.randrange(6))


RESULTS = (
    "Right(2)",
    "Left(ApiError(error=ELECTION_NOT_NEEDED, message=Leader election not needed for topic partition))",
)


def value(field: Field, random: Random) -> Any:
    """Some value of a field: by what its shape reads, and by its name where nothing is read back."""
    by_read: dict[Any, Callable[[], Any]] = {
        int: lambda: random.choice((-2, -1, 0, 7, 2**31 - 1)),
        float: lambda: random.choice((0.0, 0.25, 1.0, 2 / 3)),
        shapes.numbers: lambda: ids(random),
        shapes.BROKERS.read: lambda: ids(random),
        shapes.names: lambda: sorted({words(random) for _ in range(random.randrange(4))}),
        shapes.partitions: lambda: pairs(random),
        shapes.members: lambda: [(words(random), 3, id, True) for id in ids(random)],
        shapes.assignment: lambda: {tp: ids(random) for tp in pairs(random)},
        shapes.SHAPES["BrokerMap"].read: lambda: {str(id): 25 for id in ids(random)},
        shapes.SHAPES["ErrorMap"].read: lambda: dict.fromkeys(pairs(random), "UNKNOWN_SERVER_ERROR"),
        shapes.SHAPES["ResultMap"].read: lambda: dict.fromkeys(pairs(random), random.choice(RESULTS)),
        shapes.SHAPES["StateMap"].read: lambda: dict.fromkeys(pairs(random), "OnlinePartition"),
        BY_NAME["delete"].read: lambda: random.random() < 0.5,
        BY_NAME["api"].read: lambda: random.choice(("LeaderAndIsr", "StopReplica")),
        BY_NAME["request"].read: lambda: "StopReplica",
        BY_NAME["response"].read: lambda: "{error_code=0,partitions=[{topic=a,partition=0,error_code=11}]}",
    }
    by_name = {
        "source": "NewPartition",
        "target": "OnlinePartition",
        "role": "become-leader",
        "trigger": "ZkTriggered",
        "host": "kafka-2.example",
        "old_host": "kafka-1.example",
        "leader_host": "127.0.0.1",
        "topic": words(random),
        "type": "UNCLEAN",
    }
    return by_read.get(field.shape.read, lambda: by_name.get(field.name, "some words, [1,2] of it"))()


def filled(template: Template, random: Random) -> dict[str, Any]:
    """Values for all fields of a template; a partition is the same one wherever the line names it."""
    fields: dict[str, Any] = {"id": 4, "epoch": 9, "topic": words(random), "partition": random.randrange(12)}
    for piece in template.whole.pieces:
        if isinstance(piece, Field) and piece.shape.read is not None and piece.name not in fields:
            fields[piece.name] = value(piece, random)
    fields |= {"tp": f"{fields['topic']}-{fields['partition']}"}
    if any(isinstance(piece, Field) and piece.shape.read is shapes.partition for piece in template.text.pieces):
        fields["partition"] = fields["tp"]
    unread = {
        "before": {}, "after": {}, "leaders": {}, "errors": {}, "results": {}, "states": {}, "preferred": {},
        "partitions": {}, "candidates": [], "children": [], "data": "{}", "rack": None, "end": "",
    }  # fmt: skip
    return {name: value for name, value in unread.items() if name not in fields} | fields


def test_every_template_reads_what_it_writes(generation: str) -> None:
    """With twenty fillings each, also those that no story writes."""
    random, problems, count = Random(7), Counter[str](), 0
    for templates in templates_of(generation).templates.values():
        for template in templates:
            count += 1
            for _ in range(20):
                problems.update(problems_of(generation, template, filled(template, random), None))
    assert not problems, "\n".join(f"{count} times {problem}" for problem, count in problems.most_common(20))
    assert count > 150


def test_every_template_has_a_record_or_is_listed_as_having_none() -> None:
    """And nothing is listed twice, or for a template that is not there."""
    names = {name for generation in GENERATIONS for name in templates_of(generation).templates}
    messages = {name for kind, name in rows() if kind == "controller"}
    assert names - messages - RECORDS.keys() - NO_RECORD == set()
    assert names >= NO_RECORD
    assert names >= RECORDS.keys()
    assert NO_RECORD & (messages | RECORDS.keys()) == set()
    assert OTHERWISE.keys() <= names - NO_RECORD
