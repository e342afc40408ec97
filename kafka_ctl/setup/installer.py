"""Filling an environment from `requirements.txt`, with a line now and then that says what is happening.

The steps, by uv where it is on PATH or pip can fetch it, else by pip:

    uv            fetched into a folder that is removed again
    environment   an empty one
    build tools   PySpark comes as source and is built here; its build tools are pinned like everything else
    packages      everything, by version and hash
    kafka_ctl     this checkout, as it is, so that editing it needs no new set-up

Separate from `bootstrap.py` because that one decides what may be changed, and this changes it.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

UV = Path(__file__).with_name("uv.txt")
"""The version of uv, with the hashes of its files."""
BUILD_TOOLS = (
    "editables",
    "hatchling",
    "packaging",
    "pathspec",
    "pluggy",
    "setuptools",
    "tomlkit",
    "trove-classifiers",
    "wheel",
)
"""The requirements of the builds of PySpark and of this package."""

LEFT_OUT = (
    *("pyspark/jars/rocksdbjni-*", "pyspark/jars/*kubernetes*"),
    # MLlib and its mathematics
    *("pyspark/jars/spark-mllib_*", "pyspark/jars/breeze*", "pyspark/jars/spire*", "pyspark/jars/cats-kernel_*"),
    *("pyspark/jars/algebra_*", "pyspark/jars/JTransforms-*", "pyspark/jars/arpack*", "pyspark/jars/lapack-*"),
    # Hive's tables
    *("pyspark/jars/hive-exec-*", "pyspark/jars/hive-metastore-*", "pyspark/jars/spark-hive*"),
    *("pyspark/jars/datanucleus-*", "pyspark/jars/derby*"),
    *("pandas/tests", "pyarrow/tests", "pyarrow/include"),
)
"""Files of packages that nothing here loads, 180 MB: they are removed from the environment after the installation.

To have one, install its package again, as with `pip install --force-reinstall --no-deps pyspark==4.3.0`.
"""

HINTS = (
    (
        r"No space left on device|os error 28|Errno 28|quota exceeded",
        "the disk is full; make about 3 GB of room and run the same command again",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|invalid peer certificate|UnknownIssuer",
        "the package registry's certificate is not trusted here; name your network's certificates in"
        " SSL_CERT_FILE and PIP_CERT and run the same command again",
    ),
    (
        r"DO NOT MATCH THE HASHES|Hash mismatch",
        "a downloaded file is not the one requirements.txt names; run the same command again; if the "
        "error stays, report it to the administrator of your package mirror",
    ),
    (
        r"NewConnectionError|ConnectTimeout|ReadTimeout|[Tt]imed out|Temporary failure in name resolution"
        r"|getaddrinfo|dns error|error sending request|[Cc]onnection (refused|reset|broken)|ProxyError"
        r"|Max retries|unreachable|No route to host|[Ff]ailed to fetch|from versions: none",
        "the package registry cannot be reached; connect to the network, or name your proxy (HTTPS_PROXY) or"
        " mirror (PIP_INDEX_URL), and run the same command again",
    ),
    (
        r"Permission denied|Read-only file system",
        "a folder cannot be written to; clone the project into a folder of your own and start there",
    ),
)
"""Patterns of installers' errors, and the one sentence for each; the first that fits."""

NO_VENV = (
    "this Python cannot make environments; install what it lacks (on Debian and Ubuntu:"
    " apt-get install python3-venv) or uv, and run the same command again"
)


class SetupFailed(Exception):
    """The environment could not be made; the text is one sentence with what to do."""


