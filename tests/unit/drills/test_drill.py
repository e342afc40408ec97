"""What if: outcomes where the truth is known, the same whoever plays them, and what cannot be asked."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from labs import play, settled, until_quiet
from prose import Prose
from tables import tabled

from kafka_ctl import Lab, drill
from kafka_ctl.cli.commands import status
from kafka_ctl.drills.drill import interval
from kafka_ctl.drills.scenario import scenarios
from kafka_ctl.errors import BadInput, UnknownName

DESCRIBED = """\
Topic: orders	PartitionCount: 2	ReplicationFactor: 3	Configs: min.insync.replicas=2
	Topic: orders	Partition: 0	Leader: 1	Replicas: 1,2,3	Isr: 1,2,3
	Topic: orders	Partition: 1	Leader: 2	Replicas: 2,3,1	Isr: 2,3,1
Topic: solo	PartitionCount: 1	ReplicationFactor: 2	Configs:
	Topic: solo	Partition: 0	Leader: 3	Replicas: 3,1	Isr: 3
"""
RACKS = {1: "a", 2: "b", 3: "<b>"}


def described(generation: str = "2.0", **options: object) -> Lab:
    """Three brokers in three racks; `solo-0` is in sync on broker 3 only."""
    return Lab.from_description(DESCRIBED, generation=generation, brokers=RACKS, **options)


def test_broker_by_broker(generation: str) -> None:
    """The numbers can be counted by hand, and the session takes its timeout of 6 s."""
    found = drill(described(generation, costs={"zookeeper_tick": 0.0}), "any one")
    assert found[0].scenario.name == "broker 3 dies"
    unclean = generation == "0.10"  # its default
    assert (found[0].offline, found[0].unclean_elections) == (not unclean, unclean)
    assert [(o.offline, o.below_min_isr, o.interrupted) for o in found[1:]] == [(0, 0, 1), (0, 0, 1)]
    assert [o.session for o in found] == pytest.approx([6.0] * 3, abs=0.1)
    assert all(o.seconds >= o.longest >= 0 for o in found)
    assert found[0].leaders == {1: 1 + unclean, 2: 1}
    assert repr(found) == "Drill of 3 scenarios"


def test_pairs_are_below_min_isr() -> None:
    """With two of three brokers dead, both partitions of orders have fewer in sync than 2."""
    lab = described()
    found = {o.scenario.name: o for o in drill(lab, "any two")}
    assert {name: (o.offline, o.below_min_isr) for name, o in found.items()} == {
        "brokers 1 and 2 die": (0, 2),
        "brokers 1 and 3 die": (1, 2),
        "brokers 2 and 3 die": (1, 2),
    }
    assert found["brokers 1 and 2 die"].skew == 1.0


@pytest.mark.parametrize("enabled", [True, False])
def test_a_deletion_interrupts_nothing(generation: str, enabled: bool) -> None:
    """Its partitions are in none of Kafka's gauges; where topics cannot be deleted, they stay and count."""
    lab = described(generation, config={"delete.topic.enable": enabled, "unclean.leader.election.enable": False})
    found = drill(lab, "delete_topic orders", "kill 3\ndelete_topic solo\nkill 1", "delete_topic solo\nkill 3")
    assert {o.scenario.commands[0]: (o.offline, o.interrupted) for o in found} == {
        "delete_topic orders": (0, 0),
        "kill 3": (1 - enabled, 2),
        "delete_topic solo": (1 - enabled, 1 - enabled),
    }
    with lab.fork() as waiting:
        play(waiting, "kill 3; delete_topic solo; settle")
        (row,) = drill(waiting, "broker 2")
        assert (row.offline, row.interrupted) == ((0, 1) if enabled else (1, 2))


def test_a_command_that_is_refused_is_named_once(prose: Prose) -> None:
    for question in ("kill", "kill 99", "settle\nkill 99"):
        prose.refuses(BadInput, drill, described(), question)


def test_unclean_election_on_and_off() -> None:
    """Off, a partition waits for its last replica in sync; on, another one leads, and records may be lost."""
    found = drill(described(), 3, unclean="both")
    assert [(o.unclean, o.offline, o.unclean_elections) for o in found] == [(False, 1, 0), (True, 0, 1)]


OFFLINE = """\
Topic: orders	PartitionCount: 2	ReplicationFactor: 2	Configs:
	Topic: orders	Partition: 0	Leader: 3	Replicas: 1,3	Isr: 1,3
	Topic: orders	Partition: 1	Leader: none	Replicas: 2,3	Isr: 2
"""


