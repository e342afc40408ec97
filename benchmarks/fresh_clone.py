"""The README's first command on a fresh clone: the first time, which installs everything, and again."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.figures import Figure, seconds
from kafka_ctl.paths import ROOT

PYTHON = getattr(sys, "_base_executable", sys.executable)
TIMES = ("on a fresh clone", "again")
QUICK = {"PYTHON": sys.executable, "TIMES": TIMES[:1]}
"""This environment has everything, so nothing is installed."""


def measure() -> Iterator[Figure]:
    """Needs a network and 1.5 GB of disk for a while."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
        command = [PYTHON, "-m", "kafka_ctl", "lab", "--check"]
        beside = "until a JupyterLab has answered and has been stopped again; the second time nothing is installed"
        for time in TIMES:
            yield Figure(f"lab --check {time}", f"{seconds(command, cwd=folder):.1f} s", beside)
