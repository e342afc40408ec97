"""Every log statement of Kafka's two loggers, 0.8.0 to 3.9: read to its record, and told apart by release."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from random import Random

import pytest
from labs import play, until_quiet
from tables import tabled

from kafka_ctl import Lab
from kafka_ctl.history.log_files import read_texts
from kafka_ctl.kafka_log.read import LogLine
from kafka_ctl.kafka_log.releases import AT_START, FORMATS, release, releases_with
from kafka_ctl.kafka_log.templates import GENERATIONS
from kafka_ctl.kafka_log.write import NAMES, KafkaLogs
from tests.conformance.statements import Statement, record, statements, version, words

MINORS = [(0, minor) for minor in range(8, 12)] + [(1, 0), (1, 1)] + [(2, minor) for minor in range(9)]
MINORS += [(3, minor) for minor in range(10)]
FILES = {"state-change": ("state.change.logger",), "controller": ("kafka.controller",)}
KRAFT = "org.apache.kafka.controller"


def read(*texts: str) -> list[LogLine]:
    """What lines say by themselves; none may be rejected."""
    logged = [list(read_texts([(1, text)])) for text in texts]
    lines = [one.line for (one,) in logged]
    assert None not in lines, [one.rejected for (one,) in logged if one.rejected]
    return [line for line in lines if line is not None]


def walk() -> Iterator[tuple[Statement, LogLine]]:
    """Every statement and what its example says."""
    for row in statements():
        (line,) = read(row.line)
        yield row, line


def test_the_table_holds_every_release() -> None:
    """Each minor release writes into both logs; KRaft's controllers since 2.8. No statement stands there twice."""
    rows = statements()
    assert len(rows) > 1_000
    assert len({(row.level, row.logger, row.form) for row in rows}) == len(rows)
    for minor in MINORS:
        first = ".".join(map(str, (*minor, 0, 0) if minor < (1, 0) and minor != (0, 8) else (*minor, 0)))
        written = [row for row in rows if row.written_by(first)]
        for loggers in FILES.values():
            assert sum(row.logger.startswith(loggers) for row in written) > 20, (first, loggers)
        assert any(row.logger.startswith(KRAFT) for row in written) == (minor >= (2, 8)), first


def test_every_example_is_read_to_its_record() -> None:
    """None is rejected, each becomes what its row says."""
    wrong = [(row.example, row.record, record(line)) for row, line in walk() if record(line) != row.record]
    assert wrong == []


def test_every_example_has_the_form_of_its_statement() -> None:
    wrong = [(row.form, row.example) for row in statements() if words(row.form, row.example) is None]
    assert wrong == []


def numbers(text: str) -> tuple[int, ...]:
    if "brokerId=" in text:
        return tuple(int(id) for id in re.findall(r"brokerId=(\d+)", text))
    return tuple(map(int, re.findall(r"-?\d+", text)))


def test_what_a_form_names_is_in_the_records_column() -> None:
    """Independent of the reader: the words of each state-change statement against the columns of its record."""
    wrong = []
    for row, line in walk():
        if row.logger not in FILES["state-change"] or line.action in ("says", "skipped") or line.kind == "controller":
            continue
        logged = words(row.form, row.example) or {}
        columns: dict[str, object] = {}
        if "tp" in logged:
            topic, _, number = logged["tp"].strip("[]").replace(",", "-").rpartition("-")
            columns |= {"topic": topic, "partition": int(number)}
        columns |= {"topic": logged["topic"]} if "topic" in logged else {}
        columns |= {name: logged[name] for name in ("source", "target") if name in logged}
        columns |= {"broker": int(logged["to"])} if "to" in logged else {}
        columns |= {"broker": int(logged["replica"])} if "replica" in logged else {}
        for name in ("leader", "leader_epoch", "controller_epoch", "zk_version"):
            columns |= {name: int(logged[name])} if name in logged and line.error is None else {}
        for name in ("isr", "replicas"):
            columns |= {name: numbers(logged[name])} if name in logged and line.error is None else {}
        if "id" in logged:
            writer = "broker" if line.kind == "broker" else "controller"
            columns |= {"actor": f"{writer}-{logged['id']}"}
        if "epoch" in logged and line.kind != "broker" and "controller_epoch" not in logged:
            columns |= {"controller_epoch": int(logged["epoch"])}
        wrong += [(row.form, name, value) for name, value in columns.items() if getattr(line, name) != value]
    assert wrong == []


