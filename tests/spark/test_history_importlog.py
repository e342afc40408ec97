"""Real logs, as they are found: every release's lines, rolled, packed, wrapped, mixed and damaged."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from history_logs import OLD, STATE, lay
from labs import until_quiet
from prose import Prose

from kafka_ctl import BadInput, Lab
from kafka_ctl.history import Workload, import_logs, log_chunks, log_import, questions, simulate, write_logs
from kafka_ctl.history.log_files import LONGEST, read_texts
from kafka_ctl.history.schema import SCHEMA, spark_schema
from kafka_ctl.history.session import spark
from kafka_ctl.kafka_log.releases import release

NEW = [  # Kafka 2.6 and later
    f"[2023-05-01 00:00:00,000] INFO [Controller id=1 epoch=9] Changed partition a-b.c-0 from OfflinePartition to "
    f"OnlinePartition with state LeaderAndIsr(leader=2, leaderEpoch=5, isr=List(2, 3), zkVersion=8) {STATE}",
    f"[2023-05-01 00:00:00,001] INFO [Controller id=1 epoch=9] Sending LeaderAndIsr request to broker 2 with 3 "
    f"become-leader and 4 become-follower partitions {STATE}",
    f"[2023-05-01 00:00:00,002] INFO [Broker id=2] Leader a-b.c-0 starts at leader epoch 5 from offset 10 with high "
    f"watermark 9 ISR [2,3] addingReplicas [] removingReplicas []. Previous leader epoch was 4. {STATE}",
]


def rows(logs: Any, *columns: str) -> list[tuple]:
    return [tuple(row) for row in logs.orderBy("seq").select(*columns).collect()]


def understood(*lines: str) -> list[Any]:
    """What single lines say, without Spark."""
    printed = [s for s in read_texts(enumerate(lines, 1)) if s.line or s.rejected]
    assert not [s for s in printed if s.rejected]
    return [s.line for s in printed]


def test_records_have_the_trace_schema(tmp_path: Path) -> None:
    """Columns, types, and the values of an old and of a new line."""
    lay(tmp_path, "old/state-change.log", OLD)
    lay(tmp_path, "new/state-change.log.2023-05-01-00", NEW)
    logs = import_logs(spark(), [tmp_path / "old", tmp_path / "new"])
    assert logs.records.columns == SCHEMA.names
    assert [f.dataType for f in logs.records.schema] == [f.dataType for f in spark_schema()]
    reported = ("seq", "actor", "kind", "action", "topic", "partition", "source", "target", "leader")
    assert rows(logs, *reported) == [
        (0, "controller-3", "partition", "assign", "page.views-eu", 4, "NonExistentPartition", "NewPartition", None),
        (1, "controller-3", "partition", "initialize", "page.views-eu", 4, "NewPartition", "OnlinePartition", 3),
        (2, "controller-3", "election", "started", "page.views-eu", 4, None, None, None),
        (3, "controller-3", "partition", "refuse", "page.views-eu", 4, "OfflinePartition", "OnlinePartition", None),
        (4, "controller-1", "partition", "elect", "a-b.c", 0, "OfflinePartition", "OnlinePartition", 2),
        (5, "controller-1", "request", "LeaderAndIsr", None, None, None, "sent", None),
        (6, "broker-2", "broker", "become-leader", "a-b.c", 0, None, None, None),
    ]
    assert rows(logs.where("isr IS NOT NULL OR replicas IS NOT NULL"), "seq", "isr", "replicas") == [
        (0, None, [3, 5]),
        (4, [2, 3], None),
        (6, [2, 3], None),
    ]
    refused = rows(logs.where("action = 'refuse'"), "error", "detail", "controller_epoch", "time_ms")
    assert refused == [
        ("StateChangeFailed", "kafka.common.NoReplicaOnlineException: nobody is left", 7, 1456826401005.0)
    ]
    assert rows(logs.where("kind = 'request'"), "broker", "detail") == [(2, "partitions=7")]


def test_the_run_tells_what_it_read(prose: Prose, tmp_path: Path) -> None:
    """Files, lines, times in UTC, and the releases whose format it is."""
    lay(tmp_path, "a/state-change.log", OLD)
    lay(tmp_path, "b/state-change.log.1", [*NEW, "what is this?"])
    lay(tmp_path, "b/controller.log", [])
    logs = import_logs(spark(), tmp_path)
    spark().conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        prose(repr(logs))
    finally:
        spark().conf.set("spark.sql.session.timeZone", "UTC")
    files = {Path(r.file).parent.name + "/" + Path(r.file).name: r for r in logs.files.collect()}
    reported = {name: (r.lines, r.records, r.rejected, r.continued, r.kafka) for name, r in files.items()}
    assert reported == {
        "a/state-change.log": (8, 4, 0, 4, "0.11 or older"),
        "b/state-change.log.1": (4, 3, 1, 0, "2.6 to 3.1"),
        "b/controller.log": (0, 0, 0, 0, "unknown"),
    }
    rejected = [tuple(row)[2:] for row in logs.rejected.collect()]
    assert rejected == [(4, "no header", "what is this?")]


def test_packed_and_rolled_files(tmp_path: Path) -> None:
    """As log4j and logrotate leave them; the order is that of time, not of names."""
    text = "".join(f"{line}\n" for line in OLD[:2]).encode()
    lay(tmp_path, "state-change.log.2.gz", gzip.compress(text.replace(b"10:00", b"09:00")))
    lay(tmp_path, "state-change.log.3.bz2", bz2.compress(text.replace(b"10:00", b"08:00")))
    lay(tmp_path, "state-change.log", text)
    lay(tmp_path, "server.log", b"[2016-03-01 10:00:00,000] INFO starting (kafka.server.KafkaServer)\n")
    logs = import_logs(spark(), str(tmp_path))
    assert [hour for (hour,) in rows(logs.selectExpr("seq", "hour(timestamp_millis(bigint(time_ms))) AS h"), "h")] == [
        8,
        8,
        9,
        9,
        10,
        10,
    ]


def test_a_controllers_own_lines_are_about_its_broker() -> None:
    (line,) = understood(
        "[2018-11-01 10:00:00,000] INFO [Controller id=4] Starting the controller scheduler "
        "(kafka.controller.KafkaController)"
    )
    record = dict(zip([field.name for field in log_chunks.RECORD], log_chunks.values_of(line), strict=True))
    assert (line.broker, record["broker"], record["actor"]) == (None, 4, "controller-4")


def test_a_long_line_is_cut_to_its_beginning_and_its_end() -> None:
    text = "".join(f"{number:8}" for number in range(LONGEST // 4))
    (parsed,) = read_texts([(1, text)])
    assert len(parsed.text) == LONGEST and text.startswith(parsed.text[: LONGEST - 200])
    assert text.endswith(parsed.text[1 - 200 :])


def test_two_brokers_in_one_file() -> None:
    """Told apart by what they say of themselves; a line without a name is the last controller's."""
    lines = [
        "[2016-03-01 10:00:00,000] INFO [Controller 1]: Controller starting up (kafka.controller.KafkaController)",
        "[2016-03-01 10:00:00,001] INFO [Controller 2]: Controller starting up (kafka.controller.KafkaController)",
        f"[2016-03-01 10:00:00,002] TRACE Broker 1 cached leader info (LeaderAndIsrInfo:(Leader:2,ISR:2,LeaderEpoch:0,"
        f"ControllerEpoch:4),ReplicationFactor:1),AllReplicas:2) for partition [t,0] in response to UpdateMetadata "
        f"request sent by controller 2 epoch 4 with correlation id 1 {STATE}",
        "[2016-03-01 10:00:00,003] INFO [OfflinePartitionLeaderSelector]: Something (kafka.controller.Offline)",
    ]
    actors = [line.actor for line in understood(*lines)]
    assert actors == ["controller-1", "controller-2", "broker-1", "controller-2"]


