"""The wheel alone: what it carries, the course that it unfolds, and a lesson in an environment with nothing else."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from prose import Prose

from kafka_ctl import errors, extras
from kafka_ctl.errors import BadInput, Unavailable, UnknownName
from kafka_ctl.jupyter.course_folder import NAME, course_folder
from kafka_ctl.paths import COURSE_LIST, ROOT
from kafka_ctl.setup.bootstrap import python_of
from tools.notebooks import lessons

MOST = 12 << 20
"""Bytes of the wheel."""
LESSON = "notebooks/starter/01-electing-a-controller.ipynb"
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
    carried += ["docs/testing.md", "diagrams/failover.svg"]
    assert {f"kafka_ctl_course/folder/{name}" for name in carried} <= names
    assert {"kafka_ctl/py.typed", "kafka_ctl/cli/help.txt"} <= names
    assert any(name.startswith("kafka_ctl/views/widget/") and name.endswith(".js") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "tools/")) or "instructor" in name]


def run(*command: object, folder: Path) -> str:
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], cwd=folder, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_empty_environment_runs_a_lesson(wheel: Path, tmp_path: Path) -> None:
    """`pip install` of the wheel, `kafka-ctl lab --check` in an empty folder, a whole lesson, and what is missing."""
    venv, folder = tmp_path / "venv", tmp_path / "folder"
    folder.mkdir()
    run(sys.executable, "-m", "venv", venv, folder=folder)
    uv = shutil.which("uv")
    install = [uv, "pip", "install", "--python", python_of(venv)] if uv else [python_of(venv), "-m", "pip", "install"]
    done = subprocess.run([*map(str, install), str(wheel)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the packages of the wheel cannot be installed here: {done.stderr[-300:]}")
    assert "JupyterLab runs" in run(python_of(venv), "-m", "kafka_ctl", "lab", "--check", folder=folder)
    run(python_of(venv), "-c", RUN, folder / NAME / LESSON, folder=(folder / NAME / LESSON).parent)
    code = "from kafka_ctl.extras import needs; needs('wire')"
    missing = subprocess.run([str(python_of(venv)), "-c", code], cwd=folder, capture_output=True, text=True)
    assert "`pip install 'kafka-ctl[wire]'`" in missing.stderr.splitlines()[-1]


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
    for start in (here, folder):  # the second finds nothing to do
        assert course_folder(start, shipped) == folder
        beside = f"b-{version()}"
        assert read(folder) == {"a": "a2", "b": "mine", beside: "b2", "c": "mine", "d": "d1", "own": "own"}
    assert capsys.readouterr().out.count("beside it") == 1


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


def test_what_is_missing_is_one_sentence(prose: Prose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout with its command, elsewhere with the extra; a wrong extra is an error."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    for place in (ROOT / "kafka_ctl/errors.py", tmp_path / "kafka_ctl/errors.py"):
        monkeypatch.setattr(errors, "__file__", str(place))
        with prose.refused(Unavailable):
            extras.needs("wire")
    with pytest.raises(UnknownName, match="known: spark, wire, zookeeper, java"):
        extras.needs("sparks")
