"""The lines of Kafka's own logs, recorded from real brokers, against those that the kit writes of the same stories."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tables import tabled

from kafka_ctl.history.log_files import read_texts
from kafka_ctl.kafka_log.write import NAMES
from kafka_ctl.trace.catalogue import rows
from tests.conformance import loglines
from tests.conformance.answers import by_broker
from tests.conformance.story import STORIES
from tools.recorder import log_lines

SHARES = {
    ("state-change", "0.10"): 99.7,
    ("state-change", "2.0"): 99.9,
    ("state-change", "2.4"): 99.9,
    ("controller", "0.10"): 99.6,
    ("controller", "2.0"): 99.8,
    ("controller", "2.4"): 99.7,
}
"""What was reached, in percent: a share may rise, and the number here with it."""
NAMELESS = re.compile(r"ControllerBrokerRequestBatch\)$|Selector\)$")
"""What does not name its controller."""
SIZE = 1_500_000
"""Bytes that all recordings together may take."""


# The comparison


@pytest.mark.parametrize(("log", "generation"), SHARES)
def test_the_share_of_kafkas_lines(log: str, generation: str) -> None:
    same, whole = loglines.share(generation, log)
    assert whole > 1_000
    assert 100 * same / whole >= SHARES[log, generation], f"{same} of {whole}"


@pytest.mark.parametrize("generation", loglines.RECORDED)
def test_each_broker_deletes_in_kafkas_order(generation: str) -> None:
    """Whose answer is next is a race, and is not compared; what each broker is asked one after the other is."""
    for story in ("delete_topic", "delete_topic_broker_down", "delete_topic_failover", "delete_topic_moving"):
        real = loglines.recorded(generation, story)
        kit = loglines.written(generation, story)
        assert any(_deletions(log) for log in real.values())
        assert {b: _deletions(kit[b]) for b in real} == {b: _deletions(log) for b, log in real.items()}, story


def _deletions(log: list[str]) -> dict[str, list[str]]:
    """By receiver, the partitions in the StopReplica requests that one controller sent it for deletion."""
    found: dict[str, list[str]] = {}
    for line in log:
        if asked := re.search(r"The stop replica request \(delete = true\) sent to broker (\d+) is (.*) \(", line):
            found.setdefault(asked[1], []).extend(re.findall(r"Partition=(\d+)|-(\d+),true", asked[2]))
    return found


def _with(command: str) -> list[tuple[str, str, int]]:
    """Recordings in which somebody leaves or lags, and who."""
    return [
        (generation, story, int(broker))
        for generation, story in loglines.recordings()
        for broker in dict.fromkeys(re.findall(rf"^{command} (\d+)", STORIES[story].text(generation), re.MULTILINE))
    ]


@pytest.mark.parametrize(("generation", "story", "broker"), _with("lag"))
def test_a_lagging_broker_hears_and_answers_the_same(generation: str, story: str, broker: int) -> None:
    """In `record.py` its answers are left out while it stands still: here is all that it was told and answered."""
    real, kit = (f(generation, story) for f in (loglines.recorded, loglines.written))
    assert _answers(real, broker) == _answers(kit, broker) != []
    own = [loglines.by_thread(logs[broker])["state-change", "handler"] for logs in (real, kit)]
    assert own[0] == own[1]
    assert any("ached leader info" in line for line in own[0])


LAST = {("0.10", "shutdown_leader", 3): 1, ("0.10", "shutdown_controller", 1): 2}
"""Recordings in which a leaving broker of Kafka answered requests that the kit's leaving broker does not get to."""


@pytest.mark.parametrize(("generation", "story", "broker"), _with("shutdown"))
def test_a_leaving_broker_answers_what_kafkas_answered(generation: str, story: str, broker: int) -> None:
    """With the same results; how many of the last requests a process still answers is a matter of milliseconds."""
    real, kit = (Counter(_answers(f(generation, story), broker)) for f in (loglines.recorded, loglines.written))
    assert (real - kit).total() == LAST.get((generation, story, broker), 0)
    assert (real & kit).total() >= 2