def test_unclean_election_where_a_partition_is_offline() -> None:
    """The brokers that are alive with it off are alive with it on: broker 3 is, and leads `orders-1` at once."""
    found = drill(Lab.from_description(OFFLINE), 1, unclean="both")
    assert [(o.unclean, o.offline, o.leaders) for o in found] == [(False, 1, {3: 1}), (True, 0, {3: 2})]
    assert [found.lab(row).brokers[2].state for row in range(2)] == ["down", "down"]
    assert (
        "unclean election on: partitions offline 0, below min.insync.replicas 0, unclean elections 1" in found.summary
    )


def test_what_is_wrong_before(prose: Prose) -> None:
    """A partition that was offline is interrupted in every row; the summary has the state before."""
    lab = Lab(brokers=3, generation="2.4", seed=1)
    lab.create_topic("orders", assignment={0: [1, 2]})
    until_quiet(lab.create_topic, "solo", assignment={0: [3]})
    for broker in (1, 2):
        until_quiet(lab.kill, broker)
    until_quiet(lab.start, 1)
    found = drill(lab, 3, unclean="both")
    assert [(o.unclean, o.offline, o.interrupted) for o in found] == [(False, 2, 2), (True, 1, 1)]
    prose(found.summary)


def test_a_rack() -> None:
    """All of its brokers die at once, as if each was named; a plan, a restart, and any other command can be asked."""
    lab = settled("2.0", {"orders": {0: [1, 2], 1: [2, 3]}, "one": {0: [2]}}, 3, {})
    until_quiet(lab.add_broker, 4, "b")
    assert [s.commands for s in scenarios(lab, "any rack")] == [("kill 4", "settle")]
    found = {o.scenario.name: o for o in drill(lab, "rolling restart 2,1", {("orders", 0): [3, 4]}, "shutdown 2")}
    restart, plan, stopped = found["rolling restart 2,1"], found["the plan"], found["shutdown 2"]
    assert (restart.offline, restart.interrupted, restart.session) == (0, 1, 0.0)
    assert (plan.interrupted, plan.leaders[1]) == (0, 0)
    assert (stopped.offline, stopped.interrupted) == (1, 1)
    plans = drill(lab, {("orders", 0): [3, 4]}, {("orders", 0): [4, 3]}, "1")
    assert {o.scenario.name for o in plans} == {"the plan (1)", "the plan (2)", "broker 1 dies"}


@tabled
def test_what_is_made_or_fails_meanwhile_counts(question: str, offline: int, below: int, interrupted: int) -> None:
    """Partitions and settings of the scenario itself, and the leaders in a log directory that fails."""
    (row,) = drill(described(), question)
    assert (row.offline, row.below_min_isr, row.interrupted) == (offline, below, interrupted)


@pytest.mark.parametrize(("generation", "note"), [("2.0", "I18 KAFKA-9212"), ("2.4", "")])
def test_a_broken_invariant_has_its_ticket(generation: str, note: str) -> None:
    """A plan that only changes the order of the replicas breaks I18 in real 2.0, and not in 2.4."""
    (row,) = drill(described(generation), {("orders", 0): [2, 3, 1]})
    assert (len(row.violations), row.note) == (bool(note), note)


def test_a_rack_with_a_dollar() -> None:
    """Names are text in a picture."""
    drill(Lab(brokers={1: "$_$"}), "any rack").plot().html()


def test_everybody_finds_the_same() -> None:
    """A forked process, a replay, other processes; the lab itself is left as it was."""
    lab = described()
    before = lab.story, len(lab.trace)
    forked = drill(lab, "any one", "any two", jobs=1)
    over = threading.Event()
    waiting = threading.Thread(target=over.wait)
    waiting.start()
    replayed = drill(lab, "any one", "any two", jobs=1)
    over.set()
    waiting.join()
    assert forked.outcomes == replayed.outcomes == drill(lab, "any one", "any two", jobs=2).outcomes
    assert (lab.story, len(lab.trace)) == before


def test_a_row_is_a_story() -> None:
    """What a row says is what its lab shows."""
    found = drill(described(), "any one", "rolling restart")
    for row, outcome in enumerate(found):
        lab = found.lab(row)
        led = [p.leader for p in lab.partitions()]
        assert {id: led.count(id) for id in outcome.leaders} == outcome.leaders
        assert [str(command) for command in lab.commands] == list(outcome.scenario.commands)
    assert found.link(0).startswith("try.html#story=lab+brokers")


def test_a_table(prose: Prose) -> None:
    """Ranked, with the rack's name as text; and a picture with the same in words."""
    found = drill(described(), "any rack", "rolling restart")
    prose(str(found))
    assert "rack &lt;b&gt; dies" in found._repr_html_()
    prose(found.plot().alt)


