"""The command line: what it prints, its exit status, and one sentence for what is wrong."""

import io
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from browser import needs_chromium
from labs import until_quiet
from prose import Prose
from rich.console import Console
from tables import tabled
from zookeepers import needed

from kafka_ctl import Lab, TopicPartition, Trace
from kafka_ctl.cli import commands as cli
from kafka_ctl.cli import demo
from kafka_ctl.errors import Unavailable
from kafka_ctl.paths import ROOT
from kafka_ctl.trace import Record

STORY = """\
# A broker dies.
lab brokers=3 generation=2.0 seed=7
create_topic orders partitions=2 replication_factor=3
settle
kill 1
settle
"""


class Printed(NamedTuple):
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str


Runner = Callable[..., Printed]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    """A function that runs a command in this process."""

    def run_command(*words: object) -> Printed:
        capsys.readouterr()
        return Printed(cli.status([str(word) for word in words]), *capsys.readouterr())

    return run_command


@pytest.fixture
def story(tmp_path: Path) -> Path:
    path = tmp_path / "story.txt"
    path.write_text(STORY)
    return path


def test_help_teaches(run: Runner) -> None:
    """Sections, every command with a sentence, and examples that name real commands."""
    reported = run("--help")
    assert reported.status == 0 and not reported.err
    places = [reported.out.index(f"\n{section}:") for section in cli.SECTIONS]
    assert places == sorted(places)
    for name, command in cli.app.commands.items():
        assert re.search(rf"^  {name} +\w", reported.out, re.M), name
        assert command.help and command.help.split(".")[0].split("\n")[0][:30] in " ".join(reported.out.split())
    assert set(re.findall(r"^ +kafka-ctl ([\w-]+)", cli.EXAMPLES, re.M)) <= set(cli.app.commands)