ANSWER = re.compile(r"\{?topic(?:_name)?=([\w.-]+),partition(?:_index)?=(\d+),error_code=(-?\d+)")


def _answers(logs: dict[int, list[str]], broker: int) -> list[tuple[tuple[str, str, str], ...]]:
    """What a broker answered to LeaderAndIsr and StopReplica: topic, partition and error code of each."""
    lines = [line for log in logs.values() for line in log if "eceived response" in line and f"(id: {broker} " in line]
    return [tuple(sorted(parts)) for line in lines if (parts := ANSWER.findall(line))]


def test_the_page_is_fresh() -> None:
    """`python -m tools.recorder.log_lines --write` writes it."""
    assert log_lines.page() == log_lines.PAGE.read_text("utf-8")


def test_recordings_are_of_stories_that_are_compared() -> None:
    """And in one form: what differs in every run is masked, each broker has a part, and all together are small."""
    known = {loglines.path(*recording) for recording in loglines.recordings()}
    assert set(loglines.LOGS.rglob("*.xz")) == known
    assert sum(path.stat().st_size for path in known) < SIZE
    for recording in loglines.recordings():
        logs = loglines.recorded(*recording)
        assert len(logs) >= 2, recording
        lines = [line for log in logs.values() for line in log]
        assert [*loglines.masked(f"[2020-01-02 03:04:05,678] {x}" for x in lines if x[0] != "!")] == [
            line for line in lines if line[0] != "!"
        ]


@pytest.mark.parametrize("generation", loglines.RECORDED)
def test_every_line_is_understood_by_the_reader(generation: str) -> None:
    """Kafka's and the kit's own: an actor at least, and for what a record says, its action."""
    named = {"says", "partition_states", "isr_changes"} | {name for kind, name in rows() if kind == "controller"}
    lines = {
        line
        for g, story in loglines.recordings()
        if g == generation
        for logs in (loglines.recorded(g, story), loglines.written(g, story))
        for log in logs.values()
        for line in log
        if line[0] != "!"
    }
    strange = []
    for line in lines:
        text = line.replace("PORT", "9092").replace("EPOCH", "25")
        text = re.sub(r"(?<=correlation id )N|(?<=correlationId )N", "7", text)
        (read,) = read_texts([(1, f"[2020-01-02 03:04:05,678] {text}")])
        known = read.line
        nameless = known is None or (known.actor is None and not NAMELESS.search(line))
        unnamed = known is not None and known.kind == "controller" and known.action not in named
        strange += [line] if nameless or unnamed else []
    assert strange == []


# The normal form


def test_masks() -> None:
    reported = loglines.masked(
        [
            "[2020-01-02 03:04:05,678] TRACE x correlation id 12 sent to broker 127.0.0.1:4711 (id: 1 rack: null) (l)",
            "[2020-01-02 03:04:05,679] WARN y (l)",
            "java.io.IOException: Connection to 127.0.0.1:4711 failed",
            "\tat somewhere",
            "Caused by: something",
            "[2020-01-02 03:04:05,680] INFO Updated broker epochs cache: Map(1 -> 25, 2 -> 44) (l)",
        ]
    )
    assert list(reported) == [
        "TRACE x correlation id N sent to broker 127.0.0.1:PORT (id: 1 rack: null) (l)",
        "WARN y (l)",
        "!java.io.IOException: Connection to 127.0.0.1:PORT failed",
        "INFO Updated broker epochs cache: Map(1 -> EPOCH, 2 -> EPOCH) (l)",
    ]


@tabled
def test_printed_sets_are_sorted_and_lists_are_not(line: str, normal: str) -> None:
    assert loglines.sorted_sets(line) == normal