def test_a_sample_states_its_confidence(prose: Prose) -> None:
    """Drawn by the seed, and never more than was asked for."""
    lab = described()
    found = drill(lab, "any two", sample=2, seed=1)
    assert [o.scenario for o in found] == [o.scenario for o in drill(lab, "any two", sample=2, seed=1)]
    prose(found.summary)
    assert drill(lab, "any two", sample=3).summary == ""


@tabled
def test_an_interval(hits: int, drawn: int, low: float, high: float) -> None:
    """Wilson's, as other programs have it."""
    assert interval(hits, drawn) == pytest.approx((low, high), abs=5e-4)


@tabled
def test_what_cannot_be_asked(question: object, prose: Prose) -> None:
    """Brokers, racks, plans and questions that do not exist."""
    with prose.refused(BadInput):
        drill(described(), question)  # type: ignore[arg-type]


def test_a_question_of_nothing(prose: Prose) -> None:
    """No racks, also beside another question; too few brokers."""
    lab = Lab(brokers=1)
    prose.refuses(BadInput, drill, lab, "any one", "any rack")
    prose.refuses(BadInput, drill, lab, "any two")


@tabled
def test_wrong_options(options: dict, prose: Prose) -> None:
    """Each is named with what is allowed."""
    prose.refuses(BadInput, drill, described(), **options)


@pytest.mark.parametrize("more", [0, 1])
def test_a_command_that_is_refused(more: int, monkeypatch: pytest.MonkeyPatch, prose: Prose) -> None:
    """With a second thread the lab is replayed, and not forked: the sentence is the same."""
    threads = threading.active_count() + more
    monkeypatch.setattr(threading, "active_count", lambda: threads)
    prose.refuses(BadInput, drill, described(), "kill 1\nshutdown 1")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], prose: Prose) -> None:
    """A description is drilled, and each row can be played."""
    file = tmp_path / "mine.txt"
    file.write_text(DESCRIBED, "utf-8")
    racks = ["--rack", "1=a", "--rack", "2=a"]
    stories = ["--stories", str(tmp_path / "stories"), "--plot", str(tmp_path / "plot.svg")]
    assert status(["drill", str(file), "rack a", "any one", "--config", "min.insync.replicas=2", *racks, *stories]) == 0
    assert "rack a dies" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "stories").iterdir()) == ["01.txt", "02.txt", "03.txt", "04.txt"]
    assert (tmp_path / "plot.svg").exists()
    assert status(["run", str(tmp_path / "stories" / "01.txt")]) == 0
    capsys.readouterr()
    for wrong in (
        ["broker 9"],
        ["--rack", "a"],
        ["--rack", "9=a"],
        ["--config", "x"],
        ["--plot", "x.foo"],
        ["--plot", "no/x.svg"],
        ["--stories", f"{file}/x"],
    ):
        assert status(["drill", str(file), *wrong]) == 2
        prose(capsys.readouterr().err.strip())
    for wrong in (["--rack", "9" * 5000 + "=a"], ["--config", "a=" + "[" * 100_000], ["9" * 5000]):
        assert status(["drill", str(file), *wrong]) == 2
    (tmp_path / "plan.json").write_text('{"version":1,', "utf-8")
    assert status(["drill", str(file), str(tmp_path / "plan.json")]) == 2
    assert "plan.json': The input string is not a valid JSON" in capsys.readouterr().err
    assert status(["drill", "[::1]:2181", "--rack", "1=a"]) == 2
    assert "--rack" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["#", "show orders"])
def test_a_text_without_a_command_is_no_drill(text: str) -> None:
    with Lab() as lab, pytest.raises(UnknownName, match="unknown drill"):
        drill(lab, text, jobs=1)


SCRIPT = """
from kafka_ctl import Lab, drill
{guard}
    lab = Lab(brokers=[1, 2, 3])
    lab.create_topic("o", 4, 3)
    lab.settle()
    print(len(drill(lab, "any two", jobs=2)))
"""


@pytest.mark.parametrize(
    ("guard", "answer"), [('if __name__ == "__main__":', "3"), ("if True:", "processes cannot import this script")]
)
def test_a_script_that_processes_cannot_import_is_refused(guard: str, answer: str, tmp_path: Path) -> None:
    """They would run it again, and a pool would replace those that fail, without end."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(guard=guard))
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert answer in (ended.stdout or ended.stderr) and ended.stderr.count("Traceback") == (not ended.stdout)
