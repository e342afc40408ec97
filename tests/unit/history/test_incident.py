"""The report of an incident: of labs whose story is known, and of lines made for one finding each."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from labs import play, until_quiet
from prose import Prose

from kafka_ctl import Lab
from kafka_ctl.cli.commands import status
from kafka_ctl.history import incident, replay, write_logs
from kafka_ctl.history.outages import Outage, isr_changes, outages
from kafka_ctl.paths import ROOT
from kafka_ctl.views.steps import supergraph

STATE_CHANGE = "[2020-01-01 00:{minute:02}:{second:02},000] TRACE {text} (state.change.logger)\n"


def lab() -> Lab:
    """Broker 3 dies with the only copy of `solo-0`; the others lead `orders` on."""
    lab = Lab(brokers=3, generation="2.0", seed=1)
    play(lab, "create_topic orders partitions=6 replication_factor=3; settle")
    victim = next(id for id in (1, 2, 3) if lab.controller is not None and id != lab.controller.id)
    until_quiet(lab.create_topic, "solo", assignment={0: [victim]})
    until_quiet(lab.kill, victim)
    return lab


def made(folder: Path, *lines: str) -> Path:
    """A state-change.log with these lines, one a second; a controller's line begins with its name."""
    texts = (STATE_CHANGE.format(minute=n // 60, second=n % 60, text=line) for n, line in enumerate(lines))
    (folder / "state-change.log").write_text("".join(texts), "utf-8")
    return folder


def test_a_broker_is_lost(tmp_path: Path, prose: Prose) -> None:
    """The report names the broker, the partitions and the failed election; the intervals are those of the trace."""
    run = lab()
    write_logs(run.trace, tmp_path)
    found = incident(tmp_path)
    prose(str(found))
    intervals = outages(run.trace.records)
    assert [(str(o.partition), o.end is None) for o in outages(found.replay.records)] == [
        (str(o.partition), o.end is None) for o in intervals
    ]


def test_logs_without_traces_begin_an_interval_where_the_leader_left(tmp_path: Path) -> None:
    """Since 2.6 the moves to Offline are not logged by default (KAFKA-8470); the rest of the log stays the same."""
    write_logs(lab().trace, tmp_path)
    whole = [(o.partition, o.ms, o.cause and o.cause.action) for o in incident_outages(tmp_path) if o.end]
    for path in tmp_path.rglob("state-change.log*"):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if "to OfflinePartition" not in line), "utf-8")
    short = [(o.partition, o.ms, o.cause and o.cause.action) for o in incident_outages(tmp_path) if o.end]
    assert [(tp, cause) for tp, _, cause in short] == [(tp, cause) for tp, _, cause in whole]
    assert {cause for *_, cause in short} == {"lost"}
    assert max(ms for _, ms, _ in short) < 1000


def incident_outages(folder: Path) -> list[Outage]:
    return outages(incident(folder).replay.records)


@pytest.mark.parametrize(("generation", "intervals"), [("0.10", 1), ("2.0", 0), ("2.4", 0)])
@pytest.mark.parametrize("brokers", [1, 2])
def test_all_brokers_are_lost(generation: str, intervals: int, brokers: int) -> None:
    """No controller is there to see it; the leader is back before the next one looks, since 2.0."""
    run = Lab(brokers=brokers, generation=generation, seed=1)
    run.create_topic("orders", 1, brokers)
    run.settle()
    for command in (run.kill, run.start):
        for broker in range(1, brokers + 1):
            command(broker)
        run.run_for(120)
        assert [(p.leader, p.isr) for p in run.partitions()] == [(1, tuple(range(1, brokers + 1)))]
    assert len(outages(run.trace.records)) == intervals


def test_the_controller_is_lost(tmp_path: Path, prose: Prose) -> None:
    """Its successor finds partitions without a leader."""
    run = Lab(brokers=3, generation="2.0")
    play(run, "create_topic orders partitions=6 replication_factor=3; settle")
    assert run.controller is not None
    run.kill(run.controller.id)
    run.settle()
    write_logs(run.trace, tmp_path)
    prose(str(incident(tmp_path)))


