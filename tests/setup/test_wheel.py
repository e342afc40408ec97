"""The wheel alone: what it carries, the course that it unfolds, and a lesson in an environment with nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest
from prose import Prose

from kafka_ctl import extras
from kafka_ctl.errors import BadInput, Unavailable, UnknownName
from kafka_ctl.jupyter.launch import NAME, course_folder
from kafka_ctl.paths import COURSE_LIST, ROOT
from kafka_ctl.setup.bootstrap import python_of
from tools.editions import course
from tools.notebooks import lessons

MOST = 12 << 20
"""Bytes of the wheel."""
MOST_INSTALLED = 250_000_000
"""Bytes of everything that `pip install kafka-ctl` brings, without bytecode: uv makes none, pip another 60 MB."""
LESSON = "notebooks/starter/01-electing-a-controller.ipynb"
CELLS = """\
import gc, json, sys
from IPython.core.interactiveshell import InteractiveShell

gc.collect = lambda: 0  # half a second at each reset
shell = InteractiveShell.instance(colors="NoColor")
shell.display_formatter.active_types = shell.display_formatter.format_types
for path in sys.argv[1:]:
    shell.reset()
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            done = shell.run_cell("".join(cell["source"]))
            if error := done.error_before_exec or done.error_in_exec:
                print("ENDS", json.dumps([path, type(error).__name__, str(error)]))
                break
"""
"""Runs notebooks in one process, each up to its first error."""
RUN = """\
import sys, nbformat
from nbclient import NotebookClient
NotebookClient(nbformat.read(sys.argv[1], 4), timeout=300).execute()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from this checkout, as for a release."""
    folder = tmp_path_factory.mktemp("wheel")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / done.stdout.split()[-1]


def test_the_wheel_has_lessons_pages_and_pictures(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    carried = ["notebooks/00-start-here.ipynb", *(f"notebooks/starter/{path.name}" for path in lessons())]
    carried += ["docs/testing.md", "diagrams/failover.svg", "tests/traces/election.txt"]
    assert {f"kafka_ctl_course/folder/{name}" for name in carried} <= names
    assert {f"kafka_ctl_course/folder/{name}" for name in course()} == {n for n in names if "/folder/" in n}
    assert {"kafka_ctl/py.typed", "kafka_ctl/cli/help.txt"} <= names
    assert any(name.startswith("kafka_ctl/views/widget/") and name.endswith(".js") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "tools/")) or "instructor" in name]


def run(*command: object, folder: Path) -> str:
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], cwd=folder, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@cache
def pythons() -> list[str]:
    """The oldest and the newest Python that this machine has and the kit supports."""
    found: dict[str, str] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for program in (
        *(shutil.which(f"python3.{minor}") for minor in range(11, 15)),
        *pyenv.glob("versions/*/bin/python"),
    ):
        ask = [str(program), "-c", "import ensurepip, sys; print('%02d' % sys.version_info[1], sys.version_info[0])"]
        asked = subprocess.run(ask, capture_output=True, text=True) if program else None
        if asked and asked.returncode == 0 and "11 3" <= asked.stdout.strip() <= "14 3":
            found.setdefault(asked.stdout, str(program))
    versions = sorted(found) or [sys.executable]
    return [*dict.fromkeys(found.get(version, version) for version in (versions[0], versions[-1]))]


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_an_empty_environment_runs_the_lessons(wheel: Path, tmp_path: Path, which: str) -> None:
    """`pip install` of the wheel, `kafka-ctl lab --check` in an empty folder, one lesson in a kernel, and every lesson.

    A lesson that needs an extra ends with one sentence that has the command. Where the check itself has the oldest
    Python, its step `starters` runs the other lessons with that one.
    """
    python = pythons()[-1 if which == "newest" else 0]
    if which == "newest" and len(pythons()) == 1:
        pytest.skip("the only Python here that the kit supports is the oldest one too")
    venv, folder = tmp_path / "venv", tmp_path / "folder"
    folder.mkdir()
    run(python, "-m", "venv", venv, folder=folder)
    bare = installed(venv)
    uv = shutil.which("uv")
    with_pip = [python_of(venv), "-m", "pip", "install", "--no-compile"]  # as uv does
    install = [uv, "pip", "install", "--python", python_of(venv)] if uv else with_pip
    done = subprocess.run([*map(str, install), str(wheel)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the packages of the wheel cannot be installed here: {done.stderr[-300:]}")
    assert installed(venv) - bare < MOST_INSTALLED
    assert "JupyterLab runs" in run(python_of(venv), "-m", "kafka_ctl", "lab", "--check", folder=folder)
    starters = (folder / NAME / LESSON).parent
    run(python_of(venv), "-c", RUN, folder / NAME / LESSON, folder=starters)
    names = sorted(path.name for path in starters.glob("*.ipynb"))
    assert len(names) == len(lessons())
    need = {name for name in names if needed(starters / name)}
    elsewhere = which == "oldest" and len(pythons()) > 1 and release(python) == release(sys.executable)
    printed = run(python_of(venv), "-c", CELLS, *(sorted(need) if elsewhere else names), folder=starters)
    ended = {one[0]: one[1:] for one in (json.loads(line[5:]) for line in printed.splitlines() if line[:5] == "ENDS ")}
    assert need == ended.keys(), ended
    for kind, sentence in ended.values():
        assert (kind, sentence.count("\n")) == ("MissingExtra", 0) and "`pip install 'kafka-ctl[" in sentence


def release(python: str) -> str:
    """As in `Python 3.13.0`."""
    return run(python, "-V", folder=ROOT)


def installed(venv: Path) -> int:
    """The bytes of an environment's files but bytecode."""
    return sum(path.lstat().st_size for path in venv.rglob("*") if path.is_file() and path.suffix != ".pyc")