def test_controllers_words_are_those_of_the_form() -> None:
    """The JSON of a controller's record holds what the form names."""
    wrong = []
    for row, line in walk():
        if line.kind != "controller" or line.detail is None or line.action in ("says", "shrink-isr"):
            continue
        logged, reported = words(row.form, row.example) or {}, json.loads(line.detail)
        for name in ("broker", "leader", "leader_epoch", "elected", "preferred", "caught_up", "wanted", "epoch"):
            if name in logged and name in reported and reported[name] != int(logged[name]):
                wrong.append((row.form, name))
        if "tp" in logged:
            partition = "-".join(logged["tp"].strip("[]").rsplit(",", 1))
            wrong += (
                [(row.form, "tp")]
                if partition not in (reported.get("partition"), *reported.get("partitions", ()))
                else []
            )
        for name in ("new", "dead", "bounced", "live", "replicas", "missing"):
            if name in logged and (name not in reported or sorted(reported[name]) != sorted(numbers(logged[name]))):
                wrong.append((row.form, name))
    assert wrong == []


@pytest.mark.parametrize(
    "layout",
    [
        "2020-01-02 03:04:05,678 {level} {message} ({logger}) [controller-event-thread]",
        "2020-01-02 03:04:05,678 [main] {level} {logger} - {message}",
        "kafka-1  | [2020-01-02 03:04:05,678] {level} {message} ({logger}:66)",
        '{{"@timestamp": "2020-01-02T03:04:05.678Z", "level": "{level}", "logger": "{logger}", "message": {json}}}',
        '{{"log": {line}, "stream": "stdout", "time": "2020-01-02T03:04:05.678Z"}}',
    ],
)
def test_layouts_do_not_change_what_is_read(layout: str) -> None:
    """Operators' and collectors', for every statement."""
    for row in statements():
        text = layout.format(
            level=row.level,
            logger=row.logger,
            message=row.example,
            json=json.dumps(row.example),
            line=json.dumps(row.line + "\n"),
        )
        (line,) = read(text)
        assert record(line) == row.record, text


def test_damaged_lines_are_rejected_or_read_but_never_raise() -> None:
    """Characters lost, doubled or replaced, numbers that are none of Kafka's, halves of two lines."""
    random = Random(7)
    lines = [row.line for row in statements()]
    for text in lines:
        at = random.randrange(len(text))
        number = random.choice(("9" * 12, "9" * 5_000, "-", "", "1,,2", "NaN", "x" * 50_000))
        for damaged in (
            text[:at] + text[at + random.randrange(9) :],
            text[:at] + text[max(0, at - 5) :],
            text[:at] + random.choice("(){}[],=-\x00\u0663 ") + text[at + 1 :],
            re.sub(r"(?<![-:\d])\d+(?![-:\d])", lambda found, n=number: n if random.random() < 0.3 else found[0], text),
            text[:at] + random.choice(lines)[at:],
            text.replace("01-02 03", random.choice(("13-02 03", "02-30 03", "01-02 25", "00-00 00"))),
        ):
            for logged in read_texts([(1, damaged)]):
                assert logged.line or logged.rejected or not damaged.strip() or damaged[0].isspace(), damaged
                line = logged.line or LogLine(0, "", "")
                ids = [
                    line.partition,
                    line.broker,
                    line.leader,
                    line.leader_epoch,
                    line.zk_version,
                    line.controller_epoch,
                ]
                ids += [*(line.isr or ()), *(line.replicas or ())]
                assert all(id is None or abs(id) < 1 << 31 for id in ids), damaged


@tabled
def test_shapes_of_public_reports(text: str, actor: str | None, action: str, detail: str | None) -> None:
    (line,) = read(f"[2020-01-02 03:04:05,678] {text}")
    assert (line.actor, line.action) == (actor, action)
    assert detail in (None, line.detail)


# Releases


