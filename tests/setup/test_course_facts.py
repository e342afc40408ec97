"""Facts about Kafka that lessons state, run in the kit or held against a recording's text; one definition per word."""

import re
from pathlib import Path

import nbformat
import pytest
from tables import pairs

from kafka_ctl import Costs, Lab
from kafka_ctl.paths import ROOT
from kafka_ctl_course import quiet_lab
from tools import notebooks

LESSONS = notebooks.lessons()
CALM = {"seed": 7, "costs": Costs(boot=0.0005, zookeeper_tick=0), "config": {"auto.leader.rebalance.enable": False}}
FIDELITY = "](../docs/fidelity.md#what-is-not-compared-and-why)"
MEASURED = re.compile(r"(?<![\w.,/-])\d+\.\d+ (?:ms|s|seconds)\b")
"""A time in prose that a run has measured."""
CONTRADICTED = pairs("course_facts_contradicted.txt")
"""What a lesson once said, and Kafka's source or a run contradicts: the pattern of the sentence, and where that is."""


def prose(path: Path) -> str:
    """All that a lesson says, its notes for instructors included."""
    return "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown")


def orders(brokers: int = 4, **more: object) -> Lab:
    lab = Lab(brokers=brokers, **CALM | more)  # type: ignore[arg-type]
    lab.create_topic("orders", assignment={0: [1, 2, 3]})
    lab.settle()
    return lab


@pytest.mark.parametrize("version", ["0.10", "2.0", "2.4"])
def test_the_leader_epoch_rises_with_writes_of_the_controller_only(version: str) -> None:
    """Without an election, too, when a follower dies; not when the leader shrinks or expands the ISR."""
    lab = orders(generation=version)
    lab.lag(3, "orders", 0)
    lab.settle()
    assert (lab.partition("orders", 0).isr, lab.partition("orders", 0).leader_epoch) == ((1, 2), 0)
    lab.catch_up(3)
    lab.settle()
    assert (lab.partition("orders", 0).isr, lab.partition("orders", 0).leader_epoch) == ((1, 2, 3), 0)
    lab.kill(2)
    lab.settle()
    assert (lab.partition("orders", 0).leader, lab.partition("orders", 0).leader_epoch) == (1, 1)


def test_leader_and_isr_carries_addresses() -> None:
    """Of the leaders that it names, in every version."""
    from kafka_ctl.wire.schema import message_type

    for version in range(5):
        names = {field.name for field in message_type(4, version).body.fields}
        assert names & {"live_leaders"}, version


@pytest.mark.parametrize("version", ["2.0"])
def test_a_stop_replica_for_a_dead_broker_is_not_sent(version: str) -> None:
    lab = orders(generation=version)
    since = len(lab.trace)
    lab.kill(3)
    lab.settle()
    assert not lab.trace[since:].slice(kind="request", action="StopReplica", target="sent")
    assert "since it is offline" in lab.trace.kafka_log("controller")


def test_undoing_an_edit_leaves_the_leader_epoch() -> None:
    """Brokers and ZooKeeper agree again after the next failover, without a new leader epoch."""
    lab = orders(generation="2.4")
    path = "/brokers/topics/orders/partitions/0/state"
    before = lab.znodes()[path][0].decode()
    for text in (before.replace('"leader":1', '"leader":2'), before):
        lab.write_znode(path, text)
        lab.delete_controller()
        lab.settle()
    assert lab.partition("orders", 0).leader_epoch == 0 and lab.produce("orders", 0).acknowledged


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_no_lesson_contradicts_kafkas_source(path: Path) -> None:
    text = " ".join(prose(path).split())
    assert [reason for pattern, reason in CONTRADICTED.items() if re.search(pattern, text)] == []


def test_the_figures_of_a_published_measurement_are_the_same_everywhere() -> None:
    """apache/kafka#3765: the mean of its author's runs is 63 s before the change and 17 s after it."""
    cited = [text for path in LESSONS for text in prose(path).splitlines() if "pull/3765" in text]
    assert len(cited) == 2 and all("63 s" in text and "17 s" in text for text in cited)


def test_a_broker_that_stops_leads_for_as_long_as_lesson_08_says() -> None:
    """From the moment in which others lead, until it closes its connections."""
    lab = quiet_lab(costs={"stop": 10})
    lab.create_topic("orders", partitions=6, replication_factor=3)
    lab.settle()
    since = len(lab.trace)
    lab.shutdown(1)
    led = lab.trace.slice(since, kind="broker", action="become-leader")[0]
    (closes,) = lab.trace.slice(since, kind="broker", action="shutting-down", broker=1)
    assert f"here {closes.time_ms - led.time_ms:.0f} ms" in prose(LESSONS[7])