@pytest.mark.parametrize("name", sorted(cli.app.commands.keys() - {"test"}))
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """`--help` ends with 0, also where another program reads the arguments."""
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    assert not ended.value.code
    assert capsys.readouterr().out.lower().startswith(f"usage: kafka-ctl {name}")


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")  # where another test has imported the program
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("tools.chaos", ["[rounds] [seed]"]),
        ("tools.site.pins", ["newest versions"]),
        ("tools.notebooks", ["minutes [NOTEBOOK", "run [STARTER", "editions [--check] [--slides"]),
        ("tools.notebooks run", ["[starter ...]"]),
        ("benchmarks.engines", ["--plain"]),
        ("benchmarks.question_times", ["--write"]),
    ],
)
def test_programs_of_the_project_explain_themselves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str, words: list[str]
) -> None:
    """`python -m PROGRAM --help` ends with 0, and begins nothing."""
    module, *first = program.split()
    monkeypatch.setattr(sys, "argv", [module, *first, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    assert not ended.value.code
    assert f"usage: python -m {program}" in (helped := capsys.readouterr().out)
    assert [word for word in words if word not in helped] == []


@tabled
def test_a_wrong_call_ends_with_2(run: Runner, words: list[str], logged: str) -> None:
    """And with what is wrong, without a traceback."""
    reported = run(*words)
    assert reported.status == 2
    assert logged in reported.err
    assert "Traceback" not in reported.err


@tabled
def test_a_wrong_story_is_one_sentence(prose: Prose, run: Runner, tmp_path: Path, story: str) -> None:
    """With the line it is about."""
    path = tmp_path / "story.txt"
    path.write_text(story)
    reported = run("run", path)
    assert (reported.status, reported.out) == (2, "")
    assert reported.err.startswith("kafka-ctl: ") and reported.err.count("\n") == 1
    prose(reported.err)


def test_run_prints_the_trace(run: Runner, story: Path) -> None:
    """The same text as the lab's, and all of it on demand."""
    reported = run("run", story)
    with Lab.replay(story) as lab:
        assert reported.out == lab.trace.text() + "\n"
        assert run("run", story, "--all").out == lab.trace.text("all") + "\n"
        assert run("run", story, "--log", "controller").out == lab.trace.kafka_log("controller")
    assert reported.status == 0 and "fault         fault       kill" in reported.out


def test_run_prints_kafkas_log_of_one_broker(run: Runner, story: Path) -> None:
    """Only the lines its process writes."""
    reported = run("run", story, "--log", "state-change", "--broker", 3)
    lines = reported.out.splitlines()
    assert reported.status == 0 and len(lines) > 5
    assert {re.search(r"\[(?:Broker|Controller) id=(\d)", line)[1] for line in lines} == {"3"}
    unknown = run("run", story, "--log", "state-change", "--broker", 7)
    assert unknown.status == 2 and "unknown broker 7; known: 1, 2, 3" in unknown.err


def test_run_plays_golden_stories(run: Runner) -> None:
    """What they record and show between their commands is read over."""
    reported = run("run", ROOT / "tests/traces/broker_failure.txt")
    assert reported.status == 0 and "broker=1" in reported.out


def test_run_on_a_real_zookeeper(run: Runner, tmp_path: Path) -> None:
    """The same story in real time."""
    needed()
    path = tmp_path / "story.txt"
    path.write_text("lab brokers=2 config='{\"zookeeper.session.timeout.ms\":1500}'\ncreate_topic orders\nsettle\n")
    reported = run("run", path, "--zookeeper", "embedded")
    assert reported.status == 0 and re.search(r"orders-0 +New -> Online|orders-0.*-> Online", reported.out)


def test_render_writes_a_film(run: Runner, story: Path, tmp_path: Path) -> None:
    """The file is named; another ending, view or folder is refused."""
    film = tmp_path / "film.svg"
    reported = run("render", story, "-o", film, "--view", "replica")
    assert (reported.status, reported.out) == (0, f"{film}\n")
    assert film.read_text("utf-8").lstrip().startswith("<")
    assert run("render", story, "-o", tmp_path / "film.html").status == 0
    assert '"asks":true' in (tmp_path / "film.html").read_text("utf-8"), "the page answers why"
    assert run("render", story, "-o", tmp_path / "film.doc").status == 2
    assert "unknown view 'x'; known: cluster" in run("render", story, "-o", film, "--view", "x").err
    nowhere = run("render", story, "-o", tmp_path / "no/film.svg")
    assert nowhere.status == 2 and nowhere.err == f"kafka-ctl: {tmp_path}/no/film.svg: No such file or directory\n"


@needs_chromium
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_picture_that_is_interrupted(story: Path, tmp_path: Path) -> None:
    """Ctrl-C goes to the browser's driver as well; there is one line, and no picture is drawn after it."""
    command = [sys.executable, "-m", "kafka_ctl", "render", str(story), "-o", str(tmp_path / "film.gif")]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None and "picture 0 of" in process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        rest = [line for line in process.stderr.read().splitlines() if line and not line.startswith("picture ")]
        assert (process.wait(60), rest) == (130, ["kafka-ctl: stopped"])


def test_what_is_missing_ends_with_1(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cure is part of the sentence."""

    def serve(port: int | None, data: str | None) -> None:
        raise Unavailable(f"no Java: {port}, {data}")

    monkeypatch.setattr("kafka_ctl.zookeeper.real.server.serve", serve)
    reported = run("zookeeper", "--port", 4000)
    assert (reported.status, reported.err) == (1, "kafka-ctl: no Java: 4000, None\n")


@pytest.mark.parametrize(
    ("command", "place", "stand_in"),
    [
        ("diagrams", "tools.diagrams.check", lambda check: check),
        ("docs", "tools.reference.page", lambda check: lambda app: SimpleNamespace(check=check)),
    ],
)
def test_checks_end_with_1_when_something_is_stale(
    prose: Prose, run: Runner, monkeypatch: pytest.MonkeyPatch, command: str, place: str, stand_in: Callable
) -> None:
    """One line for each problem, with the cure; 0 when there is none."""
    problems = ["a is stale", "b is missing"]
    monkeypatch.setattr(place, stand_in(lambda folder: problems))
    reported = run(command, "--check")
    assert reported.status == 1
    prose(reported.err)
    problems.clear()
    assert run(command, "--check").status == 0


def test_arguments_are_forwarded(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lab` and `test` hand everything on, options and `--help` included, and return the status."""
    for name, module in (("lab", "kafka_ctl.jupyter.launch"), ("test", "tools.check")):
        asked: list[list[str]] = []
        monkeypatch.setattr(f"{module}.main", lambda argv, asked=asked: asked.append(argv) or 3)
        assert run(name, "--check", "-k", "x y", "--help").status == 3
        assert asked == [["--check", "-k", "x y", "--help"]]


def test_an_interrupt_is_no_traceback(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with 130."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_ctl.zookeeper.real.server.serve", interrupted)
    reported = run("zookeeper")
    assert reported.status == 130 and reported.err.strip() == "kafka-ctl: stopped"


def test_an_interrupt_of_the_imports_is_no_traceback() -> None:
    """Where Ctrl-C comes before the command line is there."""
    early = """
import sys

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from kafka_ctl.cli import main
main(["--version"])
"""
    done = subprocess.run([sys.executable, "-c", early], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "kafka-ctl: stopped\n")


def test_a_reader_that_has_seen_enough(story: Path) -> None:
    """`kafka-ctl run STORY | head -1` prints no error."""
    command = [sys.executable, "-m", "kafka_ctl", "run", str(story), "--all"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


def test_an_output_without_arrows() -> None:
    """What its encoding does not have is printed as an escape."""
    command, environ = [sys.executable, "-m", "kafka_ctl", "demo"], {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "\n\\u2192 Broker " in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
@pytest.mark.parametrize(("words", "ended"), [("on-call 17", 1), ("wire -", 2)])
def test_a_closed_input_is_an_empty_one(words: str, ended: int) -> None:
    command = ["sh", "-c", f'"$0" -m kafka_ctl {words} <&-', sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == ended and "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_zookeeper_runs_in_the_foreground(tmp_path: Path) -> None:
    """It prints its address, answers there, and ends with Ctrl-C."""
    needed()
    command = [sys.executable, "-m", "kafka_ctl", "zookeeper", "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        address = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert address
        socket.create_connection(("127.0.0.1", int(address[1])), 5).close()
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert (tmp_path / "data").is_dir()


# The demo.


def test_the_demo_tells_the_story(prose: Prose, run: Runner) -> None:
    """Four acts, the epoch rises, nobody waits; the same text every time."""
    reported = run("demo")
    assert reported.status == 0
    acts = re.findall(r"^(\d)\. (.+?) ─", reported.out, re.M)
    assert [n for n, _ in acts] == ["1", "2", "3", "4"]
    assert "the race is lost" in reported.out.split("2. A topic")[0]
    first = re.search(r"→ Broker (\d) is the controller, with epoch 1", reported.out)
    assert first and acts[2][1] == f"The controller, broker {first[1]}, dies"
    prose(reported.out)
    assert run("demo", "--fast").out == reported.out


def test_the_demo_on_a_real_zookeeper(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same acts in real time."""
    needed()
    monkeypatch.setitem(demo.SETTINGS, "zookeeper.session.timeout.ms", 6000)
    monkeypatch.setitem(demo.SETTINGS, "replica.lag.time.max.ms", 500)
    monkeypatch.setattr("kafka_ctl.brokers.leader.PROPAGATION_CHECK", 0.1)
    monkeypatch.setattr("kafka_ctl.brokers.leader.PROPAGATION_QUIET", 0.2)
    reported = run("demo", "--zookeeper", "embedded")
    assert reported.status == 0
    assert "rose from 1 to 2" in " ".join(reported.out.split())


def test_the_demo_has_colours_and_pauses_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a person reads, it waits after each line."""
    slept: list[float] = []
    monkeypatch.setattr("kafka_ctl.cli.demo.time.sleep", slept.append)
    console = Console(force_terminal=True, record=True, width=100, color_system="truecolor", file=io.StringIO())
    demo.play("memory", "2.0", console, pause=0.1)
    assert len(slept) > 50 and min(slept) == pytest.approx(0.1)
    assert "\x1b[1;32mcontroller" in console.export_text(styles=True)


def test_outages_are_measured_from_records() -> None:
    """From the last answer of the old leader to the next leader's beginning; 0 if that came first, endless if never."""
    a, b, c = (TopicPartition("t", n) for n in range(3))

    def leads(ms: float, broker: int, tp: TopicPartition) -> Record:
        return Record(0, ms, f"broker-{broker}", "broker", "become-leader", *tp, broker)

    reported = [leads(1, 1, a), leads(5, 2, b), Record(0, 10, "fault", "fault", "kill", broker=1), leads(25, 3, a)]
    trace = Trace(records=[r._replace(seq=n) for n, r in enumerate(reported)])
    assert demo.outages(trace, 1, [a, b, c]) == {a: 15, b: 0, c: float("inf")}


@pytest.mark.parametrize("acts", [True, False])
def test_a_broker_that_leads_again_ends_its_own_outage(generation: str, acts: bool) -> None:
    """Restarted so fast that a new controller never saw it gone, a broker is told again that it leads."""
    with Lab(3, generation=generation, seed=7) as lab:
        until_quiet(lab.create_topic, "orders", 6, 3)
        leaving = next(id for id, broker in lab.brokers.items() if broker.is_controller is acts)
        led, before = lab.brokers[leaving].leads, len(lab.trace)
        until_quiet(lab.bounce, leaving)
        for since in (0, before):
            found = demo.outages(lab.trace, leaving, led, since)
            assert (
                led and set(found) == set(led) and all(100 < ms < 120 for ms in found.values())
            )  # `Costs.stop`, and the start


def test_a_wrong_generation_is_not_a_fault_of_the_plan(run: Runner, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text("{}")
    asked = ["--zookeeper", "127.0.0.1:1", "--reassignment-json-file", str(plan), "--generation", "9"]
    reported = run("reassign", "verify", *asked)
    assert reported.status == 2 and "'--generation'" in reported.err and "plan.json" not in reported.err


def test_a_wrong_command_has_near_ones(run: Runner, prose: Prose) -> None:
    """Also inside `history` and `reassign`."""
    for words in (["serv"], ["history", "aks"], ["xyzzy"], ["reassign", "verfy"]):
        reported = run(*words)
        assert reported.status == 2 and not reported.out
        prose(reported.err.strip())