def needed(notebook: Path) -> list[str]:
    """The extras that a lesson asks for."""
    return re.findall(r"^\s*\"needs\((.*)\)", notebook.read_text("utf-8"), re.MULTILINE)


def given(folder: Path, **files: str) -> Path:
    """A folder as a wheel carries it."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "notebooks").mkdir(parents=True)
    for name, text in files.items():
        (folder / "notebooks" / f"{name}.ipynb").write_text(text, "utf-8")
    return folder


def read(folder: Path) -> dict[str, str]:
    return {path.stem: path.read_text("utf-8") for path in sorted((folder / "notebooks").iterdir())}


def test_a_newer_version_keeps_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was not changed is renewed; what was changed stays, and a newer lesson comes beside it, once."""
    shipped, here = given(tmp_path / "wheel", a="a1", b="b1", c="c1"), tmp_path / "here"
    here.mkdir()
    folder = course_folder(here, shipped)
    assert (folder, read(folder)) == (here / NAME, {"a": "a1", "b": "b1", "c": "c1"})
    for name in "bc":
        (folder / "notebooks" / f"{name}.ipynb").write_text("mine", "utf-8")
    (folder / "notebooks" / "own.ipynb").write_text("own", "utf-8")
    given(shipped, a="a2", b="b2", c="c1", d="d1")
    for start in (here, folder, folder / "notebooks"):  # the second and the third find nothing to do
        assert course_folder(start, shipped) == folder
        beside = f"b-{version()}"
        assert read(folder) == {"a": "a2", "b": "mine", beside: "b2", "c": "mine", "d": "d1", "own": "own"}
    assert capsys.readouterr().out.count("beside it") == 1


@pytest.mark.parametrize("renewal", [False, True])
def test_an_interrupted_copy_is_finished(
    renewal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the next start, which takes nothing for changed."""
    shipped, here = given(tmp_path / "wheel", a="a1", b="b1", c="c1"), tmp_path / "here"
    here.mkdir()
    if renewal:
        course_folder(here, shipped)
        given(shipped, a="a2", b="b2", c="c2")
    write = Path.write_bytes

    def interrupted(path: Path, data: bytes) -> int:
        write(path, data[:1] if data[:1] == b"b" else data)
        if data[:1] == b"b":
            raise KeyboardInterrupt
        return len(data)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            course_folder(here, shipped)
    assert read(course_folder(here, shipped)) == read(shipped)
    assert "you have changed" not in capsys.readouterr().out


def test_a_newer_lesson_that_was_changed_is_kept_too(tmp_path: Path) -> None:
    """The version is the same until the first release, and with it the name of the lesson beside the learner's."""
    shipped, here = given(tmp_path / "wheel", a="a1"), tmp_path / "here"
    here.mkdir()
    folder = course_folder(here, shipped)
    (folder / "notebooks" / "a.ipynb").write_text("mine", "utf-8")
    course_folder(here, given(shipped, a="a2"))
    (folder / "notebooks" / f"a-{version()}.ipynb").write_text("mine, too", "utf-8")
    for _ in range(2):
        course_folder(here, given(shipped, a="a3"))
        assert read(folder) == {"a": "mine", f"a-{version()}": "mine, too", f"a-{version()}-2": "a3"}


def test_a_lesson_that_has_another_name_is_there_once(tmp_path: Path) -> None:
    """What the course has no more is deleted, but not what a learner has changed."""
    shipped, here = given(tmp_path / "wheel", old="1", written="1"), tmp_path / "here"
    here.mkdir()
    folder = course_folder(here, shipped)
    (folder / "notebooks" / "written.ipynb").write_text("mine", "utf-8")
    course_folder(here, given(shipped, new="1"))
    assert read(folder) == {"new": "1", "written": "mine"}


def version() -> str:
    from importlib import metadata

    return metadata.version("kafka-ctl")


def test_what_is_no_course_is_left_alone(tmp_path: Path) -> None:
    """A folder of another origin, a link, a file; an installation without lessons; and no copy of a checkout."""
    shipped = given(tmp_path / "wheel", a="a1")
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "thesis.txt").write_text("mine", "utf-8")
    with pytest.raises(BadInput, match="not a copy"):
        course_folder(tmp_path, shipped)
    shutil.rmtree(tmp_path / NAME)
    (tmp_path / NAME).symlink_to(tmp_path)
    with pytest.raises(BadInput, match="is not a folder"):
        course_folder(tmp_path, shipped)
    with pytest.raises(Unavailable, match="has no lessons"):
        course_folder(tmp_path)
    assert not (tmp_path / COURSE_LIST).exists()


def test_what_is_missing_is_one_sentence(prose: Prose, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout with its command, elsewhere with the extra; a wrong extra is an error."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    for in_checkout in (True, False):
        monkeypatch.setattr(extras, "IN_CHECKOUT", in_checkout)
        prose.refuses(Unavailable, extras.needs, "wire")
    with pytest.raises(UnknownName, match="known: spark, wire, zookeeper, java"):
        extras.needs("sparks")
