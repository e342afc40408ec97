"""Whatever somebody gives us to read: a clear error, or it is understood; never a traceback, never without end."""

import functools
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import NASTY, mutated
from prose import Prose, refuses

from kafka_ctl import BadInput, Generation, KafkaCtlError, Lab
from kafka_ctl.cli.commands import app, status
from kafka_ctl.generation import GENERATIONS
from kafka_ctl.history.schema import SCHEMA
from kafka_ctl.history.traces import from_arrow, read_parquet
from kafka_ctl.lab.lab import COMMANDS
from kafka_ctl.reassign.plan import read_plan, read_topics, write_plan
from kafka_ctl.zookeeper.real.store import parse_address

STORY = """\
lab brokers=[1,2,3] generation=2.0 seed=7 config='{"auto.leader.rebalance.enable":false}'
create_topic orders partitions=2 replication_factor=3
kill 1
run_for 3.5
reassign '{"orders-0":[2,3]}'
pause 2 4.5
start 1
produce orders 0 records=2
settle
"""
DESCRIBED = """\
lab brokers='{"1":"a","2":null}' generation=2.4 description='{"orders":[[[1,2],1,[1,2]],[[2,1],2,[2]]]}'
lag 2 orders 0
delete_topic orders
settle
"""
TEXT = """\
Topic: orders\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: retention.ms=1000,min.insync.replicas=1
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2
\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3,1\tIsr: 4
"""
PLAN = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","/a"]}]}'
TOPICS = '{"version":1,"topics":[{"topic":"orders"},{"topic":"t"}]}'
WORDS = (
    '{"orders-0":[3,2]}',
    '["orders-0"]',
    '{"0":[1,2]}',
    "orders",
    "zookeeper",
    "/controller",
    "3",
    "limit=1",
    "n=2",
)
slow = settings(suppress_health_check=list(HealthCheck))


def refusal(work: Callable[[], object]) -> str | None:
    """What is said of it; None when all is well. Any other exception is a fault of ours."""
    try:
        work()
    except KafkaCtlError as error:
        return str(error)
    return None


def replayed(text: str) -> None:
    """Run a story to its end; what it then tells of itself opens it again."""
    with Lab.replay(text) as lab:
        lab.trace.text("all")
        with Lab.replay(lab.story) as again:
            assert again.trace.text() == lab.trace.text()


@settings(slow, max_examples=60)
@given(mutated(STORY, most=2) | mutated(DESCRIBED, most=2))
def test_a_broken_story(text: str) -> None:
    """It runs, or its error says why not."""
    assert refusal(lambda: replayed(text)) != ""


@settings(slow, max_examples=40)
@given(
    st.sampled_from(sorted(COMMANDS)),
    st.lists(st.sampled_from((*NASTY, *WORDS)).filter(lambda word: "\n" not in word), max_size=3),
)
def test_a_command_with_any_arguments(name: str, words: list[str]) -> None:
    """Each command of a story checks what it is given."""
    quoted = " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)
    story = f"lab brokers=2\ncreate_topic orders partitions=2 replication_factor=2\n{name} {quoted}\nsettle limit=9\n"
    assert refusal(lambda: replayed(story)) != ""


@settings(slow, max_examples=60)
@given(mutated(TEXT, most=2) | mutated(PLAN, most=2), st.sampled_from(sorted(GENERATIONS)))
def test_a_broken_description(text: str, generation: str) -> None:
    """The cluster opens, or the error says what cannot be."""

    def opened() -> None:
        with Lab.from_description(text, generation=generation) as lab:
            assert lab.partitions() and lab.story

    assert refusal(opened) != ""


@settings(max_examples=200)
@given(mutated(PLAN) | mutated(TOPICS), st.sampled_from(sorted(GENERATIONS)))
def test_a_broken_plan(text: str, generation: str) -> None:
    """A plan that can be read can be written and read again."""
    known = Generation(generation)

    def again() -> None:
        plan = read_plan(text, known, check=True)
        assert read_plan(write_plan(plan.partitions, known), known).partitions == plan.partitions

    assert refusal(again) != ""
    assert refusal(lambda: read_topics(text, known)) != ""