@pytest.mark.parametrize("bit", range(len(FORMATS)), ids=[sign for sign, _, _ in FORMATS])
def test_a_format_is_written_by_its_releases_only(bit: int) -> None:
    """From the table: the oldest and newest minor release with a statement that prints it."""
    sign, oldest, newest = FORMATS[bit]
    texts = [(f"{row.example} {row.logger}", row.spans) for row in statements()]
    spans = [
        span for text, some in texts if (text.startswith(sign) if bit < AT_START else sign in text) for span in some
    ]
    assert min(first for first, _ in spans)[:2] == oldest
    assert max(last for _, last in spans)[:2] == newest


def test_a_line_suggests_no_release_that_does_not_write_it() -> None:
    """For each statement, all its releases are among those that its line suggests."""
    for row in statements():
        bits = releases_with(f"{row.example} {row.logger}")
        spans = [(old, new) for n, (_, old, new) in enumerate(FORMATS) if bits >> n & 1]
        for first, last in row.spans:
            assert all(old <= first[:2] and last[:2] <= new for old, new in spans), (row.example, release(bits))


@tabled
def test_the_release_that_wrote_a_log(written: str, suggested: str) -> None:
    seen = 0
    for row in statements():
        if row.written_by(written):
            seen |= releases_with(f"{row.example} {row.logger}", seen)
    assert release(seen) == suggested


# The lines of labs

KAFKA = {"0.10": "0.10.2.2", "2.0": "2.0.1", "2.4": "2.4.1"}


@pytest.fixture(scope="module", params=GENERATIONS)
def lived(request: pytest.FixtureRequest) -> Lab:
    """A lab in which much has happened."""
    with Lab(brokers=4, seed=3, generation=request.param) as lab:
        lab.create_topic("eu.orders-v1", partitions=3, replication_factor=2)
        play(lab, "create_topic clicks partitions=2 replication_factor=1; settle; kill 2; settle; start 2; settle")
        until_quiet(lab.execute_reassignment, {("eu.orders-v1", 0): [3, 4]})
        play(lab, "delete_topic clicks; settle; shutdown 1; settle; start 1; settle")
        lab.run_for(400)
    return lab


def written(lab: Lab, name: str) -> Iterator[tuple[int, str]]:
    """The lines of a log, each with the `seq` of its record."""
    for seq, line in KafkaLogs([name], lab.trace.generation).add(lab.trace)[name]:
        yield seq, str(line)


@pytest.mark.parametrize("name", NAMES)
def test_labs_write_kafkas_statements(lived: Lab, name: str) -> None:
    """Each line is a statement of the release that the generation stands for."""
    forms = defaultdict(list)
    for row in statements():
        if row.written_by(KAFKA[lived.trace.generation]):
            forms[row.level, row.logger].append(row.form)
    logged = {}
    for _, text in written(lived, name):
        if found := re.match(r"\[[^]]*\] (\w+) (.*) \(([\w.$]+)\)$", text):  # else an exception
            level, message, logger = found.groups()
            logged[level, logger, re.sub(r"\d+", "0", message)] = message
    wrong = {
        (level, logger, message)
        for (level, logger, _), message in logged.items()
        if not any(words(form, message) is not None for form in forms[level, logger])
    }
    assert wrong == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_labs_lines_are_read_back(lived: Lab, name: str) -> None:
    """What a controller said has the same name and words again; moves and elections are the same."""
    records = {record.seq: record for record in lived.trace}
    wrong = []
    for seq, text in written(lived, name):
        known = records[seq]
        if known.kind not in ("controller", "partition", "replica") or not text.startswith("["):
            continue
        (line,) = read(text)
        if line.action in ("says", "partition_states"):  # no record of the kit says this: it follows from others
            continue
        if (line.kind, line.action) != (known.kind, known.action):
            wrong.append((known.kind, known.action, line.kind, line.action, text))
        elif known.kind == "controller":
            reported, logged = json.loads(known.detail or "{}"), json.loads(line.detail or "{}")
            wrong += [
                (name, reported[name], logged[name], text)
                for name in logged
                if name in reported and reported[name] != logged[name]
            ]
        else:
            columns = ("topic", "partition", "source", "target")
            wrong += [(name, text) for name in columns if getattr(known, name) != getattr(line, name)]
    assert wrong == []


def test_versions_are_compared_as_numbers() -> None:
    assert version("0.10.2.2") > version("0.9.0.1")