def test_zookeeper_was_wiped(prose: Prose) -> None:
    """No file is missing: the logs are those of two clusters."""
    logs = ROOT / "tests/spark/logs/wiped"
    found = incident(logs)
    prose("\n".join([*(f.text for f in found.findings if not f.section.startswith(("Who", "Longest"))), *found.next]))
    (again,) = {f.section for f in found.findings if "wiped" in f.text}
    assert again == "Several clusters"


def test_a_term_of_no_time(tmp_path: Path) -> None:
    """The logs of two clusters lie side by side."""
    elected = "[2024-05-31 13:00:00,000] INFO [Controller id={0}] {0} successfully elected as the controller. Epoch "
    elected += "incremented to {1} and epoch zk version is now {1} (kafka.controller.KafkaController)\n"
    (tmp_path / "controller.log").write_text(elected.format(1, 1) + elected.format(2, 7))
    assert "Broker 1, epoch 1, for less than 1 ms (" in str(incident(tmp_path))


def test_a_file_is_there_twice(prose: Prose, tmp_path: Path) -> None:
    """It is not missing: it has a section and an advice of its own."""
    logs = illegal(tmp_path)
    shutil.copy(logs / "controller.log", logs / "controller.log.old")
    found = incident(logs)
    prose("\n".join([*(f"{f.section}: {f.text}" for f in found.findings if f.seq is None), *found.next]))


def test_a_request_without_an_answer(tmp_path: Path, prose: Prose) -> None:
    """The controller is cut off from a broker, and a deletion waits for that."""
    run = Lab(brokers=3, generation="2.0")
    play(run, "create_topic orders partitions=2 replication_factor=3; settle")
    assert run.controller is not None
    other = next(id for id in (1, 2, 3) if id != run.controller.id)
    run.disconnect(run.controller.id, other)
    run.delete_topic("orders")
    run.run_for(100)
    run.create_topic("later", 1, 1)
    run.run_for(5)
    write_logs(run.trace, tmp_path)
    prose("\n".join(f.text for f in incident(tmp_path).findings if f.section.startswith("Requests")))


@pytest.mark.parametrize("resigned", ["00:06", "02:00"])
def test_a_controller_resigns(resigned: str, tmp_path: Path, prose: Prose) -> None:
    """Its term ends there, and no request waits any longer."""
    who, to = "[Controller id=1 epoch=2]", "sent to broker h:1 (id: 3 rack: null)"
    state = "PartitionState(controllerEpoch=2, leader=3, leaderEpoch=0, isr=3, zkVersion=0, replicas=3, isNew=true)"
    made(
        tmp_path,
        f"{who} Received response {{error_code=0}} for request LEADER_AND_ISR with correlation id 0 {to}",
        f"{who} Sending become-leader LeaderAndIsr request {state} to broker 3 for partition a-0",
    )
    line = "[2020-01-01 00:{},000] DEBUG [Controller id=1] {} (kafka.controller.KafkaController)\n"
    elected = "Broker 2 has been elected as the controller, so stopping the election process."
    texts = [("00:00", "Epoch incremented to 2"), (resigned, "Resigned"), ("30:00", elected)]
    (tmp_path / "controller.log").write_text("".join(line.format(*each) for each in texts), "utf-8")
    prose("\n".join(f.text for f in incident(tmp_path).findings if f.seq is not None))


def storm(folder: Path) -> Path:
    """An ISR that changes with every second."""
    line = (
        "Controller 1 epoch 1 sending become-leader LeaderAndIsr request PartitionState(controllerEpoch=1, leader=1, "
        "leaderEpoch={n}, isr={isr}, zkVersion={n}, replicas=[1, 2], isNew=false) to broker 1 for partition t-0"
    )
    head = "[Controller id=1 epoch=1] "
    lines = [line.format(n=n, isr="[1, 2]" if n % 2 else "[1]").partition("epoch 1 ")[2] for n in range(60)]
    return made(folder, *(head + text[:1].upper() + text[1:] for text in lines))


def test_a_topic_that_is_made_again(tmp_path: Path) -> None:
    """Its epochs and versions begin again, and its changes count."""
    path = storm(tmp_path) / "state-change.log"
    again = "[Controller id=1 epoch=1] Changed partition t-0 state from NonExistentPartition to NewPartition"
    again = STATE_CHANGE.format(minute=2, second=0, text=f"{again} with assigned replicas 1,2")
    path.write_text(path.read_text() + again + path.read_text().replace("01 00:", "01 01:"))
    assert len(isr_changes(replay(path))) == 2 * 59