class Installation:
    """Fills the environment `venv` for the checkout `root`; `lock` stays held while an installer runs."""

    def __init__(self, root: Path, venv: Path, python: Path, lock: int) -> None:
        self.root, self.venv, self.python, self.lock = root, venv, python, lock
        self.log = venv / "setup.log"
        self.began = time.monotonic()
        self.environ = {
            **os.environ,
            "NO_COLOR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "PIP_USER": "0",
            "PYTHONUNBUFFERED": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            # Trust the certificates that the machine trusts, as pip does; older releases of uv know the second name.
            "UV_SYSTEM_CERTS": "1",
            "UV_NATIVE_TLS": "1",
        }
        # PySpark's build needs 1.5 GB on the way, and a system's /tmp may be small.
        self.environ.setdefault("TMPDIR", str(venv / "tmp"))

    def run(self) -> None:
        """Do the five steps; raises `SetupFailed`."""
        self.log.unlink(missing_ok=True)
        Path(self.environ["TMPDIR"]).mkdir(exist_ok=True)
        if not self._with_uv():
            self._with_pip()
        self.leave_out()
        shutil.rmtree(self.venv / "tmp", ignore_errors=True)

    def leave_out(self) -> None:
        """Remove the files of `LEFT_OUT` from the environment."""
        for packages in (*self.venv.glob("lib/python*/site-packages"), self.venv / "Lib/site-packages"):
            for path in (found for pattern in LEFT_OUT for found in packages.glob(pattern)):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def _with_uv(self) -> bool:
        uv = shutil.which("uv") or self._fetched_uv()
        if uv is None:
            return False
        install = [uv, "pip", "install", "--python", str(self.python)]
        make = [uv, "venv", "--allow-existing", "--python", sys.executable, str(self.venv)]
        steps = [] if self.python.exists() else [("environment", make)]
        try:
            for label, command in steps + self._packages(install, "--offline"):
                self.do(label, command)
        except SetupFailed as failed:
            # pip may be configured with a mirror that uv does not know.
            print(f"uv failed ({failed}); trying pip.", flush=True)
            return False
        return True

    def _fetched_uv(self) -> str | None:
        """The uv that the pip of this Python has fetched, by version and hash; None if pip cannot fetch it."""
        pip, folder = [sys.executable, "-m", "pip"], self.venv / "tmp" / "uv"
        if not self.succeeds([*pip, "--version"]):
            return None
        fetch = [*pip, "install", "--progress-bar=off", "--no-deps", "--require-hashes", "--target", str(folder)]
        try:
            self.do("uv", [*fetch, "-r", str(UV)])
        except SetupFailed:
            return None
        program = folder / "bin" / ("uv.exe" if os.name == "nt" else "uv")
        return str(program) if program.exists() else None

    def _with_pip(self) -> None:
        pip = [str(self.python), "-m", "pip"]
        if not self.succeeds([*pip, "--version"]):
            pip = self._environment_with_pip()
        install = [*pip, "install", "--progress-bar=off"]
        for label, command in self._packages(install, "--no-index"):
            self.do(label, command)

    def _environment_with_pip(self) -> list[str]:
        """Make an environment, and return the pip for it: its own, or the one of the Python we run on."""
        make = [sys.executable, "-m", "venv", str(self.venv)]
        try:
            self.do("environment", make)
        except SetupFailed as failed:
            # Debian keeps the part that brings pip in a package of its own.
            outer = [sys.executable, "-m", "pip", "--python", str(self.python)]
            if not (self.succeeds([*make, "--without-pip"]) and self.succeeds([*outer, "--version"])):
                raise SetupFailed(NO_VENV) from failed
            return outer
        return [str(self.python), "-m", "pip"]

    def _packages(self, install: list[str], offline: str) -> list[tuple[str, list[str]]]:
        listed = self.root / "requirements.txt"
        tools = self.venv / "build-tools.txt"
        tools.write_text("".join(only(BUILD_TOOLS, listed.read_text("utf-8"))), "utf-8")
        hashed = [*install, "--require-hashes", "-r"]
        here = [*install, "--no-deps", offline, "--no-build-isolation", "-e", str(self.root)]
        return [
            ("build tools", [*hashed, str(tools)]),
            ("packages", [*hashed, str(listed), "--no-build-isolation"]),
            ("kafka_ctl", here),
        ]

    def succeeds(self, command: list[str]) -> bool:
        try:
            return subprocess.run(command, env=self.environ, capture_output=True).returncode == 0
        except OSError:
            return False

    def do(self, label: str, command: list[str]) -> None:
        process = subprocess.Popen(
            command,
            env=self.environ,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=() if os.name == "nt" else (self.lock,),
        )
        assert process.stdout is not None
        self._print(label, "")
        printed: list[str] = []
        try:
            printed.extend(self._watched(label, _lines(process.stdout)))
        except BaseException:
            process.terminate()
            raise
        finally:
            process.wait()
            with open(self.log, "a", encoding="utf-8") as log:
                log.write(f"$ {' '.join(command)}\n{''.join(printed)}")
        if process.returncode:
            raise SetupFailed(hint("".join(printed)) or f"{label}: {_last(printed)} (all of it: {self.log})")

    def _watched(self, label: str, lines: Iterator[str | None]) -> Iterator[str]:
        """Pass the lines on; every two seconds show the newest one, and every ten that it still goes on."""
        shown = time.monotonic()
        newest = ""
        fresh = False
        for line in lines:
            if line is not None:
                yield line
                if found := progress_of(line):
                    newest, fresh = found, True
            silent = time.monotonic() - shown
            if (fresh and silent >= 2) or silent >= 10:
                self._print(label, newest)
                shown, fresh = time.monotonic(), False

    def _print(self, label: str, text: str) -> None:
        print(f"{time.monotonic() - self.began:5.0f} s  {label:<12} {text}".rstrip(), flush=True)


def entries(requirements: str) -> dict[str, str]:
    """The entries of a requirements file, with their hashes, by the names that they pin."""
    found: dict[str, str] = {}
    for entry in re.findall(r"^[^\s#].*\n(?:[ \t].*\n)*", requirements, re.MULTILINE):
        name = entry.partition("==")[0]
        found[name] = found.get(name, "") + entry
    return found


def only(names: Container[str], requirements: str) -> Iterator[str]:
    """The entries of a requirements file, with their hashes, that pin one of `names`."""
    return (entry for name, entry in entries(requirements).items() if name in names)


def progress_of(line: str) -> str:
    """The part of an installer's line for a person, at most 80 characters; empty if there is none."""
    line = re.sub(r"\(from .*|--hash=\S+|https?://\S+/", "", line).strip()
    if line.startswith(("Requirement already satisfied", "Using cached", "Looking in", "Obtaining", "+ ", "- ")):
        return ""
    if line.startswith("Installing collected packages:"):
        return f"installing {line.count(',') + 1} packages"
    return line if len(line) <= 80 else f"{line[:79]}…"


def hint(output: str) -> str | None:
    """The one sentence for an installer that failed with this output, or None."""
    return next((sentence for pattern, sentence in HINTS if re.search(pattern, output)), None)


def _last(printed: list[str]) -> str:
    return next((line.strip() for line in reversed(printed) if line.strip()), "the installer said nothing")


def _lines(stream: Iterable[bytes]) -> Iterator[str | None]:
    """The lines of a stream as they come, and None for every second without one."""
    waiting: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in stream:
            waiting.put(line.decode("utf-8", "replace").replace("\r", ""))
        waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = waiting.get(timeout=1)
        except queue.Empty:
            yield None
            continue
        if line is None:
            return
        yield line
