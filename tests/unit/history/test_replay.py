"""Logs as a trace for every view: against the labs that wrote them, and against real Kafka's recorded ZooKeeper."""

import lzma
import os
import re
import shutil
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from labs import play, until_quiet
from prose import Prose, refuses

from kafka_ctl import Lab, Trace
from kafka_ctl.errors import BadInput
from kafka_ctl.history import Replay, log_replay, replay, write_logs
from kafka_ctl.trace import Record
from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.views.export import export
from kafka_ctl.views.frames import VIEWS, film

RECORDED = Path(__file__).parents[2] / "conformance"
LEVEL = re.compile(r"(TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ")
STATE = re.compile(r"^state (\S+)-(\d+) leader=(-?\d+) isr=([\d,]*)", re.MULTILINE)
LAST_WRITE_BY_A_LEADER = {
    ("0.10", "delete_topic_paused"),
    ("0.10", "isr_of_absent_partition"),
    ("0.10", "rolling_restart"),
    ("0.10", "shutdown_controller"),
    ("2.0", "delete_topic_paused"),
}
"""Stories in which a leader changed the ISR last, which no log says."""
DELETING = "delete_topic_moving"
"""Without times, the order of lines of two controllers is not known; so it is here for the lines of a deletion."""


@cache
def failed_over(generation: str) -> Lab:
    """The controller is killed, another broker leaves in good order and cannot hand one partition over."""
    lab = Lab(brokers=3, generation=generation, config={"unclean.leader.election.enable": False})
    play(lab, "create_topic orders partitions=4 replication_factor=2; settle")
    assert lab.controller is not None
    until_quiet(lab.kill, lab.controller.id)
    until_quiet(lab.shutdown, min(id for id, broker in lab.brokers.items() if broker.state == "running"))
    return lab


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The logs of `failed_over("2.0")`, a folder for each broker."""
    write_logs(failed_over("2.0").trace, tmp_path / "logs", packed=False)
    return tmp_path / "logs"


def moves(trace: Trace, with_isr: bool) -> list[str]:
    """Partitions' moves, those that are refused left out, in an order that does not depend on files."""
    found = (r for r in trace if r.kind == "partition" and r.action != "set" and r.error is None)
    return sorted(
        f"{r.tp} {r.source} {r.target} {r.leader} {r.isr if with_isr else ''} {r.controller_epoch}" for r in found
    )


def test_a_lab_and_its_logs(generation: str, tmp_path: Path) -> None:
    """The same moves, leaders, ISRs, controller and brokers."""
    lab = failed_over(generation)
    write_logs(lab.trace, tmp_path)
    found = replay(tmp_path)
    assert found.generation == generation
    assert found.missing == ()
    with_isr = generation != "0.10"  # whose lines have none
    assert moves(found, with_isr) == moves(lab.trace, with_isr)
    model = ClusterModel().apply_all(found)
    for p in lab.partitions():
        seen = model.partitions[p.topic, p.partition]
        assert (seen.leader, seen.isr, seen.replicas, seen.state) == (p.leader, p.isr, p.replicas, p.state)
    assert lab.controller == (model.controller, model.controller_epoch)
    assert {id: seen.alive for id, seen in model.brokers.items()} == {
        id: broker.state == "running" for id, broker in lab.brokers.items()
    }


def test_recordings_of_real_kafka(generation: str, tmp_path: Path) -> None:
    """The last leaders and ISRs are those that the real ZooKeeper had. The recorded lines have no times."""
    logs = sorted((RECORDED / "logs" / generation).glob("*.xz"))[::8]
    names = [(log, log.name.partition(".")[0]) for log in logs]
    assert len(names) > 8
    for log, name in names:
        if name == DELETING or (generation, name) in LAST_WRITE_BY_A_LEADER:
            continue
        timed(lzma.decompress(log.read_bytes()).decode(), tmp_path / name)
        model = ClusterModel().apply_all(replay(tmp_path / name))
        golden = (RECORDED / "golden" / generation / f"{name}.txt").read_text("utf-8")
        stored = {(t, int(n)): (int(leader), isr) for t, n, leader, isr in STATE.findall(golden)}
        seen = {key: (p.leader, ",".join(map(str, p.isr))) for key, p in model.partitions.items()}
        assert {key: seen.get(key) for key in stored} == stored, name


