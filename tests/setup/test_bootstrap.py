"""The set-up: once, whole, alone, and honest about what it cannot do.

The real installation takes a minute and a network; here a stand-in for uv makes real but empty environments,
so that everything around the installation is the real thing.
"""

import ast
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from prose import Prose
from tables import tabled
from waiting import eventually

from kafka_ctl.paths import ROOT
from kafka_ctl.setup import bootstrap, installer
from kafka_ctl.setup.bootstrap import SetupFailed

posix = pytest.mark.skipif(os.name == "nt", reason="the stand-in for uv is a script with a shebang line")

STAND_IN = f"""#!{sys.executable}
import pathlib, subprocess, sys, time
if sys.argv[1] == "venv":
    sys.exit(subprocess.call([sys.executable, "-m", "venv", "--without-pip", sys.argv[-1]]))
print("Downloading everything", flush=True)  # before it is known to run: who hears this may be killed then
with open("installs.txt", "a") as file:
    file.write("hashed\\n" if "--require-hashes" in sys.argv else "here\\n")
while pathlib.Path("hold").exists():
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without anything in it."""
    folder = tmp_path_factory.mktemp("bare")
    # Whoever runs the tests may do so with a Python that holds the project, such as conda's.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


@pytest.fixture
def checkout(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the real start-up code, one small command, and the stand-in for uv on PATH."""
    root = tmp_path / "checkout"
    (root / "kafka_ctl").mkdir(parents=True)
    (root / "kafka_ctl/setup").mkdir()
    names = ("__main__", "errors", "paths", "setup/__init__", "setup/bootstrap", "setup/installer")
    for name in names:
        shutil.copy(ROOT / "kafka_ctl" / f"{name}.py", root / "kafka_ctl" / f"{name}.py")
    (root / "kafka_ctl/__init__.py").touch()
    (root / "kafka_ctl/cli").mkdir()
    shutil.copy(bootstrap.HELP, root / "kafka_ctl/cli")
    (root / "kafka_ctl/cli.py").write_text(
        "import sys\ndef main(args):\n    print('kafka-ctl', *args, 'in', sys.prefix)\n"
    )
    (root / "requirements.txt").write_text("click==8.0.0 \\\n    --hash=sha256:00\n")
    shutil.copytree(bare, tmp_path / "bare", symlinks=True)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uv").write_text(STAND_IN)
    (tools / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    for name in ("VIRTUAL_ENV", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    return root


def start(root: Path, *argv: str) -> subprocess.Popen[str]:
    """Start `python -m kafka_ctl` in a checkout, with a bare Python."""
    python = bootstrap.python_of(root.parent / "bare")
    command = [str(python), "-m", "kafka_ctl", *argv]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(root: Path, *argv: str) -> str:
    """Run it to its end, which must be a good one, and return what it printed."""
    process = start(root, *argv)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    return out


def installs(root: Path) -> list[str]:
    """What the stand-in was asked to install so far."""
    path = root / "installs.txt"
    return path.read_text().split() if path.exists() else []


ONCE = ["hashed", "hashed", "here"]


@posix
def test_the_first_command_sets_up_and_the_second_finds_it_ready(checkout: Path) -> None:
    """What was asked runs inside `.venv`, with its arguments; nothing is installed twice."""
    first = run(checkout, "demo", "--fast")
    assert "Downloading" in first or "packages" in first
    assert first.splitlines()[-1] == f"kafka-ctl demo --fast in {checkout / '.venv'}"
    assert run(checkout, "demo") == f"kafka-ctl demo in {checkout / '.venv'}\n"
    assert installs(checkout) == ONCE


@posix
def test_a_changed_list_is_installed_into_the_same_environment(checkout: Path) -> None:
    """What is already there stays."""
    run(checkout, "demo")
    (checkout / ".venv/kept").touch()
    (checkout / "requirements.txt").write_text("click==8.1.0 \\\n    --hash=sha256:00\n")
    assert "Setting up" in run(checkout, "demo")
    assert installs(checkout) == ONCE * 2
    assert (checkout / ".venv/kept").exists()


def everything(folder: Path) -> dict[str, object]:
    """What a folder holds: the links, the bytes of its files, and when each was written."""
    return {
        str(path): (
            os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes(),
            path.lstat().st_mtime_ns,
        )
        for path in [folder, *folder.rglob("*")]
    }


@posix
@pytest.mark.parametrize("case", ["moved", "link", "dangling", "file", "stamp"])
def test_what_another_made_is_refused_and_left_alone(prose: Prose, checkout: Path, case: str) -> None:
    """An environment of another place, a link to any folder, a file, a link as stamp: one sentence, no change."""
    run(checkout, "demo")
    there = checkout.with_name("there")
    if case == "moved":
        checkout.rename(there)
        kept, root = there, there
    else:
        (checkout / ".venv").rename(there)
        kept, root = there, checkout
    if case in ("link", "dangling"):
        target = there if case == "link" else checkout.with_name("nowhere")
        (checkout / ".venv").symlink_to(target, target_is_directory=True)
        (checkout / "requirements.txt").write_text("click==8.1.0 \\\n    --hash=sha256:00\n")
    elif case == "file":
        (checkout / ".venv").write_text("mine")
    elif case == "stamp":
        (checkout / ".venv").mkdir()
        (checkout / ".venv" / bootstrap.STAMP).symlink_to(there / bootstrap.STAMP)
        (checkout / "requirements.txt").write_text("click==8.1.0 \\\n    --hash=sha256:00\n")
    before = everything(kept), everything(root)
    prose.refuses(SetupFailed, bootstrap.prepare, root)
    assert (everything(kept), everything(root)) == before
    assert not checkout.with_name("nowhere").exists()


@posix
def test_no_link_is_followed_where_the_own_environment_is_emptied(checkout: Path) -> None:
    """Python in it does not start any more: it is made anew; what links in it lead to stays."""
    run(checkout, "demo")
    letter = checkout.with_name("letters") / "letter.txt"
    letter.parent.mkdir()
    letter.write_text("mine")
    venv = checkout / ".venv"
    (venv / "letters").symlink_to(letter.parent, target_is_directory=True)
    (venv / "bin/letter").symlink_to(letter)
    for python in venv.glob("bin/python*"):
        python.unlink()
    assert run(checkout, "demo").splitlines()[-1] == f"kafka-ctl demo in {venv}"
    assert letter.read_text() == "mine"
    assert not (venv / "letters").exists() and not (venv / "bin/letter").exists()


HELPS = ["--help", "-h", "", "museum --help", "history import --help", "history ask x --help", "run s.txt -h",
         "lab --help", "test --help", "--version", "fly --help", "fly", "fly me",
         "--fly", "history fly", "reassign fly", "lab --fly"]  # fmt: skip


@pytest.mark.parametrize("asked", HELPS)
def test_help_version_and_an_unknown_command_install_nothing(checkout: Path, asked: str) -> None:
    """The standard library answers, in the words of the command line."""
    (checkout / "kafka_ctl/jupyter").mkdir()
    for name in ("jupyter/__init__.py", "jupyter/launch.py", "visible.py", "writing.py"):
        shutil.copy(ROOT / "kafka_ctl" / name, checkout / "kafka_ctl" / name)
    shutil.copy(ROOT / "pyproject.toml", checkout)
    process = start(checkout, *asked.split())
    out, err = process.communicate(timeout=60)
    assert not (checkout / ".venv").exists()
    assert installs(checkout) == []
    environ = {**os.environ, "COLUMNS": "104"}
    command = [sys.executable, "-m", "kafka_ctl.cli.commands", *asked.split()]
    usual = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert process.returncode == usual.returncode
    if "fly" in asked:
        lines = 2 if asked.startswith("lab") else 1
        assert (out, err.count("\n")) == ("", lines) and "fly" in err and "fly" in usual.stderr
    elif asked == "test --help":
        assert "with arguments, only pytest" in out
    elif asked == "lab --help":
        assert "--check" in out and not err
    else:
        printed = (usual.stdout + usual.stderr).replace("python -m kafka_ctl.cli.commands", "kafka-ctl")
        assert (out + err).strip() == printed.strip()


@pytest.mark.parametrize("link", [False, True])
def test_help_changes_nothing_in_anothers_folder(checkout: Path, link: bool) -> None:
    """Neither where `.venv` is another's folder nor where it is a link to one."""
    there = checkout.with_name("there")
    there.mkdir()
    (there / bootstrap.STAMP).write_text(f"unfinished {there}")
    (there / "letter.txt").write_text("mine")
    if link:
        (checkout / ".venv").symlink_to(there, target_is_directory=True)
    else:
        there = there.rename(checkout / ".venv")
    before = everything(there)
    assert "Learn:" in run(checkout, "--help")
    assert everything(there) == before


@posix
def test_an_interrupted_setup_is_not_taken_for_a_finished_one(checkout: Path) -> None:
    """After a kill in the middle, the next start waits for the orphaned installer, then begins again."""
    (checkout / "hold").touch()
    killed = start(checkout, "demo")
    assert eventually(lambda: installs(checkout) == ["hashed"])
    killed.kill()
    killed.communicate()
    (checkout / ".venv/half").touch()
    second = start(checkout, "demo")
    assert "Another kafka_ctl is setting up" in second.stdout.readline()
    (checkout / "hold").unlink()
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, out + err
    assert installs(checkout) == ["hashed", *ONCE]
    assert not (checkout / ".venv/half").exists()


@posix
def test_two_at_once_set_up_once(checkout: Path) -> None:
    """The second waits for the first and goes on with what that one made."""
    both = [start(checkout, "demo"), start(checkout, "museum")]
    for name, process in zip(("demo", "museum"), both, strict=True):
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
        assert out.splitlines()[-1] == f"kafka-ctl {name} in {checkout / '.venv'}"
    assert installs(checkout) == ONCE


def test_a_set_up_that_begins_meanwhile_is_no_other_folder(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stamp comes before its files: who finds a file and no stamp has looked in the wrong order."""
    venv, read = checkout / ".venv", bootstrap.read_stamp
    venv.mkdir()

    def begun(place: Path) -> str | None:
        found = read(place)
        bootstrap.write_stamp(venv, f"{bootstrap.UNFINISHED} {checkout}")
        (venv / "bin").mkdir(exist_ok=True)
        return found

    monkeypatch.setattr(bootstrap, "read_stamp", begun)
    bootstrap.check_own(checkout)


def test_an_unreachable_registry_is_reported_in_one_sentence(
    prose: Prose, checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The real pip, with a registry that refuses; nothing half-done passes for done."""
    pytest.importorskip("ensurepip", reason="this Python cannot bring pip into an environment")
    shutil.copy(ROOT / "requirements.txt", checkout)
    (tmp_path / "tools/uv").unlink()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for name, value in {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_FIND_LINKS": ""}.items():
        monkeypatch.setenv(name, value)
    prose.refuses(SetupFailed, bootstrap.prepare, checkout)
    assert bootstrap.read_stamp(checkout / ".venv") == f"unfinished {checkout}"
    assert not bootstrap.ready(checkout)


@posix
def test_a_python_without_venv_is_reported_the_cure(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian keeps `venv`'s half of pip in a package of its own."""
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SetupFailed, match="apt-get install python3-venv"):
        bootstrap.prepare(checkout)


@posix
def test_without_venvs_own_pip_the_pip_of_the_system_serves(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment made without pip is filled from outside, by `pip --python`."""
    venv = checkout / ".venv"
    venv.mkdir()
    filling = installer.Installation(checkout, venv, bootstrap.python_of(venv), lock=0)
    done: list[Sequence[str]] = []

    def do(label: str, command: Sequence[str]) -> None:
        if label in ("uv", "environment"):
            raise SetupFailed("no uv, and no ensurepip")
        done.append(command)

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(filling, "do", do)
    make = filling.succeeds
    monkeypatch.setattr(filling, "succeeds", lambda command: "--python" in command or make(command))
    filling.run()
    assert [command[:5] for command in done] == [
        [sys.executable, "-m", "pip", "--python", str(bootstrap.python_of(venv))]
    ] * 3
    assert bootstrap.python_of(venv).exists()


@pytest.mark.parametrize("environment", [False, True])
def test_somebody_elses_folder_is_left_alone(prose: Prose, checkout: Path, environment: bool) -> None:
    """A `.venv` without a stamp is not emptied, and nothing is installed into it, be it an environment or not."""
    venv = checkout / ".venv"
    if environment:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    else:
        venv.mkdir()
    (venv / "letter.txt").touch()
    before = everything(venv)
    prose.refuses(SetupFailed, bootstrap.prepare, checkout)
    assert everything(venv) == before


def test_the_help_without_an_environment_is_the_command_lines() -> None:
    """Cure: `kafka-ctl docs`."""
    from kafka_ctl.cli.commands import app
    from tools.reference import help_page

    assert help_page(app).check(ROOT / "docs") == []


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_is_reported(
    prose: Prose, checkout: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Read-only and full disks each have their sentence."""

    def fail(path: Path, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "mkdir", fail)
    prose.refuses(SetupFailed, bootstrap.prepare, checkout)


def test_a_folder_that_is_no_checkout_is_reported(tmp_path: Path) -> None:
    """Without the list there is nothing to install."""
    with pytest.raises(SetupFailed, match=r"requirements\.txt is missing"):
        bootstrap.prepare(tmp_path)


@tabled
def test_installers_complaints_become_one_sentence(printed: str, reported: str) -> None:
    """pip and uv say these things over many lines."""
    assert reported in installer.hint(f"before\n{printed}\nafter\n")


def test_an_unknown_complaint_is_passed_on() -> None:
    """No cure is invented."""
    assert installer.hint("error: full moon") is None


@tabled
def test_progress_says_what_is_installed(line: str, reported: str) -> None:
    """A line of an installer is cut down to what a person wants to see."""
    assert installer.progress_of(line) == reported


def test_build_tools_are_taken_from_the_list_with_their_hashes() -> None:
    """They are installed first, by the same versions and hashes."""
    listed = "a==1 \\\n    --hash=sha256:aa\n"
    listed += "wheel==2 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\nwheels==3\n"
    assert list(installer.only(["wheel"], listed)) == ["wheel==2 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"]


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py"])
def test_what_runs_first_parses_on_an_old_python(name: str) -> None:
    """A Python 3.6 gets far enough to be told that it is too old."""
    tree = ast.parse((ROOT / "kafka_ctl" / name).read_text("utf-8"), feature_version=(3, 6))
    # The rest of the package is newer Python, and 3.6 does not know `from __future__ import annotations`.
    imported = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert imported == (["kafka_ctl.setup.bootstrap"] if name == "__main__.py" else [])


def old_python() -> str | None:
    """A Python 3 older than 3.11, where this machine has one."""
    for name in (f"python3.{minor}" for minor in range(6, 11)):
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    return None


def test_an_old_python_is_reported_so() -> None:
    """One sentence with the cure, no traceback."""
    if (python := old_python()) is None:
        pytest.skip("no Python older than 3.11 on PATH; put one there")
    reported = subprocess.run([python, "-m", "kafka_ctl", "lab"], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert reported.returncode == 1
    assert reported.stderr.startswith("kafka_ctl needs Python 3.11 or newer")
    assert reported.stderr.count("\n") == 1
