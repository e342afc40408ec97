"""Streams: each change once, whatever stops the query; logs that grow, roll and are packed."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from foreign import watched
from history_plain import BUSY, NEW, OFFLINE, ONLINE, Run
from labs import play, until_quiet
from prose import Prose
from pyspark.sql import DataFrame, Row
from sparkcluster import SHORT_LIVED
from waiting import eventually

from kafka_ctl import BadInput, Lab, Trace, Unavailable
from kafka_ctl.history import live, questions, simulate
from kafka_ctl.history.live import sources
from kafka_ctl.history.live.folds import Controllers, Imbalance, Leaders, UnderReplicated
from kafka_ctl.history.live.sources import LogReader
from kafka_ctl.history.session import spark
from kafka_ctl.kafka_log.write import kafka_log
from kafka_ctl.paths import ROOT
from kafka_ctl.trace import SET, Record


@pytest.fixture(scope="module")
def trace() -> Trace:
    return simulate(3, 12, workload=BUSY)


@pytest.fixture(autouse=True, scope="module")
def few_tasks() -> Iterator[None]:
    """A state store for each task takes its time."""
    spark().conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark().conf.unset("spark.sql.shuffle.partitions")


def rows(answer: DataFrame, *columns: str) -> list[tuple]:
    return sorted(tuple(row) for row in answer.select(*columns).collect())


def run(changes: DataFrame, out: Path) -> DataFrame:
    """All that is there now, in a query that ends with it."""
    query = live.keep(changes, out, once=True)
    assert query.awaitTermination(300)
    return spark().read.parquet(str(out))


# What is known at each record, without Spark


def test_who_leads_and_who_is_missing_is_what_the_lab_says() -> None:
    """After crashes, a deletion, a topic made anew, a reassignment."""
    with Lab(brokers=4, seed=3) as lab:
        lab.create_topic("orders", partitions=6, replication_factor=3)
        play(lab, "create_topic gone partitions=2 replication_factor=2; settle; kill 2; settle")
        lab.delete_topic("gone")
        lab.start(2)
        lab.run_for(60)
        lab.create_topic("gone", partitions=1, replication_factor=2)
        lab.reassign({("orders", 0): [4, 3]})
        lab.run_for(60)
        lab.kill(3)
        lab.run_for(60)
        trace, partitions = lab.trace, lab.partitions()
        controller = lab.controller
    leaders = {row[:2]: row[4:6] for row in Leaders().rows(trace)}
    alive = {key: leader for key, (state, leader) in leaders.items() if state != "NonExistentPartition"}
    assert alive == {(p.topic, p.partition): p.leader if p.leader != -1 else None for p in partitions}
    assert leaders["gone", 1] == ("NonExistentPartition", None)
    missing = {row[:2]: sorted(row[4]) for row in UnderReplicated().rows(trace)}
    assert {key: ids for key, ids in missing.items() if ids} == {
        (p.topic, p.partition): sorted({*p.replicas} - {*p.isr}) for p in partitions if {*p.replicas} - {*p.isr}
    }
    assert any(missing.values())
    assert [*Controllers().rows(trace)][-1][2:] == ("ready", *controller)


def test_a_resignation_counts_if_it_is_the_controllers() -> None:
    """A broker that gives up what it never was says so too."""
    logged = (("elected", 1), ("resigned", 2), ("resigned", 1), ("elected", 2), ("ready", 2))
    records = [
        Record(seq, float(seq), f"controller-{broker}", "controller", action, broker=broker, controller_epoch=1)
        for seq, (action, broker) in enumerate(logged)
    ]
    rows = [(seq, action, broker) for _, seq, action, broker, _ in Controllers().rows(records)]
    assert rows == [(0, "elected", 1), (2, "resigned", 1), (3, "elected", 2), (4, "ready", 2)]


@pytest.mark.parametrize("fold", [Leaders, UnderReplicated, Imbalance, Controllers])
def test_what_is_remembered_is_enough(fold: type, trace: Trace) -> None:
    """Cut anywhere and carried on through JSON, the rows are the same."""
    whole = [*fold().rows(trace)]
    assert whole
    cut = len(trace) // 2
    first = fold()
    parts = [*first.rows(trace[:cut])]
    parts += fold(json.loads(json.dumps(first.state))).rows(trace[cut:])
    assert parts == whole


def test_what_comes_late_changes_nothing(trace: Trace) -> None:
    """A log that is read after a newer one."""
    fold = Leaders()
    assert [*fold.rows(trace)]
    assert [*fold.rows(trace)] == []


# Traces that grow


def test_a_folder_grows_by_what_is_new(trace: Trace, tmp_path: Path) -> None:
    """Nothing twice, also when another process goes on; other histories have files of their own."""
    assert live.grow(trace[:100], tmp_path / "lab") == 100
    assert live.grow(trace[:100], tmp_path / "lab") == 0
    assert live.grow(trace, tmp_path / "lab") == len(trace) - 100
    other = Trace(records=trace[:7].records, history="other")
    assert live.grow(other, tmp_path / "lab") == 7
    names = sorted(path.name for path in (tmp_path / "lab").iterdir())
    last = len(trace) - 1
    assert names == [
        "lab-000000000-000000099.parquet",
        f"lab-000000100-{last:09d}.parquet",
        "other-000000000-000000006.parquet",
    ]


def test_the_stream_answers_as_the_question_does(trace: Trace, tmp_path: Path) -> None:
    """In three batches of three queries, two histories: row for row the answer of `questions.imbalance`."""
    other = Trace(records=simulate(4, 6, workload=BUSY).records, history="other")
    for part in (3, 2, 1):
        for each in (trace, other):
            live.grow(each[: len(each) // part], tmp_path / "lab")
        reported = run(live.imbalance(live.traces(spark(), tmp_path / "lab")), tmp_path / "out")
    columns = ("history", "broker", "at_ms", "preferred", "led_elsewhere", "share")
    expected = rows(questions.imbalance(trace), *columns) + rows(questions.imbalance(other), *columns)
    assert rows(reported, *columns) == sorted(expected)
    now = rows(live.latest(reported), *columns)
    newest = {row[:2]: row for row in sorted(expected)}
    assert now == sorted(newest.values())


PROGRAM = """
import sys
from kafka_ctl.history import live, session
from kafka_ctl.history.session import spark
s = spark("live", cores=1)
s.conf.set("spark.sql.shuffle.partitions", "2")
query = live.keep(live.imbalance(live.traces(s, sys.argv[1])), sys.argv[2])
query.processAllAvailable()
print(session.java.pid, flush=True)
query.awaitTermination()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills processes as on Unix")
def test_killed_in_the_middle_of_a_batch(trace: Trace, tmp_path: Path) -> None:
    """Another process goes on from the checkpoint: nothing is missing, nothing is there twice."""
    folder, out = tmp_path / "lab", tmp_path / "out"
    live.grow(trace[: len(trace) // 3], folder)
    command = [sys.executable, "-c", PROGRAM, str(folder), str(out)]
    environment = os.environ | {"JDK_JAVA_OPTIONS": SHORT_LIVED}
    child = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    java = 0
    try:
        java = int(child.stdout.readline())
        live.grow(trace[: len(trace) // 2], folder)
        assert eventually((out / "_checkpoint/offsets/1").exists, 120)
    finally:
        if java:
            os.kill(java, signal.SIGKILL)
        child.kill()
        child.communicate()
    live.grow(trace, folder)
    reported = run(live.imbalance(live.traces(spark(), folder)), out)
    columns = ("history", "broker", "at_ms", "preferred", "led_elsewhere", "share")
    assert rows(reported, *columns) == rows(questions.imbalance(trace), *columns)


# Logs that grow


@pytest.fixture
def text(trace: Trace) -> list[bytes]:
    return kafka_log(trace, "state-change").encode().splitlines(keepends=True)


class Broker:
    """A folder in which a log grows, and a reader that has read it up to `offset`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "state-change.log"
        folder.mkdir()
        self.offset: dict[str, int] = {}

    def write(self, lines: list[bytes]) -> None:
        with self.log.open("ab") as file:
            file.write(b"".join(lines))

    def read(self) -> pa.Table | None:
        """What a query finds that is started now; read twice, as after a crash, it is the same."""
        reader = LogReader(str(self.folder), "logs")
        end = reader.latestOffset(self.offset, None)  # type: ignore[arg-type]
        tables = []
        for again in (reader, LogReader(str(self.folder), "logs")):
            pieces = again.partitions(self.offset, end)
            batches = [batch for piece in pieces for batch in again.read(piece)]
            tables.append(pa.Table.from_batches(batches) if batches else None)
        assert tables[0] == tables[1]
        self.offset = end
        return tables[0]


def seen(*tables: pa.Table | None) -> list[tuple]:
    """What was read, in the order of the log."""
    found = [row for table in tables if table is not None for row in table.to_pylist()]
    keys = ("time_ms", "kind", "action", "topic", "partition", "broker", "leader")
    return [tuple(row[key] for key in keys) for row in sorted(found, key=lambda row: (row["time_ms"], row["seq"]))]


def whole(folder: Path, lines: list[bytes]) -> list[tuple]:
    broker = Broker(folder / f"whole-{len(lines)}")
    broker.write(lines)
    return seen(broker.read())


def test_a_log_is_read_while_it_is_rolled(text: list[bytes], tmp_path: Path) -> None:
    """Renamed, packed, begun anew and removed: every line once."""
    lines, broker = text[:300], Broker(tmp_path / "broker")
    broker.write(lines[:100])
    first = broker.read()
    broker.write(lines[100:150])
    rolled = broker.log.rename(broker.folder / "state-change.log.2018-10-25-00")
    broker.write(lines[150:200])
    second = broker.read()
    packed = rolled.with_name(rolled.name + ".gz")
    packed.write_bytes(gzip.compress(rolled.read_bytes()))
    nothing = broker.read()
    rolled.unlink()
    broker.write(lines[200:250])
    broker.log.rename(broker.folder / "state-change.log.2018-10-25-01")
    broker.write(lines[250:])
    third = broker.read()
    packed.unlink()
    assert broker.read() is None and nothing is None
    assert seen(first, second, third) == whole(tmp_path, lines)


def test_what_was_not_read_before_it_was_packed(text: list[bytes], tmp_path: Path) -> None:
    """Is read from what it was packed into, from where the reader was."""
    broker = Broker(tmp_path / "broker")
    broker.write(text[:100])
    first = broker.read()
    broker.write(text[100:200])
    packed = broker.folder / "state-change.log.1.gz"
    packed.write_bytes(gzip.compress(broker.log.read_bytes())[:-20])
    known = whole(tmp_path, text[:200])
    assert seen(first, broker.read()) == known
    broker.write(text[200:250])
    packed.write_bytes(gzip.compress(broker.log.read_bytes()))
    broker.log.unlink()
    assert seen(broker.read()) == whole(tmp_path, text[:250])[len(known) :]


def test_half_a_line_is_not_read(text: list[bytes], tmp_path: Path) -> None:
    """Nor a file whose first line is not complete; a line of megabytes is."""
    broker = Broker(tmp_path / "broker")
    broker.write([text[0][:50]])
    assert broker.read() is None
    broker.write([text[0][50:], text[1], text[2][:-1]])
    first = broker.read()
    assert len(seen(first)) == len(whole(tmp_path, text[:2]))
    huge = b"[2018-10-25 00:00:00,001] INFO [Controller id=1] " + b"x" * 3_000_000 + b" (kafka.controller.K)\n"
    broker.write([b"\n", huge, text[3]])
    assert len(seen(first, broker.read())) == len(whole(tmp_path, text[:4])) + 1


def test_a_folder_without_logs_and_one_that_loses_them(prose: Prose, text: list[bytes], tmp_path: Path) -> None:
    """The first may still get some; of the other it is said what was lost."""
    broker = Broker(tmp_path / "broker")
    assert broker.read() is None
    broker.write(text[:20])
    reader = LogReader(str(broker.folder), "logs")
    end = reader.latestOffset({}, None)  # type: ignore[arg-type]
    broker.log.unlink()
    with pytest.raises(Unavailable, match=r"state-change \w+ was removed before"):
        reader.partitions({}, end)
    prose.refuses(BadInput, live.logs, spark(), tmp_path / "nowhere")


@pytest.mark.parametrize("source", [live.traces, live.logs])
def test_what_is_no_folder_of_records(prose: Prose, tmp_path: Path, source: Callable[..., DataFrame]) -> None:
    """A wrong session is refused after a wrong folder."""
    for folder in (None, 5, "", tmp_path / "nowhere"):
        prose.refuses(BadInput, source, spark(), folder)
    for session in (None, "local[2]"):
        prose.refuses(BadInput, source, session, tmp_path)
    if source is live.logs:
        prose.refuses(BadInput, live.logs, spark(), tmp_path, history=7)


def test_the_end_of_a_file_is_found_from_behind(tmp_path: Path) -> None:
    """However long the lines are."""
    path = tmp_path / "log"
    for text in (
        b"",
        b"a",
        b"a\n",
        b"\n" + b"b" * 5000,
        b"a\n" + b"b" * 1024,
        b"c" * 1023 + b"\n" + b"d" * 2048 + b"\ne",
    ):
        path.write_bytes(text)
        assert sources.last_break(str(path)) == text.rfind(b"\n") + 1


def test_logs_of_two_brokers_as_a_stream(trace: Trace, tmp_path: Path) -> None:
    """Rolled between two queries; who leads is what the trace says, and a broker's own folder is its own."""
    folder = tmp_path / "logs"
    texts = {
        (b, name): kafka_log(trace, name, broker=b).encode()
        for b in (1, 2, 3)
        for name in ("state-change", "controller")
    }
    for half in (0, 1):
        for (broker, name), text in texts.items():
            place = folder / f"broker-{broker}"
            place.mkdir(parents=True, exist_ok=True)
            cut = text.rfind(b"\n", 0, len(text) // 2) + 1
            if half and cut:
                (place / f"{name}.log").rename(place / f"{name}.log.1")
            (place / f"{name}.log").write_bytes(text[cut:] if half else text[:cut])
        reported = run(live.leaders(live.logs(spark(), folder)), tmp_path / "out")
    expected = {row[:2]: row[4:6] for row in Leaders().rows(trace)}
    now = rows(live.latest(reported), "topic", "partition", "state", "leader")
    assert now == sorted((*key, *value) for key, value in expected.items())
    in_logs = [r for r in trace if r.action != SET]  # the states that a new controller finds are in no log
    assert reported.count() == len([*Leaders().rows(in_logs)])


def test_live_answers_follow_a_watched_trace(tmp_path: Path) -> None:
    """As the cluster was found, then a failover: leaders, missing replicas the controller as in ZooKeeper."""

    def answered(question: Callable[[DataFrame], DataFrame]) -> list[Row]:
        live.grow(watch.trace, tmp_path / "records")
        changes = question(live.traces(spark(), tmp_path / "records"))
        return live.latest(run(changes, tmp_path / question.__name__)).collect()

    with Lab(brokers=3, generation="2.4", seed=1) as lab:
        lab.create_topic("t", assignment={0: [1, 2], 1: [2, 3], 2: [3, 1]})
        lab.settle()
        first = lab.controller.id
        with watched(lab) as watch:
            for change in (None, lab.kill, lab.start):
                if change is not None:
                    until_quiet(change, first)
                watch.settle()
                now = {(p.topic, p.partition): p for p in lab.partitions()}
                assert {(r.topic, r.partition): r.leader for r in answered(live.leaders)} == {
                    tp: p.leader for tp, p in now.items()
                }
                missing = {(r.topic, r.partition): r.missing for r in answered(live.under_replicated)}
                assert {tp: sorted(ids or ()) for tp, ids in missing.items() if ids} == {
                    tp: sorted(set(p.replicas) - set(p.isr)) for tp, p in now.items() if len(p.isr) < len(p.replicas)
                }
            assert [row.controller for row in answered(live.controllers)] == [lab.controller.id]


def test_a_folder_takes_one_run_of_each_name(tmp_path: Path) -> None:
    """Every lab's history is named `lab`: another one, longer or shorter, is not taken for the same."""
    runs = [[0.0, 1.0], [0.0, 2.0, 3.0], [0.0]]
    traces = [Trace(records=[Record(n, at, "lab", "fault", "kill") for n, at in enumerate(times)]) for times in runs]
    assert live.grow(traces[0], tmp_path) == 2
    for other in traces[1:]:
        with pytest.raises(BadInput, match="holds another run named"):
            live.grow(other, tmp_path)
    traces[0].records.append(Record(2, 5.0, "lab", "fault", "kill"))
    assert [live.grow(traces[0], tmp_path) for _ in range(2)] == [1, 0]
    for wrong in ("file:///nowhere", "", None, 5):
        with pytest.raises(BadInput):
            live.grow(traces[0], wrong)  # type: ignore[arg-type]


def test_a_folder_whose_newest_file_holds_no_records(prose: Prose, trace: Trace, tmp_path: Path) -> None:
    """Nothing is written after it."""
    live.grow(trace, tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"PAR1")
    with pytest.raises(BadInput, match=rf"{file.name}: holds no records: "):
        live.grow(trace, tmp_path)
    assert list(tmp_path.iterdir()) == [file]
    prose.refuses(BadInput, live.grow, None, tmp_path)


def test_a_new_controller_finds_a_partition_without_a_leader() -> None:
    """No record leads to Offline then: the controller sets the state or, in a log, an election is refused."""
    led = Run().move(NEW, ONLINE, leader=1).records
    found = Record(5, 5000.0, "controller-2", "partition", SET, "orders", 0, target=OFFLINE)
    refused = found._replace(action="refuse", source=OFFLINE, target=ONLINE, error="StateChangeFailed")
    for record in (found, refused):
        *_, last = Leaders().rows([*led, record, record])
        assert last == ("orders", 0, 5000.0, 5, OFFLINE, None, None)
    back = found._replace(seq=6, target=ONLINE)
    *_, last = Leaders().rows([*led, found, back])
    assert last == ("orders", 0, 5000.0, 6, ONLINE, 1, None)
    assert [*Leaders().rows([back])] == []


def led_at_last(lab: Lab) -> tuple[object, ...]:
    *_, (*_, state, leader, _) = Leaders().rows(lab.trace)
    return state, leader


def test_a_deposed_controller_is_not_believed(generation: str) -> None:
    """It goes on with what it had read: the move that it is refused was made by the new controller."""
    with Lab(brokers=3, seed=7, generation=generation) as lab:
        lab.create_topic("orders", assignment={0: [1]})
        for step in (lab.settle, lambda: lab.kill(1), lab.settle):
            step()
        first, seen = lab.controller.id, len(lab.trace)
        lab.start(1)
        lab.run_until(lambda: len(lab.trace.slice(start=seen, action="brokers_changed")) > 0)
        lab.pause(first, 60)
        lab.run_for(90)
        assert lab.controller.id != first
        assert lab.trace.slice(start=seen, kind="partition", actor=f"controller-{first}", action="refuse")
        assert led_at_last(lab) == ("OnlinePartition", lab.partition("orders", 0).leader)


def test_a_leader_that_only_zookeeper_names(generation: str) -> None:
    """The controller that elected it died before its own record of that: the next one reads it and sends it."""
    with Lab(brokers=3, seed=7, generation=generation) as lab:
        lab.settle()
        led, other = (id for id in (1, 2, 3) if id != lab.controller.id)
        lab.create_topic("orders", assignment={0: [led, other]})
        lab.settle()
        lab.kill(led)
        lab.run_until(lambda: lab.partition("orders", 0).leader == other)
        lab.kill(lab.controller.id)
        lab.run_for(60)
        assert led_at_last(lab) == ("OnlinePartition", other)


@pytest.mark.parametrize("question", [live.leaders, live.under_replicated, live.imbalance, live.controllers])
def test_what_is_no_stream_of_records(prose: Prose, question: Callable[..., DataFrame]) -> None:
    for wrong in (None, spark().range(3)):
        prose.refuses(BadInput, question, wrong)


def test_what_cannot_be_kept(prose: Prose, trace: Trace, tmp_path: Path) -> None:
    """In one sentence, without what Java says about itself."""
    live.grow(trace, tmp_path / "lab")
    (tmp_path / "note").write_text("x")
    changes = live.leaders(live.traces(spark(), tmp_path / "lab"))
    for out in (None, "", 5):
        prose.refuses(BadInput, live.keep, changes, out)
    prose.refuses(BadInput, live.keep, spark().range(3), tmp_path / "answers")
    with pytest.raises(BadInput, match=r"/note: cannot be written: "):
        live.keep(changes, tmp_path / "note")
    prose.refuses(BadInput, live.latest, spark().range(3))
    run(changes, tmp_path / "leaders")
    prose.refuses(BadInput, live.keep, live.controllers(live.traces(spark(), tmp_path / "lab")), tmp_path / "leaders")


def test_two_answers_may_have_folders_of_one_name(trace: Trace, tmp_path: Path) -> None:
    """Both queries run; the name of a query is the whole path, and may end with a slash."""
    live.grow(trace, tmp_path / "records")
    records = live.traces(spark(), tmp_path / "records")
    queries = [live.keep(live.controllers(records), f"{tmp_path}/{each}/out/") for each in ("one", "two")]
    try:
        assert len({query.name for query in queries}) == 2
    finally:
        for query in queries:
            query.stop()


def test_a_folder_holds_histories_whose_names_begin_alike(tmp_path: Path) -> None:
    traces = [Trace(records=[Record(0, 0.0, "lab", "fault", "kill")], history=name) for name in ("lab-2", "lab", "lab")]
    assert [live.grow(trace, tmp_path) for trace in traces] == [1, 1, 0]
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}-000000000-000000000.parquet" for name in ("lab-2", "lab")
    }
