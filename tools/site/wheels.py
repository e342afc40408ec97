"""Wheels for Pyodide: the kit's own, and what Pyodide's lock must say of each.

The lock lists all that Python in the browser can load. Its own list names packages on the network; ours are files of
the site, so nothing is ever looked for anywhere else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kafka_ctl.errors import KafkaCtlError
from kafka_ctl.paths import ROOT
from tools.site.pins import sha256

RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
"""The files of npm's package that run."""
EMPTY = ("jedi",)
"""Packages that the kernel asks for by name and can do without."""
EPOCH = "315532800"
"""1 January 1980, the earliest time that a zip file can hold: the same sources make the same bytes."""


def unpack(tarball: Path, folder: Path) -> dict[str, Any]:
    """Put Pyodide's files into `folder`; what its lock says."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in RUNTIME:
        (folder / name).write_bytes(packed(tarball, name))
    lock: dict[str, Any] = json.loads(packed(tarball, "pyodide-lock.json"))
    return lock


def packed(tarball: Path, name: str) -> bytes:
    """One file of a package of npm's."""
    with tarfile.open(tarball) as files:
        file = files.extractfile(f"package/{name}")
        assert file is not None
        return file.read()


def kit(folder: Path, tools: Path) -> Path:
    """The wheel of this checkout, built into `folder` with hatchling of `tools`. Raises KafkaCtlError if that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    environ = {**os.environ, "PYTHONPATH": str(tools), "SOURCE_DATE_EPOCH": EPOCH, "KAFKA_CTL_WITHOUT_COURSE": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, text=True)
    if done.returncode:
        raise KafkaCtlError(f"the kit's wheel could not be built: {done.stderr.strip().splitlines()[-1]}")
    return folder / done.stdout.strip().splitlines()[-1]


def empty_wheel(name: str, folder: Path) -> Path:
    """A package of that name with nothing in it."""
    path, info = folder / f"{name}-0.0-py3-none-any.whl", f"{name}-0.0.dist-info"
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: kafka-ctl\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as packed:
        for file, text in files.items():
            packed.writestr(zipfile.ZipInfo(f"{info}/{file}"), text)
    return path


def write_lock(folder: Path, lock: dict[str, Any], found: Iterable[Path]) -> dict[str, list[str]]:
    """Write `pyodide-lock.json` for these wheels, which lie in `folder`; the modules that each of them brings.

    `lock` is Pyodide's own, of which the interpreter's description is kept.
    """
    known = {path: _metadata(path) for path in found}
    there = {canonicalize_name(meta["Name"]) for meta in known.values()}
    python = lock["info"]["python"]
    environment = {
        "python_version": ".".join(python.split(".")[:2]),
        "python_full_version": python,
        "sys_platform": "emscripten",
        "platform_system": "Emscripten",
        "platform_machine": "wasm32",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }
    packages = {}
    for path, meta in sorted(known.items()):
        needs = [Requirement(text) for text in meta.get_all("Requires-Dist", [])]
        fitting = {
            canonicalize_name(each.name) for each in needs if not each.marker or each.marker.evaluate(environment)
        }
        name = canonicalize_name(meta["Name"])
        packages[name] = {
            "name": name,
            "version": meta["Version"],
            "file_name": path.name,
            "install_dir": "site",
            "sha256": sha256(path),
            "package_type": "package",
            "imports": _modules(path),
            "depends": sorted(fitting & there),
            "unvendored_tests": False,
        }
    text = json.dumps({**lock, "packages": packages}, indent=1, sort_keys=True)
    (folder / "pyodide-lock.json").write_text(text + "\n", encoding="utf-8")
    return {name: entry["imports"] for name, entry in packages.items()}


def _metadata(wheel: Path) -> Any:
    with zipfile.ZipFile(wheel) as packed:
        name = next(name for name in packed.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        return HeaderParser().parsestr(packed.read(name).decode())


def _modules(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as packed:
        tops = {name.split("/")[0] for name in packed.namelist()}
    return sorted(top.removesuffix(".py") for top in tops if not top.endswith((".dist-info", ".data")))
