"""What the commands of `kafka-ctl` take and print: finite numbers, and nothing that a terminal would obey."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from prose import Prose
from tables import tabled

from kafka_ctl import Lab, Trace
from kafka_ctl.cli import commands as cli
from kafka_ctl.jupyter import launch
from kafka_ctl.trace import Record
from kafka_ctl.trace.text import describe
from kafka_ctl.visible import visible

ODD = (
    *("nan", "inf", "-inf", "-1", "1e400", "-1e400", "1e999", "9" * 5000, "99999999999999999999", "", " ", "x", "٣"),
    *("0x10", "1_0", "1.5", "true", "None", "[]", "\0", "\x1b[31m"),
)
ESCAPE = "\x1b[31mred\x1b[0m\x07\u202e\x9b2J"


def options(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Parameter]]:
    for parameter in command.params:
        yield f"{path} {parameter.name}".strip(), parameter
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from options(inner, f"{path} {name}")


NUMBERS = [
    (name, p)
    for name, p in options(cli.app)
    if isinstance(p.type, (click.types.FloatParamType, click.types.IntParamType))
]


@pytest.mark.parametrize(("name", "parameter"), NUMBERS, ids=[name for name, _ in NUMBERS])
def test_every_number_is_one_that_can_be_meant(name: str, parameter: click.Parameter) -> None:
    """No `nan`, no infinity, nothing below zero, nothing without end: whatever option of whatever command.

    -1 is no throttle, as for Kafka's tool.
    """
    least = -1 if name.endswith("throttle") else 0
    for odd in ODD:
        try:
            number = parameter.type.convert(odd, parameter, None)
        except click.BadParameter:
            continue
        assert least <= number < 2**63, (name, odd)


def test_there_are_numbers() -> None:
    assert len(NUMBERS) > 10


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "1e400"])
def test_explore_wants_seconds(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.status(["explore", "--seconds", seconds]) == 2
    reported = capsys.readouterr().err
    assert "--seconds" in reported and "Traceback" not in reported


@pytest.mark.parametrize("port", ["-1", "0", "65536", "9" * 30])
def test_lab_wants_a_port(prose: Prose, port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.status(["lab", "--port", port]) == 2
    prose(capsys.readouterr().err)


def test_the_last_ports_are_ports() -> None:
    assert 0 < launch.free_port(65535) < 65536


# What is printed


@tabled
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_record_is_one_line() -> None:
    """Whatever is in its columns."""
    record = Record(0, 1.0, "admin", "zk", "set", path="/x\n\x1b[2J", detail=ESCAPE, error="\r")
    line = describe(record)
    assert line.isprintable() and line.isascii() and "\n" not in line


@pytest.mark.parametrize("words", [(), ("--all",), ("--log", "controller"), ("--log", "state-change")])
def test_run_prints_no_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    """In racks, in the content and the path of znodes, in configurations, and in what is refused."""
    racks = json.dumps({"1": ESCAPE, "2": f"r\n{ESCAPE}"})
    topics = json.dumps({"t": [[[1, 2], 1, [1, 2]], {"k": ESCAPE, ESCAPE: "v"}]})
    opening = f"lab generation=2.4 brokers='{racks}' description='{topics}'"
    quoted, path = json.dumps(ESCAPE), json.dumps("/red\u202e")  # ZooKeeper takes no control characters
    lines = [f"write_znode '{path}' '{quoted}'", f"add_broker broker=3 rack='{quoted}'"]
    lines += [f"refused create_topic '{quoted}'", f"at_once '{json.dumps(['create_topic ' + quoted])}'", "settle"]
    file = tmp_path / "story"
    file.write_text("\n".join([opening, *lines]) + "\n")
    assert cli.status(["run", str(file), *words]) == 0
    reported = capsys.readouterr()
    assert not any(
        (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e" for c in reported.out + reported.err
    )
    assert r"\x1b[31mred" in reported.out or words


def test_errors_print_no_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (f"lab\nkill {ESCAPE}\n", f"lab {ESCAPE}=1\n", f"lab\n{ESCAPE}\n", f"lab\nkill '{ESCAPE}\n"):
        file = tmp_path / "story"
        file.write_text(text)
        assert cli.status(["run", str(file)]) == 2
        reported = capsys.readouterr().err
        assert reported.count("\n") == 1 and reported.removesuffix("\n").isprintable()


def test_somebody_who_stops_reading_is_no_error() -> None:
    """As in `kafka-ctl run story | head -1`."""
    story = "lab\ncreate_topic t partitions=60 replication_factor=3\nsettle\n"
    command = [sys.executable, "-m", "kafka_ctl", "run", "/dev/stdin", "--all"]
    if not os.path.exists("/dev/stdin"):
        pytest.skip("no /dev/stdin")
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(story)
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()


# Files


def refusals(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file").write_text("x")
    yield tmp_path / "folder.svg", "Is a directory"
    yield tmp_path / "none" / "film.svg", "No such file or directory"
    yield tmp_path / "file" / "film.svg", "Not a directory"
    yield tmp_path / ("x" * 300 + ".svg"), "File name too long"


def test_what_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By `export` and `render`: the path and the reason."""
    story = tmp_path / "story"
    story.write_text("lab brokers=1\n")
    with Lab(brokers=1) as lab:
        for path, reason in refusals(tmp_path):
            with pytest.raises(cli.BadInput) as refused:
                lab.export(path)
            assert f"{path}: {reason}" in str(refused.value)
            assert cli.status(["render", str(story), "-o", str(path)]) == 2
            assert capsys.readouterr().err == f"kafka-ctl: {path}: {reason}\n"
        for odd in (None, 5, b"x", [], "a\0.svg", ""):
            for write in (lab.export, lab.trace.to_parquet):
                with pytest.raises(cli.BadInput):
                    write(odd)


@pytest.mark.parametrize(("error", "kind"), [(PermissionError, cli.BadInput), (OSError, cli.KafkaCtlError)])
def test_nothing_is_lost_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError], kind: type[Exception]
) -> None:
    """The old file is whole, and nothing lies beside it: not allowed, or the disk is full."""
    number, reason = (13, "Permission denied") if error is PermissionError else (28, "No space left on device")
    write_bytes = Path.write_bytes

    def half(self: Path, data: bytes) -> int:
        write_bytes(self, bytes(data)[:10])
        raise error(number, reason, str(self))

    monkeypatch.setattr(Path, "write_bytes", half)
    with Lab(brokers=1) as lab:
        path = tmp_path / "a.svg"
        path.write_text("before")
        with pytest.raises(kind) as refused:
            lab.export(path)
        assert f"{path}: {reason}" in str(refused.value)
        assert path.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_a_file_keeps_its_mode_and_links_their_target(tmp_path: Path) -> None:
    target, link = tmp_path / "real.parquet", tmp_path / "link.parquet"
    target.write_text("before")
    target.chmod(0o640)
    link.symlink_to(target)
    Trace().to_parquet(link)
    assert link.is_symlink() and target.read_bytes()[:4] == b"PAR1"
    assert target.stat().st_mode & 0o777 == 0o640