@pytest.mark.parametrize(
    "wrap",
    [
        "kafka-1  | {}",
        "2023-05-01T00:00:00.123456789Z stdout F {}",
        "May  1 00:00:00 host7 kafka[812]: {}",
        "\x1b[36m{}",
        '{{"log": {json}, "stream": "stdout", "time": "2023-05-01T00:00:00Z"}}',
        '{{"message": {json}, "fields": {{"env": "test"}}}}',
        "{}\r",
    ],
)
def test_what_collectors_make_of_lines(wrap: str) -> None:
    """Compose, Kubernetes, syslog, Docker's JSON, Windows: the same line."""
    plain = understood(*NEW)
    wrapped = [wrap.format(line, json=json.dumps(line + "\n")).rstrip("\r") for line in NEW]
    assert understood(*wrapped) == plain


def test_other_layouts_of_a_line() -> None:
    """Without the logger's name, with another date, as fields of JSON."""
    (plain,) = understood(NEW[0])
    message = NEW[0].split(" INFO ", 1)[1].removesuffix(f" {STATE}")
    fields = {"@timestamp": "2023-05-01T00:00:00.000Z", "level": "INFO", "logger": "state.change.logger"}
    layouts = [
        f"2023/05/01 00:00:00.000 INFO [StateChangeLogger] [controller-event-thread] {message}",
        f"2023-05-01 00:00:00,000 INFO {message} {STATE}",
        json.dumps(fields | {"message": message}),
    ]
    assert understood(*layouts) == [plain] * 3


