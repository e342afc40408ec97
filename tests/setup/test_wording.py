"""Our words, held over whatever is in the tree: our own sentences are golden text, retired words stay away."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import prose
import pytest
from tree import texts

from kafka_ctl.paths import ROOT

TESTS = sorted((ROOT / "tests").rglob("*.py"))

WORD = re.compile(r"(?<![\w.\[(/=<{$`-])[A-Za-z][a-z]+(?:'[a-z]+)?(?![\w(\[/=}{`]|\.\w|-\w)")
"""A plain word: no name of code, no path, no value."""
GLUE = frozenset("an are at by from has in is it no not of that the to with".split())
"""One of these is in every sentence, and in no list of names."""
MOST = 4
"""Words that may stand in a test to find a place in a text; what is longer is a sentence."""

KAFKAS_OWN = """
    collides with existing topics | marked for deletion | The partition does not exist | The topic is being deleted
    must be equal or greater | not greater than reserved | Failed to alter dir for | Not all brokers have rack
    There is an existing assignment | duplicate entries | No partition reassignment is in progress
    A partition reassignment is in progress | Reassignment of partition | Reassignment of replica | throttle limit was
    Successfully started reassignment | None of the specified partition | The input string is not a valid JSON
    Save this to use as | proposed assignment contains | bootstrap-server needs to be provided | Assigned replicas
    is not found in any live log dir | being moved | Due to limitations in metric names
    Leader election not needed | leader election has been enabled | Failed to elect leader | No broker in ISR
    Controller moved to another broker | Controller epoch zkVersion check | went through a soft failure
    Attempt to reassign partition | to be reassigned is already | reassign a partition that doesn't exist
    cannot be moved to | Aborting state change | Failed to change state | LeaderAndIsr information doesn't exist
    doesn't match stored | Failed to match broker.id | A broker joins the cluster | does not exist.
    Received controlled shutdown request | Are all replicas for topic | matches the current leader epoch
    serve as the new controller | changed partition [ | being reassigned to catch up | error during state change
    fails to send request | Reconnecting to broker | was disconnected before the response | was unsuccessful
"""
"""What Kafka says, not we: such text stands in the tests themselves, exactly."""
OTHERS_OWN = ("No such file or directory", "Compressed file ended before")
"""What the system and Python say."""
LOG_LINE = re.compile(r"(?:\[[\d-]+ [\d:,]+\] )?(?:TRACE|DEBUG|INFO|WARN|ERROR) ")


def expected(function: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts that a test expects: in its asserts, in lists that these compare with, and as `match` of an error."""
    asserted = [node.test for node in ast.walk(function) if isinstance(node, ast.Assert)]
    compared = [side for test in asserted if isinstance(test, ast.Compare) for side in (test.left, *test.comparators)]
    names = {side.id for side in compared if isinstance(side, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and {ast.unparse(target) for target in node.targets} & names:
            asserted += (
                [node.value] if isinstance(node.value, (ast.Constant, ast.JoinedStr, ast.List, ast.BinOp)) else []
            )
        elif isinstance(node, ast.Call):
            asserted += [keyword.value for keyword in node.keywords if keyword.arg == "match"]
    for part in asserted:
        yield from texts_of(part)


def texts_of(part: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts in a piece of code, with their lines; values stand as 0 in them."""
    if isinstance(part, ast.JoinedStr):
        pieces = (str(piece.value) if isinstance(piece, ast.Constant) else "0" for piece in part.values)
        yield part.lineno, "".join(pieces)
    elif isinstance(part, ast.Constant) and isinstance(part.value, str):
        yield part.lineno, part.value
    else:
        for child in ast.iter_child_nodes(part):
            yield from texts_of(child)


def is_code(text: str) -> bool:
    """Whether this is a line of Python, as "why?" shows it."""
    for ending in ("", " pass", ")", " pass\nelse: pass"):
        try:
            ast.parse(text.strip() + ending)
        except SyntaxError:
            continue
        return True
    return False


def is_sentence(text: str) -> bool:
    """Whether a text is a sentence of ours."""
    longest = max((WORD.findall(line) for line in text.split("\n")), key=len)
    if len(longest) <= MOST or not GLUE & {word.lower() for word in longest}:
        return False
    others = [part.strip() for line in KAFKAS_OWN.split("\n") for part in line.split("|") if part.strip()]
    return not (LOG_LINE.match(text) or is_code(text) or any(own in text for own in (*others, *OTHERS_OWN)))


def test_our_own_sentences_are_golden_text() -> None:
    """A test that expects a sentence of ours takes `prose`, which `--rewrite` writes; a few words find a place."""
    found = set()
    for path in TESTS:
        for function in (n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)):
            sentences = ((line, text) for line, text in expected(function) if is_sentence(text))
            found |= {f"{path.relative_to(ROOT)}:{line}: {text}" for line, text in sentences}
    assert sorted(found) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("broker 1 is running; start needs one that is down", True),
        ("the same facts from beginning to end", True),
        ("are in sync", False),
        ("if replica.broker not in assigned:", False),
        ("assignment batch deletion fence pipeline reassignment rebalance", False),
        ("Topic 'a' is already marked for deletion.", False),
        ("TRACE [Broker id=1] Cached leader info for partition orders-0 in response to UpdateMetadata", False),
    ],
)
def test_what_a_sentence_is(text: str, found: bool) -> None:
    assert is_sentence(text) is found


def test_golden_sentences_belong_to_tests() -> None:
    """Each file in `tests/prose` to a test file, each block to a test that takes `prose`; the run does the rest."""
    tests = {path.stem.removeprefix("test_"): path for path in (ROOT / "tests").rglob("test_*.py")}
    for golden in sorted((ROOT / "tests/prose").glob("*.txt")):
        assert golden.stem in tests, f"{golden.name} has no test file"
        taking = {
            node.name.removeprefix("test_").replace("_", " ")
            for node in ast.parse(tests[golden.stem].read_text("utf-8")).body
            if isinstance(node, ast.FunctionDef) and "prose" in {argument.arg for argument in node.args.args}
        }
        blocks = {name.partition(" [")[0] for name in prose.parse(golden.read_text("utf-8"))}
        assert blocks == taking, golden.name


RETIRED = {
    "wish": "request",
    "wishes": "requests",
    "wished": "requested",
    "doomed": "to be deleted",
    "told": "sent, notified, reported",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "mending": "fixing",
    "astray": "not on its preferred leader",
    "homecoming": "preferred leader recovery",
    "hopeless": "election blocked by",
    "laggard": "lagging follower",
    "laggards": "lagging followers",
    "asleep": "paused",
    "teller": "narrator",
    "tale": "description",
    "by and by": "later",
    "words_of": "fields_of",
    "leaders-come-home": "preferred-leaders-restored",
    "the-dead-do-not-lead": "no-dead-leader",
    "everybody-is-told": "metadata-propagated",
    "what-is-wished-happens": "admin-requests-complete",
    "comes-to-rest": "quiesces",
    "is_in_step": "is_caught_up",
    "go_at": "set_fetch_delay",
    "counts_in": "is_in_isr",
    "may_join": "can_join_isr",
    "expire_laggards": "maybe_shrink_isrs",
    "fall_asleep": "pause",
}
"""Words that this project once coined, and the field's own.

Actions in golden traces and names of Kafka's log messages keep theirs (`reassignment_told`, `all-agree`).
"""


def test_retired_words_do_not_return() -> None:
    """In code, docs, notebooks and messages; `docs/glossary.md` has the words that are used."""
    ours = re.compile(r"(?<![a-zA-Z_-])(?:" + "|".join(RETIRED) + r")(?![a-zA-Z-])", re.IGNORECASE)
    places = ("kafka_ctl/", "tools/", "docs/", "notebooks/", "benchmarks/")
    found = {name: ours.findall(text) for name, text in texts() if name.startswith(places) and ours.search(text)}
    assert not found, f"instead: {RETIRED}"


IN_NAMES = {
    **{word: RETIRED[word] for word in "wish wishes wished told doomed mended astray hopeless laggards asleep".split()},
    "said": "logged, parsed, reply",
    "wants": "is_relevant",
    "standing": "status, state_of",
    "looking": "inspection",
    "growing": "live film",
    "awake": "running",
    "hear": "deliver",
    "hears": "receives",
    "speak": "resume",
}
"""Parts of names that stood for a term of the field, and what stands there now; in sentences they are plain English."""
NAMES = {
    "NotReached": "ConditionNotMet",
    "Line": "LogLine, WrittenLine, SourceLine",
    "Read": "ImportedRow, Parse",
    "Said": "Message",
    "Work": "CurrentEvent, Operation",
    "Union": "Supergraph",
    "Looking": "Inspection",
    "Travel": "Replay",
    "Identities": "BrokerIdFaults",
    "Reel": "FilmBuilder",
    "Look": "PartState",
    "ZkClient": "ZooKeeperClient",
    "KafkaZk": "KafkaZkClient",
    "Meta": "BrokerMetadata",
    "Located": "LogDirDescription",
    "Hosted": "HostedPartition",
    "Fates": "BrokerRoles",
    "Refused": "ApiError",
    "keep_up": "catch_up",
    "wants_of": "relevant_to",
    "go_on": "exec_in_venv",
    "only_one": "file_lock",
    "at_home": "in_project_environment",
    "place_movers": "interpolate_positions",
    "fall_silent": "start_expiry_timer",
    "silence": "unreachable_since",
    "Wishes": "pending reassignments",
    "Together": "ConcurrentCommands",
    "Ordering": "EventOrder",
    "Producing": "ProducerCommands",
    "Reassigning": "ReassignmentCommands",
    "Pictures": "Rendering",
    "Book": "LogTemplates",
    "Way": "Link",
    "Teller": "Narrator",
    "Showing": "ExhibitRun",
    "Broken": "Failure",
    "Breakable": "KnownViolation",
    "Fold": "aggregator",
    "Tale": "Run",
    "NOTICE": "read timeout fraction",
    "RESTLESS": "DOES_NOT_QUIESCE",
    "TROUBLES": "INCIDENTS",
    "REMARKS": "high-volume actions",
    "fall_asleep": "pause",
    "speak_again": "cancel_expiry_timer",
    "_carried": "_detached",
    "_ways": "_faulty",
    "awaited_brokers": "expected_brokers",
    "words_of": "fields_of",
}
"""Names that were coined, and the field's own."""
MODULES = """
    astray book described fates fields fold gate growing homecoming installing kip455 known leaving located logbook
    logforms loglines logrules looking mended phrases producing ran reassigning said standing still tale tales
    together troubles union wishes
""".split()
"""Modules and folders that were named by a participle or a coined word; a noun of the field is in their place."""


def named(tree: ast.AST) -> Iterator[str]:
    """The names that a module gives: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def test_no_module_is_named_by_a_retired_word() -> None:
    paths = [path for place in ("kafka_ctl", "tools", "benchmarks") for path in (ROOT / place).rglob("*.py")]
    assert len(paths) > 200
    assert [path for path in paths if {path.stem, path.parent.name} & {*MODULES}] == []


def test_nothing_is_named_by_a_retired_word() -> None:
    """In the package, the tools and the benchmarks; of a test's names, those of the oldest words."""
    oldest = {*IN_NAMES.keys() & RETIRED.keys(), "said", "tale"}
    found = set()
    for place in ("kafka_ctl", "tools", "benchmarks", "tests"):
        retired = oldest if place == "tests" else IN_NAMES.keys()
        for path in sorted((ROOT / place).rglob("*.py")):
            given = set(named(ast.parse(path.read_text("utf-8"))))
            wrong = {name for name in given if retired & {*name.lower().split("_")}}
            found |= {(path.relative_to(ROOT).as_posix(), name) for name in wrong | (given & NAMES.keys())}
    assert sorted(found) == [], f"instead: {IN_NAMES | NAMES}"