@given(mutated("127.0.0.1:2181,localhost:2182/kit"))
def test_a_broken_address(text: str) -> None:
    """Understood, or refused with what is allowed."""
    assert "write host:port" in (refusal(lambda: parse_address(text)) or "write host:port")


@pytest.mark.parametrize(
    ("line", "logged"),
    [
        ("run_for 1000001", "a time cannot be 1000001; it must be a number of seconds, 1000000 or less"),
        (
            "create_topic t partitions=99999999",
            "partitions cannot be 99999999; it must be a whole number, 200000 or less",
        ),
        ("kill " + "9" * 5000, "9999"),
        ("reassign '" + "[" * 3000 + "'", "[[["),
        ("reassign '{\"t-²\":[1]}'", "'t-²' is not the name of a partition"),
        ("write_znode /x '\"\\ud800\"'", "character 0 cannot be written"),
        ("write_znode x {}", "BADARGUMENTS for x; a path begins with /"),
    ],
)
def test_what_would_have_no_end_or_no_meaning(line: str, logged: str) -> None:
    """Numbers of any length, times without end, topics without limit: refused, and the text stays short."""
    refuses(BadInput, re.escape(logged), Lab.replay, f"lab brokers=1\n{line}\n")


# The command line


def argued(*args: Any) -> int:
    """The exit status of a command; an exception would be a traceback at the user."""
    return status([str(arg) for arg in args])


@settings(slow, max_examples=40)
@given(st.sampled_from(["run", "museum", "render", "reassign"]), st.lists(st.sampled_from((*NASTY, "--view", "-o"))))
def test_any_arguments(tmp_path_factory: pytest.TempPathFactory, command: str, words: list[str]) -> None:
    """A wrong call is exit status 2, with a sentence."""
    assert command in app.commands
    assert argued(command, *words) in (0, 1, 2)


@settings(slow, max_examples=30)
@given(st.binary(max_size=40), st.integers(0, len(STORY)))
def test_any_bytes_in_a_file(tmp_path_factory: pytest.TempPathFactory, junk: bytes, place: int) -> None:
    """Stories and plans that are no text at all."""
    file = tmp_path_factory.mktemp("any") / "file"
    file.write_bytes(STORY.encode()[:place] + junk + STORY.encode()[place:])
    assert argued("run", file) in (0, 1, 2)


def test_a_plan_that_is_no_text(prose: Prose, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is read before anybody is asked."""
    file = tmp_path / "plan.json"
    address = ("--zookeeper", "127.0.0.1:1")
    for content in (b'{"version":1\xff}', b""):
        file.write_bytes(content)
        for name in ("execute", "verify", "cancel"):
            assert argued("reassign", name, *address, "--reassignment-json-file", file) == 2
            prose(f"{name}: {capsys.readouterr().err}")
    topics = ("generate", *address, "--topics-to-move-json-file", file, "--broker-list")
    for brokers in ("1,²", "9" * 5000, "", "1;2"):
        assert argued("reassign", *topics, brokers) == 2
        prose(capsys.readouterr().err)
    assert argued("reassign", *topics, "1,2") == 2
    prose(capsys.readouterr().err)


# Tables


@functools.cache
def table_file() -> bytes:
    """A trace as Parquet."""
    file = io.BytesIO()
    with Lab(1) as lab:
        pq.write_table(lab.trace.to_arrow(), file)
    return file.getvalue()


@settings(slow, max_examples=100)
@given(st.data())
def test_a_broken_parquet_file(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A few bytes changed, or the end lost."""
    file = tmp_path_factory.mktemp("any") / "trace.parquet"
    content = bytearray(table_file())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    file.write_bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    text = refusal(lambda: read_parquet(file).text("all"))
    assert text is None or str(file) in text or "not a trace table" in text


@pytest.mark.parametrize("values", [None, "x", 1.5, b"\xff", [1], 2**62, [2**40]], ids=repr)
@pytest.mark.parametrize("name", SCHEMA.names)
def test_a_table_of_other_types(name: str, values: Any) -> None:
    """A column of another type is named, unless it can be read as what it should be."""
    table = pq.read_table(io.BytesIO(table_file()))
    other = table.set_column(table.column_names.index(name), name, pa.array([values] * len(table)))
    text = refusal(lambda: from_arrow(other).text("all"))
    assert text is None or f"column {name}" in text or f"{name} " in text
