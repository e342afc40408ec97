"""The README's first command on a fresh clone: the first time, which installs everything, and again."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.figures import Figure, seconds
from kafka_ctl.paths import ROOT

PYTHON = getattr(sys, "_base_executable", sys.executable)
QUICK = {"PYTHON": sys.executable}
"""This environment has everything, so nothing is installed."""


def measure() -> Iterator[Figure]:
    """Needs a network and 1.5 GB of disk for a while."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
        command = [PYTHON, "-m", "kafka_ctl", "lab", "--check"]
        beside = "from a clone to a JupyterLab that answers and has been stopped again"
        yield Figure("lab --check on a fresh clone", f"{seconds(command, cwd=folder):.0f} s", beside)
        yield Figure("lab --check again", f"{seconds(command, cwd=folder):.1f} s", "the same; nothing is installed")