def test_only_what_is_reported_of_several_things_in_turn_is_sorted() -> None:
    """Rounds about the same partitions stay in order, and so do different statements."""
    pair = ["handling p-1", "finished p-1", "handling p-0", "finished p-0"]
    assert loglines.settled(pair) == ["handling p-0", "finished p-0", "handling p-1", "finished p-1"]
    assert loglines.settled(["b p-1", "b p-0"]) == ["b p-0", "b p-1"]
    same = ["p-1 leader 2", "p-0 leader 2", "p-1 leader 1"]
    assert loglines.settled(same) == ["p-0 leader 2", "p-1 leader 2", "p-1 leader 1"]
    newer = [f"topicName='p', partitionIndex={number}, epoch={epoch}" for number, epoch in ((1, 1), (0, 1), (1, 0))]
    assert loglines.settled(newer) == [newer[1], newer[0], newer[2]]
    rounds = ["sent p-1", "cached p-1 twice", "sent p-1", "cached p-1 once"]
    assert loglines.settled(rounds) == rounds


WAIT = "INFO Deletion for replicas {} for partition {} of topic o in progress (kafka.controller.TopicDeletionManager)"
LEFT = "INFO Deletion for what has not been deleted of topic o in progress (kafka.controller.TopicDeletionManager)"


def answered(partition: int, broker: int) -> list[str]:
    return [
        f"DEBUG Delete topic callback invoked for {{o-{partition}=NONE}} (kafka.controller.KafkaController)",
        f"DEBUG Deletion successfully completed for replicas [Topic=o,Partition={partition},Replica={broker}] (l)",
    ]


def test_answers_to_stop_replica_are_a_race_between_brokers() -> None:
    """They stand by broker, in each broker's own order; what is left is hidden where it follows from the answers."""
    begun = [
        "DEBUG Deletion started for replicas " + ",".join(f"[Topic=o,Partition={p},Replica={b}]" for p, b in reported)
        for reported in (((0, 1), (1, 1), (0, 2)), ((1, 2),))
    ]
    log = [begun[0], *answered(0, 2), WAIT.format("1", "o-0,o-1"), *answered(1, 1), WAIT.format("1", "o-0")]
    log += [*answered(0, 1), begun[1], *answered(1, 2)]
    reported = [begun[0], *answered(1, 1), LEFT, *answered(0, 1), LEFT, *answered(0, 2), begun[1], *answered(1, 2)]
    assert by_broker(log) == reported
    assert by_broker(reported) == reported
    wrong = [begun[0], *answered(0, 2), WAIT.format("1,2", "o-0,o-1")]
    assert by_broker(wrong) == wrong


def test_answers_of_0_10_arrive_before_they_are_dealt_with() -> None:
    """Send threads write of their answers at once, and of the deletion when they have the lock."""
    moved = [
        f"INFO Invoking state change to ReplicaDeletionSuccessful for replicas [Topic=o,Partition=0,Replica={b}]"
        for b in (1, 2)
    ]
    (first, one), (second, other) = answered(0, 2), answered(0, 1)
    table = "DEBUG Are all replicas for topic o deleted Map([Topic=o,Partition=0,Replica={}] -> ReplicaDeletion{})"
    log = [first, second, one, moved[1], other, moved[0]]
    assert by_broker(log) == [second, other, moved[0], first, one, moved[1]]
    assert by_broker([one, table.format(2, "Successful")])[1] == table.format(2, "X").replace(
        "ReplicaDeletionX", "as answered"
    )
    assert by_broker([one, table.format(1, "Successful")])[1] == table.format(1, "Successful")


def test_threads() -> None:
    assert loglines.thread("INFO [RequestSendThread controllerId=1] Starting (l)") == "sender"
    assert loglines.thread("INFO [RequestSendThread controllerId=1] Shutting down (l)") == "controller"
    assert (
        loglines.thread("TRACE [Controller id=1 epoch=1] Received response {} sent to broker h:1 (id: 3 r)")
        == "sender 3"
    )
    assert loglines.thread("TRACE [Broker id=2] Handling stop replica") == "handler"
    assert loglines.thread("INFO [Controller id=1] Resigned (l)") == "controller"
    assert set(NAMES) == set(loglines.LOGGERS.values())