def test_changes_of_isrs_in_logs(generation: str, tmp_path: Path) -> None:
    """Each change by a leader that a controller reads is found, also where its line has no version."""
    run = Lab(brokers=3, generation=generation, config={"replica.lag.time.max.ms": 1000})
    run.create_topic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
    run.settle()
    for _ in range(2):
        for partition in (0, 1):
            run.lag(3, "orders", partition)
        run.run_for(20)
        run.catch_up(3)
        run.run_for(20)
    write_logs(run.trace, tmp_path)
    made = [r.tp for r in run.trace if r.kind == "broker" and r.action in ("shrink-isr", "expand-isr")]
    assert len(made) == 8
    assert sorted(change.record.tp for change in isr_changes(replay(tmp_path))) == sorted(made)


def illegal(folder: Path) -> Path:
    """A move that no table has, in the logs of a broker that also wrote markup and what looks like a link."""
    text = "[Controller id=1] <img/src=x> [a](#step-b)"
    (folder / "controller.log").write_text(
        f"[2020-01-01 00:00:00,000] INFO {text} (kafka.controller.KafkaController)\n"
    )
    line = "[Controller id=1 epoch=1] Changed partition t-0 state from {}"
    return made(
        folder,
        line.format("NonExistentPartition to NewPartition with assigned replicas 1"),
        line.format("NonExistentPartition to OfflinePartition"),
    )


@pytest.mark.parametrize("logs", [storm, illegal])
def test_findings(logs: Callable[[Path], Path], tmp_path: Path, prose: Prose) -> None:
    """One report for each; names are text, wherever they are shown."""
    found = incident(logs(tmp_path))
    prose(str(found))
    page = found.export(tmp_path / "report.html").read_text("utf-8")
    assert "<img/src" not in page
    assert '<a href="#step-f' in page


@pytest.mark.parametrize("partitions", [1, 61])
def test_lines_that_name_no_replicas(partitions: int, tmp_path: Path) -> None:
    """A broker that is only in an ISR has a place in the picture, however many partitions there are."""
    line = (
        "[Controller id=1 epoch=5] Changed partition t-{} from OfflinePartition to OnlinePartition with state "
        "LeaderAndIsr(leader=1, leaderEpoch=5, isr=List(1, 2), zkVersion=9)"
    )
    found = incident(made(tmp_path, *map(line.format, range(partitions))))
    assert supergraph(found.replay.records).brokers.keys() == {1, 2}
    found.export(tmp_path / "report.html")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], prose: Prose) -> None:
    """The same logs give the same bytes, wherever they are."""
    for name in ("one", "two"):
        write_logs(lab().trace, tmp_path / name)
        assert status(["incident", str(tmp_path / name), "-o", str(tmp_path / f"{name}.html")]) == 0
    assert "solo-0" in capsys.readouterr().out
    one, two = ((tmp_path / f"{name}.html").read_bytes() for name in ("one", "two"))
    assert one == two
    assert not re.search(rb"""(?:src|href)=["']?https?:|@import|url\(http""", one)
    for name in ("report.pdf", "report.svg"):
        assert status(["incident", str(tmp_path / "one"), "-o", str(tmp_path / name)]) == 2
        reported = capsys.readouterr()
        assert not reported.out  # a wrong ending is reported before the logs are read
        prose(reported.err.rpartition("kafka-ctl: ")[2].strip())
    nowhere = tmp_path / "none" / "report.html"
    assert status(["incident", str(tmp_path / "one"), "-o", str(nowhere)]) == 2
    reported = capsys.readouterr()
    assert not reported.out
    prose(reported.err)
    some = ["--from", "2018-10-25 00:00:01", "--to", "2018-10-26"]
    assert status(["incident", str(tmp_path / "one"), "-o", str(tmp_path / "report.html"), *some]) == 0
    assert "from 2018-10-25 00:00:0" in capsys.readouterr().out
    assert status(["incident", str(tmp_path / "one"), "-o", str(tmp_path / "report.html"), "--from", "x"]) == 2
    assert status(["incident", str(tmp_path / "none"), "-o", str(tmp_path / "report.html")]) == 2
    assert len(replay([tmp_path / "one"])) == len(replay(tmp_path / "two"))
