"""The system's temporary folder is full, or cannot be written: one sentence, and nothing is left behind."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from prose import refuses

from kafka_ctl.errors import Unavailable
from kafka_ctl.paths import ROOT
from kafka_ctl.writing import in_temporary_folder, temporary_folder

SERVER = """
import resource, sys
from kafka_ctl.errors import Unavailable
from kafka_ctl.zookeeper.real.server import EmbeddedServer
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
try:
    EmbeddedServer().start()
except Unavailable as problem:
    print(problem)
"""


def full(*_: object, **__: object) -> str:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_folder_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where a folder is made, and where something is written into it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    refuses(Unavailable, f"{tmp_path}: No space left", in_it)
    monkeypatch.setattr(tempfile, "mkdtemp", full)
    refuses(Unavailable, "No space left", temporary_folder, "kafka_ctl-")


def in_it() -> None:
    with in_temporary_folder():
        full()


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_a_server_that_cannot_write_its_files_leaves_nothing(tmp_path: Path) -> None:
    """No file of its process may have more than ten bytes."""
    reported = subprocess.run(
        [sys.executable, "-c", SERVER, "10"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "Java" in reported.stdout or "PySpark" in reported.stdout:
        pytest.skip(reported.stdout.strip())
    assert reported.stdout.startswith("nothing can be written") and str(tmp_path) in reported.stdout, reported.stderr
    assert reported.stdout.count("\n") == 1 and not reported.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("kafka-ctl")] == []