def timed(text: str, folder: Path) -> None:
    """Write the log files of a recording; the n-th line of a broker gets the n-th millisecond."""
    files: dict[tuple[str, str], list[str]] = {}
    for part in text.split("== broker ")[1:]:
        broker, *lines = part.splitlines()
        for n, line in enumerate(filter(LEVEL.match, lines)):
            name = "state-change" if line.endswith("(state.change.logger)") else "controller"
            stamp = f"[2020-01-01 00:00:{n // 1000:02},{n % 1000:03}]"
            files.setdefault((broker, name), []).append(f"{stamp} {line}\n")
    for (broker, name), lines in files.items():
        (folder / broker).mkdir(parents=True, exist_ok=True)
        (folder / broker / f"{name}.log").write_text("".join(lines), "utf-8")


def test_a_record_and_its_line(folder: Path) -> None:
    """Each record leads to its line, each line to its records, and a frame shows the lines as they are."""
    found = replay(folder)
    for seq, line in enumerate(found.lines):
        assert (folder / line.file).read_text("utf-8").splitlines()[line.number - 1] == line.text
        assert seq in found.at(line.file, line.number)
    page = export(found, folder / "film.html", generation=found.generation).read_text("utf-8")
    assert "controller.log:1: [20" in page
    refuses(BadInput, r"nowhere\.log:1", found.at, "nowhere.log", 1)
    file = found.files[0]
    last = max(line.number for line in found.lines if line.file == file)
    refuses(BadInput, rf"line {last}$", found.at, file, last + 1)


def test_a_time_span(folder: Path, monkeypatch: pytest.MonkeyPatch, prose: Prose) -> None:
    """Too many records are refused with their times; a part of them is replayed, and its lines are found."""
    whole = replay(folder)
    middle = datetime.fromtimestamp((whole.began_ms + 6000) / 1000, UTC).replace(tzinfo=None)
    before, after = replay(folder, end=middle), replay(folder, begin=str(middle))
    assert len(before) + len(after) == len(whole)
    assert after.lines == whole.lines[len(before) :]
    last = datetime.fromtimestamp((whole.began_ms + whole[-1].time_ms) / 1000, UTC).replace(tzinfo=None)
    late = replay(folder, begin=last)
    assert {(found.kafka, found.generation) for found in (whole, before, after, late)} == {("1.1 to 2.0", "2.0")}
    monkeypatch.setattr(log_replay, "MANY", 3)
    prose.refuses(BadInput, replay, folder)
    for span in (("yesterday", None), ("2024-05-31 13:00+02:00", None), (7, None), ("2024-05-31", "2024-05-30")):
        prose.refuses(BadInput, replay, folder, *span)
    prose.refuses(BadInput, replay, folder, end="2001-01-01")


def test_what_is_before_a_time_span_is_not_missing(folder: Path) -> None:
    """Neither epochs, nor logs and brokers without a line in it."""
    whole = replay(folder)
    moments = sorted({record.time_ms for record in whole})
    assert len([record for record in whole if record.action == "epoch_incremented"]) > 1
    for ms in (moments[1], *moments[4::25], moments[-1]):
        begin = datetime.fromtimestamp((whole.began_ms + ms) / 1000, UTC).replace(tzinfo=None)
        assert replay(folder, begin=begin).missing == ()


def test_holes_are_named(folder: Path, prose: Prose) -> None:
    """Lines, logs, epochs and brokers that are missing."""
    whole = replay(folder)
    first = next(r.actor.rpartition("-")[2] for r in whole if r.action == "epoch_incremented")
    with (folder / f"broker-{first}" / "state-change.log").open("a", encoding="utf-8") as file:
        file.write("<b>no header</b>\n")
    prose("\n".join(replay(folder).missing))
    shutil.rmtree(folder / f"broker-{first}")
    prose("\n".join(replay(folder).missing))
    for path in folder.rglob("state-change.log"):
        path.unlink()
    prose("\n".join(replay(folder).missing))
    for path in folder.rglob("controller.log"):
        path.write_text("nothing\n", "utf-8")
    prose.refuses(BadInput, replay, folder)
    for path in folder.rglob("controller.log"):
        path.write_text("", "utf-8")
    prose.hide[str(folder)] = "LOGS"
    prose.refuses(BadInput, replay, folder)


def test_files_of_other_names_and_addresses(folder: Path, tmp_path: Path) -> None:
    """A file of both logs, as a container prints them, lacks none; a path may stand beside an address."""
    own = tmp_path / "kafka.log"
    own.write_bytes(b"".join(path.read_bytes() for path in sorted((folder / "broker-1").iterdir())))
    assert not any("There is no" in sentence for sentence in replay(own).missing)
    mixed = replay([f"file://{folder}/broker-1/controller.log", folder / "broker-1" / "state-change.log"])
    assert len(mixed) == len(replay(own))