@pytest.mark.parametrize(
    ("message", "action"),
    [
        ("[Controller 1]: Partitions undergoing preferred replica election: ", "preferred_undergoing"),
        ("[Controller id=1] List of topics to be deleted: ", "topics_to_be_deleted"),
        ("[Controller id=1] Newly added brokers: 2, deleted brokers: , all live brokers: ", "brokers_changed"),
        ("[Controller id=1] An unknown list: ", "says"),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_an_empty_list_at_the_end(message: str, action: str, cut: bool) -> None:
    """Where the logger comes first, nothing follows it; a collector may cut the space before it off."""
    (plain,) = understood(f"[2023-05-01 00:00:00,000] INFO {message} (kafka.controller.KafkaController)")
    text = message.rstrip() if cut else message
    (first,) = understood(f"2023-05-01 00:00:00,000 INFO kafka.controller.KafkaController: {text}")
    assert (first.action, first.actor) == (action, "controller-1")
    if action == "says":
        assert (first.detail, plain.action) == ("An unknown list:", "says")
    else:
        assert first == plain


def test_stack_traces_of_collectors_go_on_too() -> None:
    """They are neither records nor rejected."""
    lines = [f"kafka-1 | {line}" for line in OLD]
    printed = list(read_texts(enumerate(lines, 1)))
    assert [s.number for s in printed if s.line] == [1, 2, 3, 4]
    assert not [s for s in printed if s.rejected]
    assert "nobody is left" in next(str(s.line) for s in printed if s.line and s.line.error)


def test_damaged_files_do_not_stop_it(tmp_path: Path) -> None:
    """Broken encodings, NUL bytes, Windows line ends, no last line break, a line of several megabytes."""
    huge = "[2016-03-01 10:00:00,500] DEBUG [Controller 3]: preferred replicas by broker Map(" + "x" * 5_000_000 + ")"
    parts = [
        OLD[0].encode() + b"\r\n",
        b"\xff\xfe broken \x00 bytes\r\n",
        OLD[1].replace("page", "p\x00ge").encode() + b"\r\n",
        huge.encode() + b" (kafka.controller.KafkaController)\r\n",
        OLD[2].encode(),
    ]
    logs = import_logs(spark(), lay(tmp_path, "anything.txt", b"".join(parts)))
    assert rows(logs, "kind") == [("partition",), ("controller",), ("election",)]
    rejected = [(row.line, row.reason) for row in logs.rejected.orderBy("line").collect()]
    assert rejected == [(2, "no header"), (3, "unknown form")]


def test_chunks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small: every line is read once, rejected ones keep their numbers, nobody loses his name."""
    nameless = "[2016-03-01 10:00:00,003] INFO [OfflinePartitionLeaderSelector]: Something (kafka.controller.Offline)"
    lines = [line for n in range(40) for line in (*OLD, nameless, f"odd {n}", "")]
    path = lay(tmp_path, "state-change.log", lines)
    whole = import_logs(spark(), path)
    records, files = rows(whole, *SCHEMA.names), whole.files.collect()
    numbers = sorted(tuple(row) for row in whole.rejected.select("line", "text").collect())
    assert numbers == [(11 * n + 10, f"odd {n}") for n in range(40)]
    for size in (1, 100, 1000):
        if size == 1:
            path = lay(tmp_path, "few/state-change.log", lines[:11])
            expected = rows(import_logs(spark(), path), *SCHEMA.names)
        monkeypatch.setattr(log_import, "CHUNK", size)
        monkeypatch.setattr(log_import, "TASK", size * 50)
        again = import_logs(spark(), path)
        assert rows(again, *SCHEMA.names) == (expected if size == 1 else records)
        if size > 1:
            assert again.files.collect() == files
            assert sorted(tuple(row) for row in again.rejected.select("line", "text").collect()) == numbers
        monkeypatch.undo()
        path = tmp_path / "state-change.log"


def test_several_clusters_and_a_file_that_grew(tmp_path: Path) -> None:
    """Each has its own numbers; what is written later is read the next time."""
    a, b = lay(tmp_path, "a/controller.log", OLD[:2]), lay(tmp_path, "b/state-change.log", NEW)
    logs = import_logs(spark(), {"prod": a, "test": [b]})
    assert rows(logs, "history", "seq") == [("prod", 0), ("test", 0), ("prod", 1), ("test", 1), ("test", 2)]
    lay(tmp_path, "a/controller.log", OLD)
    assert import_logs(spark(), a).count() == 4
    changed = [line.replace("leader 3", "leader 5") for line in OLD]
    lay(tmp_path, "a/controller.log", changed)
    assert rows(import_logs(spark(), a).where("leader IS NOT NULL"), "leader") == [(5,)]


def test_paths_that_hold_nothing(prose: Prose, tmp_path: Path) -> None:
    """One error that names the path."""
    prose.refuses(BadInput, import_logs, spark(), tmp_path / "nowhere")
    (tmp_path / "server.log").write_text("")
    prose.refuses(BadInput, import_logs, spark(), [tmp_path])


@pytest.mark.parametrize(
    ("line", "releases"),
    [
        (OLD[0], "0.11 or older"),
        (NEW[0], "1.1 to 3.1"),
        (NEW[1], "2.6 or newer"),
        (
            "[2019-01-01 00:00:00,000] INFO [Controller id=0] 0 successfully elected as the controller. Epoch "
            "incremented to 1 and epoch zk version is now 1 (kafka.controller.KafkaController)",
            "2.1 or newer",
        ),
        (
            f"[2019-01-01 00:00:00,000] TRACE [Controller id=0 epoch=1] Sending UpdateMetadata request PartitionState("
            f"controllerEpoch=1, leader=0, leaderEpoch=0, isr=[0], zkVersion=0, replicas=[0], offlineReplicas=[]) to "
            f"brokers Set(0) for partition t-0 {STATE}",
            "1.0 to 2.3",
        ),
        (
            f"[2019-01-01 00:00:00,000] TRACE Controller 0 epoch 1 changed partition t-0 state from NewPartition to "
            f"OfflinePartition {STATE}",
            "0.11 or older",
        ),
    ],
)
def test_the_format_suggests_a_release(line: str, releases: str) -> None:
    bits = next(read_texts([(1, line)])).formats
    assert release(bits) == releases


def test_departures_in_real_logs(tmp_path: Path) -> None:
    """A broker that asked to leave is told from one that was lost; asking three times is leaving once."""
    echo = "[2019-01-01 00:00:{:02},000] INFO [Controller id=1] {} (kafka.controller.KafkaController)"
    lines = [
        echo.format(1, "Shutting down broker 2"),
        echo.format(6, "Shutting down broker 2"),
        echo.format(7, "Newly added brokers: , deleted brokers: 2, all live brokers: 1,3"),
        echo.format(9, "Newly added brokers: 2, deleted brokers: 3, all live brokers: 1,2"),
        echo.format(20, "Shutting down broker 2"),
    ]
    logs = import_logs(spark(), lay(tmp_path, "controller.log", lines))
    found = [(r.broker, r.cause, r.at_ms % 60_000) for r in questions.departures(logs).orderBy("at_ms").collect()]
    assert found == [(2, "controlled shutdown", 6000), (3, "broker loss", 9000), (2, "controlled shutdown", 20_000)]


def test_a_simulated_cluster_through_its_own_logs(tmp_path: Path) -> None:
    """One folder a broker, both logs, as Kafka 2.0 writes them: the questions find in them what the trace holds."""
    trace = simulate(3, 12, workload=Workload(brokers=(4, 4), topics=(3, 3), rate=3))
    written = write_logs(trace, tmp_path)
    rolled = sorted(path.name for path in (tmp_path / "broker-1").iterdir())
    assert "state-change.log.2018-10-25-00.gz" in rolled and {"state-change.log", "controller.log"} <= {*rolled}
    logs = import_logs(spark(), tmp_path)
    assert logs.rejected.count() == 0
    assert logs.files.count() == written > 8
    moves = ["machine", "source", "target", "made"]

    def made(records: Any) -> list[tuple]:
        answer = questions.transition_counts(records).where("made > 0").select(*moves)
        return sorted(tuple(row) for row in answer.collect())

    assert made(logs) == made(trace)
    churn = ["topic", "partition", "elections", "changes", "returns"]

    def changes(records: Any) -> list[tuple]:
        return sorted(tuple(row) for row in questions.leader_churn(records).select(*churn).collect())

    assert changes(logs) == changes(trace)


def test_a_crash_in_the_logs_of_a_lab(tmp_path: Path) -> None:
    """The interval and its cause, to the millisecond that logs have."""
    with Lab(brokers=3, seed=2) as lab:
        until_quiet(lab.create_topic, "orders", partitions=3, replication_factor=2)
        victim = next(id for id in lab.brokers if id != lab.controller.id)
        until_quiet(lab.kill, victim)
        exact = questions.unavailability(lab.trace).where("leader IS NOT NULL").collect()
        for name in ("state-change", "controller"):
            lay(tmp_path, f"{name}.log", lab.trace.kafka_log(name).encode())
    logged = questions.unavailability(import_logs(spark(), tmp_path)).where("leader IS NOT NULL").collect()
    assert {row.cause for row in exact} == {"broker crash"}
    assert {row.cause for row in logged} == {"broker loss"}
    keys = [(row.topic, row.partition, row.leader) for row in exact]
    assert sorted((row.topic, row.partition, row.leader) for row in logged) == sorted(keys)
    assert keys


def test_logs_without_moves_to_offline_have_the_same_intervals(tmp_path: Path) -> None:
    """The loggers write INFO since 2.6: an interval begins when its leader left, not with an old controller."""
    with Lab(brokers=3, seed=2, generation="2.4") as lab:
        until_quiet(lab.create_topic, "orders", partitions=3, replication_factor=2)
        lab.run_for(3600)
        until_quiet(lab.kill, next(id for id in lab.brokers if id != lab.controller.id))
        texts = {name: lab.trace.kafka_log(name) for name in ("state-change", "controller")}
    begun = []
    for level in ("trace", "info"):
        folder = tmp_path / level
        folder.mkdir()
        for name, text in texts.items():
            kept = [line for line in text.splitlines() if level == "trace" or "to OfflinePartition" not in line]
            (folder / f"{name}.log").write_text("\n".join(kept) + "\n")
        answer = questions.unavailability(import_logs(spark(), folder)).where("leader IS NOT NULL")
        begun.append(sorted((row.partition, row.cause, round(row.duration_ms, -2)) for row in answer.collect()))
    assert begun[0] == begun[1] and begun[0]
