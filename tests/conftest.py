"""Shared by all tests: property tests that run the same way every time, and without a stopwatch."""

import gc
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest
from prose import FOLDER, GoldenFile, Prose, heading, recorded
from xdist.scheduler import LoadFileScheduling

from kafka_ctl.generation import GENERATIONS
from kafka_ctl.history import session
from kafka_ctl.zookeeper.real import server
from tools import java_classes

hypothesis.settings.register_profile("kafka_ctl", derandomize=True, deadline=None)
hypothesis.settings.load_profile("kafka_ctl")
gc.disable()  # while tests are collected: a sixth of that time
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell's job in the background; its programs ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)
session.JAVA_OPTIONS += java_classes.options()
server.JAVA_OPTIONS += (*java_classes.options(java_classes.ZOOKEEPER),)
# A test asks each question of a few rows, and to compile it takes longer than that: without, a third less time. The
# engines' tests, the benchmarks and the notebooks have other processes, in which Spark compiles as it does for users.
session.SETTINGS |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

PASSED = pytest.StashKey[bool]()
CASES = pytest.StashKey[dict[Path, list[str]]]()
"""The headings of the tests with sentences in golden files, by test file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite` records everything that is compared as text; commit only differences that you can explain."""
    parser.addoption("--rewrite", action="store_true", help="record golden stories, sentences and outputs anew")


def pytest_configure(config: pytest.Config) -> None:
    """Two processes that write one golden file would undo each other's work."""
    if config.getoption("--rewrite") and config.getoption("dist", "no") not in ("no", "loadfile"):
        raise pytest.UsageError("--rewrite needs the tests of a file in one process: -n0, or --dist=loadfile")


class Processes(LoadFileScheduling):
    """The tests of a file run in one process, and so do all that share Spark's session: Java starts once for them."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder, _, name = file.rpartition("/")
        return folder if folder.endswith("spark") and name not in OWN_JAVA else file


OWN_JAVA = ("test_history_session.py", "test_scale_out.py", "test_live.py")
"""Tests of Spark that end its session, or start others."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Processes | None:
    """With `--dist=loadfile`, how the tests are shared out."""
    return Processes(config, log) if config.getoption("dist") == "loadfile" else None


REAL_TIME = (
    "browser",
    "setup",
    "spark",
    "stories/test_exercises.py",
    "stories/test_fuzzed_answers.py",
    "stories/test_hostile_answers.py",
    "unit/testing",
    "unit/wire",
    "zookeeper",
)
"""Tests of other processes, sockets and time limits. Many of them share two cores, and a command may meet a session
that has just ended. Each of these tests gets a second try; pytest names those that needed it (`RERUN`)."""


@cache
def in_real_time(file: Path) -> bool:
    """True for a file of such tests."""
    return any(file.is_relative_to(Path(__file__).parent / place) for place in REAL_TIME)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember which tests there are, before any is deselected."""
    cases = config.stash.setdefault(CASES, {})
    for item in items:
        if in_real_time(item.path):
            item.add_marker(pytest.mark.flaky(reruns=1))
        if "prose" in getattr(item, "fixturenames", ()):
            cases.setdefault(item.path, []).append(heading(item.name))


def pytest_collection_finish() -> None:
    """Thousands of tests stay in memory. To search them for garbage again and again was a quarter of the time."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(100_000, 20, 50)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remember who passed: who failed or skipped has not said everything."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> str:
    """Each generation in turn; a test with a table of generations has those."""
    return request.param


@pytest.fixture(params=["python3.11", "python3.12", "python3.13", "python3.14"])
def python(request: pytest.FixtureRequest) -> str:
    """A Python of each version that the kit runs on; the test is skipped where there is none."""
    name = request.param
    command = sys.executable if name == f"python3.{sys.version_info.minor}" else shutil.which(name)
    version = [command or name, "-c", "import sys; print(sys.version_info >= (3, 11))"]
    if command is None or subprocess.run(version, capture_output=True, text=True, check=False).stdout != "True\n":
        pytest.skip(f"no {name} here")
    return command


@pytest.fixture(scope="module")
def golden_file(request: pytest.FixtureRequest) -> Iterator[GoldenFile]:
    """The sentences of a test file; blocks of no test fail, unless only some tests of the file were asked for."""
    config, path = request.config, request.path
    golden = GoldenFile(FOLDER / f"{path.stem.removeprefix('test_')}.txt", config.stash[CASES][path])
    yield golden
    if config.getoption("--rewrite"):
        golden.write()
    elif not any("::" in argument for argument in config.args):
        assert golden.unused() == [], f"{golden.path.name} has blocks that no test uses: pytest --rewrite {path.name}"


@pytest.fixture
def prose(request: pytest.FixtureRequest, golden_file: GoldenFile) -> Iterator[Prose]:
    """Compares our own sentences with those of the golden file, see `prose.py`; hides the path of `tmp_path`."""
    hide = {str(request.getfixturevalue("tmp_path")): "TMP"} if "tmp_path" in request.fixturenames else {}
    name, rewrite = heading(request.node.name), request.config.getoption("--rewrite")
    seen = Prose(None if rewrite else recorded(golden_file.blocks, name), hide)
    yield seen
    if not request.node.stash.get(PASSED, False):
        return
    golden_file.found[name] = seen.sentences
    assert rewrite or len(seen.sentences) == len(seen.wanted or ()), f"{golden_file.path.name}: more under {name!r}"