def test_lines_of_any_release_are_played_by_a_labs_own_generation(tmp_path: Path) -> None:
    line = "[2020-01-01 00:00:00,000] INFO [Controller 1]: Resigned (kafka.controller.KafkaController)\n"
    (tmp_path / "controller.log").write_text(line, "utf-8")
    found = replay(tmp_path)
    assert (found.kafka, found.generation) == ("unknown", "2.0")


def test_a_copy_of_a_log_is_named(folder: Path, prose: Prose) -> None:
    """Both files, in the summary of what is wrong with them; also a copy from before the last lines were written."""
    log = folder / "broker-1" / "state-change.log"
    shutil.copy(log, log.with_suffix(".log.old"))
    log.with_suffix(".log.older").write_bytes(log.read_bytes()[:-200])
    prose("\n".join(replay(folder).missing))


def test_what_is_no_file_is_not_opened(folder: Path, prose: Prose) -> None:
    """To open a FIFO would wait for ever."""
    os.mkfifo(folder / "broker-1" / "controller.log.fifo")
    prose("\n".join(replay(folder).missing))


def test_an_epoch_without_logs(tmp_path: Path, prose: Prose) -> None:
    """The controller of epoch 2 left no log."""
    lab = Lab(brokers=3)
    for _ in range(2):
        assert lab.controller is not None
        until_quiet(lab.kill, lab.controller.id)
    write_logs(lab.trace, tmp_path)
    second = next(r.actor for r in lab.trace if r.action == "epoch_incremented" and r.controller_epoch == 2)
    shutil.rmtree(tmp_path / second.replace("controller", "broker"))
    prose("\n".join(replay(tmp_path).missing))


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_broker_whose_clock_is_an_hour_ahead(generation: str, broker: int, tmp_path: Path) -> None:
    """Its epochs come late; it is the same cluster, and no epoch is missing."""
    lab = Lab(brokers=3, seed=1, generation=generation)
    play(lab, "create_topic orders partitions=3 replication_factor=3; settle")
    for _ in range(4):
        assert lab.controller is not None
        play(lab, f"kill {lab.controller.id}; settle; start {lab.controller.id}; settle; run_for 600")
    write_logs(lab.trace, tmp_path, packed=False)
    for path in (tmp_path / f"broker-{broker}").iterdir():
        path.write_text(re.sub(r"^\[2018-10-25 (\d\d)", later, path.read_text("utf-8"), flags=re.M), "utf-8")
    assert replay(tmp_path).missing == ()


def later(found: re.Match[str]) -> str:
    return f"[2018-10-25 {int(found[1]) + 1:02}"


def test_what_logs_do_not_say_is_unknown(folder: Path) -> None:
    """Neither ZooKeeper nor a broker that nobody has mentioned is drawn as if it were known."""
    found = replay(folder)
    picture = film(found).frames[0].picture.looks
    assert picture["znode:/controller"].texts[1] == picture["znode:/brokers/ids"].texts[1] == "(not in the logs)"
    brokers = [look.styles for name, look in picture.items() if name.startswith("broker:")]
    assert len(brokers) == 3
    assert all("absent" in styles for styles in brokers)
    assert not [frame.picture.differs for frame in film(found).frames if "registered" in frame.picture.differs]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view(view: str, folder: Path) -> None:
    """Logs are drawn like a lab's own trace."""
    found = replay(folder)
    assert isinstance(found, Replay)
    assert len(film(found, view, generation=found.generation)) >= 1


@pytest.mark.parametrize(
    ("epochs", "missing"),
    [
        ((5, 7, 6, 9), ["8"]),  # the controller of epoch 6 announces it after its successor
        ((1, 2, 3, 1, 3), ["2"]),  # ZooKeeper was wiped: epoch 2 of the first life is another one
    ],
)
def test_an_epoch_is_missing_that_no_log_of_its_life_has(epochs: tuple[int, ...], missing: list[str]) -> None:
    records = [
        Record(seq, 1000.0 * seq, f"controller-{epoch}", "controller", "epoch_incremented", controller_epoch=epoch)
        for seq, epoch in enumerate(epochs)
    ]
    found = [sentence for sentence in log_replay.gaps(records, ()) if "who was controller" in sentence]
    assert [sentence.split()[-1] for sentence in found] == missing