def test_a_client_of_a_single_zookeeper_server_waits_a_second_before_it_connects_again() -> None:
    """StaticHostProvider@3.4.10:99 waits only if there is no other server, and both lessons that measure it say so."""
    for seed in range(3):
        lab = orders(seed=seed)
        lab.expire_session(1)
        lab.settle()
        expired, back = (lab.trace.slice(kind="zk", action=action)[-1].time_ms for action in ("expired", "reconnected"))
        assert 1000 <= back - expired <= 2100
    for number in ("04", "09"):
        (path,) = (path for path in LESSONS if path.name.startswith(number))
        assert "ne second" in prose(path) and "`zookeeper.connect` names" in prose(path)


def test_a_broker_is_in_sync_when_lesson_15_says_so() -> None:
    with Lab(**CALM | {"config": {"auto.leader.rebalance.enable": True}}) as lab:  # type: ignore[arg-type]
        lab.create_topic("orders", partitions=12, replication_factor=3)
        for command in ("kill 1", "settle", "start 1"):
            lab.do(command)
        lab.run_until(lambda lab: all(1 in p.isr for p in lab.partitions()))
        assert 6 < lab.now < 7
    (path,) = (path for path in LESSONS if path.name.startswith("15"))
    assert "seventh second" in prose(path)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_measured_time_links_to_what_is_simpler_here(path: Path) -> None:
    """The lab's clock adds up costs: a lesson that states a time to the fraction says where that is written."""
    text = prose(path)
    assert not MEASURED.search(text) or FIDELITY in text


def test_the_page_has_the_section_that_lessons_link_to() -> None:
    assert "\n## What is not compared, and why\n" in (ROOT / "docs/fidelity.md").read_text("utf-8")


ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/glossary.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| term", "| ---"))
]
GLOSSARY = {term.strip().lower(): (row[1], row[2]) for row in ROWS for term in row[0].split(",")}
"""By term, in small letters: its Chinese term and its definition."""
BOLD = re.compile(r"\*\*(.+?)\*\*")
DEFINED = re.compile(r"[^.:]{0,24}: (?!lesson \d\d)(.*)")
"""What follows a bold word that is defined there: the rest of its name, a colon and the definition."""


def words(path: Path) -> list[tuple[str, str]]:
    """The bold words of a lesson's list of words, with the definition that follows each; "" where none does."""
    (cell,) = (c for c in nbformat.read(path, as_version=4).cells if c.source.startswith("## The words"))
    found = []
    for line in (line for line in cell.source.splitlines() if line.startswith("- ")):
        for bold in BOLD.finditer(line):
            defined = DEFINED.match(line[bold.end() :])
            found.append((bold[1].replace("`", "").lower(), defined[1] if defined else ""))
    return found


INTRODUCED = re.compile(
    r"(?:\b[Aa]n? |^- |^\d\. |\()(?:\*\*(?!\*)([^*\n]+)\*\*|\*(?!\*)([^*\n]+)\*)|\b[Tt]he \*\*([^*\n]+)\*\*",
    re.MULTILINE,
)
"""What stands in bold or italics as a word that is new: after an article, in brackets, at the head of a list's item."""
STRESSED = frozenset({"all", "ignoring leaderandisr", "new controller", "time", "timer", "tool", "try", "try again"})
"""What stands so for its weight in the sentence."""


def introduced(path: Path) -> set[str]:
    """The words of up to three words that the prose of a lesson introduces outside its list of words."""
    _, *cells = nbformat.read(path, as_version=4).cells
    prose = [
        cell.source
        for cell in cells
        if cell.cell_type == "markdown"
        and not cell.source.startswith("## The words")
        and notebooks.INSTRUCTOR not in notebooks.tags(cell)
    ]
    found = {"".join(groups) for groups in INTRODUCED.findall("\n".join(prose))}
    names = {each.strip(".,:?!").replace("`", "").lower() for each in found}
    return {name for name in names if len(name.split()) <= 3 and not re.match(r"\d", name)} - STRESSED


def row_of(word: str) -> tuple[str, str] | None:
    """The glossary's row of a word; a plural has the row of its singular."""
    return GLOSSARY.get(word) or GLOSSARY.get(word.removesuffix("s"))


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_word_of_a_lesson_is_in_the_glossary_with_its_chinese_term(path: Path) -> None:
    """Of its list of words, and what its prose introduces."""
    assert len(words(path)) >= 5
    given = {word for word, _ in words(path)} | introduced(path)
    assert [word for word in given if (row := row_of(word)) is None or not row[0].strip()] == []


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_defines_a_word_as_the_glossary_does(path: Path) -> None:
    """It begins with the glossary's definition, and may go on; so no two lessons define a word differently."""
    wrong = []
    for word, definition in words(path):
        row = row_of(word)
        if definition and row is not None and not definition.startswith(row[1]):
            wrong.append(f"{word}: {definition!r} is not {row[1]!r}")
    assert wrong == []
